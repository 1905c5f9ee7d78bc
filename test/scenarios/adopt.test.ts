/**
 * Adopts both real databases of the older program: nothing is lost, everything reads back, and work continues. Prints
 * the figures of the run.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { messageFromStore, messageToStore } from "../../src/core/messages/codec.ts";
import { inspect } from "../../src/core/maintenance/inspect.ts";
import { messageIdOf } from "../../src/core/model/types.ts";
import type { Conversation, ConversationId, Message } from "../../src/core/model/types.ts";
import type { SearchRequest, Store } from "../../src/core/model/store.ts";
import { estimateTokens } from "../../src/core/base/tokens.ts";
import { adopt } from "../../src/store/adopt/adopt.ts";
import { restore } from "../../src/store/sqlite/backups/restore.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { checkSound, flattened } from "../support/lossless.ts";
import {
  columnsOf,
  contentsOf,
  copyFixture,
  fixtureVersions,
  hashOf,
  multiply,
  rowsOf,
  tablesOf,
} from "../support/older-database.ts";
import type { FixtureVersion, Row } from "../support/older-database.ts";
import { assertPrivate } from "../support/platform.ts";
import { createRandom } from "../support/random.ts";
import { makeScratch } from "../support/scratch.ts";
import type { JsonObject } from "../../src/core/base/json.ts";
import type { Timestamp } from "../../src/core/base/time.ts";
import { identify } from "../../src/store/sqlite/file-kind.ts";

const now = "2026-11-15T08:00:00.000Z" as Timestamp;
const scratch = makeScratch("adopting");
after(() => rmSync(scratch, { recursive: true, force: true }));

const counted = [
  "conversations",
  "messages",
  "message_parts",
  "summaries",
  "summary_messages",
  "summary_parents",
  "context_items",
  "large_files",
];
const expectedCounts: Readonly<Record<FixtureVersion, Readonly<Record<string, number>>>> = {
  "0.1.0": {
    conversations: 1,
    messages: 138,
    message_parts: 69,
    summaries: 16,
    summary_messages: 112,
    summary_parents: 15,
    context_items: 11,
    large_files: 0,
  },
  "0.15.3": {
    conversations: 1,
    messages: 124,
    message_parts: 155,
    summaries: 14,
    summary_messages: 104,
    summary_parents: 11,
    context_items: 23,
    large_files: 0,
  },
};
const countsOf = (path: string): Readonly<Record<string, number>> =>
  Object.fromEntries(
    counted.map((table) => [table, Number(rowsOf(path, `SELECT count(*) AS n FROM ${table}`)[0]!["n"])]),
  );

const find = (pattern: string): SearchRequest => ({
  pattern,
  mode: "full_text",
  scope: "messages",
  sort: "recency",
  limit: 10,
});

/** The message that the host sent, reconstructed from the older rows alone. */
function originalOf(row: Row, parts: readonly Row[]): JsonObject {
  if (parts.length === 0) return { role: row["role"], content: row["content"] } as JsonObject;
  const stated = parts.map((part) => JSON.parse(String(part["metadata"])) as JsonObject);
  const isResult = row["role"] === "tool";
  const callId = stated[0]!["toolCallId"] ?? parts[0]!["tool_call_id"];
  const toolName = stated[0]!["toolName"] ?? parts[0]!["tool_name"];
  const blockOf = (part: Row, index: number): unknown =>
    stated[index]!["raw"] ?? { type: part["part_type"], text: part["text_content"] };
  return {
    role: stated[0]!["originalRole"] ?? row["role"],
    ...(isResult ? { toolCallId: callId } : {}),
    ...(isResult && toolName !== null ? { toolName } : {}),
    content: parts.map(blockOf),
    ...(stated[0]!["isError"] === undefined ? {} : { isError: stated[0]!["isError"] }),
  } as JsonObject;
}

for (const version of fixtureVersions) {
  describe(`a database of ${version}, adopted`, async () => {
    const path = copyFixture(version, scratch, `${version}.db`);
    const untouched = copyFixture(version, scratch, `${version}.original.db`);
    const adopted = await adopt(path, now);
    const backup = adopted.kind === "adopted" ? adopted.backup : "";
    const firstHash = hashOf(path);
    const open = async (): Promise<Store> => await openSqlite({ path, housekeeping: false });
    const only = async (store: Store): Promise<Conversation> => (await store.conversations())[0]!;
    const read = async <T>(work: (store: Store, conversation: Conversation) => Promise<T>): Promise<T> => {
      const store = await open();
      try {
        return await work(store, await only(store));
      } finally {
        await store.close();
      }
    };

    it("has as many rows of every kind as the file had", (t) => {
      const counts = countsOf(path);
      t.diagnostic(
        `lcm-${version}.db: ${Object.entries(counts)
          .map(([table, count]) => `${table} ${count}`)
          .join(", ")}`,
      );
      t.diagnostic(`bytes ${statSync(untouched).size} → ${statSync(path).size}`);
      assert.deepEqual(counts, expectedCounts[version]);
      assert.deepEqual(counts, countsOf(untouched));
      assert.deepEqual(adopted, {
        kind: "adopted",
        backup,
        messages: counts["messages"],
        parts: counts["message_parts"],
        summaries: counts["summaries"],
      });
    });

    it("passes doctor, except for compaction notes", async (t) => {
      const [findings, notes] = await read(async (store, { id }) => [
        await inspect(store, null),
        (await store.messages({ conversation: id })).filter((message) => message.aside === "note"),
      ]);
      t.diagnostic(
        `findings: ${findings.map(({ severity, message }) => `${severity}: ${message}`).join("; ") || "none"}; notes: ${notes.length}`,
      );
      assert.deepEqual(
        findings.filter(({ severity }) => severity !== "info"),
        [],
      );
      assert.equal(notes.length, version === "0.1.0" ? 16 : 0);
      assert.ok(notes.every(({ role, text }) => role === "system" && text.startsWith("LCM compaction")));
    });

    it("guarantee 4: reads every message back as the host sent it", async () => {
      const stored = await read(async (store, { id }) => await store.messages({ conversation: id }));
      const parts = Map.groupBy(
        rowsOf(untouched, "SELECT * FROM message_parts ORDER BY message_id, ordinal"),
        (row) => row["message_id"],
      );
      const rows = rowsOf(untouched, "SELECT * FROM messages ORDER BY seq");
      assert.equal(stored.length, rows.length);
      for (const [index, row] of rows.entries()) {
        const message = stored[index]!;
        const filed = parts.get(row["message_id"]) ?? [];
        assert.deepEqual(messageFromStore(message), originalOf(row, filed));
        assert.equal(message.id, messageIdOf(message.conversation, message.seq));
        assert.equal(BigInt(message.seq), row["seq"]);
        assert.equal(message.role, row["role"]);
        // Calls were beside the text, and now follow it.
        const calls = message.parts.filter((part) => part.type === "tool").map((part) => part.text);
        assert.deepEqual(message.text, [row["content"], ...calls].join("\n"));
        assert.equal(message.parts.length, Math.max(1, filed.length));
      }
    });

    it("knows the id of every tool call, even where only the metadata had it", async () => {
      const stored = await read(async (store, { id }) => await store.messages({ conversation: id }));
      const calls = stored.flatMap((message) => message.parts.filter((part) => part.type === "tool"));
      const results = stored.filter(({ role, envelope }) => role === "tool" && envelope !== null);
      assert.equal(calls.length, version === "0.1.0" ? 11 : 31);
      assert.equal(results.length, version === "0.1.0" ? 10 : 31);
      const callIds = new Set(calls.map(({ toolCallId }) => toolCallId));
      for (const result of results) assert.ok(callIds.has(messageFromStore(result)["toolCallId"] as string));
      assert.ok(calls.every(({ toolName }) => toolName === "read"));
    });

    it("keeps every value that is not recomputed, column by column", () => {
      /** Derived from other rows, written in another form, or checked separately in this file. */
      const rebuilt: Readonly<Record<string, readonly string[]>> = {
        conversations: ["created_at", "updated_at"],
        messages: ["content", "token_count", "created_at"],
        message_parts: ["part_type", "text_content", "tool_call_id", "tool_name", "metadata"],
        summaries: ["token_count", "depth", "earliest_at", "latest_at", "descendant_count", "created_at", "model"],
      };
      const order: Readonly<Record<string, string>> = {
        conversations: "conversation_id",
        messages: "message_id",
        message_parts: "message_id, ordinal",
        summaries: "summary_id",
        summary_messages: "summary_id, message_id",
        summary_parents: "summary_id, parent_summary_id",
        context_items: "conversation_id, ordinal",
        large_files: "file_id",
      };
      let compared = 0;
      for (const table of tablesOf(untouched).filter((name) => !/_fts/.test(name))) {
        const homes = [table, `older_${table}`].map((name) => [name, columnsOf(path, name)] as const);
        for (const column of columnsOf(untouched, table).filter((name) => !rebuilt[table]?.includes(name))) {
          const valuesIn = (file: string, from: string): readonly unknown[] =>
            rowsOf(
              file,
              `SELECT ${column === "message_id" ? "message_id & 0xffffff" : `"${column}"`} AS value FROM ${from} ORDER BY ${order[table] ?? "rowid"}`,
            ).map((row) => row["value"]);
          const old = valuesIn(untouched, table);
          compared += old.length;
          // A part's own name is made from its position; its original name is kept.
          const [home] = homes.findLast(([, columns]) => columns.includes(column)) ?? [];
          if (home === undefined)
            assert.deepEqual(
              old.filter((value) => value !== null),
              [],
              `${table}.${column} had a value`,
            );
          else assert.deepEqual(valuesIn(path, home), old, `${table}.${column}`);
        }
      }
      assert.ok(compared > 2_500, `${compared} values`);
    });

    it("guarantee 29: keeps every instant, in UTC with milliseconds", () => {
      const instants = (file: string, table: string, column: string): readonly number[] =>
        rowsOf(
          file,
          `SELECT ${column} AS time FROM ${table} ORDER BY ${table === "conversations" ? "conversation_id" : "rowid"}`,
        ).map((row) => {
          const time = String(row["time"]);
          return Date.parse(time.endsWith("Z") ? time : `${time.replace(" ", "T")}Z`);
        });
      const columns = [
        ["conversations", "created_at"],
        ["conversations", "updated_at"],
        ["messages", "created_at"],
        ["summaries", "created_at"],
      ] as const;
      for (const [table, column] of columns) {
        assert.deepEqual(instants(path, table, column), instants(untouched, table, column));
        const times = rowsOf(path, `SELECT ${column} AS time FROM ${table}`).map((row) => String(row["time"]));
        assert.ok(times.every((time) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(time)));
      }
    });

    it("has depths, ranges and descendants as in the older program, and tokens by our own estimate", async () => {
      const summaries = await read(async (store, { id }) => await store.summaries({ conversation: id }));
      const rows = new Map(rowsOf(untouched, "SELECT * FROM summaries").map((row) => [String(row["summary_id"]), row]));
      for (const summary of summaries) {
        const row = rows.get(summary.id)!;
        assert.deepEqual(
          [BigInt(summary.depth), summary.earliestAt, summary.latestAt, BigInt(summary.descendants), summary.text],
          [row["depth"], row["earliest_at"], row["latest_at"], row["descendant_count"], row["content"]],
        );
        assert.equal(summary.tokens, estimateTokens(summary.text));
        assert.deepEqual([summary.level, summary.model], ["normal", null]);
      }
      assert.deepEqual(new Set(summaries.map(({ depth }) => depth)), new Set(version === "0.1.0" ? [0, 1, 2] : [0, 1]));
    });

    it("flattens to every message that has content, each once, in order", async () => {
      const [reached, stored] = await read(async (store, { id }) => [
        await flattened(store, id),
        (await store.messages({ conversation: id })).filter(({ aside }) => aside === null),
      ]);
      assert.deepEqual(
        reached.map(({ id }) => id),
        stored.map(({ id }) => id),
      );
      assert.equal(reached.length, version === "0.1.0" ? 122 : 124);
    });

    it("is unchanged by a second adopt, byte by byte", async () => {
      assert.deepEqual(await adopt(path, now), { kind: "unchanged" });
      assert.equal(hashOf(path), firstHash);
      assert.deepEqual(
        readdirSync(scratch).filter((name) => name.startsWith(`${version}.db-`)),
        [],
      );
    });

    it("has a backup that is private, and equal to the original row by row", () => {
      assertPrivate(backup);
      assert.deepEqual(contentsOf(backup), contentsOf(untouched));
      assert.equal(identify(backup), "older_program");
      assert.deepEqual(rowsOf(backup, "PRAGMA integrity_check"), [{ integrity_check: "ok" }]);
    });

    it("is the original again when the backup is restored, and can be adopted again", async () => {
      const other = join(scratch, `${version}.restored.db`);
      copyFileSync(path, other);
      const { replaced } = await restore(backup, { path: other, filesDir: join(scratch, "no-files") }, { now });
      assert.deepEqual(contentsOf(other), contentsOf(untouched));
      assert.equal((await adopt(other, now)).kind, "adopted");
      assert.deepEqual(contentsOf(other), contentsOf(replaced!));
    });

    it("guarantee 22: finds old words before they are indexed, and after", async (t) => {
      await read(async (store) => {
        const before = await store.search(find("zqxoldmarker"));
        let left = (await store.status()).unindexed;
        for (let last = Infinity; left > 0 && left < last;) {
          last = left;
          left = await store.index(64);
        }
        const after = await store.search(find("zqxoldmarker"));
        t.diagnostic(`zqxoldmarker: ${before.hits.length} hit before indexing, ${after.hits.length} after`);
        assert.equal(left, 0);
        assert.deepEqual(after, before);
        assert.deepEqual(
          after.hits.map((hit) => hit.id),
          [messageIdOf(1 as ConversationId, 4)],
        );
        assert.deepEqual(after.caveats, []);
        // A path that was only in the arguments of a call.
        assert.ok(
          (await store.search(find("src/file_101.ts"))).hits.some(
            (hit) => hit.id === messageIdOf(1 as ConversationId, 102),
          ),
        );
        await checkSound(store);
      });
    });

    it("takes new messages, folds and dissolves them, and stays sound", async () => {
      await read(async (store, { id }) => {
        const messages = ["and now?", "we go on", "good"].map((content, index) =>
          messageToStore({ role: index === 1 ? "assistant" : "user", content }, { key: `new-${index}`, at: now }),
        );
        const { messages: ids } = await store.append(
          id,
          messages.map((message) => ({ kind: "message", message })),
        );
        const highest = expectedCounts[version]["messages"]!;
        assert.deepEqual(
          ids,
          [1, 2, 3].map((more) => messageIdOf(id, highest + more)),
        );
        const context = await store.context(id);
        const run = context.filter((item) => item.kind === "message").slice(0, 4);
        const folded = await store.fold(id, run, {
          text: "four old messages",
          tokens: 4,
          level: "normal",
          model: null,
          previousContext: null,
          fileIds: [],
        });
        assert.equal(folded.kind, "written");
        const top = (await store.context(id))[0]!;
        assert.equal(top.kind, "summary");
        if (top.kind === "summary") {
          assert.equal(
            (await store.dissolve({ conversation: id, summary: top.id, ordinal: top.ordinal })).kind,
            "written",
          );
        }
        await checkSound(store);
        const reached: readonly Message[] = await flattened(store, id);
        assert.equal(reached.length, (version === "0.1.0" ? 122 : 124) + 3);
      });
    });
  });
}

describe("search after adopting a larger database", () => {
  it("guarantee 22: is built in steps, resumes when the process ends in between, and is reported while it lasts", async (t) => {
    const path = multiply(copyFixture("0.15.3", scratch, "larger.db"), 24);
    await adopt(path, now);
    const waiting: number[] = [];
    for (let left = Infinity; left > 0;) {
      const store = await openSqlite({ path, housekeeping: false });
      const { unindexed } = await store.status();
      waiting.push(unindexed);
      // Each process finds what the one before it left.
      assert.ok(left === Infinity || unindexed === left);
      const { hits, caveats } = await store.search({ ...find("zqxoldmarker"), limit: 100 });
      const said = caveats.map((caveat) => (caveat.kind === "unindexed" ? caveat.rows : 0));
      // Summaries wait too, and were not requested.
      const [row] = rowsOf(path, "SELECT sum(next_seq - 1 - indexed_seq) AS messages FROM conversations");
      const messagesWaiting = Number(row?.["messages"]);
      assert.deepEqual(said, messagesWaiting > 2_000 ? [messagesWaiting - 2_000] : [], `${unindexed} rows wait`);
      if (messagesWaiting <= 2_000) assert.equal(hits.length, 24);
      left = await store.index(256);
      await store.close();
    }
    t.diagnostic(`rows that waited at each step: ${waiting.join(", ")}`);
    assert.ok(waiting.length > 8 && waiting[0]! > 2_000);
    const store = await openSqlite({ path });
    await checkSound(store);
    await store.close();
  });

  it("is built in the background by any process that opens it", async () => {
    const path = multiply(copyFixture("0.15.3", scratch, "background.db"), 8);
    await adopt(path, now);
    const store = await openSqlite({ path });
    for (let tries = 0; tries < 500 && (await store.status()).unindexed >= 256; tries++) await setImmediate();
    assert.ok((await store.status()).unindexed < 256);
    assert.equal((await store.search(find("zqxoldmarker"))).hits.length, 8);
    await store.close();
  });
});

describe("guarantee 11: adopting that is killed at any moment", () => {
  it("leaves the older database or the adopted one, whole, and can be run again", async (t) => {
    const seed = Number(process.env["LCM_SEED"] ?? 7);
    const kills = Number(process.env["LCM_KILLS"] ?? 12);
    const random = createRandom(seed);
    const folder = makeScratch("killed");
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const original = multiply(copyFixture("0.15.3", folder, "original.db"), 10);
    const older = contentsOf(original);
    const path = join(folder, "lcm.db");

    const startAfresh = (): void => {
      for (const name of readdirSync(folder))
        if (name !== "original.db") rmSync(join(folder, name), { recursive: true });
      copyFileSync(original, path);
    };
    const program = `
      import { adopt } from ${JSON.stringify(new URL("../../src/store/adopt/adopt.ts", import.meta.url).href)};
      process.stdout.write("ready");
      process.stdin.once("data", async () => process.stdout.write((await adopt(process.argv[1], new Date().toISOString())).kind));`;
    /** Resolves with how long adopting took, or null when it was killed first. */
    const adoptInChild = async (killAfterMs: number): Promise<number | null> => {
      const child = spawn(process.execPath, ["--input-type=module", "--eval", program, path], {
        stdio: ["pipe", "pipe", "inherit"],
      });
      let startedMs = 0;
      let tookMs: number | null = null;
      let timer: NodeJS.Timeout | undefined;
      child.stdout.on("data", (chunk: Buffer) => {
        if (String(chunk) === "ready") {
          startedMs = performance.now();
          child.stdin.write("go");
          if (killAfterMs !== Infinity) timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
        } else {
          tookMs = performance.now() - startedMs;
          child.kill("SIGKILL");
        }
      });
      await once(child, "exit");
      clearTimeout(timer);
      return tookMs;
    };

    startAfresh();
    let tookMs = (await adoptInChild(Infinity)) ?? assert.fail("adopting ended without output");
    const whole = contentsOf(path);
    const found = { older_program: 0, current: 0 };
    startAfresh();
    // The duration depends on the load of the machine: a kill that comes too late shortens the time to the next.
    const isEnough = (): boolean => found.older_program >= kills / 4 && found.current > 0;
    for (let round = 0; round < kills || (!isEnough() && round < 10 * kills); round++) {
      // Anywhere, and every second time near the end, where the transaction commits and the file is vacuumed.
      const [from, to] = round % 2 === 0 ? [0.05, 1] : [0.8, 1.6];
      await adoptInChild(tookMs * (from + (to - from) * (random.below(1_000) / 1_000)));
      const kind = identify(path);
      assert.ok(kind === "older_program" || kind === "current", `seed ${seed}, round ${round}: ${kind}`);
      found[kind] += 1;
      tookMs *= kind === "current" ? 0.9 : 1.05;
      assert.deepEqual(
        contentsOf(path),
        kind === "older_program" ? older : whole,
        `seed ${seed}, round ${round}: ${kind}`,
      );
      if (kind === "current") startAfresh();
    }
    t.diagnostic(
      `seed ${seed}: adopting takes about ${tookMs.toFixed(0)} ms; killed, it left ${found.older_program} times the older file, ${found.current} times ours`,
    );
    assert.ok(isEnough(), "kills come before the end and after it");

    if (identify(path) === "older_program") await adopt(path, now);
    assert.deepEqual(contentsOf(path), whole);
    const store = await openSqlite({ path });
    await checkSound(store);
    await store.close();
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.endsWith(".new") || name.endsWith("-journal")),
      [],
    );
  });
});
