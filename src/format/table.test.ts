import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createPaint } from "./paint.ts";
import { facts, table } from "./table.ts";
import { widthOf } from "./width.ts";

const plain = createPaint(false);

describe("a table", () => {
  const columns = [{ title: "id", align: "right" }, { title: "name", flexible: true }, { title: "n" }] as const;

  it("aligns its columns in any script", () => {
    const lines = table(
      columns,
      [
        ["1", "日本", "x"],
        ["20", "abcd", "y"],
        ["3", "👍", "z"],
      ],
      null,
      plain,
    );
    assert.deepEqual(lines, ["id  name  n", " 1  日本  x", "20  abcd  y", " 3  👍    z"]);
  });

  it("fits the terminal by cutting its flexible column", () => {
    const lines = table(columns, [["1", "a name that is far too long for this", "end"]], 26, plain);
    assert.deepEqual(lines, ["id  name               n", " 1  a name that is f…  end"]);
    for (const line of lines) assert.ok(widthOf(line) <= 26);
  });

  it("cuts nothing without a terminal", () => {
    const long = "x".repeat(500);
    assert.ok(table(columns, [["1", long, "end"]], null, plain)[1]?.includes(long));
  });
});

describe("a table with spare columns", () => {
  const columns = [{ title: "id" }, { title: "detail", spare: true }, { title: "count", align: "right" }] as const;
  const of = (width: number | null): readonly string[] => table(columns, [["one", "of many", "7"]], width, plain);

  it("shows them if all columns fit", () => {
    assert.deepEqual(of(null), ["id   detail   count", "one  of many      7"]);
    assert.deepEqual(of(19), of(null));
  });

  it("leaves them out otherwise", () => {
    assert.deepEqual(of(18), ["id   count", "one      7"]);
    assert.deepEqual(of(5), of(18), "and no more than them");
  });
});

describe("a long table", () => {
  it("may have more rows than a call can have arguments", () => {
    const rows = Array.from({ length: 200_000 }, (_, index) => [String(index)]);
    assert.equal(table([{ title: "n", align: "right" }], rows, null, plain).at(1), "     0");
  });
});

describe("a table that is too wide", () => {
  it("leaves out its spare columns, the last one first, and only as many as it must", () => {
    const columns = [{ title: "id" }, { title: "messages", spare: true }, { title: "tokens", spare: true }] as const;
    const head = (width: number): string | undefined => table(columns, [["1", "2", "3"]], width, plain)[0];
    assert.deepEqual([20, 19, 12, 11].map(head), ["id  messages  tokens", "id  messages", "id  messages", "id"]);
  });
});

describe("facts", () => {
  it("are aligned", () => {
    assert.deepEqual(
      facts(
        [
          ["a", "1", "2"],
          ["long", "3"],
        ],
        plain,
        null,
      ),
      ["a     1", "      2", "long  3"],
    );
  });

  it("are wrapped between words, and words stay whole", () => {
    assert.deepEqual(facts([["a", "one two three", "/a/path/of/some/length"]], plain, 12), [
      "a  one two",
      "   three",
      "   /a/path/of/some/length",
    ]);
  });
});
