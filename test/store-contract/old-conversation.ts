/**
 * Builds a store with an old conversation that has everything, its continuation, and an unrelated one. For tests that
 * take conversations out and bring them in; also dumps every row.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { messageToStore } from "../../src/core/messages/codec.ts";
import type { Conversation, ConversationId, NewMessage, StoredFile } from "../../src/core/model/types.ts";
import type { RemovePlan, Store } from "../../src/core/model/store.ts";
import { tableNames } from "../../src/store/ownership.ts";
import { statement } from "../../src/store/script.ts";
import { createHost, toAppendable, turnWithTool, user } from "../support/scripted-host.ts";
import type { ScriptedHost } from "../support/scripted-host.ts";
import { findAll, ask, at, compaction, deliver, foldPlaces, newFile, onFile, onStore, say, summary } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

export interface Scene {
  readonly store: Store;
  readonly path: string;
  readonly folder: string;
  /** Has everything: layers of summaries, a file, a branch, entries, a compaction, a named turn, a title. */
  readonly old: Conversation;
  readonly host: ScriptedHost;
  /** Carries a summary of it. */
  readonly next: Conversation;
  readonly other: Conversation;
  readonly otherHost: ScriptedHost;
}

export const fileWords = "the words in the file of the old conversation";

/** Uses its own store, which is not watched: here rows are meant to go. */
export const onScene = (subject: StoreUnderTest, test: (scene: Scene) => Promise<void>): (() => Promise<void>) =>
  onStore(subject, async ({ folder }) => {
    const path = join(folder, "place", "lcm.db");
    await onFile(subject, path, async (store) => await test({ store, path, folder, ...(await live(store)) }));
  });

async function live(store: Store): Promise<Omit<Scene, "store" | "path" | "folder">> {
  const other = await store.open({ sessionId: "other", sessionKey: "agent:main:other" });
  const otherHost = createHost("o");
  for (const raw of turnWithTool("oc", "another question", "another answer")) otherHost.says(raw);
  await deliver(store, other, otherHost);

  const old = await store.open({
    sessionId: "old",
    sessionKey: "agent:main:old",
    folder: "/home/ann/harbour",
    parentSessionId: "other",
  });
  const host = createHost("h");
  for (let turn = 0; turn < 4; turn++)
    for (const raw of turnWithTool(`c${turn}`, `harbour question ${turn}`, `answer ${turn}`)) host.says(raw);
  host.notes("custom", { kept: true });
  await store.append(old.id, host.entries.map(toAppendable), { turnKey: "turn 1", hostCursor: "here" });
  host.goesBackTo("h-14");
  await say(store, old, host, "another way");
  for (const place of [0, 1, 2]) await foldPlaces(store, old.id, [place, place + 3], `lighthouse leaf ${place}`);
  await foldPlaces(store, old.id, [0, 1], "condensed");
  await save(store, old, fileWords);
  await store.setTitle(old.id, "Old");
  await store.recordCompaction(compaction(old.id));
  const [made = assert.fail()] = await store.summaries({ conversation: old.id, depth: 0 });
  await store.rewrite({ summary: made.id, revision: made.revision }, summary("lighthouse leaf, written anew"));
  await store.saveDraft(made.id, "basis", summary("a draft"));
  const next = await store.openSegment({ sessionId: "next", sessionKey: "agent:main:old" }, { carryDepth: 1 });
  await store.append(next.id, [toAppendable(createHost("n").says(user("what is next")))]);
  while ((await store.index(1_000)) > 0);
  const now = await store.conversation(old.id);
  assert.ok(now !== null);
  return { old: now, host, next, other, otherHost };
}

export const save = async (store: Store, { id }: Conversation, content: string): Promise<StoredFile> =>
  await store.saveFile(newFile(id, content, { name: "notes.md", exploration: "notes" }));

/** A user message that names a file among its words. */
export const naming = (key: string, file: StoredFile): NewMessage => {
  const said = `[File ${file.id} · ${file.exploration}]`;
  const message = messageToStore(
    { role: "user", content: [{ type: "text", text: `see ${said}` }] },
    { key, at: at("2026-02-17T09:00:00.000Z") },
  );
  return { ...message, moved: [{ file: file.id, path: ["content", 0, "text"], from: 4, length: said.length }] };
};

export async function planFor(store: Store, ...ids: readonly ConversationId[]): Promise<RemovePlan> {
  return await Promise.all(
    ids.map(async (id) => ({ conversation: id, revision: (await store.conversation(id))?.revision ?? -1 })),
  );
}

export async function removeAll(store: Store, ...ids: readonly ConversationId[]) {
  const outcome = await store.remove(await planFor(store, ...ids));
  assert.ok(outcome.kind === "written");
  return outcome;
}

type Dump = Readonly<Record<string, readonly string[]>>;

/** What search makes of rows, and numbers of rows to which nothing refers. */
const leftOut: ReadonlySet<string> = new Set([
  "indexed_seq",
  "indexed_summary",
  "unindexed",
  "entry_id",
  "file_number",
  "compaction_id",
]);

/** Every row of every table, except the journal and the search index. */
export const dump = async (subject: StoreUnderTest, path: string): Promise<Dump> =>
  await subject.raw(path, function* () {
    const names = tableNames.filter((name) => !["journal", "drafts", "map_answers", "search_progress"].includes(name));
    const tables: [string, readonly string[]][] = [];
    for (const name of names) {
      // Numbers are given only once, whatever is removed.
      const counted = name === "registry" ? "WHERE kind = 'session'" : "";
      const rows = yield statement(`SELECT * FROM ${name} ${counted}`);
      const shown = rows.map((row) =>
        JSON.stringify(row, (column, value: unknown) => (leftOut.has(column) ? undefined : value)),
      );
      tables.push([name, shown.toSorted()]);
    }
    return Object.fromEntries(tables);
  });

/** Rows of one dump that are not in the other. */
export const without = (one: Dump, other: Dump): Dump =>
  Object.fromEntries(
    Object.entries(one).map(([table, rows]) => [table, rows.filter((row) => other[table]?.includes(row) !== true)]),
  );

export const finds = async (store: Store, pattern: string): Promise<number> =>
  (await findAll(store, ask(pattern, { limit: 100 }))).length;
