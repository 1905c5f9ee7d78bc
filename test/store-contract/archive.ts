/** Contract: conversations move out of a database and back, or into another one, whole or not at all. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe } from "node:test";
import type { ConversationId } from "../../src/core/model/types.ts";
import { databaseFileOf } from "../../src/core/model/database-file.ts";
import type { Store } from "../../src/core/model/store.ts";
import { all as rowsOf, sql } from "../../src/store/script.ts";
import { checkLossless, checkSound } from "../support/lossless.ts";
import { assertPrivate } from "../support/platform.ts";
import { createHost, toAppendable, user } from "../support/scripted-host.ts";
import { compaction, foldPlaces, isKept, itOn, itOnFile, nowhere, numbered, onFile, refuses, say } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { dump, fileWords, finds, onScene, removeAll, without } from "./old-conversation.ts";

export function testArchive(subject: StoreUnderTest): void {
  const it = itOn(subject, onScene);

  const opened = async (path: string, work: (store: Store) => Promise<void>): Promise<void> =>
    await onFile(subject, path, work);

  describe("an archive", () => {
    it("is a private database with only those conversations, and can be used like any other", async (scene) => {
      const { store, path, folder, old, host } = scene;
      const before = await dump(subject, path);
      const to = join(folder, "old.db");
      const made = await store.archive([old.id], to);
      assert.deepEqual(made, { path: to, bytes: statSync(to).size, files: 1 });
      assertPrivate(to);
      assert.deepEqual(await dump(subject, path), before, "the source is unchanged");
      assert.deepEqual(
        readdirSync(folder).filter((name) => name !== "place" && !name.startsWith("lcm.db")),
        ["old.db", "old.db-files"],
      );
      await opened(to, async (archive) => {
        await checkLossless(archive, [{ conversation: old.id, entries: host.entries }]);
        const picture = async (of: Store) => ({
          conversation: await of.conversation(old.id),
          summaries: await of.summaries({ conversation: old.id }),
          journal: await of.journal({ conversation: old.id, limit: 100 }),
          compactions: await of.compactions(old.id, 100),
        });
        assert.deepEqual(await picture(archive), await picture(store));
        assert.deepEqual((await archive.conversations({ includeHidden: true })).length, 1);
        assert.equal(await finds(archive, "harbour"), 4);
        const [file] = await archive.files(old.id);
        assert.equal(await archive.fileContent(file?.id ?? "file_"), fileWords);
      });
    });

    it("never overwrites anything, and needs an existing folder", async ({ store, folder, old }) => {
      const to = join(folder, "old.db");
      await store.archive([old.id], to);
      const bytes = readFileSync(to);
      await refuses("conflict", () => store.archive([old.id], to));
      assert.deepEqual(readFileSync(to), bytes);
      await refuses("not_found", () => store.archive([old.id], join(folder, "nowhere", "old.db")));
      assert.equal((await store.archive([old.id], to, true)).files, 1);
    });

    it("shows conversations as of one moment, while others write to them", async (scene) => {
      const { store, path, folder, old, host } = scene;
      const second = await subject.open(path);
      const isOver = new AbortController();
      const writer = (async () => {
        for (let said = 0; !isOver.signal.aborted && said < 2_000; said++)
          await second.append(old.id, [toAppendable(host.says(user(`while archiving ${said}`)))]);
      })();
      const to = join(folder, "old.db");
      await store.archive([old.id], to).finally(() => isOver.abort());
      await writer;
      await second.close();
      await opened(to, async (archive) => {
        await checkSound(archive);
        const taken = await archive.messages({ conversation: old.id });
        const stored = await store.messages({ conversation: old.id });
        assert.deepEqual(taken, stored.slice(0, taken.length));
      });
    });
  });

  describe("archived, removed and merged again", () => {
    it("every row of a conversation is unchanged, and no other row was touched on the way", async (scene) => {
      const { store, path, folder, old, host, other, otherHost } = scene;
      const before = await dump(subject, path);
      const to = join(folder, "old.db");
      await store.archive([old.id], to);
      const removed = await removeAll(store, old.id);
      assert.ok(removed.bytes >= 0);
      const between = await dump(subject, path);
      assert.deepEqual(
        without(between, before),
        Object.fromEntries(Object.keys(before).map((table) => [table, []])),
        "the rest is unchanged",
      );
      assert.equal(await store.conversation(old.id), null);
      assert.equal(await finds(store, "harbour lighthouse"), 0);
      await checkSound(store);
      assert.ok(!(await isKept(subject, join(path, ".."), "harbour question")), "no word of it is left in the file");
      assert.ok(!(await isKept(subject, join(path, ".."), fileWords)));

      const merged = await store.merge(to);
      assert.deepEqual(merged, {
        conversations: [{ from: old.id, to: old.id }],
        known: [],
        messages: old.totals.messages,
        summaries: old.totals.summaries,
        files: 1,
      });
      assert.deepEqual(await dump(subject, path), before);
      await checkLossless(store, [
        { conversation: old.id, entries: host.entries },
        { conversation: other.id, entries: otherHost.entries },
      ]);
      assert.equal(await finds(store, "harbour"), 4);
      assert.equal(await finds(store, "lighthouse"), 3);
      while ((await store.index(1_000)) > 0);
      assert.equal(await finds(store, "lighthouse"), 3);
      assert.equal((await store.integrity()).orphanedSearchEntries, 0);
      const [file] = await store.files(old.id);
      assert.equal(await store.fileContent(file?.id ?? "file_"), fileWords);
    });

    it("a second merge changes nothing, and reports what exists already", async ({
      store,
      path,
      folder,
      old,
      other,
    }) => {
      const to = join(folder, "both.db");
      await store.archive([old.id, other.id], to);
      await removeAll(store, old.id);
      assert.deepEqual((await store.merge(to)).known, [other.id]);
      const after = await dump(subject, path);
      assert.deepEqual(await store.merge(to), {
        conversations: [],
        known: [other.id, old.id].toSorted((a, b) => a - b),
        messages: 0,
        summaries: 0,
        files: 0,
      });
      assert.deepEqual(await dump(subject, path), after);
      // The host continued it under another id: it is still the same conversation.
      await store.setSession(old.id, "went on");
      assert.equal((await store.merge(to)).conversations.length, 0);
    });

    it("a conversation that continues here stays the active segment of its session", async ({
      store,
      folder,
      other,
    }) => {
      const to = join(folder, "other.db");
      await store.archive([other.id], to);
      await removeAll(store, other.id);
      const again = await store.open({ sessionId: "other", sessionKey: "agent:main:other" });
      await store.merge(to);
      assert.equal((await store.conversation(other.id))?.active, false);
      assert.equal((await store.conversation(again.id))?.active, true);
      await checkSound(store);
    });
  });

  describe("merged into another database", () => {
    it("conversations get numbers that are free there, all of them, and read as before", async (scene) => {
      const { store, folder, old, host, other, otherHost } = scene;
      const to = join(folder, "all.db");
      await store.archive([old.id, other.id], to);
      const path = join(folder, "elsewhere", "lcm.db");
      await opened(path, async (elsewhere) => {
        const own = await elsewhere.open({ sessionId: "own" });
        const ownHost = createHost("own");
        await say(elsewhere, own, ownHost, ...numbered(30, (said) => `own words ${said}`));
        await foldPlaces(elsewhere, own.id, [0, 9], "own leaf");
        await elsewhere.recordCompaction(compaction(own.id));
        while ((await elsewhere.index(1_000)) > 0);
        const before = await dump(subject, path);

        const { conversations, known } = await elsewhere.merge(to);
        assert.deepEqual(known, []);
        assert.ok(conversations.every((each) => each.to !== own.id));
        assert.deepEqual(
          without(before, await dump(subject, path)),
          Object.fromEntries(Object.keys(before).map((t) => [t, []])),
        );
        const numberOf = (id: ConversationId): ConversationId =>
          conversations.find(({ from }) => from === id)?.to ?? nowhere;
        await checkLossless(elsewhere, [
          { conversation: own.id, entries: ownHost.entries },
          { conversation: numberOf(old.id), entries: host.entries },
          { conversation: numberOf(other.id), entries: otherHost.entries },
        ]);
        assert.equal(await finds(elsewhere, "harbour"), 4);
        while ((await elsewhere.index(1_000)) > 0);
        assert.equal(await finds(elsewhere, "harbour"), 4);
        assert.equal(await finds(elsewhere, "own"), 31);
        const [file] = await elsewhere.files(numberOf(old.id));
        assert.equal(await elsewhere.fileContent(file?.id ?? "file_"), fileWords);
        assert.deepEqual(await elsewhere.journal({ limit: 100 }), [], "its changes have other numbers here");
        assert.deepEqual((await elsewhere.merge(to)).conversations, []);
      });
    });

    it("copies name their originals wherever those are, and never an unrelated message", async (scene) => {
      const { store, folder, old, other } = scene;
      assert.equal((await store.transplant({ source: old.id, target: other.id })).kind, "written");
      const originsIn = async (path: string): Promise<readonly (readonly [string, string | null])[]> =>
        await subject.raw(path, () =>
          rowsOf(
            sql`SELECT c.content, o.content AS origin FROM messages c LEFT JOIN messages o ON o.message_id = c.copied_from
                WHERE c.copied_from IS NOT NULL ORDER BY c.message_id`,
            (row) => [String(row["content"]), row["origin"] === null ? null : String(row["origin"])] as const,
          ),
        );
      const [both, copies] = [join(folder, "both.db"), join(folder, "copies.db")];
      await store.archive([old.id, other.id], both);
      await store.archive([other.id], copies);
      for (const [name, from, isFound] of [
        ["with their originals", both, true],
        ["alone", copies, false],
      ] as const) {
        const path = join(folder, name, "lcm.db");
        await opened(path, async (elsewhere) => {
          const strangers = await elsewhere.open({ sessionId: "strangers" });
          await say(elsewhere, strangers, createHost("s"), ...numbered(60, (said) => `a stranger ${said}`));
          await elsewhere.merge(from);
          await checkSound(elsewhere);
        });
        const found = await originsIn(path);
        assert.ok(found.length >= 8);
        for (const [content, origin] of found) assert.equal(origin, isFound ? content : null, name);
      }
    });

    it("no unrelated conversation gets the number that a copy here names as its original", async (scene) => {
      const { store, path, folder, old, other } = scene;
      assert.equal((await store.transplant({ source: old.id, target: other.id })).kind, "written");
      await removeAll(store, old.id);
      const strangers = join(folder, "strangers.db");
      await opened(join(folder, "elsewhere", "lcm.db"), async (elsewhere) => {
        for (const [sessionId, messages] of [
          ["as many as here", 4],
          ["strangers", 8],
        ] as const) {
          const host = createHost(sessionId);
          await say(
            elsewhere,
            await elsewhere.open({ sessionId }),
            host,
            ...numbered(messages, (said) => `a stranger ${said}`),
          );
        }
        await elsewhere.archive([old.id], strangers);
      });
      await store.merge(strangers);
      const tied = await subject.raw(path, () =>
        rowsOf(sql`SELECT o.content FROM messages c JOIN messages o ON o.message_id = c.copied_from`, (row) => row),
      );
      assert.deepEqual(tied, []);
      await checkSound(store);
    });

    it("refuses everything if a summary of the same id belongs to something else", async (scene) => {
      const { store, path, folder, old } = scene;
      const to = join(folder, "old.db");
      await store.archive([old.id], to);
      const forged = new DatabaseSync(to);
      forged.exec("UPDATE conversations SET created_at = '2020-01-01T00:00:00.000Z'");
      forged.close();
      const before = await dump(subject, path);
      await refuses("conflict", () => store.merge(to));
      assert.deepEqual(await dump(subject, path), before);
    });

    it("refuses what is not one of our databases, and the database itself", async ({ store, path, folder }) => {
      if (subject.databaseFile !== undefined) await refuses("invalid", () => store.merge(path));
      await refuses("not_found", () => store.merge(join(folder, "none.db")));
      const strange = join(folder, "strange.db");
      const db = new DatabaseSync(strange);
      db.exec("CREATE TABLE t (x)");
      db.close();
      await refuses("invalid", () => store.merge(strange));
    });

    itOnFile(subject, onScene)("brings the files of a backup too", async ({ store, folder, old }) => {
      const copy = join(folder, "lcm.backup");
      await databaseFileOf(store).backup(copy);
      await opened(join(folder, "elsewhere", "lcm.db"), async (elsewhere) => {
        assert.equal((await elsewhere.merge(copy)).files, 1);
        const [file] = await elsewhere.files(old.id);
        assert.equal(await elsewhere.fileContent(file?.id ?? "file_"), fileWords);
        await checkSound(elsewhere);
      });
    });
  });
}
