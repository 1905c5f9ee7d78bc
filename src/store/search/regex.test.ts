import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { Script } from "node:vm";
import fc from "fast-check";
import { LcmError } from "../../core/base/errors.ts";
import { compilePattern, requiredLiteral } from "./regex.ts";
import type { Pattern } from "./regex.ts";

describe("smart case", () => {
  const matches = (pattern: string, text: string): boolean => compilePattern(pattern).regex.test(text);

  it("ignores case unless the pattern has a capital", () => {
    assert.equal(matches("error", "An ERROR"), true);
    assert.equal(matches("Error", "An ERROR"), false);
  });

  it("does not count escapes, properties or group names as capitals", () => {
    for (const pattern of [
      String.raw`\Serror`,
      String.raw`\bERROR\b`.toLowerCase(),
      String.raw`\P{Lu}rror`,
      "(?<Name>error)",
    ])
      assert.equal(compilePattern(pattern).regex.ignoreCase, true, pattern);
    assert.equal(compilePattern(String.raw`\\Error`).regex.ignoreCase, false);
  });

  it("matches ^ and $ at line ends", () => {
    assert.equal(matches("^second$", "first\nsecond\nthird"), true);
  });
});

describe("guarantee 22: an invalid pattern is an error", () => {
  it("with the reason and what to do", () => {
    for (const pattern of ["(", "a{2,1}", "[z-a]", "*", ""]) {
      assert.throws(
        () => compilePattern(pattern),
        (error) =>
          error instanceof LcmError &&
          error.code === "invalid" &&
          error.hint !== undefined &&
          !/\/u/.test(error.message),
        pattern,
      );
    }
    assert.throws(() => compilePattern("(open"), /invalid regular expression "\(open": Unterminated group/);
  });

  it("but loose syntax works as people expect", () => {
    assert.equal(compilePattern(String.raw`foo\-bar_{x}`).regex.test("foo-bar_{x}"), true);
  });
});

describe("what a match must contain", () => {
  it("is the longest literal that no match can skip", () => {
    const literals: readonly (readonly [pattern: string, literal: string])[] = [
      ["timeout", "timeout"],
      [String.raw`config\.threshold.*0\.[0-9]+`, "config.threshold"],
      ["(?:ab)+defg?", "def"],
      ["colou?red", "colo"],
      ["ab{2}cd", "ab"],
      ["x(needle){1,3}", "needle"],
      ["^start$", "start"],
      [String.raw`\bword\b`, "word"],
    ];
    for (const [pattern, literal] of literals) assert.equal(requiredLiteral(pattern), literal, pattern);
  });

  it("is nothing if it could be missing", () => {
    for (const pattern of [
      "abc|def",
      "(abc|def)",
      "(abc)?",
      "(?:abc)*",
      "a*",
      "[abc]+",
      String.raw`\d+\w`,
      "(?=abc)",
      "(?!abc)",
      "(?<=abc)",
      "(?i:abc)",
      "(abc){0,2}",
    ])
      assert.equal(requiredLiteral(pattern), null, pattern);
  });

  it("never excludes a text that matches", () => {
    const db = new DatabaseSync(":memory:");
    const like = db.prepare("SELECT ? LIKE ? ESCAPE '\\' AS holds");
    let tested = 0;
    fc.assert(
      fc.property(anyPattern, fc.array(anyText, { minLength: 20, maxLength: 20 }), (pattern, texts) => {
        const compiled = compileIfValid(pattern);
        if (compiled === null || (compiled.like === "%" && compiled.literal === "")) return;
        // Few texts match by chance: most that do are the pattern's own letters.
        const own = pattern.replace(/\\[dwb]|\(\?(?:<n>|<?[=!]|-i:|:)|\{.*?\}|\[\^k\]|[()?*+|^$[\]\\]/g, "");
        const all = [...texts, own, own.toUpperCase(), own.replaceAll("s", "ſ"), `.${own}1`, own + own];
        for (const text of matching(compiled.regex, all)) {
          tested += 1;
          assert.equal(like.get(text, compiled.like)?.["holds"], 1, `${compiled.like} for ${JSON.stringify(text)}`);
          assert.ok(text.toLowerCase().includes(compiled.literal), `${compiled.literal} for ${JSON.stringify(text)}`);
        }
      }),
      { numRuns: 5_000 },
    );
    assert.ok(tested > 500, `only ${tested} matches were put to the test`);
    db.close();
  });
});

describe("a pattern that matches within one line", () => {
  const isOfOneLine = (pattern: string): boolean => compilePattern(pattern).isOfOneLine;

  it("is distinguished from one that may cross lines", () => {
    for (const pattern of ["plain words", String.raw`^\w+\.log: (?:warn|error)$`, String.raw`[a-f]{2}\b.*\(`, "数据"])
      assert.equal(isOfOneLine(pattern), true, pattern);
    for (const pattern of [
      String.raw`a\sb`,
      String.raw`a\nb`,
      "a\nb",
      "a[^b]c",
      String.raw`\D`,
      "(?s:.)",
      "(?!x)y",
      "(?<=x)y",
    ])
      assert.equal(isOfOneLine(pattern), false, pattern);
  });

  it("matches a text exactly if it matches one of its lines", () => {
    let tested = 0;
    fc.assert(
      fc.property(anyPattern, fc.array(anyText, { minLength: 20, maxLength: 20 }), (pattern, texts) => {
        const compiled = compileIfValid(pattern);
        if (compiled?.isOfOneLine !== true) return;
        const matches = new Set(matching(compiled.regex, [...texts, ...texts.flatMap((text) => text.split("\n"))]));
        for (const text of texts) {
          tested += 1;
          assert.equal(
            matches.has(text),
            text.split("\n").some((line) => matches.has(line)),
            JSON.stringify(text),
          );
        }
      }),
      { numRuns: 2_000 },
    );
    assert.ok(tested > 500, `only ${tested} texts were put to the test`);
  });
});

const findMatching = new Script("texts.filter((text) => regex.test(text))");

/**
 * Those that match. By chance a pattern has repeats within repeats, which try every way to share a text out and would
 * not end within a day: such a one is given up, as a search gives it up, and every other is tested on every text.
 */
function matching(regex: RegExp, texts: readonly string[]): readonly string[] {
  try {
    return findMatching.runInNewContext({ regex, texts }, { timeout: 2_000 }) as readonly string[];
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return [];
    throw error;
  }
}

const letters = ["a", "b", "s", "k", "_", "%"] as const;
const anyText = fc.string({
  unit: fc.constantFrom(...letters, "A", "S", "K", "ſ", "\u212a", ".", "\\", "1", "é", "\n"),
  maxLength: 12,
});

const anyPattern: fc.Arbitrary<string> = fc.letrec<{ pattern: string; sequence: string; item: string; group: string }>(
  (tie) => {
    const joined = (parts: fc.Arbitrary<string>, most: number): fc.Arbitrary<string> =>
      fc.array(parts, { minLength: 1, maxLength: most }).map((all) => all.join(""));
    const other = fc.constantFrom("é", "ſ", "\\.", "\\\\", "\\d", "\\w", "[ab]", "[^k]", ".", "^", "$", "\\b");
    const word = joined(fc.constantFrom(...letters), 5);
    const repeat = fc.constantFrom("", "", "", "", "", "?", "*", "+", "{2}", "{0,2}", "+?");
    const open = fc.constantFrom("(", "(?:", "(?<n>", "(?=", "(?!", "(?<=", "(?-i:");
    return {
      pattern: fc.oneof(
        { weight: 4, arbitrary: tie("sequence") },
        fc.tuple(tie("sequence"), tie("sequence")).map((both) => both.join("|")),
      ),
      sequence: joined(tie("item"), 4),
      item: fc
        .tuple(fc.oneof({ weight: 4, arbitrary: word }, other, tie("group")), repeat)
        .map((both) => both.join("")),
      group: fc.tuple(open, tie("pattern")).map(([start, inner]) => `${start}${inner})`),
    };
  },
).pattern;

function compileIfValid(pattern: string): Pattern | null {
  try {
    return compilePattern(pattern);
  } catch (error) {
    if (error instanceof LcmError) return null;
    throw error;
  }
}
