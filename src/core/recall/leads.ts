/** Picks what is worth reading from the result of a search: telling messages, and the summaries beside them. */

import type { SearchHit, SearchResult, SummaryHit } from "../model/store.ts";
import { saysLittle } from "./expand.ts";

export type MessageHit = Extract<SearchHit, { readonly kind: "message" }>;

/** Hits worth reading, best first. */
export interface Leads {
  readonly messages: readonly MessageHit[];
  readonly summaries: readonly SummaryHit[];
}

const messagesMax = 80;

export function leadsOf({ hits, summaries = [] }: Pick<SearchResult, "hits" | "summaries">): Leads {
  const messages = hits.filter((hit) => hit.kind === "message");
  // A message that matched through its neighbours may say nothing by itself.
  const telling = messages.filter(({ snippet }) => !saysLittle(snippet));
  // Leaves are more specific than the condensed summaries above them.
  const leaves = summaries.filter(({ depth }) => depth === 0);
  return {
    messages: (telling.length > 0 ? telling : messages).slice(0, messagesMax),
    summaries: leaves.length > 0 ? leaves : summaries,
  };
}
