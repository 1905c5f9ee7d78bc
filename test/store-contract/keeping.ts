/** Contract: rows survive every event, closing and reopening; backups are consistent while others write. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe } from "node:test";
import type { Conversation, ConversationId, Message } from "../../src/core/model/types.ts";
import { databaseFileOf } from "../../src/core/model/database-file.ts";
import type { Store } from "../../src/core/model/store.ts";
import type { reads } from "../../src/store/operations.ts";
import { checkLossless, checkSound } from "../support/lossless.ts";
import { createHost, toAppendable, turnWithTool, user } from "../support/scripted-host.ts";
import {
  at,
  compaction,
  deliver,
  dissolveAt,
  each,
  foldPlaces,
  itOn,
  itOnFile,
  leafCall,
  newFile,
  onFile,
  onStore,
  refuses,
  summary,
  unbounded,
  newPrompt,
} from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

export function testKeeping(subject: StoreUnderTest): void {
  const it = itOn(subject, onStore);

  describe("guarantee 7: no event deletes rows", () => {
    it("every write of the port except forget leaves every message unchanged", async ({ store }) => {
      const talk = await store.open({ sessionId: "s", sessionKey: "k" });
      const other = await store.open({ sessionId: "other" });
      const host = createHost("h");
      for (let turn = 0; turn < 4; turn++)
        for (const raw of turnWithTool(`c${turn}`, `q${turn}`, `a${turn}`)) host.says(raw);
      await deliver(store, talk, host);
      const kept = new Map<number, Message>();
      for (const [name, write] of Object.entries(everyWrite(talk, other.id, host))) {
        await write(store);
        const now = new Map((await allMessages(store)).map((message) => [message.id as number, message]));
        for (const [id, message] of kept) {
          const { aside: _, ...left } = now.get(id) ?? assert.fail(`${name} has removed message ${id}`);
          const { aside: __, ...came } = message;
          assert.deepEqual(left, came, `${name} has changed message ${id}`);
        }
        for (const [id, message] of now) kept.set(id, message);
      }
      assert.equal(kept.size, 16 + 1 + 7, "the turns, the branch, and the copies");
    });
  });

  describe("closing and opening", () => {
    it("everything is there after reopening", async ({ folder }) => {
      const path = join(folder, "again.db");
      const before = await subject.open(path);
      const { lists, picture } = await lived(before);
      await before.close();
      await onFile(subject, path, async (again) => {
        assert.deepEqual(await pictureOf(again), picture);
        await checkLossless(again, lists);
      });
    });

    it("two connections to the same database see each other's writes", async ({ store, path }) => {
      await onFile(subject, path, async (second) => {
        const { lists, picture } = await lived(store);
        assert.deepEqual(await pictureOf(second), picture);
        await checkLossless(second, lists);
        const { id } = await second.open({ sessionId: "from the second" });
        assert.equal((await store.conversation(id))?.sessionId, "from the second");
        assert.equal(
          (await store.search({ pattern: "q1", mode: "full_text", scope: "messages", sort: "recency", limit: 5 })).hits
            .length,
          1,
        );
      });
    });
  });

  describe("backup and restore", () => {
    const { restore } = subject.databaseFile ?? {};
    itOnFile(subject, onStore)(
      "a copy made while others write is whole, and restoring it gives what was there, files included",
      async (scene) => {
        const { store, path, folder } = scene;
        const { picture } = await lived(store);
        const busy = await store.open({ sessionId: "busy" });
        const host = createHost("b");
        const copied = new AbortController();
        const writer = (async () => {
          for (let said = 0; !copied.signal.aborted && said < 2_000; said++)
            await store.append(busy.id, [toAppendable(host.says(user(`while copying ${said}`)))]);
        })();
        const copy = join(folder, "lcm.backup");
        const made = await databaseFileOf(store)
          .backup(copy)
          .finally(() => copied.abort());
        await writer;
        assert.equal(made.path, copy);
        assert.ok(made.bytes > 0);
        assert.equal(made.files, 1);
        await refuses("conflict", () => databaseFileOf(store).backup(copy));
        await refuses("not_found", () => databaseFileOf(store).backup(join(folder, "nowhere", "lcm.backup")));

        const elsewhere = join(folder, "elsewhere", "lcm.db");
        await restore?.(copy, elsewhere);
        await onFile(subject, elsewhere, async (restored) => {
          await checkSound(restored);
          const taken = await restored.messages({ conversation: busy.id });
          assert.deepEqual(
            each(taken, "key"),
            host.entries.slice(0, taken.length).map(({ key }) => key),
          );
          assert.deepEqual(await pictureOf(restored, busy.id), picture);
        });

        const { conversations } = await store.status();
        await store.open({ sessionId: "after the backup" });
        await restore?.(copy, path);
        assert.equal((await store.status()).conversations, conversations, "open connections see what was restored");
        assert.deepEqual(await pictureOf(store, busy.id), picture);
      },
    );
  });
}

/** One call of each write. A method of the port that is missing here does not compile. */
function everyWrite(
  talk: Conversation,
  other: ConversationId,
  host: ReturnType<typeof createHost>,
): Readonly<Record<WriteName, (store: Store) => Promise<unknown>>> {
  const session = { sessionId: talk.sessionId, sessionKey: talk.sessionKey };
  return {
    append: async (store) => {
      host.goesBackTo("h-14");
      host.says(user("another way"));
      return await deliver(store, talk, host);
    },
    fold: async (store) => {
      await foldPlaces(store, talk.id, [2, 3], "two");
      await foldPlaces(store, talk.id, [3, 5], "three");
      return await foldPlaces(store, talk.id, [0, 1], "first");
    },
    transplant: async (store) => {
      const outcome = await store.transplant({ source: talk.id, target: other });
      assert.equal(outcome.kind, "written");
    },
    rewrite: async (store) => {
      const [made] = await store.summaries({ conversation: talk.id });
      return await store.rewrite({ summary: made?.id ?? "sum_", revision: 0 }, summary("anew"));
    },
    dissolve: async (store) => {
      const [made] = await store.summaries({ conversation: talk.id });
      await dissolveAt(store, talk.id, made?.id ?? "sum_");
    },
    pin: async (store) => {
      const [said] = await store.messages({ conversation: talk.id, role: "user", limit: 1 });
      assert.ok(said !== undefined);
      const { forgets } = (await store.conversation(talk.id)) ?? talk;
      const about = { state: "pinned", origin: "person", reason: "", saidAt: said.at } as const;
      return await store.pin({ conversation: talk.id, pin: { ...about, message: said.id, words: said.text }, forgets });
    },
    fix: async (store) => {
      const { revision } = (await store.conversation(talk.id)) ?? talk;
      const nothing = { times: [], summaries: [], sources: [], context: null, recount: true, unindexed: [] };
      return await store.fix({ conversation: talk.id, revision, ...nothing });
    },
    sweepOrphans: async (store) => await store.sweepOrphans(),
    saveDraft: async (store) => await store.saveDraft("sum_0000000000000000", "basis", summary("drafted")),
    saveMapAnswers: async (store) => {
      const [first] = await store.messages({ conversation: talk.id, limit: 1 });
      const { forgets } = (await store.conversation(talk.id)) ?? talk;
      if (first !== undefined) await store.saveMapAnswers("basis", [{ message: first.id, answer: "yes", forgets }]);
    },
    merge: async (store) => await store.merge((await store.status()).path).catch(() => undefined),
    open: async (store) => await store.open(session),
    openSession: async (store) => await store.openSession(session),
    openSegment: async (store) => await store.openSegment(session),
    setTitle: async (store) => await store.setTitle(talk.id, "title"),
    setHidden: async (store) => await store.setHidden(talk.id, true),
    setSession: async (store) => await store.setSession(talk.id, "another-session"),
    setPromptBudget: async (store) => await store.setPromptBudget(talk.id, 10_000),
    saveFile: async (store) => await store.saveFile(newFile(talk.id, "x")),
    issueGrant: async (store) =>
      await store.issueGrant({
        conversations: [talk.id],
        tokenCap: 5,
        expiresAt: at("2001-01-01T00:00:00.000Z"),
        parent: null,
      }),
    spendGrant: async (store) => await store.spendGrant("grant_0000000000000000", talk.id, 1),
    revokeGrant: async (store) => await store.revokeGrant("grant_0000000000000000"),
    sweepGrants: async (store) => await store.sweepGrants(),
    beginCall: async (store) => await store.beginCall(leafCall(talk.id), unbounded),
    endCall: async (store) => {
      const begun = await store.beginCall(leafCall(talk.id), unbounded);
      assert.ok(begun.kind === "granted");
      await store.endCall(begun.id, { inputTokens: 1, outputTokens: 1, result: "ok", durationMs: 1 });
    },
    recordCompaction: async (store) => await store.recordCompaction(compaction(talk.id)),
    index: async (store) => await store.index(10),
    saveVectors: async (store) => {
      const { conversation, firstSeq, forgets } = (await store.pendingVectors("m", 1)) ?? assert.fail();
      await store.saveVectors({ conversation, firstSeq, forgets, model: "m", vectors: [new Uint8Array(4).fill(1)] });
    },
    dropVectors: async (store) => await store.dropVectors("m"),
    recordPrompt: async (store) => await store.recordPrompt(talk.id, newPrompt({ head: `{"items":[]}` })),
    endPrompt: async (store) => {
      const end = { outcome: "answered", counted: 5, cached: null, turn: null } as const;
      await store.endPrompt(talk.id, await store.recordPrompt(talk.id, newPrompt()), end);
    },
    recordEmbedder: async (store) => await store.recordEmbedder({ name: "m", embedded: 1, failure: null }),
  };
}

type BeyondRows =
  | "archive"
  | "integrity"
  | "search"
  | "fileContent"
  | "fileLines"
  | "filePath"
  | "status"
  | "skeleton"
  | "planForget";
type Reads = keyof typeof reads | BeyondRows | "close";
/** Only an operator's own commands delete, each with a plan to review first. */
type Deletes = "forget" | "remove" | "undo";
type WriteName = Exclude<keyof Store, Reads | Deletes | "databaseFile">;

async function allMessages(store: Store): Promise<readonly Message[]> {
  const all = await store.conversations({ includeHidden: true });
  return (await Promise.all(all.map(({ id }) => store.messages({ conversation: id })))).flat();
}

/** A little of everything. */
async function lived(store: Store) {
  const talk = await store.open({ sessionId: "s", sessionKey: "agent:main:cli" });
  const host = createHost("h");
  for (let turn = 0; turn < 3; turn++)
    for (const raw of turnWithTool(`c${turn}`, `q${turn}`, `a${turn}`)) host.says(raw);
  host.notes("custom", { kept: true });
  await deliver(store, talk, host);
  await foldPlaces(store, talk.id, [0, 3], "the first turn");
  await store.index(8);
  await store.saveFile(newFile(talk.id, "# kept", { name: "a.md", mimeType: "text/markdown" }));
  await store.setTitle(talk.id, "Lived");
  await store.setPromptBudget(talk.id, 12_345);
  await store.recordCompaction(compaction(talk.id));
  return { lists: [{ conversation: talk.id, entries: host.entries }], picture: await pictureOf(store) };
}

/** Everything the port returns, except one conversation. */
async function pictureOf(store: Store, without?: ConversationId): Promise<unknown> {
  const conversations = (await store.conversations({ includeHidden: true })).filter(({ id }) => id !== without);
  return await Promise.all(
    conversations.map(async (conversation) => {
      const { id } = conversation;
      const summaries = await store.summaries({ conversation: id });
      const files = await store.files(id);
      return {
        conversation,
        context: await store.context(id),
        messages: await store.messages({ conversation: id }),
        entries: await store.entries(id, 0, Number.MAX_SAFE_INTEGER),
        summaries,
        sources: await store.sources(summaries.map((each) => each.id)),
        files: await Promise.all(files.map(async (file) => ({ ...file, content: await store.fileContent(file.id) }))),
        journal: await store.journal({ conversation: id, limit: 100 }),
        compactions: await store.compactions(id, 100),
      };
    }),
  );
}
