import assert from "node:assert/strict";
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { makeDeepConversation } from "../../test/support/deep-conversation.ts";
import { copyFixture, fixtureVersions, tamper } from "../../test/support/older-database.ts";
import { createRandom, type Random } from "../../test/support/random.ts";
import { makeScratch } from "../../test/support/scratch.ts";
import { exportTranscript } from "../core/ingest/export-transcript.ts";
import { inspect } from "../core/maintenance/inspect.ts";
import { messageName, type ConversationId, type MessageId } from "../core/model/types.ts";
import type { Store } from "../core/model/store.ts";
import type { Timestamp } from "../core/base/time.ts";
import { adopt } from "./adopt/adopt.ts";
import { restore } from "./sqlite/backups/restore.ts";
import { checkTexts } from "./sqlite/check-texts.ts";
import { locationOf } from "./sqlite/location.ts";
import { openSqlite } from "./sqlite/store.ts";

const scratch = makeScratch("checksums");
after(() => rmSync(scratch, { recursive: true, force: true }));
const whole = join(scratch, "lcm.db");

const at = "2025-11-20T08:00:00.000Z" as Timestamp;

before(async () => {
  const { young } = await makeDeepConversation(whole);
  const store = await openSqlite({ path: whole, housekeeping: false });
  const entry = {
    key: "e-1",
    type: "model_change",
    at,
    raw: `{"type":"model_change","id":"e-1","model":"scripted/two"}`,
  };
  await store.append(young, [{ kind: "entry", entry }]);
  await store.close();
});

/** Every column that a checksum covers, with the id of its row's subject. */
const covered = [
  { table: "messages", id: "message_id", columns: ["role", "content", "envelope", "entry", "moved"] },
  {
    table: "message_parts",
    id: "message_id",
    columns: ["part_type", "text_length", "text_content", "tool_call_id", "tool_name", "metadata"],
  },
  { table: "summaries", id: "summary_id", columns: ["content", "previous_context", "file_ids"] },
  { table: "transcript_entries", id: "entry_key", columns: ["raw"] },
] as const;

interface Flip {
  readonly conversation: ConversationId;
  /** As findings name it. */
  readonly subject: string;
  readonly words: string;
}

/** Flips one bit of one stored value, as a disk would: nothing else in the file changes. */
function flipBit(path: string, random: Random, { table, id, columns }: (typeof covered)[number]): Flip | null {
  const column = random.pick<string>(columns);
  let flip: Flip | null = null;
  tamper(path, (db) => {
    db.exec("PRAGMA ignore_check_constraints = ON");
    const rows = db.prepare(`SELECT * FROM ${table} WHERE ${column} IS NOT NULL AND ${column} <> ''`).all();
    if (rows.length === 0) return;
    const row = random.pick(rows);
    const value = row[column];
    const where = table === "message_parts" ? `${id} = ? AND ordinal = ${String(row["ordinal"])}` : `${id} = ?`;
    if (typeof value === "number") {
      db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${where}`).run(
        value ^ (1 << random.below(12)),
        row[id] ?? null,
      );
    } else {
      const bytes = Buffer.from(String(value));
      const place = random.below(bytes.length);
      bytes[place] = (bytes[place] ?? 0) ^ (1 << random.below(8));
      db.prepare(`UPDATE ${table} SET ${column} = CAST(? AS TEXT) WHERE ${where}`).run(bytes, row[id] ?? null);
    }
    const subject =
      table === "summaries"
        ? String(row[id])
        : table === "transcript_entries"
          ? `entry ${String(row[id])}`
          : messageName(Number(row[id]) as MessageId);
    const words = `a bit of ${column} of ${subject}`;
    flip = { conversation: Number(row["conversation_id"]) as ConversationId, subject, words };
  });
  return flip;
}

async function exported(store: Store, conversation: ConversationId): Promise<readonly string[]> {
  const lines = exportTranscript(store, conversation);
  for (;;) {
    const step = await lines.next();
    if (step.done === true) return step.value.map(({ subject }) => subject);
  }
}

const damagedIn = async (store: Store, conversation: ConversationId | null = null): Promise<readonly string[]> =>
  (await inspect(store, conversation)).filter(({ code }) => code === "damaged_text").map(({ subject }) => subject);

describe("guarantee 33: damage is noticed", () => {
  for (const each of covered)
    it(`one flipped bit in any column of ${each.table} is noticed by doctor, export and restore`, async () => {
      const random = createRandom(33);
      const flipped = new Set<string>();
      for (let round = 0; round < 40; round++) {
        const path = join(mkdtempSync(join(scratch, "f-")), "lcm.db");
        copyFileSync(whole, path);
        const flip = flipBit(path, random, each);
        if (flip === null) continue;
        flipped.add(flip.words);
        assert.throws(() => checkTexts(path), { code: "corrupt", message: new RegExp(flip.subject) }, flip.words);
        if (round === 0)
          await assert.rejects(restore(path, locationOf(join(scratch, "restored", "lcm.db")), { now: at }), {
            code: "corrupt",
            message: new RegExp(flip.subject),
          });
        const store = await openSqlite({ path, housekeeping: false, filesDir: `${scratch}/lcm-files` });
        assert.deepEqual(await damagedIn(store, flip.conversation), [flip.subject], flip.words);
        const expected = each.table === "summaries" ? [] : [flip.subject];
        assert.deepEqual(await exported(store, flip.conversation), expected, flip.words);
        await store.close();
        rmSync(path);
      }
      assert.ok(flipped.size > 0);
    });

  it("one flipped bit in a stored file is noticed by doctor and export", async () => {
    const path = join(mkdtempSync(join(scratch, "f-")), "lcm.db");
    copyFileSync(whole, path);
    const filesDir = join(dirname(path), "files");
    cpSync(join(scratch, "lcm-files"), filesDir, { recursive: true });
    const store = await openSqlite({ path, housekeeping: false, filesDir });
    const [file] = await store.files(1 as ConversationId);
    assert.ok(file !== undefined);
    const place = join(filesDir, file.storageUri);
    const bytes = readFileSync(place);
    const random = createRandom(34);
    for (let round = 0; round < 20; round++) {
      const flipped = Buffer.from(bytes);
      const at = random.below(bytes.length);
      flipped[at] = (bytes[at] ?? 0) ^ (1 << random.below(7));
      writeFileSync(place, flipped);
      const errors = (await inspect(store, null)).filter(({ severity }) => severity === "error");
      assert.deepEqual([...new Set(errors.map(({ code }) => code))], ["unreadable_message"]);
      assert.match(errors[0]?.message ?? "", new RegExp(`${file.id} was changed: it does not match its hash`));
      assert.equal((await exported(store, 1 as ConversationId)).length, errors.length);
    }
    await store.close();
  });

  it("a whole database has no such finding, and restore accepts it", async () => {
    checkTexts(whole);
    const store = await openSqlite({ path: whole, readOnly: true });
    assert.deepEqual(await damagedIn(store), []);
    await store.close();
  });

  it("a copy of a damaged row is noticed too: carried over, transplanted, archived or merged", async () => {
    const path = join(mkdtempSync(join(scratch, "f-")), "lcm.db");
    copyFileSync(whole, path);
    tamper(path, (db) => {
      db.exec("UPDATE messages SET content = replace(content, 'bicycles', 'bicyclez') WHERE conversation_id = 1");
      db.exec("UPDATE summaries SET content = content || '!' WHERE conversation_id = 1 AND depth = 3");
    });
    const store = await openSqlite({ path, housekeeping: false, filesDir: `${scratch}/lcm-files` });
    const damaged = await damagedIn(store);
    assert.ok(
      damaged.some((subject) => subject.startsWith("msg_1-")) && damaged.some((subject) => subject.startsWith("sum_")),
    );
    const archive = join(mkdtempSync(join(scratch, "f-")), "archive.db");
    await store.archive([1] as ConversationId[], archive);
    assert.throws(() => checkTexts(archive), { code: "corrupt" });
    const target = (await store.open({ sessionId: "elsewhere" })).id;
    await store.transplant({ source: 1 as ConversationId, target });
    assert.equal((await damagedIn(store, target)).length, damaged.length);
    const key = { sessionKey: "agent:main:carried", agentId: "main" };
    tamper(path, (db) => {
      db.exec(`UPDATE registry SET session_key = '${key.sessionKey}' WHERE kind = 'session' AND number = 3`);
      db.exec(`UPDATE registry SET number = 1 WHERE kind = 'session' AND number = 3`);
    });
    const carried = await store.openSegment({ sessionId: "next", ...key }, { carryDepth: 3 });
    assert.equal((await damagedIn(store, carried.id)).length, 1);
    await store.close();
  });

  for (const version of fixtureVersions)
    it(`an adopted database of ${version} has checksums from the start`, async () => {
      const path = copyFixture(version, mkdtempSync(join(scratch, "f-")));
      await adopt(path, at);
      tamper(path, (db) => {
        for (const table of ["messages", "summaries"])
          assert.equal(db.prepare(`SELECT count(*) AS n FROM ${table} WHERE checksum IS NULL`).get()?.["n"], 0);
      });
      checkTexts(path);
      tamper(path, (db) => db.exec("UPDATE summaries SET content = content || '.'"));
      assert.throws(() => checkTexts(path), { code: "corrupt", message: /sum_.*and others/ });
    });
});
