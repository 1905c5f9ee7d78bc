/** Makes expensive fixtures once and shares them among all tests of a run. */

import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { assert } from "../../src/core/base/errors.ts";
import { makeScratch } from "./scratch.ts";

const patienceMs = 180_000;

/**
 * A folder of this name, with the contents that `make` creates. `npm test` sets a place that its processes share: the
 * first that needs a fixture makes it there, and the others wait. It is read-only afterwards.
 */
export async function makeShared(name: string, make: (folder: string) => Promise<void> | void): Promise<string> {
  const folder = join(process.env["LCM_TEST_SHARED"] ?? makeScratch("shared"), name);
  const drafts = `${folder}.draft`;
  const end = performance.now() + patienceMs;
  while (!existsSync(folder)) {
    try {
      mkdirSync(drafts);
    } catch {
      // Another process is making it.
      assert(performance.now() < end, `${drafts} was never finished`);
      await sleep(50);
      continue;
    }
    if (existsSync(folder)) break; // Another process has just made it.
    try {
      await make(drafts);
    } catch (error) {
      rmSync(drafts, { recursive: true, force: true });
      throw error;
    }
    renameSync(drafts, folder);
  }
  return folder;
}
