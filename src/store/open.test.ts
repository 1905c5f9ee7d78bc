import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import type { SearchRequest, Store } from "../core/model/store.ts";
import { refuses } from "../../test/store-contract/ground.ts";
import { createHost, toAppendable, user } from "../../test/support/scripted-host.ts";
import { usePostgres } from "../../test/support/shared-postgres.ts";
import { openStore } from "./open.ts";

const runaway: SearchRequest = { pattern: "(a+)+$", mode: "regex", scope: "messages", sort: "recency", limit: 5 };
const needle: SearchRequest = { ...runaway, pattern: "needle" };

const server = await usePostgres();

describe("a search on a server, in a program that runs on", () => {
  let store: Store;

  before(async () => {
    store = await openStore(`${server.url}?schema=searched`);
    const { id } = await store.open({ sessionId: "filled" });
    const host = createHost("w");
    for (const text of ["a needle", `${"a".repeat(50)}!`]) host.says(user(text));
    await store.append(id, host.entries.map(toAppendable));
  });
  after(async () => await store.close());

  it("ends at its limit, and this thread is free meanwhile", async () => {
    assert.equal((await store.search(needle)).hits.length, 1);
    let turns = 0;
    const ticking = setInterval(() => (turns += 1), 10);
    const { caveats } = await store.search(runaway, { timeoutMs: 1_500 });
    clearInterval(ticking);
    assert.deepEqual(
      caveats.map(({ kind }) => kind),
      ["time"],
    );
    assert.ok(turns > 20, `${turns} timers fired`);
    assert.equal((await store.search(needle)).hits.length, 1, "the next search is answered");
  });

  it("can be cancelled in the middle of a match", async () => {
    const stop = new AbortController();
    const searching = refuses("unavailable", () => store.search(runaway, { timeoutMs: Infinity, signal: stop.signal }));
    await sleep(50);
    stop.abort();
    await searching;
    assert.equal((await store.search(needle)).hits.length, 1);
  });

  it("searches files by regular expression as well", async () => {
    const conversation = (await store.conversations())[0]?.id;
    assert.ok(conversation !== undefined);
    await store.saveFile({
      conversation,
      name: "log.txt",
      mimeType: "text/plain",
      content: "first line\nerror E1234 here\n",
      encoding: "utf8",
      exploration: null,
    });
    const { hits } = await store.search({ ...needle, scope: "files", pattern: "E\\d{4}" });
    assert.equal(hits.length, 1);
  });
});
