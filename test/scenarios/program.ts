/** Runs the real bin as its users do: in separate processes and folders, in a time zone off the full hour. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { homeAt } from "../support/platform.ts";
import { publishedFolder } from "../support/published.ts";

/** Runs the sources of this checkout. */
export const sourceBin = fileURLToPath(new URL("../../bin/lcm.js", import.meta.url));

/** In a run of all tests this is what is published, which starts faster; otherwise the sources, which need no build. */
export const bin =
  process.env["LCM_TEST_SHARED"] === undefined ? sourceBin : join(await publishedFolder(), "bin", "lcm.js");

const scratch = mkdtempSync(join(tmpdir(), "lcm-cli-"));
// Not after the tests of one file, since several may run in this process.
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));

/**
 * The whole environment of the program: colours, models and settings of the person who runs the tests must not leak in.
 * Compiled code is cached across runs.
 */
export const bare = {
  PATH: process.env["PATH"],
  TZ: "America/St_Johns",
  NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? join(scratch, "compiled"),
};

let folders = 0;
export function createFolder(): string {
  const folder = join(scratch, `place-${++folders}`);
  mkdirSync(folder);
  return folder;
}

export interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** A wrong shape fails where it is read. */
  readonly json: ReturnType<typeof JSON.parse>;
}

export interface Place {
  readonly state: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Another program than `bin`. */
  readonly program?: string;
}

const optionsOf = ({ state, env = {} }: Place) => ({
  cwd: state,
  env: { ...bare, ...homeAt(state), OPENCLAW_STATE_DIR: state, ...env },
});

const toRun = (status: number | null, stdout: string, stderr: string): Run => ({
  status,
  stdout,
  stderr,
  get json() {
    return JSON.parse(stdout);
  },
});

/** Runs `lcm` for a user with this state directory. */
export function lcm(place: Place, ...args: readonly string[]): Run {
  const run = spawnSync(process.execPath, [place.program ?? bin, ...args], {
    ...optionsOf(place),
    encoding: "utf8",
    maxBuffer: 1 << 28,
    ...(place.input === undefined ? {} : { input: place.input }),
  });
  assert.equal(run.signal, null, run.stderr);
  return toRun(run.status, run.stdout, run.stderr);
}

/** Runs it and expects success. */
export function ok(place: Place, ...args: readonly string[]): Run {
  const run = lcm(place, ...args);
  assert.equal(run.status, 0, `lcm ${args.join(" ")}\n${run.stdout}\n${run.stderr}`);
  return run;
}

/** Runs it without blocking this process, which takes part; `meanwhile` gets the running program. */
export async function lcmBeside(
  place: Place,
  args: readonly string[],
  meanwhile: (program: ChildProcess) => Promise<void> = async () => undefined,
): Promise<Run> {
  const program = spawn(process.execPath, [bin, ...args], { ...optionsOf(place), stdio: ["ignore", "pipe", "pipe"] });
  const closed = once(program, "close");
  const [stdout, stderr] = await Promise.all([textOf(program.stdout), textOf(program.stderr), meanwhile(program)]);
  await closed;
  assert.equal(program.signalCode, null, stderr);
  return toRun(program.exitCode, stdout, stderr);
}

export const linesOf = (text: string): readonly string[] => text.split("\n").filter((line) => line.trim() !== "");
