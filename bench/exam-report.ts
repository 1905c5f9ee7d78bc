/** Prints the figures of an exam as tables. */

import { formatCount, plural } from "../src/core/base/format.ts";
import type { costOf, Lived } from "./exam-turns.ts";
import type { FileCall } from "./file-model.ts";
import { table } from "./table.ts";

/** Of one budget. */
export interface Figures {
  readonly budget: number;
  readonly promptTokens: number;
  readonly share: number;
  /** Questions whose exact values are all in one message of the prompt, of those that have any. */
  readonly factsInPrompt: number;
  readonly facts: number;
  /** In the prompt, by depth. */
  readonly summaries: readonly number[];
  readonly olderMessages: number;
  readonly tailMessages: number;
  readonly evicted: number;
  readonly folds: number;
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly lived: (Lived & { readonly costPer1000Turns: ReturnType<typeof costOf> }) | null;
}

export type Answered = FileCall & { readonly budgets: readonly number[] };

/** Every answer once, with the budgets that used it. */
export function answersOf(calls: ReadonlyMap<number, readonly FileCall[]>): readonly Answered[] {
  const answers = new Map<string, FileCall & { readonly budgets: number[] }>();
  for (const [budget, made] of calls) {
    for (const call of made) {
      const key = `${call.hash} ${call.verdict}`;
      const { budgets } = answers.get(key) ?? { budgets: [] };
      answers.set(key, { ...call, budgets: [...new Set([...budgets, budget])] });
    }
  }
  return [...answers.values()];
}

export function report(figures: readonly Figures[], answers: readonly Answered[]): string {
  const depths = Math.max(1, ...figures.map(({ summaries }) => summaries.length));
  const names = Array.from({ length: depths }, (_, depth) => `d${depth}`);
  const head = [
    "budget",
    "prompt tokens",
    "of budget",
    "facts in prompt",
    ...names,
    "older messages",
    "tail",
    "evicted",
  ];
  const rows = figures.map((each) => [
    formatCount(each.budget),
    formatCount(each.promptTokens),
    percent(each.share),
    `${each.factsInPrompt} of ${each.facts}`,
    ...names.map((_, depth) => String(each.summaries[depth] ?? 0)),
    ...[each.olderMessages, each.tailMessages, each.evicted, each.folds].map(formatCount),
    ...[each.calls, each.inputTokens, each.outputTokens].map(formatCount),
  ]);
  const writing = ["folds", "model calls", "tokens in", "tokens out"];
  return [
    table([...head, ...writing], rows),
    ...livedTables(figures),
    ...(answers.length === 0 ? [] : [answerTable(answers)]),
  ].join("\n\n");
}

function livedTables(figures: readonly Figures[]): readonly string[] {
  const head = ["budget", "prompts", "mean tokens", "largest", "prefix kept", "prefix changes", "compactions", "folds"];
  const rows = figures.flatMap(({ budget, lived }) => (lived === null ? [] : [livedRow(budget, lived)]));
  if (rows.length === 0) return [];
  const turns = plural(figures[0]?.lived?.turns ?? 0, "turn");
  return [
    table([...head, "cost per 1,000 turns, cached", "uncached"], rows),
    `The cost is in tokens of input at full price and includes the summaries. It is scaled from ${turns}.`,
  ];
}

function livedRow(budget: number, lived: NonNullable<Figures["lived"]>): readonly string[] {
  const { cached, uncached } = lived.costPer1000Turns;
  return [
    ...[budget, lived.turns, Math.round(lived.meanPromptTokens), lived.largestPromptTokens].map(formatCount),
    percent(lived.prefixKept),
    ...[lived.prefixChanges, lived.compactions, lived.folds, cached, uncached].map(formatCount),
  ];
}

function answerTable(answers: readonly Answered[]): string {
  const rows = answers.map(({ hash, purpose, inputTokens, outputTokens, budgets, verdict }) => [
    verdict,
    hash,
    purpose,
    formatCount(inputTokens),
    formatCount(outputTokens),
    budgets.map(formatCount).join(" "),
  ]);
  const sum = (of: "inputTokens" | "outputTokens"): string =>
    formatCount(answers.reduce((total, answer) => total + answer[of], 0));
  const accepted = answers.filter(({ verdict }) => verdict.startsWith("accepted")).length;
  return [
    table(["verdict", "answer", "for", "tokens in", "tokens out", "at budgets"], rows),
    `${plural(answers.length, "answer")}, ${accepted} accepted; ${sum("inputTokens")} tokens in, ${sum("outputTokens")} out.`,
  ].join("\n\n");
}

const percent = (share: number): string => `${(100 * share).toFixed(1)}%`;
