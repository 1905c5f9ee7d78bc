/**
 * Codex's rollouts: `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`, a list of `{ timestamp, ordinal, type, payload }`.
 * What was said and done are its `response_item`s, which are OpenAI's; events tell the same once more.
 *
 * After a rewind the thread goes on in another file, `rollout-<time>-<thread>_<revision>.jsonl`. Its ordinals go on from
 * where the thread went back to, so a row is known by its revision and its ordinal.
 */

import { isObject, type JsonObject } from "../../../core/base/json.ts";
import type { Timestamp } from "../../../core/base/time.ts";
import type { HostMessage, Incoming } from "../../../core/messages/codec.ts";
import { keyOfPosition, timeOf, type SessionFacts } from "../../../core/messages/transcript-line.ts";
import { entryOf, listIn, objectIn, readerOf, stringIn, type RowFormat } from "./row-format.ts";

export const codexRows: RowFormat = {
  host: "codex",
  recognises: (row) =>
    typeof row["type"] === "string" && isObject(row["payload"]) && typeof row["timestamp"] === "string",
  createReader(path = "") {
    const [, revision = ""] = revisionFile.exec(path) ?? [];
    const parents = createParents(revision);
    return readerOf((row, position, now) => parents(row, itemOf(row, keyOf(row, position, revision), now)), factsIn);
  },
};

const revisionFile = /_([0-9a-f-]{36})\.jsonl$/;

/**
 * A list has no parents, except where a person took turns back: then the next row continues what came before them. Newer
 * versions begin a revision and say so in its first row. Older ones record how many turns; those before the place where
 * reading began are not known, so going back behind it is not seen.
 */
function createParents(revision: string): (row: JsonObject, item: Incoming) => Incoming {
  /** The row before each turn of the user's. */
  const turns: string[] = [];
  let newest = "";
  let parentKey: string | undefined;
  return (row, item) => {
    const { key } = item.kind === "message" ? item : item.entry;
    parentKey ??= revision === "" ? undefined : baseOf(row);
    const placed = parentKey === undefined ? item : withParent(item, parentKey);
    parentKey = undefined;
    if (item.kind === "message" && item.message["role"] === "user" && item.aside === undefined) turns.push(newest);
    const { type, num_turns: count } = objectIn(row, "payload");
    if (row["type"] === "event_msg" && type === "thread_rolled_back" && typeof count === "number" && count > 0)
      parentKey = turns.splice(-count)[0] || undefined;
    newest = key;
    return placed;
  };
}

/** The last row before a revision. */
function baseOf(row: JsonObject): string | undefined {
  const { id, history_base: base } = objectIn(row, "payload");
  if (row["type"] !== "session_meta" || !isObject(base)) return undefined;
  const { thread_id: thread, end_ordinal_exclusive: end } = base;
  if (typeof thread !== "string" || typeof end !== "number") return undefined;
  return keyIn(thread === id ? "" : thread, end);
}

const withParent = (item: Incoming, parentKey: string): Incoming =>
  item.kind === "message" ? { ...item, parentKey } : { ...item, entry: { ...item.entry, parentKey } };

function itemOf(row: JsonObject, key: string, now: Timestamp): Incoming {
  const item = objectIn(row, "payload");
  const message = row["type"] === "response_item" ? messageOfItem(item) : null;
  if (message === null) return entryOf(row, key);
  return {
    kind: "message",
    message,
    key,
    at: timeOf(row) ?? now,
    entry: row,
    hole: { field: "payload", holds: message === item ? "message" : "block" },
    ...(isNote(row, item) ? { aside: "note" } : {}),
  };
}

/** Providers repeat the ids of items, so a row is known by its place, which newer versions write into it. */
const keyOf = ({ ordinal }: JsonObject, position: number, revision: string): string =>
  keyIn(revision, typeof ordinal === "number" ? ordinal + 1 : position);

const keyIn = (revision: string, position: number): string => revision + keyOfPosition(position);

/** An item of OpenAI's responses as a message: itself, or the only block of one. Null for an item that is not speech. */
export function messageOfItem(item: JsonObject): HostMessage | null {
  const { type, role } = item;
  if (typeof type !== "string") return null;
  if (type === "message") return typeof role === "string" ? item : null;
  if (type.endsWith("_call_output") || type === "tool_search_output") return { role: "tool", content: [item] };
  return type.endsWith("_call") || type === "reasoning" ? { role: "assistant", content: [item] } : null;
}

/** What the host says in the user's or the model's name: its instructions and surroundings, hooks, its compaction. */
function isNote(row: JsonObject, item: JsonObject): boolean {
  if (item["role"] === "developer" || item["role"] === "system") return true;
  if (objectIn(row, "metadata")["compaction_output"] === true) return true;
  if (item["role"] !== "user") return false;
  const kinds = listIn(objectIn(item, "internal_chat_message_metadata_passthrough"), "content_item_kinds");
  if (kinds.length > 0) return !kinds.some((kind) => typeof kind === "string" && /^(?:user\.|unknown$)/.test(kind));
  // Older versions do not say it.
  const [first] = listIn(item, "content");
  return hostsText.test(isObject(first) ? (stringIn(first, "text") ?? "") : "");
}

const hostsText =
  /^\s*(?:<(?:environment_context|user_instructions|turn_aborted|permissions)\b|# AGENTS\.md instructions)/;

function factsIn(row: JsonObject): Partial<SessionFacts> {
  const payload = objectIn(row, "payload");
  if (row["type"] === "event_msg") return { title: stringIn(payload, "thread_name") };
  if (row["type"] !== "session_meta") return {};
  return {
    id: stringIn(payload, "id"),
    folder: stringIn(payload, "cwd"),
    parentSessionId: stringIn(payload, "parent_thread_id"),
  };
}
