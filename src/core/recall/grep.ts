/** Finding again: what a surface asks for in its user's words, checked and turned into a search of the store. */

import { LcmError } from "../base/errors.ts";
import type { SearchCaveat, SearchLimits, SearchRequest, SearchResult, Store } from "../model/store.ts";
import { conversationsWithin } from "./scope.ts";
import type { Reach } from "./scope.ts";
import { parseTimestamp } from "../base/time.ts";
import { formatCount, plural } from "../base/format.ts";
import type { Timestamp } from "../base/time.ts";

export interface GrepRequest {
  readonly pattern: string;
  readonly mode?: "regex" | "full_text";
  readonly scope?: SearchRequest["scope"];
  readonly reach: Reach;
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
  const { conversations } = request.reach;
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

export function timeBound(name: string, given: string | undefined): Timestamp | null {
  if (given === undefined) return null;
  const time = parseTimestamp(given);
  if (time === null) {
    throw new LcmError("invalid", `${name} is ${JSON.stringify(given)}, which is no time`, {
      hint: "for example 2026-02-17, 2026-02-17T15:30:00Z or 2026-02-17 15:30:00",
    });
  }
  return time;
}

/** What a search left out and how to get it, in the words of whoever asked: a person by flags, a model by arguments. */
export function caveatSentence(caveat: SearchCaveat, surface: "flags" | "arguments"): string {
  const option = (name: string): string => (surface === "flags" ? `--${name}` : name);
  const narrower = `${option("since")}, ${option("before")} or rarer words`;
  switch (caveat.kind) {
    case "limit": {
      const rest =
        caveat.limit < limitMax ? `${option("limit")} shows more, up to ${limitMax}` : `${narrower} narrow it`;
      return `more match than the ${caveat.limit} shown; ${rest}`;
    }
    case "time": {
      const limit = `stopped at the time limit of ${caveat.timeoutMs / 1_000} s`;
      const reach =
        caveat.of === 0
          ? "; how far it got is not known"
          : ` after ${formatCount(caveat.scanned)} of ${formatCount(caveat.of)} rows, newest first`;
      const remedy = surface === "flags" ? "--timeout gives it longer" : `${narrower} make it quicker`;
      return `${limit}${reach}: there may be matches that are not shown; ${remedy}`;
    }
    case "newest_ranked":
      return `these words are frequent: only the newest ${formatCount(caveat.ranked)} matches were ranked`;
    case "partial_match": {
      const missing = caveat.missing.map((word) => `"${word}"`).join(", ");
      const lacking = ["holds some of them", `lacks ${missing}`][caveat.missing.length] ?? `lacks some of ${missing}`;
      return `nothing holds all of these words; what is shown ${lacking}`;
    }
    case "files": {
      const inside = `${option("scope")} files searches inside them`;
      return `${plural(caveat.files, "large text")} moved out to files: what they are about was searched; ${inside}`;
    }
    case "unreadable":
      return `${plural(caveat.files, "file")} could not be read: there may be matches in them that are not shown`;
    case "unindexed":
      return `search is still being built: ${plural(caveat.rows, "row")} not in it yet`;
  }
}

/** When the newest message within the reach was said; null if there is none. */
export async function lastSaidAt(store: Store, reach: Reach): Promise<Timestamp | null> {
  const times = (await conversationsWithin(store, reach)).flatMap(({ lastMessageAt }) => lastMessageAt ?? []);
  return times.toSorted().at(-1) ?? null;
}
