import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readdirSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LcmError } from "../../core/base/errors.ts";
import { checkSound } from "../../../test/support/lossless.ts";
import {
  contentsOf,
  copyFixture,
  fixtureVersions,
  hashOf,
  multiply,
  rowsOf,
} from "../../../test/support/older-database.ts";
import { busiestDuring } from "../../../test/support/lag.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { adopt } from "../adopt/adopt.ts";
import { openSqliteWorker } from "./worker.ts";
import { identify } from "./file-kind.ts";

const backupsIn = (folder: string): readonly string[] =>
  readdirSync(folder).filter((name) => /-older(-\d+)?$/.test(name));

/** Opens and closes the database; returns the reports. */
async function openOnce(path: string): Promise<readonly string[]> {
  const told: string[] = [];
  const store = await openSqliteWorker({ path }, (message) => told.push(message));
  await store.close();
  return told;
}

describe("a host's database", () => {
  it("is created with its folder if missing, and opened silently if it is ours", async () => {
    const path = join(makeScratch("host"), "state", "of", "it", "lcm.db");
    for (let time = 0; time < 2; time++) assert.deepEqual(await openOnce(path), []);
    assert.equal(identify(path), "current");
  });

  for (const version of fixtureVersions) {
    it(`is adopted from version ${version} of the older program, with a report that names the backup`, async () => {
      const folder = makeScratch("host");
      const path = copyFixture(version, folder);
      const older = contentsOf(path);
      const [{ messages, summaries } = {}] = rowsOf(
        path,
        "SELECT (SELECT count(*) FROM messages) AS messages, (SELECT count(*) FROM summaries) AS summaries",
      );
      const told: string[] = [];
      const store = await openSqliteWorker({ path }, (message) => told.push(message));
      const [backup = "none", ...more] = backupsIn(folder);
      assert.deepEqual(more, []);
      assert.equal(told.length, 2);
      assert.match(told[0] ?? "", /older lossless-claw/);
      assert.match(told[1] ?? "", new RegExp(`${Number(messages)} messages and ${Number(summaries)} summaries`));
      assert.ok(told[1]?.includes(join(folder, backup)), told.join());
      assert.deepEqual(contentsOf(join(folder, backup)), older);
      await checkSound(store);
      const [conversation] = await store.conversations();
      assert.equal(conversation?.totals.messages, Number(messages));
      await store.close();
      assert.deepEqual(await openOnce(path), []);
    });
  }

  it("is adopted once, though several open it at the same time in two processes", async () => {
    const folder = makeScratch("host");
    const path = multiply(copyFixture("0.15.3", folder), 10);
    const other = openInChild(path);
    const tellings = await Promise.all([openOnce(path), openOnce(path)]);
    const told = [...tellings.flat(), ...(await other.told)];
    assert.equal(told.filter((line) => line.startsWith("converted ")).length, 1, told.join("\n"));
    assert.equal(backupsIn(folder).length, 1);
    const store = await openSqliteWorker({ path }, assert.fail);
    await checkSound(store);
    await store.close();
  });

  it("is unchanged if it cannot be adopted, and the error gives the reason", async () => {
    const folder = makeScratch("host");
    const path = copyFixture("0.15.3", folder);
    truncateSync(path, statSync(path).size - 100_000);
    const before = hashOf(path);
    await assert.rejects(
      openSqliteWorker({ path }, () => undefined),
      (error) => {
        assert.ok(error instanceof LcmError, String(error));
        assert.equal(error.code, "corrupt");
        assert.match(error.hint ?? "", /restore|recover/);
        return true;
      },
    );
    assert.equal(hashOf(path), before);
    assert.deepEqual(backupsIn(folder), []);
  });

  it("is either the old or the adopted one after a kill in the middle, and opens the next time", async () => {
    const folder = makeScratch("host");
    let path = "";
    // If the adoption ends before the kill, there must be more to do.
    for (let times = 10; times <= 640 && (path === "" || identify(path) === "current"); times *= 4) {
      path = multiply(copyFixture("0.15.3", folder, `lcm-${times}.db`), times);
      const older = contentsOf(path);
      const child = openInChild(path);
      const known = backupsIn(folder).length;
      while (backupsIn(folder).length === known && child.isRunning()) await sleep(1);
      child.kill();
      await child.told;
      if (identify(path) === "older_program") assert.deepEqual(contentsOf(path), older);
    }
    assert.equal(identify(path), "older_program", "a kill comes in the middle");
    const told = await openOnce(path);
    assert.match(told.at(-1) ?? "", /^converted /);
    const store = await openSqliteWorker({ path }, assert.fail);
    await checkSound(store);
    await store.close();
  });
});

describe("guarantee 10: the host's event loop is free while a database is adopted", () => {
  it("timers keep firing, unlike when the same work runs in the host's thread", async (t) => {
    const folder = makeScratch("host");
    const original = multiply(copyFixture("0.15.3", folder, "original.db"), 20);
    const copy = (name: string): string => {
      copyFileSync(original, join(folder, name));
      return join(folder, name);
    };
    const measure = async (round: number) => ({
      here: await ticksDuring(() => adopt(copy(`here-${round}.db`), "2026-11-15T07:30:00.000Z")),
      there: await ticksDuring(() => openOnce(copy(`there-${round}.db`))),
    });
    const isFree = ({ here, there }: Awaited<ReturnType<typeof measure>>): boolean =>
      2 * there.busiestMs < here.busiestMs && there.ticks > 4 * here.ticks;
    // Only a real block shows every time.
    let { here, there } = await measure(0);
    for (let round = 1; round < 5 && !isFree({ here, there }); round++) ({ here, there } = await measure(round));
    const told = `in the thread ${here.busiestMs.toFixed(0)} ms without a timer and ${here.ticks} ticks, beside it ${there.busiestMs.toFixed(0)} ms and ${there.ticks}`;
    t.diagnostic(told);
    assert.ok(isFree({ here, there }), told);
  });
});

/** How often a timer fired during some work, and the longest stretch in which none could. */
async function ticksDuring(work: () => Promise<unknown>): Promise<{ ticks: number; busiestMs: number }> {
  let ticks = 0;
  const busiestMs = await busiestDuring(async () => {
    const timer = setInterval(() => (ticks += 1), 1);
    await work().finally(() => clearInterval(timer));
  });
  return { ticks, busiestMs };
}

/** Opens the database in another process; returns what it printed. */
function openInChild(path: string): { readonly told: Promise<readonly string[]>; isRunning(): boolean; kill(): void } {
  const program = `
    import(${JSON.stringify(new URL("worker.ts", import.meta.url).href)})
      .then(({ openSqliteWorker }) => openSqliteWorker({ path: process.argv[1] }, (message) => process.stdout.write(message + "\\n")))
      .then((store) => store.close());`;
  const child = spawn(process.execPath, ["--eval", program, path], { stdio: ["ignore", "pipe", "inherit"], env: {} });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += String(chunk)));
  return {
    told: once(child, "close").then(() => {
      assert.ok(child.exitCode === 0 || child.signalCode === "SIGKILL", "it opens the database, unless it is killed");
      return text.split("\n").filter((line) => line !== "");
    }),
    isRunning: () => child.exitCode === null,
    kill: () => void child.kill("SIGKILL"),
  };
}
