import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { messageFromStore, textOfParts } from "../../core/messages/codec.ts";
import { LcmError } from "../../core/base/errors.ts";
import { inspect } from "../../core/maintenance/inspect.ts";
import { messageIdOf } from "../../core/model/types.ts";
import type { ConversationId } from "../../core/model/types.ts";
import { checkSound } from "../../../test/support/lossless.ts";
import { columnsOf, fixtureVersions, reshape, rowsOf, tablesOf, tamper } from "../../../test/support/older-database.ts";
import type { Json } from "../../core/base/json.ts";
import { older, adopted, first, messageOf, problems } from "../../../test/support/adopting.ts";

describe("adopting texts of the older program", () => {
  it("recognises a truncated summary by the marker at either end, and reports it", async () => {
    const texts = [
      "[LCM fallback summary; the model did not answer]\nuser: hello",
      "user: hello\n[Truncated from 5123 tokens]",
      "user: hello [Truncated for context management]\n",
      "They discussed why [Truncated from 12 tokens] was written into summaries.",
    ];
    const path = older("0.15.3", (db) => {
      const rows = db.prepare("SELECT summary_id FROM summaries ORDER BY rowid LIMIT 4").all();
      for (const [index, text] of texts.entries()) {
        db.prepare("UPDATE summaries SET content = ? WHERE summary_id = ?").run(text, rows[index]!["summary_id"]!);
      }
    });
    await adopted(path, async (store) => {
      const levels = texts.map(
        async (text) =>
          (await store.summaries({ conversation: first })).find((summary) => summary.text === text)?.level,
      );
      assert.deepEqual(await Promise.all(levels), ["truncated", "truncated", "truncated", "normal"]);
      const found = await inspect(store, null);
      assert.deepEqual(
        found.filter(({ severity }) => severity === "error"),
        [],
      );
      assert.deepEqual(
        found.filter(({ severity }) => severity === "warning").map(({ code }) => code),
        // The texts here are shorter than those it was made from.
        [...Array<string>(3).fill("summary_below_normal"), "summary_too_long"],
      );
    });
  });

  it("keeps compaction notes, but removes them from the context", async () => {
    const path = older("0.1.0", (db) => {
      const note = db.prepare("SELECT min(message_id) AS id FROM messages WHERE role = 'system'").get()!["id"]!;
      db.prepare(
        "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id) VALUES (1, 11, 'message', ?)",
      ).run(note);
    });
    await adopted(path, async (store) => {
      assert.equal((await store.context(first)).length, 11);
      assert.equal((await store.messages({ conversation: first })).filter(({ aside }) => aside === "note").length, 16);
      await checkSound(store);
    });
  });

  it("sets the time of the last message of a conversation", async () => {
    for (const version of fixtureVersions) {
      const begun = "UPDATE messages SET created_at = '2025-01-01 00:00:00' WHERE message_id = 1";
      await adopted(
        older(version, (db) => db.exec(begun)),
        async (store) => {
          const times = (await store.messages({ conversation: first })).map(({ at }) => at).toSorted();
          assert.equal((await store.conversation(first))?.lastMessageAt, times.at(-1));
          assert.notEqual(times[0], times.at(-1));
        },
      );
    }
  });

  it("makes every message's text equal to that of its parts, so forgetting a word keeps the rest", async () => {
    for (const version of fixtureVersions) {
      await adopted(older(version), async (store) => {
        for (const message of await store.messages({ conversation: first }))
          assert.equal(message.text, textOfParts(message.parts));
        const before = await messageOf(store, 122);
        const secret = before.text.split(" ")[3]!;
        const plan = await store.planForget(null, { kind: "secret", text: secret });
        assert.equal((await store.forget(null, plan)).kind, "written");
        const left = await messageOf(store, 122);
        assert.equal(left.text, before.text.replaceAll(secret, "[forgotten]"));
        assert.equal(left.text, textOfParts(left.parts));
        messageFromStore(left);
      });
    }
  });
});

describe("adopting parts", () => {
  /** The second message of the newer fixture: a text and a call. */
  const withParts = (
    changes: readonly (readonly [ordinal: number, column: string, value: string | null])[],
    content?: string,
  ): string =>
    older("0.15.3", (db) => {
      for (const [ordinal, column, value] of changes) {
        db.prepare(`UPDATE message_parts SET "${column}" = ? WHERE message_id = 2 AND ordinal = ?`).run(value, ordinal);
      }
      if (content !== undefined) db.prepare("UPDATE messages SET content = ? WHERE message_id = 2").run(content);
    });
  const textOf = (path: string, ordinal: number): string =>
    String(
      rowsOf(
        path,
        `SELECT text_content FROM message_parts WHERE message_id & 0xffffff = 2 AND ordinal = ${ordinal}`,
      )[0]!["text_content"],
    );
  const callArguments = (path: string): Json =>
    JSON.parse(
      String(
        rowsOf(path, "SELECT tool_input FROM message_parts WHERE message_id & 0xffffff = 2 AND ordinal = 1")[0]![
          "tool_input"
        ],
      ),
    ) as Json;

  it("reconstructs a missing block from the columns", async () => {
    const path = withParts([
      [0, "metadata", null],
      [1, "metadata", null],
    ]);
    const [text, input] = [textOf(path, 0), callArguments(path)];
    await adopted(path, async (store) => {
      assert.deepEqual(messageFromStore(await messageOf(store, 2)), {
        role: "assistant",
        content: [
          { type: "text", text },
          { type: "toolCall", id: "call_1_0", name: "read", arguments: input },
        ],
      });
      await checkSound(store);
    });
  });

  it("reconstructs the block and keeps the metadata if that is not a JSON object", async () => {
    const path = withParts([
      [0, "metadata", "{not json"],
      [1, "metadata", '["raw"]'],
    ]);
    const [text, input] = [textOf(path, 0), callArguments(path)];
    await adopted(path, async (store) => {
      const message = await messageOf(store, 2);
      assert.deepEqual(messageFromStore(message)["content"], [
        { type: "text", text },
        { type: "toolCall", id: "call_1_0", name: "read", arguments: input },
      ]);
      const kept = message.parts.map(({ metadata }) => (JSON.parse(String(metadata)) as { older: unknown }).older);
      assert.deepEqual(kept, ["{not json", '["raw"]']);
      await checkSound(store);
    });
  });

  it("reconstructs blocks of every other type from the columns of that type", async () => {
    const path = withParts([
      [0, "metadata", null],
      [0, "part_type", "reasoning"],
      [1, "metadata", null],
      [1, "part_type", "file"],
      [1, "file_mime", "image/png"],
      [1, "file_url", "file:///a.png"],
    ]);
    const text = textOf(path, 0);
    await adopted(path, async (store) => {
      assert.deepEqual(messageFromStore(await messageOf(store, 2))["content"], [
        { type: "thinking", thinking: text },
        { type: "file", file_mime: "image/png", file_url: "file:///a.png" },
      ]);
      assert.equal((await messageOf(store, 2)).text, text);
      await checkSound(store);
    });
  });

  it("turns a call with only an output into text", async () => {
    const path = withParts([
      [1, "metadata", null],
      [1, "tool_input", null],
      [1, "tool_output", "42 lines"],
    ]);
    await adopted(path, async (store) => {
      assert.deepEqual((messageFromStore(await messageOf(store, 2))["content"] as readonly Json[])[1], {
        type: "text",
        text: "42 lines",
      });
      await checkSound(store);
    });
  });

  it("takes tool ids from the metadata if the columns have none", async () => {
    const path = older("0.15.3", (db) => db.exec("UPDATE message_parts SET tool_call_id = NULL, tool_name = NULL"));
    await adopted(path, async (store) => {
      const stored = await store.messages({ conversation: first });
      const ids = stored.flatMap(({ parts }) => parts.map(({ toolCallId }) => toolCallId)).filter((id) => id !== null);
      assert.equal(ids.length, 62);
      assert.equal(messageFromStore(stored[2]!)["toolCallId"], "call_1_0");
      assert.equal(messageFromStore(stored[2]!)["toolName"], "read");
    });
  });

  it("keeps digits that a parser would lose, and unknown fields", async () => {
    const digits =
      '{"originalRole":"assistant","rawType":"text","raw":{"type":"text","text":"hi","n":12345678901234567890}}';
    const unknown =
      '{"originalRole":"assistant","rawType":"toolCall","raw":{"type":"toolCall","id":"c","name":"read","arguments":{}},"seen":[1]}';
    const path = older("0.15.3", (db) => {
      const file = db.prepare(
        "UPDATE message_parts SET metadata = ?, text_content = ?, tool_call_id = NULL WHERE message_id = ? AND ordinal = ?",
      );
      file.run(digits, "hi", 2, 0);
      file.run(unknown, null, 6, 1);
      db.exec("UPDATE messages SET content = 'hi' WHERE message_id = 2");
    });
    await adopted(path, async (store) => {
      assert.equal((await messageOf(store, 2)).parts[0]!.metadata, digits);
      const call = (await messageOf(store, 6)).parts[1]!;
      assert.deepEqual(JSON.parse(String(call.metadata)), { older: { seen: [1] } });
      assert.deepEqual((messageFromStore(await messageOf(store, 6))["content"] as readonly Json[])[1], {
        type: "toolCall",
        id: "c",
        name: "read",
        arguments: {},
      });
      await checkSound(store);
    });
  });

  it("changes neither parts nor text if they differ", async () => {
    const path = withParts([], "[LCM File: file_0123456789abcdef | a.txt]");
    const text = textOf(path, 0);
    await adopted(path, async (store) => {
      const message = await messageOf(store, 2);
      assert.equal(message.text, "[LCM File: file_0123456789abcdef | a.txt]");
      assert.equal(message.text, textOfParts(message.parts));
      assert.deepEqual((messageFromStore(message)["content"] as readonly Json[])[0], { type: "text", text });
      assert.equal(message.parts[0]!.kept, text);
      await checkSound(store);
    });
  });

  it("restores a role that differs from the row's", async () => {
    for (const [row, original] of [
      ["user", "assistant"],
      ["assistant", "bashExecution"],
      ["system", "user"],
    ] as const) {
      const path = older("0.15.3", (db) => {
        db.prepare("UPDATE messages SET role = ? WHERE message_id = 1").run(row);
        db.prepare("UPDATE message_parts SET metadata = replace(metadata, '\"user\"', ?) WHERE message_id = 1").run(
          `"${original}"`,
        );
      });
      await adopted(path, async (store) => {
        const message = await messageOf(store, 1);
        assert.deepEqual([message.role, messageFromStore(message)["role"]], [row, original]);
      });
    }
  });

  it("turns a block that was a bare string into a message with string content", async () => {
    const path = older("0.15.3", (db) => {
      db.exec(`UPDATE message_parts SET metadata = '{"originalRole":"user","raw":"hello"}', text_content = 'hello' WHERE message_id = 1;
               UPDATE messages SET content = 'hello' WHERE message_id = 1`);
    });
    await adopted(path, async (store) => {
      assert.deepEqual(messageFromStore(await messageOf(store, 1)), { role: "user", content: "hello" });
    });
  });

  it("creates no parts for a database without a table of parts", async () => {
    const path = older("0.1.0", (db) => db.exec("DROP TABLE message_parts"));
    await adopted(path, async (store) => {
      assert.equal(rowsOf(path, "SELECT 1 FROM message_parts").length, 0);
      assert.equal((await store.messages({ conversation: first })).length, 138);
    });
  });
});

describe("adopting large files", () => {
  it("reads them in place, even if the path is from another machine, and reports missing ones", async () => {
    const ids = [
      "file_00000000000000aa",
      "file_00000000000000bb",
      "file_00000000000000cc",
      "file_00000000000000dd",
      "file_00000000000000ee",
    ] as const;
    const path = older("0.1.0");
    const folder = join(dirname(path), "lcm-files");
    tamper(path, (db) => {
      const insert = db.prepare(
        "INSERT INTO large_files (file_id, conversation_id, file_name, byte_size, storage_uri, exploration_summary) VALUES (?, 1, ?, ?, ?, ?)",
      );
      insert.run(ids[0], "a.txt", 5, join(folder, "1", `${ids[0]}.txt`), "five letters");
      insert.run(ids[1], null, null, `/home/somebody/.openclaw/lcm-files/1/${ids[1]}.json`, null);
      insert.run(ids[2], "gone.txt", 9, join(folder, "1", `${ids[2]}.txt`), null);
      insert.run(ids[3], "passwd", 9, "/etc/../etc/passwd", null);
      insert.run(ids[4], null, null, `C:\\Users\\Ada\\.openclaw\\lcm-files\\1\\${ids[4]}.txt`, null);
    });
    mkdirSync(join(folder, "1"), { recursive: true });
    writeFileSync(join(folder, "1", `${ids[0]}.txt`), "alpha");
    writeFileSync(join(folder, "1", `${ids[1]}.json`), "{}");
    writeFileSync(join(folder, "1", `${ids[4]}.txt`), "of another system");
    await adopted(path, async (store) => {
      assert.deepEqual([await store.fileContent(ids[0]), await store.fileContent(ids[1])], ["alpha", "{}"]);
      assert.equal(await store.fileContent(ids[4]), "of another system");
      const file = await store.file(ids[0]);
      assert.deepEqual([file?.name, file?.bytes, file?.lines, file?.exploration], ["a.txt", 5, null, "five letters"]);
      assert.deepEqual([file?.encoding, file?.messageKey], ["utf8", null]);
      assert.deepEqual(problems(await inspect(store, null)), [`missing_file ${ids[2]}`, `missing_file ${ids[3]}`]);
      await assert.rejects(store.fileContent(ids[2]), { code: "unavailable" });
      await assert.rejects(store.fileContent(ids[3]), LcmError);
    });
  });
});

describe("adopting sessions", () => {
  const segments = (
    db: DatabaseSync,
    rows: readonly (readonly [id: number, key: string | null, active: number])[],
  ): void => {
    db.exec("DROP INDEX IF EXISTS conversations_active_session_key_idx; UPDATE conversations SET session_key = NULL");
    const insert = db.prepare(
      "INSERT INTO conversations (conversation_id, session_id, session_key, active, archived_at, archive_cause) VALUES (?, ?, ?, ?, ?, ?)",
    );
    for (const [id, key, active] of rows)
      insert.run(
        id,
        `session-${id}`,
        key,
        active,
        active === 0 ? "2026-11-15 07:00:00" : null,
        active === 0 ? "reset" : null,
      );
  };

  it("leaves the newest active segment active, and keeps when and why others were archived", async () => {
    const path = older("0.15.3", (db) =>
      segments(db, [
        [2, "agent:main:x", 1],
        [3, "agent:main:x", 1],
        [4, "agent:main:x", 0],
        [5, "agent:ops:y", 0],
        [6, null, 1],
        [7, null, 1],
      ]),
    );
    await adopted(path, async (store) => {
      const found = (await store.conversations()).toSorted((a, b) => a.id - b.id);
      assert.deepEqual(
        found.map(({ id, sessionKey, agentId, active }) => [id, sessionKey, agentId, active]),
        [
          [1, null, null, true],
          [2, "agent:main:x", "main", false],
          [3, "agent:main:x", "main", true],
          [4, "agent:main:x", "main", false],
          [5, "agent:ops:y", "ops", false],
          [6, null, null, true],
          [7, null, null, true],
        ],
      );
      assert.deepEqual(
        (await store.conversations({ familyOf: 2 as ConversationId }))
          .map(({ id }) => Number(id))
          .toSorted((a, b) => a - b),
        [2, 3, 4],
      );
      assert.equal((await store.open({ sessionId: "any", sessionKey: "agent:main:x" })).id, 3);
      assert.deepEqual(
        rowsOf(path, "SELECT archived_at, archive_cause FROM older_conversations WHERE conversation_id = 4"),
        [{ archived_at: "2026-11-15 07:00:00", archive_cause: "reset" }],
      );
      await checkSound(store);
    });
  });

  it("makes the newest segment active if the database has no column for it", async () => {
    const path = older("0.15.3", (db) => {
      segments(db, [
        [2, "agent:main:x", 1],
        [3, "agent:main:x", 1],
      ]);
      reshape(db, "conversations", (columns) =>
        columns.filter((column) => !["active", "archived_at", "archive_cause"].includes(column)),
      );
    });
    await adopted(path, async (store) => {
      assert.deepEqual(
        (await store.conversations({ active: true })).map(({ id }) => Number(id)).toSorted((a, b) => a - b),
        [1, 3],
      );
    });
  });

  it("accepts a database without any", async () => {
    const path = older("0.15.3", (db) => {
      for (const table of tablesOf(db.location()!).filter((name) => !/_fts|sqlite/.test(name)))
        db.exec(`DELETE FROM ${table}`);
    });
    await adopted(path, async (store) => {
      assert.deepEqual(await store.conversations(), []);
      await checkSound(store);
      const { id } = await store.open({ sessionId: "new" });
      // Ids are never reused.
      assert.equal(id, 2);
    });
  });
});

describe("guarantee 29: adopting times", () => {
  it("reads both formats; an unreadable time is kept and replaced by the one before it", async () => {
    const times: readonly (readonly [written: string, read: string])[] = [
      ["not a time", "2026-11-15T07:25:50.000Z"], // The conversation's.
      ["2026-02-17 07:37:00", "2026-02-17T07:37:00.000Z"],
      ["2026-02-17T07:38:00.250Z", "2026-02-17T07:38:00.250Z"],
      ["", "2026-02-17T07:38:00.250Z"],
      ["2026-02-30 10:00:00", "2026-02-17T07:38:00.250Z"],
      ["2026-02-17T10:39:00+02:00", "2026-02-17T08:39:00.000Z"],
    ];
    const path = older("0.15.3", (db) => {
      for (const [index, [written]] of times.entries())
        db.prepare("UPDATE messages SET created_at = ? WHERE message_id = ?").run(written, index + 1);
      db.exec(
        "UPDATE summaries SET created_at = 'never' WHERE kind = 'condensed'; UPDATE conversations SET updated_at = 'later'",
      );
    });
    await adopted(path, async (store) => {
      const stored = await store.messages({ conversation: first, limit: 7 });
      assert.deepEqual(
        stored.slice(0, 6).map(({ at }) => at),
        times.map(([, read]) => read),
      );
      assert.deepEqual(
        rowsOf(
          path,
          "SELECT message_id & 0xffffff AS message_id, created_at FROM older_messages WHERE created_at IS NOT NULL",
        ),
        [
          { message_id: 1n, created_at: "not a time" },
          { message_id: 4n, created_at: "" },
          { message_id: 5n, created_at: "2026-02-30 10:00:00" },
        ],
      );
      assert.equal(
        rowsOf(
          path,
          "SELECT 1 FROM summaries s JOIN older_summaries o USING (summary_id) WHERE o.created_at = 'never' AND s.created_at = s.latest_at",
        ).length,
        3,
      );
      assert.deepEqual(
        rowsOf(
          path,
          "SELECT c.updated_at, o.updated_at AS older FROM conversations c JOIN older_conversations o USING (conversation_id)",
        ),
        [{ updated_at: "2026-11-15T07:25:50.000Z", older: "later" }],
      );
      const earliest = (await store.summaries({ conversation: first, depth: 0 }))
        .map(({ earliestAt }) => String(earliestAt))
        .toSorted()[0];
      assert.equal(earliest, "2026-02-17T07:37:00.000Z");
      await checkSound(store);
    });
  });

  it("keeps no second copy of readable times", async () => {
    const path = older("0.15.3");
    await adopted(path, async () => undefined);
    assert.deepEqual(columnsOf(path, "older_messages"), ["message_id", "identity_hash"]);
  });
});

describe("forgetting after adopting", () => {
  const nowhere = (path: string, secret: string): void => {
    for (const suffix of ["", "-wal"]) {
      if (existsSync(path + suffix))
        assert.ok(!readFileSync(path + suffix).includes(secret), `${secret} is still in the file`);
    }
  };

  it("redacts a secret in kept values of the older program", async () => {
    const path = older("0.15.3", (db) =>
      db.exec(`UPDATE messages SET large_content = 'the hunter2 of it' WHERE message_id = 5;
        UPDATE message_parts SET tool_output = '{"password":"hunter2"}' WHERE message_id = 9;
        INSERT INTO focus_briefs (brief_id, conversation_id, prompt, content, status) VALUES ('b', 1, 'p', 'hunter2', 'active');
        CREATE TABLE keys (name TEXT PRIMARY KEY); INSERT INTO keys VALUES ('hunter2'), ('[forgotten]')`),
    );
    await adopted(path, async (store) => {
      const plan = await store.planForget(null, { kind: "secret", text: "hunter2" });
      assert.deepEqual([plan.messages, plan.entries], [[], 4]);
      assert.equal((await store.forget(null, plan)).kind, "written");
      assert.deepEqual(rowsOf(path, "SELECT large_content FROM older_messages WHERE message_id & 0xffffff = 5"), [
        { large_content: "the [forgotten] of it" },
      ]);
      await checkSound(store);
    });
    nowhere(path, "hunter2");
  });

  it("deletes kept values of a forgotten message", async () => {
    const path = older("0.15.3", (db) =>
      db.exec("UPDATE messages SET large_content = 'only here' WHERE message_id = 2"),
    );
    const call = String(
      rowsOf(path, "SELECT tool_input FROM message_parts WHERE message_id & 0xffffff = 2 AND ordinal = 1")[0]![
        "tool_input"
      ],
    ).slice(60, 100);
    await adopted(path, async (store) => {
      const plan = await store.planForget(null, { kind: "message", id: messageIdOf(first, 2) });
      assert.equal((await store.forget(null, plan)).kind, "written");
    });
    nowhere(path, "only here");
    nowhere(path, call);
  });
});

describe("pruning after adopting", () => {
  it("deletes kept values with their conversation, whose archive can be merged back", async () => {
    const path = older("0.15.3", (db) =>
      db.exec(`UPDATE messages SET large_content = 'only here' WHERE message_id = 2;
        INSERT INTO focus_briefs (brief_id, conversation_id, prompt, content, status) VALUES ('b', 1, 'p', 'brief words', 'active')`),
    );
    await adopted(path, async (store) => {
      const id = 1 as ConversationId;
      const messages = await store.messages({ conversation: id });
      const summaries = await store.summaries({ conversation: id });
      const archive = join(dirname(path), "old.db");
      await store.archive([id], archive);
      const revision = (await store.conversation(id))?.revision ?? -1;
      assert.equal((await store.remove([{ conversation: id, revision }])).kind, "written");
      for (const words of ["only here", "brief words", messages[0]?.text ?? "?"])
        assert.ok(!readFileSync(path).includes(words), `${words} is still in the file`);
      assert.deepEqual((await store.merge(archive)).conversations, [{ from: id, to: id }]);
      assert.deepEqual(await store.messages({ conversation: id }), messages);
      assert.deepEqual(await store.summaries({ conversation: id }), summaries);
      await checkSound(store, [id]);
    });
  });
});
