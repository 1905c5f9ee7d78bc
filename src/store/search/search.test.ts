import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { StatementSync } from "node:sqlite";
import { describe, it } from "node:test";
import { LcmError } from "../../core/base/errors.ts";
import type { SearchCaveat, SearchRequest, SearchResult } from "../../core/model/store.ts";
import { asConversation } from "../rows.ts";
import { indexes, tables } from "../sqlite/schema.ts";
import { searchIndex, searchTables } from "../sqlite/search-index.ts";
import type { Row, Script, Statement, Value } from "../script.ts";
import { indexBatch, reindexRow } from "./indexing.ts";
import { search } from "./search.ts";
import type { Timestamp } from "../../core/base/time.ts";

/** How many messages and summaries a search found. */
const countOf = ({ hits, summaries = [] }: SearchResult): number => hits.length + summaries.length;

interface Said {
  readonly conversation?: number;
  readonly at?: string;
  readonly aside?: "note" | "branch";
  readonly envelope?: string;
}

/** A database with nothing but what search reads. */
function createArchive() {
  const db = new DatabaseSync(":memory:");
  for (const statement of [...Object.values(tables), ...searchTables, ...indexes]) db.exec(statement);
  const prepared = new Map<string, StatementSync>();
  const run = <T>(script: Script<T>): T => {
    const execute = ({ parts, values }: Statement): readonly Row[] => {
      const words = parts.join("?");
      const statement = prepared.get(words) ?? db.prepare(words);
      prepared.set(words, statement);
      return statement.all(...values).map(toRow);
    };
    let step = script.next();
    while (!step.done) step = script.next([step.value].flat().flatMap(execute));
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
      return run(indexBatch(searchIndex, rowsMax));
    },
    find(
      pattern: string,
      more: Partial<SearchRequest> = {},
      deadline = { deadlineMs: 60_000, nowMs: () => 0 },
      postings?: number,
    ): SearchResult {
      const request = { pattern, mode: "full_text", scope: "both", sort: "hybrid", limit: 20, ...more } as const;
      return run(search(searchIndex, request, deadline, postings));
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

const at = (time: string): Timestamp => time as Timestamp;
const sorts = ["recency", "relevance", "hybrid"] as const;
const caveatKinds = (caveats: readonly SearchCaveat[]): readonly string[] => caveats.map((caveat) => caveat.kind);

describe("guarantee 23: finds", () => {
  const texts = [
    "我们讨论了数据库迁移的问题",
    "猫が好きです",
    "한국어로 검색합니다",
    "We shipped it 🎉 at last",
    "The family 👨‍👩‍👧 waved 👍🏽 from 🇩🇪",
    "Then getUserName returned undefined",
    "set max_token_count to 4096",
    "see src/store/words.ts and C:\\Users\\ada\\notes.txt",
    "it failed with E1234 and 0x7ffeefbf at startup",
    "connect ECONNREFUSED 127.0.0.1:5432",
    "the migrations were migrating databases",
    "process ended with exit code 137 again",
    "exit quickly; the code was 137 lines",
    "Crème brûlée in Łódź, Tiếng Việt",
    "git commit 3f2504e04f89 was reverted",
  ];
  const wanted: readonly (readonly [what: string, pattern: string, row: number])[] = [
    ["a Chinese word of two characters", "迁移", 0],
    ["a longer Chinese word", "数据库", 0],
    ["one Chinese character at the end of a run", "题", 0],
    ["one Japanese character", "猫", 1],
    ["a Korean word inside another", "국어", 2],
    ["an emoji", "🎉", 3],
    ["one person of a family emoji", "👩", 4],
    ["an emoji in another skin tone", "👍🏿", 4],
    ["a flag", "🇩🇪", 4],
    ["an identifier as written", "getUserName", 5],
    ["an identifier in lower case", "getusername", 5],
    ["a part of a camelCase identifier", "name", 5],
    ["an identifier written another way", "get_user_name", 5],
    ["a snake_case identifier", "max_token_count", 6],
    ["a part of a snake_case identifier", "token", 6],
    ["a path", "src/store/words.ts", 7],
    ["the end of a path", "words.ts", 7],
    ["a path of Windows", "C:\\Users\\ada\\notes.txt", 7],
    ["a file name", "notes.txt", 7],
    ["an error code", "E1234", 8],
    ["an error code without its letter", "1234", 8],
    ["a number in hexadecimal", "0x7ffeefbf", 8],
    ["an error name", "ECONNREFUSED", 9],
    ["an address", "127.0.0.1:5432", 9],
    ["another form of a word", "migrate", 10],
    ["the beginning of a word", "revert*", 14],
    ["a phrase", '"exit code 137"', 11],
    ["a word without its accents", "creme brulee", 13],
    ["a word with accents that were not written", "tiéng viet", 13],
    ["a hash", "3f2504e04f89", 14],
  ];
  for (const indexed of [true, false]) {
    const archive = createArchive();
    archive.say(texts);
    if (indexed) archive.index();
    for (const [what, pattern, row] of wanted) {
      it(`${what}, ${indexed ? "indexed" : "before it is indexed"}`, () => {
        for (const sort of sorts) {
          const { hits } = archive.find(pattern, { sort, limit: 1 });
          assert.equal(hits[0]?.kind === "message" ? hits[0].seq : 0, row + 1, `${pattern} by ${sort}`);
        }
      });
    }
    it(`only rows that contain a phrase, ${indexed ? "indexed" : "before it is indexed"}`, () => {
      for (const sort of sorts) assert.equal(archive.find('"exit code 137"', { sort }).hits.length, 1, sort);
    });
  }
});

describe("guarantee 22: no false “no matches”", () => {
  it("refuses what cannot be searched for, with a hint that works", () => {
    const archive = createArchive();
    archive.say("something");
    const refused = (pattern: string, more: Partial<SearchRequest>): void =>
      assert.throws(
        () => archive.find(pattern, more),
        (error) => error instanceof LcmError && error.code === "invalid",
      );
    refused("(", { mode: "regex" });
    refused("?!", {});
    refused("something", { limit: 0 });
    refused("something", { limit: 201 });
  });

  it("finds the oldest rows, by words and by pattern", () => {
    const archive = createArchive();
    archive.say("the first word was pangolin");
    archive.say(Array.from({ length: 3_000 }, (_, index) => `line ${index} of the archive`));
    archive.index();
    for (const sort of sorts) assert.deepEqual(archive.snippets("pangolin", { sort }), ["the first word was pangolin"]);
    assert.deepEqual(archive.snippets("pang.lin", { mode: "regex" }), ["the first word was pangolin"]);
    assert.deepEqual(archive.find("pangolin").caveats, []);
  });

  it("finds rows before they are indexed, while they are, and after", () => {
    const archive = createArchive();
    archive.say(["alpha one", "alpha two", "alpha three", "alpha four"]);
    archive.summarise("alpha summary", "2026-01-01T00:00:00.000Z", "2026-01-01T00:10:00.000Z");
    for (let left = 5; left > 0; left = archive.index(2)) {
      for (const sort of sorts) assert.equal(countOf(archive.find("alpha", { sort })), 5, `${left} left, by ${sort}`);
    }
    assert.equal(archive.index(), 0);
    for (const sort of sorts) assert.deepEqual(caveatKinds(archive.find("alpha", { sort }).caveats), []);
    assert.equal(countOf(archive.find("alpha")), 5);
  });

  it("reports how many rows are not indexed yet", () => {
    const archive = createArchive();
    archive.say("needle at the very start");
    archive.say(Array.from({ length: 2_999 }, () => "hay"));
    const { hits, caveats } = archive.find("needle");
    assert.deepEqual([hits.length, caveats], [0, [{ kind: "unindexed", rows: 1_000 }]]);
    archive.index();
    assert.deepEqual(caveatKinds(archive.find("needle").caveats), []);
    assert.equal(archive.find("needle").hits.length, 1);
  });

  it("reports that there are more hits than the limit", () => {
    const archive = createArchive();
    archive.say(["one beaver", "two beavers", "three beavers"]);
    archive.index();
    for (const sort of sorts) {
      assert.deepEqual(archive.find("beaver", { sort, limit: 2 }).caveats, [{ kind: "limit", limit: 2 }]);
      assert.deepEqual(archive.find("beaver", { sort, limit: 3 }).caveats, []);
    }
    assert.deepEqual(archive.find("beaver", { mode: "regex", limit: 2 }).caveats, [{ kind: "limit", limit: 2 }]);
    assert.deepEqual(archive.find("beaver", { mode: "regex", limit: 3 }).caveats, []);
  });

  it("reports a time limit that was too short to search every row", () => {
    const archive = createArchive();
    archive.say(Array.from({ length: 4_000 }, (_, index) => `row ${index}`));
    archive.index();
    let ms = 0;
    const impatient = { deadlineMs: 1_000, nowMs: () => ms++ };
    const { hits, caveats } = archive.find("^r.. 0$", { mode: "regex" }, impatient);
    const [caveat] = caveats;
    assert.equal(hits.length, 0);
    assert.ok(caveat?.kind === "time" && caveat.scanned > 0 && caveat.scanned < 4_000 && caveat.of === 4_000);
    assert.equal(archive.find("^r.. 0$", { mode: "regex" }).hits.length, 1);
  });

  it("reports a time limit that was too short to read what the index found", () => {
    const archive = createArchive();
    archive.say(Array.from({ length: 1_000 }, (_, index) => `beaver ${index}`));
    archive.index();
    let ms = 0;
    const { hits, caveats } = archive.find(
      "beaver",
      { sort: "relevance", limit: 50 },
      { deadlineMs: 1, nowMs: () => ms++ },
    );
    assert.equal(hits.length, 50);
    assert.ok(caveats.some((caveat) => caveat.kind === "time" && caveat.scanned === 50 && caveat.of === 1_000));
  });

  it("reports a time limit that was too short to read what is not indexed yet", () => {
    const archive = createArchive();
    archive.say("needle at the very start");
    archive.say(Array.from({ length: 999 }, () => "hay"));
    let ms = 0;
    const { hits, caveats } = archive.find("needle", {}, { deadlineMs: 4, nowMs: () => ms++ });
    assert.equal(hits.length, 0);
    assert.ok(caveats.some((caveat) => caveat.kind === "unindexed" && caveat.rows > 0 && caveat.rows < 1_000));
    assert.equal(archive.find("needle").hits.length, 1);
  });

  it("reports that no row contains every word, and the words that none contains", () => {
    const archive = createArchive();
    archive.say(["the beaver swam", "the otter slept"]);
    archive.index();
    const both = archive.find("beaver otter", { sort: "recency" });
    assert.deepEqual([both.hits.length, both.caveats], [2, [{ kind: "partial_match", missing: [] }]]);
    for (const sort of sorts) {
      const one = archive.find("beaver wombat", { sort });
      assert.deepEqual([one.hits.length, one.caveats], [1, [{ kind: "partial_match", missing: ["wombat"] }]], sort);
    }
    assert.deepEqual(archive.find("wombat numbat", { sort: "recency" }), { hits: [], caveats: [] });
  });

  it("reports that only some matches of frequent words were ranked", () => {
    const archive = createArchive();
    archive.say("x");
    // Only the index matters here, and a row of it costs little.
    archive.db.exec(`WITH RECURSIVE ids (id) AS (SELECT 2 UNION ALL SELECT id + 1 FROM ids WHERE id < 200100)
      INSERT INTO messages_fts (rowid, text) SELECT (1 << 24) + id, 'xconv1 beaver' FROM ids;
      WITH RECURSIVE ids (id) AS (SELECT 2 UNION ALL SELECT id + 1 FROM ids WHERE id < 200100)
      INSERT INTO messages
        (message_id, conversation_id, role, content, token_count, created_at, stored_at, message_key)
      SELECT (1 << 24) + id, 1, 'user', 'beaver', 1, '2026-01-01T00:00:00.000Z', '', id FROM ids;
      UPDATE conversations SET next_seq = 200101, indexed_seq = 200100, message_count = 200100`);
    const { hits, caveats } = archive.find("beaver", { scope: "messages" });
    assert.equal(hits.length, 20);
    assert.deepEqual(caveats, [
      { kind: "limit", limit: 20 },
      { kind: "newest_ranked", ranked: 200_000 },
    ]);
  });

  it("finds the best of very many, whatever its age", () => {
    const archive = createArchive();
    archive.say("x");
    const words = "iif(id IN (3, 1000, 2500, 4999), 'beaver otter', 'beaver')";
    archive.db.exec(`WITH RECURSIVE ids (id) AS (SELECT 2 UNION ALL SELECT id + 1 FROM ids WHERE id < 5000)
      INSERT INTO messages_fts (rowid, text) SELECT (1 << 24) + id, 'xconv1 ' || ${words} FROM ids;
      WITH RECURSIVE ids (id) AS (SELECT 2 UNION ALL SELECT id + 1 FROM ids WHERE id < 5000)
      INSERT INTO messages
        (message_id, conversation_id, role, content, token_count, created_at, stored_at, message_key)
      SELECT (1 << 24) + id, 1, 'user', ${words}, 1, '2026-01-01T00:00:00.000Z', '', id FROM ids;
      UPDATE conversations SET next_seq = 5001, indexed_seq = 5000, message_count = 5000`);
    const { hits } = archive.find("beaver otter", { scope: "messages", sort: "relevance", limit: 4 });
    assert.deepEqual(
      hits.map(({ snippet }) => snippet),
      Array.from({ length: 4 }, () => "beaver otter"),
    );
  });

  it("tests a regular expression on every row, however rows are chunked", () => {
    const archive = createArchive();
    for (let conversation = 1; conversation <= 3; conversation++)
      archive.say(
        Array.from({ length: 700 }, (_, index) => `row ${index} of ${conversation}`),
        { conversation },
      );
    for (const pattern of ["row 69\\d of", "w (?:69\\d|0) o", "ROW|row 0 of", "\\b0 of"]) {
      const expression = new RegExp(pattern, /[A-Z]/.test(pattern) ? "u" : "iu");
      for (const conversations of [undefined, [asConversation(2)], [asConversation(3), asConversation(1)]]) {
        const all = Array.from({ length: 2_100 }, (_, index) => ({
          text: `row ${index % 700} of ${Math.floor(index / 700) + 1}`,
          conversation: Math.floor(index / 700) + 1,
        }));
        const expected = all.filter(
          ({ text, conversation }) =>
            expression.test(text) && conversations?.every((id) => id !== conversation) !== true,
        );
        const found = archive.find(pattern, { mode: "regex", limit: 200, ...(conversations && { conversations }) });
        assert.deepEqual(
          found.hits.map((hit) => hit.snippet).toSorted(),
          expected
            .map(({ text }) => text)
            .toSorted()
            .slice(0, 200),
          pattern,
        );
      }
    }
  });
});

describe("guarantee 22: what the filter leaves of older rows is found", () => {
  const archive = createArchive();
  const rows = 13_000;
  const second = (n: number): Timestamp => at(new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString());
  /** So many are ranked at once; looking for older ones takes several pages. */
  const postings = 1_000;
  const [long, short, hidden] = [asConversation(1), asConversation(2), asConversation(3)];
  const fill = (conversation: number, from: number, to: number, text: string): void => {
    archive.say([], { conversation });
    archive.db
      .prepare(
        `WITH RECURSIVE seconds (n) AS (SELECT CAST(?1 AS INTEGER) UNION ALL SELECT n + 1 FROM seconds WHERE n + 1 < ?2)
         INSERT INTO messages (message_id, conversation_id, role, content, token_count, created_at, stored_at, message_key)
         SELECT (?3 << 24) + n + 1, ?3, 'user', ?4 || ' ' || n, 1,
                strftime('%Y-%m-%dT%H:%M:%S.000Z', '2026-01-01', n || ' seconds'), '', 'n' || n FROM seconds`,
      )
      .run(from, to, conversation, text);
  };
  archive.say("lost beaver of a later time", { at: second(rows + 60), conversation: 4 });
  fill(long, 0, 100, "beaver step");
  fill(short, 100, 120, "beaver aside");
  fill(long, 120, 9_000, "beaver step");
  archive.say("lost beaver among others", { at: second(3), conversation: 4 });
  fill(long, 9_000, rows - 1_100, "beaver step");
  fill(long, rows - 1_100, rows - 500, "wombat and beaver step");
  archive.say("lost beaver of an earlier time", { at: second(3), conversation: 4 });
  fill(hidden, rows - 500, rows, "beaver unseen");
  archive.say([], {});
  archive.db.exec("UPDATE conversations SET hidden = 1 WHERE conversation_id = 3");
  archive.index();

  const find = (
    more: Partial<SearchRequest>,
    pattern = "beaver",
    deadline = { deadlineMs: 60_000, nowMs: () => 0 },
  ) => {
    const { hits, caveats } = archive.find(pattern, { scope: "messages", ...more }, deadline, postings);
    return { snippets: hits.map((hit) => hit.snippet).toSorted(), times: hits.map((hit) => hit.at), caveats };
  };
  const steps = (from: number, to: number): readonly string[] =>
    Array.from({ length: to - from }, (_, index) => `beaver step ${from + index}`);

  it("in an old and short period, in any order of storing", () => {
    for (const sort of sorts) {
      const { snippets, caveats } = find({ sort, before: second(10) });
      assert.deepEqual(snippets, [...steps(0, 10), "lost beaver among others", "lost beaver of an earlier time"], sort);
      assert.deepEqual(caveats, [], sort);
      assert.deepEqual(find({ sort, since: second(rows) }), {
        snippets: ["lost beaver of a later time"],
        times: [second(rows + 60)],
        caveats: [],
      });
      assert.deepEqual(find({ sort, since: second(-9), before: second(0) }).caveats, []);
    }
  });

  it("in a conversation with few of the rows or most of them", () => {
    for (const sort of sorts) {
      const inShort = find({ sort, conversations: [short], before: second(103) });
      assert.deepEqual(inShort.snippets, ["beaver aside 100", "beaver aside 101", "beaver aside 102"], sort);
      const inLong = find({ sort, conversations: [long], since: second(95), before: second(125) });
      assert.deepEqual(inLong.snippets, [...steps(95, 100), ...steps(120, 125)].toSorted(), sort);
      assert.deepEqual([...inShort.caveats, ...inLong.caveats], [], sort);
    }
  });

  it("below newer ones that are hidden", () => {
    for (const sort of sorts) {
      const { hits, caveats } = archive.find("beaver", { sort, limit: 5 }, undefined, 100);
      assert.deepEqual([hits.length, hits.some((hit) => hit.conversation === hidden)], [5, false], sort);
      assert.equal(caveatKinds(caveats)[0], "limit", sort);
    }
  });

  it("by a frequent word, if the rare ones are outside the period", () => {
    for (const sort of sorts) {
      const { snippets, caveats } = find({ sort, since: second(1), before: second(3) }, "wombat beaver");
      assert.deepEqual(snippets, steps(1, 3), sort);
      assert.deepEqual(caveatKinds(caveats), ["partial_match"], sort);
    }
    const [from, to] = [rows - 1_102, rows - 1_099];
    assert.deepEqual(
      find({ sort: "relevance", since: second(from), before: second(to) }, "wombat beaver").snippets,
      [...steps(from, to - 1), `wombat and beaver step ${to - 1}`],
      "each once",
    );
  });

  it("newest first, up to the limit", () => {
    const { times, caveats } = find({ sort: "recency", limit: 3, before: second(4_000) });
    assert.deepEqual(times, [second(3_999), second(3_998), second(3_997)]);
    assert.deepEqual(caveats, [{ kind: "limit", limit: 3 }]);
  });

  it("and unranked rows are reported only if there are some", () => {
    const ranked = (more: Partial<SearchRequest>) => find({ sort: "relevance", ...more }).caveats.slice(1);
    assert.deepEqual(ranked({ before: second(100) }), []);
    assert.deepEqual(ranked({ before: second(10), limit: 3 }), []);
    assert.deepEqual(ranked({ before: second(4_000), limit: 40 }), [{ kind: "newest_ranked", ranked: 422 }]);
    assert.deepEqual(ranked({ conversations: [long], since: second(rows - 950) }), []);
    assert.deepEqual(ranked({ conversations: [long] }), [{ kind: "newest_ranked", ranked: 1_000 }]);
  });

  it("or the time limit is reported, however short it was", () => {
    for (const sort of sorts) {
      const whole = find({ sort, before: second(10) }, "beaver step");
      let furthest = 0;
      for (let deadlineMs = 1; deadlineMs < 20; deadlineMs++) {
        let ms = 0;
        const found = find({ sort, before: second(10) }, "beaver step", { deadlineMs, nowMs: () => ms++ });
        const [caveat] = found.caveats;
        if (caveat?.kind !== "time") assert.deepEqual(found, whole, `${sort} within ${deadlineMs}`);
        else {
          assert.deepEqual(caveatKinds(found.caveats), ["time"]);
          assert.ok(caveat.scanned < caveat.of, `${caveat.scanned} of ${caveat.of}`);
          furthest = Math.max(furthest, caveat.scanned);
        }
      }
      assert.ok(furthest > 5_000, `${sort} got to ${furthest}`);
    }
  });
});

describe("scope", () => {
  const archive = createArchive();
  archive.say("the beaver of the first", { conversation: 1, at: "2026-03-01T00:00:00.000Z" });
  archive.say("the beaver of the second", { conversation: 2, at: "2026-03-02T00:00:00.000Z" });
  archive.say("the beaver of the third", { conversation: 3, at: "2026-03-03T00:00:00.000Z" });
  archive.say("a note on the beaver", { conversation: 1, at: "2026-03-04T00:00:00.000Z", aside: "note" });
  archive.say("xconv2 beaver forged", { conversation: 4, at: "2026-03-05T00:00:00.000Z" });
  archive.summarise("beaver from the 1st to the 3rd", "2026-03-01T00:00:00.000Z", "2026-03-03T00:00:00.000Z", 2);
  archive.db.exec("UPDATE conversations SET hidden = 1 WHERE conversation_id = 3");
  const modes = [
    { mode: "regex", sort: "recency" },
    { mode: "full_text", sort: "recency" },
    { mode: "full_text", sort: "hybrid" },
  ] as const;
  const check = (what: string, more: Partial<SearchRequest>, expected: readonly string[]): void => {
    for (const state of ["before indexing", "indexed"]) {
      it(`${what}, ${state}`, () => {
        if (state === "indexed") archive.index();
        for (const mode of modes)
          assert.deepEqual(
            archive.snippets("beaver", { ...mode, ...more }).toSorted(),
            expected.toSorted(),
            `${mode.mode} by ${mode.sort}`,
          );
      });
    }
  };
  const [first, second, third] = [asConversation(1), asConversation(2), asConversation(3)];

  check("excludes hidden conversations and notes", {}, [
    "the beaver of the first",
    "the beaver of the second",
    "xconv2 beaver forged",
  ]);
  check("is messages only", { scope: "messages", conversations: [second] }, ["the beaver of the second"]);
  check("is summaries only", { scope: "summaries" }, ["beaver from the 1st to the 3rd"]);
  check("is one conversation, even one that is hidden", { conversations: [third] }, ["the beaver of the third"]);
  check("is several conversations", { scope: "messages", conversations: [first, third] }, [
    "the beaver of the first",
    "the beaver of the third",
  ]);
  check("is no conversation if the list is empty", { conversations: [] }, []);
  check("since is inclusive", { scope: "messages", since: at("2026-03-02T00:00:00.000Z") }, [
    "the beaver of the second",
    "xconv2 beaver forged",
  ]);
  check("before is exclusive", { scope: "messages", before: at("2026-03-02T00:00:00.000Z") }, [
    "the beaver of the first",
  ]);
  check(
    "a summary matches by overlap",
    { scope: "summaries", since: at("2026-03-03T00:00:00.000Z"), before: at("2026-04-01T00:00:00.000Z") },
    ["beaver from the 1st to the 3rd"],
  );
  check("a summary outside the time does not", { scope: "summaries", since: at("2026-03-03T00:00:00.001Z") }, []);
});

describe("order", () => {
  it("by recency is newest first, and only rows with every word if there are any", () => {
    const archive = createArchive();
    archive.say(["old beaver dam", "a beaver alone", "new beaver dam", "a dam alone"]);
    archive.index();
    assert.deepEqual(archive.snippets("beaver dam", { sort: "recency" }), ["new beaver dam", "old beaver dam"]);
    assert.deepEqual(archive.snippets("beaver", { mode: "regex" }), [
      "new beaver dam",
      "a beaver alone",
      "old beaver dam",
    ]);
  });

  it("never puts a summary in a message's place: with scope both, summaries are listed apart", () => {
    const archive = createArchive();
    archive.say("old beaver", { at: "2026-03-01T00:00:00.000Z" });
    archive.say("new beaver", { at: "2026-03-03T00:00:00.000Z" });
    for (let index = 0; index < 7; index++)
      archive.summarise("beaver beaver", "2026-03-01T00:00:00.000Z", "2026-03-04T00:00:00.000Z");
    archive.index();
    for (const mode of ["regex", "full_text"] as const) {
      for (const sort of mode === "regex" ? (["recency"] as const) : sorts) {
        const { hits, summaries = [], caveats } = archive.find("beaver", { mode, sort, limit: 2 });
        assert.deepEqual(hits.map(({ snippet }) => snippet).toSorted(), ["new beaver", "old beaver"], sort);
        assert.deepEqual([summaries.length, caveats], [5, []], sort);
        assert.equal(archive.find("beaver", { mode, sort, scope: "summaries" }).hits.length, 7, sort);
      }
    }
    assert.deepEqual(archive.find("beaver", { scope: "messages" }).summaries, undefined);
  });

  describe("by recency is by time, in any order of storing:", () => {
    const archive = createArchive();
    const numbered = (count: number, what: string): readonly string[] =>
      Array.from({ length: count }, (_, index) => `needle ${what} ${index + 1}`);
    archive.say(numbered(60, "new"), { conversation: 1 });
    archive.say(numbered(3_000, "old"), { conversation: 2, at: "2020-01-01T00:00:00.000Z" });
    archive.summarise("needle summed up late", "2026-02-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z", 1);
    for (let index = 0; index < 5; index++)
      archive.summarise("needle summed up early", "2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z", 2);
    const newest = ["needle new 60", "needle new 59", "needle new 58"];
    const check = (what: string, expected: readonly string[], more: Partial<SearchRequest>): void => {
      it(what, () => {
        archive.index();
        for (const mode of ["regex", "full_text"] as const) {
          const found = archive.find("needle", { mode, sort: "recency", limit: 3, scope: "messages", ...more });
          assert.deepEqual(
            found.hits.map((hit) => hit.snippet),
            expected,
            mode,
          );
          assert.deepEqual(found.caveats, [{ kind: "limit", limit: 3 }], mode);
        }
      });
    };
    const [first, second] = [asConversation(1), asConversation(2)];
    check("of all conversations", newest, {});
    check("of named conversations", newest, { conversations: [first, second] });
    check("in a period", newest, { since: at("2019-01-01T00:00:00.000Z") });
    check("before a time", ["needle new 9", "needle new 8", "needle new 7"], {
      before: at("2026-01-01T00:10:00.000Z"),
    });
    check("in one conversation", ["needle old 3000", "needle old 2999", "needle old 2998"], {
      conversations: [second],
    });
    check("with summaries apart", newest, { scope: "both" });
    check("of summaries", ["needle summed up late", "needle summed up early", "needle summed up early"], {
      scope: "summaries",
    });

    it("also if an older conversation has the newest message", () => {
      archive.say("needle newest", { conversation: 1 });
      archive.index();
      for (const mode of ["regex", "full_text"] as const)
        assert.deepEqual(archive.snippets("needle", { mode, sort: "recency", limit: 3, scope: "messages" }), [
          "needle newest",
          "needle new 60",
          "needle new 59",
        ]);
    });

    it("and a time limit that was too short is reported", () => {
      let ms = 0;
      const impatient = { deadlineMs: 10_000, nowMs: () => 1_000 * ms++ };
      const request = { mode: "regex", limit: 3, scope: "messages" } as const;
      archive.say(numbered(300, "old again"), { conversation: 3, at: "2020-01-01T00:00:00.000Z" });
      const { hits, caveats } = archive.find("needle", request, impatient);
      assert.deepEqual([hits.length, caveatKinds(caveats)], [3, ["limit", "time"]]);
    });

    it("and rows that were not looked at are reported", () => {
      const crowded = createArchive();
      const many = (conversation: number, from: number, to: number): string =>
        `WITH RECURSIVE ids (id) AS (SELECT ${from} UNION ALL SELECT id + 1 FROM ids WHERE id < ${to})
         INSERT INTO messages
           (message_id, conversation_id, role, content, token_count, created_at, stored_at, message_key)
         SELECT (${conversation} << 24) + id, ${conversation}, 'user', 'needle', 1, '2020-01-01T00:00:00.000Z', '', id FROM ids;
         UPDATE conversations SET next_seq = ${to + 1} WHERE conversation_id = ${conversation};`;
      crowded.say("x", { conversation: 1, at: "2020-01-01T00:00:00.000Z" });
      crowded.db.exec(many(1, 2, 25_000));
      crowded.say("needle new", { conversation: 1 });
      crowded.say("x", { conversation: 2, at: "2020-01-01T00:00:00.000Z" });
      crowded.db.exec(many(2, 25_003, 28_000));
      crowded.index();
      const { hits, caveats } = crowded.find("needle", { sort: "recency", limit: 3, scope: "messages" });
      assert.deepEqual([hits[0]?.snippet, caveatKinds(caveats)], ["needle new", ["limit", "newest_ranked"]]);
      assert.equal(crowded.snippets("needle", { mode: "regex", limit: 3 })[0], "needle new");
    });
  });

  it("by recency is by time among few rows too", () => {
    const archive = createArchive();
    archive.say("needle new", { conversation: 1 });
    archive.say(
      Array.from({ length: 100 }, () => "needle old"),
      { conversation: 2, at: "2020-01-01T00:00:00.000Z" },
    );
    archive.index();
    assert.deepEqual(archive.snippets("needle", { sort: "recency", limit: 2 }), ["needle new", "needle old"]);
  });

  it("by relevance prefers rare words, and more of them", () => {
    const archive = createArchive();
    archive.say(Array.from({ length: 20 }, () => "the beaver swam here alone"));
    archive.say(["the otter swam here alone", "hay", "hay", "hay", "hay", "the otter met the beaver"]);
    archive.index();
    const [best, next] = archive.snippets("beaver otter", { sort: "relevance" });
    assert.deepEqual([best, next], ["the otter met the beaver", "the otter swam here alone"]);
  });

  it("by hybrid prefers the newer of equals", () => {
    const archive = createArchive();
    archive.say(["the beaver swam", "the beaver swam", "hay"]);
    archive.index();
    assert.deepEqual(
      archive.find("beaver").hits.map((hit) => hit.kind === "message" && hit.seq),
      [2, 1],
    );
  });

  it("finds a reply through its question", () => {
    const archive = createArchive();
    archive.say([
      "Ann: Good morning!",
      "Bob: Which instrument do you play?",
      "Ann: The clarinet, since I was ten.",
      "Bob: I bought a car.",
      "Ann: Oh.",
    ]);
    archive.say(Array.from({ length: 30 }, (_, index) => `Bob: hay ${index}`));
    archive.index();
    const found = archive.snippets("What instrument does Ann play?", { sort: "relevance" });
    assert.ok(found.slice(0, 2).includes("Ann: The clarinet, since I was ten."), found.join("\n"));
    assert.deepEqual(archive.snippets("instrument", { sort: "relevance" }), ["Bob: Which instrument do you play?"]);
  });

  it("prefers the speaker whom the question names, by `Name:` or by the message's name", () => {
    const archive = createArchive();
    archive.say(["Bob: I painted a sunrise", "hay", "hay", "hay", "Ann: I painted a sunrise"]);
    archive.say("I painted a sunrise", { conversation: 2, envelope: '{"role":"user","name":"Carol"}' });
    archive.index();
    const first = (pattern: string): unknown =>
      archive
        .find(pattern, { sort: "relevance" })
        .hits.map((hit) => hit.kind === "message" && `${hit.conversation}/${hit.seq}`)[0];
    assert.equal(first("What did Ann paint, a sunrise?"), "1/5");
    assert.equal(first("What did Bob paint, a sunrise?"), "1/1");
    assert.equal(first("What did Carol paint, a sunrise?"), "2/1");
  });

  it("prefers the date that the question names", () => {
    const archive = createArchive();
    for (const day of ["2023-05-07", "2023-05-08", "2023-06-08", "2022-05-08"])
      archive.say("we went camping", {
        conversation: Number(day.slice(5, 7)) * 100 + Number(day.slice(8)),
        at: `${day}T10:00:00.000Z`,
      });
    archive.index();
    assert.equal(
      archive.find("Who went camping on 8 May 2023?", { sort: "relevance" }).hits[0]?.at,
      "2023-05-08T10:00:00.000Z",
    );
  });
});

describe("a hit", () => {
  it("shows the stored text around the match", () => {
    const archive = createArchive();
    const text = `${"hay ".repeat(500)}the beaver built a dam${" hay".repeat(500)}`;
    archive.say(text);
    archive.index();
    for (const [pattern, mode] of [
      ["beaver dam", "full_text"],
      ["built\\s+a", "regex"],
    ] as const) {
      const [snippet = ""] = archive.snippets(pattern, { mode });
      assert.match(snippet, /the beaver built a dam/);
      assert.ok(snippet.length <= 240);
    }
  });
});

describe("the index", () => {
  it("follows a row that is rewritten or deleted", () => {
    const archive = createArchive();
    const id = archive.say("the beaver swam");
    archive.say("hay");
    archive.index();
    archive.db.prepare("UPDATE messages SET content = 'the otter swam' WHERE message_id = ?").run(id);
    archive.run(reindexRow("messages", id, "the otter swam"));
    assert.deepEqual([archive.snippets("otter"), archive.snippets("beaver")], [["the otter swam"], []]);
    archive.db.prepare("DELETE FROM messages WHERE message_id = ?").run(id);
    archive.run(reindexRow("messages", id, null));
    assert.deepEqual(archive.find("otter"), { hits: [], caveats: [] });
  });

  it("has one entry per row, even if the row is rewritten before it is indexed", () => {
    const archive = createArchive();
    const id = archive.say("the beaver swam");
    archive.run(reindexRow("messages", id, "the beaver swam"));
    archive.index();
    assert.equal(
      archive.db.prepare("SELECT count(*) AS n FROM messages_fts WHERE messages_fts MATCH 'beaver'").get()?.["n"],
      1,
    );
  });

  it("is built in batches that return how many rows remain", () => {
    const archive = createArchive();
    archive.say(["one", "two", "three"]);
    archive.summarise("four", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z");
    assert.deepEqual([archive.index(2), archive.index(2), archive.index(2)], [2, 0, 0]);
  });
});
