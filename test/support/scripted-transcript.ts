/**
 * The transcript of one session, as OpenClaw keeps it: rows with their ids and parents, read in pages from a cursor that
 * is void when the transcript was rewritten. It is the oracle of what must be stored.
 */

import assert from "node:assert/strict";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import type { ReadTranscript, TranscriptPage } from "../../src/hosts/openclaw/host-api.ts";
import type { HostEntry } from "./scripted-host.ts";
import type { JsonObject } from "../../src/core/base/json.ts";
import { isObject } from "../../src/core/base/json.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

interface Row {
  readonly id: string;
  readonly event: JsonObject;
}

export interface Transcript {
  readonly rows: readonly Row[];
  /** Appends a message at a given time. */
  say(message: HostMessage): HostMessage;
  /** A line that is not a message. */
  note(event: JsonObject): Row;
  /** A reset, by a person or by the clock: the host then keeps the newest user message in its own prompts. */
  reset(reason: "new" | "reset" | "idle"): void;
  /** The same rows, perhaps with other contents; all cursors become invalid. */
  rewrite(change?: (message: HostMessage) => HostMessage): void;
  /** Keeps the header and this many of the newest rows. */
  trim(count: number): void;
  /** Ends before the live row, if there is one. Throws if the cursor is beyond it, as the host does. */
  page(request: Parameters<ReadTranscript>[0], before: number): TranscriptPage;
  /** What the host itself would show: everything since the last reset, without what models do not see. */
  view(before: number): readonly HostMessage[];
  /** Everything written between resets, in the original form, oldest first. */
  segments(): readonly (readonly HostEntry[])[];
}

const eventsDefault = 1_000;
const eventsMax = 10_000;
const bytesDefault = 1_000_000;
const bytesMax = 67_108_864;

/** `now` returns another millisecond every time. */
export function createTranscript(sessionId: string, now: () => number): Transcript {
  let rows: readonly Row[] = [];
  const written: Row[] = [];
  let generation = 1;

  const push = (id: string, event: JsonObject): Row => {
    const row = { id, event: { ...event, id } };
    rows = [...rows, row];
    written.push(row);
    return row;
  };
  const note = (event: JsonObject): Row => {
    const timestamp = new Date(now()).toISOString();
    if (rows.length === 0) push(sessionId, { type: "session", version: 3, timestamp });
    const parentId = rows.length === 1 ? null : (rows.at(-1)?.id ?? null);
    return push(`${sessionId}-${written.length}`, { ...event, parentId, timestamp });
  };
  const encode = (lastSeq: number): string =>
    Buffer.from(JSON.stringify([sessionId, generation, lastSeq])).toString("base64url");
  const decode = (cursor: string): number | null => {
    try {
      const [session, of, seq] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as unknown[];
      return session === sessionId && of === generation && typeof seq === "number" ? seq : null;
    } catch {
      return null; // Not one of ours: the host marks it.
    }
  };

  return {
    get rows() {
      return rows;
    },
    say(message) {
      const said = { ...message, timestamp: now() };
      note({ type: "message", message: said });
      return said;
    },
    note,
    reset(reason) {
      const isUser = ({ event: { message } }: Row): boolean => isObject(message) && message["role"] === "user";
      const first = reason === "idle" ? rows.findLast(isUser) : undefined;
      note({ type: "reset", reason, ...(first === undefined ? {} : { firstKeptEntryId: first.id }) });
    },
    rewrite(change = (message) => message) {
      generation += 1;
      rows = rows.map(({ id, event }) => {
        const { message } = event;
        return { id, event: isObject(message) ? { ...event, message: change(message) } : event };
      });
    },
    trim(count) {
      const [header, ...rest] = rows;
      if (header === undefined || rest.length <= count) return;
      generation += 1;
      const tail = rest.slice(rest.length - count);
      rows = [header, ...tail.map((row, at) => (at === 0 ? { ...row, event: { ...row.event, parentId: null } } : row))];
    },
    page({ cursor, maxEvents = eventsDefault, maxBytes = bytesDefault }, before) {
      assert.ok(maxEvents >= 1 && maxEvents <= eventsMax && maxBytes >= 1 && maxBytes <= bytesMax, "the host's limits");
      const from = cursor === undefined ? -1 : decode(cursor);
      const lastSeq = Math.min(rows.length, before) - 1;
      if (from !== null && from > lastSeq && before < Infinity)
        throw new Error("Transcript read cursor has crossed the current-turn admission fence");
      if (from === null || from > lastSeq) return { kind: "reset", cursor: encode(-1) };
      const events: { readonly seq: number; readonly event: JsonObject }[] = [];
      let bytes = 0;
      for (let seq = from + 1; seq <= lastSeq; seq++) {
        const event = rows[seq]?.event ?? {};
        const size = Buffer.byteLength(JSON.stringify(event)) + 1;
        if (events.length >= maxEvents || bytes + size > maxBytes) {
          const required = events.length === 0 ? { requiredBytes: size } : {};
          return { kind: "page", cursor: encode(seq - 1), hasMore: true, events, ...required };
        }
        bytes += size;
        events.push({ seq, event: structuredClone(event) });
      }
      return { kind: "page", cursor: encode(lastSeq), hasMore: false, events };
    },
    view(before) {
      const upto = rows.slice(0, before);
      const at = upto.findLastIndex(({ event }) => event["type"] === "reset");
      const keptId = upto[at]?.event["firstKeptEntryId"];
      const from = keptId === undefined ? at + 1 : upto.findIndex(({ id }) => id === keptId);
      const said = upto.slice(from).flatMap(({ event }) => (isObject(event["message"]) ? [event["message"]] : []));
      const seen = said.filter(isSeen);
      return seen.filter((message, place) => !isLeftOpen(message, seen[place + 1]));
    },
    segments() {
      const segments: HostEntry[][] = [];
      for (const { id, event } of written) {
        const isNew = event["type"] === "reset" && event["reason"] !== "idle";
        if (isNew || segments.length === 0) segments.push([]);
        segments.at(-1)?.push(entryOf(id, event));
      }
      return segments;
    },
  };
}

const isSeen = ({ excludeFromContext, model, content }: HostMessage): boolean =>
  excludeFromContext !== true && model !== "gateway-injected" && !(Array.isArray(content) && content.length === 0);

const isLeftOpen = ({ stopReason }: HostMessage, next: HostMessage | undefined): boolean =>
  stopReason === "toolUse" && next?.["role"] !== "toolResult";

function entryOf(id: string, event: JsonObject): HostEntry {
  const { type, message, timestamp, parentId } = event;
  const key = type === "session" ? `session:${id}` : id;
  const parentKey = typeof parentId === "string" ? parentId : null;
  const time = isObject(message) ? message["timestamp"] : timestamp;
  assert.ok((typeof time === "number" || typeof time === "string") && typeof type === "string", "every row has both");
  const at = new Date(time).toISOString() as Timestamp;
  return isObject(message)
    ? { kind: "message", key, parentKey, at, raw: message }
    : { kind: "entry", key, parentKey, at, type, raw: event };
}
