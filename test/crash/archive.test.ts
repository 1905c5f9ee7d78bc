/** Kills a process while it removes or merges a conversation: the conversation is there completely, or not at all. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ConversationId } from "../../src/core/model/types.ts";
import { databaseFileOf } from "../../src/core/model/database-file.ts";
import type { Store } from "../../src/core/model/store.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { checkLossless } from "../support/lossless.ts";
import { createRandom } from "../support/random.ts";
import { makeScratch } from "../support/scratch.ts";
import { createHost, toAppendable, turnWithTool } from "../support/scripted-host.ts";
import type { ScriptedHost } from "../support/scripted-host.ts";
import { begun, done } from "./archivist.ts";
import type { ArchivistOrders } from "./archivist.ts";

const rounds = 8;

interface World {
  readonly folder: string;
  readonly archive: string;
  readonly id: ConversationId;
  readonly host: ScriptedHost;
  readonly other: ConversationId;
  readonly otherHost: ScriptedHost;
}

async function withStore<T>(path: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openSqlite({ path, housekeeping: false });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** `whole/lcm.db` has two conversations, `without/lcm.db` only the other, and the archive the one. */
async function createWorld(): Promise<World> {
  const folder = makeScratch("archive");
  const path = join(folder, "whole", "lcm.db");
  const archive = join(folder, "old.db");
  const [host, otherHost] = [createHost("h"), createHost("o")];
  return await withStore(path, async (store) => {
    const fill = async (sessionId: string, from: ScriptedHost, turns: number): Promise<ConversationId> => {
      const { id } = await store.open({ sessionId });
      for (let turn = 0; turn < turns; turn++)
        for (const raw of turnWithTool(`c${turn}`, `${sessionId} asks ${turn}`, `answer ${turn} `.repeat(turn % 30)))
          from.says(raw);
      await store.append(id, from.entries.map(toAppendable));
      const run = (await store.context(id)).slice(0, 20);
      const leaf = {
        text: "leaf",
        tokens: 1,
        level: "normal",
        model: null,
        previousContext: null,
        fileIds: [],
      } as const;
      assert.equal((await store.fold(id, run, leaf)).kind, "written");
      for (let file = 0; file < 10; file++)
        await store.saveFile({
          conversation: id,
          name: null,
          mimeType: null,
          content: `${sessionId} ${file}`,
          encoding: "utf8",
          exploration: null,
        });
      return id;
    };
    const other = await fill("other", otherHost, 20);
    const id = await fill("old", host, 250);
    while ((await store.index(1_000)) > 0);
    await store.archive([id], archive);
    mkdirSync(join(folder, "without"));
    await databaseFileOf(store).backup(join(folder, "without", "lcm.db"));
    cpSync(join(folder, "whole", "lcm-files"), join(folder, "without", "lcm-files"), { recursive: true });
    await withStore(join(folder, "without", "lcm.db"), async (smaller) => {
      const revision = (await smaller.conversation(id))?.revision ?? -1;
      assert.equal((await smaller.remove([{ conversation: id, revision }])).kind, "written");
      await smaller.append(other, [toAppendable(otherHost.says({ role: "user", content: "later" }))]);
      while ((await smaller.index(1_000)) > 0);
    });
    await store.append(other, otherHost.entries.map(toAppendable));
    return { folder, archive, id, host, other, otherHost };
  });
}

/** Runs it and kills it this long after it has begun; returns how long it took if it was not killed. */
async function run(orders: ArchivistOrders, killAfterMs: number | null): Promise<{ said: string; tookMs: number }> {
  const script = fileURLToPath(new URL("archivist.ts", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(orders)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env["PATH"] },
  });
  const ended = Promise.withResolvers<number | null>();
  let said = "";
  let [begunMs, doneMs] = [0, 0];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
    if (begunMs === 0) {
      begunMs = performance.now();
      if (killAfterMs !== null) void sleep(killAfterMs).then(() => child.kill("SIGKILL"));
    }
    if (said.includes(done)) doneMs = performance.now();
  });
  child.on("close", ended.resolve);
  const code = await ended.promise;
  assert.ok(said.startsWith(begun), "it began");
  if (killAfterMs === null) assert.equal(code, 0);
  return { said, tookMs: doneMs - begunMs };
}

describe("kill -9 in the middle", () => {
  for (const what of ["remove", "merge"] as const) {
    it(`of a ${what} leaves all of a conversation or nothing of it, and repeating it completes it`, async (t) => {
      const { folder, archive, id, host, other, otherHost } = await createWorld();
      const from = join(folder, what === "remove" ? "whole" : "without");
      const place = join(folder, "tried");
      const path = join(place, "lcm.db");
      const orders = { path, conversation: id, ...(what === "merge" ? { archive } : {}) };
      const random = createRandom(7);
      const count = { all: 0, nothing: 0 };
      // Removing spends most of its time after the rows are gone, on freeing space.
      const hurry = what === "remove" ? 2 : 1;

      const check = async (store: Store): Promise<boolean> => {
        const isThere = (await store.conversation(id)) !== null;
        await checkLossless(store, [
          { conversation: other, entries: otherHost.entries },
          ...(isThere ? [{ conversation: id, entries: host.entries }] : []),
        ]);
        assert.equal((await store.status()).messages, otherHost.entries.length + (isThere ? host.entries.length : 0));
        if (isThere)
          for (const file of await store.files(id)) assert.match(await store.fileContent(file.id), /^old \d$/);
        return isThere;
      };

      let tookMs = 0;
      for (let round = 0; round <= rounds; round++) {
        rmSync(place, { recursive: true, force: true });
        cpSync(from, place, { recursive: true });
        const ended = await run(orders, round === 0 ? null : tookMs * (random.between(0, 100) / 100) ** hurry);
        if (round === 0) tookMs = ended.tookMs;
        await withStore(path, async (store) => {
          const isThere = await check(store);
          if (ended.said.includes(done)) assert.equal(isThere, what === "merge");
          if (round > 0) count[isThere ? "all" : "nothing"] += 1;
          if (what === "merge") await store.merge(archive);
          else if (isThere) {
            const revision = (await store.conversation(id))?.revision ?? -1;
            await store.remove([{ conversation: id, revision }]);
          }
          assert.equal(await check(store), what === "merge");
        });
      }
      t.diagnostic(`${rounds} kills: ${count.all} times it was there, ${count.nothing} times it was not`);
      rmSync(folder, { recursive: true, force: true });
    });
  }
});
