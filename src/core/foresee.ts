/** A look ahead at a compaction: the passes it would make, for a person to read before anything is asked or written. */

import { due, modeOf, mustFind } from "./compact.ts";
import type { CompactDeps, CompactRequest, Due } from "./compact.ts";
import { createLeafFinder } from "./find-runs.ts";
import type { ContextItem, ConversationId } from "./model.ts";
import { sumTokens } from "./passes.ts";
import { condensedRuns, depthMaxBetweenTurns, rulesOf } from "./plan.ts";
import { promptTokens, summaryOverheadTokens } from "./render-summary.ts";
import { targetTokensOf } from "./summarize.ts";

/** What a sweep would do, with every summary as long as its target: nothing is asked and nothing is written. */
export interface CompactionPlan {
  readonly conversation: ConversationId;
  readonly due: Due;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly passes: readonly PlannedPass[];
}

export interface PlannedPass {
  readonly depth: number;
  readonly sources: number;
  readonly sourceTokens: number;
  readonly targetTokens: number;
}

export async function planCompaction(deps: CompactDeps, request: CompactRequest): Promise<CompactionPlan> {
  const { store, settings } = deps;
  const conversation = await mustFind(store, request.conversation);
  const asked = await due(deps, conversation, request.budget);
  const mode = modeOf(settings, request, asked);
  const rules = rulesOf(settings, request.force === true);
  const tokensBefore = promptTokens(conversation.totals);
  const passes: PlannedPass[] = [];
  let tokensAfter = tokensBefore;
  /** The summary as it would stand in the context. */
  const foldAhead = (run: readonly ContextItem[]): ContextItem => {
    const { ordinal = 0, depth: below = -1 } = run[0] ?? {};
    const depth = below + 1;
    const sourceTokens = sumTokens(run);
    const targetTokens = targetTokensOf(settings, depth, sourceTokens);
    passes.push({ depth, sources: run.length, sourceTokens, targetTokens });
    tokensAfter += targetTokens - sourceTokens + summaryOverheadTokens * (depth === 0 ? 1 : 1 - run.length);
    return { kind: "summary", id: `sum_planned${passes.length}`, ordinal, tokens: targetTokens, depth };
  };
  if (mode !== null) {
    const finder = createLeafFinder(store, conversation.id, rules, tokensBefore > asked.budget ? "newest" : "oldest");
    const leavesMax = mode === "incremental" ? 1 : Number.POSITIVE_INFINITY;
    const context = new Map((await store.context(conversation.id)).map((item) => [item.ordinal, item]));
    const fold = (run: readonly ContextItem[]): void => {
      const summary = foldAhead(run);
      for (const { ordinal } of run) context.delete(ordinal);
      context.set(summary.ordinal, summary);
    };
    for (let run = await finder.next(); run !== null && passes.length < leavesMax; run = await finder.next())
      fold(run.items);
    const condensing = { ...rules, depthMax: mode === "incremental" ? depthMaxBetweenTurns(settings) : rules.depthMax };
    const inOrder = (): readonly ContextItem[] => [...context.values()].toSorted((a, b) => a.ordinal - b.ordinal);
    for (let runs = condensedRuns(inOrder(), condensing); runs.length > 0;) {
      for (const run of runs) fold(run);
      runs = condensedRuns(inOrder(), condensing);
    }
  }
  return { conversation: conversation.id, due: asked, tokensBefore, tokensAfter, passes };
}
