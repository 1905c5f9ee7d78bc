import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LcmError } from "../../core/base/errors.ts";
import type { SearchRequest, SearchResult } from "../../core/model/store.ts";
import { asConversation } from "../rows.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { createArchive, at, sorts, caveatKinds } from "../../../test/support/search-archive.ts";

/** How many messages and summaries a search found. */
const countOf = ({ hits, summaries = [] }: SearchResult): number => hits.length + summaries.length;

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
