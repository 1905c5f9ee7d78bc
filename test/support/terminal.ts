/**
 * Runs a program on a real pseudo-terminal, as a person starts it. Its output goes to a terminal emulator, which
 * answers its queries and holds the screen; typed keys go to its tty. `script` of util-linux creates the
 * pseudo-terminal.
 */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import xterm from "@xterm/headless";
import { patienceMs } from "./eventually.ts";
import { sequences } from "./robot.ts";
import { makeScratch } from "./scratch.ts";

export interface Terminal {
  /** Types keys by the names that robots use, or raw. */
  press(...keys: readonly string[]): void;
  /** The screen's text, without trailing blanks. */
  screen(): string;
  /** Waits only until the screen contains this; on failure shows the screen. */
  sees(words: string | RegExp): Promise<void>;
  /** Waits until something more is drawn, or for this long. */
  drawn(timeoutMs: number): Promise<void>;
  resize(columns: number, rows: number): void;
  /** All bytes written, as text. */
  written(): string;
  /** The modes in which the output has left the terminal. */
  modes(): Modes;
  /** Sends a signal to the program itself. */
  signal(name: NodeJS.Signals): void;
  /** Takes the terminal away, as closing its window does. */
  close(): void;
  /** The program's status, once it has ended by itself, and the tty settings before and after it. */
  ended(): Promise<{ readonly status: number; readonly before: string; readonly after: string }>;
  /** Whether a process of this program exists. */
  isRunning(): boolean;
  /** Processor time used so far. */
  cpuMs(): number;
}

interface Modes {
  readonly screen: "normal" | "alternate";
  readonly mouse: string;
  readonly isPasteBracketed: boolean;
  readonly isWrapping: boolean;
  readonly isCursorShown: boolean;
  readonly isFocusTold: boolean;
}

export interface TerminalOptions {
  /** The whole environment of the program, except PATH and TERM. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly columns?: number;
  readonly rows?: number;
}

const started: ChildProcess[] = [];
// Also after a failed test.
process.on("exit", () => {
  for (const script of started) script.kill("SIGKILL");
});

/** Runs a shell line in it. Fails without `script`; check `withoutPseudoTerminal` first. */
export function startTerminal(command: string, options: TerminalOptions = {}): Terminal {
  const { env = {}, cwd, columns = 100, rows = 30 } = options;
  const notes = makeScratch("terminal");
  const note = (name: string): string => (existsSync(join(notes, name)) ? readFileSync(join(notes, name), "utf8") : "");
  const line = [
    `stty cols ${columns} rows ${rows}; tty > ${notes}/tty; stty -g > ${notes}/before`,
    `sh -c 'echo $$ > ${notes}/pid; exec '${quoted(command)}`,
    `status=$?; stty -g > ${notes}/after; exit $status`,
  ].join("\n");
  const script = spawn("script", ["-qefc", line, "/dev/null"], {
    env: { PATH: process.env["PATH"], TERM: "xterm-256color", ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  const emulator = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, scrollback: 0 });
  let written = "";
  let drawn = Promise.withResolvers<void>();
  script.stdin.on("error", () => undefined); // Typed into a terminal that is gone: nothing reads it.
  emulator.onData((answer) => script.stdin.write(answer));
  script.stdout.setEncoding("utf8").on("data", (data: string) => {
    written += data;
    emulator.write(data, () => {
      drawn.resolve();
      drawn = Promise.withResolvers();
    });
  });
  started.push(script);
  const ended = Promise.withResolvers<number>();
  let isOver = false;
  script.on("error", (cause) => ended.reject(new Error("cannot start `script` of util-linux", { cause })));
  script.on("close", (status) => ended.resolve(status ?? -1));
  void ended.promise.finally(() => (isOver = true)).catch(() => undefined);

  const screen = (): string =>
    Array.from({ length: emulator.rows }, (_, at) => emulator.buffer.active.getLine(at)?.translateToString(true) ?? "")
      .join("\n")
      .trimEnd();
  const has = (words: string | RegExp): boolean =>
    typeof words === "string" ? screen().includes(words) : words.test(screen());
  const more = async (timeoutMs: number): Promise<void> => {
    const timeout = Promise.withResolvers<void>();
    const timer = setTimeout(timeout.resolve, timeoutMs);
    await Promise.race([drawn.promise, ended.promise, timeout.promise]);
    clearTimeout(timer);
  };
  const until = async (isSo: () => boolean, otherwise: string): Promise<void> => {
    const end = performance.now() + patienceMs;
    while (!isSo()) {
      if (isOver) await ended.promise; // It explains why the program did not start.
      assert.ok(performance.now() < end && !isOver, `${otherwise}:\n${screen()}`);
      await more(Math.max(1, end - performance.now()));
    }
  };
  const pid = (): number => Number(note("pid"));
  return {
    press: (...keys) => void script.stdin.write(keys.map((key) => sequences[key] ?? key).join("")),
    screen,
    sees: async (words) => await until(() => has(words), `the terminal never showed ${String(words)}`),
    drawn: more,
    resize(width, height) {
      emulator.resize(width, height);
      const { status, stderr } = spawnSync(
        "stty",
        ["-F", note("tty").trim(), "cols", String(width), "rows", String(height)],
        { encoding: "utf8" },
      );
      assert.equal(status, 0, stderr);
    },
    written: () => written,
    modes: () => ({
      screen: emulator.buffer.active.type,
      mouse: emulator.modes.mouseTrackingMode,
      isPasteBracketed: emulator.modes.bracketedPasteMode,
      isWrapping: emulator.modes.wraparoundMode,
      isCursorShown: written.lastIndexOf("\u001b[?25h") >= written.lastIndexOf("\u001b[?25l"),
      isFocusTold: emulator.modes.sendFocusMode,
    }),
    signal: (name) => void process.kill(pid(), name),
    close: () => void script.kill("SIGKILL"),
    async ended() {
      await until(() => isOver, "the program never ended");
      const status = await ended.promise;
      await new Promise<void>((resolve) => emulator.write("", resolve));
      return { status, before: note("before"), after: note("after") };
    },
    isRunning: () => /^[^ZX]/.test(procStat(pid())),
    cpuMs() {
      const [, , , , , , , , , , , user, system] = procStat(pid()).split(" ");
      return (Number(user) + Number(system)) * msPerTick;
    },
  };
}

const msPerTick = 10;

/** On Linux: the fields of /proc/PID/stat from the state on; empty for a process that is gone. */
const procStat = (pid: number): string =>
  existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "") : "";

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
