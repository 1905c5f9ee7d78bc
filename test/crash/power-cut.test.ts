/**
 * Cuts the power at random moments of everything that writes content: what was acknowledged is there, nothing refers to
 * what is not, and doctor agrees. `CUTS=2000` cuts more often, `SEED=7` changes the moments.
 */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Timestamp } from "../../src/core/base/time.ts";
import { restoreMessage } from "../../src/core/ingest/large-content.ts";
import { createLcm } from "../../src/core/lcm.ts";
import { resolveSettings, type Durability } from "../../src/core/model/settings.ts";
import type { Store } from "../../src/core/model/store.ts";
import { adopt } from "../../src/store/adopt/adopt.ts";
import { backUp } from "../../src/store/sqlite/backups/backup.ts";
import { backupPath, copiesBeside, pruneBackups } from "../../src/store/sqlite/backups/copies.ts";
import { identify } from "../../src/store/sqlite/file-kind.ts";
import { locationOf } from "../../src/store/sqlite/location.ts";
import { restore } from "../../src/store/sqlite/backups/restore.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { checkSound } from "../support/lossless.ts";
import { contentsOf, copyFixture } from "../support/older-database.ts";
import { withoutReplacing } from "../support/platform.ts";
import { createRandom } from "../support/random.ts";
import { assertFaithful, record, unlucky } from "../support/recorded-disk.ts";
import { makeScratch } from "../support/scratch.ts";
import { turnOf } from "./writer.ts";

const cuts = Number(process.env["CUTS"] ?? 360);
const seed = Number(process.env["SEED"] ?? 1);

/** Small enough that most answers are moved to files. */
const settings = resolveSettings({ env: {}, config: { largeFileTokenThreshold: 20 } }).values;
const at = "2026-02-17T07:37:00.000Z" as Timestamp;

async function withStore<T>(path: string, work: (store: Store) => Promise<T>, durability?: Durability): Promise<T> {
  const store = await openSqlite({ path, housekeeping: false, ...(durability && { durability }) });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const itemsOf = (name: string, turn: number) =>
  turnOf(name, turn + 20).map(
    (message, place) => ({ kind: "message", message, key: `${name}/${turn}/${place}`, at }) as const,
  );

/** Tells a conversation these turns; those that it has are skipped. */
async function tell(store: Store, name: string, turns: number, onTold: (turn: number) => void = () => undefined) {
  const lcm = createLcm({ store, clock: { now: systemNow }, settings });
  const { id } = await store.open({ sessionId: name });
  for (let turn = 0; turn < turns; turn++) {
    await lcm.ingest(id, itemsOf(name, turn));
    onTold(turn);
  }
  return id;
}

/** How many turns of a conversation are stored; each is whole and reads back as it was told. */
async function turnsOf(store: Store, name: string): Promise<number> {
  const [conversation] = await store.conversations({ sessionId: name });
  if (conversation === undefined) return 0;
  const messages = await store.messages({ conversation: conversation.id });
  const turns = Math.ceil(messages.length / itemsOf(name, 0).length);
  const told = Array.from({ length: turns }, (_, turn) => itemsOf(name, turn)).flat();
  assert.deepEqual(
    await Promise.all(messages.map(async (message) => await restoreMessage(store, message))),
    told.map(({ message }) => message),
  );
  return turns;
}

/** What one kind of work is, and what must hold after a cut. */
interface Work {
  /** Brings the folder into the state in which the power is still on. */
  prepare?(path: string): Promise<void>;
  /** Reports what was achieved. */
  run(path: string, achieved: (what: string) => void): Promise<void>;
  /** Throws if a promise was broken. */
  check(path: string, achieved: ReadonlySet<string>): Promise<void>;
}

const storing = (durability: Durability): Work => ({
  run: async (path, achieved) =>
    await withStore(
      path,
      async (store) => void (await tell(store, "s", 8, (turn) => achieved(`turn ${turn}`))),
      durability,
    ),
  async check(path, achieved) {
    await withStore(path, async (store) => {
      const turns = await turnsOf(store, "s");
      await checkSound(store);
      if (durability === "full")
        assert.ok(turns >= achieved.size, `${achieved.size} were acknowledged, ${turns} are there`);
      // The host tells everything again.
      await tell(store, "s", 8);
      assert.equal(await turnsOf(store, "s"), 8);
      await checkSound(store);
    });
  },
});

const [first, second] = ["2026-11-15T08:00:00.000Z", "2026-11-15T09:00:00.000Z"];

/** Every backup beside a database restores completely. */
async function checkBackups(path: string, turns: readonly number[]): Promise<number> {
  const copies = copiesBeside(path);
  for (const copy of copies) {
    const place = { path: `${path}.restored`, filesDir: `${path}.restored-files` };
    await restore(copy.path, place, { now: second });
    await withStore(place.path, async (store) => {
      await checkSound(store);
      assert.ok(turns.includes(await turnsOf(store, "s")), copy.path);
    });
    for (const suffix of ["", "-wal", "-shm", "-files"]) rmSync(place.path + suffix, { recursive: true, force: true });
  }
  return copies.length;
}

const backing: Work = {
  prepare: async (path) => await withStore(path, async (store) => void (await tell(store, "s", 4))),
  async run(path, achieved) {
    await backUp(locationOf(path), backupPath(path, first));
    achieved("first");
    await withStore(path, async (store) => void (await tell(store, "s", 6)), "normal");
    await backUp(locationOf(path), backupPath(path, second));
    achieved("second");
    await pruneBackups(path);
  },
  async check(path, achieved) {
    await withStore(path, async (store) => {
      assert.ok((await turnsOf(store, "s")) >= 4);
      await checkSound(store);
    });
    assert.ok((await checkBackups(path, [4, 5, 6])) >= achieved.size);
  },
};

/** Restores four turns over six, with other files. */
const restoring = (condition: "whole" | "damaged" | "absent"): Work => ({
  async prepare(path) {
    await withStore(path, async (store) => void (await tell(store, "s", 4)));
    await backUp(locationOf(path), backupPath(path, first));
    await withStore(path, async (store) => {
      const { id: conversation, revision } = (await store.conversations())[0] ?? assert.fail();
      await store.remove([{ conversation, revision }]);
      await tell(store, "s", 6);
    });
    if (condition === "damaged") truncateSync(path, 20_000);
    if (condition === "absent") rmSync(path);
  },
  async run(path, achieved) {
    await restore(backupPath(path, first), locationOf(path), { now: second });
    achieved("restored");
    await withStore(path, async (store) => void (await tell(store, "s", 5)), "normal");
  },
  async check(path, achieved) {
    const isRestored = achieved.has("restored");
    if (!isRestored && condition !== "whole" && !(await isSound(path))) return; // It was not before either.
    await withStore(path, async (store) => {
      const turns = await turnsOf(store, "s");
      assert.ok((isRestored ? [4, 5] : [4, 6]).includes(turns), `${turns} turns`);
      await checkSound(store);
    });
    if (condition === "whole") await checkBackups(path, [4, 6]);
    else await checkSetAside(path);
  },
});

async function isSound(path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  try {
    await withStore(path, async (store) => await checkSound(store));
    return true;
  } catch {
    return false;
  }
}

/** A damaged database is set aside with its files before it is replaced. */
async function checkSetAside(path: string): Promise<void> {
  for (const copy of copiesBeside(path))
    if (copy.kind === "set-aside") assert.ok(copy.bytes === 20_000 && readdirSync(`${copy.path}.files`).length > 0);
}

const archiving: Work = {
  prepare: async (path) =>
    await withStore(path, async (store) => {
      await tell(store, "s", 4);
      await tell(store, "other", 2);
    }),
  async run(path, achieved) {
    await withStore(
      path,
      async (store) => {
        const [conversation] = await store.conversations({ sessionId: "s" });
        const { id, revision } = conversation ?? assert.fail();
        await store.archive([id], `${path}.old.db`);
        achieved("archived");
        await store.remove([{ conversation: id, revision }]);
        achieved("removed");
        await store.merge(`${path}.old.db`);
        achieved("merged");
      },
      "normal",
    );
  },
  async check(path, achieved) {
    const archive = `${path}.old.db`;
    if (achieved.has("archived")) assert.ok(existsSync(archive));
    if (existsSync(archive)) {
      await withStore(archive, async (store) => {
        assert.equal(await turnsOf(store, "s"), 4);
        await checkSound(store);
      });
    }
    await withStore(path, async (store) => {
      const turns = await turnsOf(store, "s");
      assert.ok(turns === 4 || (turns === 0 && existsSync(archive)), `${turns} turns`);
      assert.equal(await turnsOf(store, "other"), 2);
      await checkSound(store);
    });
  },
};

const adopting: Work = {
  prepare: async (path) => void copyFixture("0.15.3", join(path, "..")),
  async run(path, achieved) {
    const { kind } = await adopt(path, first);
    assert.equal(kind, "adopted");
    achieved("adopted");
  },
  async check(path, achieved) {
    const original = copyFixture("0.15.3", makeScratch("original"));
    const [copy] = copiesBeside(path);
    if (copy !== undefined) assert.deepEqual(contentsOf(copy.path), contentsOf(original));
    if (identify(path) === "older_program") {
      assert.equal(achieved.size, 0);
      assert.deepEqual(contentsOf(path), contentsOf(original));
      return;
    }
    assert.ok(copy !== undefined, "adopted without a backup");
    await withStore(path, async (store) => await checkSound(store, [null], ["below_normal" as never]));
  },
};

const secret = "the answer to 22";
const forgetting: Work = {
  prepare: async (path) => await withStore(path, async (store) => void (await tell(store, "s", 4))),
  run: async (path, achieved) =>
    await withStore(
      path,
      async (store) => {
        const target = { kind: "secret", text: secret } as const;
        await store.forget(null, await store.planForget(null, target));
        achieved("forgotten");
      },
      "normal",
    ),
  check: async (path, achieved) =>
    await withStore(path, async (store) => {
      await checkSound(store);
      const plan = await store.planForget(null, { kind: "secret", text: secret });
      if (achieved.has("forgotten")) assert.deepEqual([...plan.messages, ...plan.files], []);
    }),
};

const works: Readonly<Record<string, Work>> = {
  "storing with `full`": storing("full"),
  "storing with `normal`": storing("normal"),
  "backing up": backing,
  "restoring over a database": restoring("whole"),
  "restoring over a damaged database": restoring("damaged"),
  "restoring where there is none": restoring("absent"),
  "archiving, removing and merging": archiving,
  adopting,
  forgetting,
};

describe("guarantee 30: a power cut loses nothing", () => {
  it("the folders of a new database have their names before it is used", { skip: withoutReplacing }, async () => {
    const [folder, into] = [makeScratch("power-cut"), join(makeScratch("power-cut"), "after")];
    const recording = record<string>(folder, "none.db");
    try {
      await (await openSqlite({ path: join(folder, "new", "folder", "lcm.db"), housekeeping: false })).close();
    } finally {
      recording.stop();
    }
    recording.cutAt(recording.steps - 1, unlucky, into);
    assert.ok(existsSync(join(into, "new", "folder")));
  });

  for (const [name, work] of Object.entries(works)) {
    const rounds = Math.ceil(cuts / Object.keys(works).length);
    it(`${name}, cut ${rounds} times`, { skip: withoutReplacing }, async (t) => {
      const scratch = makeScratch("power-cut");
      const folder = join(scratch, "real");
      mkdirSync(folder);
      const path = join(folder, "lcm.db");
      await work.prepare?.(path);
      const recording = record<string>(folder, "lcm.db");
      try {
        await work.run(path, recording.mark);
      } finally {
        recording.stop();
      }
      assertFaithful(recording, folder, join(scratch, "everything"));
      const random = createRandom(seed);
      for (let round = 0; round < rounds; round++) {
        const step = random.below(recording.steps);
        const place = join(scratch, `cut-${round}`);
        const achieved = recording.cutAt(step, random, place);
        try {
          await work.check(join(place, "lcm.db"), new Set(achieved));
        } catch (cause) {
          throw new Error(`SEED=${seed}: cut ${round}, at step ${step} of ${recording.steps}`, { cause });
        }
        rmSync(place, { recursive: true });
      }
      t.diagnostic(`SEED=${seed}: ${rounds} cuts among ${recording.steps} steps`);
      rmSync(scratch, { recursive: true });
    });
  }
});
