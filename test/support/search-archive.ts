/** An archive in memory, for tests of the search. */

import { DatabaseSync } from "node:sqlite";
import type { StatementSync } from "node:sqlite";
import type { SearchCaveat, SearchRequest, SearchResult } from "../../src/core/model/store.ts";
import { indexes, tables } from "../../src/store/sqlite/schema.ts";
import { createSearchIndex, searchTables } from "../../src/store/sqlite/search-index.ts";
import { inSqlite } from "../../src/store/dialect.ts";
import { Apart, together, type Row, type Script, type Statement, type Value } from "../../src/store/script.ts";
import { indexBatch } from "../../src/store/search/indexing.ts";
import { search } from "../../src/store/search/search.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

interface Said {
  readonly conversation?: number;
  readonly at?: string;
  readonly aside?: "note" | "branch";
  readonly envelope?: string;
}

/** A database with nothing but what search reads. */
export function createArchive() {
  const db = new DatabaseSync(":memory:");
  for (const statement of [...Object.values(tables), ...searchTables, ...indexes]) db.exec(statement);
  const prepared = new Map<string, StatementSync>();
  const run = <T>(script: Script<T>): T => {
    const execute = ({ parts, values }: Statement): readonly Row[] => {
      const words = inSqlite(parts.join("?"));
      const statement = prepared.get(words) ?? db.prepare(words);
      prepared.set(words, statement);
      return statement.all(...values).map(toRow);
    };
    let step = script.next();
    while (!step.done) {
      const asked = step.value;
      step = script.next(
        asked instanceof Apart ? together(asked.statements.map(execute)) : [asked].flat().flatMap(execute),
      );
    }
    return step.value;
  };
  const open = db.prepare(
    "INSERT OR IGNORE INTO conversations (conversation_id, session_id, created_at, updated_at) VALUES (?, 's', '', '')",
  );
  const say = db.prepare(
    `INSERT INTO messages (message_id, conversation_id, role, content, token_count, created_at, stored_at, message_key,
                           aside, envelope)
     SELECT (?1 << 24) + coalesce(max(seq), 0) + 1, ?1, 'user', ?2, 1, ?3, ?3, 'k' || coalesce(max(seq), 0), ?4, ?5
     FROM messages WHERE conversation_id = ?1`,
  );
  let clock = Date.parse("2026-01-01T00:00:00.000Z");
  const now = (): string => new Date((clock += 60_000)).toISOString();
  return {
    db,
    run,
    /** Stores messages, one a minute, and returns the id of the last. */
    say(texts: string | readonly string[], { conversation = 1, at, aside, envelope }: Said = {}): number {
      open.run(conversation);
      let last = 0;
      for (const text of typeof texts === "string" ? [texts] : texts)
        last = Number(say.run(conversation, text, at ?? now(), aside ?? null, envelope ?? null).lastInsertRowid);
      db.exec(
        `UPDATE conversations AS c
         SET unindexed = 1, (message_count, last_message_at, next_seq) =
           (SELECT count(*), max(created_at), coalesce(max(seq), 0) + 1 FROM messages m WHERE m.conversation_id = c.conversation_id)`,
      );
      return last;
    },
    summarise(text: string, earliest: string, latest: string, conversation = 1): string {
      open.run(conversation);
      const id = `sum_${String(db.prepare("SELECT count(*) AS n FROM summaries").get()?.["n"]).padStart(16, "0")}`;
      db.prepare(
        `INSERT INTO summaries (summary_id, conversation_id, kind, depth, content, token_count, earliest_at, latest_at,
                                created_at, updated_at, search_id)
         SELECT ?1, ?2, 'leaf', 0, ?3, 1, ?4, ?5, ?6, ?6, ?2 * 16777216 + last_summary + 1
         FROM conversations WHERE conversation_id = ?2`,
      ).run(id, conversation, text, earliest, latest, now());
      db.prepare(
        "UPDATE conversations SET last_summary = last_summary + 1, unindexed = 1 WHERE conversation_id = ?",
      ).run(conversation);
      return id;
    },
    index(rowsMax = 1_000_000): number {
      return run(indexBatch(createSearchIndex(), rowsMax));
    },
    find(
      pattern: string,
      more: Partial<SearchRequest> = {},
      deadline = { deadlineMs: 60_000, nowMs: () => 0 },
      postings?: number,
    ): SearchResult {
      const request = { pattern, mode: "full_text", scope: "both", sort: "hybrid", limit: 20, ...more } as const;
      return run(search(createSearchIndex(), request, deadline, postings));
    },
    snippets(pattern: string, more: Partial<SearchRequest> = {}): readonly string[] {
      return this.find(pattern, more).hits.map((hit) => hit.snippet);
    },
  };
}

const toRow = (row: Record<string, unknown>): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]): [string, Value] => [
      name,
      typeof value === "number" || typeof value === "string" ? value : null,
    ]),
  );

export const at = (time: string): Timestamp => time as Timestamp;
export const sorts = ["recency", "relevance", "hybrid"] as const;
export const caveatKinds = (caveats: readonly SearchCaveat[]): readonly string[] =>
  caveats.map((caveat) => caveat.kind);
