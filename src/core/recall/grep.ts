/** Searches stored messages, summaries and files: checks the request and describes what the search left out. */

import { LcmError } from "../base/errors.ts";
import type { SearchCaveat, SearchLimits, SearchRequest, SearchResult, Store } from "../model/store.ts";
import { conversationsWithin, type Reach } from "./scope.ts";
import { parseTimestamp, type Timestamp } from "../base/time.ts";
import { formatCount, plural } from "../base/format.ts";

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
      hint: "to see more, narrow the search with since, before or a longer pattern",
    });
  }
  if (request.pattern === "") throw new LcmError("invalid", "the pattern is empty", { hint: "pass at least one word" });
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
    throw new LcmError("invalid", `${name} is ${JSON.stringify(given)}, which is not a time`, {
      hint: "for example 2026-02-17, 2026-02-17T15:30:00Z or 2026-02-17 15:30:00",
    });
  }
  return time;
}

/** What a search left out, and how to get it with the flags of the command line or the arguments of a tool. */
export function caveatSentence(caveat: SearchCaveat, surface: "flags" | "arguments"): string {
  const option = (name: string): string => (surface === "flags" ? `--${name}` : name);
  const narrower = `narrow the search with ${option("since")}, ${option("before")} or rarer words`;
  switch (caveat.kind) {
    case "limit": {
      const rest = caveat.limit < limitMax ? `raise ${option("limit")} to see more, up to ${limitMax}` : narrower;
      return `more than ${plural(caveat.limit, "match", "matches")}; ${rest}`;
    }
    case "time": {
      const limit = `stopped at the time limit of ${caveat.timeoutMs / 1_000} s`;
      const rows =
        caveat.of === 0
          ? "an unknown number of rows"
          : `${formatCount(caveat.scanned)} of ${formatCount(caveat.of)} rows, newest first`;
      const remedy = surface === "flags" ? "raise --timeout" : narrower;
      return `${limit} after ${rows}, so matches may be missing; ${remedy}`;
    }
    case "newest_ranked":
      return `these words are common: only ${formatCount(caveat.ranked)} matches were ranked, newest conversations first`;
    case "partial_match": {
      const missing = caveat.missing.map((word) => `"${word}"`).join(", ");
      const lacking =
        ["contain some of them", `do not contain ${missing}`][caveat.missing.length] ?? `lack some of ${missing}`;
      return `nothing contains all of these words; the matches shown ${lacking}`;
    }
    case "files": {
      const inside = surface === "flags" ? "pass --scope files" : "set scope to files";
      return `only the descriptions of ${plural(caveat.files, "large file")} were searched; ${inside} to search their contents`;
    }
    case "unreadable":
      return `${plural(caveat.files, "file")} could not be read, so matches may be missing`;
    case "unindexed":
      return `the search index is still being built: ${plural(caveat.rows, "row")} not indexed yet`;
  }
}

/** The time of the newest message within the reach; null if there is none. */
export async function lastSaidAt(store: Store, reach: Reach): Promise<Timestamp | null> {
  const times = (await conversationsWithin(store, reach)).flatMap(({ lastMessageAt }) => lastMessageAt ?? []);
  return times.toSorted().at(-1) ?? null;
}
