/** Opening a database written by the commit before schema 3 loses nothing, and its rows get checksums. */

import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { contentsOf, rowsOf, tamper } from "../../../../test/support/older-database.ts";
import { eventually } from "../../../../test/support/eventually.ts";
import { makeScratch } from "../../../../test/support/scratch.ts";
import { inspect } from "../../../core/maintenance/inspect.ts";
import type { ConversationId } from "../../../core/model/types.ts";
import type { Store } from "../../../core/model/store.ts";
import { openSqlite } from "../store.ts";

const fixture = fileURLToPath(new URL("../../../../test/fixtures/lcm-schema-2.db", import.meta.url));
const scratch = makeScratch("version-3");
after(() => rmSync(scratch, { recursive: true, force: true }));

async function opened<T>(
  test: (store: Store, path: string) => Promise<T>,
  { housekeeping = false, from = fixture } = {},
): Promise<T> {
  const path = join(mkdtempSync(join(scratch, "f-")), "lcm.db");
  copyFileSync(from, path);
  const store = await openSqlite({ path, housekeeping });
  try {
    return await test(store, path);
  } finally {
    await store.close();
  }
}

const tables = ["messages", "summaries", "transcript_entries"];
const unchecked = (path: string) =>
  tables.map((table) => rowsOf(path, `SELECT count(*) AS n FROM ${table} WHERE checksum IS NULL`)[0]?.["n"]);
const backlog = (path: string) => rowsOf(path, "SELECT * FROM checksum_backlog");

/** Housekeeping goes on between calls, so a test only has to give it turns. */
const untilChecked = async (path: string): Promise<void> => await eventually(() => backlog(path).length === 0);

const codes = async (store: Store) =>
  new Set((await inspect(store, null)).filter(({ severity }) => severity === "error").map(({ code }) => code));
/** The fixture comes without its files folder. */
const lacking = new Set(["missing_file", "unreadable_message"]);

describe("upgrading a database of schema 2", () => {
  it("touches no row that has text", () =>
    opened(async (_, path) => {
      const before = contentsOf(fixture);
      assert.deepEqual(contentsOf(path, before), before);
    }));

  it("is searched as before", () =>
    opened(async (store) => {
      for (const pattern of ["quokka", "bicycles", "二条", "🦘"]) {
        const request = { pattern, mode: "full_text", scope: "both", sort: "relevance", limit: 50 } as const;
        assert.ok((await store.search(request)).hits.length > 0, pattern);
      }
    }));

  it("guarantee 33: its rows get checksums in the background, and until then doctor says that some have none", async () => {
    const pendingIn = async (store: Store) =>
      (await inspect(store, null)).filter(({ code }) => code === "checksums_pending").map(({ message }) => message);
    const path = await opened(async (store, upgraded) => {
      assert.deepEqual(unchecked(upgraded), [123n, 40n, 1n]);
      assert.deepEqual(await pendingIn(store), ["164 rows have no checksum yet; they get one while a host runs"]);
      return upgraded;
    });
    const store = await openSqlite({ path });
    await untilChecked(path);
    assert.deepEqual(unchecked(path), [0n, 0n, 0n]);
    assert.deepEqual(await codes(store), lacking);
    assert.deepEqual(await pendingIn(store), []);
    await store.close();
  });

  it("continues where another process stopped", async () => {
    const path = await opened(async (_, half) => half);
    tamper(path, (db) => {
      db.exec("UPDATE checksum_backlog SET after_id = (1 << 24) + 90 WHERE table_name = 'messages'");
      db.exec("DELETE FROM checksum_backlog WHERE table_name = 'summaries'");
    });
    const store = await openSqlite({ path });
    await untilChecked(path);
    await store.close();
    assert.deepEqual(unchecked(path), [90n, 40n, 0n]);
  });

  it("guarantee 33: undoing a change recorded by schema 2 leaves the checksums right", () =>
    opened(
      async (store, path) => {
        await untilChecked(path);
        assert.equal((await store.undo(1)).kind, "undone");
        assert.deepEqual(await codes(store), lacking);
        assert.deepEqual(unchecked(path), [0n, 0n, 0n]);
      },
      { housekeeping: true },
    ));

  it("guarantee 33: an archive or a merge of rows without checksums leaves none behind", () =>
    opened(async (store, path) => {
      const archived = join(mkdtempSync(join(scratch, "f-")), "archive.db");
      await store.archive([2, 3] as ConversationId[], archived);
      assert.equal(backlog(archived).length, 3);
      const merged = join(mkdtempSync(join(scratch, "f-")), "lcm.db");
      const other = await openSqlite({ path: merged });
      await other.merge(path);
      await untilChecked(merged);
      await other.close();
      assert.deepEqual(unchecked(merged), [0n, 0n, 0n]);
    }));

  it("gives a database of schema 1 checksums too", () =>
    opened(
      async (store, path) => {
        await untilChecked(path);
        assert.deepEqual(unchecked(path), [0n, 0n, 0n]);
        assert.ok(!(await codes(store)).has("damaged_text"));
      },
      { housekeeping: true, from: fixture.replace("schema-2", "schema-1") },
    ));
});

describe("the columns of the older program", () => {
  it("are there for people's own queries: an item's time, and a part's session", () =>
    opened(async (_, path) => {
      const items = rowsOf(
        path,
        `SELECT v.*, m.created_at AS message_time, s.created_at AS summary_time FROM context_items_as_before v
         LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)`,
      );
      assert.equal(BigInt(items.length), rowsOf(path, "SELECT count(*) AS n FROM context_items")[0]?.["n"]);
      for (const { created_at, message_time, summary_time } of items)
        assert.equal(created_at, message_time ?? summary_time);
      const parts = rowsOf(
        path,
        `SELECT v.session_id, c.session_id AS right FROM message_parts_as_before v
         JOIN messages m USING (message_id) JOIN conversations c ON c.conversation_id = m.conversation_id`,
      );
      assert.equal(BigInt(parts.length), rowsOf(path, "SELECT count(*) AS n FROM message_parts")[0]?.["n"]);
      for (const { session_id, right } of parts) assert.equal(session_id, right);
    }));
});
