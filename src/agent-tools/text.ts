/**
 * Formats tool results as text: headings, quoted blocks, and notes on what was left out.
 * Every line of stored text is quoted, so none can pass for one of our own lines or for another hit.
 */

import type { Expanded } from "../core/recall/expand.ts";
import { messageName, type ConversationId, type MessageId, type Role } from "../core/model/types.ts";
import type { SearchHit } from "../core/model/store.ts";
import type { Passage } from "../core/recall/passages/passages.ts";
import type { Mark } from "../core/recall/marks.ts";
import { estimateTokens } from "../core/base/tokens.ts";
import type { AskProgress } from "../core/recall/ask-types.ts";
import type { RecentItem } from "../core/recall/recent.ts";
import { firstLine, quote } from "../core/base/excerpt.ts";
import type { ToolContext } from "./define.ts";
import { findRelativeTimes, formatDays } from "../core/base/relative-time.ts";
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

/** Messages in the order of reading: a line above each, then its text. Only what changes of date and time is said. */
export function passagesText(context: ToolContext, passages: readonly Passage[]): string {
  const when = createClock(context.zone ?? "UTC");
  const headOf = (passage: Passage): string =>
    `${passageHead(passage, when(passage))}${meantDays(passage, passage.text, context)}`;
  return passages.map((passage) => `${headOf(passage)}\n${quote(passage.text)}`).join("\n");
}

/** The date and time of messages in the order of reading, as far as they differ from the one before. */
export function createClock(zone: string): (message: Pick<Passage, "at" | "conversation">) => string {
  let last = { day: "", minute: "", conversation: 0 };
  return ({ at, conversation }) => {
    const { date, time } = wallTime(at, zone);
    const isSame = date === last.day && time === last.minute && conversation === last.conversation;
    const when = date !== last.day ? ` ${date} ${time}` : isSame ? "" : ` ${time}`;
    last = { day: date, minute: time, conversation };
    return when;
  };
}

/** `msg_1-42 user 2026-02-17 15:30`. The id names the conversation. */
const passageHead = (
  { id, role, context, alike }: Pick<Passage, "id" | "role" | "context" | "alike">,
  when: string,
): string =>
  `${messageName(id)} ${role}${when}${context ? " (context)" : ""}${alike.length === 0 ? "" : ` (also ${alike.map(messageName).join(", ")})`}`;

/** Relative times that are resolved in a heading. */
const daysMax = 3;

/** ` (yesterday = 2026-11-17)`: relative times in what somebody said, by the time at which it was said. */
export function meantDays(
  { role, at }: { readonly role: Role; readonly at: Timestamp },
  text: string,
  { zone }: ToolContext,
): string {
  if (role === "tool") return "";
  const meant = findRelativeTimes(text, at, zone).map((time) => `${time.words} = ${formatDays(time)}`);
  return meant.length === 0 ? "" : ` (${[...new Set(meant)].slice(0, daysMax).join(", ")})`;
}

/** Tokens of a heading as most of these hits have it. */
export function headingTokensOf(hits: readonly SearchHit[]): number {
  const longest = hits.reduce((most, hit) => (hit.kind === "message" ? Math.max(most, hit.id) : most), 0);
  const head = { id: longest as MessageId, role: "assistant", context: false, alike: [] } as const;
  return estimateTokens(passageHead(head, " 15:30")) + 1;
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
