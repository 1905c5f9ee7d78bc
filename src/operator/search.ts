/** Searches as one types: the hits for a query, and what of each matches. */

import { setTimeout as pause } from "node:timers/promises";
import { LcmError } from "../core/base/errors.ts";
import type { ConversationId } from "../core/model/types.ts";
import type { SearchCaveat, SearchHit, SearchRequest, SearchResult, Store } from "../core/model/store.ts";
import { reachOf, type Reach } from "../core/recall/scope.ts";
import { bareName } from "../format/conversations.ts";
import { createFinder, type Match } from "../format/highlight.ts";
import type { Doing } from "./port.ts";
import { oneLine } from "../format/safe-text.ts";

export interface Query {
  readonly pattern: string;
  readonly mode: SearchRequest["mode"];
  readonly scope: SearchRequest["scope"];
  readonly where: "conversation" | "family" | "all";
  readonly conversation: ConversationId | null;
}

export type Found =
  | { readonly kind: "found"; readonly hits: readonly Hit[]; readonly caveats: readonly SearchCaveat[] }
  /** The pattern is invalid or incomplete. */
  | { readonly kind: "refused"; readonly why: string };

export interface Hit {
  readonly hit: SearchHit;
  /** The name of the conversation. */
  readonly where: string;
  /** One line of text around the match. */
  readonly snippet: string;
  readonly matches: readonly Match[];
}

const hitsMax = 50;

/** Waits for the next key: it aborts this search. */
const pauseMs = 60;

export const searchAsks = {
  async search({ pattern, mode, scope, where, conversation }: Query, { port, signal }: Doing): Promise<Found> {
    await pause(pauseMs, undefined, { signal });
    const lcm = await port.reading();
    const reach = await reachFor(lcm.store, where, conversation);
    const timeoutMs = lcm.settings.searchTimeoutSeconds * 1_000;
    try {
      const found = await lcm.grep({ pattern, mode, scope, reach, limit: hitsMax }, { timeoutMs, signal });
      return { kind: "found", hits: await toHits(lcm.store, { pattern, mode }, found), caveats: found.caveats };
    } catch (error) {
      if (error instanceof LcmError && error.code === "invalid")
        return { kind: "refused", why: oneLine(error.message) };
      throw error;
    }
  },
};

/** With the names of their conversations, and what of each matches. */
export async function toHits(
  store: Store,
  { pattern, mode }: Pick<Query, "pattern" | "mode">,
  found: SearchResult,
): Promise<readonly Hit[]> {
  const hits = [...found.hits, ...(found.summaries ?? [])];
  const names = await namesOf(store, hits);
  const snippets = hits.map(({ snippet }) => oneLine(snippet));
  const matches = createFinder(pattern, mode === "regex")(snippets);
  return hits.map((hit, at) => ({
    hit,
    where: names.get(hit.conversation) ?? "",
    snippet: snippets[at] ?? "",
    matches: matches[at] ?? [],
  }));
}

/** The reach of `lcm grep`: one conversation, its family, or all that are not hidden. */
export async function reachFor(
  store: Store,
  where: Query["where"],
  conversation: ConversationId | null,
): Promise<Reach> {
  if (where === "conversation" && conversation !== null) return { kind: "conversation", conversations: [conversation] };
  return await reachOf(store, { conversation: where === "family" ? conversation : null, policy: "all" }, {});
}

async function namesOf(store: Store, hits: readonly SearchHit[]): Promise<ReadonlyMap<ConversationId, string>> {
  const ids = [...new Set(hits.map(({ conversation }) => conversation))];
  const conversations = await Promise.all(ids.map(async (id) => await store.conversation(id)));
  return new Map(conversations.filter((each) => each !== null).map((each) => [each.id, bareName(each)]));
}
