/** Contract: stored text is found at once and ever after, by the right reader. Ranking is tested elsewhere. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import type { ConversationId } from "../../src/core/model/types.ts";
import type { SearchRequest, Store } from "../../src/core/model/store.ts";
import { createHost, user } from "../support/scripted-host.ts";
import {
  findAll,
  ask,
  at,
  deliver,
  foldPlaces,
  further,
  itOn,
  newFile,
  numbered,
  onTalk,
  refuses,
  say,
} from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

const snippets = async (store: Store, request: SearchRequest): Promise<readonly string[]> =>
  (await findAll(store, request)).map(({ snippet }) => snippet).toSorted();

/** One empty, and two more; each of these has a message every second from :00 to :04, the first two folded. */
const told = further(onTalk, async ({ store }) => {
  const ids: number[] = [];
  for (const name of ["north", "south"]) {
    const talk = await store.open({ sessionId: name, sessionKey: `agent:main:${name}` });
    await say(store, talk, createHost(name), ...numbered(5, (index) => `${name} pangolin ${index}`));
    await foldPlaces(store, talk.id, [0, 1], `${name} pangolin summary`);
    ids.push(talk.id);
  }
  return { ids };
});

export function testSearch(subject: StoreUnderTest): void {
  const it = itOn(subject, told);

  describe("guarantee 22, store part: search covers all rows and reports what it left out", () => {
    it("rows are found before they are indexed, half-way through, and after", async ({ store }) => {
      const all = await snippets(store, ask("pangolin"));
      assert.equal(all.length, 12);
      for (let left = 12; left > 0; left = await store.index(3))
        assert.deepEqual(await snippets(store, ask("pangolin")), all, `${left} left`);
      assert.deepEqual(await snippets(store, ask("pangolin")), all);
      assert.deepEqual(await snippets(store, ask("pango.in", { mode: "regex" })), all);
      assert.deepEqual((await store.search(ask("pangolin"))).caveats, []);
    });

    it("finds what any wording finds, ranked together, and refuses wordings of a regular expression", async (scene) => {
      const { store, talk, host } = scene;
      await say(store, talk, host, "the numbat sleeps", "a wombat digs", "the quokka smiles", "nothing of the kind");
      while ((await store.index(1_000)) > 0);
      for (const sort of ["recency", "oldest", "relevance", "hybrid"] as const) {
        const asked = ask("numbat", { also: ["wombat digs", '"the quokka"'], sort });
        const { hits, caveats } = await store.search(asked);
        const found = hits.map(({ snippet }) => snippet).toSorted();
        assert.deepEqual([found, caveats], [["a wombat digs", "the numbat sleeps", "the quokka smiles"], []], sort);
        const phrase = await store.search(ask("numbat", { also: ['"quokka the"'], sort }));
        assert.deepEqual([phrase.hits.length, phrase.caveats], [1, []], `${sort}: a phrase binds its own wording`);
      }
      await refuses("invalid", () => store.search(ask("numbat", { mode: "regex", also: ["wombat"] })));
      await refuses("invalid", () => store.search(ask("numbat", { also: ["a", "b", "c", "d", "e", "f"] })));
    });

    it("corrects a word only if nothing in reach contains it, and says so", async ({ store, talk, host }) => {
      await say(store, talk, host, "my passport is in the drawer", "the pasport of a quoll", "a database of tea");
      while ((await store.index(1_000)) > 0);
      for (const sort of ["recency", "relevance", "hybrid"] as const) {
        const typed = await store.search(ask("databsae", { sort }));
        assert.deepEqual(typed.caveats, [{ kind: "corrected", words: [{ from: "databsae", to: "database" }] }], sort);
        assert.deepEqual(
          typed.hits.map(({ snippet }) => snippet),
          ["a database of tea"],
          sort,
        );
        const stored = await store.search(ask("pasport", { sort }));
        assert.deepEqual([stored.hits.length, stored.caveats], [1, []], sort);
      }
      assert.deepEqual((await store.search(ask("teabase"))).hits, [], "another word is not a typo");
    });

    it("corrects a word that only others in the same conversation use", async ({ store, talk, host }) => {
      host.says(user("every code has a block of its own"));
      host.says({ role: "assistant", content: "codeblocks are green" });
      await deliver(store, talk, host);
      while ((await store.index(1_000)) > 0);
      for (const sort of ["relevance", "hybrid"] as const) {
        const { hits, caveats } = await store.search(ask("codeblocks", { sort, roles: ["user"] }));
        assert.deepEqual([hits.length, caveats.map(({ kind }) => kind)], [1, ["corrected"]], sort);
        assert.deepEqual((await store.search(ask("codeblocks", { sort }))).caveats, [], sort);
      }
    });

    it("finds matches in an old, narrow time range behind thousands of later matches", async (scene) => {
      const { store, talk, host } = scene;
      await say(store, talk, host, ...numbered(2_500, (index) => `aardwolf ${index}`));
      while ((await store.index(1_000)) > 0);
      const [, second] = await store.messages({ conversation: talk.id, limit: 2 });
      const before = second?.at ?? assert.fail();
      for (const sort of ["recency", "relevance", "hybrid"] as const) {
        const { hits, caveats } = await store.search(ask("aardwolf", { sort, before }));
        assert.deepEqual([hits.map(({ snippet }) => snippet), caveats], [["aardwolf 0"], []], sort);
      }
    });

    it("narrows a search to roles, and to what is after and before a message, in every mode and order", async (scene) => {
      const { store, talk, host } = scene;
      for (let index = 0; index < 30; index++) {
        host.says(user(`quoll question ${index}`));
        host.says({ role: "assistant", content: `quoll answer ${index}` });
      }
      await deliver(store, talk, host);
      const messages = await store.messages({ conversation: talk.id });
      const [after, before] = [messages[10], messages[17]];
      assert.ok(after !== undefined && before !== undefined);
      for (const isIndexed of [false, true]) {
        if (isIndexed) while ((await store.index(1_000)) > 0);
        for (const mode of ["full_text", "regex"] as const)
          for (const sort of ["recency", "oldest", "relevance", "hybrid"] as const) {
            const found = async (more: Partial<SearchRequest>) =>
              (await store.search(ask("quoll", { mode, sort, limit: 60, ...more }))).hits.map(({ id }) => id);
            const ids = async (more: Partial<SearchRequest>) =>
              (await found(more)).map(Number).toSorted((a, b) => a - b);
            const users = messages.filter(({ role }) => role === "user").map(({ id }) => id);
            assert.deepEqual(await ids({ roles: ["user"] }), users);
            assert.equal((await found({ roles: ["user", "assistant"] })).length, 60);
            assert.deepEqual(await found({ roles: ["tool"] }), []);
            const between: Partial<SearchRequest> = { afterId: after.id, beforeId: before.id };
            assert.deepEqual(
              await ids(between),
              messages.slice(11, 17).map(({ id }) => id),
            );
            assert.deepEqual(await ids({ ...between, roles: ["user"] }), [
              messages[12]?.id,
              messages[14]?.id,
              messages[16]?.id,
            ]);
          }
      }
    });

    it("oldest puts the first matches first, over all conversations", async ({ store }) => {
      while ((await store.index(1_000)) > 0);
      for (const mode of ["full_text", "regex"] as const) {
        const search = async (sort: SearchRequest["sort"], limit: number) =>
          (await store.search(ask("pangolin", { mode, sort, limit, scope: "messages" }))).hits.map(
            ({ at: time }) => time,
          );
        const newest = await search("recency", 50);
        assert.deepEqual(await search("oldest", 50), newest.toReversed());
        assert.deepEqual(await search("oldest", 3), newest.toReversed().slice(0, 3));
      }
    });

    it("reports large texts in files as not searched, where they belong to the searched conversations", async (scene) => {
      const { store, ids } = scene;
      const [north, south] = ids.map((id) => id as ConversationId);
      assert.ok(north !== undefined && south !== undefined);
      const message = { key: "old", at: at("2019-05-06T07:08:09.010Z") };
      await store.saveFile(newFile(north, "a text with an aardvark in it", { message }));
      for (const mode of ["full_text", "regex"] as const) {
        const request = ask("aardvark", { mode });
        assert.deepEqual((await store.search(request)).caveats, [{ kind: "files", files: 1 }]);
        assert.deepEqual((await store.search({ ...request, conversations: [south] })).caveats, []);
        assert.deepEqual((await store.search({ ...request, scope: "summaries" })).caveats, []);
        assert.deepEqual((await store.search({ ...request, before: message.at })).caveats, []);
        assert.deepEqual((await store.search({ ...request, since: message.at })).caveats.length, 1);
      }
      await store.setHidden(north, true);
      assert.deepEqual((await store.search(ask("aardvark"))).caveats, []);
    });

    it("a search never finds the tool call that asked for it; what was said beside the call comes last", async (scene) => {
      const { store, talk, host } = scene;
      const input = { pattern: "wombat burrow depth" };
      const words = { role: "assistant", stopReason: "toolUse" };
      host.says(user("How deep do they dig? A wombat digs."));
      host.says({ ...words, content: [{ type: "toolCall", id: "c1", name: "lcm_grep", arguments: input }] });
      host.says({ ...words, content: [{ type: "tool_use", id: "c2", name: "mcp__lcm__lcm_grep", input }] });
      const calling = { name: "lcm_expand_query", arguments: JSON.stringify(input, null, 2) };
      host.says({ ...words, content: null, tool_calls: [{ id: "c3", type: "function", function: calling }] });
      host.says({
        ...words,
        content: [
          { type: "text", text: "Let me see what a wombat does." },
          { type: "toolCall", id: "c4", name: "lcm_grep", arguments: input },
          { type: "toolCall", id: "c5", name: "shell", arguments: { command: "echo wombat" } },
        ],
      });
      host.says(user("It is a marsupial."));
      await deliver(store, talk, host);
      for (const isIndexed of [false, true]) {
        if (isIndexed) while ((await store.index(1_000)) > 0);
        for (const more of [
          { mode: "regex" },
          { sort: "recency" },
          { sort: "hybrid" },
          { sort: "relevance" },
        ] as const) {
          const { hits } = await store.search(ask("wombat", more));
          const found = hits.map(({ snippet }) => snippet);
          const shown = `${JSON.stringify(more)} ${isIndexed}`;
          const beside = 'Let me see what a wombat does. shell {"command":"echo wombat"}';
          const said = "How deep do they dig? A wombat digs.";
          assert.deepEqual(found, "sort" in more && more.sort === "recency" ? [beside, said] : [said, beside], shown);
        }
        assert.deepEqual(await store.search(ask("burrow")), { hits: [], caveats: [] });
        assert.deepEqual(await store.search(ask("burrow depth", { mode: "regex" })), { hits: [], caveats: [] });
        const asked = await store.search(ask("How deep is a wombat burrow?", { sort: "hybrid" }));
        assert.ok(asked.hits.every(({ snippet }) => snippet !== "" && !snippet.includes("pattern")));
        const missing = { kind: "partial_match", missing: ["burrow"] };
        for (const sort of ["hybrid", "recency"] as const)
          assert.deepEqual(
            (await store.search(ask("wombat burrow", { sort }))).caveats,
            [missing],
            `${isIndexed} ${sort}`,
          );
      }
    });

    it("results of recall tools rank after everything else, and are found", async ({ store, ids }) => {
      const talk = await store.conversation(ids[0] as ConversationId);
      assert.ok(talk !== null);
      const host = createHost("later");
      for (let index = 0; index < 5; index++)
        host.says({
          role: "toolResult",
          toolName: "lcm_grep",
          toolCallId: `c${index}`,
          content: "pangolin, a pangolin",
        });
      const call = { id: "c5", type: "tool_use", name: "mcp__lcm__lcm_grep", input: { pattern: "x" } };
      const found = "1 match.\nmsg_1-1 · user\n> pangolin, a pangolin";
      host.says({ role: "assistant", content: [call] });
      host.says({ role: "user", content: [{ type: "tool_result", tool_use_id: "c5", content: found }] });
      const asked = { id: "c6", type: "function", function: { name: "lcm_grep", arguments: "{}" } };
      host.says({ role: "assistant", content: null, tool_calls: [asked] });
      host.says({ role: "tool", tool_call_id: "c6", content: found });
      await deliver(store, talk, host);
      for (const more of [{ mode: "regex" }, { sort: "hybrid" }, { sort: "relevance" }] as const) {
        const { hits } = await store.search(ask("pangolin", { ...more, scope: "messages" }));
        const recalled = hits.map(({ snippet }) => snippet.includes("pangolin, a pangolin"));
        assert.deepEqual([recalled.indexOf(true), recalled.length], [10, 17], JSON.stringify(more));
        assert.ok(recalled.slice(10).every(Boolean));
        const few = await store.search(ask("pangolin", { ...more, scope: "messages", limit: 4 }));
        assert.ok(few.hits.every(({ snippet }) => !snippet.includes("pangolin, a")));
      }
    });

    it("reports that there are more matches than requested", async ({ store }) => {
      for (const mode of ["full_text", "regex"] as const) {
        const { hits, caveats } = await store.search(ask("pangolin", { mode, limit: 5 }));
        assert.equal(hits.length, 5);
        assert.deepEqual(caveats, [{ kind: "limit", limit: 5 }], mode);
      }
    });

    it("gives the reason for an invalid pattern and a limit out of bounds, and no result", async ({ store }) => {
      await refuses("invalid", () => store.search(ask("(unclosed", { mode: "regex" })));
      await refuses("invalid", () => store.search(ask("...", { mode: "full_text" })));
      for (const limit of [0, 201, 1.5]) await refuses("invalid", () => store.search(ask("pangolin", { limit })));
      await refuses("unavailable", () => store.search(ask("pangolin"), { signal: AbortSignal.abort() }));
      assert.equal((await findAll(store, ask("pangolin"))).length, 12);
    });

    it("a runaway expression is stopped at its limit, in whichever thread; later hits are kept, and the next search works", async (scene) => {
      const { store, talk, host } = scene;
      await say(store, talk, host, `${"a".repeat(60)}!`, "a later match: aaaa");
      const { hits, caveats } = await store.search(ask("(a+)+$", { mode: "regex", limit: 2 }), { timeoutMs: 400 });
      assert.ok(hits.every(({ snippet }) => snippet === "a later match: aaaa"));
      assert.deepEqual(
        caveats.map(({ kind }) => kind),
        ["time"],
      );
      assert.equal((await findAll(store, ask("pango.in", { mode: "regex" }))).length, 12);
    });

    it("an expression that needs too much memory for a text is refused with that reason", async (scene) => {
      const { store, talk, host } = scene;
      await say(store, talk, host, `zz ${"ab\n".repeat(2_000_000)}`);
      await assert.rejects(store.search(ask(String.raw`zz(.|\s)*q`, { mode: "regex" })), {
        code: "unavailable",
        message: /too much memory/,
      });
      assert.equal((await findAll(store, ask("pango.in", { mode: "regex" }))).length, 12);
    });

    it("no match means no hit and no caveat", async ({ store }) => {
      for (const mode of ["full_text", "regex"] as const)
        assert.deepEqual(await store.search(ask("wombat", { mode })), { hits: [], caveats: [] });
    });
  });

  describe("searching", () => {
    it("in one conversation, in messages or summaries alone, and not in hidden ones", async ({ store, ids }) => {
      const [north] = (await store.conversations({ sessionId: "north" })).map(({ id }) => id);
      assert.ok(north !== undefined && north === ids[0]);
      for (const mode of ["full_text", "regex"] as const) {
        assert.equal(
          (await snippets(store, ask("pangolin", { mode, conversations: [north] }))).filter((text) =>
            text.startsWith("north"),
          ).length,
          6,
        );
        assert.equal((await snippets(store, ask("pangolin", { mode, conversations: [north] }))).length, 6);
        assert.equal((await snippets(store, ask("pangolin", { mode, scope: "messages" }))).length, 10);
        assert.deepEqual(await snippets(store, ask("pangolin", { mode, scope: "summaries" })), [
          "north pangolin summary",
          "south pangolin summary",
        ]);
      }
      await store.setHidden(north, true);
      for (const mode of ["full_text", "regex"] as const) {
        const shown = await snippets(store, ask("pangolin", { mode }));
        assert.ok(shown.length === 6 && shown.every((text) => text.startsWith("south")));
      }
    });

    it("since is inclusive, before is exclusive, and a summary matches by overlap", async ({ store }) => {
      const since = at("2026-02-17T07:37:01.000Z");
      const before = at("2026-02-17T07:37:03.000Z");
      for (const mode of ["full_text", "regex"] as const) {
        assert.deepEqual(await snippets(store, ask("north", { mode, since, before })), [
          "north pangolin 1",
          "north pangolin 2",
          "north pangolin summary",
        ]);
        assert.deepEqual(await snippets(store, ask("north", { mode, since: before })), [
          "north pangolin 3",
          "north pangolin 4",
        ]);
      }
    });

    it("a hit reports what it is and where", async ({ store, ids }) => {
      const [hit] = (await store.search(ask("south", { scope: "messages", limit: 1 }))).hits;
      assert.ok(hit?.kind === "message");
      assert.deepEqual([hit.conversation, hit.role, hit.seq, hit.at], [ids[1], "user", 5, "2026-02-17T07:37:04.000Z"]);
      const [above] = (await store.search(ask("south", { scope: "summaries" }))).hits;
      assert.ok(above?.kind === "summary");
      assert.equal(above.depth, 0);
    });

    it("finds messages on an abandoned branch", async ({ store, talk, host }) => {
      host.says(user("the root"));
      host.says(user("numbat was said here"));
      host.goesBackTo("h-1");
      await say(store, talk, host, "and not here");
      assert.equal((await store.search(ask("numbat"))).hits.length, 1);
    });
  });
}
