/** Runs the passes of one compaction: find a run, draft its summary, fold it; several at a time, within bounds. */

import { assert } from "../base/errors.ts";
import { createLeafFinder } from "./find-runs.ts";
import type { ContextItem, Conversation, ConversationId, Level, Refusal, SummaryId } from "../model/types.ts";
import { condensedRuns, type End, type Rules } from "./choose-runs.ts";
import { condensedSource, leafSource, targetTokensOf, type SourceFacts } from "../summarize/source.ts";
import type { Due } from "./due.ts";
import type { Store } from "../model/store.ts";
import { summarize, type Source, type SummarizeDeps } from "../summarize/summarize.ts";
import { sumTokens } from "../base/tokens.ts";
import { promptTokens, summaryOverheadTokens } from "../model/prompt-cost.ts";

export interface PassDeps extends SummarizeDeps {
  readonly store: Store;
  /** Runs that no summary could shorten. Remembered so that the model is not asked about them again. */
  readonly leftAlone: Set<string>;
}

export interface PassRequest {
  readonly conversation: ConversationId;
  /** What to do when the model refuses. */
  readonly onRefusal: "wait" | "extract";
  readonly customInstructions?: string | null;
  /** The one deadline. */
  readonly signal?: AbortSignal;
  /** Once aborted, the model is no longer called. */
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

/** Why passes stopped early. */
export type PassesEnd =
  | { readonly kind: "bounded"; readonly bound: "passes" | "deadline" }
  /** The model refused; try again later. */
  | { readonly kind: "waiting"; readonly refusal: Refusal; readonly message: string };

const passesMaxDefault = 10_000;
/** How many items are searched for runs of summaries: far more than any prompt shows. */
const condensingItems = 4_096;

/** The passes of one compaction under way. */
export class Passes {
  readonly reports: PassReport[] = [];
  /** Folds rejected because the context had changed; their runs can be planned again. */
  stale = 0;
  /** Context tokens as far as this compaction knows; `recount` asks the store. */
  tokens: number;
  /** Passes end as soon as the context is at or below this. */
  targetTokens = -1;
  readonly #deps: PassDeps;
  readonly #request: PassRequest;
  readonly #budget: number;
  readonly #passesMax: number;
  readonly #modelSignal: { readonly signal?: AbortSignal };
  #ended: PassesEnd | null = null;

  constructor(
    deps: PassDeps,
    request: PassRequest,
    { promptTokens: tokens, budget }: Pick<Due, "promptTokens" | "budget">,
  ) {
    this.#deps = deps;
    this.#request = request;
    this.#budget = budget;
    this.#passesMax = request.passesMax ?? passesMaxDefault;
    const signals = [request.signal, request.patience].filter((each) => each !== undefined);
    this.#modelSignal = signals.length === 0 ? {} : { signal: AbortSignal.any(signals) };
    this.tokens = tokens;
  }

  async recount(): Promise<number> {
    return (this.tokens = promptTokens((await this.#conversation()).totals));
  }

  /** Folds raw messages; returns null if nothing is left to fold, or why it stopped. */
  async foldLeaves(rules: Rules, leavesMax = Number.POSITIVE_INFINITY): Promise<PassesEnd | null> {
    const finder = createLeafFinder(this.#deps.store, this.#request.conversation, rules, this.#foldFrom());
    await this.#passOn(leavesMax, async () => {
      for (;;) {
        const { forgets } = await this.#conversation();
        const run = await finder.next();
        if (run === null) return null;
        if (this.#isLeftAlone(run.items, 0, rules)) continue;
        return { items: run.items, forgets, source: leafSource(run.messages, await this.#facts(run.items, rules)) };
      }
    });
    return this.#ended;
  }

  /** Folds adjacent summaries; returns null if nothing is left to fold, or why it stopped. */
  async condense(rules: Rules): Promise<PassesEnd | null> {
    const { store } = this.#deps;
    const { conversation } = this.#request;
    while (!this.#hasEnded()) {
      const window = await store.context(conversation, { limit: condensingItems, keep: this.#foldFrom() });
      const runs = [...condensedRuns(window, rules, (run) => this.#isLeftAlone(run, depthAbove(run), rules))];
      const passesBefore = this.reports.length;
      await this.#passOn(runs.length, async () => {
        const { forgets } = await this.#conversation();
        const items = runs.shift();
        if (items === undefined) return null;
        const summaries = await store.summaries({ ids: items.map((item) => item.id as SummaryId) });
        const facts = await this.#facts(items, rules);
        return { items, forgets, source: condensedSource(depthAbove(items), summaries, facts) };
      });
      if (this.reports.length === passesBefore) break;
    }
    return this.#ended;
  }

  /** Over budget, the newest messages are folded first: only they can still be part of a prompt. */
  #foldFrom(): End {
    return this.tokens > this.#budget ? "newest" : "oldest";
  }

  #hasEnded(): boolean {
    if (this.#request.signal?.aborted === true) this.#ended ??= { kind: "bounded", bound: "deadline" };
    if (this.reports.length >= this.#passesMax) this.#ended ??= { kind: "bounded", bound: "passes" };
    return this.#ended !== null || this.tokens <= this.targetTokens;
  }

  async #conversation(): Promise<Conversation> {
    const conversation = await this.#deps.store.conversation(this.#request.conversation);
    assert(conversation !== null, "a conversation does not go away");
    return conversation;
  }

  async #facts(items: readonly ContextItem[], rules: Rules): Promise<SourceFacts> {
    const { store, settings } = this.#deps;
    const { conversation } = this.#request;
    return {
      conversation,
      targets: rules,
      zone: settings.timezone,
      tokens: sumTokens(items),
      previousContext: await previousContext(store, conversation, items),
    };
  }

  #isLeftAlone(run: readonly ContextItem[], depth: number, rules: Rules): boolean {
    return this.#deps.leftAlone.has(runKey(run, targetTokensOf(rules, depth, sumTokens(run))));
  }

  /** Passes over the runs that `next` returns, several at a time but never more than `most`. */
  async #passOn(most: number, next: () => Promise<PreparedRun | null>): Promise<void> {
    const passesMax = Math.min(this.#passesMax, this.reports.length + most);
    const mayStart = (underWay: number): boolean => !this.#hasEnded() && this.reports.length + underWay < passesMax;
    await inParallel(this.#deps.settings.summaryConcurrency, mayStart, next, async (run) => await this.#pass(run));
  }

  async #pass({ items, source, forgets }: PreparedRun): Promise<void> {
    const { store, leftAlone } = this.#deps;
    const { conversation, signal, onRefusal, customInstructions = null, onPass } = this.#request;
    const drafted = await summarize(this.#deps, source, { ...this.#modelSignal, onRefusal, customInstructions });
    if (drafted.kind === "refused") {
      const { refusal, message } = drafted;
      const isOver = refusal === "cancelled" && signal?.aborted === true;
      this.#ended ??= isOver ? { kind: "bounded", bound: "deadline" } : { kind: "waiting", refusal, message };
      return;
    }
    if (drafted.kind === "incompressible") {
      if (leftAlone.size >= leftAloneMax) leftAlone.clear();
      leftAlone.add(runKey(items, source.targetTokens));
      return;
    }
    const folded = await store.fold(conversation, items, { ...drafted.summary, forgets });
    if (folded.kind === "stale") {
      this.stale += 1;
      return;
    }
    const { tokens, level } = drafted.summary;
    const { depth, tokens: sourceTokens } = source;
    const report = { depth, sources: items.length, sourceTokens, tokens, level, summary: folded.summary };
    this.reports.push(report);
    this.tokens += tokens - sourceTokens + summaryOverheadTokens * (depth === 0 ? 1 : 1 - items.length);
    onPass?.(report);
  }
}

/** A run ready to be summarised. */
interface PreparedRun {
  readonly items: readonly ContextItem[];
  readonly source: Source;
  /** The conversation's count of redactions when the run was read: a later one makes the fold stale. */
  readonly forgets: number;
}

/** The depth of the summary that a run of summaries is condensed into. */
const depthAbove = (run: readonly ContextItem[]): number => (run[0]?.depth ?? 0) + 1;

/** Includes the target: a run that could not be shortened to one length may be shortened to another. */
const runKey = (run: readonly ContextItem[], targetTokens: number): string =>
  `${run[0]?.id}…${run.at(-1)?.id} to ${targetTokens}`;

/** Beyond this the set is cleared, and each run is tried once more. */
const leftAloneMax = 10_000;

/** The text of the nearest summary before a run: a reader has just read it. */
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

/** Workers take items until there are none or no more may be started; the first error stops all of them. */
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
