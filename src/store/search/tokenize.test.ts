import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import fc from "fast-check";
import { eachWord, indexText, tokenize } from "./tokenize.ts";

/** The terms FTS5 stores for each text, in order. */
function termsByFts5(texts: readonly string[]): readonly (readonly string[])[] {
  const db = new DatabaseSync(":memory:");
  db.exec(`CREATE VIRTUAL TABLE f USING fts5(text, content='', contentless_delete=1, tokenize='unicode61');
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

describe("guarantee 23: the index and queries have the same terms", () => {
  it("cuts text into terms that FTS5 stores unchanged", () => {
    const expected = termsByFts5(texts.map((text) => tokenize(text).join(" ")));
    for (const [index, text] of texts.entries()) assert.deepEqual(tokenize(text), expected[index]);
  });

  it("cuts any text into terms that FTS5 stores unchanged", () => {
    const any = fc.string({ unit: fc.oneof(fc.string({ unit: "binary", maxLength: 3 }), fc.constantFrom(...texts)) });
    fc.assert(
      fc.property(fc.array(any, { minLength: 1, maxLength: 40 }), (given) => {
        const texts = given.map((text) => text.toWellFormed().replaceAll("\0", " "));
        const stored = texts.map(tokenize);
        assert.deepEqual(
          texts.map((text) => indexText(text).trimEnd()),
          stored.map((terms) => terms.join(" ")),
        );
        assert.deepEqual(stored, termsByFts5(stored.map((terms) => terms.join(" "))));
      }),
      { numRuns: 100 },
    );
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

  it("reports where each word is in the text", () => {
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
