/** The explorer beside a process that writes: pages are told of changes, and see them. */

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { ConversationId } from "../../src/core/model/types.ts";
import { createLcm } from "../../src/core/lcm.ts";
import { systemClock } from "../../src/index.ts";
import { openNew } from "../support/new-database.ts";
import { makeRecordedTalk } from "../support/recorded-prompts.ts";
import { usePostgres } from "../support/shared-postgres.ts";
import { makeScratch } from "../support/scratch.ts";
import { withExplorer, type Seen } from "./ground.ts";

const writerPath = fileURLToPath(new URL("./writer.ts", import.meta.url));
const conversation = 1 as ConversationId;

async function ground(): Promise<string> {
  const path = join(makeScratch("web-live"), "lcm.db");
  await makeRecordedTalk(path);
  return path;
}

const changedTo = (revision: number) => (seen: readonly Seen[]) =>
  seen.some(({ event, data }) => event === "changed" && (data as { revision: number }).revision >= revision);

describe("a page beside a writing process", () => {
  it("is told of every change, with the revision of its conversation, and then reads what was written", async () => {
    const path = await ground();
    await withExplorer(path, {}, async ({ events, read }) => {
      const before = await read("timeline", { conversation });
      const { revision } = before.conversation;
      const turns = 3;
      await events(`conversation=${conversation}`, changedTo(revision + turns), async () => {
        const writer = fork(writerPath, [path, String(turns)], { stdio: "inherit" });
        const [status] = await once(writer, "exit");
        assert.equal(status, 0);
      });
      const after = await read("timeline", { conversation });
      assert.equal(after.extent?.to, (before.extent?.to ?? 0) + turns);
      assert.equal(after.messages?.at(-1)?.state, "prompt");
      const last = await read("message", { id: after.messages?.at(-1)?.id ?? assert.fail() });
      assert.deepEqual(last.blocks, [{ kind: "text", text: "live 2" }]);
    });
  });

  it("is told when another database was put in its place, and reads that one", async () => {
    const path = await ground();
    const other = join(makeScratch("web-other"), "lcm.db");
    await makeRecordedTalk(other);
    await withExplorer(path, {}, async ({ events, read }) => {
      assert.equal((await read("conversations", {})).count, 1);
      await events(
        "",
        (seen) => seen.length > 0,
        async () => {
          const writer = fork(writerPath, [other, "1"], { stdio: "inherit" });
          await once(writer, "exit");
          copyFileSync(other, `${path}.new`);
          for (const end of ["-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
          renameSync(`${path}.new`, path);
        },
      );
      assert.equal((await read("timeline", { conversation })).extent?.to, 41);
    });
  });

  it("is told when the server ends", async () => {
    const ended = Promise.withResolvers<readonly Seen[]>();
    await withExplorer(await ground(), {}, async ({ events }) => {
      const isEnd = (seen: readonly Seen[]): boolean => seen.some(({ event }) => event === "end");
      const connected = Promise.withResolvers<void>();
      events("", isEnd, async () => connected.resolve()).then(ended.resolve, ended.reject);
      await connected.promise;
    });
    assert.deepEqual(await ended.promise, [{ event: "end", data: {} }]);
  });
});

describe("a page of a database on a server", async () => {
  const server = await usePostgres();

  it("is told of a write to the oldest of many conversations", async () => {
    const url = `${server.url}?schema=many`;
    const lcm = createLcm({ store: await openNew(url), clock: systemClock });
    for (let at = 0; at < 220; at++) await lcm.store.open({ sessionId: `session ${at}` });
    const at = systemClock.now();
    await withExplorer(url, {}, async ({ events, read }) => {
      const before = (await read("timeline", { conversation })).conversation.revision;
      await events(`conversation=${conversation}`, changedTo(before + 1), async () => {
        await lcm.ingest(conversation, [{ kind: "message", key: "k", at, message: { role: "user", content: "late" } }]);
      });
      assert.equal((await read("timeline", { conversation })).extent?.to, 1);
    });
    await lcm.close();
  });
});

describe("a request that nobody waits for", () => {
  it("stops its search, and the server goes on", async () => {
    const { longDatabase } = await import("../support/long-conversation.ts");
    await withExplorer(await longDatabase(), {}, async ({ ask, cookie, read, bugs }) => {
      const leaving = new AbortController();
      // Backtracks for longer than anybody would wait.
      const path = `/api/search?mode=regex&pattern=${encodeURIComponent("(\\w+\\s?)+#$")}`;
      const asked = ask({ path, headers: { cookie }, signal: leaving.signal });
      setTimeout(() => leaving.abort(), 200);
      await assert.rejects(asked, { name: "AbortError" });
      const { hits } = await read("search", { pattern: "crane", scope: "messages", limit: 1 });
      assert.equal(hits.length, 1);
      assert.deepEqual(bugs, []);
    });
  });
});
