/** Describes recorded prompts: which one it is, what changed from one to another, and when something was in view. */

import { formatBytes, formatCount, listed, plural } from "../core/base/format.ts";
import { formatTimestamp } from "../core/base/time.ts";
import type { PromptRecord } from "../core/model/prompts.ts";
import { messageName, seqOf } from "../core/model/types.ts";
import type { ConversationId, MessageId, SummaryId } from "../core/model/types.ts";
import type { Comparison, PromptChange } from "../core/seen/compare.ts";
import type { Seen, ViewSpan } from "../core/seen/find-seen.ts";
import type { Rebuilt } from "../core/seen/rebuild.ts";
import { finerMark, itemName, itemText, type PromptItem } from "./context.ts";
import type { Page } from "./page.ts";
import { oneLine } from "./safe-text.ts";
import { changeVerbs, viewWords } from "./shared-words.ts";
import { table } from "./table.ts";

/** `1#12`: prompt 12 of conversation 1. */
export const promptName = ({ conversation, number }: Pick<PromptRecord, "conversation" | "number">): string =>
  `${conversation}#${number}`;

/** Reads `1#12`; null if it is not a prompt. */
export function parsePromptName(text: string): { conversation: ConversationId; number: number } | null {
  const [, conversation, number] = /^(\d{1,9})#(\d{1,12})$/.exec(text) ?? [];
  return number === undefined ? null : { conversation: Number(conversation) as ConversationId, number: Number(number) };
}

/** Which prompt it is, when and for whom. */
export function promptLines(
  { paint, zone }: Pick<Page, "paint" | "zone">,
  { record, answer }: Seen,
): readonly string[] {
  const { head, at, outcome, counted, cached, turn } = record;
  const behind = answer === null ? "" : `, behind ${messageName(answer)}`;
  const facts = [
    ...(head.model === undefined ? [] : [oneLine(head.model)]),
    ...(turn === null ? [] : [`turn ${oneLine(turn)}`]),
    ...(outcome === null ? [] : [outcome === "overflow" ? "refused as too long" : "answered"]),
    ...(counted === null ? [] : [`${formatCount(counted)} tokens counted by the provider${cachedWords(cached)}`]),
  ];
  const title = `${paint.strong(`prompt ${promptName(record)}`)} of ${formatTimestamp(at, zone)}${behind}`;
  return [title, ...(facts.length === 0 ? [] : [paint.soft(facts.join(" · "))])];
}

const cachedWords = (cached: number | null): string =>
  cached === null ? "" : `, ${formatCount(cached)} of them from its cache`;

/** What the host added, and whether our part is rebuilt to the byte. */
export function rebuiltLines(
  { paint }: Pick<Page, "paint">,
  { record, guidance, isExact, reasons }: Rebuilt,
): readonly string[] {
  const { live, liveTokens, bytes, hash } = record;
  return [
    ...(guidance === null ? [] : ["the guidance about recall was added to the system prompt"]),
    ...(live === 0
      ? []
      : [`the host added ${plural(live, "message")} of the running turn (${formatCount(liveTokens)} tokens)`]),
    isExact
      ? paint.soft(`rebuilt to the byte: ${formatBytes(bytes)}, sha256 ${hash}…`)
      : `${paint.caution("note:")} not rebuilt to the byte: ${listed(reasons)}`,
  ];
}

/** The items of a prompt, one per line. */
export function promptItemLines(
  { paint, bounds }: Pick<Page, "paint" | "bounds">,
  items: readonly PromptItem[],
): readonly string[] {
  const columns = [{ title: "item" }, { title: "tokens", align: "right" }, { title: "text", flexible: true }] as const;
  const rows = items.map((item) => [
    itemName(item.origin) + finerMark(item.origin),
    formatCount(item.origin.tokens),
    itemText(item),
  ]);
  return rows.length === 0 ? [] : table(columns, rows, bounds, paint);
}

// ── What changed ─────────────────────────────────────────────────────────────────────────────────────────────────────

export function comparisonLines(
  { paint }: Pick<Page, "paint">,
  { before, after, sharedBytes, changes }: Comparison,
): readonly string[] {
  const share = Math.floor((100 * sharedBytes) / Math.max(1, after.bytes));
  const sizes = [before, after].map(({ tokens }) => formatCount(tokens));
  return [
    `${promptName(before)} → ${promptName(after)}: ${sizes.join(" → ")} tokens; the first ${formatBytes(sharedBytes)} are the same (${share}%)`,
    ...(changes.length === 0
      ? [paint.soft("they show the same")]
      : changes.map((change) => `  ${changeWords(change)}`)),
  ];
}

export function changeWords({ kind, items, of }: PromptChange): string {
  return `${itemsWords(items)} ${changeVerbs[kind]}${of === null ? "" : ` ${of}`}`;
}

/** `msg_1-4 to msg_1-9, msg_1-12 and sum_…`; many are only counted. */
export function itemsWords(items: readonly (MessageId | SummaryId)[]): string {
  const messages = items.filter((id) => typeof id === "number").toSorted((a, b) => a - b);
  const summaries = items.filter((id) => typeof id !== "number");
  const runs: (readonly [MessageId, MessageId])[] = [];
  for (const id of messages) {
    const last = runs.at(-1);
    if (last !== undefined && seqOf(id) === seqOf(last[1]) + 1) runs[runs.length - 1] = [last[0], id];
    else runs.push([id, id]);
  }
  const words = runs.map(([from, to]) =>
    from === to ? messageName(from) : `${messageName(from)} to ${messageName(to)}`,
  );
  const named = [...words, ...summaries];
  return named.length <= namedMax
    ? listed(named)
    : listed([...named.slice(0, namedMax), `${named.length - namedMax} more`]);
}

const namedMax = 6;

// ── In view ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const viewText = ({ view, by }: ViewSpan): string =>
  by === null ? viewWords[view] : `${viewWords[view]} ${by}`;

/** Since when it is no longer in view, in a sentence. */
export function viewSentence(spans: readonly ViewSpan[], zone: string): string {
  const last = spans.at(-1);
  if (last === undefined) return "no prompt that lossless-claw built is newer than it";
  if (last.view === "whole") return "the newest prompt shows it";
  if (last.view === "summary")
    return `the newest prompt does not show it itself: it is ${viewText(last)}, whose text may leave it out`;
  if (last.view !== "no") return `the newest prompt does not show it itself: it is ${viewText(last)}`;
  return `not in view since ${formatTimestamp(last.from.at, zone)} (prompt ${last.from.number})`;
}
