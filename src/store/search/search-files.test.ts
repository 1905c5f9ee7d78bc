import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId, StoredFile } from "../../core/model/types.ts";
import type { SearchRequest } from "../../core/model/store.ts";
import { searchFiles } from "./search-files.ts";
import type { Deadline } from "./limits.ts";
import type { Timestamp } from "../../core/base/time.ts";

const modes = ["regex", "full_text"] as const;

const ask = (pattern: string, more: Partial<SearchRequest> = {}): SearchRequest => ({
  pattern,
  mode: "full_text",
  scope: "files",
  sort: "recency",
  limit: 50,
  ...more,
});

/** Files by name, newest first, each a day older than the one before. */
const filesOf = (names: readonly string[]): readonly StoredFile[] =>
  names.map((name, age) => ({
    id: "file_0000000000000000",
    conversation: 1 as ConversationId,
    name,
    mimeType: null,
    bytes: 0,
    lines: null,
    encoding: "utf8",
    storageUri: name,
    exploration: null,
    createdAt: new Date(Date.UTC(2026, 1, 17) - age * 86_400_000).toISOString() as Timestamp,
    messageKey: null,
  }));

const never: Deadline = { deadlineMs: 60_000, nowMs: () => 0 };

async function find(texts: Readonly<Record<string, string>>, request: SearchRequest, deadline = never) {
  const { hits, caveats } = await searchFiles(request, deadline, filesOf(Object.keys(texts)), async ({ name }) =>
    Promise.resolve(texts[name ?? ""] ?? assert.fail()),
  );
  const places = hits.map((hit) => (hit.kind === "file" ? hit : assert.fail()));
  return { hits: places, caveats, at: places.map(({ name, line }) => `${name}:${line}`) };
}

/** So far apart that two of them are two places. */
const apart = `\n${"lorem ipsum ".repeat(200)}\n`;
const repeated = (text: string, times: number): string => Array.from({ length: times }, () => text).join(apart);

describe("guarantee 22, files: a match is found anywhere in a text", () => {
  it("on the first and the last line, with any line ends, and without one", async () => {
    for (const mode of modes) {
      assert.deepEqual((await find({ f: "quokka\nb\nc" }, ask("quokka", { mode }))).at, ["f:1"]);
      assert.deepEqual((await find({ f: "a\r\nb\r\n\r\nquokka" }, ask("quokka", { mode }))).at, ["f:4"]);
      assert.deepEqual((await find({ f: "\n\nquokka\n" }, ask("quokka", { mode }))).at, ["f:3"]);
      const oneLine = `{${'"key":"value",'.repeat(200_000)}"quokka":1}`;
      const { at, hits } = await find({ f: oneLine }, ask("quokka", { mode }));
      assert.deepEqual(at, ["f:1"]);
      assert.match(hits[0]?.snippet ?? "", /^….*quokka":1\}$/);
    }
    assert.deepEqual(await find({ f: "" }, ask("quokka")), { hits: [], caveats: [], at: [] });
    assert.deepEqual((await find({ f: "" }, ask("^$", { mode: "regex" }))).at, ["f:1"]);
  });

  it("a phrase is whole in some window however the text is cut, and is one hit", async () => {
    const long = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
    for (const phrase of ["quick quokka jumps", long])
      for (const filler of ["x", "lorem ", "a line of prose\n", "数", "é ", "a\n"])
        for (let before = 0; before < 900; before += 11) {
          const spread = phrase.replaceAll(" ", before % 2 === 0 ? "\n" : ",  ");
          const text = `${filler.repeat(before)} ${spread} ${filler.repeat(300)}`;
          const { at, caveats } = await find({ f: text }, ask(`"${phrase}"`));
          assert.deepEqual([at.length, caveats], [1, []], `${filler} ${before}`);
        }
  });

  it("a match in two windows is one hit", async () => {
    for (let before = 0; before < 1_500; before += 7) {
      const text = `${"lorem ".repeat(before / 6)} the quick quokka jumps ${"ipsum ".repeat(300)}`;
      const { at } = await find({ f: text }, ask("quick quokka jumps", { sort: "relevance" }));
      assert.equal(at.length, 1, `${before}`);
    }
  });

  it("a regular expression finds the same in pieces as in the whole text", async () => {
    const long = "lorem ipsum dolor\n".repeat(130_000);
    const text = `${long}first quokka\nsecond quokka\n${long}end`;
    const line = 130_001;
    const atLines = async (pattern: string) => (await find({ f: text }, ask(pattern, { mode: "regex" }))).at;
    assert.deepEqual(await atLines("^.*quokka$"), [`f:${line}`, `f:${line + 1}`]);
    assert.deepEqual(await atLines(String.raw`first quokka\nsecond`), [`f:${line}`]);
    assert.deepEqual(await atLines(String.raw`\s+SECOND`.toLowerCase()), [`f:${line + 1}`]);
    assert.deepEqual(await atLines("quokka[^x]*end"), [`f:${line}`]);
    assert.deepEqual(await atLines("^end$"), [`f:${2 * 130_000 + 3}`]);
  });

  it("a required literal ignores case if the expression does", async () => {
    for (const text of ["QUOKKA", "quo\u212a\u212aa", "the ſtring"])
      assert.deepEqual((await find({ f: text }, ask("quokka|string", { mode: "regex" }))).at, ["f:1"], text);
    assert.deepEqual((await find({ f: "the ſTRING" }, ask("string", { mode: "regex" }))).at, ["f:1"]);
  });

  it("words are found in every form and script, as in messages", async () => {
    for (const [text, query] of [
      ["die Straße nach Zürich", "zurich"],
      ["ＦＵＬＬ width", "full"],
      ["relational databases", "relate database"],
      ["our policies", "policy"],
      ["config.maxRetryCount = 3", "retry"],
      ["see src/store/search/search.ts", "src/store/search/search.ts"],
    ] as const)
      for (const sort of ["recency", "relevance"] as const)
        assert.deepEqual((await find({ f: text }, ask(query, { sort }))).at, ["f:1"], query);
  });
});

describe("hits in files", () => {
  it("matches side by side are one hit; matches on separate lines are several", async () => {
    const regex = { mode: "regex" } as const;
    assert.deepEqual((await find({ f: "quokka quokka quokka\nquokka" }, ask("quokka", regex))).at, ["f:1", "f:2"]);
    assert.deepEqual((await find({ f: "a\nb\n\nc" }, ask("x*", regex))).at, ["f:1", "f:2", "f:3", "f:4"]);
  });

  it("one file does not fill the result, unless there is nothing else", async () => {
    const texts = { many: repeated("quokka", 30), few: repeated("quokka", 2), one: "quokka" };
    for (const mode of modes)
      for (const sort of ["recency", "relevance", "hybrid"] as const) {
        const counts = async (limit: number) => {
          const { at, caveats } = await find(texts, ask("quokka", { mode, sort, limit }));
          const of = (name: string): number => at.filter((place) => place.startsWith(`${name}:`)).length;
          return [of("many"), of("few"), of("one"), caveats.map(({ kind }) => kind).join()];
        };
        assert.deepEqual(await counts(8), [5, 2, 1, "limit"]);
        assert.deepEqual(await counts(10), [7, 2, 1, "limit"]);
        assert.deepEqual(await counts(33), [30, 2, 1, ""]);
      }
  });

  it("recency puts the newest file first, and the hits of a file from the top", async () => {
    const texts = { newer: repeated("quokka", 3), older: "quokka" };
    for (const mode of modes) {
      const { at } = await find(texts, ask("quokka", { mode }));
      assert.deepEqual(at, ["newer:1", "newer:3", "newer:5", "older:1"]);
    }
  });

  it("relevance puts the best hit first; hybrid prefers the newer of equals", async () => {
    const texts = { newest: "a quokka", best: "the quokka and the numbat", oldest: "a quokka" };
    for (const sort of ["relevance", "hybrid"] as const) {
      const { at, hits } = await find(texts, ask("quokka numbat", { sort }));
      assert.deepEqual(at, ["best:1", "newest:1", "oldest:1"]);
      const [best = 0, newest = 0, oldest = 0] = hits.map(({ score }) => score);
      assert.ok(best > newest && (sort === "hybrid" ? newest > oldest : newest === oldest), sort);
    }
  });

  it("a common word counts less than a rare one", async () => {
    const texts = { common: repeated("payment payment payment", 20), rare: "payment by numbat" };
    assert.equal((await find(texts, ask("payment numbat", { sort: "relevance" }))).at[0], "rare:1");
  });

  it("line and snippet are those of the words that weigh most", async () => {
    const [far] = (await find({ f: `payment ${apart} payment of the numbat` }, ask("numbat payment"))).hits;
    assert.equal(far?.line, 3);
    assert.match(far?.snippet ?? "", /payment of the numbat$/);
  });
});

describe("a hit in a file shows whole lines", () => {
  const shown = async (text: string, pattern: string, mode: SearchRequest["mode"] = "full_text") =>
    (await find({ f: text }, ask(pattern, { mode }))).hits.map(({ line, snippet }) => [line, snippet]);

  it("unchanged, from the first line of the match to its last", async () => {
    const code = "one\n\tif (quokka) {\n\t\tsleep();\n\t}\nlast";
    assert.deepEqual(await shown(code, "qu.kka", "regex"), [[2, "\tif (quokka) {"]]);
    assert.deepEqual(await shown(code, "quokka sleep"), [[2, "\tif (quokka) {\n\t\tsleep();"]]);
    assert.deepEqual(await shown(code, "sleep[^]*last", "regex"), [[3, "\t\tsleep();\n\t}\nlast"]]);
    assert.deepEqual(await shown("a\r\nthe quokka\r\nb", "quokka"), [[2, "the quokka"]]);
  });

  it("as many as fit; of a long line, the part around the match", async () => {
    const long = "x ".repeat(90);
    assert.deepEqual(await shown(`the quokka ${long}\n${long}numbat`, "quokka [^]*numbat", "regex"), [
      [1, `the quokka ${long}`],
    ]);
    const [[, snippet] = []] = await shown(`before\n${long}${long}quokka\nbehind`, "quokka");
    assert.match(String(snippet), /^…x x .*x quokka$/);
  });
});

describe("guarantee 22, files: a result reports what it leaves out", () => {
  it("words that were not found, or not found together", async () => {
    const partial = (missing: readonly string[]) => [{ kind: "partial_match", missing }];
    const texts = { a: "the quokka", b: "the numbat" };
    for (const sort of ["recency", "relevance"] as const)
      assert.deepEqual((await find(texts, ask("quokka wombat", { sort }))).caveats, partial(["wombat"]));
    assert.deepEqual((await find(texts, ask("quokka numbat"))).caveats, partial([]));
    assert.deepEqual((await find(texts, ask("wombat quoll"))).caveats, []);
    const together = await find({ ...texts, c: "numbat, quokka" }, ask("quokka numbat"));
    assert.deepEqual([together.at, together.caveats], [["c:1"], []]);
  });

  it("a phrase is required in the file, not in each hit", async () => {
    const texts = { both: `quick quokka ${apart} lazy numbat`, one: "quick quokka", none: "quokka quick" };
    for (const sort of ["recency", "relevance"] as const)
      assert.deepEqual(
        new Set((await find(texts, ask('"quick quokka" "lazy numbat"', { sort }))).at),
        new Set(["both:1", "both:3"]),
      );
  });

  it("files beyond the time limit, with the number searched; earlier hits are kept", async () => {
    const texts = { a: "quokka", b: "quokka", c: "quokka" };
    for (const mode of modes) {
      let reads = 0;
      const deadline: Deadline = { deadlineMs: 2_000, nowMs: () => 1_000 * reads };
      const result = await searchFiles(ask("quokka", { mode }), deadline, filesOf(Object.keys(texts)), async () => {
        reads += 1;
        return await Promise.resolve(reads < 2 ? "quokka" : `${"x\n".repeat(2_000_000)}quokka`);
      });
      assert.equal(result.hits.length, 1);
      assert.deepEqual(result.caveats, [{ kind: "time", timeoutMs: 2_000, scanned: 1, of: 3 }]);
    }
  });

  it("the time limit ends a search in the middle of a large file", async () => {
    for (const mode of modes) {
      let looks = 0;
      const deadline: Deadline = { deadlineMs: 4_000, nowMs: () => 1_000 * looks++ };
      const text = `quokka\n${"lorem ipsum\n".repeat(1_000_000)}quokka`;
      const { at, caveats } = await find({ f: text }, ask("quokka", { mode }), deadline);
      assert.deepEqual(at, ["f:1"]);
      assert.deepEqual(
        caveats.map((caveat) => (caveat.kind === "time" ? [caveat.scanned, caveat.of] : caveat.kind)),
        [[0, 1]],
      );
    }
  });

  it("files that cannot be read; other errors are not hidden", async () => {
    const search = async (error: Error) =>
      await searchFiles(ask("quokka"), never, filesOf(["a", "b"]), () => {
        throw error;
      });
    assert.deepEqual(await search(new LcmError("unavailable", "gone")), {
      hits: [],
      caveats: [{ kind: "unreadable", files: 2 }],
    });
    await assert.rejects(() => search(new TypeError("a bug")), TypeError);
  });
});
