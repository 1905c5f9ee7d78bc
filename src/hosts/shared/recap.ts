/**
 * The text that a host's next request gets after the host has compacted its context: how to recall, the user's standing
 * instructions, and as much of our summaries as fits, the newest first. Summaries that do not fit are named in a line each.
 */

import { createShowStanding, pinsRead } from "../../core/assembly/standing-block.ts";
import { renderSummary } from "../../core/assembly/summary-xml.ts";
import { escapeAttribute } from "../../core/base/escape.ts";
import { firstLine } from "../../core/base/excerpt.ts";
import { estimateTokens } from "../../core/base/tokens.ts";
import { textOfMessage } from "../../core/messages/codec.ts";
import type { Store } from "../../core/model/store.ts";
import { type Conversation, messageName, type Pin, type Summary } from "../../core/model/types.ts";
import { recallGuidance } from "../../core/prompts/guidance.ts";

export interface RecapLimits {
  readonly tokensMax: number;
  /** Beyond this a host shows only the beginning. */
  readonly charactersMax: number;
}

/** Null if nothing of the conversation is stored. */
export async function recap(store: Store, conversation: Conversation, limits: RecapLimits): Promise<string | null> {
  const { id } = conversation;
  const [first] = await store.messages({ conversation: id, limit: 1 });
  const [last] = await store.messages({ conversation: id, limit: 1, keep: "newest" });
  if (first === undefined || last === undefined) return null;
  const items = await store.context(id, { kind: "summary", keep: "newest", limit: summariesRead });
  const ids = items.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
  return composeRecap(
    {
      stored: `${messageName(first.id)} to ${messageName(last.id)}`,
      summaries: await store.summaries({ ids }),
      pins: await store.pins(id, { inForce: true, limit: pinsRead }),
    },
    limits,
  );
}

const summariesRead = 40;
/** Of the whole, for standing instructions. */
const pinsShare = 0.25;
const openingLength = 90;
/** Lines that are worth more than one more summary at length. */
const linesMin = 6;

export interface RecapParts {
  /** The first and the last message that are stored. */
  readonly stored: string;
  /** Oldest first. */
  readonly summaries: readonly Summary[];
  readonly pins: readonly Pin[];
}

export function composeRecap({ stored, summaries, pins }: RecapParts, limits: RecapLimits): string {
  const standing = createShowStanding(pins, Math.floor(pinsShare * limits.tokensMax))([]);
  const opening = [
    recallGuidance({ isFolded: summaries.length > 0, isRestarted: false }),
    `Your context was just compacted. Everything said in this session before is stored word for word: ${stored}.`,
    ...(standing === null ? [] : [textOfMessage(standing.message)]),
  ].join("\n\n");
  const fits = (texts: readonly string[]): boolean => {
    const text = [opening, ...texts].join("\n\n");
    return text.length <= limits.charactersMax && estimateTokens(text) <= limits.tokensMax;
  };
  const lines = summaries.map(lineOf);
  const whole = summaries.map((summary) => textOfMessage(renderSummary(summary, [])));
  // The newest are shown whole, and some before them by a line; the oldest are left out.
  const shown = (wholeFrom: number, linesFrom: number): readonly string[] => [
    ...(linesFrom < wholeFrom ? [lines.slice(linesFrom, wholeFrom).join("\n")] : []),
    ...whole.slice(wholeFrom),
  ];
  let wholeFrom = summaries.length;
  while (wholeFrom > 0 && fits(shown(wholeFrom - 1, Math.max(0, wholeFrom - 1 - linesMin)))) wholeFrom -= 1;
  let linesFrom = wholeFrom;
  while (linesFrom > 0 && fits(shown(wholeFrom, linesFrom - 1))) linesFrom -= 1;
  return [opening, ...shown(wholeFrom, linesFrom)].join("\n\n");
}

/** A summary by its id, time and first words; `lcm_describe` shows the rest. */
function lineOf({ id, earliestAt, latestAt, text }: Summary): string {
  const times = [earliestAt, latestAt].map((at) => at?.slice(0, "2026-11-18T10:00".length) ?? "").join(" to ");
  const words = escapeAttribute(firstLine(text, openingLength));
  return `<summary_ref id="${id}" said="${times}" begins="${words}" />`;
}
