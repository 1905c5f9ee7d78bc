import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { devNull } from "node:os";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import { LcmError } from "../../core/base/errors.ts";
import { copyFixture, fixtureVersions, hashOf, rowsOf, tamper } from "../../../test/support/older-database.ts";
import { wasKilled } from "../../../test/support/platform.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { checkWhole, identify } from "./file-kind.ts";
import { applicationId, schemaVersion } from "./schema.ts";
import { openSqlite } from "./store.ts";

const scratch = makeScratch("file-kind");
after(() => rmSync(scratch, { recursive: true, force: true }));
const folder = (): string => mkdtempSync(join(scratch, "f-"));
const made = (work: (db: DatabaseSync) => void): string => tamper(join(folder(), "lcm.db"), work);
const ours = async (): Promise<string> => {
  const path = join(folder(), "lcm.db");
  await (await openSqlite({ path })).close();
  return path;
};

/** Runs the statements in another process, then kills it. */
const killedAfter = (path: string, statements: string): void => {
  const program = `const { DatabaseSync } = require("node:sqlite");
    new DatabaseSync(${JSON.stringify(path)}).exec(${JSON.stringify(statements)});
    process.kill(process.pid, "SIGKILL");`;
  assert.ok(wasKilled(spawnSync(process.execPath, ["--eval", program])));
};

describe("identifying a file", () => {
  it("recognises ours, the older program's and an empty one", async () => {
    assert.equal(identify(await ours()), "current");
    for (const version of fixtureVersions) assert.equal(identify(copyFixture(version, folder())), "older_program");
    assert.equal(identify(join(folder(), "none.db")), "empty");
    assert.equal(identify(made((db) => db.exec("CREATE TABLE t (a); DROP TABLE t"))), "empty");
    const path = join(folder(), "lcm.db");
    writeFileSync(path, "");
    assert.equal(identify(path), "empty");
  });

  it("refuses a file that is not ours, with a reason and a hint", () => {
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
      /not a lossless-claw database/,
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

  it("leaves nothing beside the file and changes no byte of it", async () => {
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

  it("reads the log that a killed process left", async () => {
    const path = copyFixture("0.15.3", folder());
    tamper(path, (db) => db.exec("PRAGMA journal_mode = WAL"));
    killedAfter(
      path,
      `PRAGMA wal_autocheckpoint = 0; PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion}`,
    );
    assert.ok(existsSync(`${path}-wal`));
    assert.equal(identify(path), "current");
  });

  it("rolls back a killed process's transaction in our file, but not in a foreign one", () => {
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
    assert.equal(identify(torn), "older_program", "even if its first page cannot be read");
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

  it("passes on SQLite's lock error, so that a caller can wait", () => {
    const path = copyFixture("0.15.3", folder());
    tamper(path, (db) => {
      db.exec("PRAGMA cache_size = 2; BEGIN EXCLUSIVE; UPDATE messages SET content = content || 'x'");
      assert.throws(() => identify(path), { errcode: 5 });
      db.exec("ROLLBACK");
    });
    assert.equal(identify(path), "older_program");
  });
});

describe("checking a file for damage", () => {
  it("accepts intact files, and those where only the search index is damaged", () => {
    for (const version of fixtureVersions) checkWhole(copyFixture(version, folder()));
    checkWhole(
      tamper(copyFixture("0.15.3", folder()), (db) => db.exec("UPDATE messages_fts_data SET block = randomblob(64)")),
    );
  });

  it("finds pages that belong to no table or to two", () => {
    const path = copyFixture("0.15.3", folder());
    tamper(path, (db) => {
      const root = Number(db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").get()!["rootpage"]);
      db.exec(`PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = ${root} WHERE name = 'large_files'`);
    });
    const before = hashOf(path);
    assert.throws(() => checkWhole(path), { code: "corrupt", message: /is damaged and was left unchanged/ });
    assert.equal(hashOf(path), before);
  });

  it("works while others read the file", () => {
    const path = copyFixture("0.15.3", folder());
    const copy = join(folder(), "copy.db");
    copyFileSync(path, copy);
    tamper(copy, (db) => {
      const rows = db.prepare("SELECT * FROM messages").iterate();
      rows.next();
      checkWhole(copy);
      rows.return?.();
    });
  });
});
