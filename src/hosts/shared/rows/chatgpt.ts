/**
 * ChatGPT's data export: `conversations.json`, a list of chats. A chat is a tree of nodes with a message each; `current_node`
 * is where it ended. As rows: the chat without its nodes, then the nodes, so that the branch it ended on comes last.
 */

import { isObject, type Json, type JsonObject } from "../../../core/base/json.ts";
import { parseTimestamp, type Timestamp } from "../../../core/base/time.ts";
import type { HostMessage, Incoming } from "../../../core/messages/codec.ts";
import { keyOfId, keyOfPosition, type SessionFacts } from "../../../core/messages/transcript-line.ts";
import { entryOf, listIn, objectIn, readerOf, stringIn, type RowFormat } from "./row-format.ts";

export const chatGptRows: RowFormat = {
  host: "chatgpt",
  recognises: (row) => isChat(row) || (Array.isArray(row["children"]) && "parent" in row && "message" in row),
  createReader: () => readerOf(itemOf, factsIn),
};

const isChat = (row: JsonObject): boolean => typeof row["current_node"] === "string";

/** The rows of a chat as the export has it; null for anything else. */
export function rowsOfChat(chat: Json): readonly JsonObject[] | null {
  if (!isObject(chat) || !isObject(chat["mapping"])) return null;
  const { mapping, ...about } = chat;
  const nodes = new Map(Object.entries(mapping).filter(isNode));
  const active = new Set<string>();
  for (let id = stringIn(about, "current_node"); id !== null && !active.has(id); id = parentOf(nodes.get(id)))
    active.add(id);
  const roots = [...nodes.keys()].filter((id) => !nodes.has(parentOf(nodes.get(id)) ?? ""));
  const rows: JsonObject[] = [about];
  const left = lastFirst(roots, active);
  const seen = new Set<string>();
  // Depth first, with a list instead of calls: a chat may be thousands of messages long.
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    const node = nodes.get(id);
    if (node === undefined || seen.has(id)) continue;
    seen.add(id);
    rows.push(node);
    left.push(
      ...lastFirst(
        listIn(node, "children").filter((child) => typeof child === "string"),
        active,
      ),
    );
  }
  return rows;
}

const isNode = (entry: [string, Json | undefined]): entry is [string, JsonObject] => isObject(entry[1]);
const parentOf = (node: JsonObject | undefined): string | null =>
  node === undefined ? null : stringIn(node, "parent");
const lastFirst = (ids: readonly string[], active: ReadonlySet<string>): string[] =>
  ids.toSorted((a, b) => Number(active.has(a)) - Number(active.has(b))).reverse();

function itemOf(row: JsonObject, position: number, now: Timestamp): Incoming {
  const id = stringIn(row, "id");
  if (isChat(row) || id === null) {
    const key = `session:${sessionOf(row) ?? position}`;
    return isChat(row) ? entryOf(row, key, null, "session") : entryOf(row, keyOfPosition(position));
  }
  const parentKey = parentOf(row);
  const place = { key: keyOfId(id), parentKey: parentKey === null ? null : keyOfId(parentKey) };
  const node = objectIn(row, "message");
  const message = messageOf(node);
  if (message === null) return entryOf(row, place.key, place.parentKey);
  const time = node["create_time"];
  const at = (typeof time === "number" ? parseTimestamp(time) : null) ?? now;
  return { kind: "message", message, at, entry: row, hole: null, ...place, ...(isNote(node) ? { aside: "note" } : {}) };
}

/** Null for a node without words. */
function messageOf(node: JsonObject): HostMessage | null {
  const author = objectIn(node, "author");
  const role = stringIn(author, "role");
  const content = objectIn(node, "content");
  const parts = Array.isArray(content["parts"]) ? listIn(content, "parts") : [content];
  const text = parts
    .map(wordsIn)
    .filter((words) => words !== "")
    .join("\n");
  if (role === null || text === "") return null;
  const name = stringIn(author, "name");
  return { role, content: text, ...(name === null ? {} : { name }) };
}

function wordsIn(part: Json): string {
  if (typeof part === "string") return part;
  return isObject(part) ? (stringIn(part, "text") ?? stringIn(part, "result") ?? "") : "";
}

/** The product's own prompts, and what a person wrote about himself for all chats. */
const isNote = (node: JsonObject): boolean =>
  objectIn(node, "author")["role"] === "system" ||
  objectIn(node, "metadata")["is_visually_hidden_from_conversation"] === true ||
  objectIn(node, "content")["content_type"] === "user_editable_context";

const sessionOf = (row: JsonObject): string | null => stringIn(row, "conversation_id") ?? stringIn(row, "id");

const factsIn = (row: JsonObject): Partial<SessionFacts> =>
  isChat(row) ? { id: sessionOf(row), title: stringIn(row, "title") } : {};
