/** Copies the older program's messages and parts into our tables, in one pass over both. */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { assert } from "../../core/base/errors.ts";
import { conversationIn, partTypes, roles, type Part } from "../../core/model/types.ts";
import { convertMessage, type ConvertedMessage, type OlderMessage, type OlderPart } from "./older-message.ts";
import { asText, asTextOrNull, epoch, int, adopted, type Row, type AdoptedTable } from "./older-rows.ts";
import { messageChecksum } from "../checksums.ts";
import { asMessage } from "../rows.ts";
import { newId } from "../sqlite/versions/renumber.ts";
import { parseTimestamp, type Timestamp } from "../../core/base/time.ts";
import { columnsOf, quoted } from "../sqlite/pragma.ts";

export function copyMessages(
  db: DatabaseSync,
  older: string | null,
  olderParts: string | null,
  otherColumns: readonly string[],
): { readonly messages: number; readonly parts: number } {
  assert(older !== null, "every file of the older program has messages");
  const writeMessage = createWriter(db, "messages", "ON CONFLICT (conversation_id, message_key) DO NOTHING");
  const writePart = createWriter(db, "message_parts");
  const previousAt = createdAtOf(db);
  let messages = 0;
  let parts = 0;
  const allParts = olderParts === null ? [] : readParts(db, olderParts, otherColumns.filter(describesBlock));
  for (const { row, own } of withParts(readMessages(db, older), allParts)) {
    parts += own.length;
    if (row === null) {
      // Parts of a missing message are kept unchanged.
      for (const each of own) writePart(rowOfPart(each, { ...each.part, text: null, kept: each.part.text }));
      continue;
    }
    const conversation = int(row, "conversation_id");
    const message = toOlderMessage(row, own, previousAt.get(conversation) ?? epoch);
    previousAt.set(conversation, message.at);
    const converted = convertMessage(message);
    const write = (key: string): number => writeMessage(rowOfMessage(row, { ...message, key }, converted));
    // The key comes from one of two columns, and one message's entry id may be another's event key.
    if (write(message.key) === 0) write(`${message.key}#${int(row, "message_id")}`);
    for (const [index, each] of own.entries()) {
      const part = converted.parts[index];
      assert(part !== undefined, "a converted message has as many parts as before");
      writePart(rowOfPart(each, part));
    }
    messages += 1;
  }
  return { messages, parts };
}

/** A message without a readable time gets that of the message before it; the first one, that of its conversation. */
const createdAtOf = (db: DatabaseSync): Map<number, Timestamp> =>
  new Map(
    db
      .prepare("SELECT conversation_id, created_at FROM conversations")
      .all()
      .map((row) => [int(row, "conversation_id"), asText(row["created_at"]) as Timestamp]),
  );

function readMessages(db: DatabaseSync, older: string): Iterable<Row> {
  const has = columnsOf(db, older);
  const name = (column: string): string => (has.has(column) ? `nullif(${column}, '')` : "NULL");
  return db
    .prepare(
      `SELECT message_id, ${newId("message_id")} AS id, conversation_id, role, content, created_at,
         coalesce(${name("transcript_entry_id")}, ${name("stable_event_key")}) AS key FROM ${older} ORDER BY message_id`,
    )
    .iterate();
}

const toOlderMessage = (row: Row, own: readonly PartRow[], previousAt: Timestamp): OlderMessage => ({
  role: roles.find((word) => word === row["role"]) ?? "system",
  content: asText(row["content"]),
  key: asTextOrNull(row["key"]) ?? `older:${int(row, "message_id")}`,
  at: parseTimestamp(asText(row["created_at"])) ?? previousAt,
  parts: own.map(({ part }) => part),
});

/** A note of the older program about a compaction, not part of the conversation. */
const isNote = ({ role, parts }: OlderMessage): boolean =>
  role === "system" && parts.some((part) => part.type === "compaction");

interface PartRow {
  /** The message's id in the older program. */
  readonly message: number;
  /** Its new id; the same as before if the message is missing. */
  readonly id: number;
  readonly ordinal: number;
  readonly part: OlderPart;
}

/** Columns that describe a block, for parts stored without the block itself. */
const describesBlock = (column: string): boolean => /^(tool|patch|file|subtask|step|snapshot|compaction)_/.test(column);

function* readParts(db: DatabaseSync, older: string, describing: readonly string[]): Generator<PartRow> {
  const has = columnsOf(db, older);
  const known = adopted.message_parts.filter((column) => has.has(column));
  const id = `coalesce(${newId("message_id")}, message_id) AS id`;
  // As text, because a JavaScript number would round a long integer.
  const asTexts = describing.map((column) => `CAST(${quoted(column)} AS TEXT) AS ${quoted(column)}`);
  const listed = [id, ...known, ...asTexts];
  for (const row of db.prepare(`SELECT ${listed.join(", ")} FROM ${older} ORDER BY message_id, ordinal`).iterate()) {
    yield {
      message: int(row, "message_id"),
      id: int(row, "id"),
      ordinal: int(row, "ordinal"),
      part: toOlderPart(row, describing),
    };
  }
}

function toOlderPart(row: Row, describing: readonly string[]): OlderPart {
  const filled = describing.filter((column) => (row[column] ?? null) !== null);
  return {
    type: partTypes.find((type) => type === row["part_type"]) ?? "agent",
    text: asTextOrNull(row["text_content"]),
    toolCallId: asTextOrNull(row["tool_call_id"]),
    toolName: asTextOrNull(row["tool_name"]),
    metadata: asTextOrNull(row["metadata"]),
    columns: Object.fromEntries(filled.map((column) => [column, asText(row[column])])),
  };
}

/** Joins messages with their parts; both are sorted by message id. Parts of a missing message come with a null row. */
function* withParts(
  messages: Iterable<Row>,
  parts: Iterable<PartRow>,
): Generator<{ readonly row: Row | null; readonly own: readonly PartRow[] }> {
  const rest = parts[Symbol.iterator]();
  let next = rest.next();
  const takeWhile = (isWanted: (part: PartRow) => boolean): readonly PartRow[] => {
    const taken: PartRow[] = [];
    for (; next.done !== true && isWanted(next.value); next = rest.next()) taken.push(next.value);
    return taken;
  };
  for (const row of messages) {
    const id = int(row, "message_id");
    yield { row: null, own: takeWhile((part) => part.message < id) };
    yield { row, own: takeWhile((part) => part.message === id) };
  }
  yield { row: null, own: takeWhile(() => true) };
}

const rowOfMessage = (
  row: Row,
  message: OlderMessage,
  { content, tokens, envelope, parts }: ConvertedMessage,
): Row => ({
  message_id: int(row, "id"),
  conversation_id: int(row, "conversation_id"),
  role: message.role,
  content,
  token_count: tokens,
  created_at: message.at,
  stored_at: Date.parse(message.at),
  message_key: message.key,
  envelope,
  aside: isNote(message) ? "note" : null,
  checksum: messageChecksum({ role: message.role, content, envelope, entry: null, moved: null }, parts),
});

const rowOfPart = ({ id, ordinal }: PartRow, part: Part): Row => ({
  message_id: id,
  ordinal,
  conversation_id: conversationIn(asMessage(id)),
  part_type: part.type,
  text_length: part.text === null ? null : part.text.length,
  text_content: part.kept,
  tool_call_id: part.toolCallId,
  tool_name: part.toolName,
  metadata: part.metadata,
});

/** Inserts rows that all have the same columns, and returns how many were inserted: one or none. */
function createWriter(db: DatabaseSync, name: AdoptedTable, otherwise = ""): (row: Row) => number {
  let insert: StatementSync | null = null;
  return (row) => {
    const ours = Object.keys(row);
    insert ??= db.prepare(
      `INSERT INTO ${name} (${ours.join(", ")}) VALUES (${ours.map((column) => `:${column}`).join(", ")}) ${otherwise}`,
    );
    return Number(insert.run(row).changes);
  };
}
