/**
 * The client's end of `lcm serve`: starts the side process when first needed, agrees on the protocol with it, and starts it
 * again if it dies. A host that has no `node:sqlite` keeps its store there. Like json-rpc.ts, this runs inside the host.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { errorText, LcmError } from "../../core/base/errors.ts";
import { isObject, jsonText, type Json, type JsonObject } from "../../core/base/json.ts";
import { Peer, type Methods, type RequestOptions } from "./json-rpc.ts";

/** Changes with what is said on the wire; both ends must have the same. */
export const protocol = 1;

export interface SideProcessOptions {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What the process may ask of the host. */
  readonly methods?: Methods;
  /** Sent with the greeting. */
  readonly greeting: JsonObject;
  /** How long it may take to start. */
  readonly startMs?: number;
  /** Called for what an operator should know; each line once. */
  readonly note: (line: string) => void;
}

export interface SideProcess {
  call(method: string, params: JsonObject, options: RequestOptions & { readonly timeoutMs: number }): Promise<Json>;
  /** The id of the running process, if one runs. */
  readonly pid: number | undefined;
  /** Ends the process and waits for its end. A later call fails. */
  close(): Promise<void>;
}

const startMsDefault = 15_000;
/** While an answer is overdue, the next calls wait only this long. */
const impatientMs = 100;
/** A process that dies is started again once in this time. */
const restartMs = 60_000;
/** How long a process that was asked to end may take. */
const endMs = 3_000;
const stderrMax = 2_000;

interface Running {
  readonly child: ChildProcess;
  readonly peer: Peer;
  /** Resolves after the handshake. */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
}

export function createSideProcess(options: SideProcessOptions): SideProcess {
  const { startMs = startMsDefault } = options;
  const said = new Set<string>();
  const note = (line: string): void => {
    if (!said.has(line)) options.note(line);
    said.add(line);
  };
  let running: Running | null = null;
  let starts: number[] = [];
  let isClosed = false;

  const start = (): Running => {
    const now = Date.now();
    starts = starts.filter((at) => now - at < restartMs);
    if (isClosed) throw new LcmError("unavailable", "the connection to `lcm serve` is closed");
    if (starts.length > 1) throw new LcmError("unavailable", "`lcm serve` has ended twice; it is tried again later");
    starts.push(now);
    const started = startProcess(options, startMs);
    running = started;
    started.ready.catch((error: unknown) => {
      note(`lossless-claw is not in use: ${errorText(error)}`);
      started.peer.end();
      started.child.kill();
    });
    void started.exited.then(() => {
      if (running === started) running = null;
    });
    return started;
  };

  return {
    async call(method, params, { timeoutMs, ...rest }) {
      const { peer, ready } = running ?? start();
      const begun = Date.now();
      const patienceMs = peer.late > 0 ? Math.min(impatientMs, timeoutMs) : timeoutMs;
      await within(patienceMs, ready, `\`lcm serve\` has not started within ${patienceMs} ms`);
      const leftMs = Math.max(1, patienceMs - (Date.now() - begun));
      return await peer.request(method, params, { ...rest, timeoutMs: leftMs, limitMs: patienceMs });
    },
    get pid() {
      return running?.child.pid;
    },
    async close() {
      isClosed = true;
      const last = running;
      if (last === null) return;
      last.peer.end();
      const kill = setTimeout(() => last.child.kill("SIGKILL"), endMs);
      await last.exited;
      clearTimeout(kill);
    },
  };
}

function startProcess({ command, env, methods = {}, greeting }: SideProcessOptions, startMs: number): Running {
  const [program = "", ...args] = command;
  const child = spawn(program, args, { env: { ...env }, stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
  let words = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (words = (words + text).slice(-stderrMax)));
  let failure: string | null = null;
  const exited = new Promise<void>((resolve) => {
    child.on("error", (error) => {
      failure = `${program} does not start: ${error.message}`;
      resolve();
    });
    child.on("close", (status, signal) => {
      failure ??= words.trim() || `\`lcm serve\` ended with ${signal ?? `status ${status}`}`;
      resolve();
    });
  });
  const peer = new Peer({ input: child.stdout, output: child.stdin, methods });
  void exited.then(peer.end);
  const greet = async (): Promise<void> => {
    const answer = await peer
      .request("hello", { ...greeting, protocol }, { timeoutMs: startMs })
      .catch(async (error: unknown) => {
        // The process says more about its end than the connection does.
        if (!(await hasEnded(exited))) throw error;
        throw new LcmError("unavailable", failure ?? errorText(error), { cause: error });
      });
    const theirs = isObject(answer) ? answer["protocol"] : undefined;
    if (theirs !== protocol)
      throw new LcmError(
        "unavailable",
        `\`lcm serve\` speaks protocol ${jsonText(theirs ?? null)}, and this plugin ${protocol}`,
      );
  };
  // A host that ends must not wait for us; the process ends with its input.
  child.unref();
  const ready = greet();
  ready.catch(() => undefined); // Whoever waits for it sees the error.
  return { child, peer, ready, exited };
}

/** Whether the process ends in a moment: its streams close a little before. */
const hasEnded = async (exited: Promise<void>): Promise<boolean> =>
  await Promise.race([
    exited.then(() => true),
    new Promise<boolean>((resolve) => setTimeout(resolve, 500, false).unref()),
  ]);

async function within(ms: number, work: Promise<void>, why: string): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LcmError("unavailable", why)), ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
