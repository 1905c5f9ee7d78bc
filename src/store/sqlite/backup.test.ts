import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { messageToStore } from "../../core/messages/codec.ts";
import { checkSound } from "../../../test/support/lossless.ts";
import { contentsOf, copyFixture, hashOf, rowsOf, tamper } from "../../../test/support/older-database.ts";
import { assertPrivate } from "../../../test/support/platform.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import {
  backUp,
  backUpDatabase,
  backupPath,
  copiesBeside,
  filesBeside,
  pruneBackups,
  restore,
  unusedPath,
} from "./backup.ts";
import { defaultFilesDir, openSqlite } from "./store.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { identify } from "./file-kind.ts";
import { databaseFileOf } from "../../core/model/database-file.ts";

const now = "2026-11-15T08:37:00.000Z" as Timestamp;
const scratch = makeScratch("backup");
after(() => rmSync(scratch, { recursive: true, force: true }));
const folder = (): string => mkdtempSync(join(scratch, "f-"));

const say = (key: string, content: string) =>
  ({ kind: "message", message: messageToStore({ role: "user", content }, { key, at: now }) }) as const;

/** A database of ours with some messages and a stored file. */
async function living(said: readonly string[] = ["one", "two", "three"]): Promise<string> {
  const path = join(folder(), "lcm.db");
  const store = await openSqlite({ path });
  const { id } = await store.open({ sessionId: "s" });
  await store.append(
    id,
    said.map((content, index) => say(`k${index}`, content)),
  );
  await store.saveFile({
    conversation: id,
    name: "a.txt",
    mimeType: "text/plain",
    content: said.join("\n"),
    encoding: "utf8",
    exploration: null,
  });
  await store.close();
  return path;
}

const textsIn = (path: string): readonly unknown[] =>
  rowsOf(path, "SELECT content FROM messages ORDER BY message_id").map((row) => row["content"]);

describe("a backup", () => {
  it("is one private file, equal row by row, with the stored files beside it", async () => {
    const path = await living();
    const to = backupPath(path, now);
    assert.equal(basename(to), "lcm.db.backup-20261115T083700Z");
    const made = await backUp(path, defaultFilesDir(path), to);
    assert.deepEqual(made, { path: to, bytes: statSync(to).size, files: 1 });
    assertPrivate(to);
    assert.deepEqual(contentsOf(to), contentsOf(path));
    const [file] = rowsOf(path, "SELECT storage_uri FROM large_files");
    assert.equal(readFileSync(join(filesBeside(to), String(file!["storage_uri"])), "utf8"), "one\ntwo\nthree");
    // It is not in WAL mode, so reading it creates no file beside it.
    assert.deepEqual(
      readdirSync(dirname(to)).filter((name) => name.startsWith(basename(to)) || name.endsWith(".new")),
      [basename(to), basename(filesBeside(to))],
    );
  });

  it("is consistent while another process keeps writing", async () => {
    const path = await living();
    const program = `
      const { DatabaseSync } = require("node:sqlite");
      const db = new DatabaseSync(process.argv[1], { timeout: 5000 });
      const insert = db.prepare("INSERT INTO journal (change_id, at, operation, subject, before_json, after_json) VALUES (1, 't', 'o', ?, ?, '')");
      process.stdout.write("writing");
      for (let pair = 0; ; pair++) {
        db.exec("BEGIN IMMEDIATE");
        insert.run("left", "x".repeat(2000)); insert.run("right", String(pair));
        db.exec("COMMIT");
      }`;
    const child = spawn(process.execPath, ["--eval", program, path], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
    try {
      for (let round = 0; round < 5; round++) {
        const to = `${path}.copy-${round}`;
        await backUpDatabase(path, to);
        const [counts] = rowsOf(
          to,
          "SELECT sum(subject = 'left') AS left, sum(subject = 'right') AS right FROM journal",
        );
        assert.equal(counts!["left"], counts!["right"], "no transaction is copied by halves");
        assert.deepEqual(rowsOf(to, "PRAGMA integrity_check"), [{ integrity_check: "ok" }]);
      }
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  });

  it("never overwrites an existing file", async () => {
    const path = await living();
    const to = join(folder(), "taken.db");
    writeFileSync(to, "mine");
    await assert.rejects(backUp(path, defaultFilesDir(path), to), { code: "conflict" });
    assert.equal(readFileSync(to, "utf8"), "mine");
    assert.equal(unusedPath(to), `${to}-2`);
  });

  it("that cannot be written fails and leaves no file", async () => {
    const path = await living();
    const file = join(folder(), "a-file");
    writeFileSync(file, "");
    await assert.rejects(backUpDatabase(path, join(file, "below.db")), {
      code: "not_found",
      message: /there is no folder/,
    });
    const garbage = join(folder(), "lcm.db");
    writeFileSync(garbage, "no database".repeat(1_000));
    const to = `${garbage}.backup`;
    await assert.rejects(backUpDatabase(garbage, to), { code: "unavailable" });
    assert.deepEqual(readdirSync(dirname(garbage)), ["lcm.db"]);
  });

  it("removes the draft of a killed backup, but not of a running one", async () => {
    const path = await living();
    const draft = (pid: number): string => join(dirname(path), `.lcm.db.backup-20260101T000000Z.${pid}.new`);
    const dead = 2 ** 22 + 1; // Above what the system gives out.
    const others = draft(dead).replace("lcm.db", "other.db");
    for (const file of [draft(dead), `${draft(dead)}-journal`, draft(process.ppid), others])
      writeFileSync(file, "half");
    await backUpDatabase(path, backupPath(path, now));
    assert.ok(existsSync(others), "what another database was backed up into is not ours to remove");
    assert.deepEqual(
      [existsSync(draft(dead)), existsSync(`${draft(dead)}-journal`), existsSync(draft(process.ppid))],
      [false, false, true],
    );
  });
});

describe("keeping backups", () => {
  it("keeps the newest few, and the database from before adopting", async () => {
    const path = await living();
    const names = [
      "20260101T000000Z",
      "20260102T000000Z",
      "20260102T000000Z-2",
      "20260103T000000Z",
      "20260104T000000Z",
    ].map((stamp) => `${path}.backup-${stamp}`);
    const others = [
      `${path}.backup-20250101T000000Z-older`,
      `${path}.backup-mine`,
      `${path}.backup-20260101T000000Z.txt`,
    ];
    for (const file of [...names, ...others]) writeFileSync(file, "");
    mkdirSync(filesBeside(names[0]!));
    assert.deepEqual(pruneBackups(path, 3), names.slice(0, 2));
    for (const file of [...names.slice(2), ...others]) assert.ok(existsSync(file), file);
    assert.ok(!existsSync(filesBeside(names[0]!)));
  });
});

describe("keeping backups when the clock was wrong", () => {
  const future = ["20990101T000000Z", "20990102T000000Z", "20990103T000000Z"];

  it("never deletes the backup just made", async () => {
    const path = await living();
    const others = future.map((stamp) => `${path}.backup-${stamp}`);
    for (const file of others) {
      writeFileSync(file, "");
      utimesSync(file, new Date("2099-01-01"), new Date("2099-01-01"));
    }
    const made = backupPath(path, now);
    await backUpDatabase(path, made);
    assert.deepEqual(pruneBackups(path, 3, made), others.slice(0, 1));
    for (const file of [made, ...others.slice(1)]) assert.ok(existsSync(file), file);
  });

  it("never deletes the file written last, if the caller does not name the new one", async () => {
    const path = await living();
    const others = future.map((stamp) => `${path}.backup-${stamp}`);
    for (const file of others) {
      writeFileSync(file, "");
      utimesSync(file, new Date("2025-01-01"), new Date("2025-01-01"));
    }
    const made = backupPath(path, now);
    await backUpDatabase(path, made);
    assert.deepEqual(pruneBackups(path, 3), others.slice(0, 1));
    assert.ok(existsSync(made));
  });
});

describe("restoring", () => {
  it("sets the present database aside and replaces it with the backup", async () => {
    const path = await living(["old"]);
    const backup = backupPath(path, "2026-01-01T00:00:00.000Z");
    await backUp(path, defaultFilesDir(path), backup);
    const original = contentsOf(path);
    const store = await openSqlite({ path });
    await store.append((await store.conversations())[0]!.id, [say("later", "new")]);
    await store.close();

    const { replaced, files } = await restore(backup, path, defaultFilesDir(path), now);
    assert.deepEqual(contentsOf(path), original);
    assert.deepEqual(textsIn(replaced!), ["old", "new"]);
    assert.equal(replaced, `${path}.set-aside-20261115T083700Z`);
    assert.equal(files, 1);
    // Within the same second: a set-aside copy is never overwritten.
    assert.equal((await restore(backup, path, defaultFilesDir(path), now)).replaced, `${replaced}-2`);
  });

  it("keeps the newest three set-aside copies and leaves backups alone", async () => {
    const path = await living(["good"]);
    const backup = backupPath(path, "2026-01-01T00:00:00.000Z");
    await backUp(path, defaultFilesDir(path), backup);
    const restores: Awaited<ReturnType<typeof restore>>[] = [];
    for (const hour of ["08", "09", "10", "11", "12"]) {
      truncateSync(path, 20_000);
      writeFileSync(`${path}-wal`, "");
      restores.push(await restore(backup, path, defaultFilesDir(path), `2026-11-15T${hour}:00:00.000Z`));
    }
    const aside = restores.map(({ replaced }) => String(replaced));
    assert.deepEqual(
      restores.map(({ pruned }) => pruned),
      [[], [], [], aside.slice(0, 1), aside.slice(1, 2)],
    );
    for (const gone of aside.slice(0, 2)) {
      for (const file of [gone, `${gone}-wal`, filesBeside(gone)]) assert.ok(!existsSync(file), file);
    }
    assert.deepEqual(pruneBackups(path, 3, backup), []);
    assert.deepEqual(pruneBackups(path, 1), []);
    assert.deepEqual(
      copiesBeside(path).map((copy) => [copy.kind, copy.path]),
      [["backup", backup], ...aside.slice(2).map((file) => ["set-aside", file])],
    );
    assert.deepEqual(textsIn(path), ["good"]);
  });

  it("never deletes the copy it restores from, however old", async () => {
    const path = await living(["good"]);
    const aside = ["01", "02", "03"].map((day) => `${path}.set-aside-202601${day}T000000Z`);
    for (const file of aside) await backUp(path, defaultFilesDir(path), file);
    const { pruned } = await restore(aside[0]!, path, defaultFilesDir(path), now);
    assert.deepEqual(pruned, [aside[1]]);
    assert.ok(existsSync(aside[0]!));
  });

  it("replaces a file that is no longer a database, and keeps its bytes", async () => {
    const backup = await living(["good"]);
    const path = await living();
    const bytes = readFileSync(path);
    bytes.fill(0xa5, 0, 4_096);
    writeFileSync(path, bytes);
    const before = hashOf(path);
    const { replaced } = await restore(backup, path, defaultFilesDir(path), now);
    assert.equal(hashOf(replaced!), before);
    assert.deepEqual(textsIn(path), ["good"]);
    const sound = hashOf(path);
    await assert.rejects(restore(replaced!, path, defaultFilesDir(path), now), { code: "invalid" });
    assert.equal(hashOf(path), sound);
  });

  it("is visible to a process that has the database open", async () => {
    const path = await living(["old"]);
    const backup = backupPath(path, now);
    await backUp(path, defaultFilesDir(path), backup);
    const store = await openSqlite({ path });
    const { id } = (await store.conversations())[0]!;
    await store.append(id, [say("later", "new")]);
    await restore(backup, path, defaultFilesDir(path), "2026-11-15T09:00:00.000Z");
    assert.deepEqual(
      (await store.messages({ conversation: id })).map(({ text }) => text),
      ["old"],
    );
    await store.append(id, [say("last", "newer")]);
    await checkSound(store);
    await store.close();
  });

  it("restores a database of the older program, whose page size differs", async () => {
    const path = await living();
    const older = copyFixture("0.15.3", folder());
    await restore(older, path, defaultFilesDir(path), now);
    assert.equal(identify(path), "older_program");
    assert.deepEqual(contentsOf(path), contentsOf(older));
  });

  it("with another page size fails at once, without any change, while another process has the database open", async () => {
    const path = await living();
    const store = await openSqlite({ path });
    const older = copyFixture("0.15.3", folder());
    await assert.rejects(restore(older, path, defaultFilesDir(path), now), {
      code: "unavailable",
      message: /could not be replaced/,
    });
    assert.deepEqual(
      (await store.messages({ conversation: (await store.conversations())[0]!.id })).map(({ text }) => text),
      ["one", "two", "three"],
    );
    await store.close();
  });

  it("creates a private file where there was none", async () => {
    const backup = await living();
    const path = join(folder(), "new", "lcm.db");
    assert.deepEqual(await restore(backup, path, defaultFilesDir(path), now), {
      replaced: null,
      files: 0,
      pruned: [],
    });
    assertPrivate(path);
    assert.deepEqual(contentsOf(path), contentsOf(backup));
  });

  it("treats an empty file as absent", async () => {
    const backup = await living();
    const path = join(folder(), "lcm.db");
    writeFileSync(path, "");
    assert.equal((await restore(backup, path, defaultFilesDir(path), now)).replaced, null);
    assert.deepEqual(contentsOf(path), contentsOf(backup));
  });

  it("replaces a damaged database and keeps its bytes", async () => {
    const backup = await living(["good"]);
    for (const damage of ["cut off", "overwritten"] as const) {
      const path = await living();
      if (damage === "cut off") truncateSync(path, 20_000);
      else {
        const bytes = readFileSync(path);
        bytes.fill(0xa5, 8_192, 40_960);
        writeFileSync(path, bytes);
      }
      writeFileSync(`${path}-wal`, "");
      const before = hashOf(path);
      const { replaced } = await restore(backup, path, defaultFilesDir(path), now);
      assert.equal(hashOf(replaced!), before, damage);
      assertPrivate(replaced!);
      assert.deepEqual(textsIn(path), ["good"]);
      const store = await openSqlite({ path });
      assert.deepEqual((await databaseFileOf(store).integrity()).problems, []);
      await store.close();
    }
  });

  it("replaces a database of a newer version", async () => {
    const backup = await living(["before the update"]);
    const path = tamper(await living(), (db) => db.exec("PRAGMA user_version = 99"));
    const { replaced } = await restore(backup, path, defaultFilesDir(path), now);
    assert.deepEqual(textsIn(path), ["before the update"]);
    assert.deepEqual(textsIn(replaced!), ["one", "two", "three"]);
  });

  it("changes nothing if the backup is not one, is damaged, or is the database itself", async () => {
    const path = await living();
    const before = hashOf(path);
    const damaged = `${path}.damaged`;
    await backUpDatabase(path, damaged);
    const bytes = readFileSync(damaged);
    bytes.fill(0xa5, 16_384, 81_920);
    writeFileSync(damaged, bytes);
    const text = `${path}.txt`;
    writeFileSync(text, "not a database");
    const files = defaultFilesDir(path);
    await assert.rejects(restore(damaged, path, files, now), { code: "corrupt" });
    await assert.rejects(restore(text, path, files, now), { code: "invalid" });
    await assert.rejects(restore(`${path}.absent`, path, files, now), { code: "not_found" });
    await assert.rejects(restore(path, path, files, now), { code: "invalid" });
    assert.equal(hashOf(path), before);
    assert.deepEqual(
      readdirSync(dirname(path))
        .filter((name) => !/-(wal|shm)$/.test(name))
        .toSorted(),
      ["lcm-files", "lcm.db", "lcm.db.damaged", "lcm.db.txt"],
    );
  });

  it("never replaces a file that is not ours", async () => {
    const backup = await living();
    const foreign = tamper(join(folder(), "other.db"), (db) => db.exec("CREATE TABLE recipes (name)"));
    const notes = join(folder(), "notes.txt");
    writeFileSync(notes, "dear diary");
    for (const path of [foreign, notes, folder()]) {
      const before = statSync(path).isFile() ? hashOf(path) : "";
      await assert.rejects(restore(backup, path, join(folder(), "files"), now), { code: "invalid" });
      if (before !== "") assert.equal(hashOf(path), before);
    }
  });
});
