/** Marks in the stream of messages: where the host or we compacted, where a segment begins, where the model changed. */

import { firstLine } from "../base/excerpt.ts";
import { formatCount } from "../base/format.ts";
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import type { Timestamp } from "../base/time.ts";
import type { Store } from "../model/store.ts";
import type { CompactionRecord, ConversationId, Entry, Message } from "../model/types.ts";

export interface Mark {
  readonly conversation: ConversationId;
  /** The message that it follows; 0 at the start. */
  readonly afterSeq: number;
  readonly at: Timestamp | null;
  readonly kind: "compaction" | "segment" | "model";
  /** One line. */
  readonly text: string;
}

type Marked = Pick<Message, "conversation" | "seq" | "at">;

/** Entries to read around each message, and compactions of a conversation, newest first. */
const compactionsMax = 200;

/** The marks right before, between and right after consecutive messages of one conversation. */
export async function marksAmong(store: Store, messages: readonly Marked[]): Promise<readonly Mark[]> {
  const [first, last] = [messages[0], messages.at(-1)];
  if (first === undefined || last === undefined) return [];
  const { conversation } = first;
  const [entries, compactions, [next]] = await Promise.all([
    store.entries(conversation, first.seq === 1 ? 0 : first.seq - 1, last.seq + 1),
    store.compactions(conversation, compactionsMax),
    store.messages({ conversation, afterSeq: last.seq, limit: 1 }),
  ]);
  return [
    ...entries.flatMap((entry) => markOfEntry(conversation, entry) ?? []),
    ...compactions.flatMap((record) => markOfCompaction(record, messages, next === undefined) ?? []),
  ].toSorted((one, other) => one.afterSeq - other.afterSeq || (one.at ?? "").localeCompare(other.at ?? ""));
}

/** What the host records; one row per kind of transcript entry. */
function markOfEntry(conversation: ConversationId, { type, raw, at, afterSeq }: Entry): Mark | null {
  if (!noteworthy.test(type) || raw.length > rawMax) return null;
  const value = JSON.parse(raw) as Json;
  const words = isObject(value) ? wordsOfEntry(type, value) : null;
  return words && { conversation, afterSeq, at, ...words };
}

const noteworthy = /^(?:compaction|compacted|model_change|reset|session_reset|system|custom|event)$/;
/** A compaction's entry contains its summary; anything much longer is not one. */
const rawMax = 1_000_000;

function wordsOfEntry(type: string, value: JsonObject): Pick<Mark, "kind" | "text"> | null {
  if (type === "model_change") {
    const name = [value["provider"], value["modelId"] ?? value["model"]].filter((word) => typeof word === "string");
    return { kind: "model", text: `model changed to ${firstLine(name.join("/"), nameMax)}` };
  }
  if (type === "compaction" || type === "compacted" || value["subtype"] === "compact_boundary") {
    const details = isObject(value["compactMetadata"]) ? value["compactMetadata"]["preTokens"] : value["tokensBefore"];
    return {
      kind: "compaction",
      text: `compacted by the host${typeof details === "number" ? ` at ${formatCount(details)} tokens` : ""}`,
    };
  }
  return /reset/.test(type) ? { kind: "segment", text: "reset by the host" } : null;
}

const nameMax = 80;

/** Ours are recorded by time: each follows the last message before it. */
function markOfCompaction(record: CompactionRecord, messages: readonly Marked[], isEnd: boolean): Mark | null {
  const { conversation, at, tokensBefore, tokensAfter } = record;
  const before = messages.findLast((message) => message.at <= at);
  if (before === undefined || tokensAfter >= tokensBefore || (before === messages.at(-1) && !isEnd)) return null;
  const text = `compacted: ${formatCount(tokensBefore)} to ${formatCount(tokensAfter)} tokens`;
  return { conversation, afterSeq: before.seq, at, kind: "compaction", text };
}
