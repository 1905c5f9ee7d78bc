/** A session that the proxy serves: its conversation, its stored branch, and what is remembered between its requests. */

import type { Timestamp } from "../core/base/time.ts";
import type { HostMessage, Incoming } from "../core/messages/codec.ts";
import type { Lcm } from "../core/lcm.ts";
import { titled } from "../core/ingest/import-transcript.ts";
import { comparable, onlySaying, saidIn } from "../core/messages/said.ts";
import { heardPrefix, seqOf, type Conversation, type ConversationId, type MessageId } from "../core/model/types.ts";
import type { SessionIdentity } from "../core/model/store.ts";
import { align, type Alignment, type RequestPieces } from "./align.ts";
import { addRow, cutPath, emptyPath, hashOf, readPath, tellingIn, type Path } from "./path.ts";

export interface ServedSession {
  readonly sessionId: string;
  readonly identity: SessionIdentity;
  conversation: Conversation;
  path: Path;
  /** How far the conversation was read into the path, and how many messages it had then. */
  newestSeq: number;
  messages: number;
  /** Pieces that the model wrote for the host, not for the user: titles, and the host's own summaries. */
  readonly hostsPieces: Set<string>;
  /** The beginnings of the last long texts among them, which the host may quote. */
  readonly hostsTexts: string[];
  /** How many pieces the path had when the host last asked the model for something of its own; null if it has not. */
  summarisedAt: number | null;
  /** The program that it belongs to, for agents that send no id; null if any program may go on with it. */
  run: string | null;
}

export async function openSession(lcm: Lcm, identity: SessionIdentity): Promise<ServedSession> {
  const conversation = await lcm.store.open(identity);
  const session: ServedSession = {
    sessionId: identity.sessionId,
    identity,
    conversation,
    path: emptyPath(),
    newestSeq: -1,
    messages: 0,
    hostsPieces: new Set(),
    hostsTexts: [],
    summarisedAt: null,
    run: null,
  };
  await refresh(lcm, session);
  return session;
}

/** Reads what others have stored since: a companion, a plugin, an import. */
export async function refresh(lcm: Lcm, session: ServedSession): Promise<void> {
  const { store } = lcm;
  let conversation = await store.conversation(session.conversation.id);
  if (conversation?.active !== true) {
    conversation = await store.open(session.identity);
    Object.assign(session, { path: emptyPath(), newestSeq: -1, messages: 0, summarisedAt: null });
  }
  session.conversation = conversation;
  const { messages } = conversation.totals;
  if (messages === session.messages) return;
  session.newestSeq = await readPath(store, conversation.id, session.path, session.newestSeq);
  session.messages = messages;
}

/** Gives the conversation the first words of its user as its name, as an import does. */
export async function nameConversation({ store }: Lcm, session: ServedSession): Promise<void> {
  const { conversation } = session;
  if (conversation.title !== null) return;
  session.conversation = (await titled(store, await store.conversation(conversation.id), null)) ?? conversation;
}

/** Something that was said, on its way into the store. */
export interface NewSaying {
  readonly message: HostMessage;
  readonly pieces: readonly string[];
}

/** What a message says from one of its telling pieces on, as a message. */
export const messageFrom = (message: HostMessage, nth: number): HostMessage =>
  nth === 0 ? message : onlySaying(message, tellingIn(message).slice(nth));

export interface StoredSayings {
  readonly alignment: Alignment;
  readonly added: number;
  /** Whether the context of the conversation ends where the request does. */
  readonly isCurrent: boolean;
}

const attemptsMax = 3;
/** What is stored at once: others wait meanwhile. */
const sayingsPerAppend = 200;

export interface ToStore extends RequestPieces {
  /** What is said from a piece on. */
  sayings(from: number): Iterable<NewSaying>;
  /** Whether a request that shares nothing with the session begins a new segment of it. */
  readonly mayBegin: boolean;
}

/** Aligns a request with the stored branch and stores what is new. */
export async function storeNew(lcm: Lcm, session: ServedSession, request: ToStore): Promise<StoredSayings> {
  let added = 0;
  for (let attempt = 1; ; attempt++) {
    const alignment = alignWith(session, request);
    if (alignment.kind === "new start" && !request.mayBegin) return { alignment, added, isCurrent: false };
    if (alignment.kind === "new start" && session.path.rows.length > 0) {
      session.conversation = await lcm.store.openSegment(session.identity);
      Object.assign(session, { path: emptyPath(), newestSeq: -1, messages: 0, summarisedAt: null });
      continue;
    }
    const rows = rowsBefore(session.path, rowsUpTo(session.path, alignment.parent), request.sayings(alignment.from));
    // One that ends in the middle of a row cannot be shown up to there.
    const isShown = alignment.from === request.pieces.length;
    // A retry sets nothing aside: if the answer is another one, that does.
    if (alignment.kind === "retry") return { alignment, added, isCurrent: isShown };
    const stored = await appendAll(lcm, session, rows, request.sayings(alignment.from));
    added += stored.added;
    if (stored.isCurrent !== null)
      return { alignment, added, isCurrent: stored.isCurrent && (stored.count > 0 || isShown) };
    if (attempt === attemptsMax) throw new Error("the conversation changes faster than it can be read");
    await refresh(lcm, session);
  }
}

interface AppendedSayings {
  /** How many there were, and how many of them are new. */
  readonly count: number;
  readonly added: number;
  /** Whether the context ends with them; null if somebody else has written meanwhile. */
  readonly isCurrent: boolean | null;
}

async function appendAll(
  lcm: Lcm,
  session: ServedSession,
  parentRows: number,
  sayings: Iterable<NewSaying>,
): Promise<AppendedSayings> {
  let [count, added, isCurrent] = [0, 0, parentRows === session.path.rows.length];
  for (const batch of inBatches(sayings, sayingsPerAppend)) {
    const stored = await appendSayings(lcm, session, parentRows + count, batch);
    if (stored === null) return { count, added, isCurrent: null };
    count += batch.length;
    added += stored.added;
    isCurrent = stored.isCurrent;
  }
  return { count, added, isCurrent };
}

function* inBatches<T>(all: Iterable<T>, size: number): Generator<readonly T[]> {
  let batch: T[] = [];
  for (const each of all) {
    batch.push(each);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

export const alignWith = ({ path }: ServedSession, request: RequestPieces): Alignment =>
  atRowBoundary(path, align(path.pieces, request));

/** A branch may leave a row of another record in its middle: that row is then left as a whole. */
function atRowBoundary(path: Path, alignment: Alignment): Alignment {
  const { parent } = alignment;
  const row = path.rows[rowsUpTo(path, parent)];
  if (row === undefined || row.start >= parent) return alignment;
  const from = alignment.places.indexOf(row.start);
  return from < 0 ? alignment : { ...alignment, from, parent: row.start };
}

/** How many rows the first pieces are. What tells nothing by itself belongs to what follows it. */
export function rowsUpTo({ rows, pieces: all }: Path, pieces: number): number {
  if (pieces === all.length) return rows.length;
  let [from, to] = [0, rows.length];
  while (from < to) {
    const middle = Math.ceil((from + to) / 2);
    if ((rows[middle - 1]?.end ?? 0) <= pieces) from = middle;
    else to = middle - 1;
  }
  while (from > 0 && rows[from - 1]?.start === rows[from - 1]?.end) from--;
  return from;
}

/** The same without those at its end that tell nothing by themselves, if what is said repeats them. */
function rowsBefore({ rows }: Path, count: number, sayings: Iterable<NewSaying>): number {
  let telling = count;
  while (telling > 0 && rows[telling - 1]?.start === rows[telling - 1]?.end) telling--;
  if (telling === count) return count;
  const [first] = sayings;
  const isAgain =
    first !== undefined && keyBehind(rows[telling - 1]?.key ?? null, first.message) === rows[telling]?.key;
  return isAgain ? telling : count;
}

/** Equal messages in a row have different parents, and a request that is sent again gives the same keys. */
const keyBehind = (parent: string | null, message: HostMessage): string =>
  heardPrefix + hashOf([parent ?? "", ...saidIn(message).map(comparable)].join("\n"));

/** A place in the stored conversation, which stays known when another request has taken the path to another branch. */
export interface PathEnd {
  readonly conversation: ConversationId;
  readonly pieces: number;
  /** The last message up to there; null if there is none. */
  readonly key: string | null;
}

export const pathEnd = ({ conversation, path }: ServedSession, pieces: number): PathEnd => ({
  conversation: conversation.id,
  pieces,
  key: path.rows[rowsUpTo(path, pieces) - 1]?.key ?? null,
});

export const isOnPath = (session: ServedSession, end: PathEnd): boolean =>
  session.conversation.id === end.conversation && pathEnd(session, end.pieces).key === end.key;

/** Stores what continues another branch than the path is on, and takes the path there. Returns how many are new. */
export async function storeBehind(
  lcm: Lcm,
  session: ServedSession,
  { conversation, key }: PathEnd,
  sayings: readonly NewSaying[],
): Promise<number> {
  // In a segment that was left, nothing goes on.
  if (session.conversation.id !== conversation) return 0;
  const { messages } = await lcm.ingest(conversation, itemsBehind(key, sayings, lcm.clock.now()));
  Object.assign(session, { path: emptyPath(), newestSeq: -1, messages: 0 });
  await refresh(lcm, session);
  return messages.length;
}

function itemsBehind(key: string | null, sayings: readonly NewSaying[], at: Timestamp) {
  let parent = key;
  return sayings.map(({ message }): Incoming & { readonly kind: "message" } => {
    const item = { kind: "message", message, key: keyBehind(parent, message), at, parentKey: parent } as const;
    parent = item.key;
    return item;
  });
}

/** Null if somebody else has written meanwhile. */
async function appendSayings(
  lcm: Lcm,
  session: ServedSession,
  parentRows: number,
  sayings: readonly NewSaying[],
): Promise<{ readonly added: number; readonly isCurrent: boolean } | null> {
  const { path, conversation } = session;
  const items = itemsBehind(path.rows[parentRows - 1]?.key ?? null, sayings, lcm.clock.now());
  let known = 0;
  while (known < items.length && path.rows[parentRows + known]?.key === items[known]?.key) known++;
  if (known === items.length) return { added: 0, isCurrent: parentRows + known === path.rows.length };
  const stored = await lcm.ingest(conversation.id, items, { ifMessages: session.messages });
  if (stored.turn === "stale") return null;
  session.messages += stored.messages.length;
  session.newestSeq = Math.max(session.newestSeq, ...stored.messages.map((id) => seqOf(id)));
  const rows = await lcm.store.messages({ conversation: conversation.id, keys: items.map(({ key }) => key) });
  const byKey = new Map(rows.map((row) => [row.key, row]));
  cutPath(path, parentRows);
  if (session.summarisedAt !== null) session.summarisedAt = Math.min(session.summarisedAt, path.pieces.length);
  items.forEach(({ key }, nth) => {
    const row = byKey.get(key);
    addRow(
      path,
      { key, id: row?.id ?? (-1 as MessageId), isMoved: (row?.moved.length ?? 0) > 0 },
      sayings[nth]?.pieces ?? [],
    );
  });
  // The branch that the conversation was on before has come back, but only a new message makes the store follow.
  const isCurrent = stored.messages.includes(rows.at(-1)?.id ?? (-1 as MessageId));
  return { added: stored.messages.length, isCurrent };
}

/** Of what is said behind the first `start` pieces, what comes behind the first `from`. */
export function sayingsBehind(sayings: readonly NewSaying[], start: number, from: number): readonly NewSaying[] {
  let end = start;
  return sayings.flatMap((saying) => {
    const begin = end;
    end += saying.pieces.length;
    if (begin >= from) return [saying];
    const skipped = from - begin;
    return end > from ? [{ message: messageFrom(saying.message, skipped), pieces: saying.pieces.slice(skipped) }] : [];
  });
}
