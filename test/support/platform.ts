/**
 * What some tests ask of the operating system. Where it has no such thing they are skipped, and say why; what the system
 * has in another form is looked for in that form.
 */

import assert from "node:assert/strict";
import { statSync } from "node:fs";

const isWindows = process.platform === "win32";

/** For `skip` of a test. */
type Missing = string | false;

export const withoutSignals: Missing = isWindows && "Windows ends a process instead of sending it a signal";
export const withoutShell: Missing = isWindows && "Windows has no sh, and no programs that are scripts";
export const withoutLinks: Missing = isWindows && "Windows lets few make a link to a file";
export const withoutReplacing: Missing = isWindows && "Windows lets nobody replace or remove a file that is open";
export const withoutPosixPaths: Missing = isWindows && "where a line is broken depends on the paths in it";
export const withoutPseudoTerminal: Missing =
  process.platform !== "linux" && "the pseudo-terminal is made by `script` of util-linux";

/** Of an environment: where somebody is at home, by the name that the system has for it. */
export const homeAt = (folder: string) => ({ HOME: folder, USERPROFILE: folder });

/** Nobody but its owner reads it; on Windows that follows from the folder it lies in. */
export function assertPrivate(path: string, mode = 0o600): void {
  const { mode: found } = statSync(path);
  if (!isWindows) assert.equal((found & 0o777).toString(8), mode.toString(8), path);
}

/** Whether a process ended as one does that has killed itself; Windows then tells a status. */
export const wasKilled = (ended: { readonly status: number | null; readonly signal: string | null }): boolean =>
  ended.signal === "SIGKILL" || (isWindows && ended.status === 1);
