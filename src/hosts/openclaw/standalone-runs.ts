/** Stores messages that the host keeps no transcript of, under keys made from the turn or from their times. */

import { parseTimestamp } from "../../core/base/time.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { HostMessage, Incoming } from "../../core/messages/codec.ts";
import type { Appended } from "../../core/model/store.ts";
import { standalonePrefix } from "./align-older.ts";
import type { CommitCall, TranscriptPlace } from "./host-api.ts";
import { familyOf } from "./segments.ts";
import { placeOf } from "./sessions.ts";

/** A committed turn of a session without a transcript. */
export async function storeUntranscribed(lcm: Lcm, call: CommitCall): Promise<Appended["turn"]> {
  const place = placeOf(call);
  // The session may have been deleted, and its key used again since.
  const family = await familyOf(lcm.store, place);
  const own = family.filter(({ sessionId }) => sessionId === place.sessionId).toSorted((a, b) => b.id - a.id)[0];
  const conversation = own ?? (await lcm.store.open(place));
  const items = itemsOf(lcm, call.messages, (_, at) => `turn:${call.advancementKey}:${at}`);
  return (await lcm.ingest(conversation.id, items, { turnKey: call.advancementKey })).turn;
}

/** Messages of a run that has neither a transcript nor a commit. Returns how many were new. */
export async function storeRun(lcm: Lcm, place: TranscriptPlace, messages: readonly HostMessage[]): Promise<number> {
  const conversation = await lcm.store.open(place);
  return (await lcm.ingest(conversation.id, itemsOf(lcm, messages, createTimeKeys()))).messages.length;
}

function itemsOf(
  { clock }: Lcm,
  messages: readonly HostMessage[],
  keyOf: (message: HostMessage, at: number) => string,
): readonly Incoming[] {
  return messages.map((raw, index) => {
    const { timestamp } = raw;
    const time = typeof timestamp === "number" || typeof timestamp === "string" ? parseTimestamp(timestamp) : null;
    return { kind: "message", message: raw, key: keyOf(raw, index), at: time ?? clock.now() };
  });
}

/** Keys from time, role and tool call; messages that share all three are numbered. */
function createTimeKeys(): (message: HostMessage) => string {
  const counts = new Map<string, number>();
  return ({ role, timestamp, toolCallId = null }) => {
    const moment = `${standalonePrefix}${JSON.stringify([timestamp, role, toolCallId])}`;
    const count = (counts.get(moment) ?? 0) + 1;
    counts.set(moment, count);
    return count === 1 ? moment : `${moment}#${count}`;
  };
}
