/**
 * The one way in: the host's transcript, read on from where we stopped. The committed turn comes along it, and so does
 * whatever never was a turn of ours: one that failed, one that another engine served, a slash command, a reset. Every
 * row has the host's id for its key, and is stored with the place that was reached in one transaction. So it does not
 * matter who reads, how often, or where a process dies.
 *
 * A reset begins a new segment. It is read by itself, so that the place behind it is stored with what it begins.
 */

import { assert, LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation } from "../../core/model/types.ts";
import type { Incoming } from "../../core/messages/codec.ts";
import type { Appended, Store } from "../../core/model/store.ts";
import { readTranscriptValue } from "../../core/messages/transcript-line.ts";
import type { ReadTranscript, TranscriptPage, TranscriptPlace } from "./host-api.ts";
import { alignOlder } from "./align-older.ts";
import type { Json } from "../../core/base/json.ts";
import { isObject } from "../../core/base/json.ts";

export interface Turn {
  /** The host's key of the whole turn. */
  readonly key: string;
  /** The id of its last row. */
  readonly lastKey: string;
}

export interface Drained {
  /** The segment that the host is writing to; null if nothing was ever said. */
  readonly conversation: Conversation | null;
  /** How many messages were new. */
  readonly messages: number;
  readonly turn: Appended["turn"];
  /** False where the host keeps no transcript of the session, and nothing was stored of the turn. */
  readonly isKept: boolean;
}

type Page = Extract<TranscriptPage, { readonly kind: "page" }>;

const eventsPerPage = 500;
const bytesPerPage = 4_000_000;
const bytesMax = 67_108_864;

/**
 * Stores what is new. With a turn, under its key and up to its end: one that comes again comes when the next is written
 * already, and that one is shown by the host. Throws if the transcript does not hold the turn's end.
 */
export async function drain(lcm: Lcm, read: ReadTranscript, place: TranscriptPlace, turn?: Turn): Promise<Drained> {
  const { store } = lcm;
  const readFrom = createReader(read, place);
  let conversation = (await findActive(store, place)) ?? (await goOn(store, place, readFrom));
  let cursor = conversation?.hostCursor ?? null;
  let messages = 0;
  let named: Appended["turn"] = "unnamed";
  let isSought = false;
  const stored = turn === undefined || conversation === null ? null : await nameIn(store, [conversation], turn);
  if (stored !== null) return { conversation, messages, turn: stored, isKept: true };
  let keep = cursor === null ? await createFilter(lcm, conversation, readFrom) : keepAll;
  for (;;) {
    const page = await readFrom(cursor, eventsPerPage);
    if (page.kind === "missing") {
      const known = turn === undefined ? null : await nameIn(store, await familyOf(store, place), turn);
      return { conversation, messages, turn: known ?? named, isKept: known !== null };
    }
    if (page.kind === "reset") {
      // The host has written its transcript anew. It is read again from its start, and what is stored stays as it is.
      assert(page.cursor !== cursor, "the start of a transcript is a place in it");
      cursor = page.cursor;
      keep = await createFilter(lcm, conversation, readFrom);
      conversation = await findStart(lcm, place, readFrom, cursor, keep);
      continue;
    }
    if (page.events.length === 0) break;
    // One that no host has written to yet may be of another session of its key: it is this one's from now on.
    if (conversation === null || (conversation.hostCursor === null && conversation.sessionId !== place.sessionId)) {
      conversation = await begin(store, place);
      // It may be one that the older program kept under the session's id alone.
      keep = await createFilter(lcm, conversation, readFrom);
    }
    const at = page.events.findIndex(({ event }) => beginsSegment(event, keep));
    const end = turn === undefined ? 0 : endOf(turn, at < 0 ? page.events : page.events.slice(0, at));
    if (turn !== undefined && end === 0 && !isSought) {
      // One that stands before a reset may have been read with it, and then what comes here is not of it.
      const known = await nameIn(store, await familyOf(store, place), turn);
      if (known !== null) return { conversation, messages, turn: known, isKept: true };
      isSought = true;
    }
    const stop = end > 0 ? end : at < 0 ? page.events.length : Math.max(1, at);
    const upto = stop === page.events.length ? page : await mustRead(readFrom, cursor, stop);
    const isLast = end > 0 || (at < 0 && !page.hasMore);
    if (at === 0) {
      conversation = await openSegment(lcm, place, upto);
      keep = keepAll;
    } else {
      const items = itemsOf(lcm, upto);
      const appended = await append(lcm, conversation, items.flatMap(keep.item), {
        ...(keep.isCertain || isLast ? { hostCursor: upto.cursor } : {}),
        ...(turn === undefined ? { isCatchingUp: true } : end > 0 ? { turnKey: turn.key } : {}),
      });
      messages += appended.messages.length;
      if (appended.turn !== "unnamed") named = appended.turn;
    }
    cursor = upto.cursor;
    if (isLast) break;
  }
  if (turn !== undefined && named === "unnamed") named = await nameStored(store, place, turn);
  return { conversation, messages, turn: named, isKept: true };
}

/**
 * Stores what came up to the last reset, for who asks between turns how the session stands. What stands behind it may be
 * of a turn that is under way, which is shown by the host until it is committed.
 */
export async function drainToReset(lcm: Lcm, read: ReadTranscript, place: TranscriptPlace): Promise<void> {
  const active = await findActive(lcm.store, place);
  if (active === null || active.hostCursor === null) return;
  let last: number | null = null;
  for await (const { events } of pagesFrom(createReader(read, place), active.hostCursor))
    last = events.findLast(({ event }) => beginsSegment(event, keepAll))?.seq ?? last;
  if (last !== null) await drain(lcm, readingTo(read, last), place);
}

/** A turn that is known already may come with rows that are not: they are stored without it. */
async function append(
  lcm: Lcm,
  { id }: Conversation,
  items: readonly Incoming[],
  options: NonNullable<Parameters<Store["append"]>[2]>,
): Promise<Appended> {
  const appended = await lcm.ingest(id, items, options);
  if (appended.turn !== "duplicate") return appended;
  const { turnKey: _, ...unnamed } = options;
  return { ...(await lcm.ingest(id, items, unnamed)), turn: "duplicate" };
}

/** For a turn whose rows were stored before it was committed: a bootstrap came first, or a commit broke off. */
async function nameStored(store: Store, place: TranscriptPlace, turn: Turn): Promise<Appended["turn"]> {
  const stored = await nameIn(store, await familyOf(store, place), turn);
  if (stored !== null) return stored;
  throw new LcmError(
    "unavailable",
    `the transcript of ${place.sessionKey} does not hold the end of the turn ${turn.key}`,
    {
      hint: "the host commits it again before the next turn",
    },
  );
}

async function nameIn(
  store: Store,
  conversations: readonly Conversation[],
  { key, lastKey }: Turn,
): Promise<Appended["turn"] | null> {
  for (const { id } of conversations) {
    const held = await store.messages({ conversation: id, keys: [lastKey] });
    if (held.length > 0) return (await store.append(id, [], { turnKey: key })).turn;
  }
  return null;
}

// ── Segments ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The segment that the session goes on in, without touching it; null if there is none of it yet. */
export async function findActive(store: Store, place: TranscriptPlace): Promise<Conversation | null> {
  const { sessionKey, agentId, sessionId } = place;
  const [active] = await store.conversations({ sessionKey, agentId, active: true, includeHidden: true, limit: 1 });
  return active === undefined || isOther(active, sessionId) ? null : active;
}

/** Under the same key the host has begun another session, since that one was deleted. */
const isOther = (active: Conversation, sessionId: string): boolean =>
  sessionId !== "" && active.sessionId !== sessionId && (active.hostCursor !== null || active.hidden);

/**
 * When a person goes back in a session, or to another branch of it, the host copies all its rows to a session of another
 * id under the same key. That is no other session: what is stored goes on under the new id.
 */
async function goOn(store: Store, place: TranscriptPlace, readFrom: ReadFrom): Promise<Conversation | null> {
  const family = await familyOf(store, place);
  const active = family.find((each) => each.active);
  if (active === undefined || family.some(({ sessionId }) => sessionId === place.sessionId)) return null;
  const page = await readFrom(null, eventsPerPage);
  const first = page.kind === "page" ? page.events.map(({ event }) => event).find(isMessageRow) : undefined;
  if (first === undefined) return null;
  const own = family.filter(({ sessionId }) => sessionId === active.sessionId);
  for (const { id } of own) {
    if ((await store.messages({ conversation: id, keys: [first.id] })).length === 0) continue;
    for (const each of own) await store.setSession(each.id, place.sessionId);
    return await findActive(store, place);
  }
  return null;
}

const isMessageRow = (event: Json): event is { readonly id: string } =>
  isObject(event) && event["type"] === "message" && typeof event["id"] === "string";

/**
 * The segment that a transcript begins in: that of its first message, since its oldest rows may be gone; the newest if
 * that message is new; the oldest if nothing was said before the first reset.
 */
async function findStart(
  { store }: Lcm,
  place: TranscriptPlace,
  readFrom: ReadFrom,
  start: string,
  keep: Filter,
): Promise<Conversation | null> {
  const family = (await familyOf(store, place)).filter(({ sessionId }) => sessionId === place.sessionId);
  const newest = family.find(({ active }) => active) ?? null;
  for await (const { events } of pagesFrom(readFrom, start)) {
    for (const { event } of events) {
      if (beginsSegment(event, keep)) return family.toSorted((a, b) => a.id - b.id)[0] ?? null;
      if (!isMessageRow(event) || keep.isPast(event.id)) continue;
      for (const each of family)
        if ((await store.messages({ conversation: each.id, keys: [event.id] })).length > 0) return each;
      return newest;
    }
  }
  return newest;
}

const familyOf = async (store: Store, { sessionKey, agentId }: TranscriptPlace): Promise<readonly Conversation[]> =>
  await store.conversations({ sessionKey, agentId, includeHidden: true });

async function begin(store: Store, place: TranscriptPlace): Promise<Conversation> {
  const { sessionKey, agentId, sessionId } = place;
  const [active] = await store.conversations({ sessionKey, agentId, active: true, includeHidden: true, limit: 1 });
  const isNew = active !== undefined && isOther(active, sessionId);
  return isNew ? await store.openSegment(place) : await store.open(place);
}

/**
 * What a person asked for with `/new` or `/reset`. When a session is only old, the host goes on with its newest
 * messages, if it has any: there we go on with all of it, since nothing of it is in the way.
 */
const beginsSegment = (event: Json, { isPast }: Filter): boolean =>
  isObject(event) &&
  !isPast(event["id"]) &&
  event["type"] === "reset" &&
  event["firstKeptEntryId"] === undefined &&
  !(typeof event["reason"] === "string" && agedReasons.has(event["reason"]));

const agedReasons: ReadonlySet<string> = new Set(["idle", "daily", "cron-stale"]);

async function openSegment(lcm: Lcm, place: TranscriptPlace, { events, cursor }: Page): Promise<Conversation> {
  const [event] = events;
  assert(event !== undefined && isObject(event.event), "a segment begins with a row of the transcript");
  const line = readTranscriptValue(event.event, event.seq, lcm.clock.now());
  assert(line.kind === "item" && line.item.kind === "entry", "a reset is no message");
  const { newSessionRetainDepth: depth } = lcm.settings;
  const isCarrying = event.event["reason"] === "new" && depth >= 0;
  return await lcm.store.openSegment(place, {
    begins: line.item.entry,
    hostCursor: cursor,
    ...(isCarrying ? { carryDepth: depth } : {}),
  });
}

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What becomes of each row: nothing, if the older program has stored it. `isCertain` once that needs no more looking. */
interface Filter {
  readonly isCertain: boolean;
  readonly item: (item: Incoming) => readonly Incoming[];
  /** Whether a row comes before the last that the older program has stored: its resets were the older program's. */
  readonly isPast: (id: Json | undefined) => boolean;
}

const keepAll: Filter = { isCertain: true, item: (item) => [item], isPast: () => false };

/** A conversation that was adopted holds a part of the transcript under keys of its own. */
async function createFilter(lcm: Lcm, conversation: Conversation | null, readFrom: ReadFrom): Promise<Filter> {
  const pages = (): AsyncIterable<readonly Incoming[]> => pagesOf(lcm, readFrom);
  const aligned = conversation === null ? null : await alignOlder(lcm.store, conversation, pages);
  if (aligned === null) return keepAll;
  return { isCertain: false, item: aligned.item, isPast: (id) => typeof id === "string" && aligned.isPast(id) };
}

async function* pagesOf(lcm: Lcm, readFrom: ReadFrom): AsyncGenerator<readonly Incoming[]> {
  for await (const page of pagesFrom(readFrom, null)) yield itemsOf(lcm, page);
}

function itemsOf({ clock }: Lcm, { events }: Page): readonly Incoming[] {
  const now = clock.now();
  return events.flatMap(({ event, seq }): readonly Incoming[] => {
    const line = readTranscriptValue(event, seq, now);
    if (line.kind !== "item") return [];
    const { item } = line;
    if (item.kind === "entry") return [{ kind: "entry", entry: { ...item.entry, ...leafIn(event) } }];
    return isForEyesOnly(event) ? [{ ...item, aside: "note" }] : [item];
  });
}

/** Where a person has gone back to: the row is written behind the newest, and what comes next hangs on its target. */
function leafIn(event: Json): { readonly parentKey?: string } {
  if (!isObject(event) || event["type"] !== "leaf") return {};
  const to = event["appendParentId"] ?? event["targetId"];
  return typeof to === "string" ? { parentKey: to } : {};
}

/** What the host itself has said in the assistant's name: the answer to a slash command, the mirror of a delivery. */
function isForEyesOnly(event: Json): boolean {
  const message = isObject(event) ? event["message"] : null;
  if (!isObject(message) || message["role"] !== "assistant" || message["provider"] !== "openclaw") return false;
  return message["model"] === "gateway-injected" || message["model"] === "delivery-mirror";
}

/** How many rows it is to the turn's end, with what the host has noted down behind it; 0 if it does not end here. */
function endOf({ lastKey }: Turn, events: Page["events"]): number {
  const last = events.findIndex(({ event }) => isObject(event) && event["id"] === lastKey);
  const next = events.findIndex(({ event }, at) => at > last && isObject(event) && event["type"] === "message");
  return last < 0 ? 0 : next < 0 ? events.length : next;
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

type ReadFrom = (cursor: string | null, maxEvents: number) => Promise<TranscriptPage>;

/** A row larger than a page is read by itself. */
function createReader(read: ReadTranscript, place: TranscriptPlace): ReadFrom {
  return async (cursor, maxEvents) => {
    const from = { ...place, ...(cursor === null ? {} : { cursor }), maxEvents };
    const page = await read({ ...from, maxBytes: bytesPerPage });
    if (page.kind !== "page" || page.requiredBytes === undefined) return page;
    const row = await read({ ...from, maxEvents: 1, maxBytes: Math.min(bytesMax, page.requiredBytes) });
    if (row.kind !== "page" || row.requiredBytes === undefined) return row;
    throw new LcmError("unavailable", `a row of ${row.requiredBytes} bytes is more than the host hands over`);
  };
}

/** The pages behind a place, as long as there are any. */
async function* pagesFrom(readFrom: ReadFrom, start: string | null): AsyncGenerator<Page> {
  for (let cursor = start; ;) {
    const page = await readFrom(cursor, eventsPerPage);
    if (page.kind !== "page" || page.events.length === 0) return;
    yield page;
    if (!page.hasMore) return;
    cursor = page.cursor;
  }
}

/** As if nothing had been written behind that row yet. */
function readingTo(read: ReadTranscript, lastSeq: number): ReadTranscript {
  return async (from) => {
    const page = await read(from);
    const kept = page.kind === "page" ? page.events.filter(({ seq }) => seq <= lastSeq) : [];
    if (page.kind !== "page" || kept.length === page.events.length) return page;
    return kept.length === 0
      ? { ...page, events: [], hasMore: false }
      : await read({ ...from, maxEvents: kept.length });
  };
}

async function mustRead(readFrom: ReadFrom, cursor: string | null, maxEvents: number): Promise<Page> {
  const page = await readFrom(cursor, maxEvents);
  if (page.kind === "page") return page;
  throw new LcmError("unavailable", "the host's transcript was replaced while it was read");
}
