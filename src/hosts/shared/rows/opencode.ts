/**
 * OpenCode's messages, `{ info, parts }`, from its database or from what `opencode export` writes; the session's own
 * `{ info }` comes first. They are a list, in which a revert deletes messages: so each continues the one read before it, and
 * what a revert has deleted stays as an abandoned branch. To read on, begin with a message that is stored already.
 */

import { isObject, jsonText, type Json, type JsonObject } from "../../../core/base/json.ts";
import { parseTimestamp, type Timestamp } from "../../../core/base/time.ts";
import type { Incoming } from "../../../core/messages/codec.ts";
import { keyOfId, keyOfPosition, type SessionFacts } from "../../../core/messages/transcript-line.ts";
import { entryOf, listIn, objectIn, readerOf, stringIn, type RowFormat } from "./row-format.ts";

export const openCodeRows: RowFormat = {
  host: "opencode",
  recognises: (row) => isSession(row) || isMessage(row),
  createReader() {
    let newest: string | null = null;
    return readerOf((row, position, now) => {
      const item = itemOf(row, position, now, newest);
      newest = item.kind === "message" ? item.key : item.entry.key;
      return item;
    }, factsIn);
  },
};

const isSession = (row: JsonObject): boolean =>
  row["parts"] === undefined && typeof objectIn(row, "info")["directory"] === "string";

const isMessage = (row: JsonObject): boolean =>
  Array.isArray(row["parts"]) && stringIn(objectIn(row, "info"), "sessionID") !== null;

function itemOf(row: JsonObject, position: number, now: Timestamp, newest: string | null): Incoming {
  const info = objectIn(row, "info");
  const id = stringIn(info, "id");
  const role = stringIn(info, "role");
  if (isSession(row) && id !== null) {
    const at = timeOf(info);
    return { kind: "entry", entry: { key: `session:${id}`, type: "session", at, raw: jsonText(row), parentKey: null } };
  }
  if (!isMessage(row) || id === null || role === null) return entryOf(row, keyOfPosition(position));
  return {
    kind: "message",
    message: { role, content: listIn(row, "parts") },
    key: keyOfId(id),
    at: timeOf(info) ?? now,
    entry: row,
    hole: { field: "parts", holds: "content" },
    ...(newest === null ? {} : { parentKey: newest }),
    ...(isNote(info, listIn(row, "parts")) ? { aside: "note" } : {}),
  };
}

/** The host's compaction: that it was asked for, the summary, and the request to go on. */
const isNote = (info: JsonObject, parts: readonly Json[]): boolean =>
  info["mode"] === "compaction" ||
  parts.some((part) => isObject(part) && part["type"] === "compaction") ||
  (info["role"] === "user" && parts.length > 0 && parts.every((part) => isObject(part) && part["synthetic"] === true));

/** Whether a message may still change: an answer that is being written, or a call without its result. */
export function isUnfinished(row: JsonObject): boolean {
  const info = objectIn(row, "info");
  return isAnswer(row) && objectIn(info, "time")["completed"] === undefined && info["error"] === undefined;
}

export const isAnswer = (row: JsonObject): boolean => objectIn(row, "info")["role"] === "assistant";

function timeOf(info: JsonObject): Timestamp | null {
  const { created } = objectIn(info, "time");
  return typeof created === "number" ? parseTimestamp(created) : null;
}

function factsIn(row: JsonObject): Partial<SessionFacts> {
  const info = objectIn(row, "info");
  if (!isSession(row)) return { id: stringIn(info, "sessionID"), folder: stringIn(objectIn(info, "path"), "cwd") };
  const parentSessionId = stringIn(info, "parentID");
  return {
    id: stringIn(info, "id"),
    folder: stringIn(info, "directory"),
    parentSessionId,
    title: stringIn(info, "title"),
  };
}
