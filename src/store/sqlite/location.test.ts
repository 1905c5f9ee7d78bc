import assert from "node:assert/strict";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { inspect } from "../../core/maintenance/inspect.ts";
import { adopt } from "../adopt/adopt.ts";
import { copyFixture } from "../../../test/support/older-database.ts";
import { assertPrivate, withoutModes } from "../../../test/support/platform.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { backUp } from "./backups/backup.ts";
import { exposuresOf, locationOf } from "./location.ts";
import { openSqlite } from "./store.ts";

const now = "2026-11-15T08:37:00.000Z";

async function withFile(path: string): Promise<void> {
  const store = await openSqlite({ path });
  const { id: conversation } = await store.open({ sessionId: "s" });
  const described = { name: "a.txt", mimeType: "text/plain", encoding: "utf8", exploration: null } as const;
  await store.saveFile({ conversation, content: "heron", ...described });
  await store.close();
}

describe("the files folder", () => {
  it("is never shared by two databases in one folder", () => {
    const names = ["lcm.db", "lcm", "lcm-files", "lcm.db-files", "lcm-files.d", "other.db"];
    const folders = names.map((name) => locationOf(name).filesDir);
    assert.equal(new Set(folders).size, names.length, folders.join());
  });
});

describe("what others may read", { skip: withoutModes }, () => {
  it("is nothing of what we make", async () => {
    const folder = join(makeScratch("private"), "deep", "er");
    const path = join(folder, "lcm.db");
    const umask = process.umask(0);
    try {
      await withFile(path);
      await backUp(locationOf(path), `${path}.backup-20261115T083700Z`);
    } finally {
      process.umask(umask);
    }
    assert.deepEqual(exposuresOf(locationOf(path)), []);
    for (const made of [join(folder, ".."), folder, join(folder, "lcm-files"), join(folder, "lcm-files", "1")])
      assertPrivate(made, 0o700);
  });

  it("is reported by doctor: to everyone as a warning, to a group as information", async () => {
    const path = join(makeScratch("exposed"), "lcm.db");
    await withFile(path);
    const backup = `${path}.backup-20261115T083700Z`;
    await backUp(locationOf(path), backup);
    chmodSync(path, 0o644);
    chmodSync(join(path, "..", "lcm-files"), 0o750);
    chmodSync(`${backup}.files`, 0o705);
    chmodSync(join(path, "..", "lcm-files", "1"), 0o700);
    writeFileSync(join(path, "..", "lcm-files", "1", "notes.txt"), "", { mode: 0o644 }); // In a folder that is closed.
    symlinkSync("/etc/hostname", join(path, "..", "lcm-files", "link"));
    const store = await openSqlite({ path, readOnly: true });
    const found = (await inspect(store, null)).filter(({ code }) => code === "exposed_file");
    await store.close();
    assert.deepEqual(
      found
        .map(({ severity, subject }) => [severity, subject])
        .filter(([, subject]) => !/-(wal|shm)$/.test(subject ?? "")),
      [
        ["warning", path],
        ["info", join(path, "..", "lcm-files")],
        ["warning", `${backup}.files`],
      ],
    );
  });

  it("is nothing of what was adopted", async () => {
    const path = copyFixture("0.15.3", makeScratch("adopted"));
    chmodSync(path, 0o644);
    const files = join(path, "..", "lcm-files");
    mkdirSync(files, { mode: 0o755 });
    writeFileSync(join(files, "notes.txt"), "", { mode: 0o644 });
    await adopt(path, now);
    assert.deepEqual(exposuresOf(locationOf(path)), []);
    assertPrivate(path);
    assertPrivate(files, 0o700);
    assertPrivate(join(files, "notes.txt"));
  });
});
