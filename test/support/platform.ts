/** Detects what the operating system offers; tests that need more are skipped with a reason. */

import assert from "node:assert/strict";
import { statSync } from "node:fs";

const isWindows = process.platform === "win32";

/** A reason for `skip` of a test. */
type Missing = string | false;

export const withoutSignals: Missing = isWindows && "Windows ends a process instead of sending it a signal";
export const withoutShell: Missing = isWindows && "Windows has no sh, and no programs that are scripts";
export const withoutLinks: Missing = isWindows && "Windows lets few make a link to a file";
export const withoutReplacing: Missing = isWindows && "Windows lets nobody replace or remove a file that is open";
export const withoutPosixPaths: Missing = isWindows && "where a line is broken depends on the paths in it";
export const withoutPseudoTerminal: Missing =
  process.platform !== "linux" && "the pseudo-terminal is made by `script` of util-linux";

/** The environment variable that names the home folder on this system. */
export const homeAt = (folder: string) => ({ HOME: folder, USERPROFILE: folder });

/** Asserts that only the owner can read it; on Windows that follows from its folder. */
export function assertPrivate(path: string, mode = 0o600): void {
  const { mode: found } = statSync(path);
  if (!isWindows) assert.equal((found & 0o777).toString(8), mode.toString(8), path);
}

/** Whether a process ended by killing itself; Windows reports that as a status. */
export const wasKilled = (ended: { readonly status: number | null; readonly signal: string | null }): boolean =>
  ended.signal === "SIGKILL" || (isWindows && ended.status === 1);
