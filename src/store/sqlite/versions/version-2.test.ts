/** Opening a database written by the commit before schema 2 loses nothing. */

import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { rowsOf } from "../../../../test/support/older-database.ts";
import { makeScratch } from "../../../../test/support/scratch.ts";
import { LcmError } from "../../../core/base/errors.ts";
import { inspect } from "../../../core/maintenance/inspect.ts";
import { messageIdOf, messageName } from "../../../core/model/types.ts";
import type { ConversationId, FileId, MessageId, SummaryId } from "../../../core/model/types.ts";
import type { Store } from "../../../core/model/store.ts";
import { openSqlite } from "../store.ts";

const fixture = fileURLToPath(new URL("../../../../test/fixtures/lcm-schema-1.db", import.meta.url));
const scratch = makeScratch("version-2");
after(() => rmSync(scratch, { recursive: true, force: true }));

async function opened<T>(test: (store: Store, path: string) => Promise<T>): Promise<T> {
  const path = join(mkdtempSync(join(scratch, "f-")), "lcm.db");
  copyFileSync(fixture, path);
  const store = await openSqlite({ path, housekeeping: false });
  try {
    return await test(store, path);
  } finally {
    await store.close();
  }
}

/** Rows of the fixture in schema 1. */
const old = (words: string): readonly Readonly<Record<string, unknown>>[] => rowsOf(fixture, words);
const conversations = (): readonly ConversationId[] =>
  old("SELECT conversation_id AS id FROM conversations").map(({ id }) => Number(id) as ConversationId);
const find = async (store: Store, pattern: string) =>
  (
    await Promise.all(
      (["messages", "summaries"] as const).map(
        async (scope) => await store.search({ pattern, mode: "full_text", scope, sort: "relevance", limit: 50 }),
      ),
    )
  ).flatMap(({ hits }) => hits);
/** `msg_1-42` or the id of a summary, by the conversation and seq that schema 1 recorded. */
const nameOf = ({
  conversation_id: conversation,
  seq,
  summary_id: summary,
}: Readonly<Record<string, unknown>>): string =>
  typeof summary === "string" ? summary : messageName(messageIdOf(Number(conversation) as ConversationId, Number(seq)));
const name = (id: MessageId | SummaryId | FileId): string => (typeof id === "number" ? messageName(id) : id);

describe("upgrading a database of schema 1", () => {
  it("keeps every message in its conversation, with its seq", () =>
    opened(async (store) => {
      for (const id of conversations()) {
        const stored = await store.messages({ conversation: id });
        const before = old(`SELECT * FROM messages WHERE conversation_id = ${id} ORDER BY seq`);
        assert.deepEqual(
          stored.map(({ id: message, key, text, role, at }) => [messageName(message), key, text, role, at]),
          before.map((row) => [nameOf(row), row["message_key"], row["content"], row["role"], row["created_at"]]),
        );
        assert.ok(stored.every(({ conversation }) => conversation === id));
        const parts = old(`SELECT count(*) AS n FROM message_parts JOIN messages USING (message_id)
                           WHERE conversation_id = ${id}`);
        assert.equal(BigInt(stored.flatMap((message) => message.parts).length), parts[0]?.["n"]);
      }
    }));

  it("keeps every context, summary and source", () =>
    opened(async (store) => {
      for (const id of conversations()) {
        const places = old(`SELECT c.conversation_id, m.seq, c.summary_id FROM context_items c
                            LEFT JOIN messages m USING (message_id) WHERE c.conversation_id = ${id} ORDER BY ordinal`);
        assert.deepEqual(
          (await store.context(id)).map((item) => name(item.id)),
          places.map(nameOf),
        );
        const summaries = await store.summaries({ conversation: id });
        const texts = old(`SELECT summary_id, content FROM summaries WHERE conversation_id = ${id}`);
        assert.deepEqual(
          new Set(summaries.map(({ id: summary, text }) => `${summary} ${text}`)),
          new Set(texts.map((row) => `${String(row["summary_id"])} ${String(row["content"])}`)),
        );
        for (const { id: summary } of summaries) {
          const sources = (await store.sources([summary])).get(summary);
          const linked = old(`SELECT s.conversation_id, coalesce(m.seq, l.message_id) AS seq FROM summary_messages l
                              JOIN summaries s USING (summary_id) LEFT JOIN messages m USING (message_id)
                              WHERE l.summary_id = '${summary}' ORDER BY l.ordinal`);
          assert.deepEqual(sources?.messages.map(messageName), linked.map(nameOf));
          const below = old(`SELECT parent_summary_id AS summary_id FROM summary_parents
                             WHERE summary_id = '${summary}' ORDER BY ordinal`);
          assert.deepEqual(sources?.summaries, below.map(nameOf));
        }
      }
    }));

  it("finds everything before and after indexing", () =>
    opened(async (store) => {
      const hits = (found: Awaited<ReturnType<typeof find>>) => found.map((hit) => name(hit.id)).toSorted();
      for (const word of ["quokka", "harbour", "fixture"]) {
        const before = hits(await find(store, word));
        assert.ok(before.length > 0, word);
        while ((await store.index(1_000)) > 0);
        assert.deepEqual(hits(await find(store, word)), before);
      }
    }));

  it("can still undo recorded changes", () =>
    opened(async (store, path) => {
      for (const change of [3, 2, 1]) assert.equal((await store.undo(change)).kind, "undone", `change ${change}`);
      const journalled = old("SELECT before_json FROM journal WHERE change_id = 1")[0]?.["before_json"];
      const { rows } = JSON.parse(String(journalled)) as { rows: readonly { columns: { content: string } }[] };
      const [rewritten] = old("SELECT subject FROM journal WHERE change_id = 1");
      const [summary] = await store.summaries({ ids: [String(rewritten?.["subject"]) as SummaryId] });
      assert.equal(summary?.text, rows[0]?.columns.content);
      assert.equal((await store.messages({ conversation: 3 as ConversationId })).length, 4);
      const wrong = (await inspect(store, null)).filter(({ severity }) => severity === "error");
      // What the fixture lacks: one message, one running total, and the files folder.
      const expected = ["missing_message", "wrong_totals", "missing_file", "unreadable_message"];
      assert.deepEqual(new Set(wrong.map(({ code }) => code)), new Set(expected));
      assert.deepEqual(rowsOf(path, "PRAGMA foreign_key_check(messages)"), []);
    }));

  it("needs permission to write: read-only, the file is refused with a hint and unchanged", async () => {
    const path = join(mkdtempSync(join(scratch, "f-")), "lcm.db");
    copyFileSync(fixture, path);
    await assert.rejects(
      openSqlite({ path, readOnly: true }),
      (error) => error instanceof LcmError && error.code === "conflict" && /lcm status --db/.test(error.hint ?? ""),
    );
    assert.deepEqual(readFileSync(path), readFileSync(fixture));
  });

  it("reports a lost message by its new id, and does not reuse that id", () =>
    opened(async (store) => {
      const lost = (await inspect(store, null)).filter(({ code }) => code === "missing_message");
      assert.deepEqual(
        lost.map(({ subject }) => subject),
        ["msg_1-6"],
      );
    }));

  it("keeps the subjects of forgotten messages and the origins of copies", () =>
    opened(async (store, path) => {
      const [forgotten] = await store.journal({ limit: 1 });
      assert.deepEqual([forgotten?.operation, forgotten?.subject], ["forget", "msg_2-10"]);
      const copies = rowsOf(
        path,
        `SELECT o.conversation_id AS origin FROM messages c JOIN messages o
                                   ON o.message_id = c.copied_from WHERE o.content = c.content`,
      );
      assert.equal(copies.length, 8);
      assert.ok(copies.every(({ origin }) => origin === 2n));
    }));

  it("continues sessions and the numbers of messages, conversations and changes", () =>
    opened(async (store) => {
      const talk = await store.open({ sessionId: "sx", sessionKey: "agent:main:fixture" });
      assert.equal(talk.title, "the fixture");
      const message = {
        key: "next",
        role: "user",
        parts: [],
        tokens: 4,
        at: talk.createdAt,
        envelope: null,
        entry: null,
      };
      const { messages } = await store.append(talk.id, [{ kind: "message", message } as never]);
      assert.deepEqual(messages.map(messageName), [`msg_${talk.id}-5`]);
      assert.equal((await store.open({ sessionId: "new" })).id, talk.id + 1);
      const outcome = await store.undo(3);
      assert.equal(outcome.kind === "undone" && outcome.change, 5);
    }));

  it("fails a process that still runs the earlier version when it creates a conversation", () =>
    opened(async (store, path) => {
      const earlier = new DatabaseSync(path);
      const insert = "INSERT INTO conversations (session_id, created_at, updated_at) VALUES ('s', '', '')";
      assert.throws(() => earlier.exec(insert), /NOT NULL constraint failed/);
      earlier.close();
      assert.ok((await store.open({ sessionId: "next" })).id > 0);
    }));
});
