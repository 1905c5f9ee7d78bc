import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { hasLongRun, outputText, wordsText, isCheck } from "./output-text.ts";

const rows = (count: number): readonly string[] => Array.from({ length: count }, (_, row) => `row ${row + 1}`);
const withLine = (count: number, at: number, ...lines: readonly string[]): string =>
  rows(count)
    .toSpliced(at, 0, ...lines)
    .join("\n");

describe("the text of an output", () => {
  it("is whole if it is short, without common indentation, escape codes and overwritten progress", () => {
    assert.equal(outputText("\ta\n\t\tb\n\n\n\tc\n", "output"), "a\n\tb\n\nc");
    assert.equal(outputText("\u001b[32mgreen\u001b[0m\n10%\r50%\r100%", "output"), "green\n100%");
    assert.equal(outputText("Debugger attached.\nx\nx\nx\ny", "output"), "x (×3)\ny");
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
    assert.ok(outputText(`${long}\n`.repeat(3) + rows(20).join("\n"), "output").length < 1_000);
  });

  it("is one line for a check that passes", () => {
    const tap = ["✔ adds (1ms)", "✔ subtracts (1ms)", "ℹ tests 2", "ℹ pass 2", "ℹ fail 0", "ℹ duration_ms 40"].join(
      "\n",
    );
    assert.equal(outputText(tap, "check"), "ℹ tests 2 · ℹ pass 2 · ℹ duration_ms 40");
    const biome = "> pkg@1.0.0 check\n> biome check .\n\nChecked 22 files in 17ms. No fixes applied.";
    assert.equal(outputText(biome, "check"), "Checked 22 files in 17ms. No fixes applied.");
    assert.equal(outputText("a\nb\nFound 0 warnings and 0 errors.", "check"), "Found 0 warnings and 0 errors.");
  });

  it("is whole if its command does more than check", () => {
    const mail = "From: Bob\n\nThe launch moves to 14 March.\nno problems with the venue, they confirmed.\nBob";
    for (const kind of ["output", "file"] as const) assert.equal(outputText(mail, kind), mail);
    for (const command of ["npm test", "cd a && npm run check 2>&1 | tail -3", "npx tsc --noEmit", "cargo clippy"])
      assert.ok(isCheck(command), command);
    for (const command of ["read_mail 7", "cat NOTES.md", "deploy && npm test", "git commit -m 'build'", "npm publish"])
      assert.ok(!isCheck(command), command);
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

describe("a run of encoded bytes", () => {
  it("is found wherever a pattern would find it, and nowhere else", () => {
    const run = fc.stringMatching(/^[\w+/%-]{0,130}$/);
    const between = fc.constantFrom(" ", "\n", "é", "=", ".", "\u{1f600}", "漢");
    const text = fc.array(fc.tuple(run, between), { maxLength: 6 }).map((pieces) => pieces.flat().join(""));
    fc.assert(
      fc.property(text, (each) => hasLongRun(each) === /[\w+/%-]{60}/.test(each)),
      { numRuns: 2_000 },
    );
    for (const length of [59, 60, 61])
      for (let before = 0; before < 70; before++)
        assert.equal(hasLongRun(`${" ".repeat(before)}${"a".repeat(length)} b`), length >= 60);
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

  it("is cut only inside very long blocks of code", () => {
    const pasted = rows(500).join("\n");
    const code = Array.from({ length: 500 }, (_, n) => `call(${n});`).join("\n");
    assert.match(wordsText(`${code}\n`), /^call\(0\);\n[^]*call\(39\);\n… 42\d lines left out\n[^]*call\(499\);\n*$/);
    const rules = `\`\`\`\ncode\n\`\`\`\n${pasted}\n\n${pasted}`;
    assert.equal(wordsText(rules), rules, "what is not code is never cut");
    assert.match(
      wordsText(`Look:\n\`\`\`\n${pasted}\n\n${pasted}\n\`\`\`\nWhy?`),
      /^Look:\n```\nrow 1\n[^]*left out[^]*```\nWhy\?$/,
    );
  });
});
