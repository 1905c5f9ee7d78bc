/**
 * Carries out the calls of a map: several at a time, never more than the budget allows. What a call leaves unanswered is
 * asked once more, then in halves, and at last given up.
 */

import type { Json } from "../../base/json.ts";
import { estimateTokens } from "../../base/tokens.ts";
import { completeWithin } from "../../model-calls/metering.ts";
import type { Completion, MapAnswer, Model, Refused } from "../../model/store.ts";
import type { MessageId, Refusal } from "../../model/types.ts";
import { readResults } from "./answer.ts";
import type { MapItem } from "./items.ts";
import { toBatch, type Batch, type MapBudget, type MapTask, type MapWork } from "./plan.ts";

export interface MapSpent {
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Why a message has no result: beyond the budget, not reached, answered badly, or refused by the provider. */
export type UnreadReason = "budget" | "stopped" | "malformed" | "refused";

interface RunOptions {
  readonly asked: MapTask;
  readonly model: Model;
  readonly budget: MapBudget;
  readonly concurrency: number;
  readonly refine: ((item: MapItem, result: Json) => Json) | undefined;
  readonly signal: AbortSignal | undefined;
  readonly save: (answers: readonly MapAnswer[]) => Promise<void>;
  /** Called after each call: calls made, and messages answered in this run. */
  readonly onCall: (calls: number, answered: number) => void;
}

interface Job {
  readonly batch: Batch;
  /** Answers that were incomplete, and calls that the provider refused for the time being. */
  readonly tries: number;
  readonly refusals: number;
}

/** What may be spent, and what calls under way may still take of it. */
export class Purse {
  readonly #tokensMax: number;
  readonly #callsMax: number;
  #reserved = 0;
  #spent = { calls: 0, inputTokens: 0, outputTokens: 0 };

  constructor({ tokens = Infinity, calls = Infinity }: MapBudget) {
    this.#tokensMax = tokens;
    this.#callsMax = calls;
  }

  get spent(): MapSpent {
    return this.#spent;
  }

  /** How much a call may answer if it is begun now: up to `most`; null if what it needs is not left. */
  reserve({ inputTokens, outputTokens }: Pick<Batch, "inputTokens" | "outputTokens">, most: number): number | null {
    const { calls, inputTokens: input, outputTokens: output } = this.#spent;
    const left = this.#tokensMax - input - output - this.#reserved - inputTokens;
    if (calls >= this.#callsMax || left < outputTokens) return null;
    const granted = Math.min(most, left);
    this.#reserved += inputTokens + granted;
    this.#spent = { ...this.#spent, calls: calls + 1 };
    return granted;
  }

  /** Some adapters do not report tokens; then the estimates count. */
  settle({ inputTokens }: Pick<Batch, "inputTokens">, granted: number, completion: Completion): void {
    this.#reserved -= inputTokens + granted;
    if (completion.kind === "refused") return;
    this.#spent = {
      ...this.#spent,
      inputTokens: this.#spent.inputTokens + (completion.inputTokens || inputTokens),
      outputTokens: this.#spent.outputTokens + (completion.outputTokens || estimateTokens(completion.text)),
    };
  }
}

/** Reasoning counts as output, so a call may answer far more than expected. */
const outputShare = 4;
const outputTokensMin = 1_024;
/** A model that answers nothing usable so often in a row will not do so later. */
const fruitlessMax = 6;

export class MapRun {
  readonly #work: MapWork;
  readonly #options: RunOptions;
  readonly #purse: Purse;
  readonly #queue: Job[];
  readonly #results = new Map<MessageId, Json>();
  readonly #unread = new Map<MessageId, UnreadReason>();
  readonly #running = new Set<Promise<void>>();
  #fruitless = 0;
  #stopped: string | null = null;
  #failure: { readonly error: unknown } | null = null;

  constructor(work: MapWork, options: RunOptions) {
    this.#work = work;
    this.#options = options;
    this.#purse = new Purse(options.budget);
    this.#queue = work.batches.map((batch) => ({ batch, tries: 0, refusals: 0 }));
  }

  /** Throws what the store throws. */
  async toTheEnd(): Promise<void> {
    for (;;) {
      const isFull = this.#running.size >= this.#options.concurrency;
      const begun = isFull || this.#isOver() ? null : this.#begin();
      if (begun !== null) continue;
      if (this.#running.size === 0) break;
      await Promise.race(this.#running);
    }
    if (this.#failure !== null) throw this.#failure.error;
    if (this.#queue.length > 0)
      this.#stopped ??= this.#isOver() ? endWords(this.#options.signal) : "the budget is used up";
  }

  outcome() {
    const { items, answered } = this.#work;
    const reason: UnreadReason =
      this.#stopped === null || this.#stopped === "the budget is used up" ? "budget" : "stopped";
    const resultOf = (id: MessageId): Json | undefined => this.#results.get(id) ?? answered.get(id);
    return {
      results: items.flatMap((item) => {
        const result = resultOf(item.id);
        return result === undefined ? [] : [{ ...item, result }];
      }),
      unread: items.flatMap(({ id }) =>
        resultOf(id) === undefined ? [{ id, reason: this.#unread.get(id) ?? this.#planned(id, reason) }] : [],
      ),
      spent: this.#purse.spent,
      stopped: this.#stopped,
    };
  }

  /** What was never planned is beyond the budget, whatever ended the run. */
  #planned(id: MessageId, reason: UnreadReason): UnreadReason {
    this.#inPlan ??= new Set(this.#work.batches.flatMap(({ items }) => items.map((item) => item.id)));
    return this.#inPlan.has(id) ? reason : "budget";
  }
  #inPlan: Set<MessageId> | undefined;

  #isOver(): boolean {
    return this.#failure !== null || this.#stopped !== null || this.#options.signal?.aborted === true;
  }

  /** Begins the next call that the budget allows; null if there is none. */
  #begin(): Promise<void> | null {
    const [job] = this.#queue;
    if (job === undefined) return null;
    const most = Math.max(outputTokensMin, outputShare * job.batch.outputTokens);
    const granted = this.#purse.reserve(job.batch, most);
    if (granted === null) return null;
    this.#queue.shift();
    const call = this.#perform(job, granted)
      .catch((error: unknown) => void (this.#failure ??= { error }))
      .finally(() => this.#running.delete(call));
    this.#running.add(call);
    return call;
  }

  async #perform(job: Job, granted: number): Promise<void> {
    const { batch } = job;
    const { model, signal, asked, onCall } = this.#options;
    const completion = await completeWithin(model, {
      purpose: "map",
      conversation: null,
      ...batch.prompt,
      temperature: 0,
      maxOutputTokens: granted,
      ...(signal && { signal }),
    });
    this.#purse.settle(batch, granted, completion);
    if (completion.kind === "refused") this.#refuse(job, completion);
    else {
      const results = readResults(completion.text, batch.keys, asked.schema);
      await this.#keep(batch, results);
      this.#fruitless = results.size === 0 ? this.#fruitless + 1 : 0;
      if (this.#fruitless >= fruitlessMax)
        this.#stopped ??= `${model.name} does not answer in the required form (${fruitlessMax} answers in a row)`;
      const missing = batch.items.filter((_, at) => !results.has(batch.keys[at] ?? ""));
      if (missing.length > 0) this.#askAgain({ ...job, tries: job.tries + 1 }, missing, "malformed");
    }
    onCall(this.#purse.spent.calls, this.#results.size);
  }

  async #keep({ items, keys }: Batch, results: ReadonlyMap<string, Json>): Promise<void> {
    const { refine = (_: MapItem, result: Json) => result, save } = this.#options;
    const answers = items.flatMap((item, at): readonly MapAnswer[] => {
      const result = results.get(keys[at] ?? "");
      return result === undefined ? [] : [{ message: item.id, answer: refine(item, result), forgets: item.forgets }];
    });
    if (answers.length === 0) return;
    await save(answers);
    for (const { message, answer } of answers) this.#results.set(message, answer);
  }

  #refuse(job: Job, { refusal, message, ofStore }: Refused): void {
    if (ofStore !== undefined) return void (this.#failure ??= { error: ofStore });
    if (isAboutTheText(refusal)) return this.#askAgain({ ...job, tries: job.tries + 1 }, job.batch.items, "refused");
    this.#queue.unshift({ ...job, refusals: job.refusals + 1 });
    // Once may be bad luck. What has to wait, or be fixed, stops everything.
    if (refusal !== "cancelled" && (job.refusals > 0 || !isPassing(refusal)))
      this.#stopped ??= `the model was not available (${refusal}): ${message}`;
  }

  /** Once more as a whole, then in halves; a message that fails alone is given up. */
  #askAgain(job: Job, missing: readonly MapItem[], reason: UnreadReason): void {
    const { asked } = this.#options;
    const isRefused = reason === "refused";
    if (job.tries > 1 && missing.length === 1) {
      for (const { id } of missing) this.#unread.set(id, reason);
      return;
    }
    const isHalved = missing.length > 1 && (isRefused || job.tries > 1);
    const middle = isHalved ? Math.ceil(missing.length / 2) : missing.length;
    for (const part of [missing.slice(0, middle), missing.slice(middle)])
      if (part.length > 0) this.#queue.push({ ...job, batch: toBatch(asked, part) });
  }
}

const endWords = (signal: AbortSignal | undefined): string =>
  signal?.reason instanceof DOMException && signal.reason.name === "TimeoutError"
    ? "the time limit was reached"
    : "it was interrupted";

/** Refusals that another text might not meet. */
const isAboutTheText = (refusal: Refusal): boolean =>
  refusal === "filtered" || refusal === "too_long" || refusal === "rejected";

const isPassing = (refusal: Refusal): boolean =>
  refusal === "rate_limit" || refusal === "overloaded" || refusal === "unreachable" || refusal === "timeout";
