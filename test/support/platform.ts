/** Detects what the operating system offers; tests that need more are skipped with a reason. */

import assert from "node:assert/strict";
import { chmodSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

const isWindows = process.platform === "win32";

/** A reason for `skip` of a test. */
type Missing = string | false;

export const withoutSignals: Missing = isWindows && "Windows ends a process instead of sending it a signal";
export const withoutShell: Missing = isWindows && "Windows has no sh, and cannot execute scripts";
export const withoutLinks: Missing = isWindows && "Windows restricts links to files";
export const withoutReplacing: Missing = isWindows && "Windows cannot replace or remove an open file";
export const withoutPosixPaths: Missing = isWindows && "line breaks depend on the paths in a line";
export const withoutPseudoTerminal: Missing =
  process.platform !== "linux" && "a pseudo-terminal needs `script` of util-linux";

export const withoutBrowser: Missing =
  (process.platform !== "linux" || process.arch !== "x64") && "the browser of these tests runs on Linux on x64 only";

/** An environment with this home folder, under the name of each system. */
export const homeAt = (folder: string) => ({ HOME: folder, USERPROFILE: folder });

/** Asserts that only the owner can read it; on Windows that follows from its folder. */
export function assertPrivate(path: string, mode = 0o600): void {
  const { mode: found } = statSync(path);
  if (!isWindows) assert.equal((found & 0o777).toString(8), mode.toString(8), path);
}

/** Whether a process ended by killing itself; Windows reports that as a status. */
export const wasKilled = (ended: { readonly status: number | null; readonly signal: string | null }): boolean =>
  ended.signal === "SIGKILL" || (isWindows && ended.status === 1);

/** Whether permissions can be tested: Windows has others, and root is subject to none unless it becomes somebody else. */
export const withoutModes: Missing = isWindows && "Windows has no modes of files";

/** Works as a user who may read this folder and what is in it, but not change it. */
export async function asReaderOf<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const isRoot = process.geteuid?.() === 0;
  const nobody = 65_534;
  chmodSync(folder, 0o555);
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    chmodSync(path, statSync(path).isDirectory() ? 0o555 : 0o444);
  }
  chmodSync(dirname(folder), 0o711);
  if (isRoot) process.seteuid?.(nobody);
  try {
    return await work();
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(folder, 0o700);
  }
}
