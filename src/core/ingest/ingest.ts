/**
 * The way in, and transcripts in and out. What a host says is stored with its large content in files. Importing streams
 * a file into the store in batches, each of them atomic and idempotent, so that it can be broken off anywhere and run
 * again, and leaves it indexed; exporting writes the same lines back.
 */

import { messageFromStore, messageToStore, textOfParts } from "../messages/codec.ts";
import type { HostMessage } from "../messages/codec.ts";
import { mayHoldLarge, messagesPerPage, moveOut, restoreWhatIsThere } from "./large-content.ts";
import type { MoveOptions } from "./large-content.ts";
import type { Conversation, ConversationId, Message, MessageId, NewMessage } from "../model/types.ts";
import type { Appendable, Appended, AppendOptions, Clock, Store } from "../model/store.ts";
import { settings } from "../model/settings.ts";
import type { Settings } from "../model/settings.ts";
import { firstLine } from "../base/excerpt.ts";
import {
  entryToLine,
  messageToLine,
  noTranscript,
  readTranscriptLine,
  readTranscriptValue,
} from "../messages/transcript-line.ts";
import type { TranscriptLine } from "../messages/transcript-line.ts";
import type { Json } from "../base/json.ts";
import { forgottenMark } from "../model/types.ts";
import type { Timestamp } from "../base/time.ts";

export interface IngestDeps {
  readonly store: Store;
  /** The defaults of the settings table if left out. */
  readonly settings?: Pick<Settings, "largeFileTokenThreshold">;
  readonly explore?: MoveOptions["explore"];
}

/** Moves large content out to files, then appends. Idempotent by key and content: a crash in between is made good. */
export async function ingest(
  deps: IngestDeps,
  conversation: ConversationId,
  items: readonly Appendable[],
  options: AppendOptions = {},
): Promise<Appended> {
  const { store, explore } = deps;
  const thresholdTokens = deps.settings?.largeFileTokenThreshold ?? settings.largeFileTokenThreshold.default;
  const messages = new Map(
    items.flatMap((item) => (item.kind === "message" ? [[item.message.key, item.message]] : [])),
  );
  const storedUnder = async (keys: readonly string[]): Promise<ReadonlyMap<string, Message>> => {
    const found = keys.length === 0 ? [] : await store.messages({ conversation, keys });
    return new Map(found.map((message) => [message.key, message]));
  };
  // What is stored is not moved a second time: its file may have been forgotten since, or the threshold is another now.
  // Only where a file was lost is it, and has it back.
  const large = [...messages.values()].filter((message) => mayHoldLarge(message, thresholdTokens));
  const stored = new Map<string, Message>();
  for (const [key, message] of await storedUnder(large.map(({ key }) => key)))
    if ((await originalOf(store, message)) !== null) stored.set(key, message);
  const asStored = items.map((item) => {
    const message = item.kind === "message" ? stored.get(item.message.key) : undefined;
    return message === undefined ? item : toAppendable(message);
  });
  const left = await moveOut(store, conversation, asStored, { thresholdTokens, ...(explore && { explore }) });
  const appended = await store.append(conversation, left, options);
  // The store compares texts, and where something was moved then or now, the texts are references.
  const doubtful = new Map([...stored, ...(await storedUnder(appended.differing))]);
  const differing: string[] = appended.differing.filter((key) => !doubtful.has(key));
  for (const [key, before] of doubtful) {
    const message = messages.get(key);
    if (message !== undefined && !(await saysTheSame(store, before, message))) differing.push(key);
  }
  return { ...appended, differing };
}

function toAppendable({ aside, ...message }: Message): Appendable {
  return { kind: "message", message: aside === null ? message : { ...message, aside } };
}

/** What was forgotten since is like whatever it was, and so is what can no longer be read. */
async function saysTheSame(store: Store, stored: Message, incoming: NewMessage): Promise<boolean> {
  const original = JSON.stringify(await originalOf(store, stored));
  const isUnknown = original === "null" || original.includes(forgottenMark);
  return isUnknown || original === JSON.stringify(messageFromStore(incoming));
}

/** As the host sent it; null when a file of it is lost, which `doctor` names. */
async function originalOf(store: Store, stored: Message): Promise<HostMessage | null> {
  const { raw, losses } = await restoreWhatIsThere(store, stored);
  return losses.length === 0 ? raw : null;
}

/** A line of text, or an entry already parsed out of a larger document; `position` counts from 1. */
export type SourceLine = { readonly position: number } & ({ readonly text: string } | { readonly value: Json });

export interface ImportTarget {
  /** Used where the file does not name its session; with a number behind it if another chat has that name already. */
  readonly fallbackSessionId: string;
  /** Overrides what the file says. */
  readonly sessionId?: string;
  readonly sessionKey?: string;
  readonly agentId?: string;
}

export interface ImportReport {
  /** Null when the file held nothing that could be stored. */
  readonly conversation: Conversation | null;
  readonly messages: number;
  readonly entries: number;
  readonly duplicates: number;
  /** Lines whose key is already stored with another content; what was stored stays. */
  readonly differing: readonly { readonly position: number; readonly key: string }[];
  readonly malformed: readonly { readonly position: number; readonly reason: string }[];
}

const linesPerBatch = 256;
/** A file without a message or a session's header up to here is read no further. */
const linesLookedAt = 10_000;
const charactersLookedAt = 32_000_000;
/** Large batches are the cheap way to index much; see the bench. */
const rowsPerIndexing = 8_000;
const charactersPerBatch = 4_000_000;

/** Throws `invalid`, with nothing stored and no conversation made, for what is no transcript. */
export async function importTranscript(
  deps: IngestDeps & { readonly clock: Clock },
  source: AsyncIterable<SourceLine>,
  target: ImportTarget,
  onProgress: (position: number) => void = () => undefined,
): Promise<ImportReport> {
  const { store } = deps;
  const now = deps.clock.now();
  const report = { messages: 0, entries: 0, duplicates: 0 };
  const differing: { position: number; key: string }[] = [];
  const malformed: { position: number; reason: string }[] = [];
  let conversation: Conversation | null = null;
  let sessionId: string | null = target.sessionId ?? null;
  let batch: { readonly item: Appendable; readonly position: number }[] = [];
  let characters = 0;
  let unindexed = 0;
  let isTranscript = false;

  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    const items = batch.map(({ item }) => item);
    conversation ??= await openTarget(store, sessionId, items, target);
    const appended = await ingest(deps, conversation.id, items);
    report.messages += appended.messages.length;
    report.entries += appended.entries;
    report.duplicates += appended.duplicates;
    const differs = new Set(appended.differing);
    for (const { item, position } of batch)
      if (differs.has(keyOf(item))) differing.push({ position, key: keyOf(item) });
    batch = [];
    characters = 0;
    unindexed += appended.messages.length;
    if (unindexed >= rowsPerIndexing) {
      await store.index(rowsPerIndexing);
      unindexed = 0;
    }
  };

  for await (const line of source) {
    const read = readLine(line, now);
    onProgress(line.position);
    switch (read.kind) {
      case "blank":
        continue;
      case "malformed":
        malformed.push({ position: line.position, reason: read.reason });
        break;
      case "item":
        // A session that has just begun has a header, and perhaps nothing said yet.
        isTranscript ||= read.item.kind === "message" || read.item.entry.type === "session";
        sessionId ??= read.sessionId;
        batch.push({ item: read.item, position: line.position });
        characters += "text" in line ? line.text.length : 0;
    }
    const looked = batch.length + malformed.length;
    const isFar = characters >= charactersLookedAt || looked >= linesLookedAt;
    if (!isTranscript && isFar) throw noTranscript(looked, "first ");
    // Which conversation it is of is told by its name, or by how it begins.
    const isKnown = conversation !== null || sessionId !== null || batch.some(({ item }) => item.kind === "message");
    const isMuch = characters >= charactersPerBatch || batch.length >= linesPerBatch;
    if (isTranscript && isMuch && (isKnown || isFar)) await flush();
  }
  const looked = batch.length + malformed.length;
  if (!isTranscript && looked > 0) throw noTranscript(looked);
  await flush();
  if (report.messages > 0) await store.index(rowsPerIndexing);
  return { conversation: await titled(store, conversation), ...report, differing, malformed };
}

const titleLength = 80;

/** As it stands after the import; one without a title is called by the first thing its user said (no command). */
async function titled(store: Store, opened: Conversation | null): Promise<Conversation | null> {
  if (opened === null) return null;
  if (opened.title === null) {
    const said = await store.messages({ conversation: opened.id, role: "user", limit: 10 });
    for (const message of said) {
      const text = (await textAsItCame(store, message)) ?? "";
      if (text.trim() === "" || text.startsWith("/")) continue;
      await store.setTitle(opened.id, firstLine(text, titleLength));
      break;
    }
  }
  return await store.conversation(opened.id);
}

/** What a message said before anything was moved out of it; null if that is lost. */
async function textAsItCame(store: Store, message: Message): Promise<string | null> {
  const { key, at, moved, text } = message;
  if (moved.length === 0) return text;
  const original = await originalOf(store, message);
  return original === null ? null : textOfParts(messageToStore(original, { key, at }).parts);
}

const readLine = ({ position, ...line }: SourceLine, now: Timestamp): TranscriptLine =>
  "text" in line ? readTranscriptLine(line.text, position, now) : readTranscriptValue(line.value, position, now);

const keyOf = (item: Appendable): string => (item.kind === "message" ? item.message.key : item.entry.key);

/**
 * A session imported before is continued, also if it is no longer the one that the host writes to. Another session under
 * a key that is taken is a further segment of that key.
 */
async function openTarget(
  store: Store,
  named: string | null,
  start: readonly Appendable[],
  target: ImportTarget,
): Promise<Conversation> {
  const { sessionKey = null, agentId = null } = target;
  for (let number = 1; ; number++) {
    const sessionId = named ?? (number === 1 ? target.fallbackSessionId : `${target.fallbackSessionId}-${number}`);
    const same = await store.openSession({ sessionId, sessionKey, agentId });
    if (named !== null || (await beginsLike(store, same, start))) return same;
  }
}

const messagesCompared = 20;

/**
 * Two files of one name are one chat only if they begin alike; else the second would be lost among the first's keys.
 * What was forgotten or lost since is like whatever it was.
 */
async function beginsLike(store: Store, { id }: Conversation, start: readonly Appendable[]): Promise<boolean> {
  const stored = await store.messages({ conversation: id, limit: messagesCompared });
  const first = start.filter((item) => item.kind === "message").slice(0, messagesCompared);
  if (stored.length === 0 || first.length === 0) return true;
  const textOf = new Map<string, string | null>();
  for (const message of stored) textOf.set(message.key, await textAsItCame(store, message));
  const met = first.filter(({ message }) => textOf.has(message.key));
  return (
    met.length > 0 &&
    met.every(({ message }) => {
      const text = textOf.get(message.key) ?? forgottenMark;
      return text === textOfParts(message.parts) || text.includes(forgottenMark);
    })
  );
}

/** A message that was exported with a reference where its content was, and why. */
export interface Incomplete {
  readonly message: MessageId;
  readonly reason: string;
}

/** Every line of a conversation's transcript, in the order it came in; at the end, those that are not as they came. */
export async function* exportTranscript(
  store: Store,
  conversation: ConversationId,
): AsyncGenerator<string, readonly Incomplete[]> {
  const incomplete: Incomplete[] = [];
  for (let afterSeq = 0; ;) {
    const messages = await store.messages({ conversation, afterSeq, limit: messagesPerPage });
    const isLast = messages.length < messagesPerPage;
    const upto = isLast ? Number.MAX_SAFE_INTEGER : (messages.at(-1)?.seq ?? afterSeq);
    const entries = await store.entries(conversation, afterSeq, upto);
    let next = 0;
    const entriesBefore = function* (seq: number): Generator<string> {
      for (; next < entries.length; next++) {
        const entry = entries[next];
        if (entry === undefined || entry.afterSeq >= seq) return;
        yield entryToLine(entry);
      }
    };
    for (const message of messages) {
      yield* entriesBefore(message.seq);
      const { raw, losses } = await restoreWhatIsThere(store, message);
      const reason = losses.map((loss) => loss.message).join("; ");
      if (reason !== "") incomplete.push({ message: message.id, reason });
      yield messageToLine(message, raw);
      afterSeq = message.seq;
    }
    yield* entriesBefore(upto);
    if (isLast) return incomplete;
  }
}
