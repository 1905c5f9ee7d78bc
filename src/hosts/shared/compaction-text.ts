/**
 * What a host can store as its own compaction, so that the session stays usable without us: the summaries at the front of
 * our context, and the first message after them, from which the host keeps its own.
 */

import { createShowStanding, pinsRead } from "../../core/assembly/standing-block.ts";
import { renderSummary } from "../../core/assembly/summary-xml.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation } from "../../core/model/types.ts";

export interface CompactionText {
  readonly text: string;
  /** The host's id of the first message that the text does not cover; null if it covers all. */
  readonly firstKept: string | null;
}

const standingTokens = 2_000;

/** Null if nothing is folded. */
export async function compactionText({ store }: Lcm, { id }: Conversation): Promise<CompactionText | null> {
  const items = await store.context(id);
  const firstRaw = items.findIndex(({ kind }) => kind === "message");
  const front = firstRaw < 0 ? items : items.slice(0, firstRaw);
  const ids = front.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
  if (ids.length === 0) return null;
  const summaries = new Map((await store.summaries({ ids })).map((summary) => [summary.id, summary]));
  const pins = await store.pins(id, { inForce: true, limit: pinsRead });
  const standing = createShowStanding(pins, standingTokens)([]);
  const raw = items[firstRaw];
  const [first] = raw?.kind === "message" ? await store.messages({ ids: [raw.id] }) : [];
  const shown = ids.flatMap((each) => summaries.get(each) ?? []).map((summary) => renderSummary(summary, []));
  return {
    text: [...shown, ...(standing === null ? [] : [standing.message])]
      .map(({ content }) => (typeof content === "string" ? content : ""))
      .join("\n\n"),
    firstKept: first?.key ?? null,
  };
}
