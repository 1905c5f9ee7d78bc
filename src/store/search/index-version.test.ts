import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import type { SearchResult, Store } from "../../core/model/store.ts";
import { openSqlite } from "../sqlite/store.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { termsVersion } from "./tokenize.ts";

const folder = makeScratch("index-version");
let made = 0;

/** A database whose index another version made: its entries have other terms, which no query finds. */
async function indexedBy(version: number, messages = 60): Promise<string> {
  const path = join(folder, `${made++}`, "lcm.db");
  const store = await openSqlite({ path, housekeeping: false });
  for (const sessionId of ["one", "two"]) {
    const { id } = await store.open({ sessionId });
    const host = createHost(sessionId);
    for (let turn = 0; turn < messages / 2; turn++) host.says(user(`beavers ${sessionId} ${turn}`));
    await store.append(id, host.entries.map(toAppendable));
  }
  assert.equal(await store.index(1_000_000), 0);
  await store.close();
  const db = new DatabaseSync(path);
  db.exec(`DROP TABLE messages_fts;
    CREATE VIRTUAL TABLE messages_fts USING fts5(text, content='', contentless_delete=1, tokenize='porter unicode61');
    INSERT INTO messages_fts (rowid, text) SELECT message_id, 'castor' FROM messages;
    UPDATE search_progress SET version = ${version}`);
  db.close();
  return path;
}

const request = { pattern: "beaver", mode: "full_text", scope: "both", sort: "relevance", limit: 200 } as const;
const find = async (store: Store): Promise<SearchResult> => await store.search(request);

async function withStore<T>(path: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openSqlite({ path, housekeeping: false });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const allFound = async (store: Store, messages = 60): Promise<void> => {
  const { hits, caveats } = await find(store);
  assert.deepEqual([hits.length, caveats], [messages, []]);
};

/** Every row has one entry, with the terms of this version. */
function assertIndexed(path: string, messages = 60): void {
  const db = new DatabaseSync(path, { readOnly: true });
  const countOf = (words: string): unknown => db.prepare(words).get()?.["n"];
  assert.equal(countOf("SELECT count(*) AS n FROM messages_fts WHERE messages_fts MATCH 'beaver'"), messages);
  assert.equal(countOf("SELECT count(*) AS n FROM messages_fts_docsize"), messages);
  assert.equal(countOf("SELECT max(version) AS n FROM search_progress"), termsVersion);
  db.close();
}

describe("an index made by an earlier version", () => {
  it("is replaced in batches, and search is complete before, meanwhile and afterwards", async () => {
    const path = await indexedBy(termsVersion - 1);
    await withStore(path, async (store) => {
      assert.equal((await store.status()).unindexed, 60);
      await allFound(store);
      for (let left = 60; left > 0; await allFound(store)) left = await store.index(7);
      assert.equal((await store.status()).unindexed, 0);
    });
    assertIndexed(path);
  });

  it("is replaced in the background, without any call", async () => {
    const path = await indexedBy(termsVersion - 1, 600);
    const store = await openSqlite({ path });
    await eventually(async () => (await store.status()).unindexed < 256);
    await store.index(1_000);
    await store.close();
    assertIndexed(path, 600);
  });

  it("is searched by a read-only process too, which changes nothing", async () => {
    const path = await indexedBy(termsVersion - 1);
    const store = await openSqlite({ path, readOnly: true });
    await allFound(store);
    assert.equal((await store.status()).unindexed, 60);
    await store.close();
  });

  it("is reported as a caveat while it is too large to be read instead", async () => {
    const path = await indexedBy(termsVersion - 1, 2_400);
    await withStore(path, async (store) => {
      assert.deepEqual((await find(store)).caveats, [
        { kind: "limit", limit: 200 },
        { kind: "unindexed", rows: 400 },
      ]);
      while ((await store.index(1_000)) > 0);
      assert.deepEqual((await find(store)).caveats, [{ kind: "limit", limit: 200 }]);
    });
  });

  it("is finished by the next process after a kill in the middle", async () => {
    const path = await indexedBy(termsVersion - 1, 600);
    const module = new URL("../sqlite/store.ts", import.meta.url).href;
    const child = spawn(process.execPath, [
      "--input-type=module",
      "--eval",
      `import { openSqlite } from ${JSON.stringify(module)};
       const store = await openSqlite({ path: ${JSON.stringify(path)}, housekeeping: false });
       for (;;) { await store.index(3); process.stdout.write("."); }`,
    ]);
    await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "exit");
    await withStore(path, async (store) => {
      const left = (await store.status()).unindexed;
      assert.ok(left > 0 && left < 600, `${left} rows left`);
      assert.equal((await find(store)).hits.length, 200);
      while ((await store.index(50)) > 0);
    });
    assertIndexed(path, 600);
  });

  it("is replaced once by two processes that index at the same time", async () => {
    const path = await indexedBy(termsVersion - 1);
    const finish = (store: Store) => async (): Promise<void> => {
      while ((await store.index(3)) > 0) await allFound(store);
    };
    await withStore(path, async (one) => {
      await withStore(path, async (other) => void (await Promise.all([finish(one)(), finish(other)()])));
    });
    assertIndexed(path);
  });
});

describe("an index made by a later version", () => {
  it("is left alone, and rows are read instead", async () => {
    const path = await indexedBy(termsVersion + 1);
    await withStore(path, async (store) => {
      await allFound(store);
      assert.equal(await store.index(100), 0);
      await allFound(store);
    });
    const db = new DatabaseSync(path, { readOnly: true });
    assert.equal(db.prepare("SELECT max(version) AS n FROM search_progress").get()?.["n"], termsVersion + 1);
    db.close();
  });
});
