/**
 * Looking never writes, a read-only database refuses every change, and the terminal UI survives another process locking,
 * replacing, removing or damaging the file.
 */

import assert from "node:assert/strict";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import { createDatabase } from "../../src/cli/open.ts";
import type { MessageId, SummaryId } from "../../src/core/model/types.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import { copyFixture, fixtureVersions, tamper } from "../support/older-database.ts";
import { withoutPseudoTerminal, withoutReplacing } from "../support/platform.ts";
import { portOver, startRobot } from "../support/robot.ts";
import type { Ground, Robot, RobotOptions } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import { startTerminal } from "../support/terminal.ts";
import type { Destination } from "../../src/tui/contract.ts";
import { modules } from "../../src/tui/layers.ts";
import type { Port } from "../../src/operator/port.ts";
import { sourceBin } from "../scenarios/program.ts";

const original = join(makeScratch("survival"), "lcm.db");
const { deep, truncated, young } = await makeDeepConversation(original);
const standing = await changeOnce(original);
const backup = basename((await createDatabase(original).backup(undefined)).path);

/** A fresh copy of a database with a history, a change that can be undone, and a backup. */
function copy(): string {
  const folder = makeScratch("survival");
  const names = readdirSync(join(original, "..")).filter((name) => name.startsWith(backup));
  for (const name of ["lcm.db", "lcm-files", ...names])
    cpSync(join(original, "..", name), join(folder, name), { recursive: true });
  return join(folder, "lcm.db");
}

/** Dissolves a leaf, and returns a summary in the context. */
async function changeOnce(path: string): Promise<SummaryId> {
  const lcm = await createDatabase(path, async () => resolveSettings({ env: {}, config: {} })).open("write");
  const summaries = (await lcm.store.context(deep)).flatMap((item) => (item.kind === "summary" ? [item] : []));
  const [d1, leaf] = [1, 0].map((depth) => summaries.find((item) => item.depth === depth)?.id);
  assert.ok(d1 !== undefined && leaf !== undefined);
  await lcm.dissolve(await lcm.planDissolve({ conversation: deep, summary: leaf }));
  await lcm.close();
  return d1;
}

async function session(
  path: string,
  use: (robot: Robot) => Promise<void>,
  given: Ground & RobotOptions = {},
): Promise<void> {
  const { port, attempts, close } = watchedPort(path, given);
  const robot = startRobot(port, { columns: 110, rows: 30, ...given });
  try {
    await use(robot);
    await robot.end();
  } finally {
    if (!robot.isOver()) await robot.end();
    await close();
  }
  assert.equal(attempts(), 0, "nothing here writes");
}

/** A port that counts attempts to write. */
function watchedPort(path: string, given: Ground = {}) {
  const opened = portOver(path, given);
  let attempts = 0;
  const writing: Port["writing"] = async (work) => {
    attempts += 1;
    return await opened.writing(work);
  };
  const importTranscript: Port["importTranscript"] = async (...asked) => {
    attempts += 1;
    return await opened.importTranscript(...asked);
  };
  return {
    port: { ...opened, writing, importTranscript },
    attempts: () => attempts,
    close: async () => await opened.close(),
  };
}

const first = "The ferry's new booking desk";
const sql = (path: string, words: string): string => tamper(path, (db) => db.exec(words));
const rename = (path: string, title: string): string => sql(path, `UPDATE conversations SET title = '${title}'`);

/** Every layer, by the name of its module; a module may be opened in more than one way. */
const places: readonly (readonly [name: string, place: Destination])[] = [
  ["Conversations", { kind: "conversations" }],
  ["Messages", { kind: "messages", conversation: deep }],
  ["Summaries", { kind: "summaries", conversation: deep }],
  ["Context", { kind: "context", conversation: deep }],
  ["Prompts", { kind: "prompts", conversation: deep }],
  ["Files", { kind: "files", conversation: deep }],
  ["Search", { kind: "search", conversation: deep }],
  ["Status", { kind: "status", conversation: deep }],
  ["History", { kind: "history", conversation: deep }],
  ["Transcripts", { kind: "transcripts" }],
  ["Dissolve", { kind: "dissolve", conversation: deep, summary: standing }],
  ["Rewrite or repair", { kind: "rewrite", conversation: deep, select: { summary: truncated } }],
  ["Rewrite or repair", { kind: "rewrite", conversation: deep, select: { repair: true } }],
  ["Transplant target", { kind: "targets", source: deep }],
  ["Transplant", { kind: "transplant", source: deep, target: young }],
  ["Undo", { kind: "undo", change: 1 }],
  ["Fix", { kind: "fix", conversation: deep }],
  ["Text", { kind: "text", title: "a text", lines: ["one"] }],
  ["Answer", { kind: "ask", conversation: deep, question: "Is the desk open tomorrow?" }],
  ["Compact", { kind: "compact", conversation: deep }],
  ["Prune", { kind: "prune", select: { conversation: deep } }],
  ["Pin", { kind: "pin", message: (deep * 2 ** 24 + 1) as MessageId }],
  ["Forget", { kind: "forget", target: { kind: "secret", text: "desk" } }],
  ["Backups", { kind: "backups" }],
  ["Restore", { kind: "restore", from: backup }],
  ["Export", { kind: "export", conversation: deep, path: "never-written.jsonl" }],
  ["Backup", { kind: "backup" }],
  ["Commands", { kind: "palette", entries: [] }],
  ["A line of text", { kind: "line", question: { kind: "forget" } }],
];

const keysOfLooking = ["down", "up", "pageDown", "G", "g", "J", "?", "escape"];

async function walkThrough(path: string): Promise<void> {
  const { port, attempts, close } = watchedPort(path);
  const robots = places.map(([name, place]) => ({ name, robot: startRobot(port, { place }) }));
  const walk = async ({ name, robot }: (typeof robots)[number]): Promise<void> => {
    await robot.sees("lossless-claw");
    await settled(robot);
    // In a dialog these would confirm.
    const opening = isScreen(name) ? ["enter", "right", "left", "escape"] : [];
    for (const key of [...keysOfLooking, ...opening]) if (!robot.isOver()) await robot.press(key);
    await settled(robot);
    if (!robot.isOver()) await robot.end();
  };
  try {
    await Promise.all(robots.map(walk));
  } finally {
    await close();
  }
  assert.equal(attempts(), 0, "reading writes nothing");
}

const isScreen = (name: string): boolean =>
  ["Conversations", "Messages", "Summaries", "Context", "Files", "Search", "Status", "History"].includes(name);

/** Waits until nothing is under way: the mark replaces the spinner. */
const settled = async (robot: Robot): Promise<void> => {
  if (!robot.isOver()) await robot.sees(/^ ◆/);
};

interface Bytes {
  readonly file: Buffer;
  readonly changedAt: number;
  readonly log: Buffer | null;
}

const bytesOf = (path: string): Bytes => ({
  file: readFileSync(path),
  changedAt: statSync(path).mtimeMs,
  log: statSync(`${path}-wal`, { throwIfNoEntry: false }) === undefined ? null : readFileSync(`${path}-wal`),
});

describe("looking at a database", () => {
  it("writes nothing: to an idle file, beside a writer, or to one without a WAL", async () => {
    const [atRest, live, plain] = [copy(), copy(), sql(copy(), "PRAGMA journal_mode = DELETE")];
    const writer = new DatabaseSync(live);
    writer.exec("PRAGMA wal_autocheckpoint = 0; UPDATE conversations SET title = title || ' (live)'");
    for (const path of [atRest, live, plain]) {
      const before = bytesOf(path);
      await walkThrough(path);
      const now = bytesOf(path);
      assert.ok(now.file.equals(before.file), "the file has the same bytes");
      assert.equal(now.changedAt, before.changedAt);
      assert.deepEqual(now.log?.toString("hex") ?? "", before.log?.toString("hex") ?? "", "nothing is in the log");
    }
    writer.close();
  });

  it("names the kind of a file it cannot show, and leaves it unchanged", async () => {
    const folder = makeScratch("survival");
    const newer = sql(copy(), "PRAGMA user_version = 999");
    const older = fixtureVersions.map((version) => copyFixture(version, folder, `${version}.db`));
    const garbage = join(folder, "garbage.db");
    writeFileSync(garbage, "nothing that anybody could read\n".repeat(300));
    for (const [path, words] of [
      [newer, /newer/],
      [garbage, /is not a database/],
      ...older.map((each) => [each, /made by an older lossless-claw/] as const),
    ] as const) {
      const before = bytesOf(path);
      await session(path, async (robot) => {
        await robot.sees(words);
        await robot.press("enter", "s", "c");
        assert.equal(robot.isOver(), false);
      });
      assert.ok(bytesOf(path).file.equals(before.file));
    }
  });

  it(
    "explains what can be done with a file or folder that is not writable",
    { skip: withoutPseudoTerminal },
    async () => {
      const [file, folder] = [copy(), copy()];
      chmodSync(file, 0o444);
      chmodSync(folder, 0o444);
      chmodSync(join(file, ".."), 0o777);
      chmodSync(join(folder, ".."), 0o555);
      // Root ignores permissions.
      const asSomebody = process.getuid?.() === 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups " : "";
      const start = (path: string) =>
        startTerminal(`${asSomebody}${process.execPath} ${sourceBin} --db ${path}`, { env: { HOME: "/" } });
      const [unwritable, inUnwritable] = [start(file), start(folder)];
      after(() => [unwritable, inUnwritable].forEach((terminal) => terminal.close()));
      for (const terminal of [unwritable, inUnwritable]) {
        await terminal.sees(first);
        await terminal.sees("read-only");
        terminal.press("R");
        await terminal.sees("you have no write permission for this file");
        terminal.press("ctrl+c");
        assert.equal((await terminal.ended()).status, 0);
      }
    },
  );
});

describe("a terminal UI that was opened read-only", () => {
  const changing = modules.map(({ name, keys }) => ({
    name,
    keys: keys.flatMap((each) => (each.changes === true ? each.keys : [])),
  }));

  it("knows every layer", () => {
    assert.deepEqual(modules.map(({ name }) => name).toSorted(), [...new Set(places.map(([name]) => name))].toSorted());
  });

  for (const { name, keys } of changing.filter((each) => each.keys.length > 0)) {
    it(`refuses every change with the reason: ${name}`, async () => {
      // Without damage there is nothing to fix, and nothing to refuse.
      const path = name === "Fix" ? sql(copy(), "UPDATE conversations SET context_tokens = 5") : copy();
      const before = bytesOf(path);
      const refused = new Set<string>();
      for (const [, place] of places.filter(([of]) => of === name))
        await session(
          path,
          async (robot) => {
            await robot.sees("lossless-claw");
            await settled(robot);
            // Otherwise there is nothing to fold, and nothing to refuse.
            if (name === "Compact") {
              await robot.press("f");
              await robot.sees("nothing can be changed");
            }
            for (const key of new Set(keys)) {
              await robot.press(key);
              if (robot.screen().includes("--read-only")) refused.add(key);
            }
          },
          { place, readOnly: true, env: { LCM_FRESH_TAIL_COUNT: "1" } },
        );
      // A dialog does not have all of its keys at once.
      if (isScreen(name)) assert.deepEqual([...refused], [...new Set(keys)]);
      else assert.notEqual(refused.size, 0, `${name} refuses none of ${keys.join(" ")}`);
      assert.ok(bytesOf(path).file.equals(before.file));
    });
  }
});

describe("a database under a terminal UI", { concurrency: true }, () => {
  it("stays on screen while another process locks it, is reported as locked, and refreshed afterwards", async () => {
    const path = sql(copy(), "PRAGMA journal_mode = DELETE");
    await session(path, async (robot) => {
      await robot.sees(first);
      const holder = new DatabaseSync(path);
      holder.exec("BEGIN EXCLUSIVE; UPDATE conversations SET title = 'Another title'");
      await robot.press("s");
      await robot.sees("locked by another process");
      await robot.press("escape");
      await robot.sees("locked by another process");
      await robot.sees(first);
      holder.exec("COMMIT");
      holder.close();
      await robot.sees("Another title");
      await robot.misses("locked by another process");
    });
  });

  it("is shown as soon as it can be opened", async () => {
    const path = copy();
    const holder = new DatabaseSync(path);
    holder.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; UPDATE conversations SET title = title");
    await session(path, async (robot) => {
      await robot.sees("locked by another process");
      holder.exec("COMMIT");
      holder.close();
      await robot.sees(first);
      await robot.misses("locked by another process");
    });
  });

  it("can be left immediately while another process locks it", async () => {
    const path = sql(copy(), "PRAGMA journal_mode = DELETE");
    const holder = new DatabaseSync(path);
    holder.exec("BEGIN EXCLUSIVE");
    await session(path, async (robot) => {
      await robot.press("q");
      await robot.over();
    });
    holder.close();
  });

  it("is read again after it was replaced", { skip: withoutReplacing }, async () => {
    const [path, other] = [copy(), rename(copy(), "The other file")];
    await session(path, async (robot) => {
      await robot.sees(first);
      renameSync(other, path);
      await robot.sees("The other file");
      assert.doesNotMatch(robot.screen(), new RegExp(first));
    });
  });

  it("is reported on every screen if the new file lacks what was shown", { skip: withoutReplacing }, async () => {
    const [path, other] = [copy(), sql(copy(), "DELETE FROM conversations WHERE conversation_id = 1")];
    await session(path, async (robot) => {
      await robot.sees(first);
      await robot.press("enter");
      await robot.sees("Ines has confirmed");
      renameSync(other, path);
      await robot.sees(/no conversation 1|no such conversation|no longer exists/);
      await robot.press("escape");
      await robot.sees("agent:main:cli");
      await robot.misses(first);
    });
  });

  it("is reported while it is missing, and shown when it is back", { skip: withoutReplacing }, async () => {
    const path = copy();
    const kept = rename(copy(), "Brought back");
    await session(path, async (robot) => {
      await robot.sees(first);
      for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
      await robot.sees("no longer exists; the screen shows what was read before");
      await robot.sees(first);
      renameSync(kept, path);
      await robot.sees("Brought back");
      await robot.misses("no longer exists");
    });
  });

  it("is reported as damaged, and shown when it is whole again", { skip: withoutReplacing }, async () => {
    const path = copy();
    const kept = rename(copy(), "Whole again");
    await session(path, async (robot) => {
      await robot.sees(first);
      writeFileSync(path, "nothing that anybody could read\n".repeat(3_000));
      await robot.press("s");
      await robot.sees(/is damaged|is not a database/);
      await robot.press("escape");
      for (const suffix of ["-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
      copyFileSync(kept, path); // The same file for the file system.
      await robot.sees("Whole again");
      await robot.misses(/is damaged|is not a database/);
    });
  });
});
