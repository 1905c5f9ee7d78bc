/** Finds, follows and opens the segments of a host session. */

import { assert } from "../../core/base/errors.ts";
import { isObject, type Json } from "../../core/base/json.ts";
import type { Lcm } from "../../core/lcm.ts";
import { readTranscriptValue } from "../../core/messages/transcript-line.ts";
import type { Store } from "../../core/model/store.ts";
import type { Conversation } from "../../core/model/types.ts";
import type { RowFilter } from "./align-older.ts";
import type { TranscriptPlace } from "./host-api.ts";
import { isMessageRow, type Page, type ReadFrom } from "./transcript-pages.ts";

/** The segment that the session continues in, unchanged; null if there is none yet. */
export async function findActive(store: Store, place: TranscriptPlace): Promise<Conversation | null> {
  const { sessionKey, agentId, sessionId } = place;
  const names = { sessionKey, agentId, includeHidden: true, limit: 1 } as const;
  const [active = null] = await store.conversations({ ...names, active: true });
  if (active === null || !isOther(active, sessionId)) return active;
  // Hosts on several machines may share the database, with a session each under the same key.
  const [own = null] = await store.conversations({ ...names, sessionId });
  return own === null || own.hidden ? null : own;
}

/**
 * Whether another session of the key has it: one on another machine, or one that was deleted. What no host has written
 * to yet (an import, a database of the older program) is there to be continued.
 */
const isOther = ({ sessionId, hostCursor, hidden, totals }: Conversation, own: string): boolean =>
  own !== "" && sessionId !== own && (hostCursor !== null || hidden || totals.messages === 0);

export async function openActive(store: Store, place: TranscriptPlace): Promise<Conversation> {
  const { sessionKey, agentId, sessionId } = place;
  const [active] = await store.conversations({ sessionKey, agentId, active: true, includeHidden: true, limit: 1 });
  if (active !== undefined)
    return isOther(active, sessionId) ? await store.openSegment(place) : await store.open(place);
  const [nameless] = await store.conversations({ sessionId, includeHidden: true, limit: 1 });
  // By its id: a session of the same key may be opened elsewhere just now.
  return nameless === undefined ? await store.openSession(place) : await store.open(place);
}

/** All segments under the session's key, hidden ones included. */
export const familyOf = async (
  store: Store,
  { sessionKey, agentId }: TranscriptPlace,
): Promise<readonly Conversation[]> => await store.conversations({ sessionKey, agentId, includeHidden: true });

/** The first of these conversations that contains a message of this key. */
export async function findHolder(
  store: Store,
  conversations: readonly Conversation[],
  key: string,
): Promise<Conversation | null> {
  for (const each of conversations)
    if ((await store.messages({ conversation: each.id, keys: [key] })).length > 0) return each;
  return null;
}

/**
 * When a person goes back in a session or switches to another branch, the host copies all rows to a session with another
 * id under the same key. It is still the same session, so our segments take on the new id.
 */
export async function followCopy(
  store: Store,
  place: TranscriptPlace,
  readFrom: ReadFrom,
): Promise<Conversation | null> {
  const family = await familyOf(store, place);
  if (family.length === 0 || family.some(({ sessionId }) => sessionId === place.sessionId)) return null;
  const page = await readFrom(null);
  const first = page.kind === "page" ? page.events.map(({ event }) => event).find(isMessageRow) : undefined;
  const holder = first === undefined ? null : await findHolder(store, family, first.id);
  if (holder === null) return null;
  for (const { id, sessionId } of family)
    if (sessionId === holder.sessionId) await store.setSession(id, place.sessionId);
  return await findActive(store, place);
}

/**
 * The segment in which a transcript starts: the one with its first message, because its oldest rows may be gone; the
 * newest if that message is new; the oldest if a reset comes first.
 */
export async function findStart(
  store: Store,
  place: TranscriptPlace,
  pages: AsyncIterable<Page>,
  filter: RowFilter,
): Promise<Conversation | null> {
  const family = (await familyOf(store, place)).filter(({ sessionId }) => sessionId === place.sessionId);
  const newest = family.find(({ active }) => active) ?? null;
  for await (const { events } of pages) {
    for (const { event } of events) {
      if (beginsSegment(event, filter)) return family.toSorted((a, b) => a.id - b.id)[0] ?? null;
      if (isMessageRow(event) && !filter.isPast(event.id)) return (await findHolder(store, family, event.id)) ?? newest;
    }
  }
  return newest;
}

/**
 * Whether a person asked for a new segment with `/new` or `/reset`. A session that is only old is continued by the host
 * with its newest messages, if it has any; we continue it with all of them.
 */
export const beginsSegment = (event: Json, { isPast }: RowFilter): boolean =>
  isObject(event) &&
  !isPast(event["id"]) &&
  event["type"] === "reset" &&
  event["firstKeptEntryId"] === undefined &&
  !(typeof event["reason"] === "string" && agedReasons.has(event["reason"]));

const agedReasons: ReadonlySet<string> = new Set(["idle", "daily", "cron-stale"]);

/** Opens the segment that begins with the only row of this page. */
export async function openSegment(lcm: Lcm, place: TranscriptPlace, { events, cursor }: Page): Promise<Conversation> {
  const [event] = events;
  assert(event !== undefined && isObject(event.event), "a segment begins with a row of the transcript");
  const line = readTranscriptValue(event.event, event.seq, lcm.clock.now());
  assert(line.kind === "item" && line.item.kind === "entry", "a reset is not a message");
  const { newSessionRetainDepth: depth } = lcm.settings;
  const isCarrying = event.event["reason"] === "new" && depth >= 0;
  return await lcm.store.openSegment(place, {
    begins: line.item.entry,
    hostCursor: cursor,
    ...(isCarrying ? { carryDepth: depth } : {}),
  });
}
