/** Runs the passes of one compaction: find a run, draft its summary, fold it; several at a time, within bounds. */

import { assert } from "../base/errors.ts";
import { createLeafFinder } from "./find-runs.ts";
import type { ContextItem, Conversation, ConversationId, Level, Refusal, SummaryId } from "../model/types.ts";
import { condensedRuns, type End, type Rules } from "./choose-runs.ts";
import { targetTokensOf } from "../summarize/source.ts";
import type { Due } from "./due.ts";
import type { FoldRun, Run } from "./fold-run.ts";
import type { Store } from "../model/store.ts";
import type { Settings } from "../model/settings.ts";
import { sumTokens } from "../base/tokens.ts";
import { promptTokens, summaryOverheadTokens } from "../model/prompt-cost.ts";

export interface PassDeps {
  /** Where runs are found. */
  readonly store: Pick<Store, "conversation" | "context" | "messages">;
  readonly settings: Settings;
  readonly foldRun: FoldRun;
  /** Runs that no summary could shorten. Remembered so that the model is not asked about them again. */
  readonly leftAlone: Set<string>;
}

export interface PassRequest {
  readonly conversation: ConversationId;
  /** The one deadline. */
  readonly signal?: AbortSignal;
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

/** Where passes stop, and in which order they fold. */
export interface Aim {
  /** Passes end as soon as the context is at or below this. */
  readonly targetTokens: number;
  /** Summaries are condensed only above this: one run of them can save far more than the target requires. */
  readonly condensingAbove: number;
  /** Above this, the newest stretch is folded first: only that can still be part of a prompt. */
  readonly newestAbove: number;
  /** How much of the newest raw messages is kept if those before them are folded first. */
  readonly keptTokens: number;
  /** Nobody waits: one summary after the other, each with the one before it, and no further than the target. */
  readonly isInOrder: boolean;
}

const toTheEnd: Aim = {
  targetTokens: -1,
  condensingAbove: -1,
  newestAbove: Number.POSITIVE_INFINITY,
  keptTokens: 0,
  isInOrder: false,
};

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
  aim = toTheEnd;
  readonly #deps: PassDeps;
  readonly #request: PassRequest;
  readonly #passesMax: number;
  readonly #underWay = new Set<Run>();
  #ended: PassesEnd | null = null;

  constructor(deps: PassDeps, request: PassRequest, { promptTokens: tokens }: Pick<Due, "promptTokens">) {
    this.#deps = deps;
    this.#request = request;
    this.#passesMax = request.passesMax ?? passesMaxDefault;
    this.tokens = tokens;
  }

  async recount(): Promise<number> {
    return (this.tokens = promptTokens((await this.#conversation()).totals));
  }

  /** Folds raw messages; returns null if nothing is left to fold, or why it stopped. */
  async foldLeaves(rules: Rules, leavesMax = Number.POSITIVE_INFINITY): Promise<PassesEnd | null> {
    const from = this.#foldFrom();
    const keptTokens = from === "newest" ? this.aim.keptTokens : 0;
    const findLeaf = createLeafFinder(this.#deps.store, this.#request.conversation, { ...rules, keptTokens }, from);
    await this.#passOn(leavesMax, async () => {
      for (;;) {
        const { forgets } = await this.#conversation();
        const found = await findLeaf(this.#chunkTokens(rules));
        if (found === null) return null;
        const run = runOf(found.items, rules);
        if (!this.#isLeftAlone(run)) return { ...run, messages: found.messages, forgets };
      }
    });
    return this.#ended;
  }

  /** Folds adjacent summaries; returns null if nothing is left to fold, or why it stopped. */
  async condense(rules: Rules): Promise<PassesEnd | null> {
    const { store } = this.#deps;
    const { conversation } = this.#request;
    if (this.tokens <= this.aim.condensingAbove) return this.#ended;
    while (!this.#hasEnded()) {
      const window = await store.context(conversation, { limit: condensingItems, keep: this.#foldFrom() });
      const runs = [...condensedRuns(window, rules, (items) => this.#isLeftAlone(runOf(items, rules)))];
      const passesBefore = this.reports.length;
      await this.#passOn(runs.length, async () => {
        const { forgets } = await this.#conversation();
        const items = runs.shift();
        return items === undefined ? null : { ...runOf(items, rules), messages: [], forgets };
      });
      if (this.reports.length === passesBefore) break;
    }
    return this.#ended;
  }

  #foldFrom(): End {
    return this.tokens > this.aim.newestAbove ? "newest" : "oldest";
  }

  /** The last chunk before the target is as long as it must be, but at least half a chunk: short leaves say little. */
  #chunkTokens({ chunkTokens, leafTargetTokens, leafMinTokens }: Rules): number {
    if (!this.aim.isInOrder) return chunkTokens;
    const missing = this.#expectedTokens() - this.aim.targetTokens;
    const enough = missing + leafTargetTokens + summaryOverheadTokens;
    return Math.min(chunkTokens, Math.max(chunkTokens / 2, leafMinTokens, enough));
  }

  /** Once the passes under way are done, if their summaries come out at their target length. */
  #expectedTokens(): number {
    return [...this.#underWay].reduce((tokens, run) => tokens - savingsOf(run, run.targetTokens), this.tokens);
  }

  #hasEnded(): boolean {
    if (this.#request.signal?.aborted === true) this.#ended ??= { kind: "bounded", bound: "deadline" };
    if (this.reports.length >= this.#passesMax) this.#ended ??= { kind: "bounded", bound: "passes" };
    return this.#ended !== null || this.tokens <= this.aim.targetTokens;
  }

  async #conversation(): Promise<Conversation> {
    const conversation = await this.#deps.store.conversation(this.#request.conversation);
    assert(conversation !== null, "a conversation does not go away");
    return conversation;
  }

  #isLeftAlone(run: Pick<Run, "items" | "targetTokens">): boolean {
    return this.#deps.leftAlone.has(runKey(run));
  }

  /**
   * Passes over the runs that `next` returns, several at a time but never more than `most`. A pass under way counts
   * as done, so that a target is not passed by several of them at once.
   */
  async #passOn(most: number, next: () => Promise<Run | null>): Promise<void> {
    const passesMax = Math.min(this.#passesMax, this.reports.length + most);
    const start = async (): Promise<Run | null> => {
      if (this.#hasEnded() || this.#expectedTokens() <= this.aim.targetTokens) return null;
      const run = this.reports.length + this.#underWay.size < passesMax ? await next() : null;
      if (run !== null) this.#underWay.add(run);
      return run;
    };
    const workers = this.aim.isInOrder ? 1 : this.#deps.settings.summaryConcurrency;
    await inParallel(workers, start, async (run) => {
      await this.#pass(run).finally(() => this.#underWay.delete(run));
    });
  }

  async #pass(run: Run): Promise<void> {
    const { leftAlone, foldRun } = this.#deps;
    const { signal, onPass } = this.#request;
    const outcome = await foldRun(run);
    switch (outcome.kind) {
      case "refused": {
        const { refusal, message } = outcome;
        const isOver = refusal === "cancelled" && signal?.aborted === true;
        this.#ended ??= isOver ? { kind: "bounded", bound: "deadline" } : { kind: "waiting", refusal, message };
        return;
      }
      case "incompressible":
        if (leftAlone.size >= leftAloneMax) leftAlone.clear();
        leftAlone.add(runKey(run));
        return;
      case "stale":
        this.stale += 1;
        return;
      case "folded": {
        const { kind: _, ...made } = outcome;
        const report = { depth: run.depth, sources: run.items.length, sourceTokens: run.tokens, ...made };
        this.reports.push(report);
        this.tokens -= savingsOf(run, made.tokens);
        onPass?.(report);
      }
    }
  }
}

const runOf = (items: readonly ContextItem[], rules: Rules) => {
  const tokens = sumTokens(items);
  const depth = (items[0]?.depth ?? -1) + 1;
  return { items, depth, tokens, rules, targetTokens: targetTokensOf(rules, depth, tokens) };
};

/** How much a prompt shrinks when a run becomes a summary of this length. */
const savingsOf = ({ depth, items, tokens }: Run, summaryTokens: number): number =>
  tokens - summaryTokens - summaryOverheadTokens * (depth === 0 ? 1 : 1 - items.length);

/** Includes the target: a run that could not be shortened to one length may be shortened to another. */
const runKey = ({ items, targetTokens }: Pick<Run, "items" | "targetTokens">): string =>
  `${items[0]?.id}…${items.at(-1)?.id} to ${targetTokens}`;

/** Beyond this the set is cleared, and each run is tried once more. */
const leftAloneMax = 10_000;

/** Workers start items, one after the other, until there are none; the first error stops all of them. */
async function inParallel<T>(
  workers: number,
  start: () => Promise<T | null>,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  let turn: Promise<unknown> = Promise.resolve();
  const worker = async (): Promise<void> => {
    for (;;) {
      const started = turn.then(async () => (failures.length === 0 ? await start() : null));
      turn = started.catch(() => undefined); // The worker that starts it gets the error.
      const item = await started;
      if (item === null) return;
      await work(item);
    }
  };
  const watched = async (): Promise<void> => await worker().catch((error: unknown) => void failures.push(error));
  await Promise.all(Array.from({ length: workers }, watched));
  if (failures.length > 0) throw failures[0];
}
