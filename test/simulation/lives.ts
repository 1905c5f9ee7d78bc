/**
 * Runs many small lives of a store, each from a seed. `SEEDS=10000` runs more of them, `SEEDS=500-999` these, `SEED=7`
 * repeats one.
 */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { it } from "node:test";
import { makeScratch } from "../support/scratch.ts";
import type { SimulatedStore } from "./database.ts";
import { createLife } from "./world.ts";
import type { Tally } from "./world.ts";

const stepsPerLife = 60;
const only = process.env["SEED"];

function seedsOf(usual: number): readonly number[] {
  if (only !== undefined) return [Number(only)];
  const [first = 1, last] = (process.env["SEEDS"] ?? `1-${usual}`).split("-").map(Number);
  const from = last === undefined ? 1 : first;
  return Array.from({ length: (last ?? first) - from + 1 }, (_, index) => from + index);
}

async function live(simulated: SimulatedStore, seed: number, folder: string): Promise<Tally> {
  const life = await createLife(simulated, seed, folder);
  try {
    for (let step = 0; step < stepsPerLife; step++) await life.step();
    await life.check();
    return life.tally;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const steps = life.log.map((line, index) => `  ${index + 1}. ${line}`).join("\n");
    const replay = `replay: SEED=${seed} node --test ${simulated.testFile}`;
    throw new Error(`seed ${seed}, step ${life.log.length}: ${reason}\n${replay}\nsteps:\n${steps}`, { cause });
  } finally {
    await life.end();
  }
}

/** `usual` is how many lives are lived unless the environment says otherwise; `least` how often each step must happen. */
export function testLives(simulated: SimulatedStore, usual: number, least: number): void {
  const tally: Tally = {};
  const seeds = seedsOf(usual);

  it(`${seeds.length} lives of ${stepsPerLife} steps`, async () => {
    for (const seed of seeds) {
      const folder = makeScratch("life");
      try {
        for (const [name, times] of Object.entries(await live(simulated, seed, folder)))
          tally[name] = (tally[name] ?? 0) + times;
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
        wanted.filter((name) => (tally[name] ?? 0) < least),
        [],
        JSON.stringify(tally),
      );
    },
  );
}
