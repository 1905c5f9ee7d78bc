/** Runs the store contract on every store, and tests what SQLite in particular must not do to its host. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { bundledThread } from "./support/bundled-thread.ts"; // First, so that the store finds it.
import type { Conversation } from "../src/core/model/types.ts";
import type { SearchRequest, Store } from "../src/core/model/store.ts";
import { openSqliteWorker } from "../src/store/sqlite/worker.ts";
import { openSqlite } from "../src/store/sqlite/store.ts";
import { threadUrl } from "../src/store/sqlite/thread.ts";
import { refuses } from "./store-contract/ground.ts";
import { busyThread, extraLag } from "./support/lag.ts";
import { makeScratch } from "./support/scratch.ts";
import { createHost, toAppendable, user } from "./support/scripted-host.ts";
import { sqlite } from "./store-contract/sqlite.ts";
import { testStore } from "./store-contract/suite.ts";

assert.equal(threadUrl.href, bundledThread, "the store was loaded before the bundle was made");
testStore("SQLite in this thread", sqlite);
testStore("SQLite in a separate thread", { ...sqlite, open: async (path) => await openSqliteWorker({ path }) });

const stores = {
  "SQLite in this thread": async (path: string) => await openSqlite({ path }),
  "SQLite in a separate thread": async (path: string) => await openSqliteWorker({ path }),
} as const;

/** How much a store may delay its host's timers. */
const lagMs = 20;

const withFolder = async (test: (folder: string) => Promise<void>): Promise<void> => {
  const folder = makeScratch("store");
  try {
    await test(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

async function fill(store: Store, messages: number, text: (index: number) => string): Promise<Conversation> {
  const conversation = await store.open({ sessionId: "filled" });
  const host = createHost("f");
  for (let index = 0; index < messages; index++) host.says(user(text(index)));
  for (let from = 0; from < messages; from += 1_000) {
    await store.append(conversation.id, host.entries.slice(from, from + 1_000).map(toAppendable));
  }
  return conversation;
}

// ── The host's thread ────────────────────────────────────────────────────────────────────────────────────────────────

/** Another process that takes the write lock and releases it when it is told to. */
async function startLocker(path: string) {
  const code = `
    const { DatabaseSync } = require("node:sqlite");
    const db = new DatabaseSync(process.argv[1], { timeout: 60_000 });
    process.stdin.on("data", (sql) => {
      db.exec(String(sql));
      console.log("done");
    });
    process.stdin.on("end", () => db.close());`;
  const child = spawn(process.execPath, ["-e", code, path], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const say = async (sql: string): Promise<void> => {
    const done = once(child.stdout, "data");
    child.stdin.write(sql);
    await Promise.race([done, ended.then(() => assert.fail("the other process has ended"))]);
  };
  return {
    lock: async () => await say("BEGIN IMMEDIATE"),
    release: async () => await say("ROLLBACK"),
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}

type Locker = Awaited<ReturnType<typeof startLocker>>;

async function withLocker(path: string, test: (locker: Locker) => Promise<void>): Promise<void> {
  const locker = await startLocker(path);
  try {
    await test(locker);
  } finally {
    await locker.end();
  }
}

describe("guarantee 10, store part: the host's event loop is free", () => {
  const lockedMs = 1_000;

  for (const [name, open] of Object.entries(stores)) {
    it(`while another process holds the write lock (${name})`, async () => {
      await withFolder(async (folder) => {
        const path = join(folder, "lcm.db");
        const store = await open(path);
        try {
          const { id } = await fill(store, 10, (index) => `message ${index}`);
          const host = createHost("late");
          const append = async (locker: Locker): Promise<void> => {
            await locker.lock();
            let isStored = false;
            const appended = store.append(id, [toAppendable(host.says(user("said while it was locked")))]);
            void appended.finally(() => (isStored = true));
            assert.ok((await store.context(id)).length >= 10, "reading goes on");
            await sleep(lockedMs);
            assert.equal(isStored, false, "the append waits for the lock");
            await locker.release();
            assert.equal((await appended).messages.length, 1);
          };
          // The same calls while another file is locked.
          const appendBeside = async (locker: Locker): Promise<void> => {
            await locker.lock();
            const appended = store.append(id, [toAppendable(host.says(user("said while it was locked")))]);
            await store.context(id);
            await appended;
            await sleep(lockedMs);
            await locker.release();
          };
          await withLocker(join(folder, "other.db"), async (beside) => {
            await withLocker(path, async (locker) => {
              const lag = await extraLag(
                async () => await appendBeside(beside),
                async () => await append(locker),
                lagMs,
              );
              assert.ok(lag <= lagMs, `a timer was ${lag} ms later than it is without`);
            });
          });
          assert.equal(
            (await store.messages({ conversation: id })).filter(({ text }) => text === "said while it was locked")
              .length,
            host.entries.length,
          );
        } finally {
          await store.close();
        }
      });
    });
  }

  it("and a turn that reports its prompt budget again waits for no lock", async () => {
    await withFolder(async (folder) => {
      const path = join(folder, "lcm.db");
      const store = await openSqlite({ path });
      try {
        const { id } = await store.open({ sessionId: "s" });
        await store.setPromptBudget(id, 5_000);
        await withLocker(path, async (locker) => {
          await locker.lock();
          await store.setPromptBudget(id, 5_000); // The lock is released only after it.
          await locker.release();
        });
      } finally {
        await store.close();
      }
    });
  });

  it("a lock that is never released ends in `unavailable`, not in endless waiting", async () => {
    await withFolder(async (folder) => {
      const path = join(folder, "lcm.db");
      const store = await openSqlite({ path, busyTimeoutMs: 200 });
      await withLocker(path, async (locker) => {
        await locker.lock();
        await refuses("unavailable", () => store.open({ sessionId: "s" }));
        await locker.release();
      });
      assert.equal((await store.open({ sessionId: "s" })).sessionId, "s");
      await store.close();
    });
  });

  it("while a search takes long", async () => {
    await withFolder(async (folder) => {
      const store = await openSqliteWorker({ path: join(folder, "lcm.db") });
      try {
        await fill(store, 5, () => `${"a".repeat(40)}!`);
        const forMs = 700;
        const lag = await extraLag(
          () => busyThread(forMs),
          () =>
            store.search(
              { pattern: "(a+)+$", mode: "regex", scope: "messages", sort: "recency", limit: 5 },
              { timeoutMs: forMs },
            ),
          lagMs,
        );
        assert.ok(lag <= lagMs, `a timer was ${lag} ms later than beside any other busy thread`);
      } finally {
        await store.close();
      }
    });
  });
});

describe("guarantee 22, worker part: a runaway expression is stopped, and the stop is reported", () => {
  const runaway: SearchRequest = { pattern: "(a+)+$", mode: "regex", scope: "messages", sort: "recency", limit: 5 };
  const sane: SearchRequest = { ...runaway, pattern: "needle" };
  let folder = "";
  let store: Store;

  before(async () => {
    folder = makeScratch("runaway");
    store = await openSqliteWorker({ path: join(folder, "lcm.db") });
    await fill(store, 50, (index) => (index === 7 ? "a needle" : `${"a".repeat(50)}!`));
  });
  after(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("at its limit, as a caveat about time and not as no matches; the next search works", async () => {
    for (let time = 0; time < 3; time++) {
      const { hits, caveats } = await store.search(runaway, { timeoutMs: 150 });
      assert.deepEqual(hits, []);
      assert.deepEqual(
        caveats.map(({ kind }) => kind),
        ["time"],
      );
      const next = await store.search(sane);
      assert.deepEqual([next.hits.length, next.caveats], [1, []]);
    }
  });

  it("by its caller, at once; the next search works", async () => {
    const controller = new AbortController();
    const searching = refuses("unavailable", () =>
      store.search(runaway, { timeoutMs: 600_000, signal: controller.signal }),
    );
    await sleep(100);
    controller.abort();
    await searching;
    assert.equal((await store.search(sane)).hits.length, 1);
  });

  it("and nothing else waits for it: writes go on, searches come after it", async () => {
    const controller = new AbortController();
    let isStopped = false;
    const first = refuses("unavailable", () =>
      store.search(runaway, { timeoutMs: 600_000, signal: controller.signal }),
    ).finally(() => (isStopped = true));
    const second = store.search(sane, { timeoutMs: 600_000 });
    const { id } = await store.open({ sessionId: "meanwhile" });
    await store.append(id, [toAppendable(createHost("m").says(user("written meanwhile")))]);
    assert.equal(isStopped, false, "the write did not wait for the search");
    controller.abort();
    await first;
    assert.equal((await second).hits.length, 1);

    const limited = store.search(runaway, { timeoutMs: 400 });
    const third = store.search(sane);
    assert.deepEqual(
      (await limited).caveats.map(({ kind }) => kind),
      ["time"],
    );
    assert.equal((await third).hits.length, 1);
  });

  it("a search that is cancelled before its turn never runs", async () => {
    const controller = new AbortController();
    const first = store.search(runaway, { timeoutMs: 300 });
    const second = refuses("unavailable", () => store.search(sane, { signal: controller.signal }));
    controller.abort();
    await second;
    assert.deepEqual(
      (await first).caveats.map(({ kind }) => kind),
      ["time"],
    );
    assert.equal((await store.search(sane)).hits.length, 1);
  });
});

describe("forgetting while another connection reads", () => {
  it("ends only when the last trace is gone from the log", async () => {
    await withFolder(async (folder) => {
      const path = join(folder, "lcm.db");
      const store = await openSqliteWorker({ path });
      try {
        const secret = "Zq7xKv93LmQw81";
        await fill(store, 20, (index) => (index === 3 ? `the password is ${secret}` : `${"a".repeat(50)}!`));
        const reader = store.search(
          { pattern: "(a+)+$", mode: "regex", scope: "messages", sort: "recency", limit: 5 },
          { timeoutMs: 700 },
        );
        await sleep(200); // It is reading now, from before the forgetting.
        const plan = await store.planForget(null, { kind: "secret", text: secret });
        assert.equal((await store.forget(null, plan)).kind, "written");
        for (const file of ["lcm.db", "lcm.db-wal"]) {
          const bytes = existsSync(join(folder, file)) ? readFileSync(join(folder, file)) : Buffer.alloc(0);
          assert.ok(!bytes.includes(secret), `${file} still contains it`);
        }
        assert.deepEqual(
          (await reader).caveats.map(({ kind }) => kind),
          ["time"],
        );
      } finally {
        await store.close();
      }
    });
  });
});

// ── Opening ──────────────────────────────────────────────────────────────────────────────────────────────────────────

describe("guarantee 11: start-up does not grow with what is stored", () => {
  const sizes = [200, 20_000] as const;

  it("opening, reading the status and the newest of the context read as much from a large file as from a small one", async () => {
    await withFolder(async (folder) => {
      const cost = new Map<number, { readonly bytes: number; readonly cpuMs: number }>();
      for (const size of sizes) {
        const path = join(folder, String(size), "lcm.db");
        const store = await openSqlite({ path });
        const { id } = await fill(store, size, (index) => `message ${index} about nothing in particular`);
        while ((await store.index(4_096)) > 0);
        await store.close();
        const costs = [];
        for (let time = 0; time < 9; time++) {
          const cpu = process.cpuUsage();
          const bytes = bytesRead();
          const again = await openSqlite({ path, housekeeping: false });
          await again.open({ sessionId: "filled" });
          await again.status();
          await again.context(id, { limit: 20, keep: "newest" });
          const { user: own, system } = process.cpuUsage(cpu);
          costs.push({ bytes: bytesRead() - bytes, cpuMs: (own + system) / 1_000 });
          await again.close();
        }
        cost.set(size, {
          bytes: median(costs.map(({ bytes }) => bytes)),
          cpuMs: median(costs.map(({ cpuMs }) => cpuMs)),
        });
      }
      const [small, large] = sizes.map((size) => cost.get(size) ?? assert.fail());
      assert.ok(small !== undefined && large !== undefined);
      const told = JSON.stringify({ small, large });
      // A tree over a hundred times as many rows is one or two pages deeper, in each of the few tables read.
      assert.ok(large.bytes <= small.bytes + 20 * 8_192, told);
      assert.ok(large.cpuMs <= 3 * small.cpuMs + 5, told);
    });
  });
});

describe("a window of one kind", () => {
  it("reads only what it shows, however many items of the other kind the context has", async () => {
    await withFolder(async (folder) => {
      const leaf = {
        text: "leaf",
        tokens: 2,
        level: "normal",
        model: null,
        previousContext: null,
        fileIds: [],
      } as const;
      const bytes: number[] = [];
      for (const size of [300, 40_000]) {
        const path = join(folder, String(size), "lcm.db");
        const store = await openSqlite({ path, housekeeping: false });
        const { id } = await fill(store, size, (index) => `message ${index}`);
        for (let fold = 0; fold < 10; fold++) {
          await store.fold(id, await store.context(id, { kind: "message", limit: 10 }), leaf);
        }
        await store.close();
        for (const kind of ["message", "summary"] as const) {
          for (const keep of ["oldest", "newest"] as const) {
            const again = await openSqlite({ path, housekeeping: false });
            const before = bytesRead();
            assert.equal((await again.context(id, { kind, keep, limit: 10 })).length, 10);
            bytes.push(bytesRead() - before);
            await again.close();
          }
        }
      }
      const [small, large] = [Math.max(...bytes.slice(0, 4)), Math.max(...bytes.slice(4))];
      // Reading the whole longer context would take some seventy pages.
      assert.ok(large <= small + 20 * 8_192, bytes.join());
    });
  });
});

/** Bytes read by this process so far, including from the page cache; 0 where the system does not report it. */
function bytesRead(): number {
  const counters = "/proc/self/io";
  return existsSync(counters) ? Number(/^rchar: (\d+)$/m.exec(readFileSync(counters, "utf8"))?.[1] ?? 0) : 0;
}

const median = (numbers: readonly number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;

// ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

describe("guarantee 29: times are stored in UTC with milliseconds, whatever the zone", () => {
  /** What hosts write, and the instant it means. */
  const times: readonly (readonly [string | number, string])[] = [
    [1_763_681_581_544, "2025-11-20T23:33:01.544Z"],
    ["2025-11-20T23:33:01.550Z", "2025-11-20T23:33:01.550Z"],
    ["2026-02-17T07:37:00+13:00", "2026-02-16T18:37:00.000Z"],
    ["2026-02-17 07:37:00", "2026-02-17T07:37:00.000Z"],
    // The hour that summer time skips, and the one it repeats.
    ["2026-09-27T02:30:00+12:00", "2026-09-26T14:30:00.000Z"],
    ["2026-04-05 02:30:00", "2026-04-05T02:30:00.000Z"],
  ];

  const rowsIn = (zone: string, folder: string): unknown => {
    const from = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);
    const code = `
      import { DatabaseSync } from "node:sqlite";
      import { importTranscript } from ${from("../src/core/ingest/import-transcript.ts")};
      import { openSqlite, systemNow } from ${from("../src/store/sqlite/store.ts")};
      const [, path, lines] = process.argv;
      const store = await openSqlite({ path });
      const read = async function* () { for (const [index, value] of JSON.parse(lines).entries()) yield { position: index + 1, value }; };
      const { conversation } = await importTranscript({ store, clock: { now: systemNow } }, read(), { fallbackSessionId: "zoned" });
      const context = await store.context(conversation.id);
      const folded = await store.fold(conversation.id, context, { text: "all", tokens: 1, level: "normal", model: null, previousContext: null, fileIds: [] });
      const [summary] = await store.summaries({ ids: [folded.summary] });
      await store.close();
      const rows = new DatabaseSync(path).prepare("SELECT message_key, created_at FROM messages ORDER BY seq").all();
      const { createdAt, updatedAt, lastMessageAt } = conversation;
      console.log(JSON.stringify({
        offset: new Date(0).getTimezoneOffset(),
        rows: rows.map((row) => row.created_at),
        range: [summary.earliestAt, summary.latestAt],
        made: [createdAt, updatedAt, summary.createdAt].map((time) => Math.abs(Date.now() - Date.parse(time)) < 600_000 && new Date(time).toISOString() === time),
      }));`;
    const lines = JSON.stringify(
      times.map(([timestamp], index) => ({
        id: `m${index}`,
        role: "user",
        content: `said at ${timestamp}`,
        timestamp,
      })),
    );
    const path = join(folder, zone.replaceAll("/", "-"), "lcm.db");
    const said = execFileSync(process.execPath, ["--input-type=module", "-e", code, path, lines], {
      env: { ...process.env, TZ: zone },
      encoding: "utf8",
    });
    return JSON.parse(said) as unknown;
  };

  it("the same rows in Auckland, in St. John's and in UTC", async () => {
    await withFolder(async (folder) => {
      for (const [zone, offset] of [
        ["Pacific/Auckland", -720],
        ["America/St_Johns", 210],
        ["UTC", 0],
      ] as const) {
        assert.deepEqual(rowsIn(zone, folder), {
          offset,
          rows: times.map(([, instant]) => instant),
          range: ["2025-11-20T23:33:01.544Z", "2026-09-26T14:30:00.000Z"],
          made: [true, true, true],
        });
      }
    });
  });
});
