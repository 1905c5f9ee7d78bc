/**
 * Reads and writes the lines of transcript files: session files (a header, then entries) and plain chats.
 *
 * Every line gets a key of its own, so reading a file again, or after it has grown, adds only what is new.
 */

import { entryFromStore, storableKey, type HostMessage, type Incoming } from "./codec.ts";
import { LcmError } from "../base/errors.ts";
import type { Entry, Message } from "../model/types.ts";
import { isObject, jsonText, type Json, type JsonObject } from "../base/json.ts";
import { parseTimestamp, type Timestamp } from "../base/time.ts";
import { formatCount } from "../base/format.ts";

export type TranscriptLine =
  | { readonly kind: "item"; readonly item: Incoming; readonly sessionId: string | null }
  | { readonly kind: "blank" }
  /** Not JSON, or not an object. The rest of the file is still read. */
  | { readonly kind: "malformed"; readonly reason: string };

/** What the rows of a session say about it; null where they say nothing. */
export interface SessionFacts {
  readonly id: string | null;
  /** Its working folder. */
  readonly folder: string | null;
  /** The session that started it. */
  readonly parentSessionId: string | null;
  readonly title: string | null;
}

/** Reads the rows of one session, in their order. `position` counts from 1, and is the key of a row without an id. */
export interface RowReader {
  readonly read: (row: Json, position: number, now: Timestamp) => TranscriptLine;
  /** According to the rows read so far. */
  readonly session: () => SessionFacts;
}

/** For transcripts of the library's users, of OpenClaw, and plain chats. */
export function createPlainReader(): RowReader {
  let session: SessionFacts = { id: null, folder: null, parentSessionId: null, title: null };
  return {
    session: () => session,
    read(row, position, now) {
      const read = readTranscriptValue(row, position, now);
      if (read.kind === "item" && session.id === null) session = { ...session, id: read.sessionId };
      return read;
    },
  };
}

/** Reads a line of text with a reader of parsed rows. */
export function readTranscriptLine(
  line: string,
  position: number,
  now: Timestamp,
  read: RowReader["read"] = readTranscriptValue,
): TranscriptLine {
  if (line.trim() === "") return { kind: "blank" };
  try {
    return read(JSON.parse(line) as Json, position, now);
  } catch (error) {
    if (error instanceof SyntaxError) return { kind: "malformed", reason: error.message };
    throw error;
  }
}

/** Reads an entry that is already parsed. */
export function readTranscriptValue(value: Json, position: number, now: Timestamp): TranscriptLine {
  if (!isObject(value)) return { kind: "malformed", reason: "the line is not a JSON object" };
  const { type, message } = value;
  if (typeof type === "string" && type !== "message") return otherEntry(value, type, position);
  if (isMessage(message)) {
    const at = timeOf(message) ?? timeOf(value) ?? now;
    return item({ kind: "message", message, key: keyOf(value, position), at, entry: value, ...parentOf(value) });
  }
  if (isMessage(value))
    return item({ kind: "message", message: value, key: keyOf(value, position), at: timeOf(value) ?? now });
  return otherEntry(value, typeof type === "string" ? type : "unknown", position);
}

const item = (incoming: Incoming, sessionId: string | null = null): TranscriptLine => ({
  kind: "item",
  item: incoming,
  sessionId,
});

/** A header names the session; its own key must not be mistaken for an entry's id. */
function otherEntry(value: JsonObject, type: string, position: number): TranscriptLine {
  const isHeader = type === "session";
  const id = value["id"];
  const key = isHeader && typeof id === "string" ? storableKey(`session:${id}`) : keyOf(value, position);
  const entry = { key, type, at: timeOf(value), raw: jsonText(value), ...(isHeader ? {} : parentOf(value)) };
  return item({ kind: "entry", entry }, isHeader && typeof id === "string" ? id : null);
}

const isMessage = (value: Json | undefined): value is JsonObject =>
  isObject(value) && typeof value["role"] === "string";

const keyOf = (value: JsonObject, position: number): string => {
  const id = value["id"];
  if (typeof id === "number") return String(id);
  return typeof id === "string" && id !== "" ? keyOfId(id) : keyOfPosition(position);
};

export const keyOfPosition = (position: number): string => `@${position}`;

/** Keys by position begin with one @, so an id that begins with @ gets another. */
export const keyOfId = (id: string): string => storableKey(id.replace(/^@/, "@@"));

/** An entry without `parentId` is not part of the tree; null marks the root. */
const parentOf = (value: JsonObject): { parentKey?: string | null } => {
  const parent = value["parentId"];
  if (parent === null) return { parentKey: null };
  return typeof parent === "string" ? { parentKey: keyOfId(parent) } : {};
};

export function timeOf(value: JsonObject): Timestamp | null {
  const time = value["timestamp"] ?? value["created_at"];
  return typeof time === "string" || typeof time === "number" ? parseTimestamp(time) : null;
}

/** The messages of a whole JSON file: an array of messages, or an object that has one. */
export function messagesOfDocument(document: Json): readonly Json[] {
  const list = isObject(document) ? document["messages"] : document;
  if (Array.isArray(list)) return list;
  throw new LcmError("invalid", "the JSON has no list of messages", { hint: formats });
}

/** For a file without messages, after all its lines or the first ones. */
export const noTranscript = (lines: number, which = ""): LcmError =>
  new LcmError(
    "invalid",
    `not a transcript: ${lines === 1 ? `its ${which || "only "}line is not a message` : `none of its ${which}${formatCount(lines)} lines is a message`}`,
    { hint: formats },
  );

const formats =
  'a chat is [{"role":"user","content":"hello"}, …], or {"messages": […]}, or one message per line; a session file is ' +
  'one entry per line: {"type":"message","id":"…","message":{"role":"user",…}}';

/** The original line, equal as JSON; `raw` is the host's message. */
export const messageToLine = (message: Message, raw: HostMessage): string => jsonText(entryFromStore(message, raw));
export const entryToLine = (entry: Entry): string => entry.raw;
