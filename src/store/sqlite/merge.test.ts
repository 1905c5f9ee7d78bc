/** Merging a database that has more than this one. The contract tests the rest. */

import assert from "node:assert/strict";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe } from "node:test";
import { filesBelow, foldPlaces, itOn, newFile, onTalk, say } from "../../../test/store-contract/ground.ts";
import { removeAll } from "../../../test/store-contract/old-conversation.ts";
import { createHost } from "../../../test/support/scripted-host.ts";
import { sqlite } from "../../../test/store-contract/sqlite.ts";
import { openSqlite } from "./store.ts";

const it = itOn({ ...sqlite, open: async (path) => await openSqlite({ path, housekeeping: false }) }, onTalk);

describe("a merge", () => {
  it("copies no files of a conversation that is already here", async (scene) => {
    const { store, folder, talk, host } = scene;
    await say(store, talk, host, "the heron came at dawn");
    const from = join(folder, "copy", "lcm.db");
    mkdirSync(join(folder, "copy"));
    await store.archive([talk.id], from);
    const there = await openSqlite({ path: from, housekeeping: false });
    await there.saveFile(newFile(talk.id, "a long letter"));
    await there.close();
    assert.deepEqual(await store.merge(from), {
      conversations: [],
      known: [talk.id],
      messages: 0,
      summaries: 0,
      files: 0,
    });
    assert.deepEqual(
      filesBelow(folder).filter((path) => /file_/.test(path) && !path.includes("copy")),
      [],
    );
  });

  it("replaces no stored file of this database, whatever the other database calls its own", async (scene) => {
    const { store, folder, talk, host } = scene;
    await say(store, talk, host, "the heron came at dawn");
    const here = await store.saveFile(newFile(talk.id, "a long letter"));
    const from = join(folder, "copy", "lcm.db");
    const there = await openSqlite({ path: from, housekeeping: false });
    const { id } = await there.open({ sessionId: "forged" });
    const forged = await there.saveFile(newFile(id, "a forged letter, longer than the first"));
    await there.close();
    using db = new DatabaseSync(from);
    db.prepare("UPDATE large_files SET storage_uri = ?").run(`elsewhere/../${here.storageUri}`);
    mkdirSync(dirname(join(folder, "copy", "lcm-files", here.storageUri)), { recursive: true });
    renameSync(
      join(folder, "copy", "lcm-files", forged.storageUri),
      join(folder, "copy", "lcm-files", here.storageUri),
    );
    await assert.rejects(store.merge(from), { code: "conflict", message: /would replace/ });
    assert.equal(await store.fileContent(here.id), "a long letter");
  });

  it("replaces content that no row here names, even of the same size", async (scene) => {
    const { store, folder } = scene;
    const from = join(folder, "copy", "lcm.db");
    const there = await openSqlite({ path: from, housekeeping: false });
    const { id } = await there.open({ sessionId: "there" });
    const file = await there.saveFile(newFile(id, "a long letter"));
    await there.close();
    const left = join(folder, "lcm-files", file.storageUri);
    mkdirSync(dirname(left), { recursive: true });
    writeFileSync(left, "another one!!");
    await store.merge(from);
    assert.equal(await store.fileContent(file.id), "a long letter");
  });

  it("leaves a session without a key active, even if another session is active here", async (scene) => {
    const { store, folder, talk, host } = scene;
    await say(store, talk, host, "one thing that was said");
    const archive = join(folder, "old.db");
    await store.archive([talk.id], archive);
    const other = await store.open({ sessionId: "other" });
    await removeAll(store, talk.id);
    await store.merge(archive);
    for (const { active } of await store.conversations()) assert.equal(active, true);
    assert.equal((await store.open({ sessionId: "s" })).id, talk.id);
    assert.equal((await store.open({ sessionId: "other" })).id, other.id);
  });

  it("keeps free numbers, even if messages here are copies of other conversations", async (scene) => {
    const { store, folder, talk, host } = scene;
    await say(store, talk, host, "one thing that was said", "another thing that was said");
    const [source, target] = [await store.open({ sessionId: "source" }), await store.open({ sessionId: "target" })];
    await say(store, source, createHost("g"), "the guest says so", "the guest says more");
    await foldPlaces(store, source.id, [0, 1], "the guest");
    assert.equal((await store.transplant({ source: source.id, target: target.id })).kind, "written");
    const before = await store.messages({ conversation: talk.id });
    const archive = join(folder, "old.db");
    await store.archive([talk.id], archive);
    await removeAll(store, talk.id);
    await store.merge(archive);
    assert.deepEqual(await store.messages({ conversation: talk.id }), before);
  });
});
