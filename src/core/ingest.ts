/**
 * Transcripts in and out. Importing streams a file into the store in batches, each of them atomic and idempotent, so
 * that it can be broken off anywhere and run again, and leaves it indexed; exporting writes the same lines back.
 */

import { textOfParts } from "./content.ts";
import { forgottenMark } from "./forget.ts";
import type { Conversation, ConversationId, Json, Timestamp } from "./model.ts";
import type { Appendable, Clock, Store } from "./ports.ts";
import { firstLine } from "./text.ts";
import { entryToLine, messageToLine, readTranscriptLine, readTranscriptValue } from "./transcript.ts";
import type { TranscriptLine } from "./transcript.ts";

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
/** Large batches are the cheap way to index much; see the bench. */
const rowsPerIndexing = 8_000;
const charactersPerBatch = 4_000_000;

export async function importTranscript(
  deps: { readonly store: Store; readonly clock: Clock },
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

  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    conversation ??= await openTarget(
      store,
      sessionId,
      batch.map((line) => line.item),
      target,
    );
    const appended = await store.append(
      conversation.id,
      batch.map((line) => line.item),
    );
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
        continue;
      case "item":
        sessionId ??= read.sessionId;
        batch.push({ item: read.item, position: line.position });
        characters += "text" in line ? line.text.length : 0;
    }
    if (batch.length >= linesPerBatch || characters >= charactersPerBatch) await flush();
  }
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
    const first = said.find(({ text }) => text.trim() !== "" && !text.startsWith("/"));
    if (first !== undefined) await store.setTitle(opened.id, firstLine(first.text, titleLength));
  }
  return await store.conversation(opened.id);
}

const readLine = (line: SourceLine, now: Timestamp): TranscriptLine =>
  "text" in line
    ? readTranscriptLine(line.text, line.position, now)
    : readTranscriptValue(line.value, line.position, now);

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
 * What was forgotten since is like whatever it was.
 */
async function beginsLike(store: Store, { id }: Conversation, start: readonly Appendable[]): Promise<boolean> {
  const stored = await store.messages({ conversation: id, limit: messagesCompared });
  const first = start.filter((item) => item.kind === "message").slice(0, messagesCompared);
  if (stored.length === 0 || first.length === 0) return true;
  const textOf = new Map(stored.map(({ key, text }) => [key, text]));
  const met = first.filter(({ message }) => textOf.has(message.key));
  return (
    met.length > 0 &&
    met.every(({ message }) => {
      const text = textOf.get(message.key) ?? "";
      return text === textOfParts(message.parts) || text.includes(forgottenMark);
    })
  );
}

/** Messages can hold pictures: a page is small enough for a hundred large ones. */
const messagesPerPage = 100;

/** Every line of a conversation's transcript, in the order it came in. */
export async function* exportTranscript(store: Store, conversation: ConversationId): AsyncGenerator<string> {
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
      yield messageToLine(message);
      afterSeq = message.seq;
    }
    yield* entriesBefore(upto);
    if (isLast) return;
  }
}
