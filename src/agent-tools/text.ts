/**
 * Formats tool results as text: headings, quoted blocks, and notes on what was left out.
 * Every line of stored text is quoted, so none can pass for one of our own lines or for another hit.
 */

import type { Expanded } from "../core/recall/expand.ts";
import { messageName, type ConversationId, type MessageId } from "../core/model/types.ts";
import type { SearchHit } from "../core/model/store.ts";
import type { Passage } from "../core/recall/passages.ts";
import type { Mark } from "../core/recall/marks.ts";
import { estimateTokens } from "../core/base/tokens.ts";
import type { AskProgress } from "../core/recall/ask-types.ts";
import type { RecentItem } from "../core/recall/recent.ts";
import { firstLine, quote } from "../core/base/excerpt.ts";
import type { ToolContext } from "./define.ts";
import { formatRange, wallTime, type Timestamp } from "../core/base/time.ts";
import { formatCount, plural } from "../core/base/format.ts";

const nameCharsMax = 80;

/** A stored name, in quotes and on one line. */
export const quoteName = (name: string): string => JSON.stringify(firstLine(name, nameCharsMax));

/** `id · what · when`, and the conversation unless it is the reader's own. */
export function heading(
  { reader, zone }: ToolContext,
  item: {
    readonly id: string;
    readonly what: readonly string[];
    readonly from: Timestamp | null;
    readonly to?: Timestamp | null;
    readonly conversation: ConversationId;
  },
): string {
  const { id, what, from, to, conversation } = item;
  const when = from === null ? [] : [formatRange(from, to ?? from, zone)];
  const where = conversation === reader.conversation ? [] : [`conversation ${conversation}`];
  return [id, ...what, ...when, ...where].join(" · ");
}

/** Messages that belong together: a line above each (the date only where it changes), then its text. */
export function passageGroup(context: ToolContext, group: readonly Passage[]): string {
  let day = "";
  const blocks = group.map((passage) => {
    const { date, time } = wallTime(passage.at, context.zone ?? "UTC");
    const when = date === day ? time : `${date} ${time}`;
    day = date;
    return `${passageHead(passage, when)}\n${quote(passage.text)}`;
  });
  return blocks.join("\n");
}

/** `msg_1-42 user 2026-02-17 15:30`. The id names the conversation. */
const passageHead = (
  { id, role, context, alike }: Pick<Passage, "id" | "role" | "context" | "alike">,
  when: string,
): string =>
  `${messageName(id)} ${role} ${when}${context ? " (context)" : ""}${alike.length === 0 ? "" : ` (also ${alike.map(messageName).join(", ")})`}`;

/** Tokens of the longest heading that these hits can have. */
export function headingTokensOf(hits: readonly SearchHit[]): number {
  const longest = hits.reduce((most, hit) => (hit.kind === "message" ? Math.max(most, hit.id) : most), 0);
  return (
    estimateTokens(
      passageHead({ id: longest as MessageId, role: "assistant", context: true, alike: [] }, "2026-02-17 15:30"),
    ) + 1
  );
}

/** A summary or message under its heading, with as much of its text as was read. */
export function block(context: ToolContext, item: Expanded | RecentItem): string {
  const { conversation, isWhole } = item;
  const part = isWhole ? [] : ["partial"];
  const from = "at" in item ? item.at : item.earliestAt;
  const head =
    item.kind === "message"
      ? { id: messageName(item.id), what: [item.role, ...part], from, conversation }
      : { id: item.id, what: [`summary, depth ${item.depth}`, ...part], from, to: item.latestAt, conversation };
  return `${heading(context, head)}\n${quote(item.text)}`;
}

/** `— compacted by the host at 24,314 tokens, 2026-02-17 15:30` */
export function markLine({ text, at }: Mark, { zone }: ToolContext): string {
  const { date, time } = at === null ? { date: "", time: "" } : wallTime(at, zone ?? "UTC");
  return `— ${text}${at === null ? "" : `, ${date} ${time}`}`;
}

export const leftOutLine = (
  { items, tokens }: { readonly items: number; readonly tokens: number },
  advice: string,
): readonly string[] =>
  items === 0 ? [] : [`Left out: ${plural(items, "item")} (${formatCount(tokens)} tokens). ${advice}.`];

export function progressWords(progress: AskProgress): string {
  switch (progress.kind) {
    case "searching":
      return `searching for ${JSON.stringify(progress.query)}`;
    case "found":
      return `found ${plural(progress.summaries, "summary", "summaries")} and ${plural(progress.messages, "message")}`;
    case "reading":
      return `reading ${inShort(progress.ids)} (${plural(progress.tokens, "token")})`;
    case "asking":
      return `asking ${progress.model}, step ${progress.step}`;
    case "mapping":
      return `read ${formatCount(progress.done)} of ${plural(progress.of, "message")} in ${plural(progress.calls, "call")}`;
  }
}

const idsShown = 4;

const inShort = (ids: readonly string[]): string => {
  const more = ids.length > idsShown ? ` and ${ids.length - idsShown} more` : "";
  return `${ids.slice(0, idsShown).join(", ")}${more}`;
};
