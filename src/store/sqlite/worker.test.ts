import assert from "node:assert/strict";
import { once } from "node:events";
import { copyFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { LcmError } from "../../core/base/errors.ts";
import type { SearchRequest, SearchResult, Store } from "../../core/model/store.ts";
import { refuses } from "../../../test/store-contract/ground.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { openSqliteWorker } from "./worker.ts";

const runaway: SearchRequest = { pattern: "(a+)+$", mode: "regex", scope: "messages", sort: "recency", limit: 5 };
const sane: SearchRequest = { ...runaway, pattern: "needle" };
const caveatKinds = ({ caveats }: SearchResult): readonly string[] => caveats.map(({ kind }) => kind);

const scratch = makeScratch("worker");
const threads: Worker[] = [];
const noteThread = (worker: Worker): void => void threads.push(worker);
let databases = 0;

before(() => void process.on("worker", noteThread));
after(() => {
  process.off("worker", noteThread);
  rmSync(scratch, { recursive: true, force: true });
});

async function openFilled(): Promise<Store> {
  const store = await openSqliteWorker({ path: join(scratch, `${++databases}.db`) });
  const { id } = await store.open({ sessionId: "filled" });
  const host = createHost("w");
  for (const text of ["a needle", `${"a".repeat(50)}!`]) host.says(user(text));
  await store.append(id, host.entries.map(toAppendable));
  return store;
}

describe("a search thread that died", () => {
  it("is replaced, whether it was idle or busy", async () => {
    const store = await openFilled();
    try {
      await store.search(sane);
      await threads.at(-1)?.terminate();
      assert.equal((await store.search(sane)).hits.length, 1);

      const known = threads.length;
      const searching = refuses("unavailable", () => store.search(runaway, { timeoutMs: Infinity }));
      await sleep(50);
      assert.equal(threads.length, known);
      void threads.at(-1)?.terminate();
      await searching;
      assert.equal((await store.search(sane)).hits.length, 1);
    } finally {
      await store.close();
    }
  });
});

describe("the first search", () => {
  it("by words does not wait for the search thread to start, or depend on it; one by regular expression does", async () => {
    const store = await openFilled();
    const endAtOnce = (worker: Worker): void => void worker.terminate();
    process.on("worker", endAtOnce);
    try {
      const words = { ...sane, mode: "full_text" } as const;
      assert.equal((await store.search(words)).hits.length, 1);
      await refuses("unavailable", () => store.search(sane));
    } finally {
      process.off("worker", endAtOnce);
      await store.close();
    }
  });

  it("by words starts the thread, which makes the later ones", async () => {
    const store = await openFilled();
    try {
      const known = threads.length;
      const words = { ...sane, mode: "full_text" } as const;
      assert.equal((await store.search(words)).hits.length, 1);
      assert.equal(threads.length, known + 1);
      assert.equal((await store.search(sane)).hits.length, 1);
      assert.equal((await store.search(words)).hits.length, 1);
      assert.equal(threads.length, known + 1);
    } finally {
      await store.close();
    }
  });
});

describe("the write-ahead log", () => {
  const megabyte = 2 ** 20;

  it("is checkpointed as it grows, and completely on close, even with a search thread open", async () => {
    const path = join(scratch, `${++databases}.db`);
    const store = await openSqliteWorker({ path });
    const { id } = await store.open({ sessionId: "long" });
    const host = createHost("log");
    let most = 0;
    for (let turn = 0; turn < 60; turn++) {
      const stored = host.entries.length;
      host.says(user(`turn ${turn} ${"words ".repeat(megabyte / 24)}`));
      await store.append(id, host.entries.slice(stored).map(toAppendable));
      if (turn % 10 === 0) await store.search(sane);
      most = Math.max(most, statSync(`${path}-wal`).size);
    }
    assert.ok(most < 8 * megabyte, `${most} bytes of log`);
    await store.close();
    copyFileSync(path, `${path}.alone`);
    const alone = new DatabaseSync(`${path}.alone`, { readOnly: true });
    assert.equal(alone.prepare("SELECT count(*) AS count FROM messages").get()?.["count"], 60);
    alone.close();
  });
});

describe("guarantee 22, files: a runaway expression is stopped inside a file too", () => {
  it("at its limit, with a time caveat instead of no matches; the next search works", async () => {
    const store = await openFilled();
    try {
      const { id } = await store.open({ sessionId: "filled" });
      const file = { conversation: id, name: null, mimeType: null, encoding: "utf8", exploration: null } as const;
      await store.saveFile({ ...file, content: `a needle\n${"a".repeat(50)}!` });
      const stopped = await store.search({ ...runaway, scope: "files" }, { timeoutMs: 150 });
      assert.deepEqual([stopped.hits, caveatKinds(stopped)], [[], ["time"]]);
      assert.equal((await store.search({ ...sane, scope: "files" })).hits.length, 1);
    } finally {
      await store.close();
    }
  });
});

describe("a queued search", () => {
  it("can be cancelled at once", async () => {
    const store = await openFilled();
    const [one, other] = [new AbortController(), new AbortController()];
    try {
      const first = refuses("unavailable", () => store.search(runaway, { timeoutMs: 600_000, signal: one.signal }));
      const second = refuses("unavailable", () => store.search(sane, { signal: other.signal }));
      other.abort();
      await second; // While the first goes on.
      one.abort();
      await first;
      assert.equal((await store.search(sane)).hits.length, 1);
    } finally {
      await store.close();
    }
  });

  it("waits no longer than its limit, and reports a time caveat", async () => {
    const store = await openFilled();
    const controller = new AbortController();
    try {
      const first = refuses("unavailable", () =>
        store.search(runaway, { timeoutMs: 600_000, signal: controller.signal }),
      );
      const second = await store.search(sane, { timeoutMs: 50 });
      assert.deepEqual(second, { hits: [], caveats: [{ kind: "time", timeoutMs: 50, scanned: 0, of: 0 }] });
      controller.abort();
      await first;
      assert.equal((await store.search(sane)).hits.length, 1);
    } finally {
      await store.close();
    }
  });
});

describe("a limit longer than any timer", () => {
  for (const timeoutMs of [Infinity, 2 ** 31, 2 ** 31 - 1])
    it(`of ${timeoutMs} ms counts as no limit`, async () => {
      const store = await openFilled();
      try {
        const found = await store.search(sane, { timeoutMs });
        assert.deepEqual([found.hits.length, caveatKinds(found)], [1, []]);
      } finally {
        await store.close();
      }
    });
});

describe("a closed store", () => {
  it("refuses to search and starts no thread", async () => {
    const store = await openFilled();
    await store.search(sane);
    const closed = (error: unknown): boolean =>
      error instanceof LcmError && error.code === "unavailable" && error.message === "the store is closed";
    const under = assert.rejects(store.search(runaway, { timeoutMs: 600_000 }), closed);
    const queued = assert.rejects(store.search(sane), closed);
    const ended = once(threads.at(-1)!, "exit");
    await store.close();
    await Promise.all([under, queued, ended]);
    const started = threads.length;
    await assert.rejects(store.search(sane), closed);
    assert.equal(threads.length, started);
  });
});

describe("an argument that cannot be cloned", () => {
  it("is refused, and the store keeps working", async () => {
    const store = await openFilled();
    const uncloneable = (() => "x") as unknown as string;
    try {
      await refuses("invalid", () => store.open({ sessionId: uncloneable }));
      await refuses("invalid", () => store.search({ ...sane, pattern: uncloneable }));
      assert.equal((await store.search(sane)).hits.length, 1);
      assert.equal((await store.conversations()).length, 1);
    } finally {
      await store.close();
    }
  });
});

describe("a store whose thread", () => {
  it("was ended reports that it is closed, and one whose thread died reports that", async () => {
    const told = await openFilled();
    await told.close();
    await assert.rejects(told.status(), { code: "unavailable", message: "the store is closed" });
    const known = threads.length;
    const killed = await openFilled();
    await threads[known]?.terminate();
    await assert.rejects(killed.status(), { code: "unavailable", message: /ended unexpectedly/ });
    await killed.close().catch(() => undefined);
  });
});
