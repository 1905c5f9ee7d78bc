/**
 * Plans a map: puts each message into exactly one call, and adds up what the calls will cost. Pure: messages come in one
 * by one, and those beyond the budget are only counted, so that a plan takes memory for what it will read and no more.
 */

import { valueTokens } from "../../base/json-schema.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import { estimateTokens } from "../../base/tokens.ts";
import type { SearchCaveat } from "../../model/store.ts";
import type { MessageId } from "../../model/types.ts";
import { mapPrompt } from "../../prompts/map.ts";
import type { Prompt } from "../../prompts/summary.ts";
import type { MapItem, Skip } from "./items.ts";

/** What is asked about every message. */
export interface MapTask {
  readonly task: string;
  /** What each answer must fit. */
  readonly schema: JsonObject;
  /** Expected tokens of an answer, if the schema does not tell. */
  readonly resultTokens?: number;
}

export interface MapBudget {
  /** Input and output of all calls together. */
  readonly tokens?: number;
  readonly calls?: number;
}

/** One call: messages under keys that nobody who wrote them could know. */
export interface Batch {
  readonly items: readonly MapItem[];
  readonly keys: readonly string[];
  readonly prompt: Prompt;
  readonly inputTokens: number;
  /** Expected. */
  readonly outputTokens: number;
}

export interface MapPlan {
  /** Messages to read, and of these, those that an earlier run has read already. */
  readonly messages: number;
  readonly kept: number;
  /** What reading the others will take, as far as the budget goes. */
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** What the budget leaves out. */
  readonly beyond: { readonly messages: number; readonly calls: number; readonly tokens: number };
  /** Messages that are not read, by their reason. */
  readonly skipped: Readonly<Record<Skip, number>>;
  /** Messages that are too long for a call, of which the middle is not read. */
  readonly cut: number;
  /** Large contents of these messages that are in files, and are not read. */
  readonly files: number;
  readonly caveats: readonly SearchCaveat[];
}

/** A plan with what is needed to carry it out. */
export interface MapWork {
  readonly plan: MapPlan;
  readonly batches: readonly Batch[];
  /** Everything to read, in order. */
  readonly items: readonly Pick<MapItem, "id" | "role" | "at" | "tokens" | "forgets">[];
  readonly answered: ReadonlyMap<MessageId, Json>;
}

/** How much of one call may be messages. */
export const callTokensDefault = 8_000;
/** A message alone may take more: few models read less, and hosts move longer ones into files. */
export const itemTokensMax = 32_000;
/** With more, models begin to skip some. */
const itemsPerCall = 50;
/** Tokens of the tags around a message, and of an answer beside its result. */
const tagTokens = 16;
const lineTokens = 12;

export function toBatch(asked: MapTask, items: readonly MapItem[]): Batch {
  const keys = keysOf(`${asked.task}\n${items.map(({ id }) => id).join()}`, items.length);
  const keyed = items.map(({ text }, at) => ({ key: keys[at] ?? "", text }));
  const prompt = mapPrompt({ ...asked, items: keyed });
  const inputTokens = estimateTokens(prompt.system) + estimateTokens(prompt.prompt);
  const outputTokens = items.length * (lineTokens + (asked.resultTokens ?? valueTokens(asked.schema)));
  return { items, keys, prompt, inputTokens, outputTokens };
}

const keyLength = 4;

/** Short words that depend on the whole batch, so that no message can name another one's. */
function keysOf(seed: string, count: number): readonly string[] {
  const keys = new Set<string>();
  for (let n = 0; keys.size < count; n++)
    keys.add(hash(`${n} ${seed}`).toString(36).padStart(keyLength, "0").slice(-keyLength));
  return [...keys];
}

/** FNV-1a, then mixed: similar texts get different numbers. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193);
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  return (state ^ (state >>> 13)) >>> 0;
}

export class MapPlanning {
  readonly #asked: MapTask;
  readonly #budget: MapBudget;
  readonly #callTokens: number;
  readonly #batches: Batch[] = [];
  readonly #items: MapWork["items"][number][] = [];
  readonly #answered = new Map<MessageId, Json>();
  readonly #skipped = { empty: 0, own_tool: 0, aside: 0, copy: 0 };
  readonly #caveats: SearchCaveat[] = [];
  readonly #beyond = { messages: 0, calls: 0, tokens: 0 };
  #cut = 0;
  #files = 0;
  #open: MapItem[] = [];
  #openTokens = 0;
  #tokens = 0;

  constructor(asked: MapTask, budget: MapBudget = {}, callTokens = callTokensDefault) {
    this.#asked = asked;
    this.#budget = budget;
    this.#callTokens = callTokens;
  }

  skip(skip: Skip): void {
    this.#skipped[skip]++;
  }

  note(caveat: SearchCaveat): void {
    this.#caveats.push(caveat);
  }

  /** `answer`: what an earlier run was answered about it. */
  add(item: MapItem, answer: Json | undefined): void {
    const { id, role, at, tokens: read, forgets } = item;
    this.#items.push({ id, role, at, tokens: read, forgets });
    this.#files += item.files;
    this.#cut += Number(item.isCut);
    if (answer !== undefined) return void this.#answered.set(id, answer);
    const tokens = item.tokens + tagTokens;
    const isFull = this.#open.length >= itemsPerCall || this.#openTokens + tokens > this.#callTokens;
    if (isFull) this.#close();
    this.#open.push(item);
    this.#openTokens += tokens;
  }

  #close(): void {
    if (this.#open.length === 0) return;
    const batch = toBatch(this.#asked, this.#open);
    const tokens = batch.inputTokens + batch.outputTokens;
    const { tokens: tokensMax = Infinity, calls: callsMax = Infinity } = this.#budget;
    // Once something is left out, everything after it is: a gap would be hard to describe.
    const isWithin = this.#beyond.calls === 0 && this.#tokens + tokens <= tokensMax && this.#batches.length < callsMax;
    if (isWithin) {
      this.#batches.push(batch);
      this.#tokens += tokens;
    } else {
      this.#beyond.messages += this.#open.length;
      this.#beyond.calls += 1;
      this.#beyond.tokens += tokens;
    }
    this.#open = [];
    this.#openTokens = 0;
  }

  end(): MapWork {
    this.#close();
    const plan: MapPlan = {
      messages: this.#items.length,
      kept: this.#answered.size,
      calls: this.#batches.length,
      inputTokens: this.#batches.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
      outputTokens: this.#batches.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
      beyond: { ...this.#beyond },
      skipped: { ...this.#skipped },
      cut: this.#cut,
      files: this.#files,
      caveats: this.#caveats,
    };
    return { plan, batches: this.#batches, items: this.#items, answered: this.#answered };
  }
}
