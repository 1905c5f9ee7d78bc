/** Conversations out of a database and back into it, or into another: whole, or not at all. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { messageToStore } from "../../core/content.ts";
import { restoreMessage } from "../../core/large-files.ts";
import type { Conversation, ConversationId, NewMessage, StoredFile } from "../../core/model.ts";
import type { RemovePlan, Store } from "../../core/ports.ts";
import { tables } from "../../store/schema.ts";
import { checkLossless, checkSound } from "../lossless.ts";
import { createHost, toAppendable, turnWithTool, user } from "../scripted-host.ts";
import type { ScriptedHost } from "../scripted-host.ts";
import { at, compaction, deliver, foldPlaces, nowhere, onStore, refuses, summary } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

interface Scene {
  readonly store: Store;
  readonly path: string;
  readonly folder: string;
  /** Has of everything: layers of summaries, a file, a branch, entries, a compaction, a named turn, a title. */
  readonly old: Conversation;
  readonly host: ScriptedHost;
  /** Carries a summary of it. */
  readonly next: Conversation;
  readonly other: Conversation;
  readonly otherHost: ScriptedHost;
}

const fileWords = "the words in the file of the old conversation";

/** On a store of its own, which is not watched: here rows are meant to go. */
const onScene = (subject: StoreUnderTest, test: (scene: Scene) => Promise<void>): (() => Promise<void>) =>
  onStore(subject, async ({ folder }) => {
    const path = join(folder, "place", "lcm.db");
    const store = await subject.open(path);
    try {
      await test({ store, path, folder, ...(await live(store)) });
    } finally {
      await store.close();
    }
  });

async function live(store: Store): Promise<Omit<Scene, "store" | "path" | "folder">> {
  const other = await store.open({ sessionId: "other", sessionKey: "agent:main:other" });
  const otherHost = createHost("o");
  for (const raw of turnWithTool("oc", "another question", "another answer")) otherHost.says(raw);
  await deliver(store, other, otherHost);

  const old = await store.open({ sessionId: "old", sessionKey: "agent:main:old" });
  const host = createHost("h");
  for (let turn = 0; turn < 4; turn++)
    for (const raw of turnWithTool(`c${turn}`, `harbour question ${turn}`, `answer ${turn}`)) host.says(raw);
  host.notes("custom", { kept: true });
  await store.append(old.id, host.entries.map(toAppendable), { turnKey: "turn 1", hostCursor: "here" });
  host.goesBackTo("h-14");
  host.says(user("another way"));
  await deliver(store, old, host);
  for (const place of [0, 1, 2]) await foldPlaces(store, old.id, [place, place + 3], `lighthouse leaf ${place}`);
  await foldPlaces(store, old.id, [0, 1], "condensed");
  await save(store, old, fileWords);
  await store.setTitle(old.id, "Old");
  await store.recordCompaction(compaction(old.id));
  const [made] = await store.summaries({ conversation: old.id, depth: 0 });
  assert.ok(made !== undefined);
  await store.rewrite({ summary: made.id, revision: made.revision }, summary("lighthouse leaf, written anew"));
  await store.saveDraft(made.id, "basis", summary("a draft"));
  const next = await store.openSegment({ sessionId: "next", sessionKey: "agent:main:old" }, { carryDepth: 1 });
  await store.append(next.id, [toAppendable(createHost("n").says(user("what is next")))]);
  while ((await store.index(1_000)) > 0);
  const now = await store.conversation(old.id);
  assert.ok(now !== null);
  return { old: now, host, next, other, otherHost };
}

const save = async (store: Store, { id }: Conversation, content: string): Promise<StoredFile> =>
  await store.saveFile({
    conversation: id,
    name: "notes.md",
    mimeType: null,
    content,
    encoding: "utf8",
    exploration: "notes",
  });

/** A user who names a file among the words. */
const naming = (key: string, file: StoredFile): NewMessage => {
  const said = `[File ${file.id} · ${file.exploration}]`;
  const message = messageToStore(
    { role: "user", content: [{ type: "text", text: `see ${said}` }] },
    { key, at: at("2026-02-17T09:00:00.000Z") },
  );
  return { ...message, moved: [{ file: file.id, path: ["content", 0, "text"], from: 4, length: said.length }] };
};

async function planFor(store: Store, ...ids: readonly ConversationId[]): Promise<RemovePlan> {
  return await Promise.all(
    ids.map(async (id) => ({ conversation: id, revision: (await store.conversation(id))?.revision ?? -1 })),
  );
}

async function removeAll(store: Store, ...ids: readonly ConversationId[]) {
  const outcome = await store.remove(await planFor(store, ...ids));
  assert.ok(outcome.kind === "written");
  return outcome;
}

type Dump = Readonly<Record<string, readonly string[]>>;

/** Every row of every table, but for the journal and what search makes of them. */
function dump(path: string): Dump {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const names = Object.keys(tables).filter((name) => !["journal", "drafts", "search_progress"].includes(name));
    return Object.fromEntries(
      names.map((name) => {
        const rows = db.prepare(`SELECT * FROM ${name}`).all();
        return [name, rows.map(({ search_id: _, ...row }) => JSON.stringify(row)).toSorted()];
      }),
    );
  } finally {
    db.close();
  }
}

/** Rows of one dump that are not in the other. */
const without = (one: Dump, other: Dump): Dump =>
  Object.fromEntries(
    Object.entries(one).map(([table, rows]) => [table, rows.filter((row) => other[table]?.includes(row) !== true)]),
  );

const finds = async (store: Store, pattern: string): Promise<number> =>
  (await store.search({ pattern, mode: "full_text", scope: "both", sort: "recency", limit: 100 })).hits.length;

const isOnDisk = (folder: string, word: string): boolean =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .some((entry) => readFileSync(join(entry.parentPath, entry.name)).includes(word));

export function testArchive(subject: StoreUnderTest): void {
  const opened = async (path: string, work: (store: Store) => Promise<void>): Promise<void> => {
    const store = await subject.open(path);
    try {
      await work(store);
    } finally {
      await store.close();
    }
  };

  describe("an archive", () => {
    it(
      "is a private database of its own, with nothing but those conversations, and can be used like any",
      onScene(subject, async ({ store, path, folder, old, host }) => {
        const before = dump(path);
        const to = join(folder, "old.db");
        const made = await store.archive([old.id], to);
        assert.deepEqual(made, { path: to, bytes: statSync(to).size, files: 1 });
        assert.equal(statSync(to).mode & 0o777, 0o600);
        assert.deepEqual(dump(path), before, "the source is as it was");
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
      }),
    );

    it(
      "is never written over what is there, nor where there is no folder",
      onScene(subject, async ({ store, folder, old }) => {
        const to = join(folder, "old.db");
        await store.archive([old.id], to);
        const bytes = readFileSync(to);
        await refuses("conflict", () => store.archive([old.id], to));
        assert.deepEqual(readFileSync(to), bytes);
        await refuses("not_found", () => store.archive([old.id], join(folder, "nowhere", "old.db")));
        assert.equal((await store.archive([old.id], to, true)).files, 1);
      }),
    );

    it(
      "shows conversations as they were at one moment, while others write to them",
      onScene(subject, async ({ store, path, folder, old, host }) => {
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
      }),
    );
  });

  describe("archived, removed and merged again", () => {
    it(
      "every row of a conversation is as it was, and no other row was touched on the way",
      onScene(subject, async ({ store, path, folder, old, host, other, otherHost }) => {
        const before = dump(path);
        const to = join(folder, "old.db");
        await store.archive([old.id], to);
        const removed = await removeAll(store, old.id);
        assert.ok(removed.bytes >= 0);
        const between = dump(path);
        assert.deepEqual(
          without(between, before),
          Object.fromEntries(Object.keys(before).map((table) => [table, []])),
          "what stays is as it was",
        );
        assert.equal(await store.conversation(old.id), null);
        assert.equal(await finds(store, "harbour lighthouse"), 0);
        await checkSound(store);
        assert.ok(!isOnDisk(join(path, ".."), "harbour question"), "no word of it is left in the file");
        assert.ok(!isOnDisk(join(path, ".."), fileWords));

        const merged = await store.merge(to);
        assert.deepEqual(merged, {
          conversations: [{ from: old.id, to: old.id }],
          known: [],
          messages: old.totals.messages,
          summaries: old.totals.summaries,
          files: 1,
        });
        assert.deepEqual(dump(path), before);
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
      }),
    );

    it(
      "a second merge changes nothing, and tells what is known",
      onScene(subject, async ({ store, path, folder, old, other }) => {
        const to = join(folder, "both.db");
        await store.archive([old.id, other.id], to);
        await removeAll(store, old.id);
        assert.deepEqual((await store.merge(to)).known, [other.id]);
        const after = dump(path);
        assert.deepEqual(await store.merge(to), {
          conversations: [],
          known: [other.id, old.id].toSorted((a, b) => a - b),
          messages: 0,
          summaries: 0,
          files: 0,
        });
        assert.deepEqual(dump(path), after);
        // The host has gone on with it under another id: it is still the same conversation.
        await store.setSession(old.id, "went on");
        assert.equal((await store.merge(to)).conversations.length, 0);
      }),
    );

    it(
      "what goes on here stays the active segment of its session",
      onScene(subject, async ({ store, folder, other }) => {
        const to = join(folder, "other.db");
        await store.archive([other.id], to);
        await removeAll(store, other.id);
        const again = await store.open({ sessionId: "other", sessionKey: "agent:main:other" });
        await store.merge(to);
        assert.equal((await store.conversation(other.id))?.active, false);
        assert.equal((await store.conversation(again.id))?.active, true);
        await checkSound(store);
      }),
    );
  });

  describe("merged into another database", () => {
    it(
      "conversations get numbers that are free there, all of them, and read as before",
      onScene(subject, async ({ store, folder, old, host, other, otherHost }) => {
        const to = join(folder, "all.db");
        await store.archive([old.id, other.id], to);
        const path = join(folder, "elsewhere", "lcm.db");
        await opened(path, async (elsewhere) => {
          const own = await elsewhere.open({ sessionId: "own" });
          const ownHost = createHost("own");
          for (let said = 0; said < 30; said++) ownHost.says(user(`own words ${said}`));
          await deliver(elsewhere, own, ownHost);
          await foldPlaces(elsewhere, own.id, [0, 9], "own leaf");
          await elsewhere.recordCompaction(compaction(own.id));
          while ((await elsewhere.index(1_000)) > 0);
          const before = dump(path);

          const { conversations, known } = await elsewhere.merge(to);
          assert.deepEqual(known, []);
          assert.ok(conversations.every((each) => each.to !== own.id));
          assert.deepEqual(without(before, dump(path)), Object.fromEntries(Object.keys(before).map((t) => [t, []])));
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
      }),
    );

    it(
      "copies name their originals wherever those are, and never a stranger's message",
      onScene(subject, async ({ store, folder, old, other }) => {
        assert.equal((await store.transplant({ source: old.id, target: other.id })).kind, "written");
        const originsIn = (path: string): readonly (readonly [string, string | null])[] => {
          const db = new DatabaseSync(path, { readOnly: true });
          const rows = db
            .prepare(
              `SELECT c.content, o.content AS origin FROM messages c LEFT JOIN messages o ON o.message_id = c.copied_from
               WHERE c.copied_from IS NOT NULL ORDER BY c.message_id`,
            )
            .all();
          db.close();
          return rows.map((row) => [String(row["content"]), row["origin"] === null ? null : String(row["origin"])]);
        };
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
            const host = createHost("s");
            for (let said = 0; said < 60; said++) host.says(user(`a stranger ${said}`));
            await deliver(elsewhere, strangers, host);
            await elsewhere.merge(from);
            await checkSound(elsewhere);
          });
          const found = originsIn(path);
          assert.ok(found.length >= 8);
          for (const [content, origin] of found) assert.equal(origin, isFound ? content : null, name);
        }
      }),
    );

    it(
      "no stranger gets the number that a copy here gives for its original",
      onScene(subject, async ({ store, path, folder, old, other }) => {
        assert.equal((await store.transplant({ source: old.id, target: other.id })).kind, "written");
        await removeAll(store, old.id);
        const strangers = join(folder, "strangers.db");
        await opened(join(folder, "elsewhere", "lcm.db"), async (elsewhere) => {
          for (const [sessionId, messages] of [
            ["as many as here", 4],
            ["strangers", 8],
          ] as const) {
            const host = createHost(sessionId);
            for (let said = 0; said < messages; said++) host.says(user(`a stranger ${said}`));
            await deliver(elsewhere, await elsewhere.open({ sessionId }), host);
          }
          await elsewhere.archive([old.id], strangers);
        });
        await store.merge(strangers);
        const db = new DatabaseSync(path, { readOnly: true });
        const tied = db
          .prepare("SELECT o.content FROM messages c JOIN messages o ON o.message_id = c.copied_from")
          .all();
        db.close();
        assert.deepEqual(tied, []);
        await checkSound(store);
      }),
    );

    it(
      "nothing comes where a summary of the same id belongs to something else",
      onScene(subject, async ({ store, path, folder, old }) => {
        const to = join(folder, "old.db");
        await store.archive([old.id], to);
        const forged = new DatabaseSync(to);
        forged.exec("UPDATE conversations SET created_at = '2020-01-01T00:00:00.000Z'");
        forged.close();
        const before = dump(path);
        await refuses("conflict", () => store.merge(to));
        assert.deepEqual(dump(path), before);
      }),
    );

    it(
      "what is no database of ours is refused, and so is the database itself",
      onScene(subject, async ({ store, path, folder }) => {
        await refuses("invalid", () => store.merge(path));
        await refuses("not_found", () => store.merge(join(folder, "none.db")));
        const strange = join(folder, "strange.db");
        const db = new DatabaseSync(strange);
        db.exec("CREATE TABLE t (x)");
        db.close();
        await refuses("invalid", () => store.merge(strange));
      }),
    );

    it(
      "the files of a backup come too",
      onScene(subject, async ({ store, folder, old }) => {
        const copy = join(folder, "lcm.backup");
        await store.backup(copy);
        await opened(join(folder, "elsewhere", "lcm.db"), async (elsewhere) => {
          assert.equal((await elsewhere.merge(copy)).files, 1);
          const [file] = await elsewhere.files(old.id);
          assert.equal(await elsewhere.fileContent(file?.id ?? "file_"), fileWords);
          await checkSound(elsewhere);
        });
      }),
    );
  });

  describe("removing", () => {
    it(
      "is stale once a conversation was written to, or is gone, and then nothing was removed",
      onScene(subject, async ({ store, path, old, other, host }) => {
        const plan = await planFor(store, other.id, old.id);
        await store.append(old.id, [toAppendable(host.says(user("one more")))]);
        const before = dump(path);
        assert.equal((await store.remove(plan)).kind, "stale");
        assert.deepEqual(dump(path), before);
        await removeAll(store, old.id);
        assert.equal((await store.remove([{ conversation: old.id, revision: 0 }])).kind, "stale");
        await refuses("invalid", () => store.remove([]));
      }),
    );

    it(
      "is journalled without a word of what was removed, and cannot be taken back",
      onScene(subject, async ({ store, old, next }) => {
        const { change } = await removeAll(store, old.id, next.id);
        const steps = await store.journal({ limit: 100 });
        assert.deepEqual(
          steps.map(({ operation, subject: what, before, after }) => [operation, what, before, after]),
          [["prune", "2 conversations", "{}", JSON.stringify({ conversations: [old.id, next.id] })]],
        );
        assert.equal((await store.planUndo(change)).obstacles.length, 1);
      }),
    );

    it(
      "leaves a file to the conversation that holds copies naming it",
      onScene(subject, async ({ store, path, folder, old, other }) => {
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
        await opened(copies, async (archive) => await readsBack(archive, other.id));
        await removeAll(store, old.id);
        await checkSound(store);
        await readsBack(store, other.id);
        assert.equal((await store.file(file.id))?.conversation, other.id);
        assert.ok(!isOnDisk(join(path, ".."), fileWords), "its other file is gone");

        await store.merge(originals);
        await readsBack(store, old.id);
        await removeAll(store, other.id, old.id);
        assert.equal(await store.file(file.id), null);
        assert.ok(!isOnDisk(join(path, ".."), "shared words"));
        await store.merge(copies);
        await readsBack(store, other.id);
        await checkSound(store);
      }),
    );

    it(
      "gives the space back, unless somebody else has the file open: then it is free inside",
      onScene(subject, async ({ store, path, old, other, host }) => {
        for (let said = 0; said < 400; said++) host.says(user(`${said} ${"many words ".repeat(40)}`));
        await deliver(store, old, host);
        const second = await subject.open(path);
        const [extent] = await store.extents([old.id]);
        const beside = await removeAll(store, old.id);
        await second.close();
        assert.equal(beside.bytes, 0);
        assert.ok(extent !== undefined && beside.reusable > 0.5 * extent.bytes);
        const alone = await removeAll(store, other.id);
        assert.ok(alone.bytes > 0.5 * extent.bytes);
        assert.equal(alone.reusable, 0);
        assert.ok(existsSync(path));
      }),
    );

    it(
      "does not keep what is written afterwards from being found",
      onScene(subject, async ({ store, old, next, other }) => {
        await removeAll(store, old.id, next.id);
        await foldPlaces(store, other.id, [0, 1], "a beacon");
        await store.append(other.id, [toAppendable(createHost("late").says(user("another beacon")))]);
        while ((await store.index(1_000)) > 0);
        assert.equal(await finds(store, "beacon"), 2);
        await checkSound(store);
      }),
    );

    it(
      "is refused while rows of another conversation point there",
      onScene(subject, async ({ store, path, old, other }) => {
        const [message] = await store.messages({ conversation: other.id, limit: 1 });
        const [leaf] = await store.summaries({ conversation: old.id, depth: 0 });
        const db = new DatabaseSync(path);
        db.prepare("INSERT INTO summary_messages VALUES (?, ?, 99)").run(leaf?.id ?? "", message?.id ?? 0);
        db.close();
        assert.deepEqual((await store.extents([other.id]))[0]?.tiedTo, [old.id]);
        await refuses("conflict", async () => await store.remove(await planFor(store, other.id)));
        assert.notEqual(await store.conversation(other.id), null);
        await removeAll(store, other.id, old.id);
      }),
    );
  });

  describe("what conversations take", () => {
    it(
      "is told with their files, and with who carries summaries of them",
      onScene(subject, async ({ store, old, next, other }) => {
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
      }),
    );
  });
}
