import assert from "node:assert/strict";
import { chmodSync, copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { asReaderOf, withoutModes } from "../../../test/support/platform.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { messageToStore } from "../../core/messages/codec.ts";
import { backUp } from "./backups/backup.ts";
import { identify } from "./file-kind.ts";
import { locationOf } from "./location.ts";
import { unseenLogBytes } from "./read-only.ts";
import { openSqlite } from "./store.ts";
import { openSqliteWorker } from "./worker.ts";

const at = "2026-11-15T08:37:00.000Z" as Timestamp;

const say = (content: string) =>
  ({ kind: "message", message: messageToStore({ role: "user", content }, { key: content, at }) }) as const;

/** A database with one message, and another that is only in its log, as on a disk that was removed at the wrong moment. */
async function makeDisk(hasLog: boolean): Promise<string> {
  const scratch = makeScratch("read-only");
  const [made, disk] = [join(scratch, "made"), join(scratch, "disk")];
  mkdirSync(disk);
  const path = join(made, "lcm.db");
  const first = await openSqlite({ path, housekeeping: false });
  const { id } = await first.open({ sessionId: "s" });
  await first.append(id, [say("one")]);
  await first.close();
  const store = await openSqlite({ path, housekeeping: false });
  if (hasLog) await store.append(id, [say("two")]);
  for (const suffix of hasLog ? ["", "-wal"] : [""]) copyFileSync(path + suffix, join(disk, `lcm.db${suffix}`));
  await store.close();
  return join(disk, "lcm.db");
}

const textsIn = async (path: string, open = openSqlite): Promise<readonly string[]> => {
  const store = await open({ path, readOnly: true });
  try {
    const found = await store.search({ pattern: "one", mode: "full_text", scope: "both", sort: "relevance", limit: 5 });
    assert.equal(found.hits.length, 1);
    const [conversation] = await store.conversations();
    assert.deepEqual((await store.integrity()).problems, []);
    return (await store.messages({ conversation: conversation?.id ?? assert.fail() })).map(({ text }) => text);
  } finally {
    await store.close();
  }
};

describe("a database that this user may only read", { skip: withoutModes }, () => {
  it("can be read, in this thread and in another, and nothing is created beside it", async () => {
    const path = await makeDisk(false);
    await asReaderOf(join(path, ".."), async () => {
      assert.equal(identify(path), "current");
      assert.deepEqual(await textsIn(path), ["one"]);
      assert.deepEqual(await textsIn(path, openSqliteWorker), ["one"]);
      assert.equal(unseenLogBytes(path), 0);
    });
    assert.deepEqual(readdirSync(join(path, "..")), ["lcm.db"]);
  });

  it("is read without a log that cannot be used, whose size is reported", async () => {
    const path = await makeDisk(true);
    await asReaderOf(join(path, ".."), async () => {
      assert.equal(identify(path), "current");
      assert.deepEqual(await textsIn(path), ["one"]);
      assert.ok(unseenLogBytes(path) > 0);
    });
    assert.equal(unseenLogBytes(path), 0, "who may write there sees everything");
    assert.deepEqual(await textsIn(path), ["one", "two"]);
  });

  it("can be backed up and imported from, unless the copy would lack what is in the log", async () => {
    for (const hasLog of [false, true]) {
      const path = await makeDisk(hasLog);
      const own = makeScratch("own");
      chmodSync(own, 0o777);
      await asReaderOf(join(path, ".."), async () => {
        const to = join(own, "copy.db");
        const backup = backUp(locationOf(path), to);
        if (hasLog) await assert.rejects(backup, { code: "denied", message: /log/, hint: /-wal/ });
        else {
          assert.equal((await backup).files, 0);
          const store = await openSqlite({ path: join(own, "lcm.db"), housekeeping: false });
          assert.equal((await store.merge(path)).messages, 1);
          await store.close();
        }
      });
    }
  });

  it("refuses writers, with what to check", async () => {
    const path = await makeDisk(false);
    await asReaderOf(join(path, ".."), async () => {
      await assert.rejects(openSqlite({ path }), { code: "denied", hint: /writable to change/ });
    });
  });
});
