/**
 * Passes of one compaction: find a run, draft its summary, fold it, several at a time, and know when to stop. What the
 * passes add up to is decided in compact.ts.
 */

import { assert } from "../base/errors.ts";
import { condensingWindow, createLeafFinder } from "./find-runs.ts";
import type { ContextItem, Conversation, ConversationId, Level, Refusal, SummaryId } from "../model/types.ts";
import { condensedRuns } from "./choose-runs.ts";
import { condensedSource, leafSource, targetTokensOf } from "../summarize/source.ts";
import type { Rules, Stretch } from "./choose-runs.ts";
import type { Store } from "../model/store.ts";
import { summarize } from "../summarize/summarize.ts";
import type { Source, SummarizeDeps } from "../summarize/summarize.ts";
import type { SourceFacts } from "../summarize/source.ts";
import { sumTokens } from "../base/tokens.ts";
import { promptTokens, summaryOverheadTokens } from "../model/prompt-cost.ts";

export interface PassDeps extends SummarizeDeps {
  readonly store: Store;
  /** Runs that no summary could shorten. Remembered, so that no model is asked for them again and again. */
  readonly leftAlone: Set<string>;
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
  readonly passes: readonly PassReport[];
  /** Folds that came too late because the context had changed: what they were about can be planned again. */
  readonly stale: () => number;
  /** What the context takes now, as far as this compaction knows; `recount` asks the store. */
  readonly tokens: () => number;
  recount(): Promise<number>;
  /** The same work, ending passes as soon as the context is at or below this. */
  until(targetTokens: number): Passes;
  /** Both answer null when nothing is left to fold, or what ended them. */
  foldLeaves(rules: Rules, leavesMax?: number): Promise<PassesEnd | null>;
  condense(rules: Rules): Promise<PassesEnd | null>;
}

export function createPasses(deps: PassDeps, request: PassRequest, tokensBefore: number, budget: number): Passes {
  const { store, settings, leftAlone } = deps;
  const { conversation, signal, patience, onRefusal, passesMax = passesMaxDefault } = request;
  const passes: PassReport[] = [];
  let stale = 0;
  let tokens = tokensBefore;
  let targetTokens = -1;
  let ended: PassesEnd | null = null;
  // A prompt cannot show more than its budget: then what is nearest to it is folded first, else the oldest.
  const direction = (): Stretch["from"] => (tokens > budget ? "newest" : "oldest");
  const modelSignals = [signal, patience].filter((each) => each !== undefined);
  const modelSignal = modelSignals.length === 0 ? {} : { signal: AbortSignal.any(modelSignals) };

  const hasEnded = (): boolean => {
    if (ended === null && signal?.aborted === true) ended = { kind: "bounded", bound: "deadline" };
    if (ended === null && passes.length >= passesMax) ended = { kind: "bounded", bound: "passes" };
    return ended !== null || tokens <= targetTokens;
  };

  const current = async (): Promise<Conversation> => {
    const found = await store.conversation(conversation);
    assert(found !== null, "a conversation does not go away");
    return found;
  };

  const pass = async ({ items, source, forgets }: Planned): Promise<void> => {
    const drafted = await summarize(deps, source, {
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
      if (leftAlone.size >= leftAloneMax) leftAlone.clear();
      leftAlone.add(nameOf(items, source.targetTokens));
      return;
    }
    const folded = await store.fold(conversation, items, drafted.summary, forgets);
    if (folded.kind === "stale") {
      stale += 1;
      return;
    }
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

  /** Passes on what `next` gives, several at a time, but never more than may still be made. */
  const passOn = async (mostMade: number, next: () => Promise<Planned | null>): Promise<void> => {
    const made = passes.length;
    const mayStart = (underWay: number): boolean =>
      !hasEnded() && passes.length + underWay < Math.min(passesMax, made + mostMade);
    await inParallel(settings.summaryConcurrency, mayStart, next, pass);
  };

  const aboutRun = async (items: readonly ContextItem[], rules: Rules): Promise<SourceFacts> => ({
    conversation,
    targets: rules,
    zone: settings.timezone,
    tokens: sumTokens(items),
    previousContext: await previousContext(store, conversation, items),
  });

  const sourceOfRun = async (items: readonly ContextItem[], rules: Rules): Promise<Source> => {
    const ids = items.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
    return condensedSource(depthOver(items), await store.summaries({ ids }), await aboutRun(items, rules));
  };

  const work: Passes = {
    passes,
    stale: () => stale,
    tokens: () => tokens,
    async recount() {
      tokens = promptTokens((await current()).totals);
      return tokens;
    },
    until(target) {
      targetTokens = target;
      return work;
    },
    async foldLeaves(rules, leavesMax = Number.POSITIVE_INFINITY) {
      const finder = createLeafFinder(store, conversation, rules, direction());
      const next = async (): Promise<Planned | null> => {
        for (;;) {
          const { forgets } = await current();
          const run = await finder.next();
          if (run === null) return null;
          const { items, messages } = run;
          if (leftAlone.has(nameOf(items, targetTokensOf(rules, 0, sumTokens(items))))) continue;
          return { items, forgets, source: leafSource(messages, await aboutRun(items, rules)) };
        }
      };
      await passOn(leavesMax, next);
      return ended;
    },
    async condense(rules) {
      const isLeftAlone = (run: readonly ContextItem[]): boolean =>
        leftAlone.has(nameOf(run, targetTokensOf(rules, depthOver(run), sumTokens(run))));
      for (;;) {
        if (hasEnded()) return ended;
        const window = await condensingWindow(store, conversation, direction());
        const runs = [...condensedRuns(window, rules, isLeftAlone)];
        if (runs.length === 0) return ended;
        const passesBefore = passes.length;
        await passOn(Number.POSITIVE_INFINITY, async () => {
          const { forgets } = await current();
          const items = runs.shift();
          return items === undefined ? null : { items, forgets, source: await sourceOfRun(items, rules) };
        });
        if (passes.length === passesBefore) return ended;
      }
    },
  };
  return work;
}

/** A run about to become a summary: what it says, and what had been forgotten when it was read. */
interface Planned {
  readonly items: readonly ContextItem[];
  readonly source: Source;
  readonly forgets: number;
}

/** Of what summaries of one depth are condensed into. */
const depthOver = (run: readonly ContextItem[]): number => (run[0]?.depth ?? 0) + 1;

/** What could not be shortened to one length may well be to another. */
const nameOf = (run: readonly ContextItem[], targetTokens: number): string =>
  `${run[0]?.id}…${run.at(-1)?.id} to ${targetTokens}`;

/** So many are remembered; then they are tried once more. */
const leftAloneMax = 10_000;

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

/** Several workers take from one source until it is empty or no more may be started; the first error ends all. */
async function inParallel<T>(
  workers: number,
  mayStart: (underWay: number) => boolean,
  next: () => Promise<T | null>,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  let underWay = 0;
  const worker = async (): Promise<void> => {
    while (failures.length === 0 && mayStart(underWay)) {
      underWay += 1;
      try {
        const item = await next();
        if (item === null) return;
        await work(item);
      } catch (error) {
        failures.push(error);
      } finally {
        underWay -= 1;
      }
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
  if (failures.length > 0) throw failures[0];
}
