import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createRandom, type Random } from "../../../test/support/random.ts";
import type { Json } from "../../core/base/json.ts";
import { addToList, readJsonc, removeFromList } from "./jsonc.ts";

const added = (text: string): string => addToList(text, "plugin", "new");
const isNew = (item: Json): boolean => item === "new";

describe("reading JSON with comments", () => {
  it("accepts comments, trailing commas and a byte order mark, also within strings", () => {
    const text = '\ufeff// a\n{ /* b */ "url": "http://x/*y*/", "n": [1, -2.5e3, true, null, {},], } // c\n';
    assert.deepEqual(readJsonc(text), { url: "http://x/*y*/", n: [1, -2500, true, null, {}] });
  });

  it("names the line of what it cannot read", () => {
    for (const [text, line] of [
      ["", 1],
      ["[]", 1],
      ["{\n  'a': 1\n}", 2],
      ['{\n\n  "a": 1 "b": 2\n}', 3],
      ['{ "a": 01x }', 1],
      ['{ "a": 1 } x', 1],
      ['{ "a": "\n" }', 1],
      ['{ "a": 1', 1],
    ] as const)
      assert.throws(() => readJsonc(text), { code: "invalid", message: `line ${line} is not JSON` }, text);
  });
});

describe("adding to a list of a file that somebody wrote", () => {
  for (const [what, before, after] of [
    ["an empty object", "{}", '{\n  "plugin": ["new"]\n}'],
    ["a list on one line", '{ "plugin": ["a"], "b": 1 }', '{ "plugin": ["a", "new"], "b": 1 }'],
    ["an empty list", '{"plugin": [ ]}', '{"plugin": ["new" ]}'],
    [
      "a list on several lines, with comments",
      '{\n\t"plugin": [\n\t\t"a", // first\n\t\t"b" // last\n\t]\n}\n',
      '{\n\t"plugin": [\n\t\t"a", // first\n\t\t"b", // last\n\t\t"new"\n\t]\n}\n',
    ],
    [
      "a list with a trailing comma and comments",
      '{ "plugin": [\n  "a", // first\n] }',
      '{ "plugin": [\n  "a", // first\n  "new",\n] }',
    ],
    [
      "an object without the list; a comment stays on its line",
      '{\n  // mine\n  "a": 1, // one\n  "b": { "c": 2 } // two\n}\n',
      '{\n  // mine\n  "a": 1, // one\n  "b": { "c": 2 }, // two\n  "plugin": ["new"]\n}\n',
    ],
    ["a trailing comma", '{\n    "a": 1, // one\n}', '{\n    "a": 1, // one\n    "plugin": ["new"],\n}'],
    ["an object on one line", '{ "a": 1 }', '{ "a": 1, "plugin": ["new"] }'],
    ["lines of Windows", '{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "plugin": ["new"]\r\n}\r\n'],
  ] as const)
    it(`keeps everything else: ${what}`, () => assert.equal(added(before), after));

  it("does not touch something of this name that is not a list", () => {
    assert.throws(() => added('{ "plugin": "a" }'), { code: "invalid", message: '"plugin" is not a list' });
  });
});

describe("removing from a list", () => {
  for (const [what, before, after] of [
    ["the only item", '{ "plugin": [ "new" ] }', '{ "plugin": [  ] }'],
    ["the only item, with a trailing comma", '{ "plugin": [\n  "new",\n] }', '{ "plugin": [\n  \n] }'],
    ["the first", '{ "plugin": ["new", "b"] }', '{ "plugin": ["b"] }'],
    ["the last, and its comma", '{ "plugin": ["a",\n  "new" // x\n] }', '{ "plugin": ["a" // x\n] }'],
    ["a comment before it", '{ "plugin": [\n  "a", // x\n  "new",\n] }', '{ "plugin": [\n  "a", // x\n] }'],
    ["a comment before the last", '{ "plugin": [\n  "a", // x\n  "new"\n] }', '{ "plugin": [\n  "a" // x\n] }'],
    ["one in the middle", '{ "plugin": ["a", "new", "b"] }', '{ "plugin": ["a", "b"] }'],
    ["all of them", '{ "plugin": ["new", "b", "new"] }', '{ "plugin": ["b"] }'],
    ["none", '{ "plugin": ["a"] }', '{ "plugin": ["a"] }'],
    ["no list", "{}", "{}"],
  ] as const)
    it(`leaves the rest: ${what}`, () => assert.equal(removeFromList(before, "plugin", isNew), after));
});

describe("any file", () => {
  it("means the same but for the item, after adding and after removing, and keeps its comments", () => {
    const random = createRandom(51);
    for (let round = 0; round < 2_000; round++) {
      const text = makeObject(random, 2);
      const before = readJsonc(text) as { readonly plugin?: readonly Json[] };
      const now = added(text);
      assert.deepEqual(readJsonc(now), { ...before, plugin: [...(before.plugin ?? []), "new"] }, text);
      for (const [comment] of text.matchAll(/\/\*\d+\*\/|\/\/\d+/g)) assert.ok(now.includes(comment), text);
      const removed = removeFromList(now, "plugin", isNew);
      assert.deepEqual(readJsonc(removed), { ...before, plugin: before.plugin ?? [] }, text);
      for (const [comment] of text.matchAll(/\/\*\d+\*\/|\/\/\d+/g)) assert.ok(removed.includes(comment), text);
    }
  });
});

function blank(random: Random): string {
  return random.pick([
    "",
    " ",
    "\n  ",
    "\n",
    `/*${random.below(1_000)}*/`,
    `//${random.below(1_000)}\n`,
    "\r\n\t",
    "/* 1\n2 */",
  ]);
}

function makeObject(random: Random, depth: number): string {
  const keys = ["a", "b", "c", ...(depth === 2 && random.chance(0.6) ? ["plugin"] : [])];
  const wanted = keys.filter(() => random.chance(0.7));
  const members = wanted.map((key) => {
    const value = key === "plugin" ? makeList(random, () => '"p"') : makeValue(random, depth);
    return `${blank(random)}"${key}"${blank(random)}:${blank(random)}${value}${blank(random)}`;
  });
  const end = members.length > 0 && random.chance(0.3) ? "," : "";
  return `${depth === 2 ? blank(random) : ""}{${members.join(",")}${end}${blank(random)}}${depth === 2 ? blank(random) : ""}`;
}

const makeList = (random: Random, item: () => string): string => {
  const items = Array.from({ length: random.below(4) }, () => `${blank(random)}${item()}${blank(random)}`);
  return `[${items.join(",")}${items.length > 0 && random.chance(0.3) ? "," : ""}${blank(random)}]`;
};

function makeValue(random: Random, depth: number): string {
  const scalar = (): string => random.pick(["1", "-2.5", "true", "null", '"x"', '"// no"', '"\\"}"', '"/* no */"']);
  if (depth === 0 || random.chance(0.5)) return scalar();
  return random.chance(0.5) ? makeObject(random, depth - 1) : makeList(random, scalar);
}
