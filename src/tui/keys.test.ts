import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createPaint } from "../format/paint.ts";
import { barEntries, drawBar, helpLines, keyOf } from "./keys.ts";
import type { Offer } from "./keys.ts";
import { modules } from "./layers.ts";
import { widthOf } from "../format/width.ts";

const plain = createPaint(false);
const offer = (key: string, short: string, because: string | null = null): Offer => ({
  keys: [key],
  short,
  help: `does ${short}`,
  because,
});

describe("a key", () => {
  it("has its usual name, however the terminal encodes it", () => {
    const cases = { j: "j", G: "G", "?": "?", " ": "space", "\r": "enter", "\u001b": "escape", "\u0003": "ctrl+c" };
    for (const [data, name] of Object.entries(cases)) assert.equal(keyOf(data)?.name, name);
    assert.equal(keyOf("\u001b[5~")?.name, "pageUp");
    assert.equal(keyOf("\u001b[A")?.name, "up");
    assert.deepEqual(keyOf("\u001b[103:71;2u"), { name: "G", text: "G" }, "as a terminal with the newer protocol does");
    assert.deepEqual(keyOf("日"), { name: "日", text: "日" });
  });

  it("is ignored when it is released", () => {
    assert.equal(keyOf("\u001b[106;1:3u"), null);
  });
});

describe("the key bar", () => {
  it("shows as many as fit, and always the last three", () => {
    const last = [offer(":", "commands"), offer("?", "help"), offer("escape", "back")];
    const offers = [offer("enter", "open"), offer("s", "summaries"), ...last];
    const shown = (columns: number): string => drawBar(barEntries(offers, columns), plain);
    assert.equal(shown(60), " ↵ open  s summaries  : commands  ? help  esc back");
    assert.equal(shown(42), " ↵ open  : commands  ? help  esc back");
    assert.equal(shown(30), " : commands  ? help  esc back");
    for (let columns = 1; columns < 60; columns++) assert.ok(widthOf(shown(columns)) <= columns, String(columns));
  });

  it("knows the columns of each entry, for clicks", () => {
    const entries = barEntries([offer("enter", "open"), offer("?", "help")], 60);
    assert.deepEqual(
      entries.map(({ key, from, to }) => [key, from, to]),
      [
        ["enter", 1, 7],
        ["?", 9, 15],
      ],
    );
  });
});

describe("the help page", () => {
  it("shows what each key does, and why it is unavailable", () => {
    const lines = helpLines(
      [{ name: "Here", offers: [offer("x", "it"), offer("enter", "more", "not now")] }],
      30,
      plain,
    );
    assert.deepEqual(lines, ["Here", "  x  does it", "  ↵  does more", "     (not now)"]);
  });
});

describe("every layer's keys", () => {
  // A dialog with phases offers a key in one phase at a time.
  for (const { name, keys } of modules.filter((each) => each.keys.every(({ when }) => when === undefined))) {
    it(`of “${name}” have one action each at any time`, () => {
      const taken = new Map<string, number>();
      for (const each of keys)
        for (const key of each.keys) taken.set(key, (taken.get(key) ?? 0) + (each.disabled === undefined ? 1 : 0));
      assert.deepEqual(
        [...taken].filter(([, count]) => count > 1),
        [],
      );
    });
  }
});
