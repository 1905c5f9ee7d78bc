import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { messageFromStore } from "../../core/messages/codec.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { ErrorCode } from "../../core/base/errors.ts";
import { inspect } from "../../core/maintenance/inspect.ts";
import { messageIdOf } from "../../core/model/types.ts";
import type { FileId, SummaryId } from "../../core/model/types.ts";
import { checkSound } from "../../../test/support/lossless.ts";
import {
  columnsOf,
  contentsOf,
  copyFixture,
  hashOf,
  reshape,
  rowsOf,
  tablesOf,
  tamper,
} from "../../../test/support/older-database.ts";
import { createRandom } from "../../../test/support/random.ts";
import { adopt } from "./adopt.ts";
import { applicationId, schemaVersion } from "../sqlite/schema.ts";
import { openSqlite } from "../sqlite/store.ts";
import { now, older, adopted, first, messageOf, problems } from "../../../test/support/adopting.ts";

describe("adopting columns and tables", () => {
  /** What later versions added, so that any of it may be absent. */
  const later: Readonly<Record<string, readonly string[]>> = {
    conversations: ["session_key", "active", "archived_at", "archive_cause", "title", "bootstrapped_at"],
    messages: [
      "identity_hash",
      "openclaw_sender_metadata",
      "transcript_entry_id",
      "large_content",
      "stable_event_key",
      "token_count",
    ],
    message_parts: [
      "session_id",
      "is_ignored",
      "tool_call_id",
      "tool_name",
      "tool_input",
      "tool_output",
      "file_mime",
      "step_cost",
    ],
    summaries: [
      "depth",
      "earliest_at",
      "latest_at",
      "descendant_count",
      "descendant_token_count",
      "source_message_token_count",
      "file_ids",
      "model",
    ],
    context_items: ["created_at"],
    large_files: ["line_count", "mime_type", "byte_size"],
  };

  /** Every message reads back, and every link stands: what must hold whichever columns there are. */
  const checkAll = async (path: string, what: string): Promise<void> => {
    await adopted(path, async (store) => {
      const findings = await inspect(store, null);
      assert.deepEqual(problems(findings), [], what);
      const stored = await store.messages({ conversation: first });
      assert.equal(stored.length, 124, what);
      for (const message of stored) messageFromStore(message);
      assert.equal(messageFromStore(stored[2]!)["toolCallId"], "call_1_0", what);
      const depths = (await store.summaries({ conversation: first })).map(({ depth }) => depth);
      assert.deepEqual(depths, [...Array(11).fill(0), ...Array(3).fill(1)], what);
    });
  };

  it("accepts any subset of the later columns, in any order", async (t) => {
    const seed = 11;
    const random = createRandom(seed);
    const everything = Object.entries(later).flatMap(([table, columns]) =>
      columns.map((column) => `${table}.${column}`),
    );
    const subsets = [everything, ...Array.from({ length: 14 }, () => everything.filter(() => random.chance(0.4)))];
    for (const [round, dropped] of subsets.entries()) {
      const path = older("0.15.3", (db) => {
        for (const table of Object.keys(later)) {
          reshape(db, table, (columns) =>
            random.shuffled(columns.filter((column) => !dropped.includes(`${table}.${column}`))),
          );
        }
      });
      await checkAll(path, `seed ${seed}, round ${round}: without ${dropped.join(", ")}`);
    }
    t.diagnostic(`${subsets.length} subsets of ${everything.length} columns`);
  });

  it("keeps values of unknown columns in tables beside ours, also of columns with a name of ours", async () => {
    const values = ["'text'", "9007199254740993", "1.5", "x'00ff'", "'{\"a\":1}'"];
    const path = older("0.15.3", (db) => {
      for (const [index, [table, column]] of [
        ["conversations", "hidden"],
        ["messages", "entry"],
        ["message_parts", "text_length"],
        ["summaries", "level"],
        ["messages", "aside"],
      ].entries()) {
        db.exec(`ALTER TABLE ${table} ADD COLUMN "${column}"; UPDATE ${table} SET "${column}" = ${values[index]}`);
      }
      for (const [index, table] of [
        "conversations",
        "messages",
        "message_parts",
        "summaries",
        "context_items",
      ].entries()) {
        db.exec(
          `ALTER TABLE ${table} ADD COLUMN "a ""column""" BLOB; UPDATE ${table} SET "a ""column""" = ${values[index]}`,
        );
      }
      db.exec("ALTER TABLE messages ADD COLUMN always_null TEXT");
    });
    const valuesIn = (prefix: string): readonly unknown[] =>
      [
        ["conversations", "hidden"],
        ["messages", "entry"],
        ["message_parts", "text_length"],
        ["summaries", "level"],
        ["messages", "aside"],
        ...["conversations", "messages", "message_parts", "summaries", "context_items"].map((table) => [
          table,
          '"a ""column"""',
        ]),
      ].map(([table, column]) =>
        rowsOf(path, `SELECT ${column} AS value FROM ${prefix}${table} ORDER BY 1`).map((row) => row["value"]),
      );
    const before = valuesIn("");
    await adopted(path, async (store) => await checkSound(store));
    assert.deepEqual(valuesIn("older_"), before);
    assert.deepEqual((before[1] as readonly unknown[])[0], 9007199254740993n);
    assert.ok(!columnsOf(path, "older_messages").includes("always_null"));
  });

  it("keeps unknown tables unchanged, including those that only share a name with ours", async () => {
    const path = older("0.15.3", (db) => {
      db.exec(`INSERT INTO focus_briefs (brief_id, conversation_id, prompt, content, status) VALUES ('b1', 1, 'p', 'c', 'active');
        INSERT INTO focus_brief_sources (brief_id, summary_id, role) SELECT 'b1', min(summary_id), 'source' FROM summaries;
        INSERT INTO conversation_bootstrap_state (conversation_id, session_file_path, last_seen_size, last_seen_mtime_ms, last_processed_offset)
          VALUES (1, '/x.jsonl', 10, 20, 30);
        CREATE TABLE expansion_grants (grant_id TEXT PRIMARY KEY, what TEXT); INSERT INTO expansion_grants VALUES ('g', 'w');
        CREATE TABLE journal (line TEXT); INSERT INTO journal VALUES ('dear diary'); CREATE INDEX model_usage_at_idx ON journal (line);
        CREATE TABLE older_journal (line TEXT); INSERT INTO older_journal VALUES ('dearer diary');
        CREATE VIEW said AS SELECT content FROM messages;
        PRAGMA writable_schema = ON;
        INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES ('table', 'vectors', 'vectors', 0, 'CREATE VIRTUAL TABLE vectors USING vec0(e float[3])')`);
    });
    const unknown = [
      "focus_briefs",
      "focus_brief_sources",
      "conversation_bootstrap_state",
      "conversation_compaction_telemetry",
      "lcm_migration_state",
    ];
    const contents = (file: string): readonly unknown[] =>
      unknown.map((table) => rowsOf(file, `SELECT * FROM ${table}`));
    const before = contents(path);
    await adopted(path, async (store) => await checkSound(store));
    assert.deepEqual(contents(path), before);
    assert.deepEqual(rowsOf(path, "SELECT * FROM older_expansion_grants"), [{ grant_id: "g", what: "w" }]);
    assert.deepEqual(rowsOf(path, "SELECT * FROM older_older_journal"), [{ line: "dear diary" }]);
    assert.deepEqual(rowsOf(path, "SELECT * FROM older_journal"), [{ line: "dearer diary" }]);
    assert.equal(rowsOf(path, "SELECT * FROM said").length, 124);
    assert.ok(tablesOf(path).includes("vectors"));
  });

  it("otherwise creates the same schema as in a new database", async () => {
    const path = older("0.15.3");
    await adopted(path, async () => undefined);
    const fresh = join(dirname(path), "fresh.db");
    await (await openSqlite({ path: fresh })).close();
    const schema = (file: string): ReadonlyMap<string, string> =>
      new Map(
        rowsOf(file, "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").map((row) => [
          String(row["name"]),
          String(row["sql"]),
        ]),
      );
    const [ours, made] = [schema(path), schema(fresh)];
    for (const [name, sql] of made) assert.equal(ours.get(name), sql, name);
    // Statistics about the older tables would mislead the planner.
    assert.ok(!ours.has("sqlite_stat1"));
    const pragma = (file: string, name: string): unknown => Object.values(rowsOf(file, `PRAGMA ${name}`)[0]!)[0];
    for (const name of ["page_size", "journal_mode", "application_id", "user_version", "encoding"]) {
      assert.equal(pragma(path, name), pragma(fresh, name), name);
    }
  });

  it("uses the host's keys as unique message keys", async () => {
    const path = older("0.15.3", (db) =>
      db.exec(`UPDATE messages SET transcript_entry_id = 'entry-' || message_id WHERE message_id <= 4;
               UPDATE messages SET stable_event_key = 'event-' || message_id WHERE message_id IN (2, 5);
               UPDATE messages SET stable_event_key = 'entry-3' WHERE message_id = 6; UPDATE messages SET transcript_entry_id = '' WHERE message_id = 7`),
    );
    await adopted(path, async (store) => {
      const keys = (await store.messages({ conversation: first, limit: 8 })).map(({ key }) => key);
      assert.deepEqual(keys, [
        "entry-1",
        "entry-2",
        "entry-3",
        "entry-4",
        "event-5",
        "entry-3#6",
        "older:7",
        "older:8",
      ]);
    });
  });

  it("never reuses the number of a conversation", async () => {
    const path = older("0.15.3", (db) => db.exec("UPDATE sqlite_sequence SET seq = 500 WHERE name = 'conversations'"));
    await adopted(path, async (store) => assert.equal((await store.open({ sessionId: "new" })).id, 501));
  });
});

describe("adopting a database with damage", () => {
  it("keeps links to missing rows, and doctor reports them", async () => {
    const leaf = "sum_5828b4f091ff34e7";
    const path = older("0.15.3", (db) => {
      db.exec(`DELETE FROM messages WHERE message_id IN (1, 124); DELETE FROM summaries WHERE summary_id = 'sum_f8f5300ff6d7fe73';
        INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id) VALUES (1, 23, 'summary', 'sum_00000000000000ff')`);
    });
    const links = (file: string): readonly unknown[] =>
      [
        "SELECT summary_id, message_id & 0xffffff AS message_id, ordinal FROM summary_messages ORDER BY 1, 2",
        "SELECT summary_id, parent_summary_id, ordinal FROM summary_parents ORDER BY 1, 2",
        "SELECT conversation_id, ordinal, item_type, message_id & 0xffffff AS message_id, summary_id FROM context_items ORDER BY 1, 2",
      ].map((statement) => rowsOf(file, statement));
    const before = links(path);
    const parts = rowsOf(
      path,
      "SELECT message_id & 0xffffff AS message_id, ordinal, text_content, metadata FROM message_parts WHERE message_id & 0xffffff IN (1, 124)",
    );
    await adopted(path, async (store) => {
      assert.deepEqual(links(path), before);
      assert.deepEqual(
        rowsOf(
          path,
          "SELECT message_id & 0xffffff AS message_id, ordinal, text_content, metadata FROM message_parts WHERE message_id & 0xffffff IN (1, 124)",
        ),
        parts,
      );
      const found = (await inspect(store, null)).filter(({ severity }) => severity === "error");
      const dangling = found.filter(({ code, conversation }) => code === "dangling_reference" && conversation !== null);
      assert.deepEqual(
        dangling.map(({ message }) => message.replace(", which is not in this conversation", "")).toSorted(),
        [
          `context_items 22 refers to ${messageIdOf(first, 124)}`,
          "context_items 23 refers to sum_00000000000000ff",
          "summary_parents sum_3c00d1d7d9afa905 refers to sum_f8f5300ff6d7fe73",
        ],
      );
      const gone = found.filter(({ code }) => code === "missing_message");
      assert.deepEqual(
        gone.map(({ subject, message }) => [subject, message.includes(leaf)]),
        [
          ["msg_1-1", true],
          ["msg_1-124", false],
        ],
      );
      const ofFile = found.filter(({ conversation }) => conversation === null);
      assert.deepEqual(
        ofFile.map(({ code, subject }) => [code, subject]),
        [
          ["orphaned_rows", "message_parts"],
          ["orphaned_rows", "summary_messages"],
        ],
      );
      // Nothing else is wrong except for the messages that the lost summary covered.
      assert.deepEqual(
        new Set(found.map(({ code }) => code)),
        new Set(["orphaned_rows", "dangling_reference", "missing_message", "lost_message"]),
      );
    });
  });

  it("keeps a summary without sources, with its recorded times and depth", async () => {
    const leaf = "sum_5828b4f091ff34e7" as SummaryId;
    const path = older("0.15.3", (db) => db.prepare("DELETE FROM summary_messages WHERE summary_id = ?").run(leaf));
    await adopted(path, async (store) => {
      const [summary] = await store.summaries({ ids: [leaf] });
      assert.deepEqual(
        [summary?.earliestAt, summary?.latestAt],
        ["2026-11-15T07:25:50.000Z", "2026-11-15T07:25:50.000Z"],
      );
      assert.ok((await inspect(store, null)).some(({ code, subject }) => code === "no_sources" && subject === leaf));
    });
  });

  it("accepts summaries that are among their own sources, and doctor reports them", async () => {
    const path = older("0.15.3", (db) =>
      db.exec(
        "INSERT INTO summary_parents VALUES ('sum_7ce9c84c11bb908e', 'sum_3c00d1d7d9afa905', 9), ('sum_3c00d1d7d9afa905', 'sum_7ce9c84c11bb908e', 9)",
      ),
    );
    await adopted(path, async (store) => assert.ok((await inspect(store, null)).some(({ code }) => code === "cycle")));
  });

  it("recomputes wrong depths, ranges and descendants", async () => {
    const path = older("0.15.3", (db) =>
      db.exec(
        "UPDATE summaries SET depth = 7 - depth, earliest_at = 'x', latest_at = '1999-01-01 00:00:00', descendant_count = 99, file_ids = '[broken'",
      ),
    );
    await adopted(path, async (store) => {
      await checkSound(store);
      assert.deepEqual((await store.summaries({ conversation: first }))[0]!.fileIds, [] satisfies FileId[]);
      assert.equal(rowsOf(path, "SELECT 1 FROM older_summaries WHERE file_ids = '[broken'").length, 14);
    });
  });

  it("keeps the file ids of a summary", async () => {
    const file: FileId = "file_0123456789abcdef";
    const path = older("0.15.3", (db) => db.exec(`UPDATE summaries SET file_ids = '["${file}"]'`));
    await adopted(path, async (store) => {
      for (const { fileIds } of await store.summaries({ conversation: first })) assert.deepEqual(fileIds, [file]);
    });
  });

  it("rebuilds a damaged search index", async () => {
    const path = older("0.15.3", (db) => db.exec("UPDATE messages_fts_data SET block = randomblob(64)"));
    await adopted(path, async (store) => {
      await store.index(1_000);
      const { hits } = await store.search({
        pattern: "zqxoldmarker",
        mode: "full_text",
        scope: "both",
        sort: "recency",
        limit: 5,
      });
      assert.deepEqual(
        hits.map(({ id }) => id),
        [messageIdOf(first, 4)],
      );
      await checkSound(store);
    });
  });
});

describe("adopting a file in WAL mode", () => {
  it("includes what is only in the log", async () => {
    const path = older("0.15.3");
    const live = join(dirname(path), "live.db");
    tamper(copyFixture("0.15.3", dirname(path), "live.db"), (db) => {
      db.exec(
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; INSERT INTO messages (conversation_id, seq, role, content, token_count) VALUES (1, 125, 'user', 'only in the log', 3); INSERT INTO context_items (conversation_id, ordinal, item_type, message_id) VALUES (1, 23, 'message', 125)",
      );
      for (const suffix of ["", "-wal"]) copyFileSync(live + suffix, path + suffix);
    });
    assert.ok(statSync(`${path}-wal`).size > 0);
    await adopted(path, async (store) => {
      assert.equal((await messageOf(store, 125)).text, "only in the log");
      await checkSound(store);
    });
    const [backup] = readdirSync(dirname(path)).filter((name) => name.endsWith("-older"));
    assert.deepEqual(contentsOf(join(dirname(path), backup!)), contentsOf(live));
  });
});

describe("adopting refuses", () => {
  const refused = async (
    path: string,
    code: ErrorCode,
    message: RegExp,
    options: Parameters<typeof adopt>[2] = { busyTimeoutMs: 50 },
  ): Promise<void> => {
    const isFile = existsSync(path) && statSync(path).isFile();
    const before = isFile ? hashOf(path) : null;
    const beside = readdirSync(dirname(path)).toSorted();
    await assert.rejects(adopt(path, now, options), (error) => {
      assert.ok(error instanceof LcmError, String(error));
      assert.equal(error.code, code);
      assert.match(error.message, message);
      assert.ok(error.message.includes(path) || code === "unavailable", error.message);
      assert.ok(error.hint !== undefined && error.hint.length > 10, `${error.message} needs a hint`);
      return true;
    });
    if (isFile) assert.equal(hashOf(path), before, "the file was touched");
    assert.deepEqual(readdirSync(dirname(path)).toSorted(), beside, "something was left beside it");
  };
  const file = (bytes: string | Uint8Array): string => {
    const path = older("0.15.3");
    writeFileSync(path, bytes);
    return path;
  };

  it("a file that is not a database", async () => {
    await refused(file("a diary, not a database\n".repeat(500)), "invalid", /is not a database/);
    await refused(file("SQL"), "invalid", /is not a database/);
    await refused(file("SQLite format 3\0"), "corrupt", /cannot be read as a database/);
  });

  it("an empty or missing file", async () => {
    await refused(file(""), "not_found", /nothing to adopt/);
    const path = older("0.15.3");
    rmSync(path);
    await refused(path, "not_found", /nothing to adopt/);
    const empty = older("0.15.3");
    rmSync(empty);
    await refused(
      tamper(empty, (db) => db.exec("CREATE TABLE t (a); DROP TABLE t")),
      "not_found",
      /nothing to adopt/,
    );
  });

  it("a folder", async () => {
    await refused(dirname(older("0.15.3")), "invalid", /is a folder/);
  });

  it("a database of a newer version", async () => {
    const path = older("0.15.3", (db) =>
      db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion + 1}`),
    );
    await refused(path, "conflict", /newer lossless-claw/);
  });

  it("a database of another application", async () => {
    const foreign = older("0.15.3");
    rmSync(foreign);
    await refused(
      tamper(foreign, (db) => db.exec("CREATE TABLE messages (id, body); CREATE TABLE conversations (id)")),
      "invalid",
      /not a lossless-claw database/,
    );
    await refused(
      older("0.15.3", (db) => db.exec("PRAGMA application_id = 1")),
      "invalid",
      /not a lossless-claw database/,
    );
    const alike = older("0.15.3", (db) => db.exec("ALTER TABLE summaries RENAME COLUMN kind TO sort"));
    await refused(alike, "invalid", /not a lossless-claw database/);
    const inWal = older("0.15.3");
    rmSync(inWal);
    await refused(
      tamper(inWal, (db) => db.exec("PRAGMA journal_mode = WAL; CREATE TABLE messages (id, body)")),
      "invalid",
      /not a lossless-claw database/,
    );
  });

  it("a truncated file", async () => {
    const path = older("0.15.3");
    truncateSync(path, statSync(path).size - 100_000);
    await refused(path, "corrupt", /cannot be read as a database|is damaged/);
  });

  it("a file overwritten in the middle", async () => {
    const random = createRandom(5);
    for (let round = 0; round < 12; round++) {
      const path = older(round % 2 === 0 ? "0.15.3" : "0.1.0");
      const bytes = readFileSync(path);
      // The first page of a table: the check always notices damage there.
      const roots = rowsOf(
        path,
        "SELECT rootpage FROM sqlite_schema WHERE rootpage > 0 AND type = 'table' AND name NOT LIKE '%fts%'",
      );
      const page = Number(random.pick(roots)["rootpage"]);
      for (let at = (page - 1) * 4_096; at < page * 4_096; at++) bytes[at] = random.below(256);
      writeFileSync(path, bytes);
      await refused(path, "corrupt", /cannot be read as a database|is damaged/);
    }
  });

  it("a file that another process has locked in any way", async () => {
    for (const mode of ["DELETE", "WAL"]) {
      const path = older("0.15.3", (db) => db.exec(`PRAGMA journal_mode = ${mode}`));
      const program = `
        const { DatabaseSync } = require("node:sqlite");
        const db = new DatabaseSync(process.argv[1]);
        db.exec("BEGIN EXCLUSIVE; UPDATE messages SET content = 'half'");
        process.stdout.write("locked");`;
      const child = spawn(process.execPath, ["--eval", program + "setInterval(() => {}, 1000)", path], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(child.stdout, "data");
      try {
        await refused(path, "unavailable", /locked by another process/);
      } finally {
        child.kill("SIGKILL");
        await once(child, "exit");
      }
      // The process with the lock has died, and its transaction is rolled back.
      await adopted(path, async (store) => await checkSound(store));
    }
  });

  it("a file whose disk has no room for the backup and the new tables", async () => {
    const path = older("0.15.3");
    const asked: string[] = [];
    const freeBytes = async (folder: string): Promise<number> => (asked.push(folder), statSync(path).size * 3 - 1);
    await refused(path, "unavailable", /needs .* of free disk/, { freeBytes });
    assert.deepEqual(asked, [dirname(path)]);
    assert.equal((await adopt(path, now, { freeBytes: async () => statSync(path).size * 3 })).kind, "adopted");
  });

  it("a file whose rows do not fit our schema, and leaves no backup behind", async () => {
    const path = older("0.15.3", (db) => {
      reshape(db, "messages", (columns) => columns);
      db.exec("UPDATE messages SET seq = 1");
    });
    const before = contentsOf(path);
    await assert.rejects(adopt(path, now), {
      code: "unavailable",
      message: /failed and changed nothing: UNIQUE/,
    });
    assert.deepEqual(contentsOf(path), before);
    assert.deepEqual(
      readdirSync(dirname(path)).filter((name) => name.includes("backup")),
      [],
    );
  });

  it("a second adoption of the same file at the same time", async () => {
    const path = older("0.15.3");
    const outcomes = await Promise.all([adopt(path, now), adopt(path, now), adopt(path, now)]);
    assert.deepEqual(outcomes.map(({ kind }) => kind).toSorted(), ["adopted", "unchanged", "unchanged"]);
    assert.equal(readdirSync(dirname(path)).filter((name) => name.includes("backup")).length, 1);
  });
});
