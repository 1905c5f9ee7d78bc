/**
 * A log of problems beside the database, for programs that must stay silent: the hooks of a host and what they start.
 * `lcm status` and `lcm doctor` report it. It never grows beyond a limit, and writing to it never fails.
 */

import { appendFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isObject, type Json } from "../../core/base/json.ts";
import type { Timestamp } from "../../core/base/time.ts";

export interface Problem {
  readonly at: Timestamp;
  /** The host that was served. */
  readonly host: string;
  /** What was being done, to be read after "while". */
  readonly doing: string;
  readonly message: string;
}

const bytesMax = 64_000;
const messageLength = 500;

export const problemLogOf = (database: string): string => join(dirname(database), "lcm-companion.log");

export function logProblem(path: string, problem: Problem): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > bytesMax) writeFileSync(path, newestLines(path, bytesMax / 2));
    const message = problem.message.slice(0, messageLength);
    appendFileSync(path, `${JSON.stringify({ ...problem, message })}\n`, { mode: 0o600 });
  } catch {
    // The disk is full or the folder not writable: the same problem again, and the host must not notice.
  }
}

/** The newest last; empty if there are none. */
export function readProblems(path: string): readonly Problem[] {
  try {
    return readFileSync(path, "utf8").split("\n").flatMap(parseProblem);
  } catch {
    return []; // No file: no problems.
  }
}

function newestLines(path: string, bytes: number): string {
  const kept = readFileSync(path).subarray(-bytes).toString("utf8");
  return kept.slice(kept.indexOf("\n") + 1);
}

function parseProblem(line: string): readonly Problem[] {
  try {
    const value = JSON.parse(line) as Json;
    if (!isObject(value)) return [];
    const { at, host, doing, message } = value;
    const isWhole = [at, host, doing, message].every((each) => typeof each === "string");
    return isWhole ? [value as unknown as Problem] : [];
  } catch {
    return []; // A torn line.
  }
}
