/** Folders for tests. In memory where the system has such a place: what is tested is not how fast a disk syncs. */

import { accessSync, constants, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const makeScratch = (name: string): string => mkdtempSync(join(inMemory() ?? tmpdir(), `lcm-${name}-`));

function inMemory(): string | null {
  const shared = "/dev/shm";
  try {
    accessSync(shared, constants.W_OK);
    return shared;
  } catch {
    return null; // Not this system, or not for us.
  }
}
