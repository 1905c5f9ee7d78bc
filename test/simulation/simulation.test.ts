/** Runs many small lives of a store, each from a seed. `SEEDS=10000` runs more of them, `SEED=7` repeats one. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { describe, it } from "node:test";
import { makeScratch } from "../support/scratch.ts";
import { createLife } from "./world.ts";
import type { Tally } from "./world.ts";

const stepsPerLife = 60;
const only = process.env["SEED"];
const seeds =
  only === undefined
    ? Array.from({ length: Number(process.env["SEEDS"] ?? 150) }, (_, index) => index + 1)
    : [Number(only)];

async function live(seed: number, folder: string): Promise<Tally> {
  const life = await createLife(seed, folder);
  try {
    for (let step = 0; step < stepsPerLife; step++) await life.step();
    await life.check();
    return life.tally;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const steps = life.log.map((line, index) => `  ${index + 1}. ${line}`).join("\n");
    const replay = `replay: SEED=${seed} node --test test/simulation/simulation.test.ts`;
    throw new Error(`seed ${seed}, step ${life.log.length}: ${reason}\n${replay}\nsteps:\n${steps}`, { cause });
  } finally {
    await life.end();
  }
}

describe("guarantees 1 to 5, 12, 13, 17: whatever happens, the context represents what the host sent", () => {
  const tally: Tally = {};

  it(`${seeds.length} lives of ${stepsPerLife} steps`, async () => {
    for (const seed of seeds) {
      const folder = makeScratch("life");
      try {
        for (const [name, times] of Object.entries(await live(seed, folder))) tally[name] = (tally[name] ?? 0) + times;
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }
  });

  it(
    "in which everything happened that can happen",
    { skip: only !== undefined && "one life need not see everything" },
    () => {
      const wanted = [
        "turn",
        "unheardTurn",
        "bootstrap",
        "replay",
        "rewind",
        "reset",
        "newSession",
        "index",
        "search",
        "crash",
        "reopen",
        "fold written",
        "fold stale",
        "dissolve written",
        "dissolve stale",
        "rewrite written",
        "rewrite stale",
        "transplant written",
        "transplant duplicate",
        "transplant empty",
        "broken off between statements",
        "broken off before commit",
        "life while the model thinks",
        ...["idle", "settled", "under", "waiting", "bounded by deadline", "bounded by passes"].map(
          (outcome) => `compaction ${outcome}`,
        ),
        ...["normal", "aggressive", "extractive", "truncated"].map((level) => `level ${level}`),
        ...["summaries", "evictions", "shortened messages", "stand-ins"].map((kind) => `prompt with ${kind}`),
      ];
      assert.deepEqual(
        wanted.filter((name) => (tally[name] ?? 0) < 5),
        [],
        JSON.stringify(tally),
      );
    },
  );
});
