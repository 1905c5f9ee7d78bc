/**
 * Moving over: a conversation that the older program kept goes on here. What it holds of the host's transcript lies under
 * keys of its own, so once, before anything else of the session is stored, it is found out which lines those are.
 *
 * A line is the same message if the key is, if it is the only one with these tool-call ids, or if role and text are the
 * same. What counts of a text is what is said, without white space: the older program trimmed texts, joined blocks in
 * its own way, and kept calls, thinking and pictures beside the text or not at all. Ids count by letters and digits.
 * Nothing can be stored before it was said, which tells equal messages apart: the newest that comes into question is it.
 *
 * What the older program missed or changed must not lead the rest astray. So what occurs once on both sides is set first,
 * the longest rising row of it; and what lies between two of these is looked for only there.
 */

import { hash } from "node:crypto";
import { setImmediate as breathe } from "node:timers/promises";
import { messageFromStore, messageToStore, textOfParts } from "../../core/messages/codec.ts";
import type { Conversation, Message, NewMessage } from "../../core/model/types.ts";
import { tiesOf } from "../../core/messages/tool-calls.ts";
import type { Incoming } from "../../core/messages/codec.ts";
import type { Store } from "../../core/model/store.ts";

const messagesPerPage = 500;

/** Of keys of what was said in runs that the host keeps no transcript of: no line of one is any of it. */
export const standalonePrefix = "standalone:";

/** How much later than it was said a clock may say that something was stored: whole seconds, and a clock set right. */
const clockMs = 60_000;

/** How many stored messages that are not found are passed over at a time, for one behind them that is. */
const reach = 32;

/** The host has other things to do. */
const stepsAtATime = 1_000;

export interface Aligned {
  /**
   * What becomes of a line of the transcript: nothing of what is held, and what comes behind that is new. A message from
   * before the last that is held is kept outside the context, since its place there is gone.
   */
  readonly item: (item: Incoming) => readonly Incoming[];
  /** Whether a line comes before the last that is held. A reset there begins no segment: the older program had its own. */
  readonly isPast: (key: string) => boolean;
}

/** Null if nothing is held under keys of its own. */
export async function alignOlder(
  store: Store,
  conversation: Conversation,
  pages: () => AsyncIterable<readonly Incoming[]>,
): Promise<Aligned | null> {
  const { older, known } = await readHeld(store, conversation);
  if (older.traces.length === 0) return null;
  const { said, others } = await readSaid(pages(), known);
  const found = await match(older, said);
  const last = found.at(-1) ?? -1;
  const held = new Set(found.map((at) => said.traces[at]?.key));
  const past = new Set([
    ...said.traces.slice(0, last + 1).map(({ key }) => key),
    ...others.filter(({ before }) => before <= last).map(({ key }) => key),
  ]);
  return {
    item: (item) => {
      const { key, parentKey } = item.kind === "message" ? item : item.entry;
      if (held.has(key)) return [];
      const placed = typeof parentKey === "string" && held.has(parentKey) ? withoutParent(item) : item;
      const isMissed = placed.kind === "message" && past.has(key);
      return [isMissed ? { ...placed, aside: "branch" } : placed];
    },
    isPast: (key) => past.has(key),
  };
}

/** It hangs on what is stored under another key. It follows what is there, and its line stays what it was. */
function withoutParent(item: Incoming): Incoming {
  if (item.kind === "entry") {
    const { parentKey: _, ...entry } = item.entry;
    return { kind: "entry", entry };
  }
  const { parentKey: _, ...message } = item;
  return message;
}

// ── Both sides ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** What is remembered of a message, whatever its size. */
interface Trace {
  readonly key: string;
  readonly atMs: number;
  /** By what it is known again, the surest first; its text last. */
  readonly marks: readonly string[];
}

/** Messages in their order, and where each mark is among them. */
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

async function readHeld(store: Store, { id }: Conversation) {
  const family = await store.conversations({ familyOf: id, includeHidden: true });
  /** What came without a line of the host's transcript, of all segments of the session, oldest first. */
  const older = createSide();
  /** Keys of what came with one: read before, by a run that broke off. */
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
  /** Lines that are no messages, and which message comes next. */
  const others: { readonly key: string; readonly before: number }[] = [];
  for await (const page of pages) {
    await breathe(); // A host that reads its transcript without waiting for anything would be held up by all of it.
    for (const item of page) {
      if (item.kind === "entry") others.push({ key: item.entry.key, before: said.traces.length });
      else if (!known.has(item.key)) said.add(messageToStore(item.message, item));
    }
  }
  return { said, others };
}

function traceOf(message: Message | NewMessage): Trace {
  const { key, role, parts, at } = message;
  const named = role === "tool" ? tiesOf(messageFromStore(message)).answers : parts.map(({ toolCallId }) => toolCallId);
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

// ── Matching ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A stored message and the line it is, by their places. */
type Pair = readonly [older: number, said: number];

/** The places of the lines that are held, in order. In the usual case linear in both, and never for long at a time. */
async function match(older: Side, said: Side): Promise<readonly number[]> {
  const isSingle = (mark: string): boolean =>
    said.places.get(mark)?.length === 1 && older.places.get(mark)?.length === 1;
  const marks: string[] = [];

  /** The last line between two others that a stored message can be. */
  const findLast = (at: number, above: number, below: number): number | null => {
    const found = said.places.get(marks[at] ?? "") ?? [];
    const latestMs = (older.traces[at]?.atMs ?? 0) + clockMs;
    for (let index = countBelow(found, below) - 1; index >= 0; index--) {
      const place = found[index] ?? -1;
      if (place <= above) return null;
      if ((said.traces[place]?.atMs ?? 0) <= latestMs) return place;
    }
    return null;
  };

  /** From the end of a stretch: of the next few stored messages, the one that passes over least. */
  const fill = ([first, above]: Pair, [end, below]: Pair, reachMax: number): readonly number[] => {
    const found: number[] = [];
    for (let at = end - 1, under = below; at > first;) {
      let best: { readonly place: number; readonly passed: number; readonly cost: number } | null = null;
      for (let passed = 0; passed < reachMax && at - passed > first && passed < (best?.cost ?? Infinity); passed++) {
        const place = findLast(at - passed, above, under);
        const cost = place === null ? Infinity : under - 1 - place + passed;
        if (place !== null && cost < (best?.cost ?? Infinity)) best = { place, passed, cost };
      }
      at -= best === null ? reachMax : best.passed + 1;
      if (best !== null) found.push((under = best.place));
    }
    return found.reverse();
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
  const found: number[] = [];
  let from: Pair = [-1, -1];
  for (const [at, to] of [...longestRising(singles), end].entries()) {
    if (at % stepsAtATime === 0) await breathe();
    // All of it, one after the other, if that is possible.
    const whole = fill(from, to, 1);
    const between = whole.length === to[0] - from[0] - 1 ? whole : fill(from, to, reach);
    for (const place of between) found.push(place);
    if (to !== end) found.push(to[1]);
    from = to;
  }
  return found;
}

/** How many of these rising numbers are smaller. */
function countBelow(rising: readonly number[], limit: number): number {
  let [low, high] = [0, rising.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rising[middle] ?? limit) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Of pairs that rise on the stored side, the most that rise on both. */
function longestRising(pairs: readonly Pair[]): readonly Pair[] {
  interface Row {
    readonly pair: Pair;
    readonly before: Row | null;
  }
  const rows: Row[] = []; // By length, of each the one that ends lowest.
  const endings: number[] = [];
  for (const pair of pairs) {
    const length = countBelow(endings, pair[1]);
    rows[length] = { pair, before: rows[length - 1] ?? null };
    endings[length] = pair[1];
  }
  const longest: Pair[] = [];
  for (let row = rows.at(-1) ?? null; row !== null; row = row.before) longest.push(row.pair);
  return longest.reverse();
}
