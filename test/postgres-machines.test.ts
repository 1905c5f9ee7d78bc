/** What a server shared by several machines must not do: lose, double or reorder rows, or show a password. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { errorText, LcmError } from "../src/core/base/errors.ts";
import type { SearchRequest, Store } from "../src/core/model/store.ts";
import { readAddress } from "../src/store/postgres/address.ts";
import { openPool, type Pool } from "../src/store/postgres/pool.ts";
import { createRunner } from "../src/store/postgres/runner.ts";
import { openPostgres } from "../src/store/postgres/store.ts";
import { count, sql } from "../src/store/script.ts";
import { openSqlite } from "../src/store/sqlite/store.ts";
import { each, foldPlaces, numbered } from "./store-contract/ground.ts";
import { checkLossless, checkSound } from "./support/lossless.ts";
import { usePostgres } from "./support/shared-postgres.ts";
import { makeScratch } from "./support/scratch.ts";
import { createHost, toAppendable, user } from "./support/scripted-host.ts";
import { untilAnswered } from "./support/until-answered.ts";

const server = await usePostgres();
let admin: Pool;
let folder = "";

before(async () => {
  admin = await openPool(readAddress(server.url), 1);
  folder = makeScratch("machines");
});
after(async () => {
  await admin.end();
});

const openOn = async (schema: string, housekeeping = true): Promise<Store> =>
  await openPostgres({
    url: `${server.url}?schema=${schema}`,
    filesDir: join(folder, schema),
    connectionsMax: 2,
    housekeeping,
  });

/** Runs one statement as the administrator of the server. */
async function onServer(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = await admin.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    client.release();
  }
}

describe("several machines on one database", () => {
  it("create its schema once, whoever comes first", async () => {
    const stores = await Promise.all(numbered(4, () => "").map(async () => await openOn("raced")));
    const opened = await Promise.all(stores.map(async (store) => await store.open({ sessionId: "s" })));
    assert.equal(new Set(each(opened, "id")).size, 1);
    for (const store of stores) await store.close();
  });

  it("store what all of them are told once, in order, while connections are killed", async () => {
    const stores = await Promise.all(numbered(4, () => "").map(async () => await openOn("shared")));
    const [first = assert.fail()] = stores;
    const shared = await first.open({ sessionId: "shared" });
    const host = createHost("h");
    const turns = numbered(25, (turn) => `turn ${turn}`).map((text) => [
      host.says(user(`${text}, asked`)),
      host.says(user(`${text}, asked again`)),
    ]);
    const done = new AbortController();
    let killed = 0;
    const killer = (async () => {
      while (!done.signal.aborted) {
        const rows = await onServer(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
             AND datname = current_database() AND application_name = 'lossless-claw' AND state <> 'idle' LIMIT 1`,
        );
        killed += rows.length;
        await sleep(20);
      }
    })();
    const own = await Promise.all(
      stores.map(async (store, at) => {
        const voice = createHost(`own${at}`);
        const { id } = await untilAnswered(async () => await store.open({ sessionId: `own ${at}` }));
        for (const [turn, entries] of turns.entries()) {
          const items = entries.map(toAppendable);
          await untilAnswered(async () => await store.append(shared.id, items, { turnKey: `turn ${turn}` }));
          const said = [toAppendable(voice.says(user(`said by ${at} in turn ${turn}`)))];
          await untilAnswered(async () => await store.append(id, said));
        }
        return { conversation: id, entries: voice.entries };
      }),
    ).finally(() => done.abort());
    await killer;
    assert.ok(killed > 0, "connections were killed");
    await checkLossless(first, [{ conversation: shared.id, entries: host.entries }, ...own]);
    for (const store of stores) await store.close();
  });

  it("index each row once, whoever indexes", async () => {
    const stores = await Promise.all(numbered(3, () => "").map(async () => await openOn("indexed")));
    const [first = assert.fail()] = stores;
    for (const name of numbered(6, (n) => `s${n}`)) {
      const host = createHost(name);
      for (const text of numbered(150, (n) => `heron number ${n}`)) host.says(user(text));
      await first.append((await first.open({ sessionId: name })).id, host.entries.map(toAppendable));
    }
    await Promise.all(
      stores.map(async (store) => {
        for (let left = 1; left > 0;) left = await store.index(100);
      }),
    );
    const [row] = await onServer(
      `SELECT count(*) AS entries, count(DISTINCT id) AS rows FROM indexed.messages_fts_docsize`,
    );
    assert.deepEqual([Number(row?.["entries"]), Number(row?.["rows"])], [900, 900]);
    await checkSound(first);
    for (const store of stores) await store.close();
  });
});

describe("a transaction", () => {
  it("that the server ended for another one is run again", async () => {
    const store = await openOn("retried");
    const pool = await openPool(readAddress(server.url), 2);
    const { write } = createRunner({ pool, schema: "retried", lockTimeoutMs: 5_000 });
    await onServer(`CREATE FUNCTION retried.serialization_failure() RETURNS int LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'try again' USING ERRCODE = '40001'; END $$`);
    let tries = 0;
    const answer = await write(null, function* () {
      tries += 1;
      if (tries < 3) yield sql`SELECT serialization_failure()`;
      return yield* count(sql`SELECT 42`);
    });
    assert.deepEqual([answer, tries], [42, 3]);
    await pool.end();
    await store.close();
  });

  it("that fails in a statement nobody waited for stores nothing, and reports that statement", async () => {
    const store = await openOn("failing");
    const pool = await openPool(readAddress(server.url), 2);
    const { read, write } = createRunner({ pool, schema: "failing", lockTimeoutMs: 5_000 });
    await assert.rejects(
      write(1, function* () {
        yield sql`INSERT INTO turns (conversation_id, turn_key) VALUES (77, 'of no conversation')`;
        yield sql`INSERT INTO embedders (name, embedded, at) VALUES ('never', 1, 'now')`;
        return 1;
      }),
      /turns_conversation_id_fkey/,
    );
    assert.equal(await read(() => count(sql`SELECT count(*) FROM embedders`)), 0);
    await pool.end();
    await store.close();
  });
});

describe("the password", () => {
  it("is in no error and in no status", async () => {
    const secret = "quokka-4711";
    const url = new URL(server.url);
    url.password = secret;
    const refused = await openPostgres({ url: url.href, filesDir: folder }).then(
      () => assert.fail("the password is wrong"),
      (error: unknown) => error,
    );
    assert.ok(refused instanceof LcmError && refused.code === "denied", errorText(refused));
    assert.ok(!`${refused.message} ${refused.hint ?? ""}`.includes(secret));
    const store = await openOn("shown");
    assert.match((await store.status()).path, /^postgres:\/\/postgres@127\.0\.0\.1:\d+\/t_\w+\?schema=shown$/);
    await store.close();
  });

  it("is not needed to say that a server cannot be reached", async () => {
    const gone = openPostgres({ url: "postgres://u:quokka-4711@127.0.0.1:1/db", filesDir: folder });
    await assert.rejects(
      gone,
      (error) => error instanceof LcmError && error.code === "unavailable" && !/quokka/.test(error.message),
    );
  });
});

describe("a search", () => {
  it("finds the same as in a database file: hits, order and scores", async () => {
    const stores = [
      await openOn("found", false),
      await openSqlite({ path: join(folder, "lcm.db"), housekeeping: false }),
    ];
    for (const store of stores) await fillFor(store);
    const [postgres = assert.fail(), sqlite = assert.fail()] = stores;
    for (const request of asked) {
      const [one, other] = [await postgres.search(request), await sqlite.search(request)];
      assert.deepEqual(scoresOf(one), scoresOf(other), JSON.stringify(request));
      assert.deepEqual(one.caveats, other.caveats, JSON.stringify(request));
      assert.ok(other.hits.length > 0, `something is found for ${request.pattern}`);
    }
    for (const store of stores) await store.close();
  });
});

const animals = ["heron", "otter", "badger", "lynx", "stork", "vole", "newt", "adder"];
const textOf = (n: number): string =>
  numbered(9, (at) => animals[(n * 7 + at * at) % animals.length] ?? "").join(" ") +
  (n % 40 === 0 ? " the migration of getUserName failed at src/db/open.ts 数据库" : "") +
  (n === 123 ? " and a lighthouse" : "");

/** Some of it indexed, some not, in three conversations. */
async function fillFor(store: Store): Promise<void> {
  for (const name of ["a", "b", "c"]) {
    const talk = await store.open({ sessionId: name });
    const host = createHost(name);
    for (let n = 0; n < 1_200; n++) host.says(user(textOf(n)));
    await store.append(talk.id, host.entries.map(toAppendable));
    await foldPlaces(store, talk.id, [0, 19], `a summary of herons in ${name}`);
    if (name !== "c") while ((await store.index(1_000)) > 0);
  }
}

const base: SearchRequest = { pattern: "", mode: "full_text", scope: "both", sort: "relevance", limit: 20 };
const asked: readonly SearchRequest[] = [
  { ...base, pattern: "lighthouse" },
  { ...base, pattern: "heron" },
  { ...base, pattern: "what did the otter say to the badger about migration?" },
  { ...base, pattern: "heron otter", sort: "recency" },
  { ...base, pattern: "migrat*", sort: "hybrid" },
  { ...base, pattern: "数据库" },
  { ...base, pattern: "getUserName" },
  { ...base, pattern: "adder", sort: "oldest" },
  { ...base, pattern: "light[a-z]+se", mode: "regex", sort: "recency" },
];

const scoresOf = ({ hits, summaries = [] }: Awaited<ReturnType<Store["search"]>>): readonly unknown[] =>
  [...hits, ...summaries].map(({ kind, conversation, snippet, score, at: _, ...hit }) => ({
    kind,
    conversation,
    snippet,
    seq: "seq" in hit ? hit.seq : null,
    score: Number(score.toFixed(6)),
  }));
