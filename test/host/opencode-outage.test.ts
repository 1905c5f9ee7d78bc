/** The real OpenCode while something of ours fails: the agent goes on, and afterwards nothing is missing in the store. */

import assert from "node:assert/strict";
import { chmodSync, existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { startModelServer, type ModelServer } from "./model-server.ts";
import { assertStored, obey, readStored, turnsOf, until } from "./opencode-script.ts";
import {
  createHome,
  databaseRows,
  logOf,
  openCodePlugin,
  removeHome,
  sideProcesses,
  startOpenCode,
  type Home,
  type HomeOptions,
  type OpenCode,
} from "./opencode-server.ts";

let model: ModelServer;
before(async () => void (model = await startModelServer()));
after(async () => await model.close());

let home: Home;
let host: OpenCode | null = null;
beforeEach(() => model.script(obey));
afterEach(async () => {
  await host?.kill();
  host = null;
  removeHome(home);
});

async function start(env: Readonly<Record<string, string>> = {}, options: Partial<HomeOptions> = {}) {
  home = createHome({ modelUrl: model.url, plugin: openCodePlugin(), ...options });
  return (host = await startOpenCode(home, env));
}

describe("OpenCode goes on, and afterwards everything is stored,", () => {
  it("when it is killed in the middle of an answer", async () => {
    let server = await start();
    const session = await server.createSession();
    await server.prompt(session, "one");
    const answer = { kind: "answer", text: "half of a long answer ".repeat(50) } as const;
    model.script(() => ({ kind: "drip", answer, pauseMs: 400, breaks: false }));
    const cut = server.prompt(session, "two").catch(() => null);
    await until(() => databaseRows(home, session).length === 4);
    const sides = sideProcesses(server);
    assert.equal(sides.length, 1);
    await server.kill("SIGKILL");
    await cut;
    await until(() => sides.every((pid) => !existsSync(`/proc/${pid}`)));
    model.script(obey);
    server = host = await startOpenCode(home);
    assert.match((await server.prompt(session, "three")).text, /You said: three/);
    await assertStored(home, session);
  });

  it("when the side process is killed", async () => {
    const server = await start();
    const session = await server.createSession();
    await server.prompt(session, "one");
    for (const text of ["two", "three", "four"]) {
      for (const pid of sideProcesses(server)) process.kill(pid, "SIGKILL");
      assert.match((await server.prompt(session, text)).text, new RegExp(`You said: ${text}`));
    }
    await server.kill();
    host = await startOpenCode(home);
    await host.prompt(session, "five");
    await assertStored(home, session);
  });

  it("when another process locks our database", async () => {
    const server = await start();
    const session = await server.createSession();
    await server.prompt(session, "one");
    await until(async () => (await readStored(home, session)).rows.length === 2);
    const other = new DatabaseSync(home.database);
    other.exec("BEGIN IMMEDIATE");
    assert.match((await server.prompt(session, "two")).text, /You said: two/);
    const texts = turnsOf(model.asked)
      .at(-1)
      ?.messages.map(({ text }) => text);
    assert.deepEqual(texts, ["one", "You said: one", "two"], "OpenCode's own messages are sent");
    assert.match((await server.prompt(session, "three")).text, /You said: three/);
    other.exec("ROLLBACK");
    other.close();
    await server.prompt(session, "four");
    await assertStored(home, session);
  });

  it("when the folder of our database cannot be made, and when it is taken away", async () => {
    home = createHome({ modelUrl: model.url, plugin: openCodePlugin() });
    const folder = dirname(home.database);
    writeFileSync(folder, "in the way");
    const server = (host = await startOpenCode(home));
    const session = await server.createSession();
    assert.match((await server.prompt(session, "one")).text, /You said: one/);
    assert.match((await server.prompt(session, "two")).text, /You said: two/);
    rmSync(folder);
    await server.prompt(session, "three");
    await assertStored(home, session);
    renameSync(folder, `${folder}-away`);
    assert.match((await server.prompt(session, "four")).text, /You said: four/);
    assert.match((await server.prompt(session, "five")).text, /You said: five/);
    await server.kill();
    host = await startOpenCode(home);
    await host.prompt(session, "six");
    await assertStored(home, session);
  });

  it("when there is no room for our database", async () => {
    // A limit of the size of files, for our process only: it stands for a full disk.
    const folder = join(tmpdir(), "node-with-a-limit");
    writeFileSync(folder, `#!/bin/sh\ntrap '' XFSZ\nulimit -f 1024\nexec ${process.execPath} "$@"\n`);
    chmodSync(folder, 0o755);
    let server = await start({ LCM_NODE: folder }, { limit: { context: 1_000_000, output: 4_000 } });
    const session = await server.createSession();
    for (let turn = 1; turn <= 6; turn++) {
      const { text } = await server.prompt(session, `turn ${turn} ${"x".repeat(100_000)}`);
      assert.match(text, new RegExp(`You said: turn ${turn}`));
    }
    await server.kill();
    server = host = await startOpenCode(home);
    await server.prompt(session, "and now there is room");
    await assertStored(home, session);
  });
});

describe("OpenCode is as it would be without us", () => {
  it("when no Node is there for our process: it even compacts by itself", async () => {
    const server = await start({ LCM_NODE: "/no/such/node" }, { limit: { context: 16_000, output: 1_000 } });
    const session = await server.createSession();
    for (let turn = 1; turn <= 8; turn++) await server.prompt(session, `turn ${turn}: SAY 1500`);
    assert.equal(existsSync(home.database), false);
    const compacted = databaseRows(home, session).filter(({ info }) => info.summary === true);
    assert.ok(compacted.length > 0, "its own compaction is on");
    assert.equal(logOf(home).split("lossless-claw is not in use: /no/such/node does not start").length, 2, "said once");
  });

  it("when we are disabled", async () => {
    const server = await start({ LCM_ENABLED: "false" });
    const session = await server.createSession();
    await server.prompt(session, "hello");
    assert.equal((await server.prompt(session, "again")).text, "You said: again");
    const { compaction } = await server.request("GET", "/config");
    assert.notEqual(compaction?.auto, false, "the user's own choice stands");
  });
});
