import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { stem } from "./stem.ts";
import { indexText } from "./tokenize.ts";

/** The stem of each word by an independent implementation: FTS5's `porter`. */
function stemsByFts5(words: readonly string[]): readonly string[] {
  const db = new DatabaseSync(":memory:");
  db.exec(`CREATE VIRTUAL TABLE f USING fts5(text, content='', tokenize='porter unicode61');
           CREATE VIRTUAL TABLE v USING fts5vocab(f, 'instance'); BEGIN`);
  const insert = db.prepare("INSERT INTO f (rowid, text) VALUES (?, ?)");
  for (const [index, word] of words.entries()) insert.run(index, word);
  db.exec("COMMIT");
  const stems = db.prepare("SELECT term FROM v ORDER BY doc").all();
  db.close();
  return stems.map((row) => String(row["term"]));
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

describe("stems", () => {
  it("agree with FTS5's implementation of Porter's algorithm", () => {
    const words = manyWords();
    assert.ok(words.length > 5_000, `only ${words.length} words to compare`);
    const expected = stemsByFts5(words);
    for (const [index, word] of words.entries()) assert.equal(stem(word), expected[index], word);
  });

  it("are the same in text for the index, when a word is new and when it is known", () => {
    const words = manyWords();
    for (const text of [words.join(" "), words.toReversed().join(" ").toUpperCase()])
      assert.equal(indexText(text).trimEnd(), text.toLowerCase().split(" ").map(stem).join(" "));
  });

  it("stay right when there are more words than are remembered", () => {
    const words = Array.from(
      { length: 150_000 },
      (_, index) => `${index.toString(26).replace(/\d/g, (n) => "qrstuvwxyz"[Number(n)] ?? "")}ing`,
    );
    for (let times = 0; times < 2; times++)
      assert.equal(indexText(words.join(" ")).trimEnd(), words.map(stem).join(" "));
  });

  it("share every letter but the last with their word", () => {
    for (const word of manyWords()) assert.ok(word.startsWith(stem(word).slice(0, -1)), `${word} → ${stem(word)}`);
  });
});
