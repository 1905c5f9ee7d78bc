import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import fc from "fast-check";
import { LcmError } from "../../core/base/errors.ts";
import { conversationWord, eachWord, parseQuery, prepareForIndex, stem, tokenize } from "./tokenize.ts";

/** What FTS5 itself makes of texts: the terms of each, in order. */
function termsByFts5(texts: readonly string[]): readonly (readonly string[])[] {
  const db = new DatabaseSync(":memory:");
  db.exec(`CREATE VIRTUAL TABLE f USING fts5(text, content='', contentless_delete=1, tokenize='porter unicode61');
           CREATE VIRTUAL TABLE v USING fts5vocab(f, 'instance'); BEGIN`);
  const insert = db.prepare("INSERT INTO f (rowid, text) VALUES (?, ?)");
  for (const [index, text] of texts.entries()) insert.run(index, text);
  db.exec("COMMIT");
  const terms: string[][] = texts.map(() => []);
  for (const row of db.prepare("SELECT doc, term FROM v ORDER BY doc, offset").all())
    terms[Number(row["doc"])]?.push(String(row["term"]));
  db.close();
  return terms;
}

/** Words as people write them, from the documentation of what is installed, and words made to meet every rule. */
function manyWords(): readonly string[] {
  const words = new Set<string>();
  const installed = join(import.meta.dirname, "../../../node_modules");
  for (const folder of readdirSync(installed)) {
    const path = join(installed, folder, "README.md");
    for (const word of readIfThere(path)
      .toLowerCase()
      .match(/[a-z]{3,20}/g) ?? [])
      words.add(word);
  }
  const endings = `ed ing s es ies sses eed y ational tional enci anci izer logi bli alli entli eli ousli ization
    ation ator alism iveness fulness ousness aliti iviti biliti ical ness icate iciti ful ative
    alize al ance ence er ic able ible ant ement ment ent ion sion tion ou ism ate iti ous ive ize
    e ll l`.split(/\s+/);
  const starts =
    "a y b by tr hop hopp ay yy fil conflat tybl siz oo fall hiss fizz xx box tow pay e yi eye syz relat cred";
  for (const start of starts.split(" ")) {
    for (const ending of endings) {
      for (const last of ["", "s", "ed", "ing", "y"]) words.add(start + ending + last);
    }
  }
  return [...words];
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // Most packages have one; a few without change nothing.
  }
}

const texts = [
  "The quick brown foxes were jumping over lazy dogs' beds",
  "getUserName calls HTTPServer.parseURL2json(E1234) in src/store/words.ts with max_token_count=0x7ffe",
  "我们讨论了数据库迁移的问题，然后决定使用新索引。猫",
  "データベースの移行 ｶﾞｷﾞｸﾞ ひらがな",
  "한국어 검색 테스트",
  "ภาษาไทยไม่มีเว้นวรรค",
  "Great 🎉 job 👍🏽 family 👨‍👩‍👧 flag 🇩🇪🇫🇷 keycap 1️⃣ heart ❤️ copyright ©",
  "Crème brûlée à la carte, naïveté, Ångström, Tiếng Việt, ŁÓDŹ, straße, ΟΔΟΣ οδός, ﬁne Ｆｕｌｌ ½ x²",
  "Привет мир, ещё раз; مَرْحَبًا بالعالم; हिन्दी भाषा",
  "mixed用getUserName函数and—dashes “quotes” don’t",
  "xconv1 forged",
];

describe("guarantee 23: the index and the query know the same words", () => {
  it("stems every word as FTS5 does", () => {
    const words = manyWords();
    assert.ok(words.length > 5_000, `only ${words.length} words to compare`);
    const expected = termsByFts5(words);
    for (const [index, word] of words.entries()) assert.deepEqual([stem(word)], expected[index], word);
  });

  it("changes no letter of a word before the last of its stem", () => {
    for (const word of manyWords()) assert.ok(word.startsWith(stem(word).slice(0, -1)), `${word} → ${stem(word)}`);
  });

  it("cuts prepared text into words as FTS5 does", () => {
    const expected = termsByFts5(texts.map((text) => prepareForIndex(text, 7)));
    for (const [index, text] of texts.entries())
      assert.deepEqual([conversationWord(7), ...tokenize(text)], expected[index]);
  });

  it("cuts any text into words as FTS5 does", () => {
    const any = fc.string({ unit: fc.oneof(fc.string({ unit: "binary", maxLength: 3 }), fc.constantFrom(...texts)) });
    fc.assert(
      fc.property(fc.array(any, { minLength: 1, maxLength: 40 }), (given) => {
        const stored = given.map((text) => text.toWellFormed().replaceAll("\0", " "));
        const expected = termsByFts5(stored.map((text) => prepareForIndex(text, 7)));
        assert.deepEqual(
          stored.map((text) => [conversationWord(7), ...tokenize(text)]),
          expected,
        );
      }),
      { numRuns: 100 },
    );
  });

  it("leaves plain prose as it is", () => {
    assert.equal(prepareForIndex("Plain prose, as it is.", 3), "xconv3 Plain prose, as it is.");
  });

  it("adds the parts of identifiers, and none of hashes or blobs", () => {
    assert.deepEqual(tokenize("getUserName"), ["getusernam", "get", "user", "name"]);
    assert.deepEqual(tokenize("HTTPServer URLs E1234"), [
      "httpserver",
      "url",
      "e1234",
      "http",
      "server",
      "url",
      "1234",
    ]);
    assert.deepEqual(tokenize("3f2504e04f89"), ["3f2504e04f89"]);
    assert.deepEqual(tokenize("aGVsbG8gd29ybGQgaGVsbG8"), ["agvsbg8gd29ybgqgagvsbg8"]);
  });

  it("tells where each word stands in the text", () => {
    const text = "Die Größe von getUserName: 数据库 🎉";
    const found: string[] = [];
    eachWord(text, (word, from, to) => found.push(`${word}=${text.slice(from, to)}`));
    assert.deepEqual(found, [
      "die=Die",
      "große=Größe",
      "von=von",
      "getusername=getUserName",
      "数据=数据库",
      "据库=数据库",
      "库=数据库",
      "xemoji1f389x=🎉",
      "get=getUserName",
      "user=getUserName",
      "name=getUserName",
    ]);
  });
});

describe("a query", () => {
  const asked = (pattern: string): readonly string[] => parseQuery(pattern).words.map((word) => word.text);

  it("is its words without those of every question", () => {
    assert.deepEqual(asked("When did Caroline go to the support group?"), ["Caroline", "go", "support", "group"]);
    assert.deepEqual(asked("What is Caroline's plan, and doesn't it matter?"), ["Caroline", "plan", "matter"]);
  });

  it("keeps them when there is nothing else", () => {
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

  it("reads an unclosed quote as a blank", () => {
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

  it("tells a question from words to look for", () => {
    assert.equal(parseQuery("where was the cat").isQuestion, true);
    assert.equal(parseQuery("flaky timeout test").isQuestion, true);
    assert.equal(parseQuery("flaky timeout").isQuestion, false);
    assert.equal(parseQuery('where was "the cat"').isQuestion, false);
  });

  it("is never a syntax error, whatever it holds", () => {
    const db = new DatabaseSync(":memory:");
    db.exec("CREATE VIRTUAL TABLE f USING fts5(text, content='', contentless_delete=1, tokenize='porter unicode61')");
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
              assert.equal(match.get(term.match)?.["found"], 0);
          } catch (error) {
            if (!(error instanceof LcmError)) throw error;
          }
        },
      ),
      { numRuns: 500 },
    );
    db.close();
  });

  it("with nothing to look for is refused, with a query that works", () => {
    for (const pattern of ["", "  ", "?!", '""', "${}"]) {
      assert.throws(
        () => parseQuery(pattern),
        (error) => error instanceof LcmError && error.code === "invalid" && /database migration/.test(error.hint ?? ""),
      );
    }
  });

  it("with too many words is refused, not shortened", () => {
    const pattern = Array.from({ length: 300 }, (_, index) => `word${index}`).join(" ");
    assert.throws(() => parseQuery(pattern), /300 words are too many/);
  });
});
