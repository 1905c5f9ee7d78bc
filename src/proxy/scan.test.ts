import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createRandom, type Random } from "../../test/support/random.ts";
import { commonLength, elementBytes, scanBody, withElements, type ScannedBody } from "./scan.ts";

function scan(bytes: Buffer, last: ScannedBody | null = null): ScannedBody | null {
  const scanning = scanBody(bytes, "messages", last);
  for (;;) {
    const step = scanning.next();
    if (step.done === true) return step.value;
  }
}

const elementsOf = (scanned: ScannedBody): readonly Buffer[] =>
  Array.from({ length: scanned.count }, (_, at) => elementBytes(scanned, at));
const valuesOf = (scanned: ScannedBody | null): readonly unknown[] | null =>
  scanned && elementsOf(scanned).map((bytes) => JSON.parse(bytes.toString()));

/** Any JSON, with the characters that could mislead a scanner. */
function anything(random: Random, depth = 0): unknown {
  const kind = random.below(depth > 3 ? 4 : 6);
  const text = (): string =>
    Array.from({ length: random.below(8) }, () =>
      random.pick(['"', "\\", "]", "}", "[", ",", "é", "😀", "\n", "a"]),
    ).join("");
  if (kind === 0) return random.pick([null, true, false, 0, -1.5e10, 12]);
  if (kind <= 3) return text();
  if (kind === 4) return Array.from({ length: random.below(4) }, () => anything(random, depth + 1));
  return Object.fromEntries(Array.from({ length: random.below(4) }, () => [text(), anything(random, depth + 1)]));
}

/** The same value, written with spaces here and there. */
const written = (random: Random, value: unknown): string => JSON.stringify(value, null, random.pick([0, 1, "\t"]));

describe("scanning a body", () => {
  it("finds the elements of the array, and keeps every other byte when they are replaced", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = createRandom(seed);
      const list = Array.from({ length: random.below(6) }, () => anything(random));
      const before = Object.fromEntries(
        Array.from({ length: random.below(3) }, (_, at) => [`a${at}`, anything(random)]),
      );
      const after = Object.fromEntries(
        Array.from({ length: random.below(3) }, (_, at) => [`z${at}`, anything(random)]),
      );
      const text = written(random, { ...before, messages: list, ...after });
      const scanned = scan(Buffer.from(text));
      assert.ok(scanned !== null, text);
      assert.deepEqual(valuesOf(scanned), list);
      assert.deepEqual(JSON.parse(scanned.rest), { ...before, messages: [], ...after });
      const replaced = withElements(scanned, [Buffer.from('{"new":1}'), ...elementsOf(scanned)]);
      assert.deepEqual(JSON.parse(replaced.toString()), { ...before, messages: [{ new: 1 }, ...list], ...after });
      const { from, to } = scanned.array;
      assert.ok(replaced.subarray(0, from).equals(scanned.bytes.subarray(0, from)));
      assert.ok(replaced.subarray(replaced.length - (scanned.bytes.length - to)).equals(scanned.bytes.subarray(to)));
    }
  });

  it("scans only what differs from the body before, and finds the same", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = createRandom(seed);
      const list = Array.from({ length: random.between(1, 8) }, () => anything(random));
      const space = random.pick([0, 1]);
      const bodyOf = (head: string, messages: unknown[]): Buffer =>
        Buffer.from(JSON.stringify({ head, messages, tail: 1 }, null, space));
      const last = scan(bodyOf("one", list));
      const kept = random.below(list.length + 1);
      const next = [...list.slice(0, kept), ...Array.from({ length: random.below(3) }, () => anything(random))];
      const body = bodyOf(random.pick(["one", "another head"]), next);
      const scanned = scan(body, last);
      assert.deepEqual(valuesOf(scanned), next);
      assert.deepEqual({ ...scanned, keptElements: 0, keptBytes: 0 }, scan(body));
      // What follows the last one that is equal may differ.
      assert.ok((scanned?.keptElements ?? 0) >= kept - 1, `${scanned?.keptElements} of ${kept}`);
    }
  });

  it("refuses what is not an object with one such array", () => {
    for (const text of [
      "",
      "[]",
      "{",
      '{"messages":1}',
      '{"messages":[1}',
      '{"messages":[1 2]}',
      '{"other":[]}',
      '{"messages":[],"messages":[]}',
      '{"m\\u0065ssages":[]}',
      `{"messages":[${"[".repeat(1_001)}${"]".repeat(1_001)}]}`,
      `{"a":${"[".repeat(1_001)}${"]".repeat(1_001)},"messages":[]}`,
      `{${'"a":1,'.repeat(1_001)}"messages":[]}`,
      `{"messages":[]${',"a":1'.repeat(1_001)}}`,
    ])
      assert.equal(scan(Buffer.from(text)), null, text);
  });

  it("gives others a chance after each slice", () => {
    const scanning = scanBody(
      Buffer.from(JSON.stringify({ messages: Array(20_000).fill("x".repeat(100)) })),
      "messages",
    );
    let slices = 0;
    while (scanning.next().done !== true) slices++;
    assert.equal(slices, 7);
  });

  it("does not fill the memory with elements that say nothing", () => {
    const some = scan(Buffer.from(`{"messages":[${"1,".repeat(100_000)}1]}`));
    assert.equal(some?.count, 100_001);
    assert.equal(scan(Buffer.from(`{"messages":[${"1,".repeat(2_000_000)}1]}`)), null);
  });
});

describe("the common beginning of two texts", () => {
  it("is found exactly", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const random = createRandom(seed);
      const one = Buffer.from(random.hex16().repeat(random.below(4)));
      const at = random.below(one.length + 1);
      const other = Buffer.concat([one.subarray(0, at), Buffer.from("x".repeat(random.below(3)))]);
      assert.equal(commonLength(one, other), Math.min(at, one.length));
    }
  });
});
