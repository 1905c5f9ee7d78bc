/** Folders for tests. In memory where the system has such a place: what is tested is not how fast a disk syncs. */

import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];
process.on("exit", () => {
  for (const folder of made) remove(folder);
});

/** Gone with the process, if not before. */
export function makeScratch(name: string): string {
  const folder = mkdtempSync(join(inMemory() ?? tmpdir(), `lcm-${name}-`));
  made.push(folder);
  return folder;
}

function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    // There a file that somebody still has open cannot be removed; the system looks after its temporary folder itself.
    if (process.platform !== "win32") throw error;
  }
}

function inMemory(): string | null {
  const shared = "/dev/shm";
  try {
    accessSync(shared, constants.W_OK);
    return shared;
  } catch {
    return null; // Not this system, or not for us.
  }
}
