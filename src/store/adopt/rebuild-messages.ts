/**
 * The older program's messages and parts as ours, in one pass over both side by side. What a message was is found out in
 * older-message.ts; here it gets its key, its time and its place in the totals.
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { assert } from "../../core/base/errors.ts";
import { conversationIn, partTypes, roles } from "../../core/model/types.ts";
import type { Part } from "../../core/model/types.ts";
import { understandMessage } from "./older-message.ts";
import type { OlderMessage, OlderPart, Understood } from "./older-message.ts";
import { asText, asTextOrNull, epoch, int, taken } from "./older-rows.ts";
import type { Row, TakenTable } from "./older-rows.ts";
import { asMessage } from "../rows.ts";
import { newId } from "../sqlite/renumber.ts";
import { parseTimestamp } from "../../core/base/time.ts";
import type { Timestamp } from "../../core/base/time.ts";
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
  const filedParts = olderParts === null ? [] : readParts(db, olderParts, otherColumns.filter(isTelling));
  for (const { row, filed } of sideBySide(readMessages(db, older), filedParts)) {
    parts += filed.length;
    if (row === null) {
      // Parts of a message that is gone stay as they are.
      for (const place of filed) writePart(rowOfPart(place, { ...place.part, text: null, kept: place.part.text }));
      continue;
    }
    const conversation = int(row, "conversation_id");
    const message = toOlderMessage(row, filed, previousAt.get(conversation) ?? epoch);
    previousAt.set(conversation, message.at);
    const understood = understandMessage(message);
    const write = (key: string): number => writeMessage(rowOfMessage(row, { ...message, key }, understood));
    // Two columns can name a message, and one message's entry may be another's event.
    if (write(message.key) === 0) write(`${message.key}#${int(row, "message_id")}`);
    for (const [index, place] of filed.entries()) {
      const part = understood.parts[index];
      assert(part !== undefined, "a message keeps as many parts as it had");
      writePart(rowOfPart(place, part));
    }
    messages += 1;
  }
  return { messages, parts };
}

/** By conversation, the time that a message without a readable one gets: that of the one before it. */
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

const toOlderMessage = (row: Row, filed: readonly FiledPart[], previousAt: Timestamp): OlderMessage => ({
  role: roles.find((word) => word === row["role"]) ?? "system",
  content: asText(row["content"]),
  key: asTextOrNull(row["key"]) ?? `older:${int(row, "message_id")}`,
  at: parseTimestamp(asText(row["created_at"])) ?? previousAt,
  parts: filed.map(({ part }) => part),
});

/** The older program's own word on what it had done, not something that was said. */
const isNote = ({ role, parts }: OlderMessage): boolean =>
  role === "system" && parts.some((part) => part.type === "compaction");

interface FiledPart {
  readonly message: number;
  /** The id that the message gets, if it has a conversation. */
  readonly id: number;
  readonly ordinal: number;
  readonly part: OlderPart;
}

/** Columns that can tell what a block was where the block itself was not kept. */
const isTelling = (column: string): boolean => /^(tool|patch|file|subtask|step|snapshot|compaction)_/.test(column);

function* readParts(db: DatabaseSync, older: string, telling: readonly string[]): Generator<FiledPart> {
  const has = columnsOf(db, older);
  const known = taken.message_parts.filter((column) => has.has(column));
  // As text: no number is too long for it.
  const id = `coalesce(${newId("message_id")}, message_id) AS id`;
  const listed = [id, ...known, ...telling.map((column) => `CAST(${quoted(column)} AS TEXT) AS ${quoted(column)}`)];
  for (const row of db.prepare(`SELECT ${listed.join(", ")} FROM ${older} ORDER BY message_id, ordinal`).iterate()) {
    yield {
      message: int(row, "message_id"),
      id: int(row, "id"),
      ordinal: int(row, "ordinal"),
      part: toOlderPart(row, telling),
    };
  }
}

function toOlderPart(row: Row, telling: readonly string[]): OlderPart {
  const filled = telling.filter((column) => (row[column] ?? null) !== null);
  return {
    type: partTypes.find((type) => type === row["part_type"]) ?? "agent",
    text: asTextOrNull(row["text_content"]),
    toolCallId: asTextOrNull(row["tool_call_id"]),
    toolName: asTextOrNull(row["tool_name"]),
    metadata: asTextOrNull(row["metadata"]),
    columns: Object.fromEntries(filled.map((column) => [column, asText(row[column])])),
  };
}

/** Each message with its parts, both coming by message id. Parts of a message that is gone come alone. */
function* sideBySide(
  messages: Iterable<Row>,
  parts: Iterable<FiledPart>,
): Generator<{ readonly row: Row | null; readonly filed: readonly FiledPart[] }> {
  const later = parts[Symbol.iterator]();
  let next = later.next();
  const takeWhile = (isWanted: (part: FiledPart) => boolean): readonly FiledPart[] => {
    const found: FiledPart[] = [];
    for (; next.done !== true && isWanted(next.value); next = later.next()) found.push(next.value);
    return found;
  };
  for (const row of messages) {
    const id = int(row, "message_id");
    yield { row: null, filed: takeWhile((part) => part.message < id) };
    yield { row, filed: takeWhile((part) => part.message === id) };
  }
  yield { row: null, filed: takeWhile(() => true) };
}

const rowOfMessage = (row: Row, message: OlderMessage, { content, tokens, envelope }: Understood): Row => ({
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
});

const rowOfPart = ({ id, ordinal }: FiledPart, part: Part): Row => ({
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

/** Inserts rows that all have the same columns; tells how many were inserted: one, or none. */
function createWriter(db: DatabaseSync, name: TakenTable, otherwise = ""): (row: Row) => number {
  let insert: StatementSync | null = null;
  return (row) => {
    const ours = Object.keys(row);
    insert ??= db.prepare(
      `INSERT INTO ${name} (${ours.join(", ")}) VALUES (${ours.map((column) => `:${column}`).join(", ")}) ${otherwise}`,
    );
    return Number(insert.run(row).changes);
  };
}
