/**
 * A host for tests: it keeps a transcript as real hosts do, and is the oracle for what must be stored. Every entry has
 * its own key and a parent that it continues. It knows nothing of the store.
 */

import type { HostMessage, Incoming } from "../../src/core/messages/codec.ts";
import { messageToStore } from "../../src/core/messages/codec.ts";
import type { Appendable } from "../../src/core/model/store.ts";
import type { JsonObject } from "../../src/core/base/json.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

export type HostEntry = {
  readonly key: string;
  readonly parentKey: string | null;
  readonly at: Timestamp;
} & (
  | { readonly kind: "message"; readonly raw: HostMessage }
  | { readonly kind: "entry"; readonly type: string; readonly raw: JsonObject }
);

export type SentMessage = HostEntry & { readonly kind: "message" };

export interface ScriptedHost {
  /** Everything ever written, in the order of writing, on all branches. */
  readonly entries: readonly HostEntry[];
  /** Appends a message after the newest entry of the current branch. */
  says(raw: HostMessage): SentMessage;
  /** Writes a line that is not a message. */
  notes(type: string, data?: JsonObject): HostEntry;
  /** The next message continues this entry. */
  goesBackTo(key: string): void;
}

const epochMs = Date.UTC(2026, 1, 17, 7, 37);

/** Keys begin with `name`; each entry is a second later than the one before. */
export function createHost(name: string): ScriptedHost {
  const entries: HostEntry[] = [];
  let leaf: string | null = null;
  const place = () => ({
    key: `${name}-${entries.length + 1}`,
    parentKey: leaf,
    at: new Date(epochMs + entries.length * 1_000).toISOString() as Timestamp,
  });
  const write = <E extends HostEntry>(entry: E): E => {
    entries.push(entry);
    leaf = entry.key;
    return entry;
  };
  return {
    entries,
    says: (raw) => write({ ...place(), kind: "message", raw }),
    notes: (type, data = {}) => write({ ...place(), kind: "entry", type, raw: { type, ...data } }),
    goesBackTo(key) {
      leaf = key;
    },
  };
}

/** The messages from the root to the newest of these entries: what the host shows its model. */
export function activeBranch(entries: readonly HostEntry[]): readonly SentMessage[] {
  const byKey = new Map(entries.map((entry) => [entry.key, entry]));
  const branch: SentMessage[] = [];
  for (let entry = entries.at(-1); entry !== undefined; entry = byKey.get(entry.parentKey ?? "")) {
    if (entry.kind === "message") branch.push(entry);
  }
  return branch.reverse();
}

export function toIncoming(entry: HostEntry): Incoming {
  const { key, parentKey, at } = entry;
  return entry.kind === "message"
    ? { kind: "message", message: entry.raw, key, parentKey, at }
    : { kind: "entry", entry: { key, parentKey, at, type: entry.type, raw: JSON.stringify(entry.raw) } };
}

export const toAppendable = (entry: HostEntry): Appendable => encode(toIncoming(entry));

export const encode = (item: Incoming): Appendable =>
  item.kind === "entry" ? item : { kind: "message", message: messageToStore(item.message, item) };

// ── The messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

export const user = (text: string): HostMessage => ({ role: "user", content: text });

/** A turn with a tool call: four messages that belong together. */
export const turnWithTool = (id: string, question: string, answer: string): readonly HostMessage[] => [
  user(question),
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: `what is behind "${question}"?`, thinkingSignature: "c2ln" },
      { type: "toolCall", id, name: "read", arguments: { path: `notes/${id}.md` } },
    ],
    provider: "scripted",
    stopReason: "toolUse",
  },
  { role: "toolResult", toolCallId: id, toolName: "read", content: [{ type: "text", text: answer }], isError: false },
  {
    role: "assistant",
    content: [{ type: "text", text: `It says: ${answer}` }],
    provider: "scripted",
    stopReason: "stop",
  },
];
