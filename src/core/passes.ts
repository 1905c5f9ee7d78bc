/**
 * Passes of one compaction: find a run, draft its summary, fold it, several at a time, and know when to stop. What the
 * passes add up to is decided in compact.ts.
 */

import { condensingWindow, createLeafFinder } from "./find-runs.ts";
import type { LeafRun } from "./find-runs.ts";
import { fileIdsOf } from "./large-files.ts";
import type { ContextItem, ConversationId, FileId, Level, Refusal, SummaryId } from "./model.ts";
import { condensedRuns } from "./plan.ts";
import type { Rules, Stretch } from "./plan.ts";
import type { Store } from "./ports.ts";
import { summaryOverheadTokens } from "./render-summary.ts";
import type { Settings } from "./settings.ts";
import { messagePassages, summaryPassages } from "./source-text.ts";
import { summarize } from "./summarize.ts";
import type { Source, SummarizeDeps } from "./summarize.ts";

export interface PassDeps extends SummarizeDeps {
  readonly store: Store;
}

export interface PassRequest {
  readonly conversation: ConversationId;
  /** What a refusing model leads to. */
  readonly onRefusal: "wait" | "extract";
  readonly customInstructions?: string | null;
  /** The one deadline. */
  readonly signal?: AbortSignal;
  /** From here on the model is no longer asked. */
  readonly patience?: AbortSignal;
  readonly passesMax?: number;
  readonly onPass?: (report: PassReport) => void;
}

export interface PassReport {
  readonly depth: number;
  readonly sources: number;
  readonly sourceTokens: number;
  readonly tokens: number;
  readonly level: Level;
  readonly summary: SummaryId;
}

/** Why passes ended before there was nothing left to fold. */
export type PassesEnd =
  | { readonly kind: "bounded"; readonly bound: "passes" | "deadline" }
  /** The model refused; the passes wait for it. */
  | { readonly kind: "waiting"; readonly refusal: Refusal; readonly message: string };

const passesMaxDefault = 10_000;

/** One compaction under way: it drafts and folds, and knows when to stop. */
export interface Passes {
  readonly settings: Settings;
  readonly passes: readonly PassReport[];
  /** What the context takes now, as far as this compaction knows. */
  tokens(): number;
  /** The same work, ending passes as soon as the context is at or below this. */
  until(targetTokens: number): Passes;
  /** Both answer null when nothing is left to fold, or what ended them. */
  foldLeaves(rules: Rules, leavesMax?: number): Promise<PassesEnd | null>;
  condense(rules: Rules): Promise<PassesEnd | null>;
}

export function createPasses(deps: PassDeps, request: PassRequest, tokensBefore: number, budget: number): Passes {
  const { store, settings } = deps;
  const { conversation, signal, patience, onRefusal, passesMax = passesMaxDefault } = request;
  const passes: PassReport[] = [];
  const incompressible = new Set<ContextItem["id"]>();
  let tokens = tokensBefore;
  let targetTokens = -1;
  let ended: PassesEnd | null = null;
  // A prompt cannot show more than its budget: then what is nearest to it is folded first, else the oldest.
  const direction = (): Stretch["from"] => (tokens > budget ? "newest" : "oldest");
  const modelSignals = [signal, patience].filter((each) => each !== undefined);
  const modelSignal = modelSignals.length === 0 ? {} : { signal: AbortSignal.any(modelSignals) };
  /** Patience over is the same as no model: nothing is asked that would only be refused. */
  const drafting = (): SummarizeDeps => (patience?.aborted === true ? { ...deps, model: null } : deps);

  const hasEnded = (): boolean => {
    if (ended === null && signal?.aborted === true) ended = { kind: "bounded", bound: "deadline" };
    if (ended === null && passes.length >= passesMax) ended = { kind: "bounded", bound: "passes" };
    return ended !== null || tokens <= targetTokens;
  };

  const pass = async (items: readonly ContextItem[], source: Source): Promise<void> => {
    const drafted = await summarize(drafting(), source, {
      ...modelSignal,
      onRefusal,
      customInstructions: request.customInstructions ?? null,
    });
    if (drafted.kind === "refused") {
      const { refusal, message } = drafted;
      const isOver = refusal === "cancelled" && signal?.aborted === true;
      ended ??= isOver ? { kind: "bounded", bound: "deadline" } : { kind: "waiting", refusal, message };
      return;
    }
    if (drafted.kind === "incompressible") {
      for (const { id } of items) incompressible.add(id);
      return;
    }
    const folded = await store.fold(conversation, items, drafted.summary);
    if (folded.kind === "stale") return;
    const { depth } = source;
    const report: PassReport = {
      depth,
      sources: items.length,
      sourceTokens: source.tokens,
      tokens: drafted.summary.tokens,
      level: drafted.summary.level,
      summary: folded.summary,
    };
    passes.push(report);
    const overhead = summaryOverheadTokens * (depth === 0 ? 1 : 1 - items.length);
    tokens += report.tokens - source.tokens + overhead;
    request.onPass?.(report);
  };

  const leafSource = async ({ items, messages }: LeafRun): Promise<Source> => ({
    conversation,
    depth: 0,
    passages: messagePassages(messages, settings.timezone),
    tokens: sumTokens(items),
    overheadTokens: summaryOverheadTokens,
    previousContext: await previousContext(store, conversation, items),
    fileIds: fileIdsOf(messages),
  });

  const condensedSource = async (items: readonly ContextItem[]): Promise<Source> => {
    const depth = (items[0]?.depth ?? 0) + 1;
    const ids = items.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
    const summaries = await store.summaries({ ids });
    return {
      conversation,
      depth,
      passages: summaryPassages(summaries, settings.timezone),
      tokens: sumTokens(items),
      overheadTokens: 0, // The sources' own wrappers go, and they are more than one.
      previousContext: depth === 1 ? await previousContext(store, conversation, items) : null,
      fileIds: [...new Set(summaries.flatMap((summary): readonly FileId[] => summary.fileIds))],
    };
  };

  const work: Passes = {
    settings,
    passes,
    tokens: () => tokens,
    until(target) {
      targetTokens = target;
      return work;
    },
    async foldLeaves(rules, leavesMax = Number.POSITIVE_INFINITY) {
      const finder = createLeafFinder(store, conversation, rules, direction());
      let given = 0;
      const next = async (): Promise<LeafRun | null> => (given++ < leavesMax ? await finder.next() : null);
      await inParallel(settings.summaryConcurrency, hasEnded, next, async (run) => {
        if (run.items.some(({ id }) => incompressible.has(id))) return;
        await pass(run.items, await leafSource(run));
      });
      return ended;
    },
    async condense(rules) {
      for (;;) {
        if (hasEnded()) return ended;
        const window = await condensingWindow(store, conversation, direction());
        const runs = condensedRuns(window, rules, ({ id }) => incompressible.has(id));
        if (runs.length === 0) return ended;
        const waiting = [...runs];
        const passesBefore = passes.length;
        await inParallel(
          settings.summaryConcurrency,
          hasEnded,
          async () => waiting.shift() ?? null,
          async (run) => await pass(run, await condensedSource(run)),
        );
        if (passes.length === passesBefore) return ended;
      }
    },
  };
  return work;
}

export const sumTokens = (items: readonly ContextItem[]): number => items.reduce((sum, item) => sum + item.tokens, 0);

/** The nearest summary already folded before a run: what its reader will have read. */
async function previousContext(
  store: Store,
  conversation: ConversationId,
  run: readonly ContextItem[],
): Promise<string | null> {
  const before = run[0]?.ordinal ?? 0;
  const [item] = await store.context(conversation, { before, kind: "summary", limit: 1, keep: "newest" });
  if (item === undefined || item.kind !== "summary") return null;
  const [summary] = await store.summaries({ ids: [item.id] });
  return summary?.text ?? null;
}

/** Several workers take from one source until it is empty or the whole has ended; the first error ends all. */
async function inParallel<T>(
  workers: number,
  hasEnded: () => boolean,
  next: () => Promise<T | null>,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    try {
      while (failures.length === 0 && !hasEnded()) {
        const item = await next();
        if (item === null) return;
        await work(item);
      }
    } catch (error) {
      failures.push(error);
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
  if (failures.length > 0) throw failures[0];
}
