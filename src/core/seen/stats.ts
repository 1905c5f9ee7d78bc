/** Cost and cache over time: what each prompt shared with the one before, what changes of it cost, and calls for summaries. */

import type { PromptRecord } from "../model/prompts.ts";
import type { Store } from "../model/store.ts";
import type { ConversationId } from "../model/types.ts";
import type { Timestamp } from "../base/time.ts";
import { sharedBytes } from "./compare.ts";
import { readPrompts } from "./read-prompts.ts";

/** A prompt beside the one before it. */
export interface PromptCost extends Pick<
  PromptRecord,
  "number" | "at" | "tokens" | "bytes" | "counted" | "cached" | "outcome" | "turn"
> {
  readonly model: string | null;
  /** Why it was not ours; null if it was. */
  readonly hosts: string | null;
  /** Bytes that it has in common with the one before, from the beginning; null for the first. */
  readonly shared: number | null;
  /** Whether something else than its end changed: a fold, an eviction, a rewrite. */
  readonly isChanged: boolean;
  /** Summaries in it. */
  readonly summaries: number;
}

export interface PromptStats {
  readonly prompts: readonly PromptCost[];
  /** Sums over the prompts that have one of ours before them. */
  readonly bytes: number;
  readonly shared: number;
  /** Prompts that changed before their end, and the bytes of the prompts before them that were lost to the cache. */
  readonly changes: number;
  readonly lost: number;
  /** Prompt tokens that the provider counted, and read from its cache, where it told. */
  readonly counted: number;
  readonly cached: number;
  /** Calls for summaries since the first of these prompts. */
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface StatsRequest {
  readonly conversation: ConversationId;
  readonly since?: Timestamp;
  /** Only prompts up to this number. */
  readonly to?: number;
  /** Of the newest prompts, at most this many. */
  readonly limit?: number;
}

export async function promptStats(
  store: Store,
  { conversation, since, to, limit }: StatsRequest,
): Promise<PromptStats> {
  const records = await readPrompts(store, conversation, {
    ...(since === undefined ? {} : { since }),
    ...(to === undefined ? {} : { to }),
    ...(limit === undefined ? {} : { limit: limit + 1 }),
    keep: "newest",
  });
  const all = records.map((record, at) => costOf(record, records[at - 1]));
  const prompts = limit === undefined ? all : all.slice(-limit);
  const [first] = prompts;
  const calls = first === undefined ? [] : await store.summaryCalls(conversation, since ?? first.at);
  const compared = prompts.filter(({ shared }) => shared !== null);
  const changed = compared.filter(({ isChanged }) => isChanged);
  const sum = (numbers: readonly (number | null)[]): number =>
    numbers.reduce<number>((total, each) => total + (each ?? 0), 0);
  const before = new Map(prompts.map(({ bytes }, at) => [prompts[at + 1]?.number, bytes]));
  return {
    prompts,
    bytes: sum(compared.map(({ bytes }) => bytes)),
    shared: sum(compared.map(({ shared }) => shared)),
    changes: changed.length,
    lost: sum(changed.map(({ number, shared }) => (before.get(number) ?? shared ?? 0) - (shared ?? 0))),
    counted: sum(prompts.map(({ counted }) => counted)),
    cached: sum(prompts.map(({ cached }) => cached)),
    calls: calls.length,
    inputTokens: sum(calls.map(({ inputTokens }) => inputTokens)),
    outputTokens: sum(calls.map(({ outputTokens }) => outputTokens)),
  };
}

function costOf(record: PromptRecord, before: PromptRecord | undefined): PromptCost {
  const { number, at, tokens, bytes, counted, cached, outcome, turn, head } = record;
  const isOurs = head.hosts === undefined;
  const isComparable = isOurs && before !== undefined && before.head.hosts === undefined;
  const shared = isComparable ? sharedBytes(before, record) : null;
  return {
    number,
    at,
    tokens,
    bytes,
    counted,
    cached,
    outcome,
    turn,
    model: head.model ?? null,
    hosts: head.hosts ?? null,
    shared,
    isChanged: shared !== null && before !== undefined && shared < before.bytes,
    summaries: head.items.filter((item) => "summary" in item).length,
  };
}
