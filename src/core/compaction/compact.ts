/**
 * Compacts a conversation until nothing is left to fold, the target is met, or a bound is reached.
 * No lock is held during a model call: if a run has changed meanwhile, its fold is stale and is planned again. One
 * deadline, the signal, covers everything; what was folded before it stays.
 */

import { LcmError } from "../base/errors.ts";
import type { CompactionRecord, Conversation, ConversationId } from "../model/types.ts";
import type { SummarizeDeps } from "../summarize/summarize.ts";
import { createFoldRun, type FoldRequest } from "./fold-run.ts";
import { Passes, type PassDeps, type PassesEnd, type PassReport, type PassRequest } from "./passes.ts";
import { rulesOf, strictRules, type Rules } from "./choose-runs.ts";
import type { Clock, Model, Store } from "../model/store.ts";
import type { Settings } from "../model/settings.ts";
import { elapsedMs } from "../base/time.ts";
import { formatCount, plural } from "../base/format.ts";
import { mustFind } from "../model/find-conversation.ts";
import { promptTokens } from "../model/prompt-cost.ts";
import { due, type Due } from "./due.ts";

export interface CompactDeps extends SummarizeDeps, Pick<PassDeps, "leftAlone"> {
  readonly store: Store;
  readonly clock: Clock;
}

export interface CompactRequest extends PassRequest, Omit<FoldRequest, "onRefusal"> {
  /**
   * `due` does what the running totals call for, if anything, down to the target in the settings. `incremental` is one
   * leaf pass and the condensing that the settings allow between turns. `sweep` folds until nothing is left to fold.
   * `until_under` sweeps with ever stricter rules until the context is at or below the target.
   */
  readonly mode: "due" | CompactionRecord["mode"];
  /** Prompt budget in tokens; defaults to the host's last one. */
  readonly budget?: number;
  /** Where `until_under` stops; defaults to the threshold of the budget. */
  readonly targetTokens?: number;
  /** Fold short runs too, with the lowest fanout. */
  readonly force?: boolean;
  /** What to do when the model refuses. By default only `until_under` continues without it. */
  readonly onRefusal?: FoldRequest["onRefusal"];
  /** Writes the summaries instead of the configured model. Pass one that is metered already. */
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
  /** The store failed. What was folded before stays. */
  | { readonly kind: "failed"; readonly message: string };

export interface CompactReport extends Pick<
  CompactionRecord,
  "conversation" | "mode" | "message" | "tokensBefore" | "tokensAfter"
> {
  readonly outcome: CompactOutcome;
  /** True only if the context has fewer tokens than before. */
  readonly compacted: boolean;
  readonly passes: readonly PassReport[];
}

const roundsMax = 10;

/** Nothing went wrong and no bound was met. */
const endings: ReadonlySet<string> = new Set<CompactOutcome["kind"]>(["idle", "settled", "under"]);

/** Throws only for an invalid request; every other failure is an outcome. */
export async function compact(given: CompactDeps, request: CompactRequest): Promise<CompactReport> {
  const deps = request.model === undefined ? given : { ...given, model: request.model };
  const { store, clock } = deps;
  const started = clock.now();
  let work: Passes | null = null;
  let mode: CompactionRecord["mode"] = request.mode === "due" ? "incremental" : request.mode;
  let tokensBefore = 0;
  let hasSummaries = false;
  let outcome: CompactOutcome;
  try {
    const before = await mustFind(store, request.conversation);
    tokensBefore = promptTokens(before.totals);
    hasSummaries = before.totals.contextItems > before.totals.contextMessages;
    const pressure = await due(deps, before, request.budget);
    const chosen = modeOf(deps.settings, request, pressure);
    mode = chosen ?? mode;
    const onRefusal = request.onRefusal ?? (mode === "until_under" ? "extract" : "wait");
    const foldRun = createFoldRun(deps, { ...request, onRefusal });
    work = new Passes({ ...deps, foldRun }, request, pressure);
    const task = { request, pressure, conversation: before };
    outcome = chosen === null ? { kind: "idle" } : await runMode(work, chosen, deps.settings, task);
  } catch (error) {
    if (error instanceof LcmError && (error.code === "not_found" || error.code === "invalid")) throw error;
    // A full disk, a lock held for ever, a bug in an adapter: the host continues, and gets the message.
    outcome = { kind: "failed", message: error instanceof Error ? error.message : String(error) };
  }
  const passes = work?.reports ?? [];
  const tokensAfter = await tokensNow(store, request.conversation, work?.tokens ?? tokensBefore);
  const { conversation } = request;
  const compacted = tokensAfter < tokensBefore;
  const figures = { conversation, mode, outcome, compacted, tokensBefore, tokensAfter, passes };
  const report = { ...figures, message: describeOutcome(figures) };
  // Even if nothing was left to fold, prompts no longer show finer texts.
  const isAskedAnew = (request.mode === "sweep" || request.mode === "until_under") && hasSummaries;
  if (passes.length > 0 || !endings.has(outcome.kind) || isAskedAnew)
    await record(deps, report, { durationMs: elapsedMs(started, clock.now()), asked: request.mode !== "due" });
  return report;
}

const modes: readonly CompactRequest["mode"][] = ["due", "incremental", "sweep", "until_under"];

/** The mode a request amounts to now; null if there is nothing to do. */
export function modeOf(settings: Settings, request: CompactRequest, pressure: Due): CompactionRecord["mode"] | null {
  if (!modes.includes(request.mode))
    throw new LcmError(
      "invalid",
      `the mode is ${JSON.stringify(request.mode)}, but must be one of ${modes.join(", ")}`,
    );
  if (request.mode === "due") return pressure.kind === "nothing" ? null : pressure.kind;
  const isIdle =
    request.mode === "incremental" && request.force !== true && pressure.rawTokens <= settings.leafChunkTokens;
  return isIdle ? null : request.mode;
}

interface Task {
  readonly request: CompactRequest;
  readonly pressure: Due;
  readonly conversation: Conversation;
}

export async function runMode(
  work: Passes,
  mode: CompactionRecord["mode"],
  settings: Settings,
  { request, pressure, conversation }: Task,
): Promise<CompactOutcome> {
  const { budget, thresholdTokens } = pressure;
  const isDue = request.mode === "due";
  const targetTokens = isDue ? pressure.targetTokens : (request.targetTokens ?? thresholdTokens);
  const rules = rulesOf(settings, request.force ?? false, budget);
  switch (mode) {
    case "incremental": {
      const depthMax = settings.incrementalMaxDepth === -1 ? rules.depthMax : settings.incrementalMaxDepth;
      return (await work.foldLeaves(rules, 1)) ?? (await work.condense({ ...rules, depthMax })) ?? settled;
    }
    case "sweep": {
      if (!isDue || targetTokens === 0) return (await sweep(work, rules)) ?? settled;
      const newestAbove = backlogBudgets * budget;
      const condensingAbove = Math.floor((targetTokens + thresholdTokens) / 2);
      const isInOrder = work.tokens <= newestAbove;
      work.aim = { targetTokens, condensingAbove, newestAbove, keptTokens: targetTokens / 2, isInOrder };
      return await sweepToTarget(work, { ...rules, condensedChunkTokens: 0 });
    }
    case "until_under": {
      work.aim = { ...work.aim, targetTokens, newestAbove: budget };
      const tailMax = Math.min(settings.freshTailCount, conversation.totals.contextMessages);
      return await sweepUntilUnder(work, rules, strictRules(settings, budget), tailMax);
    }
  }
}

const settled: CompactOutcome = { kind: "settled" };

/**
 * With a backlog of more budgets than this, on a first install, summaries written in order would take too long to reach
 * what the prompts show. So the newest are written first.
 */
const backlogBudgets = 16;

/** Folds leaves, then condenses; repeats while that folds something or folds are stale. Null: nothing is left to fold. */
async function sweep(work: Passes, rules: Rules): Promise<CompactOutcome | null> {
  for (let round = 0; round < roundsMax; round++) {
    const before = work.reports.length + work.stale;
    const ended = (await work.foldLeaves(rules)) ?? (await work.condense(rules));
    if (ended !== null) return ended;
    if (work.reports.length + work.stale === before) return null;
  }
  return { kind: "bounded", bound: "rounds" };
}

/** Others may write meanwhile, so it sweeps again until the store agrees that the target is met. */
async function sweepToTarget(work: Passes, rules: Rules): Promise<CompactOutcome> {
  const { targetTokens, condensingAbove } = work.aim;
  for (let round = 0; round < roundsMax; round++) {
    const ended = await sweep(work, rules);
    const wasMet = work.tokens <= condensingAbove;
    const tokens = await work.recount();
    const met = [targetTokens, condensingAbove].find((bound) => tokens <= bound);
    if (met !== undefined) return { kind: "under", targetTokens: met };
    if (ended !== null || !wasMet) return ended ?? settled;
  }
  return { kind: "bounded", bound: "rounds" };
}

/**
 * Each round is stricter: as requested, then forced, then with half the fresh tail, a quarter, … Only this mode folds
 * the tail: a prompt that the provider rejects is worse, and what is folded can be expanded.
 */
async function sweepUntilUnder(work: Passes, rules: Rules, strict: Rules, tailMax: number): Promise<CompactOutcome> {
  const { targetTokens } = work.aim;
  for (let round = 0; round < roundsMax; round++) {
    const freshTailCount = round < 2 ? rules.freshTailCount : Math.ceil(tailMax / 2 ** (round - 1));
    const ended = await sweep(work, { ...(round === 0 ? rules : strict), freshTailCount });
    // Others may have written meanwhile, so ask the store whether the target is met.
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
    return known; // The outcome reports that the store cannot be reached.
  }
}

async function record(
  { store, clock }: CompactDeps,
  report: CompactReport,
  about: Pick<CompactionRecord, "durationMs" | "asked">,
): Promise<void> {
  const { outcome, passes, compacted: _, ...figures } = report;
  try {
    const at = clock.now();
    const isNothing = passes.length === 0 && endings.has(outcome.kind);
    if (isNothing && (await store.compactions(report.conversation, 1))[0]?.asked === true) return;
    await store.recordCompaction({ ...figures, outcome: outcome.kind, passes: passes.length, at, ...about });
  } catch {
    // The report still says what happened, and a store that cannot be written is its outcome already.
  }
}

function describeOutcome({ mode, outcome, tokensBefore, tokensAfter, passes }: Omit<CompactReport, "message">): string {
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
  incremental: "nothing more to fold between turns",
  sweep: "nothing is left to fold",
  until_under: "the target was missed, and nothing is left to fold",
} as const;
const boundNames = { passes: "pass limit", rounds: "round limit", deadline: "deadline" } as const;
