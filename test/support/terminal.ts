/**
 * A program on a real pseudo-terminal, as a person starts it: what it writes goes to a terminal emulator, which answers its
 * questions and shows the screen; what is typed goes to its tty. `script` of util-linux makes the pseudo-terminal.
 */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import xterm from "@xterm/headless";
import { sequences } from "./robot.ts";
import { makeScratch } from "./scratch.ts";

export interface Terminal {
  /** Types keys by the names that robots use, or as they are. */
  press(...keys: readonly string[]): void;
  /** What is on the screen, without trailing blanks. */
  screen(): string;
  /** Waits until the screen has this, and no longer; fails with what is on it instead. */
  sees(words: string | RegExp): Promise<void>;
  /** Waits until something more is drawn, or for so long. */
  drawn(timeoutMs: number): Promise<void>;
  resize(columns: number, rows: number): void;
  /** All bytes that were written, as text. */
  written(): string;
  /** How the terminal has been left by what was written to it. */
  modes(): Modes;
  /** To the program itself. */
  signal(name: NodeJS.Signals): void;
  /** Takes the terminal away, as closing its window does. */
  close(): void;
  /** The program's status, once it has ended by itself, and how the tty was set before and after it. */
  ended(): Promise<{ readonly status: number; readonly before: string; readonly after: string }>;
  /** Whether a process of this program is there. */
  isRunning(): boolean;
  /** What it has taken of a processor up to now. */
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
  /** All of the environment that the program gets, but for PATH and TERM. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly columns?: number;
  readonly rows?: number;
}

/** How long something may take to be seen; only a test that fails waits so long. */
const patienceMs = 30_000;

const started: ChildProcess[] = [];
// Also where a test has failed.
process.on("exit", () => {
  for (const script of started) script.kill("SIGKILL");
});

/** Runs a line of shell in it. Where there is no `script`, this fails; `withoutPseudoTerminal` says so beforehand. */
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
  script.stdin.on("error", () => undefined); // Typed into a terminal that is gone: nobody reads it.
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
  script.on("error", (cause) => ended.reject(new Error("`script` of util-linux makes the terminal", { cause })));
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
      if (isOver) await ended.promise; // Which tells why it did not even begin.
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

/** Of Linux: the fields from the process's state on; empty for a process that is gone. */
const procStat = (pid: number): string =>
  existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "") : "";

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
