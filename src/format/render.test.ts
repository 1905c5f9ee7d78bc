import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  breakLines,
  createPaint,
  createSpans,
  cut,
  facts,
  harmless,
  jsonText,
  listed,
  oneLine,
  plural,
  table,
  widthOf,
  wrap,
} from "./render.ts";
import type { Timestamp } from "../core/base/time.ts";

const plain = createPaint(false);

describe("the width of text on a terminal", () => {
  it("is two columns for wide scripts and emoji, none for what is not seen", () => {
    const widths: readonly (readonly [string, number])[] = [
      ["", 0],
      ["abc", 3],
      ["naïve", 5],
      ["e\u0301", 1],
      ["日本語", 6],
      ["한국어", 6],
      ["ｆｕｌｌ", 8],
      ["👍", 2],
      ["👩‍👩‍👧", 2],
      ["🇯🇵", 2],
      ["❤️", 2],
      ["\u200b", 0],
      ["\u001b[31mred\u001b[39m", 3],
    ];
    for (const [text, width] of widths) assert.equal(widthOf(text), width, JSON.stringify(text));
  });

  it("is never passed by a cut, and a cut is marked", () => {
    for (const text of [
      "a short text",
      "日本語のとても長い文章",
      "mixed 日本語 and 👍👍👍 emoji",
      "e\u0301".repeat(30),
    ]) {
      for (let columns = 0; columns <= 30; columns++) {
        const shown = cut(text, columns);
        assert.ok(widthOf(shown) <= columns, `${JSON.stringify(shown)} in ${columns}`);
        if (widthOf(text) <= columns) assert.equal(shown, text);
        else if (columns > 0) assert.ok(shown.endsWith("…"), shown);
      }
    }
  });

  it("takes no longer to wrap a script without blanks than one with them", () => {
    const text = "港".repeat(50_000);
    assert.equal(wrap(text, 80).length, 1_250);
  });

  it("is a column at least where something is wrapped, however little room there is", () => {
    for (const room of [1, 0, -1, -40]) assert.deepEqual(wrap("a bc", room), ["a", "b", "c"]);
  });

  it("is kept by wrapping, which loses no word", () => {
    const text = "one two three 日本語の文章 four averyveryverylongwordwithoutspaces 👍 five";
    for (let columns = 4; columns < 40; columns++) {
      const lines = wrap(text, columns);
      for (const line of lines) assert.ok(widthOf(line) <= columns, `${line} in ${columns}`);
      assert.equal(lines.join("").replaceAll(" ", ""), text.replaceAll(" ", ""));
    }
  });
});

describe("a table", () => {
  const columns = [{ title: "id", align: "right" }, { title: "name", flexible: true }, { title: "n" }] as const;

  it("lines its columns up whatever script they are in", () => {
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

  it("cuts nothing where there is no terminal", () => {
    const long = "x".repeat(500);
    assert.ok(table(columns, [["1", long, "end"]], null, plain)[1]?.includes(long));
  });
});

describe("text of strangers", () => {
  it("cannot move the cursor or change a colour", () => {
    const shown = harmless("a\u001b[31mred\u0007\u0000\u009b2J\r\nb\tc\rd");
    assert.equal(shown, "a␛[31mred␇␀�2J\nb\tc␍d");
  });

  it("fits in a line", () => {
    assert.equal(oneLine("  one\r\n\ttwo\n\nthree "), "one two three");
  });
});

describe("a command in a sentence", () => {
  it("is broken only where it does not fit in a line", () => {
    const words = "take it back: `lcm undo 1 --apply`, or not";
    assert.deepEqual(breakLines(words, 24), ["take it back:", "`lcm undo 1 --apply`, or", "not"]);
    assert.deepEqual(breakLines(words, 12), ["take it", "back: `lcm", "undo 1", "--apply`, or", "not"]);
    assert.deepEqual(breakLines("one ` of a kind", 8), ["one ` of", "a kind"]);
  });
});

describe("what programs read", () => {
  it("is what was written, and sends a terminal nothing that it obeys", () => {
    const text = "a\u001b[31m\u009b\u202eb\u2066\u2028c\u007f";
    const shown = jsonText({ text });
    assert.match(shown, /^[\n -~]*$/);
    assert.deepEqual(JSON.parse(shown), { text });
  });
});

describe("a table with columns that can be spared", () => {
  const columns = [{ title: "id" }, { title: "detail", spare: true }, { title: "count", align: "right" }] as const;
  const of = (width: number | null): readonly string[] => table(columns, [["one", "of many", "7"]], width, plain);

  it("has them where there is room for all", () => {
    assert.deepEqual(of(null), ["id   detail   count", "one  of many      7"]);
    assert.deepEqual(of(19), of(null));
  });

  it("leaves them out where there is not", () => {
    assert.deepEqual(of(18), ["id   count", "one      7"]);
    assert.deepEqual(of(5), of(18), "and no more than them");
  });
});

describe("a long table", () => {
  it("may have more rows than a call has room for arguments", () => {
    const rows = Array.from({ length: 200_000 }, (_, index) => [String(index)]);
    assert.equal(table([{ title: "n", align: "right" }], rows, null, plain).at(1), "     0");
  });
});

describe("words", () => {
  it("count things", () => {
    assert.equal(plural(1, "message"), "1 message");
    assert.equal(plural(0, "summary", "summaries"), "0 summaries");
    assert.equal(plural(1_234_567, "row"), "1,234,567 rows");
  });

  it("list things", () => {
    assert.equal(listed([]), "");
    assert.equal(listed(["a"]), "a");
    assert.equal(listed(["a", "b", "c"]), "a, b and c");
  });

  it("stand below each other", () => {
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

  it("are broken between words where they are wider than asked, and words stay whole", () => {
    assert.deepEqual(facts([["a", "one two three", "/a/path/of/some/length"]], plain, 12), [
      "a  one two",
      "   three",
      "   /a/path/of/some/length",
    ]);
  });
});

describe("paint", () => {
  it("is only there when asked for", () => {
    assert.equal(plain.bad("x"), "x");
    assert.equal(plain.role("user", "x"), "x");
    assert.notEqual(createPaint(true).bad("x"), "x");
  });
});

describe("times beside each other", () => {
  const at = (text: string): Timestamp => `${text}.000Z` as Timestamp;
  const [newYear, february, march] = [at("2026-01-01T00:30:00"), at("2026-02-17T07:37:00"), at("2026-03-01T10:00:00")];

  it("leave the year out if all have the same, and say it once", () => {
    const spans = createSpans([february, march], "UTC");
    assert.equal(spans.of(february, march), "02-17…03-01");
    assert.equal(spans.of(february, february), "02-17 07:37");
    for (const [latest, words] of [
      ["2026-02-17T23:02:00.000Z", "02-17 07:37…23:02"],
      ["2026-02-18T01:02:00.000Z", "02-17…02-18"],
    ] as const)
      assert.equal(spans.of(february, latest as Timestamp), words);
    assert.equal(spans.words, "times in 2026, UTC");
  });

  it("keep the year where it could be another, in the reader's zone", () => {
    const spans = createSpans([newYear, february], "America/St_Johns");
    assert.equal(spans.of(newYear, february), "2025-12-31…2026-02-17");
    assert.equal(spans.words, "times in America/St_Johns");
  });
});
