import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SearchRequest } from "../../core/model/store.ts";
import { asConversation } from "../rows.ts";
import { reindexRow } from "./indexing.ts";
import { createArchive, at, sorts, caveatKinds } from "../../../test/support/search-archive.ts";

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

  it("by time is rows with most of the words if none has every word, however many have one", () => {
    const archive = createArchive();
    const weak = Array.from({ length: 50 }, (_, at) => `a theme ${at}`);
    archive.say(["the theme crash exploded", ...weak, "a crash of the theme exploded again", ...weak]);
    archive.index();
    const words = "theme crash exploded yesterday";
    const both = ["a crash of the theme exploded again", "the theme crash exploded"];
    assert.deepEqual(archive.snippets(words, { sort: "recency", limit: 10 }), both);
    assert.deepEqual(archive.snippets(words, { sort: "oldest", limit: 10 }), both.toReversed());
  });

  it("finds two words that a message writes as one, whatever the order of results", () => {
    const archive = createArchive();
    archive.say(["which colour have the codeblocks", "a block of wood, not code that runs", "the code"]);
    archive.index();
    for (const sort of sorts)
      assert.ok(archive.snippets("code block colour", { sort }).includes("which colour have the codeblocks"), sort);
    assert.deepEqual(archive.snippets("code blocks colour", { sort: "recency" }), ["which colour have the codeblocks"]);
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
