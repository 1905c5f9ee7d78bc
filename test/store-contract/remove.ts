/** Contract: deleting conversations removes everything that belongs to them, and nothing else. */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe } from "node:test";
import { sql } from "../../src/store/script.ts";
import { restoreMessage } from "../../src/core/ingest/large-content.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { checkSound } from "../support/lossless.ts";
import { journalIn } from "./dump.ts";
import { createHost, toAppendable, user } from "../support/scripted-host.ts";
import { foldPlaces, isKept, itOn, itOnFile, nowhere, numbered, onFile, refuses, say } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { dump, fileWords, finds, naming, onScene, planFor, removeAll, save } from "./old-conversation.ts";

export function testRemove(subject: StoreUnderTest): void {
  const it = itOn(subject, onScene);
  const onFileIt = itOnFile(subject, onScene);

  describe("removing", () => {
    it("is stale once a conversation was written to, or is gone, and then removes nothing", async (scene) => {
      const { store, path, old, other, host } = scene;
      const plan = await planFor(store, other.id, old.id);
      await store.append(old.id, [toAppendable(host.says(user("one more")))]);
      const before = await dump(subject, path);
      assert.equal((await store.remove(plan)).kind, "stale");
      assert.deepEqual(await dump(subject, path), before);
      await removeAll(store, old.id);
      assert.equal((await store.remove([{ conversation: old.id, revision: 0 }])).kind, "stale");
      await refuses("invalid", () => store.remove([]));
    });

    it("is journalled without a word of what was removed, and cannot be undone", async (scene) => {
      const { store, path, old, next } = scene;
      const { change } = await removeAll(store, old.id, next.id);
      const steps = await store.journal({ limit: 100 });
      assert.deepEqual(
        steps.map(({ operation, subject: what, removed }) => [operation, what, removed]),
        [["prune", "2 conversations", [old.id, next.id]]],
      );
      const text = `{}${JSON.stringify({ conversations: [old.id, next.id] })}`;
      assert.deepEqual(await journalIn(subject, path), [{ change, text }]);
      assert.equal((await store.planUndo(change)).obstacles.length, 1);
    });

    it("leaves a file to the conversation that holds copies naming it", async ({ store, path, folder, old, other }) => {
      const file = await save(store, old, "shared words");
      await store.append(old.id, [{ kind: "message", message: naming("with-file", file) }]);
      const last = (await store.context(old.id)).length - 1;
      await foldPlaces(store, old.id, [last, last], "a leaf of what names the file");
      assert.equal((await store.transplant({ source: old.id, target: other.id })).kind, "written");
      const copies = join(folder, "copies.db");
      await store.archive([other.id], copies);
      const originals = join(folder, "old.db");
      await store.archive([old.id], originals);

      const readsBack = async (of: Store, id: ConversationId): Promise<void> => {
        const named = (await of.messages({ conversation: id })).filter(({ moved }) => moved.length > 0);
        assert.equal(named.length, 1);
        for (const message of named)
          assert.deepEqual(await restoreMessage(of, message), {
            role: "user",
            content: [{ type: "text", text: "see shared words" }],
          });
      };
      await onFile(subject, copies, async (archive) => await readsBack(archive, other.id));
      await removeAll(store, old.id);
      await checkSound(store);
      await readsBack(store, other.id);
      assert.equal((await store.file(file.id))?.conversation, other.id);
      assert.ok(!(await isKept(subject, join(path, ".."), fileWords)), "its other file is gone");

      await store.merge(originals);
      await readsBack(store, old.id);
      await removeAll(store, other.id, old.id);
      assert.equal(await store.file(file.id), null);
      assert.ok(!(await isKept(subject, join(path, ".."), "shared words")));
      await store.merge(copies);
      await readsBack(store, other.id);
      await checkSound(store);
    });

    onFileIt("gives the space back, unless somebody else has the file open: then it is free inside", async (scene) => {
      const { store, path, old, other, host } = scene;
      await say(store, old, host, ...numbered(400, (said) => `${said} ${"many words ".repeat(40)}`));
      const second = await subject.open(path);
      const [extent] = await store.extents([old.id]);
      const beside = await removeAll(store, old.id);
      await second.close();
      assert.equal(beside.bytes, 0);
      assert.ok(extent !== undefined && beside.reusable > 0.5 * extent.bytes);
      const alone = await removeAll(store, other.id);
      assert.ok(alone.bytes > 0.5 * extent.bytes);
      assert.equal(alone.reusable, 0);
    });

    it("also removes the files left by an interrupted removal, and no others", async (scene) => {
      const { store, path, old, other } = scene;
      const filesDir = join(path, "..", "lcm-files");
      const kept = await save(store, other, "words of another file");
      const left = join(filesDir, "4711", "file_00112233445566aa.txt");
      const [fresh, foreign] = [join(filesDir, "4711", "file_00112233445566bb.txt"), join(filesDir, "notes.txt")];
      mkdirSync(join(filesDir, "4711"), { recursive: true });
      for (const file of [left, fresh, foreign]) writeFileSync(file, "left over");
      const longAgo = new Date("2026-01-01T00:00:00Z");
      for (const file of [left, foreign]) utimesSync(file, longAgo, longAgo);
      await removeAll(store, old.id);
      assert.deepEqual([left, fresh, foreign].map(existsSync), [false, true, true]);
      assert.equal(await store.fileContent(kept.id), "words of another file");
    });

    it("does not hide later writes from search", async ({ store, old, next, other }) => {
      await removeAll(store, old.id, next.id);
      await foldPlaces(store, other.id, [0, 1], "a beacon");
      await store.append(other.id, [toAppendable(createHost("late").says(user("another beacon")))]);
      while ((await store.index(1_000)) > 0);
      assert.equal(await finds(store, "beacon"), 2);
      await checkSound(store);
    });

    it("is refused while rows of another conversation point there", async ({ store, path, old, other }) => {
      const [message] = await store.messages({ conversation: other.id, limit: 1 });
      const [leaf] = await store.summaries({ conversation: old.id, depth: 0 });
      await subject.raw(path, function* () {
        yield sql`INSERT INTO summary_messages (summary_id, message_id, ordinal, conversation_id)
                  VALUES (${leaf?.id ?? ""}, ${message?.id ?? 0}, 99, ${old.id})`;
      });
      assert.deepEqual((await store.extents([other.id]))[0]?.tiedTo, [old.id]);
      await refuses("conflict", async () => await store.remove(await planFor(store, other.id)));
      assert.notEqual(await store.conversation(other.id), null);
      await removeAll(store, other.id, old.id);
    });
  });

  describe("the size of conversations", () => {
    it("includes their files, and lists who carries summaries of them", async ({ store, old, next, other }) => {
      const [one, two] = await store.extents([old.id, other.id, nowhere]);
      assert.ok(one !== undefined && two !== undefined);
      assert.deepEqual(
        { ...one, bytes: one.bytes > 2_000 },
        {
          conversation: old.id,
          totals: old.totals,
          bytes: true,
          files: 1,
          fileBytes: fileWords.length,
          carriedBy: [next.id],
          tiedTo: [],
        },
      );
      assert.ok(two.bytes > 0 && two.bytes < one.bytes);
      assert.deepEqual(two.carriedBy, []);
    });
  });
}
