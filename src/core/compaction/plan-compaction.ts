/** Predicts the passes of a compaction without calling a model or writing anything. */

import { modeOf, type CompactDeps, type CompactRequest } from "./compact.ts";
import { createLeafFinder } from "./find-runs.ts";
import type { ContextItem, ConversationId } from "../model/types.ts";
import type { PassReport } from "./passes.ts";
import { condensedRuns, depthMaxBetweenTurns, rulesOf } from "./choose-runs.ts";
import { targetTokensOf } from "../summarize/source.ts";
import { sumTokens } from "../base/tokens.ts";
import { mustFind } from "../model/find-conversation.ts";
import { promptTokens, summaryOverheadTokens } from "../model/prompt-cost.ts";
import { due, type Due } from "./due.ts";

/** What a compaction would do if every summary came out at its target length. */
export interface CompactionPlan {
  readonly conversation: ConversationId;
  readonly due: Due;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly passes: readonly PlannedPass[];
}

export interface PlannedPass extends Pick<PassReport, "depth" | "sources" | "sourceTokens"> {
  readonly targetTokens: number;
}

export async function planCompaction(deps: CompactDeps, request: CompactRequest): Promise<CompactionPlan> {
  const { store, settings } = deps;
  const conversation = await mustFind(store, request.conversation);
  const pressure = await due(deps, conversation, request.budget);
  const mode = modeOf(settings, request, pressure);
  const rules = rulesOf(settings, request.force === true, pressure.budget);
  const tokensBefore = promptTokens(conversation.totals);
  const passes: PlannedPass[] = [];
  let tokensAfter = tokensBefore;
  const targetTokens = mode === "until_under" ? (request.targetTokens ?? pressure.thresholdTokens) : -1;
  const passesMax = mode === null ? 0 : (request.passesMax ?? Number.POSITIVE_INFINITY);
  const hasEnded = (): boolean => passes.length >= passesMax || tokensAfter <= targetTokens;

  const context = new Map((await store.context(conversation.id)).map((item) => [item.ordinal, item]));
  const fold = (run: readonly ContextItem[]): void => {
    const { ordinal = 0, depth: below = -1 } = run[0] ?? {};
    const depth = below + 1;
    const sourceTokens = sumTokens(run);
    const tokens = targetTokensOf(rules, depth, sourceTokens);
    passes.push({ depth, sources: run.length, sourceTokens, targetTokens: tokens });
    tokensAfter += tokens - sourceTokens + summaryOverheadTokens * (depth === 0 ? 1 : 1 - run.length);
    for (const each of run) context.delete(each.ordinal);
    context.set(ordinal, { kind: "summary", id: `sum_planned${passes.length}`, ordinal, tokens, depth });
  };

  const finder = createLeafFinder(store, conversation.id, rules, tokensBefore > pressure.budget ? "newest" : "oldest");
  const leavesMax = mode === "incremental" ? 1 : Number.POSITIVE_INFINITY;
  while (!hasEnded() && passes.length < leavesMax) {
    const run = await finder.next();
    if (run === null) break;
    fold(run.items);
  }
  const condensing = { ...rules, depthMax: mode === "incremental" ? depthMaxBetweenTurns(settings) : rules.depthMax };
  while (!hasEnded()) {
    const inOrder = [...context.values()].toSorted((a, b) => a.ordinal - b.ordinal);
    const runs = condensedRuns(inOrder, condensing);
    if (runs.length === 0) break;
    for (const run of runs) if (!hasEnded()) fold(run);
  }
  return { conversation: conversation.id, due: pressure, tokensBefore, tokensAfter, passes };
}
