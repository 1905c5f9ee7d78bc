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

export function createPlanning(asked: MapTask, budget: MapBudget = {}, callTokens = callTokensDefault) {
  const { tokens: tokensMax = Infinity, calls: callsMax = Infinity } = budget;
  const batches: Batch[] = [];
  const items: MapWork["items"][number][] = [];
  const answered = new Map<MessageId, Json>();
  const caveats: SearchCaveat[] = [];
  const skipped = { empty: 0, own_tool: 0, aside: 0, copy: 0 };
  const beyond = { messages: 0, calls: 0, tokens: 0 };
  const left = { cut: 0, files: 0 };
  const spent = { inputTokens: 0, outputTokens: 0 };
  let open: MapItem[] = [];
  let openTokens = 0;

  function close(): void {
    if (open.length === 0) return;
    const batch = toBatch(asked, open);
    const tokens = batch.inputTokens + batch.outputTokens;
    // Once something is left out, everything after it is: a gap would be hard to describe.
    const isWithin =
      beyond.calls === 0 && spent.inputTokens + spent.outputTokens + tokens <= tokensMax && batches.length < callsMax;
    if (isWithin) {
      batches.push(batch);
      spent.inputTokens += batch.inputTokens;
      spent.outputTokens += batch.outputTokens;
    } else {
      beyond.messages += open.length;
      beyond.calls += 1;
      beyond.tokens += tokens;
    }
    open = [];
    openTokens = 0;
  }

  return {
    skip: (skip: Skip): void => void (skipped[skip] += 1),
    note: (caveat: SearchCaveat): void => void caveats.push(caveat),
    /** `answer`: what an earlier run was answered about it. */
    add({ id, role, at, tokens, forgets, ...item }: MapItem, answer: Json | undefined): void {
      items.push({ id, role, at, tokens, forgets });
      left.files += item.files;
      left.cut += Number(item.isCut);
      if (answer !== undefined) return void answered.set(id, answer);
      if (open.length >= itemsPerCall || openTokens + tokens + tagTokens > callTokens) close();
      open.push({ id, role, at, tokens, forgets, ...item });
      openTokens += tokens + tagTokens;
    },
    end(): MapWork {
      close();
      const figures = { messages: items.length, kept: answered.size, calls: batches.length, ...spent };
      return { plan: { ...figures, beyond, skipped, ...left, caveats }, batches, items, answered };
    },
  };
}
