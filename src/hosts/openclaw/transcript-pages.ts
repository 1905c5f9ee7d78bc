/** Reads the host's transcript in pages and turns its rows into what the store appends. */

import { LcmError } from "../../core/base/errors.ts";
import { isObject, type Json } from "../../core/base/json.ts";
import type { Incoming } from "../../core/messages/codec.ts";
import { readTranscriptValue } from "../../core/messages/transcript-line.ts";
import type { Clock } from "../../core/model/store.ts";
import type { ReadTranscript, TranscriptPage, TranscriptPlace } from "./host-api.ts";

export type Page = Extract<TranscriptPage, { readonly kind: "page" }>;

export type ReadFrom = (cursor: string | null, maxEvents?: number) => Promise<TranscriptPage>;

const eventsPerPage = 500;
const bytesPerPage = 4_000_000;
const bytesMax = 67_108_864;

/** A row larger than a page is read alone. */
export function createReader(read: ReadTranscript, place: TranscriptPlace): ReadFrom {
  return async (cursor, maxEvents = eventsPerPage) => {
    const from = { ...place, ...(cursor === null ? {} : { cursor }), maxEvents };
    const page = await read({ ...from, maxBytes: bytesPerPage });
    if (page.kind !== "page" || page.requiredBytes === undefined) return page;
    const row = await read({ ...from, maxEvents: 1, maxBytes: Math.min(bytesMax, page.requiredBytes) });
    if (row.kind !== "page" || row.requiredBytes === undefined) return row;
    throw new LcmError("unavailable", `a transcript row of ${row.requiredBytes} bytes is larger than the host returns`);
  };
}

/** The pages after a cursor. */
export async function* pagesFrom(readFrom: ReadFrom, start: string | null): AsyncGenerator<Page> {
  for (let cursor = start; ;) {
    const page = await readFrom(cursor);
    if (page.kind !== "page" || page.events.length === 0) return;
    yield page;
    if (!page.hasMore) return;
    cursor = page.cursor;
  }
}

/** The first rows of a page, with the cursor after them. */
export async function firstRows(readFrom: ReadFrom, cursor: string | null, page: Page, rows: number): Promise<Page> {
  if (rows === page.events.length) return page;
  const shorter = await readFrom(cursor, rows);
  if (shorter.kind === "page") return shorter;
  throw new LcmError("unavailable", "the host's transcript was replaced while it was being read");
}

/** Reads as if the transcript ended at this row. */
export function readingUpTo(read: ReadTranscript, lastSeq: number): ReadTranscript {
  return async (from) => {
    const page = await read(from);
    const kept = page.kind === "page" ? page.events.filter(({ seq }) => seq <= lastSeq) : [];
    if (page.kind !== "page" || kept.length === page.events.length) return page;
    return kept.length === 0
      ? { ...page, events: [], hasMore: false }
      : await read({ ...from, maxEvents: kept.length });
  };
}

export const isMessageRow = (event: Json): event is { readonly id: string } =>
  isObject(event) && event["type"] === "message" && typeof event["id"] === "string";

export function itemsOf(clock: Clock, { events }: Page): readonly Incoming[] {
  const now = clock.now();
  return events.flatMap(({ event, seq }): readonly Incoming[] => {
    const line = readTranscriptValue(event, seq, now);
    if (line.kind !== "item") return [];
    const { item } = line;
    if (item.kind === "entry") return [{ kind: "entry", entry: { ...item.entry, ...branchPointOf(event) } }];
    return isForDisplayOnly(event) ? [{ ...item, aside: "note" }] : [item];
  });
}

/** Where a person went back to: the row itself is the newest, but the next message continues from its target. */
function branchPointOf(event: Json): { readonly parentKey?: string } {
  if (!isObject(event) || event["type"] !== "leaf") return {};
  const to = event["appendParentId"] ?? event["targetId"];
  return typeof to === "string" ? { parentKey: to } : {};
}

/** What the host wrote in the assistant's name: the answer to a slash command, or the mirror of a delivery. */
function isForDisplayOnly(event: Json): boolean {
  const message = isObject(event) ? event["message"] : null;
  if (!isObject(message) || message["role"] !== "assistant" || message["provider"] !== "openclaw") return false;
  return message["model"] === "gateway-injected" || message["model"] === "delivery-mirror";
}
