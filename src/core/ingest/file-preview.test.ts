import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { previewFile } from "./file-preview.ts";
import { estimateTokens } from "../base/tokens.ts";

const unnamed = { name: null, mimeType: null };
const named = (name: string): { readonly name: string; readonly mimeType: null } => ({ name, mimeType: null });
const corpus = (name: string): string =>
  readFileSync(new URL(`../../../test/corpus/${name}.txt`, import.meta.url), "utf8");
const linesOf = (count: number, line: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => line(at)).join("\n");

describe("the preview of JSON", () => {
  it("lists the keys of an object with types and samples", () => {
    const content = JSON.stringify({
      name: "tidepool",
      retries: 7,
      open: true,
      gone: null,
      rows: [{ id: 1, sku: "a" }],
      owner: { id: 1, mail: "x" },
    });
    assert.deepEqual(previewFile(content, unnamed).split("\n"), [
      `JSON, 1 line, ${content.length} characters.`,
      "An object with 6 keys.",
      '- name: string "tidepool"',
      "- retries: number 7",
      "- open: boolean true",
      "- gone: null",
      "- rows: array of 1, such as {id, sku}",
      "- owner: object {id, mail}",
    ]);
  });

  it("shows what the items of an array have in common: ranges, dates, few distinct values", () => {
    const items = Array.from({ length: 1_000 }, (_, at) => ({
      id: at,
      state: at % 2 === 0 ? "open" : "closed",
      at: `2026-01-${String((at % 28) + 1).padStart(2, "0")}`,
      note: at < 750 ? "" : `note ${at}`,
    }));
    const told = previewFile(JSON.stringify(items), unnamed);
    assert.match(told, /An array of 1,000 items/);
    assert.match(told, /^- id: 0 … 999$/m);
    assert.match(told, /^- state: "open", "closed"$/m);
    assert.match(told, /^- at: 2026-01-01 … 2026-01-28$/m);
    assert.match(told, /^- note: \d+ values, such as "note \d+", "note \d+", \d+% empty$/m);
  });

  it("reads JSON line by line", () => {
    const told = previewFile(
      linesOf(5_000, (at) => JSON.stringify({ at, level: "info" })),
      unnamed,
    );
    assert.match(told, /^JSON lines, 5,000 lines/);
    assert.match(told, /^- at: 0 … 399$/m);
  });

  it("describes the beginning of JSON that was cut short", () => {
    const whole = JSON.stringify({
      data: { rows: Array.from({ length: 900 }, (_, id) => ({ id, text: 'a "b" {c' })) },
    });
    const told = previewFile(whole.slice(0, 20_000), named("rows.json"));
    assert.match(told, /^JSON, cut short or not valid/);
    assert.match(told, /^- data: object \{rows\}$/m);
  });
});

describe("the preview of a table", () => {
  const csv = [
    "id,name,amount,day",
    ...Array.from(
      { length: 300 },
      (_, at) => `${at},"Noor, ""N"" ${at % 3}\nsecond line",${at * 1.5},2026-02-${10 + (at % 9)}`,
    ),
  ].join("\n");

  it("shows columns, rows and ranges, even if fields contain commas, quotes and line breaks", () => {
    const told = previewFile(csv, unnamed);
    assert.match(told, /^Table \(commas\), 300 rows, 4 columns, header in L1\.$/m);
    assert.match(previewFile(`\n \n${csv}`, unnamed), /300 rows, 4 columns, header in L3\.$/m);
    assert.match(told, /^- id: 0 … 299$/m);
    assert.match(told, /^- name: "Noor, "N" 0/m);
    assert.match(told, /^- amount: 0 … 448.5$/m);
    assert.match(told, /^- day: 2026-02-10 … 2026-02-18$/m);
  });

  it("recognises tabs, semicolons, and tables without a header", () => {
    assert.match(previewFile("1\t2\t3\n4\t5\t6\n7\t8\t9\n", unnamed), /^Table \(tabs\), 3 rows, 3 columns, no header/);
    assert.match(previewFile("a;b\n1;2\n", named("x.csv")), /^Table \(semicolons\), 1 row, 2 columns/);
  });

  it("keeps a field whole whose quote is never closed", () => {
    const told = previewFile('"👩‍👩‍👧‍👦,b\n1,2\n3,4\n', named("x.csv"));
    assert.match(told, /^Table \(commas\), 2 rows, 2 columns, header in L1\.\n- ""👩‍👩‍👧‍👦": 1 … 3$/m);
  });

  it("counts all rows of a large one, and names the rows that the ranges come from", () => {
    const told = previewFile(["a,b,c", linesOf(100_000, (at) => `${at},x,${at % 5}`)].join("\n"), unnamed);
    assert.match(told, /100,000 rows, 3 columns, header in L1; ranges from [\d,]+ rows at both ends/);
    assert.match(told, /^- a: 0 … 99999$/m);
  });

  it("does not mistake prose with commas for a table", () => {
    assert.match(
      previewFile(
        linesOf(9, () => "First, we rest, then we walk, and then we eat."),
        unnamed,
      ),
      /^Text/,
    );
  });
});

describe("the preview of code", () => {
  it("outlines definitions with their line numbers and counts imports", () => {
    const told = previewFile(corpus("typescript-queue"), named("queue.ts"));
    assert.match(told, /^Source text \(TypeScript or JavaScript\), 49 lines, 2 import lines, 5 definitions:$/m);
    assert.match(told, /^L4 export interface QueueOptions\n.*\nL17 export class Queue$/m);
  });

  it("recognises a language by its text if there is no name", () => {
    const known = [
      ["typescript-queue", "TypeScript"],
      ["python-service", "Python"],
      ["rust-parser", "Rust"],
      ["sql-schema", "SQL"],
      ["shell-deploy", "shell"],
    ] as const;
    for (const [name, language] of known) assert.ok(previewFile(corpus(name), unnamed).includes(language), name);
  });

  it("outlines each family of languages", () => {
    const samples = [
      ["a.go", 'import "fmt"\n\nfunc (s *Store) Open(path string) error {\n}\n', "L3 func (s *Store) Open"],
      [
        "A.java",
        "import java.util.List;\npublic class Cart {\n  private int total(List<Line> lines) {\n  }\n}\n",
        "L3 private int total",
      ],
      ["a.c", '#include "a.h"\nstatic int parse_line(const char *text)\n{\n}\n', "L2 static int parse_line"],
      ["a.rb", "require 'json'\nclass Cart\n  def total\n  end\nend\n", "L3 def total"],
      ["a.sql", "CREATE TABLE IF NOT EXISTS orders (\n id int\n);\n", "L1 CREATE TABLE IF NOT EXISTS orders"],
      ["a.yaml", "services:\n  web:\n    image: x\nvolumes:\n", "L4 volumes"],
    ] as const;
    for (const [name, content, entry] of samples)
      assert.ok(previewFile(content, named(name)).includes(entry), previewFile(content, named(name)));
  });

  it("spreads a long outline over the whole file", () => {
    const told = previewFile(
      linesOf(2_000, (at) => `export function step${at}() {\n}\n`),
      named("steps.ts"),
    );
    assert.match(told, /2,000 definitions, among them:/);
    assert.match(told, /step0\b/);
    assert.match(told, /L5\d\d\d export function/);
  });
});

describe("the preview of logs", () => {
  const log = linesOf(10_000, (at) => {
    const time = `2026-02-17T07:${String(Math.floor(at / 200)).padStart(2, "0")}:00.000Z`;
    if (at % 100 === 42) return `${time} ERROR [store] SQLITE_BUSY: waited ${at} ms`;
    return at % 1_000 === 7 ? `${time} WARN [cache] full` : `${time} INFO [http] request ${at} done`;
  });

  it("shows the time span, the levels, and the most frequent errors with their first line", () => {
    const told = previewFile(log, named("gateway.log"));
    assert.match(told, /^Log, 10,000 lines, from 2026-02-17T07:00:00.000Z to 2026-02-17T07:49:00.000Z\.$/m);
    assert.match(told, /^Levels: info 9,890, warning 10, error 100$/m);
    assert.match(told, /^- 100× ERROR \[store\] SQLITE_BUSY: waited 42 ms \(first L43\)$/m);
    assert.equal(previewFile(log, unnamed), told);
  });

  it("recognises access logs, kernel logs and traces", () => {
    for (const name of ["log-access", "log-kernel", "log-python", "log-java", "log-service"]) {
      assert.match(previewFile(corpus(name), unnamed), /^Log, /, name);
    }
    assert.match(previewFile(corpus("log-access"), unnamed), /5xx 1/);
  });
});

describe("the preview of documents", () => {
  it("outlines Markdown by its headings, except those in code blocks", () => {
    const told = previewFile("# One\n\ntext\n\n```sh\n# no heading\n```\n\n## Two\n- a\n", unnamed);
    assert.deepEqual(told.split("\n"), ["Markdown, 10 lines, 1 code block, 2 headings:", "# L1 One", "## L9 Two"]);
  });

  it("describes XML and HTML by root and elements", () => {
    assert.match(
      previewFile('<?xml version="1.0"?>\n<feed><entry/><entry><id>1</id></entry></feed>', unnamed),
      /^XML, 2 lines, root <feed>\.\nElements: entry ×2, feed ×1, id ×1$/,
    );
    const html =
      "<!doctype html><html><head><title>Shop &amp; Co</title><script>x < 1</script></head><body><h1>Hi</h1></body></html>";
    assert.match(
      previewFile(html, unnamed),
      /^HTML, 1 line, root <html>\.\nTitle: "Shop &amp; Co"\n.*\nText begins: "Shop &amp; Co Hi"$/,
    );
  });

  it("describes a diff by its files", () => {
    const diff =
      "diff --git a/src/a.ts b/src/a.ts\n--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1,2 +1,3 @@\n-old\n+new\n+newer\n same\ndiff --git a/b.md b/b.md\n--- a/b.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
    assert.deepEqual(previewFile(diff, unnamed).split("\n"), [
      "Diff, 13 lines: 2 files, +2 −2.",
      "- L1 src/a.ts +2 −1",
      "- L9 b.md (deleted) +0 −1",
    ]);
  });

  it("describes text by beginning, end and size", () => {
    const told = previewFile(corpus("english-essay").repeat(20), unnamed);
    assert.match(
      told,
      /^Text, 60 lines, 4,180 words, 22,560 characters\.\nBegins: The river had been straightened twice/,
    );
    assert.match(told, /\nEnds: ….*reads it for years at a time\.$/);
    assert.match(
      previewFile(corpus("japanese-story"), unnamed),
      /^Text, 3 lines, 284 characters\.\nBegins: 祖父の時計は、/,
    );
  });

  it("reports when there is nothing to read", () => {
    assert.equal(previewFile("", unnamed), "Nothing but blanks.");
    assert.equal(previewFile(" \n\t\n", named("a.json")), "Nothing but blanks.");
    assert.match(previewFile("\u0000\u0001\ufffd".repeat(500), unnamed), /^Binary data, 1,500 characters/);
    const png = `iVBORw0KGgo${"AAAANSUhEUg0".repeat(100)}`;
    assert.match(previewFile(png, unnamed), /^Base64, about [\d,]+ bytes of a PNG picture/);
    assert.match(previewFile(`data:image/webp;base64,${"Uk5ab0".repeat(200)}`, unnamed), /^Base64, .* of image\/webp/);
  });

  it("trusts the content if name or type are wrong", () => {
    assert.match(previewFile("just a note to myself", named("data.json")), /^Text/);
    assert.match(previewFile('{"a":1}', { name: "notes.txt", mimeType: "text/plain" }), /^JSON/);
    assert.match(previewFile("a,b\n1,2\n", { name: null, mimeType: "text/csv; charset=utf-8" }), /^Table/);
    assert.match(previewFile('{"type":"Feature"}', { name: "x", mimeType: "application/geo+json" }), /^JSON/);
  });
});

describe("the preview of anything", () => {
  const unit = fc.constantFrom(
    "a",
    "漢",
    "😀",
    "👩‍👩‍👧‍👦",
    ".",
    " ",
    "\n",
    '"',
    ",",
    "|",
    "\t",
    "{",
    "[",
    "}",
    "<a ",
    "<!--",
    "# x\n",
    "```\n",
    "2026-02-17 07:41:55 ERROR x\n",
    "@@ -1",
    "e\u0301",
    "\u0000",
    "\ud800",
    "const a = {\n",
    '{"a":1}\n',
  );
  const content = fc.oneof(
    fc.string({ unit: "grapheme" }),
    fc.array(unit, { maxLength: 40 }).map((units) => units.join("")),
    fc.tuple(unit, fc.integer({ min: 1, max: 20_000 })).map(([one, times]) => one.repeat(times)),
    fc.json({ maxDepth: 4 }),
    fc.json().map((text) => text.slice(0, -1)),
    fc.array(fc.array(fc.string(), { minLength: 2, maxLength: 60 }), { maxLength: 30 }).map((rows) => rows.join("\n")),
    fc
      .array(
        fc.constantFrom("rust-parser", "log-java", "json-records", "markdown-readme", "thai-letter", "sql-report"),
        { minLength: 1, maxLength: 8 },
      )
      .map((names) => names.map(corpus).join("")),
  );
  const about = fc.record({
    name: fc.constantFrom(
      null,
      "a.json",
      "b.csv",
      "c.ts",
      "d.md",
      "e.log",
      "f.html",
      "g.patch",
      "h.py",
      "noext",
      "i.tsv",
      "j.yaml",
      "",
    ),
    mimeType: fc.constantFrom(null, "text/plain", "application/json", "text/html; charset=utf-8", "nonsense", ""),
  });

  it("has at most 220 tokens, is never empty, and is always the same", () => {
    fc.assert(
      fc.property(content, about, (text, hints) => {
        const told = previewFile(text, hints);
        assert.ok(estimateTokens(told) <= 220, `${estimateTokens(told)} tokens:\n${told}`);
        assert.notEqual(told, "");
        if (text.isWellFormed()) assert.ok(told.isWellFormed(), "no character is torn");
        assert.equal(previewFile(text, hints), told);
      }),
      { numRuns: 600 },
    );
  });
});

describe("the preview of near misses", () => {
  it("does not mistake a few records among other lines, or a comma in each line, for a table", () => {
    const mixed = linesOf(40, (at) => (at < 2 ? `{"id":${at}}` : `the ${at}th thing that was said`));
    assert.doesNotMatch(previewFile(mixed, unnamed), /JSON/);
    assert.doesNotMatch(
      previewFile(
        linesOf(40, (at) => `Yes indeed, the ${at}th`),
        unnamed,
      ),
      /column|table|CSV/i,
    );
  });

  it("reports empty values, however few", () => {
    const items = Array.from({ length: 400 }, (_, at) => ({ note: at === 7 ? "" : `note ${at}` }));
    assert.match(previewFile(JSON.stringify(items), unnamed), /, 1% empty$/m);
  });

  it("reports bytes of unknown content", () => {
    const bytes = Buffer.from(Array.from({ length: 600 }, (_, at) => (at * 37) % 251)).toString("base64");
    assert.match(previewFile(bytes, unnamed), /^Base64, about \d+ bytes of unknown content\. Not readable as text\.$/);
  });
});
