/** How often an operation waits for the server: what a machine pays for each millisecond between it and the database. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Timestamp } from "../src/core/base/time.ts";
import type { ConversationId } from "../src/core/model/types.ts";
import { reads, writes } from "../src/store/operations.ts";
import { readAddress } from "../src/store/postgres/address.ts";
import { openPool, type Pool } from "../src/store/postgres/pool.ts";
import { createRunner, type Runner } from "../src/store/postgres/runner.ts";
import { openPostgres } from "../src/store/postgres/store.ts";
import { noLeftovers, type Script, type ScriptDeps } from "../src/store/script.ts";
import { createSearchIndex } from "../src/store/postgres/search-index.ts";
import { search } from "../src/store/search/search.ts";
import { foldPlaces, numbered } from "./store-contract/ground.ts";
import { startPostgres, type PostgresServer } from "./support/postgres-server.ts";
import { makeScratch } from "./support/scratch.ts";
import { createHost, toAppendable, user } from "./support/scripted-host.ts";

let server: PostgresServer;
let pool: Pool;
let runner: Runner;
let id: ConversationId;
const waited: number[] = [];
const host = createHost("h");
const turn = () => numbered(4, (n) => `said ${n}`).map((text) => toAppendable(host.says(user(text))));
const deps: ScriptDeps = {
  now: () => "2026-11-18T12:00:00.000Z" as Timestamp,
  hex16: () => crypto.randomUUID().replaceAll("-", "").slice(0, 16),
  leftovers: noLeftovers,
};

before(async () => {
  server = await startPostgres();
  const address = readAddress(`${server.url}?schema=trips`);
  const store = await openPostgres({
    url: `${server.url}?schema=trips`,
    filesDir: join(makeScratch("trips"), "files"),
  });
  ({ id } = await store.open({ sessionId: "s" }));
  for (let n = 0; n < 20; n++) await store.append(id, turn());
  await foldPlaces(store, id, [0, 19], "what was said at first");
  while ((await store.index(1_000)) > 0);
  await store.close();
  pool = await openPool(address, 2);
  const onEnd = (roundTrips: number): void => void waited.push(roundTrips);
  runner = createRunner({ pool, schema: address.schema, lockTimeoutMs: 5_000, onEnd });
});
after(async () => {
  await pool.end();
  await server.stop();
});

async function tripsOf(call: () => Promise<unknown>): Promise<number> {
  waited.length = 0;
  await call();
  return waited.reduce((sum, trips) => sum + trips, 0);
}
const writing = async (script: () => Script<unknown>): Promise<number> =>
  await tripsOf(async () => await runner.write(id, script));
const reading = async (script: () => Script<unknown>): Promise<number> =>
  await tripsOf(async () => await runner.read(script));

describe("waits for the server", () => {
  it("are three for a rare word: what is searched, where the word is, and what is there", async () => {
    const limits = { deadlineMs: Infinity, nowMs: () => 0 };
    const request = { mode: "full_text", scope: "both", sort: "relevance", limit: 20 } as const;
    const trips = async (pattern: string): Promise<number> =>
      await reading(() => search(createSearchIndex("trips"), { ...request, pattern }, limits));
    assert.equal(await trips("first"), 3);
    assert.equal(await trips("why was that at first"), 4, "and the turns around them");
  });

  it("are two for a turn: what is there, and that it is stored", async () => {
    const said = turn();
    assert.equal(await writing(() => writes.append(deps, id, said, { turnKey: "t1" })), 2);
    assert.equal(await writing(() => writes.append(deps, id, said, { turnKey: "t1" })), 2);
  });

  it("are the same for a turn of a hundred messages", async () => {
    const said = numbered(25, () => "").flatMap(turn);
    assert.equal(await writing(() => writes.append(deps, id, said)), 2);
  });

  it("are one for each part of a prompt, and four in a row for all of it", async () => {
    const items = await runner.read(() => reads.context(id, { limit: 50, keep: "newest" }));
    const messages = items.flatMap((item) => (item.kind === "message" ? [item.id] : []));
    const summaries = (await runner.read(() => reads.context(id, { kind: "summary" }))).map((item) => item.id as never);
    const parts = [
      await reading(() => reads.conversation(id)),
      await reading(() => reads.context(id, { limit: 50, keep: "newest" })),
      await reading(() => reads.messages({ ids: messages })),
      await reading(() => reads.summaries({ ids: summaries })),
      await reading(() => reads.sources(summaries)),
    ];
    assert.deepEqual(parts, [1, 1, 1, 1, 1]);
    // Messages, summaries and their sources are read at the same time.
    assert.equal(await reading(() => reads.pins(id, { inForce: true, limit: 64 })), 1);
  });

  it("are two for a fold: whether the run is unchanged, and that the summary is stored", async () => {
    const run = await runner.read(() => reads.context(id, { kind: "message", limit: 20 }));
    const summary = {
      text: "in short",
      tokens: 2,
      level: "normal",
      fileIds: [],
      model: null,
      previousContext: null,
    } as const;
    assert.equal(await writing(() => writes.fold(deps, id, run, summary)), 2);
  });
});
