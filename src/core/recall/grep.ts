/** Searches stored messages, summaries and files: checks the request and describes what the search left out. */

import { LcmError } from "../base/errors.ts";
import type { SearchCaveat, SearchLimits, SearchRequest, SearchResult, Store } from "../model/store.ts";
import type { Manner } from "./passages/passages.ts";
import { conversationsWithin, endWords, type Reach } from "./scope.ts";
import { parseTimestamp, type Timestamp } from "../base/time.ts";
import type { MessageId } from "../model/types.ts";
import type { BeyondEnd } from "./span.ts";
import { formatCount, plural } from "../base/format.ts";

export interface GrepRequest {
  /** Empty to list messages, if something else narrows the search. */
  readonly pattern: string;
  /** The same question in other words, up to 5; only for words. */
  readonly also?: readonly string[];
  /** Without it the pattern is words, or a regular expression if it is clearly one. */
  readonly mode?: SearchRequest["mode"];
  readonly scope?: SearchRequest["scope"];
  readonly reach: Reach;
  /** Any time that `parseTimestamp` reads; `since` is inclusive, `before` exclusive. */
  readonly since?: string;
  readonly before?: string;
  readonly roles?: SearchRequest["roles"];
  /** Only messages after and before these; `resolveSpan` finds them. */
  readonly afterId?: MessageId;
  readonly beforeId?: MessageId;
  /** What `resolveSpan` says of a bound that is beyond the end of its conversation. */
  readonly beyond?: BeyondEnd;
  readonly sort?: SearchRequest["sort"];
  readonly limit?: number;
}

export interface GrepResult extends SearchResult {
  /** How the pattern was searched for in the end. */
  readonly mode: SearchRequest["mode"];
}

/** How matches are shown: the best first, or by time if that was asked for or is all there is to go by. */
export function mannerOf({ pattern, sort }: Pick<GrepRequest, "pattern" | "sort">, mode: GrepResult["mode"]): Manner {
  const isList = pattern.trim() === "";
  if (!isList && (sort === "hybrid" || sort === "relevance" || (sort === undefined && mode === "full_text")))
    return "ranked";
  return isList || sort !== undefined ? "listed" : "exact";
}

const limitDefault = 50;
const limitMax = 200;

/** Messages with any text. */
const anything = String.raw`\S`;

export async function grep(store: Store, request: GrepRequest, limits?: SearchLimits): Promise<GrepResult> {
  const result = await search(store, request, limits);
  if (request.beyond === undefined) return result;
  return { ...result, caveats: [{ kind: "beyond_end", ...request.beyond }, ...result.caveats] };
}

async function search(store: Store, request: GrepRequest, limits?: SearchLimits): Promise<GrepResult> {
  const asked = checked(request);
  if (request.pattern.trim() === "") {
    const sort = request.sort === "oldest" ? "oldest" : "recency";
    const listed = { ...asked, pattern: anything, scope: "messages", mode: "regex", sort } as const;
    const { hits, caveats } = await store.search(listed, limits);
    return { hits, caveats: caveats.filter(({ kind }) => kind !== "files"), mode: "regex" };
  }
  const byWords = async (pattern: string): Promise<GrepResult> => ({
    ...(await store.search({ ...asked, pattern, mode: "full_text", sort: request.sort ?? "hybrid" }, limits)),
    mode: "full_text",
  });
  const { also = [] } = request;
  // Wordings are words, so the pattern is too unless the caller says otherwise; the store refuses that combination.
  const isRegex =
    request.mode === undefined ? also.length === 0 && isClearlyRegex(request.pattern) : request.mode === "regex";
  if (!isRegex) return await byWords(request.pattern);

  const mode = "regex";
  const exact = {
    ...(await store.search({ ...asked, mode, sort: request.sort ?? "recency" }, limits)),
    mode,
  } as const;
  const words = wordsIn(request.pattern);
  const isFinal = request.mode !== undefined || words === "" || exact.hits.length > 0;
  if (isFinal || exact.caveats.some(({ kind }) => kind === "time")) return exact;
  const { caveats, ...found } = await byWords(words);
  return { ...found, caveats: [{ kind: "as_words", words }, ...caveats] };
}

function checked(request: GrepRequest): Omit<SearchRequest, "mode" | "sort"> {
  const limit = request.limit ?? limitDefault;
  if (!Number.isInteger(limit) || limit < 1 || limit > limitMax) {
    throw new LcmError("invalid", `limit is ${limit}, but must be a whole number from 1 to ${limitMax}`, {
      hint: "to see more, narrow the search with since, before or a longer pattern",
    });
  }
  const { roles, afterId, beforeId } = request;
  const isNarrow = [roles, afterId, beforeId, request.since, request.before].some((bound) => bound !== undefined);
  if (request.pattern.trim() === "" && !isNarrow) {
    throw new LcmError("invalid", "the pattern is empty", {
      hint: "pass at least one word, or a role or a time to list messages",
    });
  }
  const isOfMessages = roles !== undefined || afterId !== undefined || beforeId !== undefined;
  if (isOfMessages && (request.scope === "summaries" || request.scope === "files")) {
    throw new LcmError("invalid", `role and message ids select messages, not ${request.scope}`, {
      hint: "leave out scope",
    });
  }
  const since = timeBound("since", request.since);
  const before = timeBound("before", request.before);
  const { conversations } = request.reach;
  return {
    pattern: request.pattern,
    ...(request.also === undefined ? {} : { also: request.also }),
    scope: isOfMessages ? "messages" : (request.scope ?? "both"),
    limit,
    ...(roles === undefined ? {} : { roles }),
    ...(afterId === undefined ? {} : { afterId }),
    ...(beforeId === undefined ? {} : { beforeId }),
    ...(conversations === null ? {} : { conversations }),
    ...(since === null ? {} : { since }),
    ...(before === null ? {} : { before }),
  };
}

/** What people write in a regular expression and hardly ever in words, code, paths or log lines. */
const regexSigns: readonly RegExp[] = [
  /\\[.^$*+?()[\]{}|]|\\[bdsw](?![a-z])|(?<![\p{L}:\\])\\[bdsw]/iu, // \(, \d+, \bword, but not C:\data
  /\.[*+]/, // .*
  /\[\^?(?:a-z|A-Z|0-9)+[^\s\]]*\]|\[(\p{L})(?!\1)\p{L}\](?=\p{L})/u, // [a-z], [Ee]rror
  /[\])][*+]|\)\?\S/, // […]+, (…)?
  /\(\?(?:[:=!]|<[=!\w])/, // (?:…)
  /[^\s|]\|[^\s|]/, // one|other
  /[\w)\]]\{\d+,?\d*\}/, // \w{2,3}
  /^\^[^\s^]|[\p{L})]\$$/u, // ^start, end$
];

function isClearlyRegex(pattern: string): boolean {
  if (!regexSigns.some((sign) => sign.test(pattern))) return false;
  try {
    return new RegExp(pattern, "m") instanceof RegExp;
  } catch {
    return false; // Words then: nothing is lost.
  }
}

/** The words of a regular expression, without its syntax. */
const wordsIn = (pattern: string): string =>
  pattern
    .replace(/\\(?:[pPu]\{[^}]*\}|[a-zA-Z])|\[(?:\\.|[^\]\\])*\]|\{[\d,]*\}|\(\?(?:<\w+>|<?[:=!])/g, " ")
    .replace(/[^\p{L}\p{N}\p{M}\p{Emoji_Presentation}_'’-]+/gu, " ")
    .trim();

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
      return `no match contains ${["all of these words", missing][caveat.missing.length] ?? `all of ${missing}`}`;
    }
    case "files": {
      const inside = surface === "flags" ? "pass --scope files" : "set scope to files";
      return `only the descriptions of ${plural(caveat.files, "large file")} were searched; ${inside} to search ${caveat.files === 1 ? "its" : "their"} contents`;
    }
    case "corrected": {
      const pairs = caveat.words.map(({ from, to }) => ({ from: `"${from}"`, to: `"${to}"` }));
      return `no match for ${pairs.map(({ from }) => from).join(", ")}; showing ${pairs.map(({ to }) => to).join(", ")}`;
    }
    case "beyond_end":
      return endWords(caveat.last);
    case "as_words":
      return `nothing matches this as a regular expression; searched for the words "${caveat.words}" instead`;
    case "unreadable":
      return `${plural(caveat.files, "file")} could not be read, so matches may be missing`;
    case "no_meaning":
      return `searched by words alone: ${caveat.reason}`;
    case "unembedded": {
      const remedy = surface === "flags" ? "; run `lcm index` to embed them" : "";
      return `${formatCount(caveat.messages)} of ${plural(caveat.of, "message")} have no vector yet and were searched by words alone${remedy}`;
    }
    case "unindexed":
      return `the search index is still being built: ${plural(caveat.rows, "row")} not indexed yet`;
  }
}

/** The time of the newest message within the reach; null if there is none. */
export async function lastSaidAt(store: Store, reach: Reach): Promise<Timestamp | null> {
  const times = (await conversationsWithin(store, reach)).flatMap(({ lastMessageAt }) => lastMessageAt ?? []);
  return times.toSorted().at(-1) ?? null;
}
