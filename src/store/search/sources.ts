/**
 * What can be searched: messages and summaries, each with its rows and its index. Both are asked the same questions, so
 * the statements are written once, from the few names that differ. Ids are those of the index.
 */

import { roles } from "../../core/model/types.ts";
import type { ConversationId, SummaryId } from "../../core/model/types.ts";
import type { SearchHit, SearchRequest } from "../../core/model/store.ts";
import { asConversation, asMessage, asSummary } from "../rows.ts";
import { all, count, int, one, sql, statement, text, textOrNull } from "../script.ts";
import type { Row, Script, Statement } from "../script.ts";
import { conversationWord } from "./tokenize.ts";
import { toolNameFields } from "../../core/messages/dialects.ts";
import type { Timestamp } from "../../core/base/time.ts";

export type Corpus = ReturnType<typeof createCorpus>;

/** The rows of a conversation that are not in the index yet: those numbered after `indexed`, up to `newest`. */
export interface Unindexed {
  readonly conversation: number;
  readonly indexed: number;
  readonly newest: number;
}

/** Rows are numbered within their conversation. The id of a summary in the index is made of both numbers. */
const numbersPerConversation = 2 ** 24;

/** True of conversations that have rows outside the index: the condition of a partial index, which needs these words. */
export const isPending = "(indexed_seq < next_seq - 1 OR indexed_summary < last_summary)";

/** Before and after every time there is. */
const earliest = "";
const latest = "~";

const messageColumns = `message_id AS id, conversation_id, seq, role, content, created_at AS at,
  CASE WHEN json_valid(envelope) THEN envelope ->> '$.name' END AS name,
  CASE WHEN role = 'tool' AND json_valid(envelope)
    THEN coalesce(${toolNameFields()
      .map((field) => `envelope ->> '$.${field}'`)
      .join(", ")}) GLOB '*lcm_[a-z]*' END AS is_recalled`;

export const messages = createCorpus({
  name: "messages",
  id: "message_id",
  number: "seq",
  order: "seq",
  newest: "next_seq - 1",
  indexed: "indexed_seq",
  within: "conversation_id = ? AND seq BETWEEN ? AND ?",
  valuesWithin: (conversation, from, to) => [conversation, from, to],
  total: "message_count",
  columns: messageColumns,
  earliest: "created_at",
  latest: "created_at",
  isContent: "aside IS NOT 'note'",
  // Turns follow each other in time. Those above the id are passed over by the index alone.
  latestFirst: "ORDER BY seq DESC LIMIT 1",
});

/** A summary is of the time of the messages below it. */
export const summaries = createCorpus({
  name: "summaries",
  id: "search_id",
  number: `search_id % ${numbersPerConversation}`,
  order: "search_id",
  newest: "last_summary",
  indexed: "indexed_summary",
  within: "search_id BETWEEN ? AND ?",
  valuesWithin: (conversation, from, to) => [from, to].map((number) => conversation * numbersPerConversation + number),
  total: "summary_count",
  columns: `search_id AS id, summary_id, conversation_id, depth, content, earliest_at,
  coalesce(latest_at, created_at) AS at`,
  earliest: "coalesce(earliest_at, created_at)",
  latest: "coalesce(latest_at, created_at)",
  // What was carried over says nothing that its original does not say, where that is searched too: in its family.
  isContent: `(carried_from IS NULL OR NOT EXISTS (SELECT 1 FROM summaries AS origin
      JOIN conversations AS there ON there.conversation_id = origin.conversation_id AND there.hidden = 0
      JOIN conversations AS here ON here.conversation_id = summaries.conversation_id
    WHERE origin.summary_id = summaries.carried_from AND there.agent_id IS here.agent_id
      AND there.session_key IS here.session_key
      AND (here.session_key IS NOT NULL OR there.session_id = here.session_id)))`,
  latestFirst: "",
});

function createCorpus(names: {
  readonly name: "messages" | "summaries";
  readonly id: string;
  /** A row's number within its conversation; and the columns of `conversations` that name the newest and the last indexed. */
  readonly number: string;
  readonly order: string;
  readonly newest: string;
  readonly indexed: string;
  /** Rows by number, and the values to ask for them with. */
  readonly within: string;
  readonly valuesWithin: (conversation: number, from: number, to: number) => readonly number[];
  readonly total: string;
  readonly columns: string;
  readonly earliest: string;
  readonly latest: string;
  readonly isContent: string;
  /** How to come to the latest row of a conversation first, if there is a way. */
  readonly latestFirst: string;
}) {
  const { name, id, columns, within, valuesWithin } = names;
  const fts = `${name}_fts`;
  const inList = "IN (SELECT value FROM json_each(?))";
  // What is cheap to check, and leaves out most, comes first.
  const isAllowed = `${names.latest} >= ? AND ${names.earliest} < ? AND ${names.isContent}
    AND (? = '[]' OR conversation_id NOT ${inList}) AND (? IS NULL OR conversation_id ${inList})`;
  const allowing = ({ since, before, hidden, only }: Filter) => [since, before, hidden, hidden, only, only] as const;
  const passes = `${isAllowed} AND content LIKE ? ESCAPE '\\'`;

  const newestId = `SELECT max(${id}) FROM ${name}`;
  const countIn = `SELECT sum(${names.total}) FROM conversations WHERE conversation_id ${inList}`;
  const idsIn = `SELECT json_group_array(${id}) AS ids FROM ${name} WHERE conversation_id ${inList}`;
  const holding = `SELECT json_group_array(rowid) AS ids FROM ${fts} WHERE ${fts} MATCH ?`;
  // FTS5 goes straight to a rowid that is an integer; to any other number, which is what runners bind, it walks.
  const newest = `SELECT json_group_array(rowid) AS ids FROM (SELECT rowid FROM ${fts}
    WHERE ${fts} MATCH ? AND rowid < CAST(? AS INTEGER) ORDER BY rowid DESC LIMIT ?)`;
  const sift = `SELECT json_group_array(asked.value) AS ids
    FROM json_each(?) AS asked CROSS JOIN ${name} ON ${id} = asked.value WHERE ${isAllowed}`;
  const rows = `SELECT ${columns} FROM ${name} WHERE ${id} ${inList} AND ${passes} ORDER BY ${id} DESC`;
  const between = `SELECT ${columns} FROM ${name} WHERE ${id} BETWEEN ? AND ? AND ${passes} ORDER BY ${id} DESC`;
  const behind = `SELECT json_group_array(conversation_id) AS ids FROM conversations AS c
    WHERE coalesce(last_message_at, '${latest}') > ?
      AND (? = '[]' OR conversation_id NOT ${inList}) AND (? IS NULL OR conversation_id ${inList})
      AND EXISTS (SELECT 1 FROM (SELECT ${names.latest} AS at FROM ${name}
        WHERE conversation_id = c.conversation_id AND +${id} < ? ${names.latestFirst}) WHERE at > ?)`;
  const unindexed = `SELECT conversation_id, ${names.indexed} AS indexed, ${names.newest} AS newest FROM conversations
    WHERE ${isPending} AND ${names.indexed} < ${names.newest}
      AND (? = '[]' OR conversation_id NOT ${inList}) AND (? IS NULL OR conversation_id ${inList})
    ORDER BY last_message_at DESC, conversation_id DESC`;
  const numbered = `SELECT ${columns} FROM ${name} WHERE ${within} AND ${passes} ORDER BY ${id} DESC`;
  const toIndex = `SELECT ${id} AS id, ${names.number} AS number, content FROM ${name} WHERE ${within}
    ORDER BY ${names.order} LIMIT ?`;
  const indexedIn = `SELECT conversation_id FROM ${name} JOIN conversations USING (conversation_id)
    WHERE ${id} = ? AND ${names.number} <= ${names.indexed}`;
  const index = `INSERT INTO ${fts} (rowid, text) VALUES (?, ?)`;
  const unindex = `DELETE FROM ${fts} WHERE rowid = ?`;
  const setIndexed = `UPDATE conversations SET ${names.indexed} = ? WHERE conversation_id = ?`;
  return {
    name,
    indexed: names.indexed,
    newestId: () => count(statement(newestId)),
    /** How many rows these conversations hold, and the ids of those rows. */
    countIn: (conversations: string) => count(statement(countIn, [conversations])),
    idsIn: (conversations: string) => ids(statement(idsIn, [conversations])),
    /** Ids of indexed rows that match an FTS5 expression: all of them, or the newest (below an id), newest first. */
    holding: (match: string) => ids(statement(holding, [match])),
    newest: (match: string, most: number, below = highest) => ids(statement(newest, [match, below, most])),
    /** Which of these ids are of rows that the filter lets pass, in the same order; no text is read for it. */
    sift: (wanted: readonly number[], filter: Filter) =>
      ids(statement(sift, [JSON.stringify(wanted), ...allowing(filter)])),
    /** Rows of these ids, or from one id to another, both included; newest first. See `toFound`. */
    rows: (wanted: readonly number[], filter: Filter, like = "%") =>
      statement(rows, [JSON.stringify(wanted), ...allowing(filter), like]),
    between: (from: number, to: number, filter: Filter, like = "%") =>
      statement(between, [from, to, ...allowing(filter), like]),
    /** Conversations that hold rows later than a time whose ids are below one: those that were stored out of order. */
    behind: (below: number, time: string, { hidden, only }: Filter) =>
      ids(statement(behind, [time, hidden, hidden, only, only, below, time])),
    /** Conversations that have rows outside the index, the latest first. */
    unindexed: ({ hidden, only }: Filter) => all(statement(unindexed, [hidden, hidden, only, only]), toUnindexed),
    /** Rows of a conversation from one number to another, both included; newest first. */
    numbered: (conversation: number, from: number, to: number, filter: Filter) =>
      statement(numbered, [...valuesWithin(conversation, from, to), ...allowing(filter), "%"]),
    /** The oldest rows that are not indexed: id, number, content. */
    toIndex: ({ conversation, indexed, newest }: Unindexed, most: number) =>
      statement(toIndex, [...valuesWithin(conversation, indexed + 1, newest), most]),
    /** The conversation of a row that the index should hold; 0 for any other row. */
    indexedIn: (row: number) => count(statement(indexedIn, [row])),
    index: (row: number, prepared: string) => statement(index, [row, prepared]),
    unindex: (row: number) => statement(unindex, [row]),
    setIndexed: (conversation: number, upTo: number) => statement(setIndexed, [upTo, conversation]),
  };
}

const highest = Number.MAX_SAFE_INTEGER;

const toUnindexed = (row: Row): Unindexed => ({
  conversation: int(row, "conversation_id"),
  indexed: int(row, "indexed"),
  newest: int(row, "newest"),
});

/** Turns by conversation and seq, whenever they were. */
export const turnsAt = (places: readonly (readonly [number, number])[]): Statement =>
  statement(
    `SELECT ${messageColumns} FROM json_each(?) AS place
     JOIN messages ON conversation_id = place.value ->> 0 AND seq = place.value ->> 1 WHERE aside IS NOT 'note'`,
    [JSON.stringify(places)],
  );

/** Many ids come as one JSON text: a tenth of the time of as many rows. */
const ids = (query: Statement): Script<readonly number[]> =>
  one(query, (row) => JSON.parse(text(row, "ids")) as number[]);

// ── Scope ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Scope {
  readonly corpora: readonly Corpus[];
  readonly filter: Filter;
  /** FTS5 expressions that hold in these conversations only; none if there are too many to name, or they are most of all. */
  readonly matches: readonly string[];
  /** How many rows there are to look at, roughly. */
  readonly rows: number;
  /** Whether a row can be around what was asked for: to tell it by the id is many times quicker than to read it. */
  readonly isNear: Readonly<Record<Corpus["name"], (id: number) => boolean>>;
  /** Whether rows that the index finds may be left out by the filter. */
  readonly isNarrowed: boolean;
}

/** As values of statements; lists are JSON text. */
export interface Filter {
  readonly only: string | null;
  readonly hidden: string;
  readonly since: string;
  readonly before: string;
}

const namedMax = 500;

/** Files have no rows of text and no index: see search-files.ts. */
const corporaOf: Readonly<Record<SearchRequest["scope"], readonly Corpus[]>> = {
  messages: [messages],
  summaries: [summaries],
  both: [messages, summaries],
  files: [],
};

export function* openScope({
  scope,
  conversations,
  since = asTime(earliest),
  before = asTime(latest),
  around,
}: SearchRequest): Script<Scope> {
  const corpora = corporaOf[scope];
  const only = conversations === undefined ? null : JSON.stringify(conversations);
  // Conversations that are asked for by name are searched even if hidden.
  const hidden = only === null ? yield* ids(hiddenConversations) : [];
  let stored = 0;
  let rows = 0;
  for (const corpus of corpora) {
    const newest = yield* corpus.newestId();
    stored += newest;
    rows += only === null ? newest : yield* corpus.countIn(only);
  }
  // Looking up a conversation that holds most rows costs more than leaving out the few others afterwards.
  const isNamed = conversations !== undefined && conversations.length <= namedMax && rows * 2 < stored;
  return {
    corpora,
    filter: { only, hidden: JSON.stringify(hidden), since, before },
    matches: isNamed ? [anyOf(conversations.map((id) => `"${conversationWord(id)}"`))] : [],
    rows,
    isNear: around === undefined ? { messages: () => true, summaries: () => true } : yield* nearTo(around),
    isNarrowed: since !== earliest || before !== latest || hidden.length > 0 || (only !== null && !isNamed),
  };
}

/** Messages are stored in about the order in which they are folded: they lie between two ids. */
function* nearTo(asked: readonly SummaryId[]): Script<Scope["isNear"]> {
  const [row = {}] = yield sql`WITH RECURSIVE
    below(id) AS (SELECT value FROM json_each(${asked})
      UNION SELECT p.parent_summary_id FROM below JOIN summary_parents AS p ON p.summary_id = below.id),
    above(id) AS (SELECT value FROM json_each(${asked})
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

const hiddenConversations = sql`SELECT json_group_array(conversation_id) AS ids FROM conversations WHERE hidden = 1`;

export const isWithin = (at: string, { since, before }: Filter): boolean => at >= since && at < before;

/** FTS5 expressions that hold where all, or any, of these do. */
export const allOf = (matches: readonly string[]): string => matches.join(" AND ");
export const anyOf = (matches: readonly string[]): string => `(${matches.join(" OR ")})`;

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One row that may become a hit. */
export interface Found {
  readonly corpus: Corpus["name"];
  readonly id: number;
  readonly conversation: ConversationId;
  /** 0 for a summary, which has no place among the turns. */
  readonly seq: number;
  readonly text: string;
  readonly at: Timestamp;
  readonly name: string | null;
  /** What one of our own tools answered: it says again what is stored, and would hide that. */
  readonly isRecalled: boolean;
  readonly toHit: (shared: Pick<SearchHit, "conversation" | "snippet" | "at" | "score">) => SearchHit;
}

const asTime = (value: string): Timestamp => value as Timestamp;

export function toFound(row: Row): Found {
  const id = int(row, "id");
  const shared = {
    id,
    conversation: asConversation(int(row, "conversation_id")),
    text: text(row, "content"),
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
    isRecalled: row["is_recalled"] === 1,
    toHit: (hit) => ({ ...hit, ...facts }),
  };
}

export const byRecency = (one: Found, other: Found): number =>
  one.at === other.at ? other.id - one.id : one.at < other.at ? 1 : -1;

/** What was recalled comes behind all else, and otherwise the newest first, where nothing tells more. */
export const recalledLast = (one: Found, other: Found, otherwise = 0): number =>
  Number(one.isRecalled) - Number(other.isRecalled) || otherwise || byRecency(one, other);
