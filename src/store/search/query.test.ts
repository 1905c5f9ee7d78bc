import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import fc from "fast-check";
import { LcmError } from "../../core/base/errors.ts";
import { expressionOf } from "../sqlite/search-index.ts";
import { parseQuery } from "./query.ts";

describe("a query", () => {
  const asked = (pattern: string): readonly string[] => parseQuery(pattern).words.map((word) => word.text);

  it("is its words without stop words", () => {
    assert.deepEqual(asked("When did Caroline go to the support group?"), ["Caroline", "go", "support", "group"]);
    assert.deepEqual(asked("What is Caroline's plan, and doesn't it matter?"), ["Caroline", "plan", "matter"]);
  });

  it("keeps stop words if there is nothing else", () => {
    assert.deepEqual(asked("who is it"), ["who", "is", "it"]);
  });

  it("takes what is quoted as a phrase", () => {
    const query = parseQuery('deploy "exit code 137" “second one”');
    assert.deepEqual(
      query.phrases.map((phrase) => phrase.alternatives),
      [[["exit", "code", "137"]], [["second", "on"]]],
    );
    assert.deepEqual(
      query.words.map((word) => word.text),
      ["deploy"],
    );
  });

  it("treats an unclosed quote as a blank", () => {
    assert.deepEqual(asked('the "unclosed quote'), ["unclosed", "quote"]);
  });

  it("looks for an identifier as a whole and as its parts", () => {
    assert.deepEqual(parseQuery("getUserName").words[0]?.alternatives, [["getusernam"], ["get", "user", "name"]]);
    assert.deepEqual(parseQuery("E1234").words[0]?.alternatives, [["e1234"]]);
  });

  it("looks for a path as words in a row, and ranks by its pieces", () => {
    const query = parseQuery("src/store/words.ts");
    assert.deepEqual(query.words[0]?.alternatives, [["src", "store", "word", "ts"]]);
    assert.deepEqual(
      query.pieces.map((piece) => piece.text),
      ["src", "store", "words", "ts"],
    );
  });

  it("distinguishes a question from words to look for", () => {
    assert.equal(parseQuery("where was the cat").isQuestion, true);
    assert.equal(parseQuery("flaky timeout test").isQuestion, true);
    assert.equal(parseQuery("flaky timeout").isQuestion, false);
    assert.equal(parseQuery('where was "the cat"').isQuestion, false);
  });

  it("is never a syntax error", () => {
    const db = new DatabaseSync(":memory:");
    db.exec("CREATE VIRTUAL TABLE f USING fts5(text, content='', contentless_delete=1, tokenize='unicode61')");
    const match = db.prepare("SELECT count(*) AS found FROM f WHERE f MATCH ?");
    const odd = fc.constantFrom(
      '"',
      "'",
      "*",
      "AND",
      "OR",
      "NOT",
      "NEAR(",
      "(",
      ")",
      "^",
      ":",
      "-",
      "+",
      "{",
      " ",
      "猫",
      "🎉",
      "a",
    );
    fc.assert(
      fc.property(
        fc.array(fc.oneof(odd, fc.string({ unit: "grapheme", maxLength: 4 })), { maxLength: 12 }),
        (parts) => {
          try {
            const query = parseQuery(parts.join(""));
            for (const term of [...query.phrases, ...query.words, ...query.pieces])
              assert.equal(match.get(expressionOf({ conversations: [], all: [], any: [term] }))?.["found"], 0);
          } catch (error) {
            if (!(error instanceof LcmError)) throw error;
          }
        },
      ),
      { numRuns: 500 },
    );
    db.close();
  });

  it("without a word is refused, with an example that works", () => {
    for (const pattern of ["", "  ", "?!", '""', "${}"]) {
      assert.throws(
        () => parseQuery(pattern),
        (error) => error instanceof LcmError && error.code === "invalid" && /database migration/.test(error.hint ?? ""),
      );
    }
  });

  it("with too many words is refused, not shortened", () => {
    const pattern = Array.from({ length: 300 }, (_, index) => `word${index}`).join(" ");
    assert.throws(() => parseQuery(pattern), /has 300 words/);
  });
});
