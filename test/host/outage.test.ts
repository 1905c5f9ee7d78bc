/**
 * Tests the real gateway while our store is unreachable: it throws, is locked, or the file is not a database. Every
 * turn is answered all the same, and what was said meanwhile is stored once possible.
 */

import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import { makeScratch } from "../support/scratch.ts";
import { createGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { hold } from "./hold.ts";
import { startModelServer } from "./model-server.ts";
import type { ModelServer } from "./model-server.ts";
import { recordedPlugin } from "./plugin.ts";
import type { EngineCall } from "./plugin.ts";
import { assertStored } from "./stored.ts";
import { requestsOf } from "./wire.ts";

/** Shorter than the store itself waits for a lock, which proves that no turn waits for that. */
const timeoutMs = 45_000;

/** Waits for something that only needs time. */
async function eventually<T>(check: () => Promise<T>): Promise<T> {
  const deadline = AbortSignal.timeout(60_000);
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (deadline.aborted) throw error;
    }
    await sleep(100);
  }
}

describe("while the store is unreachable", () => {
  let server: ModelServer;
  let gateway: Gateway;
  let recorded: ReturnType<typeof recordedPlugin>;
  const database = (): string => join(gateway.state, "lcm.db");
  const commitsOf = (session: string): readonly EngineCall[] =>
    recorded.calls().filter((each) => each.call === "commitTurn" && each.session === session);
  const say = async (session: string, text: string): Promise<void> =>
    assert.deepEqual(await gateway.turn(session, text, { timeoutMs }), { status: 200, text: `You said: ${text}` });
  /** What the model was shown last: everything so far, each message once. */
  const assertShown = (session: string, said: readonly string[]): void => {
    const shown =
      requestsOf(server.asked, session)
        .at(-1)
        ?.messages.map(({ text }) => text) ?? [];
    for (const text of said) {
      assert.equal(shown.filter((each) => each.endsWith(`] ${text}`) || each.includes(`] ${text}\n`)).length, 1, text);
    }
  };
  const timesNamed = (turn: string): number => {
    const db = new DatabaseSync(database(), { readOnly: true });
    try {
      return Number(db.prepare("SELECT count(*) AS times FROM turns WHERE turn_key = ?").get(turn)?.["times"]);
    } finally {
      db.close();
    }
  };

  before(async () => {
    server = await startModelServer();
    recorded = recordedPlugin(makeScratch("outage"));
    gateway = await createGateway({ server, plugins: recorded.plugins });
    writeFileSync(database(), "this is no database, and was never one\n".repeat(1_000));
    await gateway.start();
  });
  after(async () => await server.close());

  it("answers from the host's own messages while the file is not a database, and stores all of it later", async () => {
    const session = "agent:main:damaged";
    const said = ["one", "two", "three"];
    for (const text of said) await say(session, text);
    assertShown(session, said);
    assert.match(gateway.log(), /while storing a turn of agent:main:damaged: .*not a database/);
    rmSync(database());
    await say(session, "four");
    assertShown(session, [...said, "four"]);
    const [segment] = await assertStored(gateway, session);
    assert.equal(segment?.caughtUp, 2, "what the host's own engine served");
  });

  describe("guarantee 1: every message the host sent is stored once, on the host", () => {
    it("when a commit fails: the host repeats the turn, and it is stored once", async () => {
      const session = "agent:main:commit";
      await say(session, "before");
      recorded.fault({ commitTurn: "throw" });
      await say(session, "while it fails");
      recorded.fault({});
      await say(session, "after");
      const keys = commitsOf(session).map(({ args }) => args.advancementKey);
      assert.equal(keys.length, 4);
      assert.equal(keys[1], keys[2], "the same turn, again");
      for (const key of keys) assert.equal(timesNamed(key), 1);
      const [segment] = await assertStored(gateway, session);
      assert.equal(segment?.caughtUp, 0);
      assertShown(session, ["before", "while it fails", "after"]);
    });

    it("when a commit fails twice: the host serves a turn itself, which is caught up and counted", async () => {
      const session = "agent:main:twice";
      await say(session, "before");
      recorded.fault({ commitTurn: "throw" });
      await say(session, "while it fails");
      await say(session, "while it still fails");
      assert.match(gateway.log(), /degraded to "legacy" for this logical turn/);
      recorded.fault({});
      await say(session, "after");
      const [segment] = await assertStored(gateway, session);
      assert.equal(segment?.caughtUp, 1);
      for (const { args } of commitsOf(session)) assert.equal(timesNamed(args.advancementKey), 1);
      assertShown(session, ["before", "while it fails", "while it still fails", "after"]);
    });
  });

  describe("guarantee 10: the host's event loop is free, and no turn is held up, while another process writes", () => {
    it("for every session, and what was said meanwhile is stored as soon as possible", async () => {
      const [known, fresh] = ["agent:main:known", "agent:main:fresh"] as const;
      await say(known, "before");
      const lock = await hold(database(), "BEGIN IMMEDIATE");
      try {
        const first = say(known, "the first meanwhile").then(() => "answered" as const);
        let calls = 0;
        const commits = commitsOf(known).length;
        // Answers of the gateway between the model's answer and ours, while the turn is being stored.
        while ((await Promise.race([first, sleep(0, "waiting" as const)])) === "waiting") {
          await gateway.rpc("health");
          if (server.asked.at(-1)?.prompt === "the first meanwhile") calls += 1;
        }
        assert.ok(calls >= 5, `the gateway answered ${calls} times while a turn waited for the lock`);
        assert.equal(commitsOf(known).length, commits + 1);
        await say(known, "the second meanwhile");
        assertShown(known, ["before", "the first meanwhile", "the second meanwhile"]);
        await say(fresh, "in a new session");
        await say(fresh, "and again");
        assertShown(fresh, ["in a new session", "and again"]);
        assert.doesNotMatch(gateway.log().split("the first meanwhile").at(-1) ?? "", /degraded to "legacy"/);
      } finally {
        await lock.release();
      }
      for (const session of [known, fresh]) {
        const [segment] = await eventually(async () => await assertStored(gateway, session));
        assert.equal(segment?.caughtUp, 0, "they were turns of ours");
        await say(session, "after");
        await eventually(async () => await assertStored(gateway, session));
      }
    });

    it("even when the gateway starts and cannot read the database", async () => {
      const session = "agent:main:known";
      await gateway.stop();
      const lock = await hold(database(), "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
      try {
        await gateway.start();
        await say(session, "nobody can read");
        assertShown(session, ["before", "the first meanwhile", "the second meanwhile", "after", "nobody can read"]);
        await say("agent:main:other", "nor write");
      } finally {
        await lock.release();
      }
      await eventually(async () => await assertStored(gateway, session));
      await eventually(async () => await assertStored(gateway, "agent:main:other"));
      await say(session, "at last");
      assertShown(session, ["before", "after", "nobody can read", "at last"]);
      await eventually(async () => await assertStored(gateway, session));
    });
  });
});
