import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import { LcmError } from "../../core/base/errors.ts";
import { copyFixture, fixtureVersions, hashOf, rowsOf, tamper } from "../../../test/support/older-database.ts";
import { wasKilled } from "../../../test/support/platform.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { checkWhole, createSchema, identify, inTransaction, kindOf, migrate } from "./migrate.ts";
import { applicationId, schemaVersion, tables } from "./schema.ts";
import { openSqlite } from "./store.ts";
import { devNull } from "node:os";

const scratch = makeScratch("migrate");
after(() => rmSync(scratch, { recursive: true, force: true }));
const folder = (): string => mkdtempSync(join(scratch, "f-"));
const made = (work: (db: DatabaseSync) => void): string => tamper(join(folder(), "lcm.db"), work);
const ours = async (): Promise<string> => {
  const path = join(folder(), "lcm.db");
  await (await openSqlite({ path })).close();
  return path;
};

/** Runs in another process, which is killed right after it. */
const killedAfter = (path: string, statements: string): void => {
  const program = `const { DatabaseSync } = require("node:sqlite");
    new DatabaseSync(${JSON.stringify(path)}).exec(${JSON.stringify(statements)});
    process.kill(process.pid, "SIGKILL");`;
  assert.ok(wasKilled(spawnSync(process.execPath, ["--eval", program])));
};

describe("telling what a file is", () => {
  it("knows our own, the older program's, and one with nothing in it", async () => {
    assert.equal(identify(await ours()), "current");
    for (const version of fixtureVersions) assert.equal(identify(copyFixture(version, folder())), "older_program");
    assert.equal(identify(join(folder(), "none.db")), "empty");
    assert.equal(identify(made((db) => db.exec("CREATE TABLE t (a); DROP TABLE t"))), "empty");
    const path = join(folder(), "lcm.db");
    writeFileSync(path, "");
    assert.equal(identify(path), "empty");
  });

  it("refuses what is not ours, with a reason and a hint", () => {
    const refused = (path: string, code: string, message: RegExp): void =>
      assert.throws(
        () => identify(path),
        (error) =>
          error instanceof LcmError && error.code === code && message.test(error.message) && error.hint !== undefined,
      );
    const text = join(folder(), "notes.txt");
    writeFileSync(text, "x".repeat(5_000));
    refused(text, "invalid", /is not a database/);
    refused(folder(), "invalid", /is a folder/);
    refused(devNull, "invalid", /is not a file/);
    refused(
      made((db) => db.exec("CREATE TABLE t (a)")),
      "invalid",
      /not one of lossless-claw/,
    );
    refused(
      made((db) =>
        db.exec(
          `CREATE TABLE t (a); PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion + 1}`,
        ),
      ),
      "conflict",
      /newer/,
    );
  });

  it("leaves nothing beside the file, and not a byte in it changed", async () => {
    const older = copyFixture("0.15.3", folder());
    for (const path of [
      await ours(),
      older,
      tamper(copyFixture("0.1.0", folder()), (db) => db.exec("PRAGMA journal_mode = WAL")),
    ]) {
      const [before, beside] = [hashOf(path), readdirSync(join(path, ".."))];
      identify(path);
      assert.deepEqual([hashOf(path), readdirSync(join(path, ".."))], [before, beside]);
    }
  });

  it("reads what lies in the log of a process that was killed", async () => {
    const path = copyFixture("0.15.3", folder());
    tamper(path, (db) => db.exec("PRAGMA journal_mode = WAL"));
    killedAfter(
      path,
      `PRAGMA wal_autocheckpoint = 0; PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion}`,
    );
    assert.ok(existsSync(`${path}-wal`));
    assert.equal(identify(path), "current");
  });

  it("undoes what a killed process had begun in a file of ours, and not in one that is another's", () => {
    const halfWritten = "PRAGMA cache_size = 2; BEGIN; UPDATE messages SET content = content || 'x'";
    const older = copyFixture("0.15.3", folder());
    const before = rowsOf(older, "SELECT content FROM messages");
    killedAfter(older, halfWritten);
    assert.ok(existsSync(`${older}-journal`));
    assert.equal(identify(older), "older_program");
    assert.ok(!existsSync(`${older}-journal`));
    assert.deepEqual(rowsOf(older, "SELECT content FROM messages"), before);

    const torn = copyFixture("0.15.3", folder());
    killedAfter(torn, halfWritten.replace("BEGIN;", "BEGIN; CREATE TABLE half (a);"));
    writeFileSync(torn, readFileSync(torn).fill(0xff, 100, 1_000));
    assert.equal(identify(torn), "older_program", "also where its first page cannot be read");
    assert.deepEqual(rowsOf(torn, "SELECT content FROM messages"), before);

    const foreign = made((db) => {
      db.exec("CREATE TABLE messages (content)");
      for (let row = 0; row < 500; row++) db.prepare("INSERT INTO messages VALUES (?)").run("y".repeat(200));
    });
    killedAfter(foreign, halfWritten);
    const halfway = hashOf(foreign);
    assert.throws(() => identify(foreign), { code: "invalid" });
    assert.equal(hashOf(foreign), halfway);
    assert.ok(existsSync(`${foreign}-journal`));
  });

  it("lets a lock through as what it is, so that a caller can wait", () => {
    const path = copyFixture("0.15.3", folder());
    tamper(path, (db) => {
      db.exec("PRAGMA cache_size = 2; BEGIN EXCLUSIVE; UPDATE messages SET content = content || 'x'");
      assert.throws(() => identify(path), { errcode: 5 });
      db.exec("ROLLBACK");
    });
    assert.equal(identify(path), "older_program");
  });
});

describe("making a file what we need", () => {
  it("gives an empty one the whole schema, stamped", () => {
    const path = made((db) => migrate(db, "lcm.db"));
    assert.equal(identify(path), "current");
    const names = new Set(rowsOf(path, "SELECT name FROM sqlite_schema").map((row) => row["name"]));
    for (const table of Object.keys(tables)) assert.ok(names.has(table), table);
  });

  it("does nothing the second time, nor when another process was first", () => {
    const path = made((db) => migrate(db, "lcm.db"));
    const before = hashOf(path);
    tamper(path, (db) => migrate(db, "lcm.db"));
    assert.equal(hashOf(path), before);
  });

  it("guarantee 11: changes nothing of a file from which no step leads on", () => {
    const path = made((db) => {
      createSchema(db);
      db.exec("PRAGMA user_version = 0");
    });
    const before = hashOf(path);
    assert.equal(identify(path), "outdated");
    tamper(path, (db) => assert.throws(() => migrate(db, path), { code: "corrupt", message: /schema 0/ }));
    assert.equal(hashOf(path), before);
  });

  it("undoes everything when a part of it fails", () => {
    const path = made((db) => {
      assert.throws(() =>
        inTransaction(db, () => {
          createSchema(db);
          throw new Error("in the middle");
        }),
      );
      assert.equal(kindOf(db, "lcm.db"), "empty");
      assert.equal(db.isTransaction, false);
    });
    assert.equal(identify(path), "empty");
  });
});

describe("checking that a file is whole", () => {
  it("passes sound ones, and ones whose search alone is damaged", () => {
    for (const version of fixtureVersions) checkWhole(copyFixture(version, folder()));
    checkWhole(
      tamper(copyFixture("0.15.3", folder()), (db) => db.exec("UPDATE messages_fts_data SET block = randomblob(64)")),
    );
  });

  it("finds pages that belong to nothing or to two", () => {
    const path = copyFixture("0.15.3", folder());
    tamper(path, (db) => {
      const root = Number(db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").get()!["rootpage"]);
      db.exec(`PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = ${root} WHERE name = 'large_files'`);
    });
    const before = hashOf(path);
    assert.throws(() => checkWhole(path), { code: "corrupt", message: /is damaged, and was not touched/ });
    assert.equal(hashOf(path), before);
  });

  it("is done in the presence of readers", () => {
    const path = copyFixture("0.15.3", folder());
    const copy = join(folder(), "copy.db");
    mkdirSync(join(copy, ".."), { recursive: true });
    copyFileSync(path, copy);
    tamper(copy, (db) => {
      const rows = db.prepare("SELECT * FROM messages").iterate();
      rows.next();
      checkWhole(copy);
      rows.return?.();
    });
  });
});
