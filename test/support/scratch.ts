/** Creates temporary folders for tests, in memory where possible, because disk speed is not what they test. */

import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];
process.on("exit", () => {
  for (const folder of made) remove(folder);
});

/** Removed at process exit, if not before. */
export function makeScratch(name: string): string {
  const folder = mkdtempSync(join(inMemory() ?? tmpdir(), `lcm-${name}-`));
  made.push(folder);
  return folder;
}

function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    // On Windows an open file cannot be removed; the system cleans its temporary folder itself.
    if (process.platform !== "win32") throw error;
  }
}

function inMemory(): string | null {
  const shared = "/dev/shm";
  try {
    accessSync(shared, constants.W_OK);
    return shared;
  } catch {
    return null; // Not available on this system, or not to us.
  }
}
