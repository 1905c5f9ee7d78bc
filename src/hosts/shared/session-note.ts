/**
 * Notes which session a host is in, so that an MCP server of the same host process knows its reader. Claude Code starts
 * its servers once and may change the session later (/clear); only its hooks learn of that.
 */

import { globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { isObject, type Json } from "../../core/base/json.ts";

export interface SessionNote {
  readonly sessionId: string;
  /** The folder that the host works in. */
  readonly folder: string;
}

/** In the plugin's data folder: the newest session, and that of each process of the host, which may run several. */
const newestName = "session.json";
const nameOf = (pid: number): string => `session-${pid}.json`;

/** `pid` is the process of the host; null if unknown. */
export function noteSession(dataFolder: string, pid: number | null, note: SessionNote): void {
  mkdirSync(dataFolder, { recursive: true });
  for (const name of pid === null ? [newestName] : [newestName, nameOf(pid)]) {
    // A reader sees the old note or the new one, never half of it.
    const unfinished = join(dataFolder, `${name}.${process.pid}`);
    writeFileSync(unfinished, JSON.stringify(note));
    renameSync(unfinished, join(dataFolder, name));
  }
  for (const name of globSync("session-*.json", { cwd: dataFolder })) {
    const other = Number(/\d+/.exec(basename(name))?.[0]);
    if (other !== pid && !isRunning(other)) rmSync(join(dataFolder, name), { force: true });
  }
}

/** The session of this host process, else the newest one if it is of the folder; null if none was noted. */
export function readSessionNote(dataFolder: string, pid: number, folder: string): SessionNote | null {
  const own = readNote(join(dataFolder, nameOf(pid)));
  if (own !== null) return own;
  // Another process of the host may work on another project, which is not this one's to read.
  const newest = readNote(join(dataFolder, newestName));
  return newest?.folder === folder ? newest : null;
}

function readNote(path: string): SessionNote | null {
  try {
    const note = JSON.parse(readFileSync(path, "utf8")) as Json;
    if (!isObject(note)) return null;
    const { sessionId, folder } = note;
    return typeof sessionId === "string" && typeof folder === "string" ? { sessionId, folder } : null;
  } catch {
    return null; // There is none, or it is from another version: the reader is then unknown.
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
