/**
 * Claude.ai's data export: `conversations.json`, a list of chats with their messages. As rows: the chat without its messages,
 * then the messages.
 */

import { isObject, type Json, type JsonObject } from "../../../core/base/json.ts";
import type { Timestamp } from "../../../core/base/time.ts";
import type { HostMessage, Incoming } from "../../../core/messages/codec.ts";
import { keyOfId, timeOf, type SessionFacts } from "../../../core/messages/transcript-line.ts";
import { entryOf, listIn, readerOf, stringIn, type RowFormat } from "./row-format.ts";

export const claudeAiRows: RowFormat = {
  host: "claude-ai",
  recognises: (row) => isSaid(row) && typeof row["uuid"] === "string",
  createReader() {
    const known = new Set<string>();
    return readerOf((row, position, now) => itemOf(row, position, now, known), factsIn);
  },
};

const isSaid = (row: JsonObject): boolean => row["sender"] === "human" || row["sender"] === "assistant";

/** The rows of a chat as the export has it; null for anything else. */
export function rowsOfClaudeChat(chat: Json): readonly JsonObject[] | null {
  if (!isObject(chat) || !Array.isArray(chat["chat_messages"])) return null;
  const { chat_messages: messages, ...about } = chat;
  return [about, ...(messages as readonly Json[]).filter(isObject)];
}

function itemOf(row: JsonObject, position: number, now: Timestamp, known: Set<string>): Incoming {
  const id = stringIn(row, "uuid");
  if (id === null) return entryOf(row, `@${position}`);
  if (!isSaid(row)) return entryOf(row, `session:${id}`, null, "session");
  // Where a message was asked again, the export says which one it continues.
  const parent = stringIn(row, "parent_message_uuid");
  const parentKey = parent !== null && known.has(parent) ? { parentKey: keyOfId(parent) } : {};
  known.add(id);
  return {
    kind: "message",
    message: messageOf(row),
    key: keyOfId(id),
    at: timeOf(row) ?? now,
    entry: row,
    hole: null,
    ...parentKey,
  };
}

/** With the texts of attached files, which the export has beside what was said. */
function messageOf(row: JsonObject): HostMessage {
  const blocks = listIn(row, "content").filter((block) => isObject(block));
  const said = blocks.length > 0 ? blocks : [{ type: "text", text: stringIn(row, "text") ?? "" }];
  const files = listIn(row, "attachments").flatMap((file): readonly Json[] => {
    const text = isObject(file) ? stringIn(file, "extracted_content") : null;
    if (text === null || !isObject(file)) return [];
    return [{ type: "text", text: `<file name=${JSON.stringify(file["file_name"] ?? "")}>\n${text}\n</file>` }];
  });
  return { role: row["sender"] === "human" ? "user" : "assistant", content: [...said, ...files] };
}

const factsIn = (row: JsonObject): Partial<SessionFacts> =>
  isSaid(row) ? {} : { id: stringIn(row, "uuid"), title: stringIn(row, "name") };
