/**
 * Aligns an adopted conversation of the older program with the host's transcript, to find the rows it already has.
 *
 * A row is a stored message if the keys are equal, if only it has the same tool-call ids, or if role and text are equal.
 * Texts are compared without white space and ids by letters and digits, because the older program changed both. A
 * message cannot be stored before it was said, so of several equal ones the newest possible is chosen.
 *
 * What occurs once on both sides is matched first, in its longest increasing sequence; the rest only between two such
 * pairs, so that messages the older program missed or changed cannot lead the others astray.
 */

import { hash } from "node:crypto";
import { setImmediate as breathe } from "node:timers/promises";
import { messageToStore, readableMessage, textOfParts, type Incoming } from "../../core/messages/codec.ts";
import type { Conversation, Message, NewMessage } from "../../core/model/types.ts";
import { countBelow, longestIncreasing } from "../../core/base/increasing.ts";
import type { Json } from "../../core/base/json.ts";
import { tiesOf } from "../../core/messages/tool-calls.ts";
import type { Store } from "../../core/model/store.ts";

const messagesPerPage = 500;

/** Begins the keys of runs without a transcript, which therefore match no row of one. */
export const standalonePrefix = "standalone:";

/** How much earlier than its row a message may seem to be stored: times were in whole seconds, and clocks are adjusted. */
const clockMs = 60_000;

/** How many unmatched stored messages are skipped at a time to find one before them that matches. */
const reach = 32;

/** Messages per step, after which the host gets the thread. */
const stepsAtATime = 1_000;

export interface RowFilter {
  /**
   * Drops rows that are stored already. A missed message from before the last stored one is kept outside the context,
   * because its place there is gone.
   */
  readonly item: (item: Incoming) => readonly Incoming[];
  /** Whether a row comes before the last stored one. A reset there begins no segment: the older program had its own. */
  readonly isPast: (id: Json | undefined) => boolean;
  /** False while reading must be able to start over, because the filter is made from the whole transcript. */
  readonly isCertain: boolean;
}

export const keepAll: RowFilter = { isCertain: true, item: (item) => [item], isPast: () => false };

/** Returns `keepAll` if the older program stored nothing of this session. */
export async function alignOlder(
  store: Store,
  conversation: Conversation,
  pages: () => AsyncIterable<readonly Incoming[]>,
): Promise<RowFilter> {
  const { older, known } = await readStored(store, conversation);
  if (older.traces.length === 0) return keepAll;
  const { said, others } = await readSaid(pages(), known);
  const matched = await match(older, said);
  const last = matched.at(-1) ?? -1;
  const stored = new Set(matched.map((at) => said.traces[at]?.key));
  const past = new Set<Json | undefined>([
    ...said.traces.slice(0, last + 1).map(({ key }) => key),
    ...others.filter(({ before }) => before <= last).map(({ key }) => key),
  ]);
  return {
    isCertain: false,
    item: (item) => {
      const { key, parentKey } = item.kind === "message" ? item : item.entry;
      if (stored.has(key)) return [];
      const placed = typeof parentKey === "string" && stored.has(parentKey) ? withoutParent(item) : item;
      const isMissed = placed.kind === "message" && past.has(key);
      return [isMissed ? { ...placed, aside: "branch" } : placed];
    },
    isPast: (id) => past.has(id),
  };
}

/** Its parent is stored under another key, so it simply follows the newest message; its transcript row stays unchanged. */
function withoutParent(item: Incoming): Incoming {
  if (item.kind === "entry") {
    const { parentKey: _, ...entry } = item.entry;
    return { kind: "entry", entry };
  }
  const { parentKey: _, ...message } = item;
  return message;
}

/** What is compared of a message; its size does not matter. */
interface Trace {
  readonly key: string;
  readonly atMs: number;
  /** What identifies it, the most certain first and its text last. */
  readonly marks: readonly string[];
}

/** Messages in order, and the positions of each mark. */
type Side = ReturnType<typeof createSide>;

function createSide() {
  const traces: Trace[] = [];
  const places = new Map<string, number[]>();
  return {
    traces,
    places,
    add(message: Message | NewMessage): void {
      const trace = traceOf(message);
      const at = traces.push(trace) - 1;
      for (const mark of trace.marks) {
        const known = places.get(mark);
        if (known === undefined) places.set(mark, [at]);
        else known.push(at);
      }
    },
  };
}

async function readStored(store: Store, { id }: Conversation) {
  const family = await store.conversations({ familyOf: id, includeHidden: true });
  /** Messages without a transcript row, of all segments of the session, oldest first. */
  const older = createSide();
  /** Keys of messages with one: stored by an interrupted run of this. */
  const known = new Set<string>();
  for (const segment of family.toSorted((a, b) => a.id - b.id)) {
    for (let afterSeq = 0; ;) {
      const page = await store.messages({ conversation: segment.id, afterSeq, limit: messagesPerPage });
      for (const message of page) {
        if (message.entry !== null) known.add(message.key);
        else if (!message.key.startsWith(standalonePrefix)) older.add(message);
      }
      const last = page.at(-1);
      if (last === undefined) break;
      afterSeq = last.seq;
    }
  }
  return { older, known };
}

async function readSaid(pages: AsyncIterable<readonly Incoming[]>, known: ReadonlySet<string>) {
  const said = createSide();
  /** Rows that are not messages, with the position of the next message. */
  const others: { readonly key: string; readonly before: number }[] = [];
  for await (const page of pages) {
    await breathe(); // Otherwise a host whose reads return at once would be blocked until the end.
    for (const item of page) {
      if (item.kind === "entry") others.push({ key: item.entry.key, before: said.traces.length });
      else if (!known.has(item.key)) said.add(messageToStore(item.message, item));
    }
  }
  return { said, others };
}

function traceOf(message: Message | NewMessage): Trace {
  const { key, role, parts, at } = message;
  const named = role === "tool" ? tiesOf(readableMessage(message)).answers : parts.map(({ toolCallId }) => toolCallId);
  const ids = named.flatMap((id) => id?.replace(/[^\p{L}\p{N}]/gu, "") ?? []);
  const text = textOfParts(role === "assistant" ? parts.filter(({ type }) => type !== "tool") : parts);
  return {
    key,
    atMs: Date.parse(at),
    marks: [
      `key ${key}`,
      ...(ids.length === 0 ? [] : [`ids ${role} ${ids.join()}`]),
      `text ${role} ${hash("sha256", text.replace(/\s+/g, ""), "base64url")}`,
    ],
  };
}

/** The positions of a stored message and its row. */
type Pair = readonly [older: number, said: number];

/** The positions of stored rows, in order. Usually linear in both sides; pauses often. */
async function match(older: Side, said: Side): Promise<readonly number[]> {
  const isSingle = (mark: string): boolean =>
    said.places.get(mark)?.length === 1 && older.places.get(mark)?.length === 1;
  const marks: string[] = [];

  /** The last row between two others that can be this stored message. */
  const findLast = (at: number, above: number, below: number): number | null => {
    const places = said.places.get(marks[at] ?? "") ?? [];
    const latestMs = (older.traces[at]?.atMs ?? 0) + clockMs;
    for (let index = countBelow(places, below) - 1; index >= 0; index--) {
      const place = places[index] ?? -1;
      if (place <= above) return null;
      if ((said.traces[place]?.atMs ?? 0) <= latestMs) return place;
    }
    return null;
  };

  /** Matches between two pairs, from the end: of the next few stored messages, takes the one that skips least. */
  const fill = ([first, above]: Pair, [end, below]: Pair, reachMax: number): readonly number[] => {
    const matched: number[] = [];
    for (let at = end - 1, under = below; at > first;) {
      let best: { readonly place: number; readonly skipped: number; readonly cost: number } | null = null;
      for (
        let skipped = 0;
        skipped < reachMax && at - skipped > first && skipped < (best?.cost ?? Infinity);
        skipped++
      ) {
        const place = findLast(at - skipped, above, under);
        const cost = place === null ? Infinity : under - 1 - place + skipped;
        if (place !== null && cost < (best?.cost ?? Infinity)) best = { place, skipped, cost };
      }
      at -= best === null ? reachMax : best.skipped + 1;
      if (best !== null) matched.push((under = best.place));
    }
    return matched.reverse();
  };

  const singles: Pair[] = [];
  for (const [at, trace] of older.traces.entries()) {
    if (at % stepsAtATime === 0) await breathe();
    const single = trace.marks.find(isSingle);
    marks.push(single ?? trace.marks.at(-1) ?? "");
    const place = single === undefined ? null : findLast(at, -1, said.traces.length);
    if (place !== null) singles.push([at, place]);
  }
  const end: Pair = [older.traces.length, said.traces.length];
  const matched: number[] = [];
  let from: Pair = [-1, -1];
  const anchors = longestIncreasing(singles.map(([, place]) => place));
  for (const [at, to] of [...singles.filter((_, index) => anchors.has(index)), end].entries()) {
    if (at % stepsAtATime === 0) await breathe();
    // First without skipping, which suffices if all of them match.
    const whole = fill(from, to, 1);
    const between = whole.length === to[0] - from[0] - 1 ? whole : fill(from, to, reach);
    for (const place of between) matched.push(place);
    if (to !== end) matched.push(to[1]);
    from = to;
  }
  return matched;
}
