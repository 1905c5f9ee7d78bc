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
import { entryFromStore, messageFromStore, textOfParts } from "../core/content.ts";
import type { Conversation, Message, NewMessage } from "../core/model.ts";
import { tiesOf } from "../core/pairing.ts";
import type { Appendable, Store } from "../core/ports.ts";

const messagesPerPage = 500;

/** How much later than it was said a clock may say that something was stored: whole seconds, and a clock set right. */
const clockMs = 60_000;

/** How many stored messages that are not found are passed over at a time, for one behind them that is. */
const reach = 32;

/**
 * What becomes of each line of the transcript: nothing of what is held, and what comes behind that is new. A message from
 * before the last that is held is kept outside the context, since its place there is gone. Null if nothing is held under
 * keys of its own.
 */
export async function alignOlder(
  store: Store,
  conversation: Conversation,
  pages: () => AsyncIterable<readonly Appendable[]>,
): Promise<((item: Appendable) => readonly Appendable[]) | null> {
  const { older, known } = await readHeld(store, conversation);
  if (older.length === 0) return null;
  const said = await readSaid(pages(), known);
  const found = match(older, said);
  const held = new Set(found.map((at) => said[at]?.key));
  const before = new Set(said.slice(0, found.at(-1) ?? 0).map(({ key }) => key));
  return (item) => {
    const { key, parentKey } = item.kind === "message" ? item.message : item.entry;
    if (held.has(key)) return [];
    const placed = typeof parentKey === "string" && held.has(parentKey) ? withoutParent(item) : item;
    const isMissed = placed.kind === "message" && before.has(key);
    return [isMissed ? { kind: "message", message: { ...placed.message, aside: "branch" } } : placed];
  };
}

/** It hangs on what is stored under another key. It follows what is there, and its line stays what it was. */
function withoutParent(item: Appendable): Appendable {
  if (item.kind === "entry") {
    const { parentKey: _, ...entry } = item.entry;
    return { kind: "entry", entry };
  }
  const { parentKey = null, ...message } = item.message;
  if (message.entry === null) return { kind: "message", message };
  const line = entryFromStore({ ...message, parentKey }, {});
  return { kind: "message", message: { ...message, entry: JSON.stringify({ ...line, message: null }) } };
}

// ── Both sides ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** What is remembered of a message, whatever its size. */
interface Trace {
  readonly key: string;
  readonly atMs: number;
  /** By what it is known again, the surest first; its text last. */
  readonly marks: readonly string[];
}

interface Held {
  /** What came without a line of the host's transcript, of all segments of the session, oldest first. */
  readonly older: readonly Trace[];
  /** Keys of what came with one: read before, by a run that broke off. */
  readonly known: ReadonlySet<string>;
}

async function readHeld(store: Store, { id }: Conversation): Promise<Held> {
  const family = await store.conversations({ familyOf: id, includeHidden: true });
  const older: Trace[] = [];
  const known = new Set<string>();
  for (const segment of family.toSorted((a, b) => a.id - b.id)) {
    for (let afterSeq = 0; ;) {
      const page = await store.messages({ conversation: segment.id, afterSeq, limit: messagesPerPage });
      for (const message of page) {
        if (message.entry !== null) known.add(message.key);
        else if (message.aside !== "note") older.push(traceOf(message));
      }
      const last = page.at(-1);
      if (last === undefined) break;
      afterSeq = last.seq;
    }
  }
  return { older, known };
}

async function readSaid(
  pages: AsyncIterable<readonly Appendable[]>,
  known: ReadonlySet<string>,
): Promise<readonly Trace[]> {
  const said: Trace[] = [];
  for await (const page of pages) {
    for (const item of page) {
      if (item.kind === "message" && !known.has(item.message.key)) said.push(traceOf(item.message));
    }
  }
  return said;
}

function traceOf(message: Message | NewMessage): Trace {
  const { key, role, parts, at } = message;
  const { calls, answers } = tiesOf(messageFromStore(message));
  const ids = [...calls.map(({ id }) => id), ...answers].map((id) => id.replace(/[^\p{L}\p{N}]/gu, ""));
  const text = textOfParts(role === "assistant" ? parts.filter(({ type }) => type !== "tool") : parts);
  const mark = (sort: string, value: string): string => hash("sha256", `${sort} ${role} ${value}`, "base64url");
  return {
    key,
    atMs: Date.parse(at),
    marks: [
      mark("key", key),
      ...(ids.length === 0 ? [] : [mark("ids", ids.join())]),
      mark("text", text.replace(/\s+/g, "")),
    ],
  };
}

// ── Matching ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A stored message and the line it is, by their places. */
type Pair = readonly [older: number, said: number];

/** The places of the lines that are held, in order. In the usual case linear in both. */
function match(older: readonly Trace[], said: readonly Trace[]): readonly number[] {
  const places = placesByMark(said);
  const olderPlaces = placesByMark(older);
  const isSingle = (mark: string): boolean => places.get(mark)?.length === 1 && olderPlaces.get(mark)?.length === 1;
  const marks = older.map((trace) => trace.marks.find(isSingle) ?? trace.marks.at(-1) ?? "");

  /** The last line between two others that a stored message can be. */
  const findLast = (at: number, above: number, below: number): number | null => {
    const found = places.get(marks[at] ?? "") ?? [];
    const latestMs = (older[at]?.atMs ?? 0) + clockMs;
    for (let index = countBelow(found, below) - 1; index >= 0; index--) {
      const place = found[index] ?? -1;
      if (place <= above) return null;
      if ((said[place]?.atMs ?? 0) <= latestMs) return place;
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

  const singles = marks.flatMap((mark, at): readonly Pair[] => {
    const place = isSingle(mark) ? findLast(at, -1, said.length) : null;
    return place === null ? [] : [[at, place]];
  });
  const ends: readonly Pair[] = [...longestRising(singles), [older.length, said.length]];
  let from: Pair = [-1, -1];
  return ends.flatMap((to) => {
    // All of it, one after the other, if that is possible.
    const whole = fill(from, to, 1);
    const between = whole.length === to[0] - from[0] - 1 ? whole : fill(from, to, reach);
    from = to;
    return to[1] === said.length ? between : [...between, to[1]];
  });
}

function placesByMark(traces: readonly Trace[]): ReadonlyMap<string, readonly number[]> {
  const places = new Map<string, number[]>();
  for (const [at, { marks }] of traces.entries()) {
    for (const mark of marks) {
      const known = places.get(mark);
      if (known === undefined) places.set(mark, [at]);
      else known.push(at);
    }
  }
  return places;
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
