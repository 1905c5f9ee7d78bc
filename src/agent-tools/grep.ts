/** The tool `lcm_grep`: searches everything stored. "No matches" means that everything was searched. */

import type { Lcm } from "../core/lcm.ts";
import { isSummaryId, messageName, type ConversationId, type MessageId } from "../core/model/types.ts";
import type { SearchCaveat, SearchHit } from "../core/model/store.ts";
import { queryTerms } from "../core/recall/expand.ts";
import { caveatSentence, mannerOf, type GrepRequest, type GrepResult } from "../core/recall/grep.ts";
import { chargesOf, readGranted, type GrantedRead } from "../core/recall/grants.ts";
import { conversationsWithin, lastMessage, reachOf, type Reach } from "../core/recall/scope.ts";
import { quote } from "../core/base/excerpt.ts";
import { estimateTokens, sumTokens } from "../core/base/tokens.ts";
import { after, allConversations, also, before, conversationId, role, since, textOf, tokenCapOf } from "./arguments.ts";
import type { ArgumentsOf, Parameters } from "./arguments.ts";
import { resolveSpan } from "../core/recall/span.ts";
import { heading, headingTokensOf, passagesText, quoteName } from "./text.ts";
import { defineTool, withinGrant, type ToolContext, type ToolResult } from "./define.ts";
import type { Read } from "../core/recall/ask-types.ts";
import type { JsonObject } from "../core/base/json.ts";
import { formatCount, plural } from "../core/base/format.ts";
import { formatRange } from "../core/base/time.ts";
import type { Manner, Passage, PassageBudget } from "../core/recall/passages/passages.ts";
import { readPassages, readSummaryParts } from "../core/recall/passages/read-passages.ts";

const parameters = {
  type: "object",
  required: [],
  properties: {
    pattern: {
      type: "string",
      description:
        'What to search for: words and "quoted phrases", or a regular expression (case-insensitive unless it contains ' +
        "capitals). Leave it empty to list messages by role, time or place.",
    },
    also,
    mode: {
      type: "string",
      enum: ["regex", "full_text"],
      description:
        "Use full_text to find words in any of their forms, ranked, or regex to match the pattern exactly. Default: " +
        "full_text, or regex if the pattern is clearly a regular expression; if that matches nothing, its words.",
    },
    scope: {
      type: "string",
      enum: ["messages", "summaries", "both", "files"],
      default: "both",
      description: "Where to search: messages, summaries, both of these, or files (large texts moved out of messages).",
    },
    conversationId,
    allConversations,
    role,
    since,
    after,
    before,
    around: textOf("Include only the 25 messages on either side of this one: msg_1-42."),
    limit: {
      type: "integer",
      minimum: 1,
      maximum: 200,
      description:
        "Return at most this many matches: 3 for long excerpts, more for short ones. Alone, list the newest messages.",
    },
    sort: {
      type: "string",
      enum: ["recency", "oldest", "relevance", "hybrid"],
      description:
        "How to order matches: recency for the last time something was said, oldest for the first time. Default: " +
        "hybrid (relevance, favouring newer ones) for full_text, otherwise recency.",
    },
    tokenCap: {
      ...tokenCapOf("Limit the result to this many tokens. Default: the setting searchTokens (450)."),
      minimum: 200,
    },
  },
} as const satisfies Parameters;

export const grepTool = defineTool({
  name: "lcm_grep",
  label: "Search the conversation",
  description:
    "Search everything said and done, including what is no longer in your context; pass 2 or 3 other wordings in also. " +
    "Returns the passages that match, each with id, speaker and time, beside the call or question they belong to; " +
    'lcm_describe reads more around an id. With sort: "oldest" and one distinctive word it lists how a value changed, a ' +
    'line each. Without pattern it lists messages: { role: "user", since: "tuesday" } for what the user asked then, ' +
    '{ before: "msg_1-42", limit: 3 } for the last things before a message.',
  audience: "both",
  example: {
    pattern: "why did the database migration fail",
    also: ["migrate schema error rollback", "lock timeout on orders"],
  },
  parameters,
  async run(args, context) {
    const { lcm, grant } = context;
    const { tokenCap = lcm.settings.searchTokens, ...asked } = args;
    if (grant === undefined)
      return (await searchWithin(asked, await reachOf(lcm.store, context.reader, args), tokenCap, context)).value;
    return await readGranted(lcm.store, grant, tokenCap, async (reach, tokensMax) =>
      searchWithin(asked, withinGrant(reach, args), tokensMax, context),
    );
  },
});

type Asked = Omit<ArgumentsOf<typeof parameters>, "tokenCap">;

async function searchWithin(
  asked: Asked,
  reach: Reach,
  tokenCap: number,
  context: ToolContext,
): Promise<GrantedRead<Omit<ToolResult, "isError">>> {
  const { lcm, signal } = context;
  const span = await resolveSpan(lcm, asked, { reach, zone: "UTC", prefix: "" });
  const timeoutMs = lcm.settings.searchTimeoutSeconds * 1_000;
  const { also, pattern = also?.[0] ?? "", mode, scope, sort, limit = matchesWithin(tokenCap) } = asked;
  const isList = pattern.trim() === "";
  const optional = { ...(also && { also }), ...(mode && { mode }), ...(scope && { scope }), ...(sort && { sort }) };
  // A number alone asks for the newest messages.
  const from = isList && asked.limit !== undefined ? { afterId: 0 as MessageId } : {};
  const found = await lcm.grep(
    { pattern, ...optional, limit, ...from, ...span },
    { timeoutMs, ...(signal === undefined ? {} : { signal }) },
  );
  // Summaries beside messages are only named; alone they are what was found.
  const result = found.hits.length > 0 ? found : { ...found, hits: found.summaries ?? [], summaries: [] };
  if (result.hits.length === 0) {
    const caveats = result.caveats.map((caveat) => caveatSentence(caveat, "arguments"));
    const lines = [
      await nothingFound(lcm, span.reach, { ...asked, ...span }, result.caveats),
      ...caveats,
      ...(isList ? [] : otherWays(result, span.reach, context)),
    ];
    const details = detailsOf(result, nothingShown, caveats);
    return { value: { text: sentences(lines), details, read: readOf(nothingShown) }, charges: new Map() };
  }
  const order = sort === undefined || (isList && sort !== "oldest") ? defaultOrder(result) : sort;
  const kind = mode === undefined && result.mode === "regex" && !isList ? " of this regular expression" : "";
  const manner = mannerOf({ pattern, ...optional }, result.mode);
  const isReworded = also !== undefined;
  // Whoever asks for the last time wants to read it first; what only lists messages is read as it was said.
  const isNewestFirst = sort === "recency" && !isList;
  const isLimitAsked = asked.limit !== undefined;
  const frame = { kind, order, manner, isNewestFirst, tokenCap, isLimitAsked, isReworded } as const;
  const longest = frameOf(result, longestShown, frame, context);
  const reserved =
    estimateTokens(sentences([...longest.first, longest.head, ...longest.notes])) + (isList ? endTokens : 0);
  const words = result.mode === "full_text" ? queryTerms([pattern, ...(also ?? [])].join(" ")) : [];
  const shown = await showHits(result, { tokens: tokenCap - reserved, manner, isNewestFirst, words }, context);
  const { first, head, notes } = frameOf(result, shown, frame, context);
  const end = isList ? await endLine(lcm, span.reach, shown.passages) : [];
  const text = [sentences([...first, head]), ...shown.blocks, ...end, sentences(notes)]
    .filter((part) => part !== "")
    .join("\n");
  const value = { text, details: detailsOf(result, shown, [...first, ...notes]), read: readOf(shown) };
  return { value, charges: chargesOf(chargedFor(shown)) };
}

const chargedFor = ({ passages, parts }: ShownHits) =>
  [...passages, ...parts].map(({ conversation, text }) => ({ conversation, tokens: estimateTokens(text) }));

/** Summaries that are only named were not read. */
const readOf = (shown: ShownHits): Read => ({
  summaries: shown.parts.map(({ id }) => id).filter(isSummaryId),
  messages: shown.passages.map(({ id }) => id),
  tokens: sumTokens(chargedFor(shown)),
});

const endTokens = 24;

/** Says so if a list ends with the last message of its conversation, and if there are others. */
async function endLine({ store }: Lcm, reach: Reach, passages: readonly Passage[]): Promise<readonly string[]> {
  const shown = passages.at(-1);
  if (shown === undefined || (await lastMessage(store, shown.conversation))?.id !== shown.id) return [];
  const { length } = await conversationsWithin(store, reach);
  const others = length > 1 ? `; conversationId names another of ${formatCount(length)}` : "";
  return [`(end of conversation ${shown.conversation}${others})`];
}

const defaultOrder = ({ mode }: GrepResult) => (mode === "full_text" ? "hybrid" : "recency");

/** As many matches as could be shown in short; more are not asked for. */
const matchesWithin = (tokenCap: number): number => Math.min(200, Math.max(10, Math.ceil(tokenCap / 20)));

/** What is shown of a result: blocks of text, and which hits they show. */
interface ShownHits {
  readonly blocks: readonly string[];
  readonly ids: ReadonlySet<SearchHit["id"]>;
  readonly passages: readonly Passage[];
  /** Parts of summaries and lines of files. */
  readonly parts: readonly { readonly id: string; readonly conversation: ConversationId; readonly text: string }[];
}

const nothingShown: ShownHits = { blocks: [], ids: new Set(), passages: [], parts: [] };

/** Messages as passages; summaries beside them are only named, since they repeat what messages say. */
async function showHits(
  { hits, summaries: beside = [] }: GrepResult,
  { tokens, ...order }: Pick<PassageBudget, "tokens" | "manner" | "isNewestFirst" | "words">,
  context: ToolContext,
): Promise<ShownHits> {
  const messages = hits.filter(({ kind }) => kind === "message");
  const summaries = [...hits.filter((hit) => hit.kind === "summary"), ...beside];
  const files = hits.filter((hit) => hit.kind === "file");
  if (messages.length === 0)
    return summaries.length === 0 ? showFiles(files, tokens, context) : await showSummaries(summaries, tokens, context);
  const named = summaries.slice(0, tokens < manyTokens ? 1 : summariesNamed);
  const line = named.length === 0 ? "" : summariesLine(named, context);
  const left = tokens - (line === "" ? 0 : estimateTokens(line) + 1);
  const { store } = context.lcm;
  const budget = { tokens: left, headingTokens: headingTokensOf(hits), ...order };
  const textOfAll = (groups: readonly (readonly Passage[])[]): string => passagesText(context, groups.flat());
  const groups = await readPassages(store, messages, budget, (each) => estimateTokens(textOfAll(each)) + 1);
  const passages = groups.flat();
  return {
    blocks: [textOfAll(groups), ...(line === "" ? [] : [line])],
    ids: new Set([
      ...passages.flatMap((each) => (each.context ? [] : [each.id, ...each.alike])),
      ...named.map(({ id }) => id),
    ]),
    passages,
    parts: [],
  };
}

const manyTokens = 1_000;
const summariesNamed = 3;
type SummaryHit = Extract<SearchHit, { readonly kind: "summary" }>;
type FileHit = Extract<SearchHit, { readonly kind: "file" }>;

function summariesLine(named: readonly SummaryHit[], { zone }: ToolContext): string {
  const each = named.map(({ id, earliestAt, at }) => `${id} (${formatRange(earliestAt ?? at, at, zone)})`);
  return `Summaries that match: ${each.join(", ")}.`;
}

async function showSummaries(hits: readonly SummaryHit[], tokens: number, context: ToolContext): Promise<ShownHits> {
  const parts = await readSummaryParts(context.lcm.store, hits, {
    tokens,
    headingTokens: estimateTokens(hits.map((hit) => heading(context, summaryHead(hit))).toSorted(byLength)[0] ?? ""),
  });
  return {
    ...nothingShown,
    blocks: parts.map(({ hit, text }) => `${heading(context, summaryHead(hit))}\n${quote(text)}`),
    ids: new Set(parts.map(({ hit }) => hit.id)),
    parts: parts.map(({ hit: { id, conversation }, text }) => ({ id, conversation, text })),
  };
}

const byLength = (one: string, other: string): number => other.length - one.length;

const summaryHead = ({ id, depth, earliestAt, at, conversation }: SummaryHit) => ({
  id,
  what: [`summary, depth ${depth}`],
  from: earliestAt ?? at,
  to: at,
  conversation,
});

function showFiles(hits: readonly FileHit[], tokens: number, context: ToolContext): ShownHits {
  const blocks = hits.map(({ id, line, name, at: from, conversation, snippet }) => {
    const what = name === null ? [] : [quoteName(name)];
    return `${heading(context, { id: `${id} line ${line}`, what, from, conversation })}\n${quote(snippet)}`;
  });
  let left = tokens;
  const cut = blocks.findIndex((block) => (left -= estimateTokens(block) + 1) < 0);
  const fitting = cut < 0 ? blocks.length : cut;
  return {
    ...nothingShown,
    blocks: blocks.slice(0, fitting),
    ids: new Set(hits.slice(0, fitting).map(({ id }) => id)),
    parts: hits.slice(0, fitting).map(({ id, conversation, snippet: text }) => ({ id, conversation, text })),
  };
}

interface Frame {
  /** What casts doubt on all matches, to be read before them. */
  readonly first: readonly string[];
  readonly head: string;
  readonly notes: readonly string[];
}

interface Framing {
  readonly kind: string;
  readonly order: keyof typeof orders;
  readonly manner: Manner;
  readonly isNewestFirst: boolean;
  readonly tokenCap: number;
  readonly isLimitAsked: boolean;
  readonly isReworded: boolean;
}

/** Whatever is shown takes at most as many words around it as this. */
const longestShown: ShownHits = {
  ...nothingShown,
  ids: new Set(Array.from({ length: 188 }, (_, at) => at as MessageId)),
};
/** With fewer matches than this, where else to look matters. */
const fewMatches = 3;

/** The lines around the matches: how many there are and in which order, and what was left out. */
function frameOf(result: GrepResult, shown: ShownHits, framing: Framing, { zone = "UTC" }: ToolContext): Frame {
  const { hits, caveats } = result;
  const { kind, order, manner, isNewestFirst, tokenCap, isLimitAsked } = framing;
  const count = shown === longestShown ? shown.ids.size : hits.filter(({ id }) => shown.ids.has(id)).length;
  const isLimited = caveats.some((caveat) => caveat.kind === "limit");
  const isRanked = manner === "ranked";
  const all = isLimited ? `more than ${formatCount(hits.length)}` : formatCount(hits.length);
  const matches = (of: number): string => (of === 1 ? `match${kind}` : `matches${kind}`);
  const isAll = count >= hits.length && !isLimited;
  const isMixed = new Set(shown.passages.map(({ conversation }) => conversation)).size > 1;
  const byTime = isNewestFirst ? "newest first" : manner === "exact" && isMixed ? "by conversation" : "oldest first";
  const sorted = isRanked ? `${orders[order]} first` : byTime;
  const isAsked = isRanked || (isLimitAsked && count === hits.length);
  const some = `${isAsked ? "" : `of ${all} `}${matches(isAsked ? count : 2)}${isRanked ? "" : `, ${sorted}`}`;
  const head = isAll
    ? `${plural(hits.length, `match${kind}`, `matches${kind}`)}, ${sorted}`
    : `the ${formatCount(count)} ${orders[order]} ${some}`;
  const isCut = count < hits.length && (count === 0 || isLimitAsked || !isRanked);
  const next = isRanked || isAll ? null : nextBound(shown, order);
  const room =
    count === 0 ? `tokenCap ${tokenCap} has no room for any of them: raise it` : "raise tokenCap to see more";
  const told = caveats.filter((caveat) => isWorthTelling(caveat, result, framing, shown));
  const rest = next === null ? (isCut ? [room] : []) : [next];
  const isLines = shown === longestShown ? !isRanked : shown.passages.some((each) => each.isLines && !each.isWhole);
  const words = (isFirst: boolean): readonly string[] =>
    told.filter(({ kind }) => doubts.has(kind) === isFirst).map((caveat) => caveatSentence(caveat, "arguments"));
  return {
    first: words(true),
    head: `${head}${isLines ? ", matching lines only" : ""}; times in ${zone}:`,
    notes: [...rest, ...words(false)],
  };
}

const doubts: ReadonlySet<SearchCaveat["kind"]> = new Set(["partial_match", "corrected", "as_words"]);

/** How to go on with a list: only within one conversation is it known what comes next. */
function nextBound({ passages, ...shown }: ShownHits, order: keyof typeof orders): string | null {
  if (shown.ids === longestShown.ids) return 'next: before: "msg_100000-100000"';
  const found = passages.filter(({ context }) => !context);
  if (found.length === 0 || new Set(found.map(({ conversation }) => conversation)).size > 1) return null;
  const ids = found.map(({ id }) => id).toSorted((one, other) => one - other);
  const [first, last] = [ids[0], ids.at(-1)];
  if (first === undefined || last === undefined) return null;
  return order === "oldest" ? `next: after: "${messageName(last)}"` : `next: before: "${messageName(first)}"`;
}

/** That there are more matches goes without saying; files matter if little was found, words if nothing else was tried. */
function isWorthTelling(caveat: SearchCaveat, { hits }: GrepResult, framing: Framing, shown: ShownHits): boolean {
  switch (caveat.kind) {
    case "limit":
      return false;
    case "files":
      return hits.length < fewMatches;
    case "partial_match":
      return framing.manner === "ranked" ? !framing.isReworded && caveat.missing.length > 0 : true;
    case "corrected":
      return !caveat.words.every(({ from }) => shown.passages.some(({ text }) => text.toLowerCase().includes(from)));
    default:
      return true;
  }
}

const orders = { recency: "newest", oldest: "oldest", relevance: "most relevant", hybrid: "best" } as const;

const sentences = (lines: readonly string[]): string =>
  lines.map((line) => `${line.charAt(0).toUpperCase()}${line.slice(1)}${/[.:?]$/.test(line) ? "" : "."}`).join("\n");

type Searched = Pick<GrepRequest, "scope" | "since" | "before" | "afterId" | "beforeId" | "roles">;

/** Whether part of the data was not searched, so an empty result proves nothing. */
export const isUnfinished = ({ kind }: SearchCaveat): boolean =>
  kind === "time" || kind === "unindexed" || kind === "unreadable";

async function nothingFound(
  { store }: Lcm,
  { conversations }: Reach,
  searched: Searched,
  caveats: readonly SearchCaveat[],
): Promise<string> {
  if (caveats.some((caveat) => isUnfinished(caveat) || caveat.kind === "newest_ranked"))
    return "No match found, but not everything was searched";
  const { scope = "both", since, before, afterId, beforeId, roles } = searched;
  const stored = await store.conversations({ includeHidden: conversations !== null });
  const within = conversations === null ? stored : stored.filter(({ id }) => conversations.includes(id));
  const sum = (of: "messages" | "summaries"): number => within.reduce((total, { totals }) => total + totals[of], 0);
  const kinds = {
    messages: plural(sum("messages"), "message"),
    summaries: plural(sum("summaries"), "summary", "summaries"),
    both: `${plural(sum("messages"), "message")} and ${plural(sum("summaries"), "summary", "summaries")}`,
    files: "the stored files",
  } as const;
  const isTimed = [since, before, afterId, beforeId].some((bound) => bound !== undefined);
  const time = isTimed ? ", limited to the given time range" : "";
  const only = roles === undefined ? "" : `, only of the role ${roles.join(" or ")}`;
  return `No matches in ${kinds[scope]} of ${plural(conversations?.length ?? within.length, "conversation")}${only}${time}`;
}

const searchedOnly = { family: "session was", project: "project's sessions were" } as const;

function otherWays({ mode }: GrepResult, { kind }: Reach, { reader }: ToolContext): readonly string[] {
  return [
    ...(mode === "regex"
      ? ["The pattern was matched exactly; set mode to full_text to search for its words in any order"]
      : []),
    ...((kind === "family" || kind === "project") && reader.policy !== "own"
      ? [`Only this ${searchedOnly[kind]} searched; set allConversations to true to search other sessions`]
      : []),
  ];
}

function detailsOf(
  { hits, summaries = [], caveats, mode }: GrepResult,
  { ids, passages }: ShownHits,
  notes: readonly string[],
): JsonObject {
  const shown = hits.filter(({ id }) => ids.has(id));
  const isCut = caveats.some((caveat) => caveat.kind === "limit" || isUnfinished(caveat));
  return {
    passages: passages.map(({ id, conversation, role, at, text, context, isWhole }) => ({
      id: messageName(id),
      conversationId: conversation,
      role,
      at,
      text,
      context,
      isWhole,
    })),
    matches: [...shown, ...summaries.filter(({ id }) => ids.has(id))].map(matchOf),
    total: hits.length,
    mode,
    caveats: notes,
    truncated: isCut || shown.length < hits.length,
  };
}

function matchOf(hit: SearchHit): JsonObject {
  const { kind: type, snippet, conversation: conversationId, at: createdAt } = hit;
  const common = { type, snippet, conversationId, createdAt };
  switch (hit.kind) {
    case "message":
      return { id: messageName(hit.id), ...common, role: hit.role, seq: hit.seq };
    case "summary":
      return {
        id: hit.id,
        ...common,
        earliestAt: hit.earliestAt,
        summaryId: hit.id,
        depth: hit.depth,
        kind: hit.depth === 0 ? "leaf" : "condensed",
      };
    case "file":
      return { id: hit.id, ...common, fileName: hit.name, line: hit.line };
  }
}
