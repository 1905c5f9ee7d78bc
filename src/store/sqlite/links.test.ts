/** No link in a files folder is followed, by anything that reads, writes, copies or removes stored files. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { withoutLinks } from "../../../test/support/platform.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { exportTranscript } from "../../core/ingest/export-transcript.ts";
import { findLarge, moveOut } from "../../core/ingest/large-content.ts";
import { inspect } from "../../core/maintenance/inspect.ts";
import type { ConversationId, StoredFile } from "../../core/model/types.ts";
import { databaseFileOf } from "../../core/model/database-file.ts";
import type { Store } from "../../core/model/store.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { restore } from "./backups/restore.ts";
import { defaultFilesDir, filesBeside, locationOf } from "./location.ts";
import { openSqlite } from "./store.ts";

const scratch = makeScratch("links");
after(() => rmSync(scratch, { recursive: true, force: true }));
const folder = (): string => mkdtempSync(join(scratch, "f-"));

const now = "2026-11-18T08:00:00.000Z" as Timestamp;
const key = join(folder(), "id_rsa");
const secret = "PRIVATE KEY of somebody";
writeFileSync(key, secret);

interface Scene {
  readonly store: Store;
  readonly path: string;
  readonly conversation: ConversationId;
  readonly file: StoredFile;
  /** Where its content is. */
  readonly place: string;
}

/** A database whose only message has its text in a file, of as many bytes as the key. */
async function scene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const path = join(folder(), "lcm.db");
  const store = await openSqlite({ path, housekeeping: false });
  try {
    const { id: conversation } = await store.open({ sessionId: "s" });
    const message = { role: "user", content: "h".repeat(secret.length) };
    const item = { kind: "message", message, key: "k", at: now } as const;
    await store.append(conversation, [await moveOut(item, findLarge(message, 1), { store, conversation })]);
    const [file] = await store.files(conversation);
    assert.ok(file !== undefined);
    await test({ store, path, conversation, file, place: join(defaultFilesDir(path), file.storageUri) });
  } finally {
    await store.close();
  }
}

const planted: Readonly<Record<string, (place: string) => void>> = {
  "a link to a file elsewhere": (place) => {
    rmSync(place);
    symlinkSync(key, place);
  },
  "a file behind a link to a folder elsewhere": (place) => {
    const elsewhere = join(folder(), "elsewhere");
    renameSync(dirname(place), elsewhere);
    writeFileSync(join(elsewhere, readdirSync(elsewhere)[0] ?? ""), secret);
    symlinkSync(elsewhere, dirname(place));
  },
  "a pipe": (place) => {
    rmSync(place);
    execFileSync("mkfifo", [place]);
  },
};

describe("guarantee 26: files stay inside their folder, without following links", { skip: withoutLinks }, () => {
  for (const [what, plant] of Object.entries(planted)) {
    it(`${what} is not read by describe, export or a search, and is a finding of doctor`, async () => {
      await scene(async ({ store, conversation, file, place }) => {
        plant(place);
        await assert.rejects(store.fileContent(file.id), { code: "denied" });
        await assert.rejects(store.fileLines(file.id, { fromLine: 1, charactersMax: 100 }), { code: "denied" });
        const request = { pattern: "somebody", mode: "full_text", scope: "files", sort: "recency", limit: 5 } as const;
        const found = await store.search(request);
        assert.deepEqual([found.hits, found.caveats], [[], [{ kind: "unreadable", files: 1 }]]);
        const lines: string[] = [];
        for await (const line of exportTranscript(store, conversation)) lines.push(line);
        assert.ok(!lines.join().includes("somebody"));
        const findings = (await inspect(store, null)).filter(({ code }) => code === "odd_file");
        assert.deepEqual(
          findings.map(({ subject, severity }) => [subject, severity]),
          [[file.id, "error"]],
        );
      });
    });

    it(`${what} is not imported or archived: nothing is merged or written`, async () => {
      await scene(async ({ store, path, conversation, place }) => {
        const archive = join(folder(), "archive.db");
        await store.archive([conversation], archive);
        plant(join(defaultFilesDir(archive), place.slice(defaultFilesDir(path).length)));
        const other = await openSqlite({ path: join(folder(), "lcm.db"), housekeeping: false });
        await assert.rejects(other.merge(archive), { code: "denied", message: /never followed/ });
        assert.deepEqual(await other.conversations(), []);
        await other.close();
        plant(place);
        const second = join(folder(), "archive.db");
        await assert.rejects(store.archive([conversation], second), { code: "denied" });
        assert.ok(!existsSync(second));
      });
    });

    it(`${what} is not copied by a backup, and not restored from one`, async () => {
      await scene(async ({ store, path, place }) => {
        const whole = join(folder(), "whole.db");
        await databaseFileOf(store).backup(whole);
        plant(join(filesBeside(whole), place.slice(defaultFilesDir(path).length)));
        rmSync(place);
        await assert.rejects(restore(whole, locationOf(path), { now }), { code: "corrupt" });
        mkdirSync(dirname(place), { recursive: true });
        writeFileSync(place, secret);
        plant(place);
        const to = join(folder(), "backup.db");
        assert.equal((await databaseFileOf(store).backup(to)).files, 0);
        const copied = existsSync(filesBeside(to)) ? readdirSync(filesBeside(to), { recursive: true }) : [];
        assert.deepEqual(
          copied.filter((name) => String(name).includes("file_")),
          [],
        );
      });
    });
  }

  it("the files folder of an archive is not a link itself; that of the own database may be one", async () => {
    await scene(async ({ store, path, conversation, file }) => {
      const elsewhere = join(folder(), "moved");
      const archive = join(folder(), "archive.db");
      await store.archive([conversation], archive);
      for (const place of [defaultFilesDir(archive), defaultFilesDir(path)]) {
        renameSync(place, `${elsewhere}${place.length}`);
        symlinkSync(`${elsewhere}${place.length}`, place);
      }
      const other = await openSqlite({ path: join(folder(), "lcm.db"), housekeeping: false });
      await assert.rejects(other.merge(archive), { code: "denied" });
      await other.close();
      assert.equal((await store.fileContent(file.id)).length, secret.length);
    });
  });

  it("an archive is not written through a link to the originals, which are deleted next", async () => {
    await scene(async ({ store, path, conversation, place }) => {
      const archive = join(folder(), "archive.db");
      symlinkSync(defaultFilesDir(path), defaultFilesDir(archive));
      await assert.rejects(store.archive([conversation], archive), { code: "denied" });
      assert.deepEqual([existsSync(archive), existsSync(place)], [false, true]);
    });
  });

  it("writing and removing do not go through a link either", async () => {
    await scene(async ({ store, conversation, file, place }) => {
      const described = { conversation, name: null, mimeType: null, encoding: "utf8", exploration: null } as const;
      const elsewhere = folder();
      const mine = join(elsewhere, "mine.txt");
      writeFileSync(mine, "mine");
      rmSync(place);
      symlinkSync(mine, place);
      await store.saveFile({ ...described, content: "h".repeat(secret.length) });
      assert.ok(lstatSync(place).isFile(), "the same content again takes the place of the link");
      assert.equal(readFileSync(mine, "utf8"), "mine");

      const drafted = `${place}.${process.pid}.new`;
      rmSync(place);
      symlinkSync(mine, drafted);
      await store.saveFile({ ...described, content: "h".repeat(secret.length) });
      assert.deepEqual([readFileSync(mine, "utf8"), existsSync(drafted)], ["mine", false]);

      writeFileSync(join(elsewhere, place.slice(dirname(place).length + 1)), "mine");
      rmSync(dirname(place), { recursive: true });
      symlinkSync(elsewhere, dirname(place));
      await assert.rejects(store.saveFile({ ...described, content: "something new" }), { code: "denied" });
      const before = readdirSync(elsewhere);
      const { revision } = (await store.conversation(conversation)) ?? assert.fail();
      const outcome = await store.remove([{ conversation, revision }]);
      assert.equal(outcome.kind, "written");
      assert.deepEqual(readdirSync(elsewhere), before, `${file.id} behind the link is not ours`);
    });
  });
});
