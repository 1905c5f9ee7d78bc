import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PaletteEntry } from "../contract.ts";
import { matching } from "./palette.ts";

const entry = (help: string, also = "", given: Partial<PaletteEntry> = {}): PaletteEntry => ({
  key: null,
  help,
  also,
  because: null,
  choice: { kind: "press", key: "x" },
  ...given,
});

const entries = [
  entry("show the conversation's messages", "messages", { key: "enter" }),
  entry("compact: fold old messages into summaries", "compact sweep", { key: "C" }),
  entry("forget a secret everywhere it occurs", "forget redact remove password"),
  entry("restore a backup of the database", "restore backup"),
  entry("back up the database and its files", "backup copy", { because: "it was opened with --read-only" }),
];

const found = (text: string): readonly string[] => matching(entries, text).map(({ help }) => help.slice(0, 14));

describe("what the palette finds", () => {
  it("is everything, in order, before a word is typed", () => {
    assert.deepEqual(matching(entries, "  "), entries);
  });

  it("has every word, the closest first", () => {
    assert.deepEqual(found("messages"), ["show the conve", "compact: fold "]);
    assert.deepEqual(found("mess fold"), ["compact: fold "]);
    assert.deepEqual(found("back"), ["back up the da", "restore a back"]);
    assert.deepEqual(found("database fil"), ["back up the da"]);
    assert.deepEqual(found("conversation's"), ["show the conve"]);
    assert.deepEqual(found("nothing like it"), []);
  });

  it("is found by the command's name, by its key, and by letters in order", () => {
    assert.deepEqual(found("password"), ["forget a secre"]);
    assert.equal(found("c")[0], "compact: fold ");
    assert.deepEqual(found("cmpct"), ["compact: fold "]);
    assert.deepEqual(found("RSTR"), ["restore a back"]);
  });
});
