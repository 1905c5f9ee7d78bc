/**
 * Import: streams a transcript file into the store in batches, and indexes it.
 *
 * Each batch is atomic and idempotent, so an import can be interrupted anywhere and run again.
 */

import { ingest, keyOf, type IngestDeps } from "./ingest.ts";
import { restoreIfWhole } from "./large-content.ts";
import { textOfMessage, type Incoming } from "../messages/codec.ts";
import {
  createPlainReader,
  noTranscript,
  readTranscriptLine,
  readTranscriptValue,
} from "../messages/transcript-line.ts";
import type { RowReader, SessionFacts, TranscriptLine } from "../messages/transcript-line.ts";
import type { AppendOptions, Clock, SessionIdentity, Store } from "../model/store.ts";
import { nextTurn } from "../base/deadline.ts";
import { firstLine } from "../base/excerpt.ts";
import type { Json } from "../base/json.ts";
import { forgottenMark, type Conversation, type Message } from "../model/types.ts";
import { msToTimestamp, type Timestamp } from "../base/time.ts";

/** A line of text, or an entry already parsed out of a larger document; `position` counts from 1. */
export type SourceLine = {
  readonly position: number;
  /** Where the line ends in its source; left out for one that is still being written. */
  readonly end?: number;
} & ({ readonly text: string } | { readonly value: Json });

/** How a host writes its sessions. */
export interface TranscriptFormat {
  readonly createReader: () => RowReader;
  /** Whose conversation it is; null if the rows do not say it. */
  readonly identify: (session: SessionFacts) => SessionIdentity | null;
}

export interface ImportTarget {
  /** Left out for a transcript of no particular host. */
  readonly format?: TranscriptFormat;
  /** The cursor after a line, from which a later import reads on. It is stored together with the lines. */
  readonly cursorAt?: (end: number, position: number) => string;
  /** What follows the cursor of the conversation that the lines turn out to belong to; null if it is in another file. */
  readonly readOn?: (cursor: string) => Promise<AsyncIterable<SourceLine> | null>;
  /** For a file that does not name its session; a number is added if another chat has that name. */
  readonly fallbackSessionId: string;
  /** Overrides the session named in the file. */
  readonly sessionId?: string;
  readonly sessionKey?: string;
  readonly agentId?: string;
}

export interface ImportReport {
  /** Null when the file was empty. */
  readonly conversation: Conversation | null;
  readonly messages: number;
  readonly entries: number;
  readonly duplicates: number;
  /** Lines whose key is already stored with other content; what was stored stays. */
  readonly differing: readonly { readonly position: number; readonly key: string }[];
  readonly malformed: readonly { readonly position: number; readonly reason: string }[];
}

/** What importing an empty file does. */
export const nothingImported: ImportReport = {
  conversation: null,
  messages: 0,
  entries: 0,
  duplicates: 0,
  differing: [],
  malformed: [],
};

/** Large batches index faster; see the bench. */
const rowsPerIndexing = 8_000;

/** Throws `invalid`, with nothing stored and no conversation created, if the file is not a transcript. */
export async function importTranscript(
  deps: IngestDeps & { readonly clock: Clock },
  source: AsyncIterable<SourceLine>,
  target: ImportTarget,
  onProgress: (position: number, messagesStored: number) => void = () => undefined,
): Promise<ImportReport> {
  const { store } = deps;
  const now = deps.clock.now();
  const { format } = target;
  const recognised = format === undefined ? await recogniseTranscript(source) : { lines: source };
  if (recognised === null) return nothingImported;
  const { conversation, reader, lines } = await begin(store, recognised.lines, target, now);
  const batches = new Batches(conversation?.sessionId ?? null);
  const totals = { messages: 0, entries: 0, duplicates: 0 };
  const differing: { position: number; key: string }[] = [];
  let unindexed = 0;

  const write = async (batch: readonly PlacedItem[], after: Promise<void>): Promise<void> => {
    if (batch.length === 0 || conversation === null) return await after;
    const items = batch.map(({ item }) => item);
    const appended = await ingest(deps, conversation.id, items, { ...cursorAfter(batches.last, target), after });
    totals.messages += appended.messages.length;
    totals.entries += appended.entries;
    totals.duplicates += appended.duplicates;
    const differs = new Set(appended.differing);
    for (const { item, position } of batch)
      if (differs.has(keyOf(item)) && !isHeader(item)) differing.push({ position, key: keyOf(item) });
    unindexed += appended.messages.length;
    if (unindexed < rowsPerIndexing) return;
    await store.index(rowsPerIndexing);
    unindexed = 0;
  };

  // While a batch is written, the next one is read and encoded.
  let writing = Promise.resolve();
  const writeNext = async (): Promise<void> => {
    const before = writing;
    writing = write(batches.take(), before);
    writing.catch(() => undefined); // Whoever waits for it gets the error.
    await before;
  };
  try {
    for await (const { line, read } of lines) {
      const isFull = batches.add(line, read);
      onProgress(line.position, totals.messages);
      if (isFull) await writeNext();
      else if (line.position % linesPerTurn === 0) await nextTurn();
    }
    await writeNext();
    await writing;
  } finally {
    await Promise.allSettled([writing]);
  }
  if (totals.messages > 0) await store.index(rowsPerIndexing);
  const titledAs = await titled(store, conversation, reader.session().title);
  return { conversation: titledAs, ...totals, differing, malformed: batches.malformed };
}

/** A host reads on from where its files were imported; in other files only another import does. */
function cursorAfter(last: SourceLine | null, { format, cursorAt }: ImportTarget): AppendOptions {
  if (last?.end === undefined || cursorAt === undefined) return {};
  const cursor = cursorAt(last.end, last.position);
  return format === undefined ? { fileCursor: cursor } : { hostCursor: cursor };
}

interface ReadLine {
  readonly line: SourceLine;
  readonly read: TranscriptLine;
}

interface Begun {
  /** Null if there is nothing to store. */
  readonly conversation: Conversation | null;
  readonly reader: RowReader;
  /** From the start, or what a former import has not read. */
  readonly lines: AsyncIterable<ReadLine>;
}

/** Reads as many lines as it takes to know their conversation, opens it, and leaves out what it has of the file already. */
async function begin(
  store: Store,
  source: AsyncIterable<SourceLine>,
  target: ImportTarget,
  now: Timestamp,
): Promise<Begun> {
  const { format, readOn } = target;
  const createReader = format?.createReader ?? createPlainReader;
  const reader = createReader();
  const rest = readLines(source, reader, now);
  const seen: ReadLine[] = [];
  const batches = new Batches(target.sessionId ?? null);
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
    seen.push(next.value);
    if (batches.add(next.value.line, next.value.read)) break;
  }
  const start = batches.take().map(({ item }) => item);
  const whole = { reader, lines: resumed(seen, rest) };
  if (start.length === 0) return { conversation: null, ...whole };
  const named = { named: batches.sessionId, facts: reader.session() };
  const conversation = await openTarget(store, named, start, target);
  const cursor = format === undefined ? conversation.fileCursor : conversation.hostCursor;
  const after = cursor === null ? null : ((await readOn?.(cursor)) ?? null);
  if (after === null) return { conversation, ...whole };
  await rest.return();
  const readerAfter = createReader();
  return { conversation, reader: readerAfter, lines: readLines(after, readerAfter, now) };
}

async function* readLines(
  lines: AsyncIterable<SourceLine>,
  reader: RowReader,
  now: Timestamp,
): AsyncGenerator<ReadLine, void> {
  for await (const line of lines) yield { line, read: readLine(line, now, reader) };
}

const readLine = ({ position, ...line }: SourceLine, now: Timestamp, { read }: RowReader): TranscriptLine =>
  "text" in line ? readTranscriptLine(line.text, position, now, read) : read(line.value, position, now);

/** What a host says about a session may change while it goes on; the first that was stored stays. */
const isHeader = (item: Incoming): boolean => item.kind === "entry" && item.entry.type === "session";

interface PlacedItem {
  readonly item: Incoming;
  readonly position: number;
}

/** A file without a message or a session header up to here is not read any further. */
const linesLookedAt = 10_000;
const charactersLookedAt = 32_000_000;

export interface Recognised {
  /** All lines of the transcript. */
  readonly lines: AsyncIterable<SourceLine>;
  /** Undefined for a transcript of no particular host. */
  readonly format?: TranscriptFormat;
}

/**
 * Reads until the source is known to be a transcript, so that nothing needs to be created for another one. Null if it has
 * no lines. Throws `invalid` if it is not a transcript. `formatOf` knows the rows that can only come from one host.
 */
export async function recogniseTranscript(
  source: AsyncIterable<SourceLine>,
  formatOf: (row: Json) => TranscriptFormat | null = () => null,
): Promise<Recognised | null> {
  const rest = source[Symbol.asyncIterator]();
  const seen: SourceLine[] = [];
  let format: TranscriptFormat | null = null;
  const reader: RowReader = {
    ...createPlainReader(),
    read(row, position, now) {
      format = formatOf(row);
      return readTranscriptValue(row, position, now);
    },
  };
  let lines = 0;
  let characters = 0;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
    const line = next.value;
    const read = readLine(line, msToTimestamp(0), reader);
    seen.push(line);
    if (format !== null) return { lines: resumed(seen, rest), format };
    // A new session has a header, and perhaps no message yet.
    if (read.kind === "item" && (read.item.kind === "message" || read.item.entry.type === "session"))
      return { lines: resumed(seen, rest) };
    if (read.kind !== "blank") lines += 1;
    characters += lengthOf(line);
    if (lines < linesLookedAt && characters < charactersLookedAt) continue;
    await rest.return?.();
    throw noTranscript(lines, "first ");
  }
  if (lines > 0) throw noTranscript(lines);
  return null;
}

const lengthOf = (line: SourceLine): number => ("text" in line ? line.text.length : 0);

/** What was already taken from an iterator, then the rest of it. */
export async function* resumed<T>(taken: readonly T[], rest: AsyncIterator<T>): AsyncGenerator<T> {
  try {
    yield* taken;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

const linesPerBatch = 256;
/** How many lines are read before others get a turn. */
const linesPerTurn = 32;
const charactersPerBatch = 4_000_000;

/** Collects lines. The first batch waits until its session is known. */
class Batches {
  readonly malformed: { position: number; reason: string }[] = [];
  sessionId: string | null;
  /** The newest line that is complete. */
  last: SourceLine | null = null;
  #items: PlacedItem[] = [];
  #characters = 0;
  #isTargetKnown: boolean;

  constructor(sessionId: string | null) {
    this.sessionId = sessionId;
    this.#isTargetKnown = sessionId !== null;
  }

  /** Whether the batch is full. */
  add(line: SourceLine, read: TranscriptLine): boolean {
    if (line.end !== undefined) this.last = line;
    if (read.kind === "blank") return false;
    const { position } = line;
    if (read.kind === "malformed") this.malformed.push({ position, reason: read.reason });
    else {
      const { item, sessionId } = read;
      const isMessage = item.kind === "message";
      this.sessionId ??= sessionId;
      // Without a session id, the first messages tell which conversation it is.
      this.#isTargetKnown ||= isMessage || this.sessionId !== null;
      this.#items.push({ item, position });
      this.#characters += lengthOf(line);
    }
    const isFar = this.#characters >= charactersLookedAt || this.#items.length >= linesLookedAt;
    const isMuch = this.#characters >= charactersPerBatch || this.#items.length >= linesPerBatch;
    return isMuch && (this.#isTargetKnown || isFar);
  }

  take(): readonly PlacedItem[] {
    const items = this.#items;
    this.#items = [];
    this.#characters = 0;
    this.#isTargetKnown = true;
    return items;
  }
}

/**
 * Continues a session imported before, even if the host now writes to another. A different session under a key that is
 * taken becomes a further segment of that key.
 */
async function openTarget(
  store: Store,
  { named, facts }: { readonly named: string | null; readonly facts: SessionFacts },
  start: readonly Incoming[],
  target: ImportTarget,
): Promise<Conversation> {
  const { sessionKey = null, agentId = null } = target;
  const identity = target.sessionId === undefined ? (target.format?.identify(facts) ?? null) : null;
  if (identity !== null)
    return await store.open({
      ...identity,
      ...(sessionKey === null ? {} : { sessionKey }),
      ...(agentId === null ? {} : { agentId }),
    });
  for (let number = 1; ; number++) {
    const sessionId = named ?? (number === 1 ? target.fallbackSessionId : `${target.fallbackSessionId}-${number}`);
    const same = await store.openSession({ sessionId, sessionKey, agentId });
    if (named !== null || (await beginsLike(store, same, start))) return same;
  }
}

const messagesCompared = 20;

/**
 * Two files of one name are the same chat only if they begin alike; otherwise the second would be lost among the keys of
 * the first. A message that was redacted or lost since matches anything.
 */
async function beginsLike(store: Store, { id }: Conversation, start: readonly Incoming[]): Promise<boolean> {
  const stored = await store.messages({ conversation: id, limit: messagesCompared });
  const first = start.filter((item) => item.kind === "message").slice(0, messagesCompared);
  if (stored.length === 0 || first.length === 0) return true;
  const textOf = new Map<string, string | null>();
  for (const message of stored) textOf.set(message.key, await originalText(store, message));
  const shared = first.filter((item) => textOf.has(keyOf(item)));
  return (
    shared.length > 0 &&
    shared.every((item) => {
      const text = textOf.get(keyOf(item)) ?? forgottenMark;
      return text === textOfMessage(item.message) || text.includes(forgottenMark);
    })
  );
}

const titleLength = 80;

/** The conversation after the import. Without a title, it gets the first thing its user said that is not a command. */
export async function titled(
  store: Store,
  opened: Conversation | null,
  given: string | null,
): Promise<Conversation | null> {
  if (opened === null) return null;
  if (opened.title === null && given !== null) await store.setTitle(opened.id, firstLine(given, titleLength));
  else if (opened.title === null) {
    for (const message of await store.messages({ conversation: opened.id, role: "user", limit: 10 })) {
      const text = message.aside === "note" ? "" : ((await originalText(store, message)) ?? "");
      if (text.trim() === "" || text.startsWith("/")) continue;
      await store.setTitle(opened.id, firstLine(text, titleLength));
      break;
    }
  }
  return await store.conversation(opened.id);
}

/** The text of a message before anything was moved out of it; null if that is lost. */
async function originalText(store: Store, message: Message): Promise<string | null> {
  if (message.moved.length === 0) return message.text;
  const original = await restoreIfWhole(store, message);
  return original === null ? null : textOfMessage(original);
}
