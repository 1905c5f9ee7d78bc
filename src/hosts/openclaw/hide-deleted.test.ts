/** What happens to the segments of a session that the host reports as deleted. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { afterEach, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { Conversation } from "../../core/model/types.ts";
import type { Store } from "../../core/model/store.ts";
import { builtInTemplates } from "../../core/prompts/summary.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { hideDeleted } from "./hide-deleted.ts";
import { runtimeOf } from "../shared/runtime.ts";
import type { Runtime } from "../shared/runtime.ts";
import type { Timestamp } from "../../core/base/time.ts";

const scratch = makeScratch("deletion");
const sessionKey = "agent:main:gone";
const session = { sessionId: "s-1", sessionKey, agentId: "main" };
const deleted = { sessionId: "s-1", sessionKey, reason: "deleted" };
const runtimes: Runtime[] = [];
let files = 0;

afterEach(async () => {
  for (const runtime of runtimes.splice(0)) await runtime.close();
});

function createRuntime(
  config: object = {},
  openStore: (path: string) => Promise<Store> = (path) => openSqlite({ path }),
) {
  const path = join(scratch, `${++files}.db`);
  const runtime = runtimeOf({
    path,
    settings: resolveSettings({ env: {}, config: { ...config } }),
    clock: { now: () => "2026-11-15T17:30:00.000Z" as Timestamp },
    logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
    openStore: async () => await openStore(path),
    templates: async () => await Promise.resolve(builtInTemplates),
  });
  runtimes.push(runtime);
  return runtime;
}

const idsOf = (conversations: readonly Conversation[]): readonly number[] =>
  conversations.map(({ id }) => id).toSorted((a, b) => a - b);

describe("a session deleted in the host", () => {
  it("is hidden with all its segments, and no other session is", async () => {
    const runtime = createRuntime();
    const { store } = await runtime.open();
    const others = [
      await store.open({ sessionId: "s-9", sessionKey: "agent:main:other", agentId: "main" }),
      await store.open({ sessionId: "s-8", sessionKey, agentId: "ops" }),
    ];
    const older = await store.openSegment({ ...session, sessionId: "s-0" });
    const first = await store.openSegment(session);
    const second = await store.openSegment(session);
    await hideDeleted(runtime, deleted, { agentId: "main" });
    assert.deepEqual(idsOf(await store.conversations()), idsOf(others));
    const all = await store.conversations({ includeHidden: true });
    assert.deepEqual(idsOf(all), idsOf([older, first, second, ...others]));
    await hideDeleted(runtime, deleted, { agentId: "main" });
    assert.deepEqual(await store.conversations({ includeHidden: true }), all);
  });

  it("does not hide a later session under its key, even if the host reports late", async () => {
    const runtime = createRuntime();
    const { store } = await runtime.open();
    await store.open(session);
    const next = await store.openSegment({ ...session, sessionId: "s-2" });
    const reset = await store.openSegment({ ...session, sessionId: "s-2" });
    await hideDeleted(runtime, { reason: "deleted" }, deleted);
    assert.deepEqual(idsOf(await store.conversations()), idsOf([next, reset]));
  });

  it("waits for the turn that is being stored", async () => {
    const runtime = createRuntime();
    const { store } = await runtime.open();
    const storing = Promise.withResolvers<void>();
    const turn = runtime.inOrder(sessionKey, async () => {
      await storing.promise;
      await store.open(session);
    });
    const hiding = hideDeleted(runtime, deleted, {});
    for (let wait = 0; wait < 100; wait++) await setImmediate();
    storing.resolve();
    await Promise.all([turn, hiding]);
    assert.deepEqual(await store.conversations(), []);
  });

  it("opens no database for a session that is not served or not named", async () => {
    const runtime = createRuntime({ ignoreSessionPatterns: ["*:cron:*"], statelessSessionPatterns: ["*:subagent:*"] });
    for (const key of ["agent:main:cron:1", "agent:main:subagent:1", "agent:main:subagent:lcm-question-1"])
      await hideDeleted(runtime, { ...deleted, sessionKey: key }, {});
    await hideDeleted(runtime, { reason: "deleted", sessionId: "s-1" }, {});
    await hideDeleted(runtime, { reason: "deleted", sessionKey }, {});
    assert.equal(runtime.isOpen(), false);
    const off = createRuntime({ enabled: false });
    await hideDeleted(off, deleted, {});
    assert.equal(off.isOpen(), false);
  });

  it("is recorded as a problem if the database is unavailable, and is not an error to the host", async () => {
    const runtime = createRuntime({}, async () => await Promise.reject(new Error("the disk is away")));
    await hideDeleted(runtime, deleted, {});
    assert.deepEqual(
      runtime.troubles.map(({ message }) => message),
      ["the disk is away"],
    );
  });
});
