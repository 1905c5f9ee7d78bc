/**
 * Drives the terminal UI like a person: types keys into a real terminal emulator, waits until it settles, reads the
 * screen. The UI, the store and the files are real.
 */

import assert from "node:assert/strict";
import { after } from "node:test";
import { dirname, join } from "node:path";
import xterm from "@xterm/headless";
import { patienceMs } from "./eventually.ts";
import type { Terminal } from "@earendil-works/pi-tui";
import { databaseAt } from "../../src/cli/open.ts";
import { createPort } from "../../src/cli/port.ts";
import { placeOf } from "../../src/models/openclaw-files.ts";
import type { Model } from "../../src/core/model/store.ts";
import { builtInTemplates } from "../../src/core/prompts/summary.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import type { Port } from "../../src/operator/port.ts";
import { runTui } from "../../src/tui/run.ts";
import type { Running } from "../../src/tui/run.ts";
import { createPaint } from "../../src/format/paint.ts";

/** A UI left open by a failed test would keep its process alive. */
const living = new Set<() => Promise<void>>();
if (process.env["NODE_TEST_CONTEXT"] !== undefined) {
  after(async () => {
    for (const end of living) await end().catch(() => undefined);
  });
}

export interface Robot {
  /** Types keys one after the other, by name (`j`, `enter`, `escape`, `pageDown`, `ctrl+c`) or as raw sequences. */
  press(...keys: readonly string[]): Promise<void>;
  /** Types a text, character by character. */
  type(text: string): Promise<void>;
  click(column: number, row: number): Promise<void>;
  wheel(lines: number, column?: number, row?: number): Promise<void>;
  resize(columns: number, rows: number): Promise<void>;
  /** The screen's text, without trailing blanks. */
  screen(): string;
  lines(): readonly string[];
  /** Waits until the screen contains this; on failure shows the screen. */
  sees(words: string | RegExp): Promise<void>;
  /** Waits until the screen no longer contains it. */
  misses(words: string | RegExp): Promise<void>;
  /** Waits until the screen has not changed for a while. */
  settled(): Promise<void>;
  /** Everything written to the terminal. */
  written(): string;
  /** Whether the UI has exited. */
  isOver(): boolean;
  /** Resolves when the UI has exited; rejects with the error that ended it. */
  over(): Promise<void>;
  /** Ends it, as a signal would. */
  end(): Promise<void>;
}

export interface RobotOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly colour?: boolean;
  readonly zone?: string;
  readonly place?: Running["place"];
  readonly now?: string;
}

export const sequences: Readonly<Record<string, string>> = {
  enter: "\r",
  escape: "\u001b",
  up: "\u001b[A",
  down: "\u001b[B",
  right: "\u001b[C",
  left: "\u001b[D",
  home: "\u001b[H",
  end: "\u001b[F",
  pageUp: "\u001b[5~",
  pageDown: "\u001b[6~",
  tab: "\t",
  space: " ",
  backspace: "\u007f",
  "ctrl+c": "\u0003",
  "ctrl+p": "\u0010",
  "ctrl+l": "\u000c",
  "ctrl+u": "\u0015",
};

export function startRobot(port: Port, options: RobotOptions = {}): Robot {
  const { columns = 100, rows = 30, colour = false, zone = "UTC" } = options;
  const emulator = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, scrollback: 0 });
  const ending = new AbortController();
  let written = "";
  let [onInput, onResize]: [(data: string) => void, () => void] = [() => undefined, () => undefined];
  const terminal: Terminal = {
    start(input, resized) {
      [onInput, onResize] = [input, resized];
    },
    stop: () => undefined,
    drainInput: async () => undefined,
    write(data) {
      written += data;
      emulator.write(data);
    },
    get columns() {
      return emulator.cols;
    },
    get rows() {
      return emulator.rows;
    },
    get kittyProtocolActive() {
      return false;
    },
    moveBy: () => undefined,
    hideCursor: () => undefined,
    showCursor: () => undefined,
    clearLine: () => undefined,
    clearFromCursor: () => undefined,
    clearScreen: () => undefined,
    setTitle: () => undefined,
    setProgress: () => undefined,
  };
  const { now } = options;
  const clock: Running["clock"] = {
    now: () => (now ?? new Date().toISOString()) as ReturnType<Running["clock"]["now"]>,
  };
  const look = { paint: createPaint(colour), zone, typed: (words: string) => words };
  let isOver = false;
  const place = options.place === undefined ? {} : { place: options.place };
  const running = runTui({ port, terminal, clock, look, signal: ending.signal, ...place }).finally(
    () => (isOver = true),
  );
  running.catch(() => undefined);
  living.add(async () => {
    ending.abort();
    await running;
  });

  const lines = (): readonly string[] =>
    Array.from({ length: emulator.rows }, (_, at) => emulator.buffer.active.getLine(at)?.translateToString(true) ?? "");
  const screen = (): string => lines().join("\n");
  const drawn = async (): Promise<void> => {
    await new Promise<void>((resolve) => setTimeout(resolve, 20));
    // On a busy machine that time may have passed before what was asked for could be read.
    for (let turn = 0; turn < 25; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
    await new Promise<void>((resolve) => emulator.write("", resolve));
  };
  const has = (words: string | RegExp): boolean =>
    typeof words === "string" ? screen().includes(words) : words.test(screen());
  const until = async (isSo: () => boolean, words: string | RegExp, what: string): Promise<void> => {
    const end = performance.now() + patienceMs;
    while (!isSo()) {
      if (isOver) await running;
      assert.ok(performance.now() < end && !isOver, `${what} ${String(words)}:\n${screen()}`);
      await drawn();
    }
  };
  const send = async (data: string): Promise<void> => {
    onInput(data);
    await drawn();
  };
  return {
    async press(...keys) {
      for (const key of keys) await send(sequences[key] ?? key);
    },
    async type(text) {
      for (const character of text) onInput(character);
      await drawn();
    },
    async click(column, row) {
      const at = `${column + 1};${row + 1}`;
      onInput(`\u001b[<0;${at}M`);
      await send(`\u001b[<0;${at}m`);
    },
    async wheel(count, column = 5, row = 5) {
      for (let left = Math.abs(count); left > 0; left--)
        onInput(`\u001b[<${count < 0 ? 64 : 65};${column + 1};${row + 1}M`);
      await drawn();
    },
    async resize(width, height) {
      emulator.resize(width, height);
      onResize();
      await drawn();
    },
    screen,
    lines,
    sees: async (words) => await until(() => has(words), words, "the screen never showed"),
    misses: async (words) => await until(() => !has(words), words, "the screen still shows"),
    async settled() {
      for (let [same, before] = [0, ""]; same < 6; before = screen()) {
        await drawn();
        same = screen() === before ? same + 1 : 0;
      }
    },
    written: () => written,
    isOver: () => isOver,
    over: async () => await running,
    async end() {
      ending.abort();
      await running;
    },
  };
}

export interface Ground {
  readonly readOnly?: boolean;
  /** The model that writes summaries; none if absent. */
  readonly model?: Model | null;
  /** A folder of transcripts; one beside the database if absent. */
  readonly sessions?: string;
  readonly env?: Readonly<Record<string, string>>;
}

const own = "built-in";
const builtInSources = { leaf: own, "condensed-d1": own, "condensed-d2": own, "condensed-d3": own };

/** What `lcm tui` uses with this file or server, except the model. The caller closes it. */
export function portOver(path: string, { readOnly = false, model = null, env = {}, ...ground }: Ground = {}) {
  // Not the transcripts of the person who runs the tests.
  const sessions = ground.sessions ?? join(dirname(path), "sessions");
  const settings = resolveSettings({ env, config: {} });
  const database = databaseAt(placeOf(path, {}), async () => settings);
  const port = createPort({
    database,
    whyReadOnly: readOnly ? "it was opened with --read-only" : null,
    sessions,
    promptDir: undefined,
    model: {},
    context: {
      zone: "UTC",
      settings: async () => settings,
      proxyReports: async () => [],
      prompts: async () => ({ dir: "", templates: builtInTemplates, sources: builtInSources, problems: new Map() }),
      summariser: async () =>
        model === null
          ? null
          : {
              name: `${model.provider}/${model.name}`,
              from: "the test",
              keyVariables: [],
              check: async () => null,
              create: async () => model,
            },
    },
  });
  living.add(async () => {
    await port.close();
    await database.close();
  });
  return port;
}
