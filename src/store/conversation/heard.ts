/**
 * One session, one conversation: the proxy stores what it hears between a host and its model, and the same messages come
 * again from the host's transcript. They are recognised by what they say, in order, and stored as entries that continue
 * the message of the proxy: their keys and lines are kept, and no message is there twice.
 */

import { entryFromStore, readableMessage } from "../../core/messages/codec.ts";
import { comparable, isTelling, saidIn } from "../../core/messages/said.ts";
import { jsonText } from "../../core/base/json.ts";
import { heardPrefix, type ConversationId, type NewEntry, type NewMessage } from "../../core/model/types.ts";
import type { Appendable } from "../../core/model/store.ts";
import { first, int, sql, text, type Script } from "../script.ts";
import { reads } from "./reads.ts";

export type HeardPlace =
  /** The proxy's message says the same. */
  | { readonly kind: "same"; readonly key: string }
  /** Nothing that was said to the model: stored beside the conversation. */
  | { readonly kind: "beside" };

const isHeard = (key: string): boolean => key.startsWith(heardPrefix);
/** The first key behind all that begin with the prefix. */
export const behindHeard = heardPrefix.replace(/:$/, ";");

/** For a conversation in which the proxy has stored something. Null if it stores this itself. Items without a place are stored as usual. */
export function* findHeard(
  id: ConversationId,
  appended: readonly Appendable[],
  known: ReadonlyMap<string, string>,
): Script<ReadonlyMap<string, HeardPlace> | null> {
  const fresh = appended.filter((item) => !known.has(keyOf(item)));
  if (fresh.length === 0 || appended.some((item) => isHeard(keyOf(item)))) return null;
  const newest = yield* newestRecognised(id);
  const unclaimed = yield* readHeard(id, newest?.seq ?? 0);
  const places = new Map<string, HeardPlace>();
  const silent: string[] = [];
  let last = newest?.key ?? null;
  let lastFound = -1;
  fresh.forEach((item, at) => {
    if (item.kind === "entry" || item.message.aside === "note") return void places.set(keyOf(item), { kind: "beside" });
    const pieces = piecesOf(item.message);
    if (pieces.length === 0) return void silent.push(keyOf(item));
    const key = claim(unclaimed, pieces);
    if (key === null) return;
    last = key;
    lastFound = at;
    places.set(keyOf(item), { kind: "same", key });
  });
  if (last !== null) for (const key of silent) places.set(key, { kind: "same", key: last });
  // What the proxy did not hear, in the middle of what it heard, was not said to the model.
  for (const item of fresh.slice(0, lastFound + 1))
    if (!places.has(keyOf(item))) places.set(keyOf(item), { kind: "beside" });
  return places;
}

const keyOf = (item: Appendable): string => (item.kind === "message" ? item.message.key : item.entry.key);

const piecesOf = (message: Pick<NewMessage, "role" | "parts" | "envelope" | "at">): readonly string[] =>
  saidIn(readableMessage(message)).filter(isTelling).map(comparable);

/** The proxy's message that a line of the host was last recognised as; later lines come behind it. */
const newestRecognised = (id: ConversationId): Script<{ readonly key: string; readonly seq: number } | null> =>
  first(
    sql`SELECT m.message_key, m.seq FROM transcript_entries e
        JOIN messages m ON m.conversation_id = ${id} AND m.message_key = e.parent_key
        WHERE e.conversation_id = ${id} AND e.parent_key >= ${heardPrefix} AND e.parent_key < ${behindHeard}
        ORDER BY e.after_seq DESC, e.entry_id DESC LIMIT 1`,
    (row) => ({ key: text(row, "message_key"), seq: int(row, "seq") }),
  );

const rowsPerRead = 1_000;

/** The pieces of the proxy's messages, each with the keys of those that say it, oldest first. */
function* readHeard(id: ConversationId, fromSeq: number): Script<Map<string, string[]>> {
  const unclaimed = new Map<string, string[]>();
  for (let afterSeq = fromSeq - 1; ;) {
    const messages = yield* reads.messages({ conversation: id, afterSeq, limit: rowsPerRead });
    for (const message of messages) {
      if (!isHeard(message.key)) continue;
      for (const piece of piecesOf(message)) {
        const keys = unclaimed.get(piece);
        if (keys === undefined) unclaimed.set(piece, [message.key]);
        else keys.push(message.key);
      }
    }
    afterSeq = messages.at(-1)?.seq ?? afterSeq;
    if (messages.length < rowsPerRead) return unclaimed;
  }
}

/** Takes all of the pieces, or none. */
function claim(unclaimed: Map<string, string[]>, pieces: readonly string[]): string | null {
  const keys = pieces.map((piece) => unclaimed.get(piece)?.[0]);
  if (keys.some((key) => key === undefined)) return null;
  for (const piece of pieces) unclaimed.get(piece)?.shift();
  return keys.at(-1) ?? null;
}

/** The host's line as an entry that continues the proxy's message. */
export const lineOf = (message: NewMessage, { key }: Extract<HeardPlace, { readonly kind: "same" }>): NewEntry => ({
  key: message.key,
  type: "message",
  at: message.at,
  raw: jsonText(entryFromStore({ ...message, parentKey: message.parentKey ?? null })),
  parentKey: key,
});
