import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { LcmError } from "./errors.ts";
import { belowHeadings, excerpt, firstLine, passage, quote } from "./excerpt.ts";
import { estimateTokens } from "./tokens.ts";
import { formatRange, formatTimestamp, msToTimestamp, parseTimestamp, timestampToMs } from "./time.ts";
import { formatBytes, formatCount } from "./format.ts";

interface Sample {
  readonly name: string;
  readonly text: string;
}

/** The samples of one kind. None of them took part in fitting the prices. */
function samples(kind: string): readonly Sample[] {
  const folder = new URL("../../../test/corpus/", import.meta.url);
  const names = readdirSync(folder).filter((name) => name.startsWith(`${kind}-`));
  assert.ok(names.length > 0, `there are samples of ${kind}`);
  return names.map((name) => ({ name, text: readFileSync(new URL(name, folder), "utf8").trim() }));
}

function assertNear(sample: Sample, lowest: number, highest: number): void {
  const actual = countTokens(sample.text);
  const ratio = estimateTokens(sample.text) / actual;
  const told = `${sample.name}: ${ratio.toFixed(2)} of ${actual} tokens, not ${lowest} to ${highest}`;
  assert.ok(ratio >= lowest && ratio <= highest, told);
}

/** Bytes that look random and are the same on every run. */
function noise(length: number, seed: number): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 24;
  });
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
const lines = (text: string, width: number): string => text.replace(new RegExp(`.{${width}}`, "g"), "$&\n");

function uuid(seed: number): string {
  return hex(noise(16, seed)).replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, "$1-$2-4$3-a$4-$5");
}

function hexDump(bytes: Uint8Array): string {
  const rows: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = bytes.subarray(at, at + 16);
    const shown = Array.from(row, (byte) => (byte > 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    rows.push(`${at.toString(16).padStart(8, "0")}  ${hex(row).replace(/../g, "$& ")} |${shown}|`);
  }
  return rows.join("\n");
}

/** Any UTF-16 there can be, half characters included. */
const anyUnits = fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units));

describe("guarantee 16: token estimates are near o200k, and high where a low one would hurt", () => {
  for (const kind of ["english", "typescript", "python", "rust", "sql", "shell", "chinese", "japanese", "korean"]) {
    it(`is within 15% on ${kind}`, () => {
      for (const sample of samples(kind)) assertNear(sample, 0.85, 1.15);
    });
  }

  for (const kind of ["json", "log"]) {
    it(`is not below the count on ${kind}, and not twice it`, () => {
      for (const sample of samples(kind)) assertNear(sample, 1, 2);
    });
  }

  it("is not below the count on JSON that a machine wrote, pretty or not", () => {
    const records = Array.from({ length: 30 }, (_, at) => ({
      id: uuid(at),
      createdAt: msToTimestamp(1_771_313_815_018 + at * 86_461_337),
      kind: ["created", "updated", "removed"][at % 3],
      amount: at * 17.35,
      tags: ["alpha", "beta"].slice(at % 2),
      parent: at === 0 ? null : { id: at - 1, ok: at % 4 > 0 },
    }));
    assertNear({ name: "minified", text: JSON.stringify(records) }, 1, 2);
    assertNear({ name: "indented", text: JSON.stringify(records, null, 2) }, 1, 2);
    assertNear({ name: "twice encoded", text: JSON.stringify({ body: JSON.stringify(records) }) }, 1, 2);
    assertNear({ name: "lines", text: records.map((record) => JSON.stringify(record)).join("\n") }, 1, 2);
  });

  it("is not below the count on base64, and not twice it", () => {
    for (const seed of [1, 2, 3, 4]) {
      const text = base64(noise(300 * seed * seed, seed));
      assertNear({ name: `base64 ${seed}`, text }, 1, 2);
      assertNear({ name: `base64 in lines ${seed}`, text: lines(text, 76) }, 1, 2);
      assertNear({ name: `base64 for URLs ${seed}`, text: text.replaceAll("+", "-").replaceAll("/", "_") }, 1, 2);
    }
    const image = Uint8Array.from({ length: 900 }, (_, at) => (at % 12 < 8 ? 0 : (at * 37) & 255));
    assertNear({ name: "base64 of mostly zeroes", text: base64(image) }, 1, 2);
  });

  it("is not below the count on hexadecimal dumps and ids, and not twice it", () => {
    for (const seed of [5, 6, 7]) {
      const bytes = noise(400 * seed, seed);
      assertNear({ name: `hex ${seed}`, text: hex(bytes) }, 1, 2);
      assertNear({ name: `upper-case hex ${seed}`, text: hex(bytes).toUpperCase() }, 1, 2);
      assertNear({ name: `spaced hex ${seed}`, text: hex(bytes).replace(/../g, "$& ").trim() }, 1, 2);
      assertNear({ name: `hashes ${seed}`, text: lines(hex(bytes), 40) }, 1, 2);
      assertNear({ name: `dump ${seed}`, text: hexDump(bytes) }, 1, 2);
    }
    const uuids = Array.from({ length: 40 }, (_, at) => uuid(at + 100));
    assertNear({ name: "uuids in lines", text: uuids.join("\n") }, 1, 2);
    assertNear({ name: "uuids in a list", text: JSON.stringify(uuids) }, 1, 2);
  });

  for (const kind of ["markdown", "russian", "arabic", "hindi", "thai", "german", "emoji", "mixed"]) {
    it(`is sensible on ${kind}`, () => {
      for (const sample of samples(kind)) assertNear(sample, 0.9, 1.25);
    });
  }

  it("is sensible on long runs of one character", () => {
    for (const run of [
      " ",
      "\n",
      "\t",
      "a",
      "e",
      "A",
      "0",
      "-",
      "=",
      "#",
      ".",
      '"',
      "\\",
      "─",
      "的",
      "哈",
      "あ",
      "가",
      "ㅋ",
    ]) {
      assertNear({ name: `a thousand of ${JSON.stringify(run)}`, text: run.repeat(1000) }, 0.85, 2.3);
    }
  });

  it("is zero for an empty text, and at least one for any other", () => {
    assert.equal(estimateTokens(""), 0);
    fc.assert(fc.property(anyUnits, (text) => assert.equal(estimateTokens(text) >= 1, text.length > 0)));
  });

  it("counts plain words one by one", () => {
    assert.equal(estimateTokens("ping"), 1);
    assert.equal(estimateTokens("see you on Monday"), 4);
  });

  it("never adds more than a few tokens when texts are joined, nor loses more than a few", () => {
    const corpus = ["english", "typescript", "json", "log", "chinese", "japanese", "korean", "emoji", "mixed"]
      .flatMap(samples)
      .map((sample) => sample.text);
    const slice = fc
      .tuple(fc.constantFrom(...corpus), fc.nat(500), fc.nat(300))
      .map(([text, from, length]) => text.slice(from, from + length));
    const run = fc
      .tuple(fc.constantFrom(...Array.from("aZ0 \n\t\"\\'.=é漢あ가я😀─"), "我们", "です"), fc.nat(80))
      .map(([unit, times]) => unit.repeat(times));
    const text = fc.oneof(slice, run, fc.string({ unit: "grapheme" }), anyUnits);
    fc.assert(
      fc.property(text, text, (first, second) => {
        const joined = estimateTokens(first + second);
        const apart = estimateTokens(first) + estimateTokens(second);
        assert.ok(joined <= apart + 3, `joined ${joined}, apart ${apart}`);
        assert.ok(joined >= apart - 5, `joined ${joined}, apart ${apart}`);
      }),
      { numRuns: 2000 },
    );
  });
});

const timestamp = (text: string) => {
  const parsed = parseTimestamp(text);
  assert.ok(parsed !== null, `${text} is a time`);
  return parsed;
};

const instants = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31, 23, 59, 59, 999) });

describe("guarantee 29: timestamps are UTC with milliseconds, and are shown in the requested time zone", () => {
  it("parses every common way of writing a time", () => {
    const normal = "2026-02-17T07:37:00.000Z";
    for (const written of [
      "2026-02-17T07:37:00.000Z",
      "2026-02-17T07:37:00Z",
      "2026-02-17T07:37Z",
      "2026-02-17T07:37:00",
      "2026-02-17T07:37",
      "2026-02-17 07:37:00",
      "2026-02-17 07:37:00.000",
      "2026-02-17 07:37:00+00",
      "2026-02-17T08:37:00+01:00",
      "2026-02-17T08:37:00+0100",
      "2026-02-16T21:37:00.000-10:00",
      "2026-02-17T13:07:00+05:30",
      1_771_313_820_000,
      1_771_313_820,
    ]) {
      assert.equal(parseTimestamp(written), normal, String(written));
    }
    assert.equal(parseTimestamp("2026-02-17"), "2026-02-17T00:00:00.000Z");
    assert.equal(parseTimestamp("2024-02-29"), "2024-02-29T00:00:00.000Z");
  });

  it("keeps milliseconds and drops finer digits", () => {
    assert.equal(parseTimestamp("2026-02-17T07:37:00.5Z"), "2026-02-17T07:37:00.500Z");
    assert.equal(parseTimestamp("2026-02-17T07:37:00.123999Z"), "2026-02-17T07:37:00.123Z");
    assert.equal(parseTimestamp("2026-02-17 07:37:00,042"), "2026-02-17T07:37:00.042Z");
    assert.equal(parseTimestamp(1_771_313_820.25), "2026-02-17T07:37:00.250Z");
  });

  it("is null for what is not a time, or out of range", () => {
    for (const written of [
      "",
      "now",
      "17.02.2026",
      "2026-2-17",
      "2026-13-01",
      "2026-00-10",
      "2026-02-30",
      "2025-02-29",
      "2026-02-17T24:00:00Z",
      "2026-02-17T07:60:00Z",
      "2026-02-17T07:37:60Z",
      "2026-02-17T07:37:00+24:00",
      "2026-02-17T07:37:00+01:75",
      "2026-02-17T07",
      "2026-02-17T07:37:00Z ",
      "2026-02-17T07:37:00Zulu",
      "1969-12-31T23:59:59.999Z",
      "1970-01-01T00:00:00+01:00",
      "9999-12-31T23:30:00-01:00",
      "0070-01-01",
      "12026-02-17",
      "1771313820000",
      NaN,
      Infinity,
      -1,
      1e18,
    ]) {
      assert.equal(parseTimestamp(written), null, String(written));
    }
  });

  it("writes every instant in one way, which sorts by time", () => {
    fc.assert(
      fc.property(instants, instants, (a, b) => {
        const [first, second] = [msToTimestamp(a), msToTimestamp(b)];
        assert.equal(timestampToMs(first), a);
        assert.equal(parseTimestamp(first), first);
        assert.equal(parseTimestamp(first.replace("T", " ").replace("Z", "")), first);
        assert.equal(Math.sign(a - b), first < second ? -1 : first > second ? 1 : 0);
      }),
    );
    assert.throws(() => msToTimestamp(-1), /out of the range/);
  });

  it("parses what it formatted, to the minute", () => {
    fc.assert(
      fc.property(instants, (ms) => {
        const shown = formatTimestamp(msToTimestamp(ms));
        assert.equal(parseTimestamp(shown.replace(" UTC", "")), msToTimestamp(ms - (ms % 60_000)));
      }),
    );
  });

  it("shows a time to the minute, with its zone", () => {
    const at = timestamp("2026-02-17T15:37:59.999Z");
    assert.equal(formatTimestamp(at), "2026-02-17 15:37 UTC");
    assert.equal(formatTimestamp(at, "Europe/Vienna"), "2026-02-17 16:37 Europe/Vienna");
    assert.equal(formatTimestamp(at, "Asia/Kolkata"), "2026-02-17 21:07 Asia/Kolkata");
    assert.equal(formatTimestamp(at, "Pacific/Auckland"), "2026-02-18 04:37 Pacific/Auckland");
    assert.equal(formatTimestamp(timestamp("2026-02-17T23:00:00Z"), "Europe/Vienna"), "2026-02-18 00:00 Europe/Vienna");
    assert.equal(formatTimestamp(timestamp("2026-07-17T15:37:00Z"), "Europe/Vienna"), "2026-07-17 17:37 Europe/Vienna");
  });

  it("shows a range with the date once if both ends are on one day in that zone", () => {
    const [from, to] = [timestamp("2026-02-17T15:37:00Z"), timestamp("2026-02-17T21:14:00Z")];
    assert.equal(formatRange(from, to), "2026-02-17 15:37 – 21:14 UTC");
    assert.equal(formatRange(from, from), "2026-02-17 15:37 UTC");
    assert.equal(formatRange(from, timestamp("2026-02-18T09:02:00Z")), "2026-02-17 15:37 – 2026-02-18 09:02 UTC");
    assert.equal(formatRange(from, to, "Asia/Tokyo"), "2026-02-18 00:37 – 06:14 Asia/Tokyo");
    assert.equal(formatRange(from, to, "Asia/Kolkata"), "2026-02-17 21:07 – 2026-02-18 02:44 Asia/Kolkata");
  });

  it("names an unknown zone, with examples of known ones", () => {
    for (const zone of ["", "Mars/Olympus", "CEST+2"]) {
      assert.throws(
        () => formatTimestamp(timestamp("2026-02-17"), zone),
        (error) =>
          error instanceof LcmError &&
          error.code === "invalid" &&
          error.message.includes(`"${zone}"`) &&
          error.hint?.includes("Europe/Vienna") === true,
      );
    }
  });

  it("does not depend on the zone of the machine", () => {
    const before = process.env["TZ"];
    try {
      for (const zone of ["Pacific/Kiritimati", "America/St_Johns", "Asia/Kathmandu"]) {
        process.env["TZ"] = zone;
        assert.notEqual(new Date(2026, 1, 17).getTimezoneOffset(), 0, "the machine is now elsewhere");
        assert.equal(parseTimestamp("2026-02-17 07:37:00"), "2026-02-17T07:37:00.000Z");
        assert.equal(parseTimestamp("2026-02-17T07:37"), "2026-02-17T07:37:00.000Z");
        assert.equal(parseTimestamp("2026-02-17"), "2026-02-17T00:00:00.000Z");
        const at = timestamp("2026-02-17T23:30:00Z");
        assert.equal(formatTimestamp(at), "2026-02-17 23:30 UTC");
        assert.equal(formatTimestamp(at, "Europe/Vienna"), "2026-02-18 00:30 Europe/Vienna");
      }
    } finally {
      if (before === undefined) delete process.env["TZ"];
      else process.env["TZ"] = before;
    }
  });
});

const story =
  "The quick brown fox jumps over the lazy dog while the rain\n\n\tkeeps falling on the old mill by the river.";

function around(text: string, found: string, width: number): string {
  const from = text.indexOf(found);
  assert.ok(from >= 0, `${found} is in the text`);
  return excerpt(text, { from, to: from + found.length }, width);
}

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const widthOf = (text: string): number => [...graphemes.segment(text)].length;

describe("an excerpt", () => {
  it("shows a match in one line with whole words around it", () => {
    assert.equal(around(story, "rain", 30), "…while the rain keeps falling…");
    assert.equal(around(story, "The", 30), "The quick brown fox jumps…");
    assert.equal(around(story, "river", 30), "…on the old mill by the river.");
  });

  it("is the whole text on one line if it fits", () => {
    assert.equal(around("  one\n two\tthree ", "two", 40), "one two three");
    assert.equal(around("one", "one", 3), "one");
  });

  it("gives room that one side does not need to the other side", () => {
    assert.equal(around(story, "quick", 40), "The quick brown fox jumps over the lazy…");
    assert.equal(widthOf(around(story, "river", 60)) > 50, true);
  });

  it("shows the whole match whenever it fits, and its beginning when it does not", () => {
    assert.equal(around(story, "quick brown fox", 15), "quick brown fox");
    assert.equal(around(story, "quick brown fox", 13), "…quick brown…");
    assert.equal(around(story, "The quick brown fox", 13), "The quick…");
    assert.equal(around(story, "quick brown fox", 1), "…");
    assert.equal(around(story, "quick brown fox", 0), "");
  });

  it("cuts inside words that are longer than a line, and inside scripts without spaces", () => {
    assert.equal(around(`${"a".repeat(50)}MATCH${"b".repeat(50)}`, "MATCH", 15), "…aaaaMATCHbbbb…");
    assert.equal(around("吾輩は猫である。名前はまだ無い。どこで生れたか。", "名前", 12), "…である。名前はまだ無…");
  });

  it("keeps an emoji whole, joined ones too", () => {
    const families = "👨‍👩‍👧‍👦".repeat(8);
    assert.equal(around(`${families}x${families}`, "x", 7), "…👨‍👩‍👧‍👦👨‍👩‍👧‍👦x👨‍👩‍👧‍👦👨‍👩‍👧‍👦…");
    assert.equal(excerpt("ab😀cd", { from: 3, to: 4 }, 3), "…😀…");
    assert.equal(excerpt("ab😀cd", { from: 2, to: 3 }, 3), "…😀…");
  });

  it("shows no control characters", () => {
    assert.equal(around("\u001b[31mred\u0000alert\u0007", "alert", 40), "[31mred alert");
  });

  it("reads only the text near the match", () => {
    const long = `${"x ".repeat(500_000)}needle${" y".repeat(500_000)}`;
    assert.equal(around(long, "needle", 20), "…x x x needle y y y…");
  });

  it("is never wider than requested, never splits a character, and contains the match if it fits", () => {
    const word = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 9 }),
      fc.constantFrom("rain", "漢字", "👩🏽‍💻", "é", "\n"),
    );
    fc.assert(
      fc.property(
        fc.array(word),
        word,
        fc.array(word),
        fc.integer({ min: 0, max: 60 }),
        (before, found, after, width) => {
          const start = before.join(" ");
          const text = start + found + after.join(" ");
          const shown = excerpt(text, { from: start.length, to: start.length + found.length }, width);
          assert.ok(widthOf(shown) <= width, `${shown} is wider than ${width}`);
          assert.ok(shown.isWellFormed());
          assert.equal(/[\n\r\t]| {2}/.test(shown), false);
          const line = found.replace(/[\s\p{Cc}]+/gu, " ").trim();
          if (widthOf(line) <= width) assert.ok(shown.includes(line), `${shown} holds ${line}`);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("a passage", () => {
  const code =
    "function open(door) {\r\n\tif (door.isLocked)  \n\t\tdoor.unlock();\n\n\n\n\treturn door;\u2028}\u0007\n";
  const whole = "function open(door) {\n\tif (door.isLocked)\n\t\tdoor.unlock();\n\n\treturn door;\n}";

  it("keeps lines and their indentation, and shows no other control characters", () => {
    assert.equal(passage(code, { from: 0, to: 0 }, 200), whole);
    const from = code.indexOf("unlock");
    assert.equal(passage(code, { from, to: from + 6 }, 34), "…door.unlock();\n\n\treturn door;\n}");
  });

  it("is otherwise an excerpt: never wider than requested, with the match in it", () => {
    const piece = fc.array(fc.constantFrom("rain", "漢字", "👩🏽‍💻", " ", "\n", "\r\n", "\t", "\n\n \n"));
    fc.assert(
      fc.property(piece, piece, fc.integer({ min: 4, max: 60 }), (before, after, width) => {
        const start = before.join("");
        const text = `${start}fox${after.join("")}`;
        const match = { from: start.length, to: start.length + 3 };
        const shown = passage(text, match, width);
        assert.ok(widthOf(shown) <= width && shown.includes("fox"), shown);
        assert.equal(/\r|\n\n\n/.test(shown), false);
      }),
    );
  });
});

describe("a quotation", () => {
  it("marks every line, whatever its line ending", () => {
    assert.equal(quote("a\nb\r\nc\rd\u2028e\n"), "> a\n> b\n> c\n> d\n> e\n> ");
    assert.equal(quote(""), "> ");
  });
});

describe("a first line", () => {
  it("is the first that is not blank, cut between words", () => {
    assert.equal(firstLine("\n\n  # Moving the archive\nmore", 40), "# Moving the archive");
    assert.equal(firstLine("Please move the archive to the other disk", 20), "Please move the…");
    assert.equal(firstLine("一二三四五六七八九十", 5), "一二三四…");
    assert.equal(firstLine(" \n\t", 20), "");
    assert.equal(firstLine("", 20), "");
  });
});

describe("a text below its headings", () => {
  it("is the text without the bare headings that it begins with", () => {
    const text = "- 15:30: the worker failed\n\nNext:\nmore";
    const headings = ["Timeline:\n", "\n**Timeline:**\n\n", "## What happened\n", "**Summary**\r\nTimeline:\n"];
    for (const heading of [...headings, "[Truncated for context management]\n "])
      assert.equal(belowHeadings(heading + text), text.slice(2), heading);
    for (const whole of [
      text,
      "Timeline:",
      "## Timeline\n",
      "Timeline: at 15:30\nit failed",
      "It failed. Why:\nthe key",
      "",
    ])
      assert.equal(belowHeadings(whole), whole);
  });
});

describe("amounts", () => {
  it("groups the digits of a count", () => {
    assert.deepEqual([0, 12, 999, 1234, 1_234_567, -1234].map(formatCount), [
      "0",
      "12",
      "999",
      "1,234",
      "1,234,567",
      "-1,234",
    ]);
  });

  it("formats bytes with two or three digits", () => {
    const shown = [0, 999, 1000, 1234, 99_949, 99_950, 999_499, 999_500, 1_234_567, 5_000_000_000, 2e15].map(
      formatBytes,
    );
    assert.deepEqual(shown, [
      "0 B",
      "999 B",
      "1.0 KB",
      "1.2 KB",
      "99.9 KB",
      "100 KB",
      "999 KB",
      "1.0 MB",
      "1.2 MB",
      "5.0 GB",
      "2000 TB",
    ]);
  });
});
