/** The store through Debian's PgBouncer in transaction mode, which gives each transaction any connection it has. */

import assert from "node:assert/strict";
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openPostgres } from "../../src/store/postgres/store.ts";
import { numbered } from "../store-contract/ground.ts";
import { postgres } from "../store-contract/postgres.ts";
import { testAppend } from "../store-contract/append.ts";
import { testBranches } from "../store-contract/branches.ts";
import { testFold } from "../store-contract/fold.ts";
import { testSearch } from "../store-contract/search.ts";
import { testUndo } from "../store-contract/undo.ts";
import { freePort } from "../support/free-port.ts";
import { checkLossless } from "../support/lossless.ts";
import { startMachine, type PostgresMachine } from "../support/postgres-machine.ts";
import { makeScratch } from "../support/scratch.ts";
import { createHost, toAppendable, user } from "../support/scripted-host.ts";
import { untilAnswered } from "../support/until-answered.ts";

let machine: PostgresMachine;
let bouncer: ChildProcess;
let url = "";
/** Far fewer than its clients. */
const serverConnections = 3;

before(async () => {
  machine = await startMachine();
  const folder = makeScratch("pgbouncer");
  chmodSync(folder, 0o755);
  const port = await freePort();
  const settings = join(folder, "pgbouncer.ini");
  writeFileSync(
    settings,
    `[databases]
postgres = host=127.0.0.1 port=${machine.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${serverConnections}
max_client_conn = 200
`,
  );
  const asUser = process.getuid?.() === 0 ? { uid: Number(execFileSync("id", ["-u", "postgres"])) } : {};
  bouncer = spawn("pgbouncer", [settings], { ...asUser, stdio: "ignore" });
  await once(bouncer, "spawn");
  url = `postgres://postgres@127.0.0.1:${port}/postgres`;
});
after(async () => {
  await subject.close();
  bouncer.kill("SIGINT");
  await machine.stop();
});

const subject = postgres(() => url);

describe("many clients through PgBouncer in transaction mode", () => {
  it("are served by a few connections; nothing is lost or mixed up", async () => {
    const filesDir = makeScratch("bounced");
    const open = async () =>
      await openPostgres({ url: `${url}?schema=bounced`, filesDir, connectionsMax: 2, housekeeping: false });
    const stores = [await untilAnswered(open)];
    while (stores.length < 12) stores.push(await open());
    const written = await Promise.all(
      stores.map(async (store, at) => {
        const host = createHost(`h${at}`);
        const { id } = await store.open({ sessionId: `session ${at}` });
        for (const text of numbered(10, (n) => `message ${n} of ${at}`)) {
          host.says(user(text));
          await store.append(id, [toAppendable(host.entries.at(-1) ?? assert.fail())]);
        }
        return { conversation: id, entries: host.entries };
      }),
    );
    const [first = assert.fail()] = stores;
    await checkLossless(first, written);
    await sleep(10);
    const [used] = await machine.query(`SELECT count(*) AS n FROM pg_stat_activity
      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`);
    assert.ok(Number(used?.["n"]) <= serverConnections, `${String(used?.["n"])} connections to the server`);
    for (const store of stores) await store.close();
  });
});

describe("the contract through PgBouncer", () => {
  testAppend(subject);
  testBranches(subject);
  testFold(subject);
  testSearch(subject);
  testUndo(subject);
});
