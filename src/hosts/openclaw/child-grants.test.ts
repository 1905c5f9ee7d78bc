import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { LcmError } from "../../core/base/errors.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { createRecallWorld } from "../../../test/support/recall-world.ts";
import { endChild, grantFork } from "./child-grants.ts";
import type { SpawnCall } from "./host-api.ts";
import type { Runtime } from "../shared/runtime.ts";
import { msToTimestamp, timestampToMs } from "../../core/base/time.ts";

const parentKey = "agent:ada:main";
const childKey = "agent:ada:subagent:one";

async function makeWorld(
  config: Readonly<Record<string, unknown>> = {},
  options: { readonly patienceMs?: number } = {},
) {
  const world = await createRecallWorld({ config, ...options });
  const { runtime, store } = world;
  const fork = async (call: Partial<SpawnCall> = {}) =>
    await grantFork(runtime, {
      parentSessionKey: parentKey,
      parentSessionId: "s1",
      childSessionKey: childKey,
      contextMode: "fork",
      ...call,
    });
  const held = async () => await store.grant(runtime.grants.get(childKey)?.grant ?? "grant_none");
  return { ...world, fork, held };
}

describe("a child that forks its parent's context", () => {
  it("may read only the parent's family, as much as one expansion may", async () => {
    const { fork, held, own, earlier } = await makeWorld({ maxExpandTokens: 1_234 });
    assert(await fork());
    const grant = await held();
    assert.deepEqual(grant?.conversations.toSorted(), [earlier.id, own.id]);
    assert.deepEqual([grant.tokenCap, grant.parent, grant.revokedAt], [1_234, null, null]);
  });

  it("may read for its time limit plus a minute, or for an hour without a limit", async () => {
    for (const [ttlMs, wholeMs] of [
      [5_000, 65_000],
      [0, 3_600_000],
    ] as const) {
      const { fork, held, runtime } = await makeWorld();
      await fork({ ttlMs });
      const { expiresAt } = (await held()) ?? assert.fail("it has a grant");
      assert.equal(timestampToMs(expiresAt) - timestampToMs(runtime.clock.now()), wholeMs);
    }
  });

  it("loses its grant when it ends or never starts", async () => {
    for (const how of ["ends", "never begins"]) {
      const { runtime, fork, store } = await makeWorld();
      const preparation = await fork();
      const { grant } = runtime.grants.get(childKey) ?? assert.fail("it has a grant");
      if (how === "ends") await endChild(runtime, childKey);
      else await preparation?.rollback();
      assert.equal(runtime.grants.size, 0);
      assert.notEqual((await store.grant(grant))?.revokedAt, null);
      await endChild(runtime, childKey);
    }
  });

  it("does not delay its parent's turn while another process writes, and may read once the grant is stored", async () => {
    const { runtime, fork, held } = await makeWorld({}, { patienceMs: 1 });
    const other = new DatabaseSync(runtime.path);
    other.exec("BEGIN IMMEDIATE");
    await fork();
    assert.equal(runtime.grants.size, 0);
    other.exec("COMMIT");
    other.close();
    await eventually(() => runtime.grants.has(childKey));
    assert.equal((await held())?.revokedAt, null);
  });

  it("keeps no grant if it ends or is cancelled before the grant is stored", async () => {
    for (const way of ["end", "rollback"]) {
      const { runtime, fork } = await makeWorld({}, { patienceMs: 1 });
      const other = new DatabaseSync(runtime.path);
      other.exec("BEGIN IMMEDIATE");
      const preparation = await fork();
      if (way === "end") await endChild(runtime, childKey);
      else await preparation?.rollback();
      other.exec("COMMIT");
      const grants = other.prepare("SELECT revoked_at IS NOT NULL AS isRevoked FROM expansion_grants");
      await eventually(() => grants.get()?.["isRevoked"] === 1);
      assert.deepEqual({ ...grants.get() }, { isRevoked: 1 }, way);
      other.close();
      assert.equal(runtime.grants.size, 0);
    }
  });

  it("never fails the host: errors are recorded", async () => {
    const { runtime, fork, warnings } = await makeWorld();
    const broken: Runtime = {
      ...runtime,
      settings: runtime.settings,
      open: async () => await Promise.reject(new LcmError("unavailable", "the database is locked")),
    };
    const call = { parentSessionKey: parentKey, childSessionKey: childKey, contextMode: "fork" } as const;
    assert.equal(await grantFork(broken, call), undefined);
    await fork();
    await endChild(broken, childKey);
    assert.equal(warnings.filter((text) => text.includes("the database is locked")).length, 2);
    assert.equal(runtime.grants.size, 0);
  });
});

describe("guarantee 25: a child is never wider than its parent", () => {
  it("inherits nothing if it starts without context", async () => {
    const { runtime, fork } = await makeWorld();
    assert.equal(await fork({ contextMode: "isolated" }), undefined);
    const unsaid = { parentSessionKey: parentKey, parentSessionId: "s1", childSessionKey: childKey };
    assert.equal(await grantFork(runtime, unsaid), undefined);
    assert.equal(runtime.grants.size, 0);
  });

  it("inherits nothing from a session that is not stored, not served, or another one", async () => {
    const { runtime, store, own, fork } = await makeWorld({ ignoreSessionPatterns: ["agent:bob:*"] });
    assert.equal(await fork({ parentSessionKey: "agent:ada:new" }), undefined);
    assert.equal(await fork({ parentSessionKey: "agent:bob:main", parentSessionId: "s3" }), undefined);
    assert.equal(await fork({ parentSessionKey: "agent:ada:subagent:lcm-question-1" }), undefined);
    await store.append(own.id, [], { hostCursor: "here" });
    assert.equal(await fork({ parentSessionId: "s9" }), undefined);
    const disabled = await makeWorld({ enabled: false });
    assert.equal(await disabled.fork(), undefined);
    assert.equal(runtime.grants.size, 0);
  });

  it("gets no more than its parent's own grant has left, in tokens and time", async () => {
    const { runtime, store, fork, held, own } = await makeWorld();
    const parent = await store.issueGrant({
      conversations: [own.id],
      tokenCap: 100,
      expiresAt: msToTimestamp(timestampToMs(runtime.clock.now()) + 10_000),
      parent: null,
    });
    await store.spendGrant(parent.id, own.id, 60);
    runtime.grants.set(parentKey, { grant: parent.id });
    await fork({ ttlMs: 600_000 });
    const grant = (await held()) ?? assert.fail("it has a grant");
    assert.deepEqual([grant.parent, grant.conversations, grant.tokenCap], [parent.id, [own.id], 40]);
    assert.equal(grant.expiresAt, parent.expiresAt);
    await endChild(runtime, parentKey);
    assert.notEqual((await held())?.revokedAt, null, "it ends with its parent's");
  });

  it("gets nothing from a parent whose grant has ended", async () => {
    const { runtime, store, fork, own, pass, warnings } = await makeWorld();
    const expiresAt = msToTimestamp(timestampToMs(runtime.clock.now()) + 10_000);
    const parent = await store.issueGrant({ conversations: [own.id], tokenCap: 100, expiresAt, parent: null });
    runtime.grants.set(parentKey, { grant: parent.id });
    pass(11_000);
    assert.equal(await fork(), undefined);
    runtime.grants.set(parentKey, { grant: "grant_forged" });
    assert.equal(await fork(), undefined);
    assert.equal(runtime.grants.has(childKey), false);
    assert.match(warnings.join(), /cannot be passed on/);
  });
});
