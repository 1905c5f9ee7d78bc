import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { openSqlite } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import type { SearchCaveat } from "../model/store.ts";
import { caveatSentence, grep } from "./grep.ts";
import { reachOf } from "./scope.ts";
import { findConversation } from "../model/find-conversation.ts";

const folder = makeScratch("recall");
const store = await openSqlite({ path: join(folder, "lcm.db"), housekeeping: false });
after(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("guarantee 22: a search reports what it left out", () => {
  const caveats: readonly (readonly [SearchCaveat, RegExp, RegExp?])[] = [
    [
      { kind: "limit", limit: 20 },
      /more than 20 matches; raise --limit to see more, up to 200/,
      /; raise limit to see more, up to 200/,
    ],
    [
      { kind: "limit", limit: 200 },
      /than 200 matches; narrow the search with --since, --before/,
      /; narrow .* since, before/,
    ],
    [
      { kind: "time", timeoutMs: 500, scanned: 12_000, of: 90_000 },
      /time limit of 0\.5 s after 12,000 of 90,000 rows.*matches may be missing; raise --timeout/,
      /matches may be missing; narrow .* since, before/,
    ],
    [
      { kind: "time", timeoutMs: 10_000, scanned: 0, of: 0 },
      /time limit of 10 s after an unknown number of rows, so matches may be missing/,
    ],
    [{ kind: "newest_ranked", ranked: 200_000 }, /only 200,000 matches were ranked, newest conversations first/],
    [{ kind: "partial_match", missing: [] }, /^no match contains all of these words$/],
    [{ kind: "partial_match", missing: ["red"] }, /^no match contains "red"$/],
    [{ kind: "partial_match", missing: ["red", "fox"] }, /^no match contains all of "red", "fox"$/],
    [{ kind: "as_words", words: "red fox" }, /as a regular expression; searched for the words "red fox" instead$/],
    [{ kind: "files", files: 1 }, /1 large file .* to search its contents$/],
    [{ kind: "files", files: 2 }, /2 large files .*; pass --scope files to search/, /; set scope to files to search/],
    [{ kind: "unreadable", files: 1 }, /1 file could not be read, so matches may be missing/],
    [{ kind: "unindexed", rows: 1 }, /1 row not indexed yet/],
  ];
  for (const [caveat, sentence, toModel = sentence] of caveats) {
    it(`describes ${JSON.stringify(caveat)} to people and to models`, () => {
      assert.match(caveatSentence(caveat, "flags"), sentence);
      assert.match(caveatSentence(caveat, "arguments"), toModel);
      assert.doesNotMatch(caveatSentence(caveat, "arguments"), /--/);
    });
  }
});

describe("guarantee 25: a search stays within its reach", () => {
  it("finds only what is in the family, unless a wider reach is requested", async () => {
    for (const agentId of ["one", "two"]) {
      const { id } = await store.open({ sessionId: agentId, sessionKey: `agent:${agentId}:main`, agentId });
      const host = createHost(agentId);
      host.says(user(`the heron of ${agentId}`));
      await store.append(id, host.entries.map(toAppendable));
    }
    const [own] = await store.conversations({ agentId: "one" });
    const reader = { conversation: own?.id ?? assert.fail("it is there"), policy: "all" } as const;
    const found = async (asked: object): Promise<readonly string[]> => {
      const reach = await reachOf(store, reader, asked);
      return (await grep(store, { pattern: "heron", mode: "full_text", reach })).hits.map(({ snippet }) => snippet);
    };
    assert.deepEqual(await found({}), ["the heron of one"]);
    assert.equal((await found({ allConversations: true })).length, 2);
  });

  it("finds nothing if nothing may be read", async () => {
    const reach = { kind: "grant", conversations: [] } as const;
    for (const scope of ["messages", "summaries", "both", "files"] as const) {
      assert.deepEqual((await grep(store, { pattern: "heron", reach, scope })).hits, []);
    }
  });
});

describe("guarantee 22: files that were not searched", () => {
  it("are counted if they are text, but not if they are images", async () => {
    const { id } = await store.open({ sessionId: "filed" });
    const file = { conversation: id, name: null, mimeType: null, exploration: null } as const;
    await store.saveFile({ ...file, content: "a long text", encoding: "utf8" });
    await store.saveFile({ ...file, content: "AAAA", encoding: "base64" });
    const reach = { kind: "conversation", conversations: [id] } as const;
    const { caveats } = await grep(store, { pattern: "heron", mode: "full_text", reach });
    assert.deepEqual(caveats, [{ kind: "files", files: 1 }]);
  });
});

describe("matches of a pattern", () => {
  it("are returned once each, newest first, however many rows are read", async () => {
    const { id } = await store.open({ sessionId: "many" });
    const host = createHost("many");
    for (let at = 0; at < 70; at++) host.says(user(`curlew ${at}`));
    await store.append(id, host.entries.map(toAppendable));
    const reach = { kind: "all", conversations: null } as const;
    const { hits } = await grep(store, { pattern: "curlew \\d+", reach, limit: 200 });
    assert.deepEqual(
      hits.map(({ snippet }) => snippet),
      Array.from({ length: 70 }, (_, at) => `curlew ${69 - at}`),
    );
    const first = await grep(store, { pattern: "curlew \\d+", reach, limit: 3 });
    assert.deepEqual([first.hits, first.caveats[0]], [hits.slice(0, 3), { kind: "limit", limit: 3 }]);
  });
});

describe("a pattern without a mode", async () => {
  const { id } = await store.open({ sessionId: "modes" });
  const host = createHost("modes");
  const said = [
    "The worker took the payment, and on Monday its retry failed.",
    "ECONNRESET at config.threshold = 0.75 (see C:\\data\\work)",
  ];
  for (const text of said) host.says(user(text));
  await store.append(id, host.entries.map(toAppendable));
  const reach = { kind: "conversation", conversations: [id] } as const;
  const find = async (pattern: string) => {
    const { hits, caveats, mode } = await grep(store, { pattern, reach });
    return { mode, found: hits.map(({ snippet }) => said.indexOf(snippet)), caveats };
  };

  it("is words", async () => {
    const words = [
      ["payment worker retry", 0],
      ["config.threshold", 1],
      ["What failed on Monday?", 0],
      [String.raw`C:\data\work`, 1],
      [String.raw`\\server\share on Monday`, 0],
      ["payment (on Monday)?", 0],
      ["retry() failed", 0],
      ["fail*", 0],
      ["cat log | grep ECONNRESET", 1],
      ["[ERROR] ECONNRESET", 1],
      ["retries[0]?.payment", 0],
      ["C++ retry payment", 0],
      ["(payment|worker", 0],
    ] as const;
    for (const [pattern, found] of words) {
      const result = await find(pattern);
      assert.deepEqual([result.mode, result.found[0]], ["full_text", found], pattern);
      assert.ok(!result.caveats.some(({ kind }) => kind === "as_words"), pattern);
    }
  });

  it("is a regular expression if it is clearly one", async () => {
    const clear = [
      [String.raw`econn\w+`, [1]],
      [String.raw`config\.threshold.*0\.[0-9]+`, [1]],
      [String.raw`\bpay`, [0]],
      ["^the", [0]],
      [String.raw`work\)$`, [1]],
      ["[Ee]CONN", [1]],
      ["worker|threshold", [1, 0]],
      ["(?:re)?try", [0]],
      ["l{2}|N{2}", [1]],
      ["monday.*fail", [0]],
    ] as const;
    for (const [pattern, found] of clear)
      assert.deepEqual(await find(pattern), { mode: "regex", found, caveats: [] }, pattern);
  });

  it("is words again if that regular expression matches nothing, and the result says so", async () => {
    const fallen = [
      ["payment.*worker", "payment worker", 0],
      [String.raw`(?:retry|\d{3})\s+ECONN[A-Z]+payment$`, "retry ECONN payment", 0],
      ["worker's$", "worker's", 0],
      ["nowhere.*found", "nowhere found", undefined],
    ] as const;
    for (const [pattern, words, found] of fallen) {
      const result = await find(pattern);
      assert.deepEqual([result.mode, result.found[0]], ["full_text", found], pattern);
      assert.deepEqual(result.caveats[0], { kind: "as_words", words }, pattern);
    }
    for (const pattern of [String.raw`\d{5}`, String.raw`^\[\]$`])
      assert.deepEqual(await find(pattern), { mode: "regex", found: [], caveats: [] }, "it has no words");
  });

  it("stays what the mode says", async () => {
    const regex = await grep(store, { pattern: "payment.*worker", mode: "regex", reach });
    assert.deepEqual(regex, { hits: [], caveats: [], mode: "regex" });
    const words = await grep(store, { pattern: "payment.*worker", mode: "full_text", reach });
    assert.deepEqual([words.hits.length, words.mode], [1, "full_text"]);
  });
});

describe("the limit", () => {
  it("must be a whole number from 1 to 200", async () => {
    const reach = { kind: "grant", conversations: [] } as const;
    for (const limit of [1, 200]) assert.deepEqual((await grep(store, { pattern: "heron", reach, limit })).hits, []);
    for (const limit of [0, 201, 1.5, NaN])
      await assert.rejects(grep(store, { pattern: "heron", reach, limit }), { code: "invalid", hint: /narrow/ });
  });
});

describe("a conversation is found", () => {
  it("by its number, session key or session id; of several segments, the newest", async () => {
    const session = { sessionId: "777", sessionKey: "agent:main:called" };
    const before = await store.open(session);
    const { id } = await store.openSegment(session);
    assert.equal((await findConversation(store, String(before.id))).id, before.id);
    assert.equal((await findConversation(store, "agent:main:called")).id, id);
    assert.equal((await findConversation(store, "777")).id, id, "an unknown number may be a session id");
    await assert.rejects(findConversation(store, "999"), { code: "not_found" });
  });
});
