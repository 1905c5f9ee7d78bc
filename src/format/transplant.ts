/** Describes what a transplant would copy, and what it copied. */

import type { Conversation, ConversationId } from "../core/model/types.ts";
import type { Transplantation, TransplantDone } from "../core/maintenance/transplant.ts";
import { bareName } from "./conversations.ts";
import { openingOf } from "./messages.ts";
import { formatCount, plural } from "../core/base/format.ts";
import { cut, padEnd, padStart } from "./width.ts";
import type { Page } from "./page.ts";

const rowsShown = 30;

export function transplantationLines(
  page: Page,
  plan: Transplantation,
  source: Conversation,
  target: Conversation,
): readonly string[] {
  const { paint } = page;
  const { shown, prepended, depths, messages, carried, targetContext, tokensBefore, tokensAfter } = plan;
  const title = (text: string): string => paint.strong(text);
  const ends = [
    title(`Transplant: conversation ${source.id} → conversation ${target.id}`),
    ...[["from", source] as const, ["into", target] as const].map(([word, conversation]) =>
      paint.soft(cut(`  ${word} ${bareName(conversation)}`, page.columns)),
    ),
    "",
  ];
  if (shown.length === 0) {
    return [
      ...ends,
      `Nothing to transplant: the context of conversation ${source.id} has no summaries.`,
      page.typed(`\`lcm compact ${source.id}\` folds its messages into summaries.`),
    ];
  }
  const all = depths.reduce((sum, { summaries }) => sum + summaries, 0);
  const { items, summaries, messages: raw } = targetContext;
  const depthWidth = Math.max(1, ...depths.map(({ summaries: count }) => formatCount(count).length));
  return [
    ...ends,
    title(`Source context summaries (${formatCount(shown.length)}):`),
    ...shownLines(page, plan),
    "",
    title(
      `Full DAG to copy: ${plural(all, "summary", "summaries")} ` +
        `(${formatCount(prepended.length)} context + ${plural(all - prepended.length, "ancestor")})`,
    ),
    ...depths.map(
      ({ depth, summaries: count }) =>
        `  d${depth}: ${padStart(formatCount(count), depthWidth)} ${kindWords(depth, count)}`,
    ),
    `  and the ${plural(messages, "message")} below them`,
    "",
    title(`Target current context (${plural(items, "item")}):`),
    `  ${plural(summaries, "summary", "summaries")} + ${plural(raw, "message")}`,
    "",
    title("After transplant:"),
    `  ${plural(prepended.length, "new context item")} prepended`,
    ...(carried.length === 0 ? [] : [`  ${completedWords(carried.length)}: ${carried.join(", ")}`]),
    `  ${plural(all, "summary", "summaries")} copied (new IDs, owned by conversation ${target.id})`,
    `  ${plural(messages, "message")} copied, each once`,
    ...(source.totals.contextMessages === 0 ? [] : [leftBehind(source)]),
    `  Estimated token overhead in the prompt: ~${plural(tokensAfter - tokensBefore, "token")} ` +
      paint.soft(`(${formatCount(tokensBefore)} → ${formatCount(tokensAfter)})`),
    "",
  ];
}

const completedWords = (count: number): string =>
  `${plural(count, "summary", "summaries")} carried over at a reset not copied again, but given ${count === 1 ? "its" : "their"} sources`;

const leftBehind = ({ id, totals }: Conversation): string =>
  `  ${plural(totals.contextMessages, "newest message")} of conversation ${id} not copied: no summary covers ` +
  `${totals.contextMessages === 1 ? "it" : "them"} yet`;

const kindWords = (depth: number, count: number): string => (depth > 0 ? "condensed" : count === 1 ? "leaf" : "leaves");

function shownLines({ paint, columns }: Page, { shown }: Transplantation): readonly string[] {
  const rows = shown.slice(0, rowsShown);
  const tokensWidth = Math.max(...rows.map(({ tokens }) => formatCount(tokens).length + 1));
  const depthWidth = Math.max(...rows.map(({ depth }) => `d${depth}`.length));
  const lines = rows.map(({ id, depth, tokens, opening }) => {
    const lead = [
      `  ${id}`,
      padEnd(depth === 0 ? "leaf" : "condensed", "condensed".length),
      paint.depth(depth, padEnd(`d${depth}`, depthWidth)),
      padStart(`${formatCount(tokens)}t`, tokensWidth),
    ];
    const room = columns - (2 + 20 + 2 + "condensed".length + 2 + depthWidth + 2 + tokensWidth + 2) - 2;
    return `${lead.join("  ")}  ${paint.soft(`"${cut(openingOf({ text: opening }), Math.max(10, room))}"`)}`;
  });
  return shown.length > rowsShown ? [...lines, `  and ${formatCount(shown.length - rowsShown)} more`] : lines;
}

export const transplantedWords = (
  {
    contextItems,
    summaries,
    messages,
    carried,
  }: Pick<TransplantDone, "contextItems" | "summaries" | "messages" | "carried">,
  target: ConversationId,
): string =>
  `Copied ${plural(summaries, "summary", "summaries")} and ${plural(messages, "message")}; ` +
  `${plural(contextItems, "item")} prepended to conversation ${target}` +
  (carried === 0 ? "" : `; ${completedWords(carried)}`);
