/**
 * Finds messages by meaning: compares the vectors of a question with those of all messages in scope, one bit per
 * dimension. How close a message is counts in standard deviations above the mean of all, so that models need no scale of
 * their own.
 */

import type { MeaningQuery } from "../../../core/model/vectors.ts";
import { idIn } from "../../../core/model/types.ts";
import { all, int, statement, type Script } from "../../script.ts";
import { isLate, type Deadline } from "../limits.ts";
import { inScope, scoping, type Filter } from "../sources.ts";
import { bitsOf, blockOf, perBlock, slotOf } from "./vectors.ts";

export interface Meaning {
  /** How close a message is; null if it has no vector. */
  readonly closeness: (conversation: number, seq: number) => number | null;
  /** The ids of the closest messages, closest first. */
  readonly closest: (most: number) => readonly number[];
  /** How many messages in scope were to be compared, and how many were not: without a vector yet, or out of time. */
  readonly rows: number;
  readonly missing: number;
}

/** How many vectors one statement reads: about a millisecond of them. */
const vectorsPerRead = 32 * perBlock;

/** Stops at the deadline with what was compared until then. */
export function* compareMeaning({ model, vectors }: MeaningQuery, filter: Filter, deadline: Deadline): Script<Meaning> {
  const rows = yield* rowsIn(filter);
  const places = yield* all(
    statement(
      `SELECT conversation_id, block, made FROM message_vectors WHERE model = ? AND made > 0 AND ${inScope}
       ORDER BY conversation_id, block`,
      [model, ...scoping(filter)],
    ),
    (row) => ({ conversation: int(row, "conversation_id"), block: int(row, "block"), made: int(row, "made") }),
  );
  const queries = vectors.map(wordsOf);
  const blocks: Compared[] = [];
  let compared = 0;
  const queue = places.toReversed(); // The newest conversations first.
  while (queue.length > 0 && (compared === 0 || !isLate(deadline))) {
    const page: (readonly [number, number])[] = [];
    for (let left = vectorsPerRead; left > 0;) {
      const place = queue.shift();
      if (place === undefined) break;
      page.push([place.conversation, place.block]);
      left -= place.made;
      compared += place.made;
    }
    for (const row of yield statement(readBlocks, [JSON.stringify(page), model])) {
      const { conversation, block } = { conversation: int(row, "conversation_id"), block: int(row, "block") };
      blocks.push({ conversation, block, distances: distancesIn(bitsOf(row), int(row, "bytes"), queries) });
    }
  }
  return { ...rankBlocks(blocks, vectors[0]?.length ?? 0), rows, missing: Math.max(0, rows - compared) };
}

const readBlocks = `SELECT conversation_id, block, bytes, bits FROM pairs_in(?) AS place
  JOIN message_vectors ON conversation_id = place.one AND model = ? AND block = place.other`;

function* rowsIn(filter: Filter): Script<number> {
  const [row = {}] = yield statement(
    `SELECT coalesce(sum(next_seq - 1), 0) AS rows FROM conversations WHERE ${inScope}`,
    scoping(filter),
  );
  return int(row, "rows");
}

/** The distances of a block's messages, one list for each question; `none` where there is no vector. */
interface Compared {
  readonly conversation: number;
  readonly block: number;
  readonly distances: readonly Uint16Array[];
}

const none = 0xffff;

const wordsOf = (bytes: Uint8Array): Uint32Array => {
  const isAligned = bytes.byteOffset % 4 === 0;
  const { buffer, byteOffset } = isAligned ? bytes : bytes.slice();
  return new Uint32Array(buffer, byteOffset, bytes.length >> 2);
};

/** How many bits differ. Vectors of another length than the question's cannot be compared. */
function distancesIn(bits: Uint8Array, bytes: number, queries: readonly Uint32Array[]): readonly Uint16Array[] {
  const words = wordsOf(bits);
  const width = bytes >> 2;
  const made = words.length / width;
  return queries.map((query) => {
    const distances = new Uint16Array(made).fill(none);
    if (query.length !== width) return distances;
    for (let slot = 0, at = 0; slot < made; slot++) {
      let distance = 0;
      let any = 0;
      for (let place = 0; place < width; place++, at++) {
        const word = words[at] ?? 0;
        any |= word;
        let bit = word ^ (query[place] ?? 0);
        bit -= (bit >>> 1) & 0x55555555;
        bit = (bit & 0x33333333) + ((bit >>> 2) & 0x33333333);
        distance += Math.imul((bit + (bit >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
      }
      if (any !== 0) distances[slot] = distance;
    }
    return distances;
  });
}

/** Closeness is kept in thousandths. */
const steps = 1_000;
const lowest = -0x8000;

/** A message is as close as it is on average to the ways to put the question: better than the closest of them. */
function rankBlocks(blocks: readonly Compared[], bytes: number): Pick<Meaning, "closeness" | "closest"> {
  const scales = Array.from({ length: blocks[0]?.distances.length ?? 0 }, (_, query) =>
    scaleOf(
      blocks.map(({ distances }) => distances[query] ?? new Uint16Array()),
      bytes * 8,
    ),
  );
  const ranked = blocks.map(({ conversation, block, distances }) => {
    const closeness = new Int16Array(distances[0]?.length ?? 0);
    for (let slot = 0; slot < closeness.length; slot++) {
      let sum = 0;
      for (let query = 0; query < distances.length; query++)
        sum += scales[query]?.[distances[query]?.[slot] ?? none] ?? lowest * distances.length;
      closeness[slot] = Math.max(lowest, Math.round(sum / distances.length));
    }
    return { conversation, block, closeness };
  });
  const byPlace = new Map(ranked.map((each) => [placeOf(each.conversation, each.block), each.closeness]));
  return {
    closeness(conversation, seq) {
      const value = byPlace.get(placeOf(conversation, blockOf(seq)))?.[slotOf(seq)] ?? lowest;
      return value === lowest ? null : value / steps;
    },
    closest(most) {
      const least = thresholdOf(
        ranked.map(({ closeness }) => closeness),
        most,
      );
      const found: { readonly id: number; readonly value: number }[] = [];
      for (const { conversation, block, closeness } of ranked)
        for (const [slot, value] of closeness.entries())
          if (value >= least && value > lowest)
            found.push({ id: idIn(conversation, block * perBlock + slot + 1), value });
      return found
        .sort((one, other) => other.value - one.value || other.id - one.id)
        .slice(0, most)
        .map(({ id }) => id);
    },
  };
}

const placeOf = (conversation: number, block: number): number => conversation * 2 ** 14 + block;

/** The closeness of each distance. */
function scaleOf(lists: readonly Uint16Array[], bits: number): Int16Array {
  const counts = new Float64Array(bits + 1);
  for (const list of lists)
    for (const distance of list) if (distance !== none) counts[distance] = (counts[distance] ?? 0) + 1;
  const total = counts.reduce((sum, each) => sum + each, 0);
  const mean = counts.reduce((sum, each, distance) => sum + each * distance, 0) / Math.max(1, total);
  const variance = counts.reduce((sum, each, distance) => sum + each * (distance - mean) ** 2, 0) / Math.max(1, total);
  const deviation = Math.sqrt(variance) || 1;
  return Int16Array.from(counts, (_, distance) =>
    Math.max(lowest + 1, Math.min(-lowest - 1, Math.round(((mean - distance) / deviation) * steps))),
  );
}

/** A value that at least this many reach, and not many more. */
function thresholdOf(lists: readonly Int16Array[], most: number): number {
  const counts = new Uint32Array(0x10000);
  for (const list of lists)
    for (const value of list) if (value !== lowest) counts[value - lowest] = (counts[value - lowest] ?? 0) + 1;
  let found = 0;
  let at = counts.length;
  while (at > 0 && found < most) found += counts[--at] ?? 0;
  return at + lowest;
}
