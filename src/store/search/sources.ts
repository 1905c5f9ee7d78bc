/** What can be searched: the rows of messages and summaries, read by id, by conversation and by the request's filter. */

import { idIn, roles, type ConversationId, type MessageId, type Role, type SummaryId } from "../../core/model/types.ts";
import type { SearchHit, SearchRequest, SearchResult, SummaryHit } from "../../core/model/store.ts";
import { asConversation, asMessage, asSummary } from "../rows.ts";
import { all, count, counts, int, one, sql, statement, text, textOrNull } from "../script.ts";
import type { Row, Script, Statement } from "../script.ts";
import { callIdFields, toolNameFields } from "../../core/messages/dialects.ts";
import { excerpt } from "../../core/base/excerpt.ts";
import { snippetWidth } from "./limits.ts";
import type { TextRange } from "./rank.ts";
import type { Pattern } from "./regex.ts";
import type { Span } from "./spans.ts";
import type { Timestamp } from "../../core/base/time.ts";

export type Corpus = ReturnType<typeof createCorpus>;
export type CorpusName = "messages" | "summaries";

/** Sort before and after every time. */
const earliest = "";
const latest = "~";

/** Conversations that may have rows outside the index. The partial index needs exactly this condition. */
export const isPending = "unindexed = 1";

const inList = "IN (SELECT value FROM numbers_in(?))";
/** Whether a row's conversation is searched; takes the values of `scoping`. */
export const inScope = `(? = '[]' OR conversation_id NOT ${inList}) AND (? IS NULL OR conversation_id ${inList})`;
export const scoping = ({ hidden, only }: Filter) => [hidden, hidden, only, only] as const;

const inEnvelope = (fields: readonly string[]): string =>
  `coalesce(${fields.map((field) => `json_word(envelope, '$.${field}')`).join(", ")})`;

/** Results without the name of their tool are recognised by their call, which is at most this many rows before. */
const callWithin = 32;
const isOwnResult = `EXISTS (SELECT 1 FROM message_parts AS call
    WHERE call.message_id BETWEEN messages.message_id - ${callWithin} AND messages.message_id - 1
      AND is_own_tool(call.tool_name) AND call.tool_call_id IN (
        SELECT result.tool_call_id FROM message_parts AS result WHERE result.message_id = messages.message_id
        UNION ALL SELECT ${inEnvelope(callIdFields())}))`;

/** Results of our own tools name ids, so most other rows need no lookup, and those without `_` not even a closer look. */
const named = ["sum_", "msg_", "file_"].map((start) => `instr(content, '${start}')`).join(" OR ");
const namesIds = `instr(content, '_') AND (${named})`;

const wordsOfMessage = "SELECT w.words FROM search_words AS w WHERE w.message_id = messages.message_id";

const messageColumns = `message_id AS id, conversation_id, seq, role, content, created_at AS at,
  json_word(envelope, '$.name') AS name,
  (${wordsOfMessage}) AS words,
  CASE WHEN role = 'tool' AND is_own_tool(${inEnvelope(toolNameFields())}) THEN TRUE
    WHEN role IN ('tool', 'user') AND ${namesIds} THEN ${isOwnResult} END AS is_recalled,
  CASE WHEN role = 'assistant' AND instr(content, 'lcm_')
    THEN (SELECT json_group_array(json_array(part.text_length, CASE WHEN is_own_tool(part.tool_name) THEN 1 ELSE 0 END) ORDER BY part.ordinal)
      FROM message_parts AS part WHERE part.message_id = messages.message_id AND part.text_length IS NOT NULL)
    END AS pieces`;

export const messages = createCorpus({
  name: "messages",
  id: "message_id",
  newest: "next_seq - 1",
  indexed: "indexed_seq",
  total: "message_count",
  columns: messageColumns,
  earliest: "created_at",
  latest: "created_at",
  isContent: "aside IS DISTINCT FROM 'note'",
  isAsked: `message_id > ? AND message_id < ? AND (? IS NULL OR role IN (SELECT value FROM texts_in(?)))`,
  bound: `coalesce(last_message_at, '${latest}')`,
  latestFirst: "ORDER BY message_id DESC LIMIT 1",
});

/** A summary has the time of the messages below it. */
export const summaries = createCorpus({
  name: "summaries",
  id: "search_id",
  newest: "last_summary",
  indexed: "indexed_summary",
  total: "summary_count",
  columns: `search_id AS id, summary_id, conversation_id, depth, content, earliest_at,
  coalesce(latest_at, created_at) AS at`,
  earliest: "coalesce(earliest_at, created_at)",
  latest: "coalesce(latest_at, created_at)",
  // A carried summary repeats its original. It is left out where the original is searched too: in its family.
  isContent: `(carried_from IS NULL OR NOT EXISTS (SELECT 1 FROM summaries AS origin
      JOIN conversations AS there ON there.conversation_id = origin.conversation_id AND there.hidden = 0
      JOIN conversations AS here ON here.conversation_id = summaries.conversation_id
    WHERE origin.summary_id = summaries.carried_from AND there.agent_id IS NOT DISTINCT FROM here.agent_id
      AND there.session_key IS NOT DISTINCT FROM here.session_key
      AND (here.session_key IS NOT NULL OR there.session_id = here.session_id)))`,
  // Summaries are not searched where messages are named.
  isAsked: "? < ? AND ? IS NULL AND ? IS NULL",
  bound: `'${latest}'`,
  latestFirst: "",
});

interface CorpusNames {
  readonly name: CorpusName;
  readonly id: string;
  /** Where `conversations` records the number of the newest row and of the last indexed one. */
  readonly newest: string;
  readonly indexed: string;
  readonly total: string;
  readonly columns: string;
  readonly earliest: string;
  readonly latest: string;
  readonly isContent: string;
  /** Takes the two ids between which messages are searched, and their roles twice. */
  readonly isAsked: string;
  /** No row of a conversation is later; unknown for summaries, which may be carried or copied. */
  readonly bound: string;
  /** Finds the latest row of a conversation without reading the others, where that is possible. */
  readonly latestFirst: string;
}

/** Values for `isAllowed` of a corpus. */
const allowing = (filter: Filter) => {
  const { since, before, afterId, beforeId, roles } = filter;
  return [since, before, afterId, beforeId, roles, roles, ...scoping(filter)] as const;
};

function createCorpus(names: CorpusNames) {
  const { name, id, columns } = names;
  // Cheap and selective conditions come first.
  const isAllowed = `${names.latest} >= ? AND ${names.earliest} < ? AND ${names.isAsked} AND ${names.isContent} AND ${inScope}`;

  const countIn = `SELECT sum(${names.total}) FROM conversations WHERE conversation_id ${inList}`;
  const rowsFrom = `SELECT sum(CASE WHEN c.conversation_id > it.conversation_id THEN c.${names.total}
      ELSE c.${names.newest} - it.number + 1 END)
    FROM (SELECT conversation_id, ${id} & 16777215 AS number FROM ${name} WHERE ${id} = ?) AS it
      JOIN conversations AS c ON c.conversation_id >= it.conversation_id`;
  const sift = `SELECT json_group_array(asked.value) AS ids
    FROM numbers_in(?) AS asked CROSS JOIN ${name} ON ${id} = asked.value WHERE ${isAllowed}`;
  const rows = `SELECT ${columns} FROM ${name} WHERE ${id} ${inList} AND ${isAllowed} ORDER BY ${id} DESC`;
  const behind = `SELECT json_group_array(conversation_id) AS ids FROM conversations AS c
    WHERE coalesce(last_message_at, '${latest}') > ? AND ${inScope}
      AND EXISTS (SELECT 1 FROM (SELECT ${names.latest} AS at FROM ${name}
        WHERE ${id} > c.conversation_id << 24 AND ${id} < (c.conversation_id + 1) << 24 AND +${id} < ?
        ${names.latestFirst}) WHERE at > ?)`;
  const spans = (after: string, isAsked: string): string => `SELECT conversation_id, ${after} AS after,
      ${names.newest} AS newest, ${names.bound} AS latest FROM conversations
    WHERE ${isAsked} AND ${after} < ${names.newest} AND ${names.bound} >= ? AND ${inScope}
    ORDER BY last_message_at DESC NULLS LAST, conversation_id DESC`;
  const [whole, unindexed] = [spans("0", "1 = 1"), spans(names.indexed, isPending)];
  const inSpans = `FROM pairs_in(?) AS span CROSS JOIN ${name} ON ${id} BETWEEN span.one AND span.other`;
  const spanned = `SELECT ${columns} ${inSpans} WHERE ${isAllowed} AND may_match(content, ?, ?)`;
  const words = name === "messages" ? `|| coalesce('\n' || (${wordsOfMessage}), '')` : "";
  const toIndex = `SELECT ${id} AS id, content ${words} AS content ${inSpans}`;
  const indexedIn = `SELECT conversation_id FROM ${name} JOIN conversations USING (conversation_id)
    WHERE ${id} = ? AND ${id} & 16777215 <= ${names.indexed}`;
  const setIndexed = `UPDATE conversations SET ${names.indexed} = ? WHERE conversation_id = ?`;
  const spansOf = (asked: readonly Span[]): string =>
    JSON.stringify(
      asked.map(({ conversation, after, newest }) => [idIn(conversation, after + 1), idIn(conversation, newest)]),
    );
  return {
    name,
    indexed: names.indexed,
    /** How many rows these conversations have. */
    countIn: (conversations: string) => count(statement(countIn, [conversations])),
    /** For each id, how many rows have it or a higher one; 0 if no row has it. */
    rowsFrom: (wanted: readonly number[]) => counts(wanted.map((row) => statement(rowsFrom, [row]))),
    /** Those of these ids whose rows pass the filter, in the same order. Reads no text. */
    *sift(wanted: readonly number[], filter: Filter): Script<readonly number[]> {
      const passed = new Set(yield* ids(statement(sift, [JSON.stringify(wanted), ...allowing(filter)])));
      return wanted.filter((row) => passed.has(row));
    },
    /** Rows with these ids, highest first. */
    rows: (wanted: readonly number[], filter: Filter) =>
      all(statement(rows, [JSON.stringify(wanted), ...allowing(filter)]), toSearchedRow),
    /** Conversations that have rows with lower ids that are later than a time. */
    behind: (below: number, time: string, filter: Filter) =>
      ids(statement(behind, [time, ...scoping(filter), below, time])),
    /** Rows by conversation, latest conversation first: all of them, or those that are not indexed. */
    *spans(which: "all" | "unindexed", filter: Filter): Script<readonly Span[]> {
      const found = yield* all(
        statement(which === "all" ? whole : unindexed, [filter.since, ...scoping(filter)]),
        toSpanOf,
      );
      return name === "messages" ? found.flatMap((span) => between(span, filter)) : found;
    },
    /** In no certain order. */
    spanned: (asked: readonly Span[], filter: Filter, { like, literal }: Pick<Pattern, "like" | "literal"> = anyText) =>
      statement(spanned, [spansOf(asked), ...allowing(filter), like, literal]),
    toIndex: (asked: Span) => statement(toIndex, [spansOf([asked])]),
    /** The conversation of a row that should be in the index; 0 for any other row. */
    indexedIn: (row: number) => count(statement(indexedIn, [row])),
    setIndexed: (conversation: number, upTo: number) => statement(setIndexed, [upTo, conversation]),
  };
}

const anyText = { like: "%", literal: "" };

const toSpanOf = (row: Row): Span => ({
  conversation: int(row, "conversation_id"),
  after: int(row, "after"),
  newest: int(row, "newest"),
  latest: text(row, "latest"),
});

/** The part of a span between the messages that were named. */
function between(span: Span, { afterId, beforeId }: Filter): readonly Span[] {
  const { conversation } = span;
  const after = Math.max(span.after, Math.min(afterId - idIn(conversation, 0), span.newest));
  const newest = Math.min(span.newest, beforeId - idIn(conversation, 0) - 1);
  return newest > after ? [{ ...span, after, newest }] : [];
}

/** Messages from one id to another, both included, except notes. */
export const messageRange = (from: number, to: number): Statement =>
  statement(
    `SELECT ${messageColumns} FROM messages WHERE message_id BETWEEN ? AND ? AND aside IS DISTINCT FROM 'note'`,
    [from, to],
  );

/** Turns by conversation and seq, at any time. */
export const turnsAt = (places: readonly (readonly [number, number])[]): Statement =>
  statement(
    `SELECT ${messageColumns} FROM pairs_in(?) AS place
     JOIN messages ON message_id = (place.one << 24) + place.other WHERE aside IS DISTINCT FROM 'note'`,
    [JSON.stringify(places)],
  );

/** Many ids are passed as one JSON text, which takes a tenth of the time of as many rows. */
export const ids = (query: Statement): Script<readonly number[]> =>
  one(query, (row) => JSON.parse(text(row, "ids")) as number[]);

// ── Scope ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Scope {
  readonly corpora: readonly Corpus[];
  readonly filter: Filter;
  /** The conversations to search; empty if all are, or too many to name, or they have most of the rows. */
  readonly named: readonly ConversationId[];
  /** About how many rows are searched, and how many each corpus has. */
  readonly rows: number;
  readonly stored: Readonly<Record<CorpusName, number>>;
  /** Whether a row can be near the summaries that were asked for, judged by its id: many times faster than reading it. */
  readonly isNear: Readonly<Record<CorpusName, (id: number) => boolean>>;
  /** Whether the filter may exclude rows that the index finds. */
  readonly isNarrowed: boolean;
}

/** Values for statements; lists are JSON text. */
export interface Filter {
  readonly only: string | null;
  readonly hidden: string;
  readonly since: string;
  readonly before: string;
  /** Messages after and before these. */
  readonly afterId: number;
  readonly beforeId: number;
  readonly roles: string | null;
}

/** How many conversations the index is asked for by name. */
export const namedMax = 500;

/** Files have neither rows of text nor an index: see search-files.ts. */
const corporaOf: Readonly<Record<SearchRequest["scope"], readonly Corpus[]>> = {
  messages: [messages],
  summaries: [summaries],
  both: [messages, summaries],
  files: [],
};

/** What all conversations contain together, and which of them are hidden, as JSON. */
export interface Everything extends Readonly<Record<CorpusName, number>> {
  readonly conversations: number;
  readonly hidden: string;
}

export function* openScope(
  request: SearchRequest,
  everything: () => Script<Everything> = countEverything,
): Script<Scope> {
  const { scope, conversations, since = asTime(earliest), before = asTime(latest), around } = request;
  const { roles: wanted, afterId = noId, beforeId = everyId } = request;
  const roles = wanted === undefined ? null : JSON.stringify(wanted);
  const isOfMessages = roles !== null || afterId !== noId || beforeId !== everyId;
  const corpora = corporaOf[scope].filter((corpus) => corpus === messages || !isOfMessages);
  const only = conversations === undefined ? null : JSON.stringify(conversations);
  const { hidden: allHidden, ...stored } = yield* everything();
  // Conversations that are named are searched even if hidden.
  const hidden = only === null ? allHidden : "[]";
  const all = corpora.reduce((sum, { name }) => sum + stored[name], 0);
  let rows = only === null ? all : 0;
  if (only !== null) for (const corpus of corpora) rows += yield* corpus.countIn(only);
  // Looking up a conversation that has most rows costs more than dropping the few others afterwards.
  const isNamed = conversations !== undefined && conversations.length <= namedMax && rows * 2 < all;
  return {
    corpora,
    filter: { only, hidden, since, before, afterId, beforeId, roles },
    named: isNamed ? conversations : [],
    rows,
    stored,
    isNear: around === undefined ? { messages: () => true, summaries: () => true } : yield* nearTo(around),
    isNarrowed:
      isOfMessages || since !== earliest || before !== latest || hidden !== "[]" || (only !== null && !isNamed),
  };
}

/** Before and after every message. */
const noId = 0 as MessageId;
const everyId = Number.MAX_SAFE_INTEGER as MessageId;

export const countEverything = (): Script<Everything> =>
  one(
    sql`SELECT count(*) AS conversations, coalesce(sum(message_count), 0) AS messages,
          coalesce(sum(summary_count), 0) AS summaries,
          json_group_array(conversation_id) FILTER (WHERE hidden = 1) AS hidden FROM conversations`,
    (row) => ({
      conversations: int(row, "conversations"),
      messages: int(row, "messages"),
      summaries: int(row, "summaries"),
      hidden: text(row, "hidden"),
    }),
  );

/** Messages are folded in about the order of their ids, so those near a summary lie between two ids. */
function* nearTo(asked: readonly SummaryId[]): Script<Scope["isNear"]> {
  const [row = {}] = yield sql`WITH RECURSIVE
    below(id) AS (SELECT value FROM texts_in(${asked})
      UNION SELECT p.parent_summary_id FROM below JOIN summary_parents AS p ON p.summary_id = below.id),
    above(id) AS (SELECT value FROM texts_in(${asked})
      UNION SELECT p.summary_id FROM above JOIN summary_parents AS p ON p.parent_summary_id = above.id)
    SELECT
      min((SELECT min(message_id) FROM summary_messages WHERE summary_id = id)) AS first,
      max((SELECT max(message_id) FROM summary_messages WHERE summary_id = id)) AS last,
      (SELECT json_group_array(search_id) FROM summaries
       WHERE summary_id IN (SELECT id FROM below UNION SELECT id FROM above)) AS summaries
    FROM below`;
  const [first, last] = [Number(row["first"]), Number(row["last"])];
  const summaries = new Set(JSON.parse(text(row, "summaries")) as number[]);
  return { messages: (id) => id >= first && id <= last, summaries: (id) => summaries.has(id) };
}

/** Whether a row that was read for another reason passes the filter too. */
export const isWithin = (row: SearchedRow, { since, before, afterId, beforeId, roles }: Filter): boolean =>
  row.at >= since &&
  row.at < before &&
  row.id > afterId &&
  row.id < beforeId &&
  (roles === null || (JSON.parse(roles) as readonly string[]).includes(row.role ?? ""));

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A row that may become a hit. */
export interface SearchedRow {
  readonly corpus: Corpus["name"];
  readonly id: number;
  readonly conversation: ConversationId;
  /** 0 for a summary. */
  readonly seq: number;
  readonly text: string;
  /** Words by which it is found too, and which it does not show; null if there are none. */
  readonly words: string | null;
  readonly at: Timestamp;
  readonly name: string | null;
  /** Null for a summary. */
  readonly role: Role | null;
  readonly isLeaf: boolean;
  /** Whether it is a call or a result of one of our own tools, which repeats words and would hide the original. */
  readonly isRecalled: boolean;
  readonly toHit: (
    shared: Pick<SearchHit, "conversation" | "snippet" | "at" | "score"> & { readonly focus: TextRange },
  ) => SearchHit;
}

const asTime = (value: string): Timestamp => value as Timestamp;

/**
 * The text of a row with blanks for the calls of our own tools: no search finds the call that asked for it, and every
 * match is where it is in the stored text.
 */
export function searchedText(row: Row): string {
  const content = text(row, "content");
  const pieces = textOrNull(row, "pieces");
  if (pieces === null) return content;
  let from = 0;
  const kept: string[] = [];
  for (const [length, isOwnCall] of JSON.parse(pieces) as readonly (readonly [number, 0 | 1 | null])[]) {
    kept.push(isOwnCall === 1 ? " ".repeat(length) : content.slice(from, from + length));
    from += length + 1;
  }
  return kept.join("\n");
}

export function toSearchedRow(row: Row): SearchedRow {
  const id = int(row, "id");
  const shared = {
    id,
    conversation: asConversation(int(row, "conversation_id")),
    text: searchedText(row),
    words: textOrNull(row, "words"),
    at: asTime(text(row, "at")),
  };
  const summary = textOrNull(row, "summary_id");
  if (summary !== null) {
    const earliestAt = textOrNull(row, "earliest_at");
    const facts = {
      kind: "summary",
      id: asSummary(summary),
      depth: int(row, "depth"),
      earliestAt: earliestAt === null ? null : asTime(earliestAt),
    } as const;
    return {
      ...shared,
      corpus: "summaries",
      seq: 0,
      name: null,
      role: null,
      isLeaf: facts.depth === 0,
      isRecalled: false,
      toHit: (hit) => ({ ...hit, ...facts }),
    };
  }
  const role = roles.find((known) => known === row["role"]) ?? "user";
  const facts = { kind: "message", id: asMessage(id), role, seq: int(row, "seq") } as const;
  return {
    ...shared,
    corpus: "messages",
    seq: facts.seq,
    name: textOrNull(row, "name"),
    role,
    isLeaf: false,
    isRecalled: row["is_recalled"] === 1 || shared.text !== row["content"],
    toHit: (hit) => ({ ...hit, ...facts }),
  };
}

export const toSearchHit = (row: SearchedRow, range: TextRange, score: number): SearchHit =>
  row.toHit({
    conversation: row.conversation,
    snippet: excerpt(row.text, range, snippetWidth),
    focus: { from: range.from, to: range.to },
    at: row.at,
    score,
  });

export const byRecency = (one: SearchedRow, other: SearchedRow): number =>
  one.at === other.at ? other.id - one.id : one.at < other.at ? 1 : -1;

/** Calls and results of our own tools come last; then by the given order, then newest first. */
export const recalledLast = (one: SearchedRow, other: SearchedRow, otherwise = 0): number =>
  Number(one.isRecalled) - Number(other.isRecalled) || otherwise || byRecency(one, other);

const summariesMax = 5;

/** How many rows of each corpus a result needs. */
export const rowsNeeded = ({ scope, limit }: SearchRequest): number =>
  scope === "both" ? Math.max(limit, summariesMax) : limit;

/**
 * What was found, in order, as a result. With scope `both`, a summary never takes a message's place: hits are messages,
 * and the few best summaries are listed beside them, leaves first because they are more specific.
 */
export function toResult<Found extends { readonly row: SearchedRow }>(
  found: readonly Found[],
  { scope, limit }: SearchRequest,
  toHit: (found: Found) => SearchHit,
): Pick<SearchResult, "hits" | "summaries"> & { readonly isLimited: boolean } {
  const isApart = scope === "both";
  const hits = isApart ? found.filter(({ row }) => row.corpus === "messages") : found;
  const others = isApart ? found.filter(({ row }) => row.corpus === "summaries") : [];
  const summaries = others.toSorted((one, other) => Number(other.row.isLeaf) - Number(one.row.isLeaf));
  return {
    hits: hits.slice(0, limit).map(toHit),
    ...(summaries.length === 0
      ? {}
      : { summaries: summaries.slice(0, summariesMax).flatMap((each) => asSummaryHit(toHit(each))) }),
    isLimited: hits.length > limit,
  };
}

const asSummaryHit = (hit: SearchHit): readonly SummaryHit[] => (hit.kind === "summary" ? [hit] : []);
