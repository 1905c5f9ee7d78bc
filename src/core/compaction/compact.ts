/**
 * Compaction: plan, draft, fold, until nothing is left to fold, the target is met, or a bound is reached. No lock is held
 * while a model thinks: a fold whose run has changed meanwhile is stale and is planned again. One deadline, the signal,
 * covers everything inside; what was folded before it stays.
 *
 * Three ways to end early are three different outcomes: a bound of ours, a model that refuses (the passes wait for it),
 * and a store that fails. Only the way out of an overflow goes on without a model.
 */

import { LcmError } from "../base/errors.ts";
import type { CompactionRecord, Conversation, ConversationId } from "../model/types.ts";
import { createPasses } from "./passes.ts";
import type { PassDeps, PassesEnd, PassReport, PassRequest, Passes } from "./passes.ts";
import { depthMaxBetweenTurns, rulesOf, strictRules } from "./choose-runs.ts";
import type { Rules } from "./choose-runs.ts";
import type { Clock, Model, Store } from "../model/store.ts";
import type { Settings } from "../model/settings.ts";
import { timestampToMs } from "../base/time.ts";
import { formatCount, plural } from "../base/format.ts";
import { mustFind } from "../model/find-conversation.ts";
import { promptTokens } from "../model/prompt-cost.ts";
import type { Due } from "./due.ts";
import { due } from "./due.ts";

export interface CompactDeps extends PassDeps {
  readonly clock: Clock;
}

export interface CompactRequest extends Omit<PassRequest, "onRefusal"> {
  /**
   * `due` does what the running totals ask for, if anything. `incremental` is one leaf pass and the condensing that the
   * settings allow between turns. `sweep` folds until there is nothing left to fold. `until_under` sweeps, ever more
   * strictly, until the context is at or below the target.
   */
  readonly mode: "due" | CompactionRecord["mode"];
  /** Tokens of a prompt; what the host last gave if left out. */
  readonly budget?: number;
  /** Where `until_under` stops; the threshold of the budget if left out. */
  readonly targetTokens?: number;
  /** Short runs and the lowest fanout too. */
  readonly force?: boolean;
  /** What a refusing model leads to. Only `until_under` goes on without it by default. */
  readonly onRefusal?: PassRequest["onRefusal"];
  /** Who writes the summaries instead of the usual one. Its calls should be counted and bounded already. */
  readonly model?: Model;
}

export type CompactOutcome =
  /** Nothing was due. */
  | { readonly kind: "idle" }
  /** At or below the target. */
  | { readonly kind: "under"; readonly targetTokens: number }
  /** Nothing left to fold. */
  | { readonly kind: "settled" }
  | PassesEnd
  | { readonly kind: "bounded"; readonly bound: "rounds" }
  /** The store refused. What was folded before stays. */
  | { readonly kind: "failed"; readonly message: string };

export interface CompactReport extends Pick<
  CompactionRecord,
  "conversation" | "mode" | "message" | "tokensBefore" | "tokensAfter"
> {
  readonly outcome: CompactOutcome;
  /** Whether the context is smaller than before: nothing else counts as compacted. */
  readonly compacted: boolean;
  readonly passes: readonly PassReport[];
}

const roundsMax = 10;

// ── What is due ──────────────────────────────────────────────────────────────────────────────────────────────────────

// ── Compacting ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Throws only for a wrong request; everything else is an outcome. */
export async function compact(given: CompactDeps, request: CompactRequest): Promise<CompactReport> {
  const deps = request.model === undefined ? given : { ...given, model: request.model };
  const { store, clock } = deps;
  const started = clock.now();
  let work: Passes | null = null;
  let mode: CompactionRecord["mode"] = request.mode === "due" ? "incremental" : request.mode;
  let tokensBefore = 0;
  let outcome: CompactOutcome;
  try {
    const before = await mustFind(store, request.conversation);
    tokensBefore = promptTokens(before.totals);
    const asked = await due(deps, before, request.budget);
    const chosen = modeOf(deps.settings, request, asked);
    mode = chosen ?? mode;
    const onRefusal = request.onRefusal ?? (mode === "until_under" ? "extract" : "wait");
    work = createPasses(deps, { ...request, onRefusal }, tokensBefore, asked.budget);
    outcome = chosen === null ? { kind: "idle" } : await runMode(chosen, work, deps.settings, request, asked, before);
  } catch (error) {
    if (error instanceof LcmError && (error.code === "not_found" || error.code === "invalid")) throw error;
    // A full disk, a lock that never ends, a bug in an adapter: the host goes on, and is told.
    outcome = { kind: "failed", message: error instanceof Error ? error.message : String(error) };
  }
  const passes = work?.passes ?? [];
  const tokensAfter = await tokensNow(store, request.conversation, work?.tokens() ?? tokensBefore);
  const { conversation } = request;
  const compacted = tokensAfter < tokensBefore;
  const figures = { conversation, mode, outcome, compacted, tokensBefore, tokensAfter, passes };
  const report = { ...figures, message: tell(figures) };
  await record(deps, report, timestampToMs(clock.now()) - timestampToMs(started));
  return report;
}

/** What a request comes to now; null when there is nothing to do. */
export function modeOf(settings: Settings, request: CompactRequest, asked: Due): CompactionRecord["mode"] | null {
  if (request.mode === "due") return asked.kind === "nothing" ? null : asked.kind;
  const isIdle =
    request.mode === "incremental" && request.force !== true && asked.rawTokens <= settings.leafChunkTokens;
  return isIdle ? null : request.mode;
}

async function runMode(
  mode: CompactionRecord["mode"],
  work: Passes,
  settings: Settings,
  request: CompactRequest,
  { budget, thresholdTokens }: Due,
  { totals }: Conversation,
): Promise<CompactOutcome> {
  const rules = rulesOf(settings, request.force === true, budget);
  switch (mode) {
    case "incremental": {
      const depthMax = depthMaxBetweenTurns(settings);
      return (await work.foldLeaves(rules, 1)) ?? (await work.condense({ ...rules, depthMax })) ?? settled;
    }
    case "sweep":
      return (await sweep(work, rules)) ?? settled;
    case "until_under":
      return await sweepUntilUnder(work, rules, strictRules(settings, budget), {
        targetTokens: request.targetTokens ?? thresholdTokens,
        tailMost: Math.min(settings.freshTailCount, totals.contextMessages),
      });
  }
}

const settled: CompactOutcome = { kind: "settled" };

/** Leaves, then condensing; again while folds were stale or made room for others. Null when nothing is left to fold. */
export async function sweep(work: Passes, rules: Rules): Promise<CompactOutcome | null> {
  for (let round = 0; round < roundsMax; round++) {
    const before = work.passes.length + work.stale();
    const ended = (await work.foldLeaves(rules)) ?? (await work.condense(rules));
    if (ended !== null) return ended;
    if (work.passes.length + work.stale() === before) return null;
  }
  return { kind: "bounded", bound: "rounds" };
}

/**
 * Each round is stricter: as asked, then forced, then with half the fresh tail, a quarter, … The tail is given up only
 * here, because a prompt that the provider refuses helps nobody, and what is folded can be expanded.
 */
async function sweepUntilUnder(
  work: Passes,
  rules: Rules,
  strict: Rules,
  { targetTokens, tailMost }: { readonly targetTokens: number; readonly tailMost: number },
): Promise<CompactOutcome> {
  for (let round = 0; round < roundsMax; round++) {
    const freshTailCount = round < 2 ? rules.freshTailCount : Math.ceil(tailMost / 2 ** (round - 1));
    const ended = await sweep(work.until(targetTokens), { ...(round === 0 ? rules : strict), freshTailCount });
    // Others may have written meanwhile: what is said of the target is asked of the store.
    if ((await work.recount()) <= targetTokens) return { kind: "under", targetTokens };
    if (ended !== null) return ended;
    if (round > 0 && freshTailCount <= 1) return settled;
  }
  return { kind: "bounded", bound: "rounds" };
}

async function tokensNow(store: Store, id: ConversationId, known: number): Promise<number> {
  try {
    return promptTokens((await mustFind(store, id)).totals);
  } catch {
    return known; // The store is out of reach, which the outcome says.
  }
}

async function record({ store, clock }: CompactDeps, report: CompactReport, durationMs: number): Promise<void> {
  const { outcome, passes, compacted: _, ...figures } = report;
  if (passes.length === 0 && (outcome.kind === "idle" || outcome.kind === "settled" || outcome.kind === "under"))
    return;
  try {
    const at = clock.now();
    await store.recordCompaction({ ...figures, outcome: outcome.kind, passes: passes.length, at, durationMs });
  } catch {
    // The report itself says what happened; a store that cannot be written has said so already.
  }
}

function tell({ mode, outcome, tokensBefore, tokensAfter, passes }: Omit<CompactReport, "message">): string {
  const [before, after] = [tokensBefore, tokensAfter].map(formatCount);
  const folded =
    passes.length === 0
      ? "nothing was folded"
      : `${before} → ${after} tokens in ${plural(passes.length, "pass", "passes")}`;
  switch (outcome.kind) {
    case "idle":
      return "nothing is due";
    case "under":
      return `${folded}; at or below ${formatCount(outcome.targetTokens)}`;
    case "settled":
      return `${folded}; ${settledWords[mode]}`;
    case "bounded":
      return `${folded}; stopped at the ${boundNames[outcome.bound]}`;
    case "waiting":
      return `${folded}; waiting for the model (${outcome.refusal}): ${outcome.message}`;
    case "failed":
      return `${folded}; stopped: ${outcome.message}`;
  }
}

const settledWords = {
  incremental: "nothing more between turns",
  sweep: "nothing is left to fold",
  until_under: "the target was missed, and nothing is left to fold",
} as const;
const boundNames = { passes: "limit of passes", rounds: "limit of rounds", deadline: "deadline" } as const;
