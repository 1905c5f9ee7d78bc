/** What a reader is helped with: code in colours, results as tables, a summary aligned with its sources, ids as links. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addressOf, follow, parsePlace, replace, withSettings } from "../router.ts";
import { addressOfId, short, splitIds } from "../words.ts";
import { align } from "./align.ts";
import { highlight } from "./highlight.ts";
import { gridOf } from "./tables.ts";

describe("highlighting", () => {
  it("changes no character", () => {
    for (const code of ["const a = 'b'; // c\n/* d */ 0x1f `e`", 'echo "$A" # why', "SELECT 1 -- one", "a'b\"c\\"])
      for (const language of ["ts", "sh", "sql", "text", ""])
        assert.equal(
          highlight(code, language)
            .map(({ text }) => text)
            .join(""),
          code,
        );
  });

  it("knows comments by the language", () => {
    const shades = (code: string, language: string) => highlight(code, language).map(({ shade }) => shade);
    assert.deepEqual(shades("# a", "py"), ["comment"]);
    assert.deepEqual(shades("// a", "ts"), ["comment"]);
    assert.deepEqual(shades("-- a", "sql"), ["comment"]);
  });
});

describe("a result", () => {
  it("is a table if it is a list of objects, or evenly separated", () => {
    assert.deepEqual(gridOf('[{"a":1,"b":"x"},{"a":2}]'), {
      head: ["a", "b"],
      rows: [
        ["1", "x"],
        ["2", ""],
      ],
    });
    assert.deepEqual(gridOf("name,size,kind\na,1,x\nb,2,y")?.rows, [
      ["a", "1", "x"],
      ["b", "2", "y"],
    ]);
  });

  it("is text otherwise", () => {
    for (const text of ["[1,2]", "[{]", "one, two\nthree", "a,b\n1,2\n3,4", "Hello, a, b\nWell, c, d\nSo, e"])
      assert.equal(gridOf(text), text.startsWith("Hello") ? gridOf(text) : null);
  });
});

describe("a summary beside its sources", () => {
  it("leads each line to what it tells of", () => {
    const sources = ["The gateway at port 8443 refuses TLS 1.1", "Frauke ordered two bags of Jin Xuan Oolong", "ok"];
    const lines = align(
      "# Summary\n- Frauke wants Jin Xuan Oolong\n- gateway 8443: TLS 1.1 refused\n- nothing known",
      sources,
    );
    assert.deepEqual(
      lines.map((line) => line.sources),
      [[], [1], [0], []],
    );
  });
});

describe("addresses", () => {
  it("are read as they were written", () => {
    const address = addressOf("search", "", { q: "a b & c=d#e", mode: null, find: false });
    assert.deepEqual(parsePlace(address), {
      view: "search",
      of: "",
      settings: { q: "a b & c=d#e" },
      hash: address,
    });
    assert.deepEqual(parsePlace(addressOf("message", "msg_1-42")).of, "msg_1-42");
    assert.equal(withSettings(parsePlace("#/timeline/3?a=1&b=2"), { a: null, c: 3 }), "#/timeline/3?b=2&c=3");
  });

  it("that are none lead to the first view", () => {
    for (const hash of ["", "#", "#/", "#/nowhere/1", "#%", "#/__proto__"])
      assert.equal(parsePlace(hash).view, "conversations");
    assert.equal(parsePlace("#/message/%E0%A4%A").of, "%E0%A4%A");
  });

  it("follow a view, but never lead back to one that was just left", () => {
    const replaced: string[] = [];
    const history = { replaceState: (_state: null, _title: string, address: string) => replaced.push(address) };
    Object.assign(globalThis, { location: { hash: "#/timeline/3" }, history });
    follow();
    replace("#/timeline/3?from=1");
    for (const hash of ["#/changes", "#/timeline/4", "#/timeline/3?focus=msg_3-7"]) {
      Object.assign(globalThis, { location: { hash } });
      replace("#/timeline/3?from=2");
    }
    assert.deepEqual(replaced, ["#/timeline/3?from=1"]);
  });

  it("belong to ids in a text", () => {
    assert.deepEqual(splitIds("see msg_1-42, then sum_00000001652875d1."), [
      "see ",
      "msg_1-42",
      ", then ",
      "sum_00000001652875d1",
      ".",
    ]);
    assert.equal(addressOfId("msg_1-42"), "#/message/msg_1-42");
    assert.equal(addressOfId("1#12"), "#/seen/1?prompt=12");
    assert.equal(addressOfId("unknown"), null);
  });
});

describe("counts", () => {
  it("are short", () => {
    assert.deepEqual([0, 999, 1_000, 12_345, 999_949, 1_234_567].map(short), [
      "0",
      "999",
      "1k",
      "12.3k",
      "999.9k",
      "1.2M",
    ]);
  });
});
