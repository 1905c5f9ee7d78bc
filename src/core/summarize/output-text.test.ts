import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { outputText, wordsText } from "./output-text.ts";

const rows = (count: number): readonly string[] => Array.from({ length: count }, (_, row) => `row ${row + 1}`);
const withLine = (count: number, at: number, ...lines: readonly string[]): string =>
  rows(count)
    .toSpliced(at, 0, ...lines)
    .join("\n");

describe("the text of an output", () => {
  it("is whole if it is short, without common indentation, escape codes and overwritten progress", () => {
    assert.equal(outputText("\ta\n\t\tb\n\n\n\tc\n", "output"), "a\n\tb\n\nc");
    assert.equal(outputText("\u001b[32mgreen\u001b[0m\n10%\r50%\r100%", "output"), "green\n100%");
    assert.equal(outputText("Debugger attached.\n\nx\ny", "output"), "x\ny");
  });

  it("is cut to head and tail if it is long, with the number of lines left out", () => {
    const text = outputText(rows(100).join("\n"), "output");
    assert.match(text, /^row 1\n(?:.*\n){8}row 10\n… 82 lines left out\nrow 93\n(?:.*\n){6}row 100$/);
    assert.match(outputText(rows(100).join("\n"), "file"), /\nrow 14\n… 80 lines left out\nrow 95\n/);
  });

  it("keeps lines in the middle that report errors, with the lines indented below them", () => {
    const trace = ["TypeError: x is not a function", "    at f (a.ts:1:2)", "    at g (b.ts:3:4)"];
    assert.ok(outputText(withLine(100, 50, ...trace), "output").includes(`left out\n${trace.join("\n")}\n… `));
    for (const line of ["a.ts(3,4): error TS2345: no", "2026-02-17 10:00 WARN disk", "Command exited with code 2"])
      for (const kind of ["output", "file"] as const)
        assert.ok(outputText(withLine(100, 50, line), kind).includes(`left out\n${line}\n… `), line);
  });

  it("does not take code that mentions errors for errors", () => {
    const code = Array.from({ length: 60 }, (_, line) => `if (error${line}) throw new Error("failed");`).join("\n");
    assert.equal(outputText(code, "output").split("\n").length, 21);
  });

  it("cuts long lines in the middle, less so if there are few", () => {
    const long = "word ".repeat(1_000);
    assert.match(outputText(long, "output"), /^word .{2000,3200} … [\d,]+ characters left out … .*word$/);
    assert.ok(outputText(`${long}\n`.repeat(3) + rows(20).join("\n"), "output").length < 1_500);
  });

  it("is whole for a check that fails", () => {
    const tap = ["✔ adds", "✖ subtracts", "  AssertionError: 2 !== 3", "ℹ pass 1", "ℹ fail 1"].join("\n");
    assert.equal(outputText(tap, "output"), tap);
  });

  it("gives encoded bytes by their size", () => {
    const base64 = "iVBORw0KGgo9aB3".repeat(100);
    assert.equal(outputText(`a ${base64}== b`, "output"), "a [base64, 1.5 KB] b");
    assert.equal(
      outputText(`src="data:image/png;base64,${base64}"`, "output"),
      'src="[image/png as data URL, 1.5 KB]"',
    );
    assert.equal(outputText("0f".repeat(500), "output"), "[hex, 1.0 KB]");
    assert.match(outputText(`${base64.slice(0, 76)}\n`.repeat(9), "output"), /^\[base64, 693 B\]$/);
    assert.equal(outputText("e3b0c44298fc1c149afbf4c8996fb924", "output"), "e3b0c44298fc1c149afbf4c8996fb924");
  });

  it("is short for a megabyte of any pattern, and never the work of minutes", () => {
    const parts = [".", "a", "aA1", "\n", " ", "error: \n", "\u001b[", "\r", "```\n", "data:a;", "/a", "x    "];
    for (const part of parts) {
      const text = part.repeat(Math.ceil(1_000_000 / part.length));
      assert.ok(outputText(text, "output").length < 9_000);
      wordsText(text);
    }
  });
});

describe("what somebody wrote", () => {
  it("is never cut below 200 lines, in any script", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme", maxLength: 60 }), { maxLength: 190 }), (lines) => {
        const text = lines.map((line) => line.replace(/\n/g, " ")).join("\n");
        assert.equal(wordsText(text), text);
      }),
    );
    const paragraphs = rows(400).join("\n\n");
    assert.equal(wordsText(paragraphs), paragraphs);
  });

  it("is cut inside very long blocks of code or data", () => {
    const pasted = rows(500).join("\n");
    assert.match(
      wordsText(`Look:\n\n${pasted}\n\nWhy?`),
      /^Look:\n\nrow 1\n[^]*row 40\n… 420 lines left out\n[^]*row 500\n*Why\?$/,
    );
    assert.match(
      wordsText(`Look:\n\`\`\`\n${pasted}\n\n${pasted}\n\`\`\`\nWhy?`),
      /^Look:\n```\nrow 1\n[^]*left out[^]*```\nWhy\?$/,
    );
  });
});
