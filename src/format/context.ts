/** Describes what the model sees of a conversation: its items, its budget, and what was left out. */

import type { Assembly, AssemblyReport, Origin } from "../core/assembly/assemble.ts";
import { callFieldOf } from "../core/messages/dialects.ts";
import type { HostMessage } from "../core/messages/codec.ts";
import { messageName } from "../core/model/types.ts";
import type { Conversation, Message, MessageId, Summary, SummaryId } from "../core/model/types.ts";
import { inShort, openingOf } from "./messages.ts";
import { isObject, type Json } from "../core/base/json.ts";
import { formatCount, plural } from "../core/base/format.ts";
import type { Timestamp } from "../core/base/time.ts";
import { cut, widthOf } from "./width.ts";
import { harmless, oneLine } from "./safe-text.ts";
import type { Page } from "./page.ts";

/** A message of the prompt, with the stored row it comes from. */
export interface PromptItem {
  readonly origin: Origin;
  readonly shown: HostMessage;
  readonly summary: Summary | undefined;
  readonly message: Message | undefined;
}

/** The rows to read for the items of a prompt. */
export const idsOf = ({
  origins,
}: AssemblyReport): { summaries: readonly SummaryId[]; messages: readonly MessageId[] } => ({
  summaries: origins.flatMap((origin) => (origin.kind === "summary" ? [origin.id] : [])),
  messages: origins.flatMap((origin) => (origin.kind === "message" ? [origin.id] : [])),
});

export function itemsOf(
  { messages, report }: Assembly,
  stored: { readonly summaries: readonly Summary[]; readonly messages: readonly Message[] },
): readonly PromptItem[] {
  const summaries = new Map(stored.summaries.map((each) => [each.id, each]));
  const known = new Map(stored.messages.map((each) => [each.id, each]));
  return messages.flatMap((shown, at) => {
    const origin = report.origins[at];
    if (origin === undefined) return [];
    const summary = origin.kind === "summary" ? summaries.get(origin.id) : undefined;
    const message = origin.kind === "message" ? known.get(origin.id) : undefined;
    return [{ origin, shown, summary, message }];
  });
}

export function rangeOf({
  summary,
  message,
}: Pick<PromptItem, "summary" | "message">): readonly [Timestamp, Timestamp] | null {
  if (message !== undefined) return [message.at, message.at];
  if (summary === undefined) return null;
  const from = summary.earliestAt ?? summary.createdAt;
  return [from, summary.latestAt ?? from];
}

export function itemText({ summary, message, shown }: PromptItem): string {
  if (message !== undefined) return inShort(message);
  return summary === undefined ? oneLine(textOf(shown)) : openingOf(summary);
}

export function itemName(origin: Origin): string {
  switch (origin.kind) {
    case "summary":
      return `d${origin.depth} ${origin.id}`;
    case "message":
      return `${origin.role} ${messageName(origin.id)}`;
    case "note":
      return origin.standing === undefined ? "note" : "standing instructions";
  }
}

/** `source` names where the budget comes from. */
export function budgetLine({ paint }: Pick<Page, "paint">, { budget, tokens }: AssemblyReport, source: string): string {
  const share = Math.round((tokens / Math.max(1, budget)) * 100);
  return `prompt: ${formatCount(tokens)} tokens, ${share}% of a budget of ${formatCount(budget)} ${paint.soft(`(${source})`)}`;
}

export const budgetSource = ({ promptBudget }: Pick<Conversation, "promptBudget">): string =>
  promptBudget === null ? "the default" : "from the host";

export function lineOf(words: string, columns: number): string {
  const line = `── ${words} `;
  return line + "─".repeat(Math.max(0, columns - widthOf(line)));
}

/** Exactly what the model gets, below a line that names the item. */
export function wholeItem(
  { paint, columns }: Pick<Page, "paint" | "columns">,
  { origin, shown }: Pick<PromptItem, "origin" | "shown">,
): { readonly head: string; readonly text: string } {
  const role = typeof shown["role"] === "string" ? shown["role"] : "message";
  const words = cut(`${itemName(origin)}, as ${role}, ${plural(origin.tokens, "token")}`, columns - 4);
  return { head: paint.soft(lineOf(words, columns)), text: harmless(textOf(shown)) };
}

/** The text of a message, and as JSON its tool calls and other blocks. Bulky data is replaced by its size. */
function textOf(message: HostMessage): string {
  const { content } = message;
  const blocks = [content, message[callFieldOf(message)?.field ?? ""]].flatMap((field): readonly Json[] =>
    Array.isArray(field) ? field : field === undefined || field === null ? [] : [field],
  );
  return (blocks.length > 0 || content !== undefined ? blocks : [message]).map(blockText).join("\n");
}

function blockText(block: Json): string {
  const text = isObject(block) ? block["text"] : block;
  return typeof text === "string" ? text : (JSON.stringify(block, withoutBulk) ?? "");
}

const bulkCharacters = 4_000;

const withoutBulk = (_key: string, value: unknown): unknown =>
  typeof value === "string" && value.length > bulkCharacters ? `… ${formatCount(value.length)} characters` : value;

/** Why the prompt is empty. `smallest`: the tokens of the smallest message; null if there is none. */
export function starvedWords({ budget }: AssemblyReport, smallest: number | null): string {
  const words = `a budget of ${plural(budget, "token")} is too small for any message`;
  return smallest === null ? words : `${words}: the smallest takes ${formatCount(smallest)}`;
}

/** What the mark `+` at an item means; empty if no item has it. */
export const finerWords = ({ finer }: AssemblyReport): readonly string[] =>
  finer.items === 0
    ? []
    : [
        `+ in place of ${plural(finer.items, "summary", "summaries")}, because there is room: adds ` +
          `${formatCount(finer.tokens)} tokens`,
      ];

/** Marks an item that is shown in place of a summary of the context. */
export const finerMark = (origin: Origin): string => (origin.kind !== "note" && origin.within !== undefined ? "+" : "");

export function reservations({ evicted, standIns, loose, shortened, standing }: AssemblyReport): readonly string[] {
  return [
    ...(evicted.items === 0
      ? []
      : [
          `${plural(evicted.items, "older item")} (${formatCount(evicted.tokens)} tokens) did not fit the budget: ` +
            "still stored and searchable, but not visible to the model; `lcm compact` makes room",
        ]),
    ...(standing.left === 0
      ? []
      : [`${plural(standing.left, "older standing instruction")} did not fit their share of the budget (pinsShare)`]),
    ...(standIns === 0 ? [] : [`${plural(standIns, "tool call")} without a result got a placeholder result`]),
    ...(loose === 0 ? [] : [`${plural(loose, "tool result")} shown as text, because the call was folded`]),
    ...(shortened === 0 ? [] : [`${plural(shortened, "message")} shortened, because even the fresh tail does not fit`]),
  ];
}
