/** What a deadline does, and that nothing stays of it. */

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { setImmediate as nextTick } from "node:timers/promises";
import { describe, it } from "node:test";
import { collectGarbage } from "../../../test/support/garbage.ts";
import { withDeadline } from "./deadline.ts";

const untilAborted = async (signal: AbortSignal): Promise<unknown> =>
  await new Promise((resolve) => signal.addEventListener("abort", () => resolve(signal.reason)));

describe("a deadline", () => {
  it("passes when the time is up", async () => {
    const reason = await withDeadline(1, undefined, untilAborted);
    assert(reason instanceof DOMException);
    assert.equal(reason.name, "TimeoutError");
  });

  it("passes when the outer signal aborts, for the same reason, even if it already has", async () => {
    const outer = new AbortController();
    const work = withDeadline(60_000, outer.signal, untilAborted);
    outer.abort("enough");
    assert.equal(await work, "enough");
    assert.equal(await withDeadline(60_000, outer.signal, async (signal) => signal.reason), "enough");
  });

  it("returns what the work returns, or throws what it throws", async () => {
    assert.equal(await withDeadline(60_000, undefined, async () => "done"), "done");
    const broken = withDeadline(60_000, undefined, async () => await Promise.reject(new Error("broken")));
    await assert.rejects(broken, /broken/);
  });

  it("ends with the outer signal: work that ignores it does not keep the process alive", () => {
    const outer = new AbortController();
    void withDeadline(60_000, outer.signal, async () => await new Promise(() => undefined));
    outer.abort();
    assert.deepEqual(
      process.getActiveResourcesInfo().filter((name) => name === "Timeout"),
      [],
    );
  });

  it("ends with the work, and leaves no timer or listener behind", async () => {
    const outer = new AbortController();
    const turns = new AsyncLocalStorage<object>();
    const turn = (): WeakRef<object> => {
      const held = { transcript: "long" };
      void turns.run(held, async () => await withDeadline(60_000, outer.signal, async () => await nextTick()));
      return new WeakRef(held);
    };
    const ref = turn();
    await nextTick();
    await nextTick();
    assert.deepEqual(getEventListeners(outer.signal, "abort"), []);
    assert.deepEqual(
      process.getActiveResourcesInfo().filter((name) => name === "Timeout"),
      [],
    );
    await collectGarbage();
    assert.equal(ref.deref(), undefined);
  });
});
