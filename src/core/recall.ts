/** Finding again: what a surface asks for in its user's words, checked and turned into a search of the store. */

import { LcmError } from "./errors.ts";
import type { Conversation, ConversationId, Timestamp } from "./model.ts";
import type { SearchLimits, SearchRequest, SearchResult, Store } from "./ports.ts";
import { parseTimestamp } from "./text.ts";

export interface GrepRequest {
  readonly pattern: string;
  readonly mode?: "regex" | "full_text";
  readonly scope?: "messages" | "summaries" | "both";
  /** Where to look: one conversation, its whole family, or everything. */
  readonly within: { readonly kind: "all" } | { readonly kind: "conversation" | "family"; readonly id: ConversationId };
  /** Any time that `parseTimestamp` reads; `since` is inclusive, `before` exclusive. */
  readonly since?: string;
  readonly before?: string;
  readonly sort?: "recency" | "relevance" | "hybrid";
  readonly limit?: number;
}

const limitDefault = 50;
const limitMax = 200;

export async function grep(store: Store, request: GrepRequest, limits?: SearchLimits): Promise<SearchResult> {
  const mode = request.mode ?? "regex";
  const limit = request.limit ?? limitDefault;
  if (!Number.isInteger(limit) || limit < 1 || limit > limitMax) {
    throw new LcmError("invalid", `limit is ${limit}, but must be a whole number from 1 to ${limitMax}`, {
      hint: "narrow the search with since, before or a longer pattern to see what is beyond",
    });
  }
  if (request.pattern === "") throw new LcmError("invalid", "the pattern is empty", { hint: "name at least one word" });
  const since = timeBound("since", request.since);
  const before = timeBound("before", request.before);
  const conversations = await conversationsOf(store, request.within);
  const search: SearchRequest = {
    pattern: request.pattern,
    mode,
    scope: request.scope ?? "both",
    sort: request.sort ?? (mode === "regex" ? "recency" : "hybrid"),
    limit,
    ...(conversations === null ? {} : { conversations }),
    ...(since === null ? {} : { since }),
    ...(before === null ? {} : { before }),
  };
  return await store.search(search, limits);
}

function timeBound(name: string, given: string | undefined): Timestamp | null {
  if (given === undefined) return null;
  const time = parseTimestamp(given);
  if (time === null) {
    throw new LcmError("invalid", `${name} is ${JSON.stringify(given)}, which is no time`, {
      hint: "for example 2026-02-17, 2026-02-17T15:30:00Z or 2026-02-17 15:30:00",
    });
  }
  return time;
}

async function conversationsOf(store: Store, within: GrepRequest["within"]): Promise<readonly ConversationId[] | null> {
  switch (within.kind) {
    case "all":
      return null;
    case "conversation":
      if ((await store.conversation(within.id)) === null) throw unknownConversation(String(within.id));
      return [within.id];
    case "family":
      return (await store.conversations({ familyOf: within.id })).map(({ id }) => id);
  }
}

/** A conversation by what people call it: its number, its session key, or its session id (then the newest segment). */
export async function findConversation(store: Store, name: string): Promise<Conversation> {
  if (/^\d{1,15}$/.test(name)) {
    const found = await store.conversation(Number(name) as ConversationId);
    if (found !== null) return found;
  }
  for (const filter of [{ sessionKey: name }, { sessionId: name }]) {
    const segments = await store.conversations({ ...filter, includeHidden: true });
    const newest = segments.find(({ active }) => active) ?? segments[0];
    if (newest !== undefined) return newest;
  }
  throw unknownConversation(name);
}

const unknownConversation = (name: string): LcmError =>
  new LcmError("not_found", `there is no conversation ${name}`, { hint: "`lcm conversations` lists them" });
