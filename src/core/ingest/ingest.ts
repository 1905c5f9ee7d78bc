/** Ingest: stores a host's messages, once per key, with their large content in files. */

import { messageToStore, storableKey, type HostMessage, type Incoming } from "../messages/codec.ts";
import { nextTurn } from "../base/deadline.ts";
import { LcmError } from "../base/errors.ts";
import { isObject, jsonText } from "../base/json.ts";
import { findLarge, moveOut, restoreIfWhole, type MoveOptions } from "./large-content.ts";
import type { Appendable, Appended, AppendOptions, Store } from "../model/store.ts";
import { settings, type Settings } from "../model/settings.ts";
import { forgottenMark, type ConversationId, type Message } from "../model/types.ts";

export interface IngestDeps {
  readonly store: Store;
  /** The defaults of the settings table if left out. */
  readonly settings?: Pick<Settings, "largeFileTokenThreshold">;
  readonly explore?: MoveOptions["explore"];
}

export interface IngestOptions extends AppendOptions {
  /** What is appended before; it is waited for when everything is encoded. If it fails, nothing is appended. */
  readonly after?: Promise<unknown>;
}

/** How many messages are encoded before others get a turn: answers of a server, signals, timers. */
const itemsPerTurn = 32;

/** Moves large content out to files, then appends. Idempotent by key and content, so a crash in between is harmless. */
export async function ingest(
  deps: IngestDeps,
  conversation: ConversationId,
  items: readonly Incoming[],
  { after, ...options }: IngestOptions = {},
): Promise<Appended> {
  const { store, explore } = deps;
  checkItems(items);
  const thresholdTokens = deps.settings?.largeFileTokenThreshold ?? settings.largeFileTokenThreshold.default;
  const large = new Map(items.flatMap((item) => withLarge(item, thresholdTokens)));
  const stored = await readIntact(store, conversation, [...large.keys()].map(keyOf));
  const encoded: Appendable[] = [];
  for (const [at, item] of items.entries()) {
    if (at % itemsPerTurn === itemsPerTurn - 1) await nextTurn();
    const before = stored.get(keyOf(item));
    const pieces = large.get(item);
    if (item.kind === "entry") encoded.push(item);
    else if (pieces === undefined) encoded.push({ kind: "message", message: messageToStore(item.message, item) });
    else if (before !== undefined) encoded.push(toAppendable(before));
    else encoded.push(await moveOut(item, pieces, { store, conversation, ...(explore && { explore }) }));
  }
  await after;
  const appended = await store.append(conversation, encoded, options);
  // The store compares texts; where content was moved, then or now, the texts are references.
  const doubtful = new Map([...stored, ...(await readKeys(store, conversation, appended.differing))]);
  const raws = new Map(items.flatMap((item) => (item.kind === "message" ? [[keyOf(item), item.message]] : [])));
  const differing = appended.differing.filter((key) => !doubtful.has(key));
  for (const [key, message] of doubtful) {
    const raw = raws.get(key);
    if (raw !== undefined && !(await saysTheSame(store, message, raw))) differing.push(key);
  }
  return { ...appended, differing };
}

/** A program without types may pass anything. */
function checkItems(items: unknown): asserts items is readonly Incoming[] {
  const hint =
    'for example [{ kind: "message", key: "m1", at: clock.now(), message: { role: "user", content: "hello" } }]';
  if (!Array.isArray(items)) throw new LcmError("invalid", "what is ingested is not a list of items", { hint });
  for (const [at, item] of items.entries()) {
    const { kind, key = null } = isObject(item) ? item : {};
    if (kind === "entry") continue;
    if (kind !== "message")
      throw new LcmError("invalid", `item ${at} of what is ingested has neither the kind "message" nor "entry"`, {
        hint,
      });
    if (typeof key !== "string")
      throw new LcmError("invalid", `the key of item ${at} is ${JSON.stringify(key)}, but must be a text`, { hint });
  }
}

export const keyOf = (item: Incoming): string => (item.kind === "message" ? storableKey(item.key) : item.entry.key);

function withLarge(item: Incoming, thresholdTokens: number) {
  const pieces = item.kind === "message" ? findLarge(item.message, thresholdTokens) : [];
  return pieces.length === 0 ? [] : [[item, pieces] as const];
}

async function readKeys(
  store: Store,
  conversation: ConversationId,
  keys: readonly string[],
): Promise<ReadonlyMap<string, Message>> {
  const messages = keys.length === 0 ? [] : await store.messages({ conversation, keys });
  return new Map(messages.map((message) => [message.key, message]));
}

/**
 * Messages stored with all their files, by key. They are not moved a second time: the threshold may have changed, or a
 * file been forgotten. One whose file is lost is moved again, which restores the file.
 */
async function readIntact(store: Store, conversation: ConversationId, keys: readonly string[]) {
  const intact = new Map<string, Message>();
  for (const [key, message] of await readKeys(store, conversation, keys))
    if ((await restoreIfWhole(store, message)) !== null) intact.set(key, message);
  return intact;
}

function toAppendable({ aside, ...message }: Message): Appendable {
  return { kind: "message", message: aside === null ? message : { ...message, aside } };
}

/** A message that was redacted, or whose file is lost, counts as unchanged. */
async function saysTheSame(store: Store, stored: Message, incoming: HostMessage): Promise<boolean> {
  const original = jsonText(await restoreIfWhole(store, stored));
  const isUnknown = original === "null" || original.includes(forgottenMark);
  return isUnknown || original === jsonText(incoming);
}
