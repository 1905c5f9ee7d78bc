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
import files from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import { messageToStore } from "../../../core/messages/codec.ts";
import { checkSound } from "../../../../test/support/lossless.ts";
import { contentsOf, copyFixture, hashOf, rowsOf, tamper } from "../../../../test/support/older-database.ts";
import { assertPrivate } from "../../../../test/support/platform.ts";
import { makeScratch } from "../../../../test/support/scratch.ts";
import { archive } from "../archive.ts";
import { backUp, backUpDatabase } from "./backup.ts";
import { filesLackingIn } from "./contents.ts";
import { backupPath, copiesBeside, pruneBackups, unusedPath } from "./copies.ts";
import { defaultFilesDir, filesBeside, locationOf } from "../location.ts";
import { restore } from "./restore.ts";
import { openSqlite } from "../store.ts";
import type { Timestamp } from "../../../core/base/time.ts";
import type { ConversationId } from "../../../core/model/types.ts";
import { identify } from "../file-kind.ts";

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
    const made = await backUp(locationOf(path), to);
    assert.deepEqual(made, { path: to, bytes: statSync(to).size, files: 1, lost: 0 });
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
    await assert.rejects(backUp(locationOf(path), to), { code: "conflict" });
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
    const namesake = draft(process.pid); // Of a process before this one, with the same number.
    writeFileSync(namesake, "half");
    utimesSync(namesake, new Date("2026-01-01"), new Date("2026-01-01"));
    for (const file of [draft(dead), `${draft(dead)}-journal`, draft(process.ppid), others])
      writeFileSync(file, "half");
    await backUpDatabase(path, backupPath(path, now));
    assert.ok(existsSync(others), "what another database was backed up into is not ours to remove");
    assert.deepEqual(
      [draft(dead), `${draft(dead)}-journal`, namesake, draft(process.ppid)].map((file) => existsSync(file)),
      [false, false, false, true],
    );
  });
});

/** Backups of these times: whole ones, but for those in `halves`, whose files are missing. */
async function backedUpAt(path: string, stamps: readonly string[], halves: readonly string[] = []) {
  const made = stamps.map((stamp) => `${path}.backup-${stamp}`);
  for (const file of made) await backUp(locationOf(path), file);
  for (const stamp of halves) rmSync(filesBeside(`${path}.backup-${stamp}`), { recursive: true });
  return made;
}

describe("keeping backups", () => {
  it("keeps the newest three, the newest of each of seven days, and the database from before adopting", async () => {
    const path = await living();
    const days = ["01", "03", "04", "05", "06", "07", "08", "09"].map((day) => `202601${day}T120000Z`);
    const names = await backedUpAt(path, [...days, "20260109T130000Z", "20260109T130000Z-2", "20260109T140000Z"]);
    const others = [
      `${path}.backup-20250101T000000Z-older`,
      `${path}.backup-mine`,
      `${path}.backup-20260101T000000Z.txt`,
    ];
    for (const file of others) writeFileSync(file, "");
    const gone = [names[0]!, names[7]!];
    assert.deepEqual(await pruneBackups(path), gone);
    for (const file of [...names.filter((name) => !gone.includes(name)), ...others]) assert.ok(existsSync(file), file);
    assert.ok(!existsSync(filesBeside(names[0]!)));
    assert.deepEqual(await pruneBackups(path), [], "what is kept stays");
  });

  it("removes the files of a backup whose database never got its name, once they are old", async () => {
    const path = await living();
    const [old, young] = ["20260101T000000Z", "20260102T000000Z"].map((stamp) =>
      filesBeside(`${path}.backup-${stamp}`),
    );
    for (const stray of [old!, young!]) mkdirSync(stray);
    utimesSync(old!, new Date("2025-01-01"), new Date("2025-01-01"));
    await pruneBackups(path);
    assert.deepEqual([existsSync(old!), existsSync(young!)], [false, true]);
  });
});

describe("keeping backups when the clock was wrong", () => {
  const future = ["20990101T000000Z", "20990102T000000Z", "20990103T000000Z"];

  it("never deletes the backup just made", async () => {
    const path = await living();
    const others = await backedUpAt(path, future);
    for (const file of others) utimesSync(file, new Date("2099-01-01"), new Date("2099-01-01"));
    const made = backupPath(path, now);
    await backUp(locationOf(path), made);
    assert.deepEqual(await pruneBackups(path, made), others.slice(0, 1));
    for (const file of [made, ...others.slice(1)]) assert.ok(existsSync(file), file);
  });

  it("never deletes the file written last, if the caller does not name the new one", async () => {
    const path = await living();
    const others = await backedUpAt(path, future);
    for (const file of others) utimesSync(file, new Date("2025-01-01"), new Date("2025-01-01"));
    const made = backupPath(path, now);
    await backUp(locationOf(path), made);
    assert.deepEqual(await pruneBackups(path), others.slice(0, 1));
    assert.ok(existsSync(made));
  });
});

/** Adds stored files with these contents to the only conversation. */
async function store(path: string, contents: readonly string[]): Promise<void> {
  const store = await openSqlite({ path });
  const { id: conversation } = (await store.conversations())[0]!;
  const described = { name: "a.txt", mimeType: "text/plain", encoding: "utf8", exploration: null } as const;
  for (const content of contents) await store.saveFile({ conversation, content, ...described });
  await store.close();
}

/** The files below a folder, with their contents. */
const filesIn = (place: string): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(place, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted()
      .map((file) => [file.slice(place.length), readFileSync(file, "latin1")]),
  );

/** Works while files are copied in another way. */
async function copyingWith(copy: typeof files.copyFile, work: () => Promise<void>): Promise<void> {
  const { copyFile } = files;
  files.copyFile = copy;
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    files.copyFile = copyFile;
    syncBuiltinESMExports();
  }
}

describe("guarantee 31: a backup is whole or is not one", () => {
  it("has no name until its files are copied: a failure leaves nothing", async () => {
    const path = await living();
    const to = backupPath(path, now);
    const full = async () => await Promise.reject(Object.assign(new Error("no space left"), { code: "ENOSPC" }));
    await copyingWith(full, async () => {
      await assert.rejects(backUp(locationOf(path), to), { code: "unavailable", message: /no space left/ });
      const old = locationOf(join(dirname(path), "old.db"));
      const ids = [1 as ConversationId];
      await assert.rejects(archive(locationOf(path), ids, old, false), { code: "unavailable" });
    });
    assert.deepEqual(copiesBeside(path), []);
    assert.deepEqual(
      readdirSync(dirname(path)).filter((name) => !/-(wal|shm)$/.test(name)),
      ["lcm-files", "lcm.db"],
    );
  });

  it("is refused by a restore that changes nothing, if a file is missing, cut off or altered", async () => {
    const harm: Readonly<Record<string, (file: string) => void>> = {
      missing: (file) => rmSync(file),
      "cut off": (file) => truncateSync(file, 2),
      altered: (file) => writeFileSync(file, readFileSync(file, "utf8").toUpperCase()),
    };
    for (const [how, damage] of Object.entries(harm)) {
      const path = await living();
      await store(path, ["heron", "osprey"]);
      const backup = backupPath(path, now);
      await backUp(locationOf(path), backup);
      const [victim] = filesIn(filesBeside(backup)).keys();
      damage(filesBeside(backup) + victim!);
      rmSync(join(dirname(path), "lcm-files"), { recursive: true });
      await store(path, ["what is there now"]);
      const before = filesIn(dirname(path));
      const hint = /--partial/;
      await assert.rejects(restore(backup, locationOf(path), { now }), {
        code: "corrupt",
        message: /1 of its 3/,
        hint,
      });
      assert.deepEqual(filesIn(dirname(path)), before, how);

      const { files, missing } = await restore(backup, locationOf(path), { now, isPartialAllowed: true });
      assert.deepEqual([files, missing], [2, 1], how);
    }
  });

  it("is refused if a text in it was damaged on disk", async () => {
    const path = await living(["the heron waits"]);
    const backup = backupPath(path, now);
    await backUp(locationOf(path), backup);
    tamper(backup, (db) => db.exec("UPDATE messages SET content = 'the heron waitz'"));
    const before = filesIn(dirname(path));
    await assert.rejects(restore(backup, locationOf(path), { now }), { code: "corrupt", message: /msg_1-1/ });
    assert.deepEqual(filesIn(dirname(path)), before);
  });

  it("takes a file that the backup lacks from the files folder, if it is still the same there", async () => {
    const path = await living();
    const backup = backupPath(path, now);
    await backUp(locationOf(path), backup);
    rmSync(filesBeside(backup), { recursive: true });
    const { files, missing } = await restore(backup, locationOf(path), { now });
    assert.deepEqual([files, missing], [0, 0]);
    assert.deepEqual([...filesIn(defaultFilesDir(path)).values()], ["one\ntwo\nthree"]);
  });

  it("is whole without a file that the database had lost before", async () => {
    const path = await living();
    await store(path, ["heron", "osprey"]);
    const [lost, altered] = filesIn(defaultFilesDir(path)).keys();
    rmSync(defaultFilesDir(path) + lost!);
    truncateSync(defaultFilesDir(path) + altered!, 1);
    const [backup, ...newer] = await backedUpAt(path, ["20260101T000000Z", "20260102T000000Z", "20260103T000000Z"]);
    assert.equal((await backUp(locationOf(path), backupPath(path, now))).files, 2);
    assert.deepEqual(await pruneBackups(path), [backup]);
    const { missing } = await restore(newer[0]!, locationOf(path), { now });
    assert.equal(missing, 0);
  });

  it("is listed, and restored with --partial, if its list of lost files is damaged", async () => {
    const path = await living();
    await store(path, ["heron", "osprey"]);
    const [lost] = filesIn(defaultFilesDir(path)).keys();
    rmSync(defaultFilesDir(path) + lost!);
    const backup = backupPath(path, now);
    await backUp(locationOf(path), backup);
    writeFileSync(join(filesBeside(backup), "lost.json"), "{");
    assert.equal(await filesLackingIn(backup), 1);
    await assert.rejects(restore(backup, locationOf(path), { now }), { code: "corrupt" });
    assert.equal((await restore(backup, locationOf(path), { now, isPartialAllowed: true })).missing, 1);
  });

  it("is restored with --partial to the end, even if a row of it leads outside the files folder", async () => {
    const path = await living();
    await store(path, ["heron"]);
    const backup = backupPath(path, now);
    await backUp(locationOf(path), backup);
    await store(path, ["osprey"]);
    tamper(backup, (db) => db.exec("UPDATE large_files SET storage_uri = '../secret'"));
    await restore(backup, locationOf(path), { now, isPartialAllowed: true });
    assert.ok(![...filesIn(defaultFilesDir(path)).values()].includes("osprey"), "what no row names is removed");
  });

  it("is never outnumbered by incomplete ones when old backups are removed", async () => {
    const path = await living();
    const halves = ["20260105T000000Z", "20260106T000000Z", "20260107T000000Z"];
    const whole = ["20260101T000000Z", "20260102T000000Z", "20260103T000000Z"];
    await backedUpAt(path, [...whole, ...halves], halves);
    assert.deepEqual(await pruneBackups(path, `${path}.backup-${whole[2]!}`), []);
    const last = await backedUpAt(path, ["20260120T000000Z", "20260121T000000Z", "20260122T000000Z"]);
    assert.deepEqual(
      await pruneBackups(path, last[2]),
      [...whole, ...halves].map((stamp) => `${path}.backup-${stamp}`),
    );
  });

  it("leaves out drafts and files that no row names, and holds what others store meanwhile", async () => {
    const path = await living();
    const draft = join(defaultFilesDir(path), "1", `file_00000000000000aa.txt.${process.ppid}.new`);
    writeFileSync(draft, "half");
    const over = new AbortController();
    const writing = (async () => {
      for (let number = 0; !over.signal.aborted; number++) await store(path, [`content ${number}`]);
    })();
    try {
      for (let round = 0; round < 12; round++) {
        const to = `${path}.copy-${round}`;
        await backUp(locationOf(path), to);
        const named = rowsOf(to, "SELECT storage_uri FROM large_files").map((row) => `/${String(row["storage_uri"])}`);
        assert.deepEqual([...filesIn(filesBeside(to)).keys()], named.toSorted());
      }
    } finally {
      over.abort();
      await writing;
    }
  });

  it("starts over if content was removed while it copied", async () => {
    const path = await living();
    await store(path, ["heron", "osprey"]);
    const { copyFile } = files;
    let copies = 0;
    const pruning: typeof copyFile = async (...args) => {
      // A prune removes the rows, then the content.
      if (++copies === 2) {
        tamper(path, (db) => db.exec("DELETE FROM large_files"));
        rmSync(defaultFilesDir(path), { recursive: true });
      }
      await copyFile(...args);
    };
    await copyingWith(pruning, async () => {
      const to = backupPath(path, now);
      assert.equal((await backUp(locationOf(path), to)).files, 0);
      assert.deepEqual(rowsOf(to, "SELECT storage_uri FROM large_files"), []);
      assert.ok(copies > 1 && !existsSync(filesBeside(to)));
    });
  });
});

describe("restoring", () => {
  it("sets the present database aside and replaces it with the backup", async () => {
    const path = await living(["old"]);
    const backup = backupPath(path, "2026-01-01T00:00:00.000Z");
    await backUp(locationOf(path), backup);
    const original = contentsOf(path);
    const store = await openSqlite({ path });
    await store.append((await store.conversations())[0]!.id, [say("later", "new")]);
    await store.close();

    const { replaced, files } = await restore(backup, locationOf(path), { now });
    assert.deepEqual(contentsOf(path), original);
    assert.deepEqual(textsIn(replaced!), ["old", "new"]);
    assert.equal(replaced, `${path}.set-aside-20261115T083700Z`);
    assert.equal(files, 1);
    // Within the same second: a set-aside copy is never overwritten.
    assert.equal((await restore(backup, locationOf(path), { now })).replaced, `${replaced}-2`);
  });

  it("keeps the newest three set-aside copies and leaves backups alone", async () => {
    const path = await living(["good"]);
    const backup = backupPath(path, "2026-01-01T00:00:00.000Z");
    await backUp(locationOf(path), backup);
    const restores: Awaited<ReturnType<typeof restore>>[] = [];
    for (const hour of ["08", "09", "10", "11", "12"]) {
      truncateSync(path, 20_000);
      writeFileSync(`${path}-wal`, "");
      restores.push(await restore(backup, locationOf(path), { now: `2026-11-15T${hour}:00:00.000Z` }));
    }
    const aside = restores.map(({ replaced }) => String(replaced));
    assert.deepEqual(
      restores.map(({ pruned }) => pruned),
      [[], [], [], aside.slice(0, 1), aside.slice(1, 2)],
    );
    for (const gone of aside.slice(0, 2)) {
      for (const file of [gone, `${gone}-wal`, filesBeside(gone)]) assert.ok(!existsSync(file), file);
    }
    assert.deepEqual(await pruneBackups(path, backup), []);
    assert.deepEqual(
      copiesBeside(path).map((copy) => [copy.kind, copy.path]),
      [["backup", backup], ...aside.slice(2).map((file) => ["set-aside", file])],
    );
    assert.deepEqual(textsIn(path), ["good"]);
  });

  it("never deletes the copy it restores from, however old", async () => {
    const path = await living(["good"]);
    const aside = ["01", "02", "03"].map((day) => `${path}.set-aside-202601${day}T000000Z`);
    for (const file of aside) await backUp(locationOf(path), file);
    const { pruned } = await restore(aside[0]!, locationOf(path), { now });
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
    const { replaced } = await restore(backup, locationOf(path), { now });
    assert.equal(hashOf(replaced!), before);
    assert.deepEqual(textsIn(path), ["good"]);
    const sound = hashOf(path);
    await assert.rejects(restore(replaced!, locationOf(path), { now }), { code: "invalid" });
    assert.equal(hashOf(path), sound);
  });

  it("is visible to a process that has the database open", async () => {
    const path = await living(["old"]);
    const backup = backupPath(path, now);
    await backUp(locationOf(path), backup);
    const store = await openSqlite({ path });
    const { id } = (await store.conversations())[0]!;
    await store.append(id, [say("later", "new")]);
    await restore(backup, locationOf(path), { now: "2026-11-15T09:00:00.000Z" });
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
    await restore(older, locationOf(path), { now });
    assert.equal(identify(path), "older_program");
    assert.deepEqual(contentsOf(path), contentsOf(older));
  });

  it("with another page size fails at once, without any change, while another process has the database open", async () => {
    const path = await living();
    const store = await openSqlite({ path });
    const older = copyFixture("0.15.3", folder());
    await assert.rejects(restore(older, locationOf(path), { now }), {
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
    assert.deepEqual(await restore(backup, locationOf(path), { now }), {
      replaced: null,
      files: 1,
      missing: 0,
      pruned: [],
    });
    assertPrivate(path);
    assert.deepEqual(contentsOf(path), contentsOf(backup));
  });

  it("treats an empty file as absent", async () => {
    const backup = await living();
    const path = join(folder(), "lcm.db");
    writeFileSync(path, "");
    assert.equal((await restore(backup, locationOf(path), { now })).replaced, null);
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
      const { replaced } = await restore(backup, locationOf(path), { now });
      assert.equal(hashOf(replaced!), before, damage);
      assertPrivate(replaced!);
      assert.deepEqual(textsIn(path), ["good"]);
      const store = await openSqlite({ path });
      assert.deepEqual((await store.integrity()).problems, []);
      await store.close();
    }
  });

  it("does not mix the log of a damaged database into the restored one", async () => {
    const backup = await living(["good"]);
    const path = await living();
    const db = new DatabaseSync(path);
    db.exec("PRAGMA journal_mode = WAL; CREATE TABLE stale (text TEXT)");
    for (let row = 0; row < 200; row++) db.exec(`INSERT INTO stale VALUES ('${"x".repeat(2_000)}')`);
    const log = readFileSync(`${path}-wal`);
    db.close();
    truncateSync(path, 20_000);
    writeFileSync(`${path}-wal`, log);
    await restore(backup, locationOf(path), { now });
    assert.deepEqual(textsIn(path), ["good"]);
    const restored = new DatabaseSync(path);
    assert.deepEqual(restored.prepare("SELECT name FROM sqlite_schema WHERE name = 'stale'").all(), []);
    assert.deepEqual(
      restored
        .prepare("PRAGMA integrity_check")
        .all()
        .map((row) => ({ ...row })),
      [{ integrity_check: "ok" }],
    );
    restored.close();
  });

  it("replaces a database of a newer version", async () => {
    const backup = await living(["before the update"]);
    const path = tamper(await living(), (db) => db.exec("PRAGMA user_version = 99"));
    const { replaced } = await restore(backup, locationOf(path), { now });
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
    await assert.rejects(restore(damaged, locationOf(path), { now }), { code: "corrupt" });
    await assert.rejects(restore(text, locationOf(path), { now }), { code: "invalid" });
    await assert.rejects(restore(`${path}.absent`, locationOf(path), { now }), { code: "not_found" });
    await assert.rejects(restore(path, locationOf(path), { now }), { code: "invalid" });
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
      await assert.rejects(restore(backup, { path, filesDir: join(folder(), "files") }, { now }), { code: "invalid" });
      if (before !== "") assert.equal(hashOf(path), before);
    }
  });
});
