/** Markdown as a tree: what models write is understood, and nothing else becomes anything but text. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parseInline, parseMarkdown, type Inline, type Node } from "./markdown.ts";

const words = (nodes: readonly Inline[]): string =>
  nodes.map((node) => ("inside" in node ? words(node.inside) : node.kind === "break" ? "\n" : node.text)).join("");
const kinds = (text: string): readonly string[] => parseMarkdown(text).map(({ kind }) => kind);

describe("a text in Markdown", () => {
  it("has headings, paragraphs, lists, code, quotes, rules and tables", () => {
    const text = "# Head\n\nPara\n\n- one\n- two\n\n```ts\nlet a;\n```\n\n> said\n\n---\n\n|a|b|\n|-|-|\n|1|2|\n";
    assert.deepEqual(kinds(text), ["heading", "paragraph", "list", "code", "quote", "rule", "table"]);
  });

  it("keeps nested lists, and their numbers", () => {
    const [list] = parseMarkdown("3. three\n   - inner\n   - other\n4. four");
    assert.ok(list?.kind === "list");
    assert.equal(list.start, 3);
    assert.equal(list.items.length, 2);
    assert.equal(list.items[0]?.[1]?.kind, "list");
  });

  it("keeps code as it is, even without an end", () => {
    assert.deepEqual(parseMarkdown("```sh\nrm *a*\n<b>"), [{ kind: "code", language: "sh", text: "rm *a*\n<b>" }]);
    assert.deepEqual(parseMarkdown("````\n```\n````"), [{ kind: "code", language: "", text: "```" }]);
  });

  it("gives each row of a table as many cells as the head", () => {
    const [table] = parseMarkdown("| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |\n| x \\| y | 2 |");
    assert.ok(table?.kind === "table");
    assert.deepEqual(
      table.rows.map((row) => row.map(words)),
      [
        ["1", ""],
        ["1", "2"],
        ["x | y", "2"],
      ],
    );
  });
});

describe("a line in Markdown", () => {
  it("has emphasis, code and links", () => {
    assert.deepEqual(
      parseInline("a **b** *c* `d` [e](https://f.example/) ~~g~~").map(({ kind }) => kind),
      ["text", "strong", "text", "em", "text", "code", "text", "link", "text", "strike"],
    );
  });

  it("links addresses without the end of the sentence", () => {
    const [, link, rest] = parseInline("see https://a.example/b?c=d.");
    assert.deepEqual(link, {
      kind: "link",
      to: "https://a.example/b?c=d",
      inside: [{ kind: "text", text: "https://a.example/b?c=d" }],
    });
    assert.deepEqual(rest, { kind: "text", text: "." });
  });

  it("leaves snake_case, sums and stars alone", () => {
    for (const text of ["a_snake_case name", "2 * 3 * 4", "__init__.py is fine", "5*6"])
      assert.equal(words(parseInline(text)).replaceAll("_", ""), text.replaceAll("_", ""));
    assert.deepEqual(parseInline("a_b_c"), [{ kind: "text", text: "a_b_c" }]);
  });

  it("links nothing that could run or load", () => {
    for (const target of [
      "javascript:alert(1)",
      "data:text/html,x",
      "JAVASCRIPT:x",
      "vbscript:x",
      "file:///etc/passwd",
      "//evil.example",
    ])
      assert.ok(
        parseInline(`[x](${target})`).every(({ kind }) => kind === "text"),
        target,
      );
  });

  it("shows markup as text", () => {
    assert.equal(
      words(parseInline('<img src=x onerror="alert(1)"><script>x</script>')),
      '<img src=x onerror="alert(1)"><script>x</script>',
    );
  });
});

describe("any text", () => {
  const piece = fc.constantFrom(
    "*",
    "**",
    "_",
    "`",
    "```\n",
    "\n",
    "\n\n",
    "- ",
    "> ",
    "1. ",
    "|",
    "|-|",
    "[",
    "](",
    ")",
    "# ",
    "a",
    "ü",
    " ",
    "  ",
    "\\",
    "~~",
    "http://x",
  );
  const letters = (nodes: readonly Node[]): string =>
    nodes
      .map((node) => {
        if (node.kind === "list") return node.items.map(letters).join("");
        if (node.kind === "quote") return letters(node.inside);
        if (node.kind === "table") return [node.head, ...node.rows].flat().map(words).join("");
        return node.kind === "code" ? node.text : node.kind === "rule" ? "" : words(node.inside);
      })
      .join("");

  it("ends, and loses no letter outside tables", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const text = pieces.join("");
        const count = (of: string): number => [...of.matchAll(/[aü]/g)].length;
        const shown = letters(parseMarkdown(text));
        // A table, a link's address and the language of a code block have letters that are not shown.
        if (!/[|]|\]\(|`{3}|~{3}/.test(text)) assert.equal(count(shown), count(text));
      }),
      { numRuns: 500 },
    );
  });

  it("is read in a time that grows with its length, whatever it contains", () => {
    for (const evil of [
      "*".repeat(20_000),
      "[".repeat(20_000),
      "`a".repeat(10_000),
      "> ".repeat(10_000),
      "- ".repeat(10_000),
      "|".repeat(20_000),
      "**a".repeat(7_000),
    ])
      assert.ok(parseMarkdown(evil).length > 0);
  });
});
