import assert from "node:assert/strict";
import { appendFileSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { makeScratch } from "../../../test/support/scratch.ts";
import { cursorAt, isReadWhole, placeAfter, readOn, stateOf } from "./read-on.ts";

const file = (): string => join(makeScratch("read-on"), "session.jsonl");
const read = (path: string, cursor: string | null, bytesMax?: number) => {
  const found = readOn(path, cursor, bytesMax);
  assert.ok(found !== null);
  return { ...found, texts: found.lines.map(({ text }) => text), positions: found.lines.map((line) => line.position) };
};

describe("reading a transcript on", () => {
  it("gives each line once, with its number in the file", () => {
    const path = file();
    writeFileSync(path, "one\n\ntwo\n");
    const first = read(path, null);
    assert.deepEqual(first.texts, ["one", "", "two"]);
    assert.deepEqual(read(path, first.cursor).texts, []);
    appendFileSync(path, "three\n");
    const next = read(path, first.cursor);
    assert.deepEqual([next.texts, next.positions], [["three"], [4]]);
  });

  it("leaves a line that is still being written", () => {
    const path = file();
    writeFileSync(path, "one\ntw");
    const first = read(path, null);
    assert.deepEqual([first.texts, first.hasMore], [["one"], true]);
    assert.deepEqual([read(path, first.cursor).texts, read(path, first.cursor).hasMore], [[], false]);
    appendFileSync(path, "o\n");
    assert.deepEqual(read(path, first.cursor).texts, ["two"]);
  });

  it("starts again in a file that begins differently or is shorter than it was", () => {
    const path = file();
    writeFileSync(path, "one\ntwo\n");
    const { cursor } = read(path, null);
    writeFileSync(path, "One\ntwo\nthree\n");
    assert.deepEqual(read(path, cursor).texts, ["One", "two", "three"]);
    writeFileSync(path, "one\n");
    assert.deepEqual(read(path, cursor).texts, ["one"]);
    assert.deepEqual(read(path, "of another reader").texts, ["one"]);
  });

  it("starts again in a file whose end was rewritten, and does not begin within a line", () => {
    const path = file();
    const start = `${"first ".repeat(400)}\n`;
    writeFileSync(path, `${start}two\nthree\n`);
    const { cursor } = read(path, null);
    writeFileSync(path, `${start}two\nthree was taken back\nfour\n`);
    assert.deepEqual(read(path, cursor).texts.slice(1), ["two", "three was taken back", "four"]);
  });

  it("has a place in each file of a session, whichever is read next", () => {
    const [old, revised] = [file(), file()];
    writeFileSync(old, "one\ntwo\n");
    writeFileSync(revised, "uno\n");
    let { cursor } = read(old, null);
    cursor = read(revised, cursor).cursor;
    for (const path of [old, revised, old]) {
      assert.ok(isReadWhole(path, cursor));
      assert.deepEqual(read(path, cursor).texts, []);
      cursor = read(path, cursor).cursor;
    }
    appendFileSync(revised, "due\n");
    assert.deepEqual([isReadWhole(old, cursor), isReadWhole(revised, cursor)], [true, false]);
    const next = read(revised, cursor);
    assert.deepEqual([next.texts, next.positions], [["due"], [2]]);
    assert.deepEqual(placeAfter(old, next.cursor, 8), { offset: 8, lines: 2 });
    const imported = cursorAt(revised, { offset: 4, lines: 1 }, next.cursor);
    assert.deepEqual([read(revised, imported).texts, read(old, imported).texts], [["due"], []]);
  });

  it("an import's place holds while the file only grows, and in no file that was rewritten or replaced", () => {
    const path = file();
    const [start, end] = [`${"first ".repeat(400)}\n`, `${"last ".repeat(400)}\n`];
    writeFileSync(path, `${start}middle\n${end}`);
    const { size } = statSync(path);
    const cursor = cursorAt(path, { offset: size, lines: 3, of: stateOf(path) }, null);
    const placeNow = () => placeAfter(path, cursor, statSync(path).size);
    assert.deepEqual(placeNow(), { offset: size, lines: 3 });
    appendFileSync(path, "more\n");
    assert.deepEqual(placeNow(), { offset: size, lines: 3 });
    // Neither its length nor how it begins and ends has changed.
    writeFileSync(path, `${start}Middle\n${end}`);
    utimesSync(path, 1_000, 1_000);
    assert.equal(placeNow(), null);
    assert.ok(isReadWhole(path, cursor), "a host that only appends does not look at the time");
    writeFileSync(`${path}.new`, `${start}Middle\n${end}more\n`);
    renameSync(`${path}.new`, path);
    assert.equal(placeNow(), null);
  });

  it("reads a large file piece by piece, and a line longer than a piece whole", () => {
    const path = file();
    const lines = ["short", "a line that is longer than a piece, ümlauts too", "end"];
    writeFileSync(path, lines.map((line) => `${line}\n`).join(""));
    const seen: string[] = [];
    let cursor: string | null = null;
    for (let more = true; more;) {
      const piece = read(path, cursor, 8);
      seen.push(...piece.texts);
      [cursor, more] = [piece.cursor, piece.hasMore];
    }
    assert.deepEqual(seen, lines);
  });

  it("returns null for a file that does not exist yet", () => {
    assert.equal(readOn(file(), null), null);
  });
});
