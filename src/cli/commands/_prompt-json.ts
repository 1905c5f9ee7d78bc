/** A recorded prompt as JSON. */

import type { PromptRecord } from "../../core/model/prompts.ts";
import { about, maybe, object, oneOf, text, time, whole, type TypeOf } from "./_json.ts";

export const promptJson = object({
  conversation: whole,
  number: about(whole, "prompts of a conversation are numbered from 1"),
  at: time,
  model: maybe(text),
  turn: about(maybe(text), "as the host names it"),
  hosts: about(maybe(text), "why the host's own messages were sent; null if the prompt is ours"),
  newestSeq: about(whole, "the newest message that was stored then"),
  tokens: whole,
  budget: whole,
  bytes: about(whole, "of our part"),
  hash: about(text, "the beginning of the SHA-256 of our part; empty if the prompt was the host's"),
  live: about(whole, "messages of the running turn that the host added"),
  liveTokens: whole,
  outcome: maybe(oneOf("answered", "overflow")),
  counted: about(maybe(whole), "prompt tokens that the provider counted"),
  cached: about(maybe(whole), "how many of these it had cached"),
});

export const promptOf = (record: PromptRecord): TypeOf<typeof promptJson> => {
  const { conversation, number, at, turn, newestSeq, tokens, budget, bytes, hash, live, liveTokens } = record;
  const { outcome, counted, cached, head } = record;
  const about = { model: head.model ?? null, hosts: head.hosts ?? null, outcome, counted, cached };
  return { conversation, number, at, turn, newestSeq, tokens, budget, bytes, hash, live, liveTokens, ...about };
};
