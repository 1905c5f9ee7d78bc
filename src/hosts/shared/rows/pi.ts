/**
 * Pi's transcripts: `sessions/--<folder>--/<time>_<session>.jsonl`, a tree of entries. Messages are Pi's own; two other
 * kinds of entries are shown to the model as messages, in the form that Pi gives them.
 */

import type { JsonObject } from "../../../core/base/json.ts";
import type { Timestamp } from "../../../core/base/time.ts";
import type { HostMessage, Incoming } from "../../../core/messages/codec.ts";
import { readTranscriptValue, timeOf, type SessionFacts } from "../../../core/messages/transcript-line.ts";
import { entryOf, readerOf, stringIn, type RowFormat } from "./row-format.ts";

export const piRows: RowFormat = {
  host: "pi",
  // OpenClaw writes the same header, so where a file lies decides.
  recognises: () => false,
  createReader: () => readerOf(itemOf, factsIn),
};

function itemOf(row: JsonObject, position: number, now: Timestamp): Incoming {
  const read = readTranscriptValue(row, position, now);
  if (read.kind !== "item") return entryOf(row, `@${position}`);
  const { item } = read;
  // The host's own prompt and tools.
  if (item.kind === "message") return item.message["role"] === "system" ? { ...item, aside: "note" } : item;
  const shown = messageOf(row);
  if (shown === null) return item;
  const { key, parentKey, at } = item.entry;
  const place = { key, at: at ?? now, entry: row, ...(parentKey === undefined ? {} : { parentKey }) };
  return { kind: "message", message: shown.message, hole: { field: shown.field, holds: "content" }, ...place };
}

/** The message that Pi makes of an entry; `field` of the entry has its content. */
function messageOf(row: JsonObject): { readonly message: HostMessage; readonly field: string } | null {
  const at = timeOf(row);
  const timestamp = at === null ? {} : { timestamp: Date.parse(at) };
  const { type, content, customType, display, details, summary, fromId } = row;
  if (type === "branch_summary" && typeof summary === "string")
    return { message: { role: "branchSummary", content: summary, fromId, ...timestamp }, field: "summary" };
  if (type === "custom_message" && (typeof content === "string" || Array.isArray(content))) {
    const about = { customType, display, ...(details === undefined ? {} : { details }) };
    return { message: { role: "custom", content, ...about, ...timestamp }, field: "content" };
  }
  return null;
}

function factsIn(row: JsonObject): Partial<SessionFacts> {
  if (row["type"] === "session") return { id: stringIn(row, "id"), folder: stringIn(row, "cwd") };
  return row["type"] === "session_info" ? { title: stringIn(row, "name") } : {};
}
