/** The yardstick: FTS5's own ranking of the words that our search looks for, over the same texts. */

import { DatabaseSync } from "node:sqlite";
import { parseQuery } from "../../src/store/search/query.ts";
import { tokenize } from "../../src/store/search/tokenize.ts";
import { expressionOf } from "../../src/store/sqlite/search-index.ts";
import type { Message } from "../../src/core/model/types.ts";

/** Returns a function from a question to the keys of messages, best first. */
export function createPlainSearch(messages: readonly Message[], most: number): (question: string) => readonly string[] {
  const db = new DatabaseSync(":memory:");
  db.exec("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'unicode61')");
  const insert = db.prepare("INSERT INTO texts (rowid, text) VALUES (?, ?)");
  for (const [index, { text }] of messages.entries()) insert.run(index + 1, tokenize(text).join(" "));
  const best = db.prepare(`SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ${most}`);
  return (question) => {
    // Without the endings that our search adds in other languages: the yardstick must not move with what it measures.
    const { phrases, words, pieces } = parseQuery(question, null);
    const match = expressionOf({ conversations: [], all: [], any: [...phrases, ...words, ...pieces] });
    return best.all(match).map((row) => messages[Number(row["rowid"]) - 1]?.key ?? "");
  };
}
