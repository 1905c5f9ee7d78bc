/** Merges the hits of several searches into one ranked list of leads, by reciprocal rank. */

import type { SearchHit } from "../model/store.ts";
import { saysLittle } from "./expand.ts";

export type MessageHit = Extract<SearchHit, { readonly kind: "message" }>;
type SummaryHit = Extract<SearchHit, { readonly kind: "summary" }>;

/** Hits worth reading, best first. */
export interface Leads {
  readonly messages: readonly MessageHit[];
  readonly summaries: readonly SummaryHit[];
}

const messagesMax = 80;
const summariesMax = 8;
/** Flattens the first ranks: a hit of two searches beats the first hit of one. */
export const rankOffset = 10;

export function mergeSearches(searches: readonly (readonly SearchHit[])[]): Leads {
  const summaries = searches.map((hits) => hits.filter((hit) => hit.kind === "summary"));
  // Leaves are more specific than the condensed summaries above them.
  const leaves = summaries.map((hits) => hits.filter(({ depth }) => depth === 0));
  const messages = merge(searches.map((hits) => hits.filter((hit) => hit.kind === "message")));
  // A message that matched through its neighbours may say nothing by itself.
  const telling = messages.filter(({ snippet }) => !saysLittle(snippet));
  return {
    messages: (telling.length > 0 ? telling : messages).slice(0, messagesMax),
    summaries: merge(leaves.flat().length > 0 ? leaves : summaries).slice(0, summariesMax),
  };
}

function merge<H extends SearchHit>(searches: readonly (readonly H[])[]): readonly H[] {
  const scores = new Map<H["id"], number>();
  for (const hits of searches) {
    for (const [rank, { id }] of hits.entries()) scores.set(id, (scores.get(id) ?? 0) + 1 / (rankOffset + rank));
  }
  const hits = new Map(searches.flat().map((hit) => [hit.id, hit]));
  return [...hits.values()].toSorted((one, other) => (scores.get(other.id) ?? 0) - (scores.get(one.id) ?? 0));
}
