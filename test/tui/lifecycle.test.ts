/** Starting and quitting the terminal UI: the real program on a real pseudo-terminal, which it must always restore. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import type { ConversationId } from "../../src/core/model/types.ts";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import { withoutPseudoTerminal } from "../support/platform.ts";
import { portOver, startRobot } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import { startTerminal } from "../support/terminal.ts";
import type { Terminal, TerminalOptions } from "../support/terminal.ts";
import type { Destination } from "../../src/tui/contract.ts";
import type { Port } from "../../src/operator/port.ts";
import { bare, bin } from "../scenarios/program.ts";

const state = makeScratch("lifecycle");
const database = join(state, "lcm.db");
await makeDeepConversation(database);
const tuiBin = join(dirname(bin), "lcm-tui.js");
const environment = {
  TZ: bare.TZ,
  NODE_COMPILE_CACHE: bare.NODE_COMPILE_CACHE,
  HOME: state,
  OPENCLAW_STATE_DIR: state,
};

const terminals: Terminal[] = [];
after(() => terminals.forEach((terminal) => terminal.close()));

function start(words: string, options: TerminalOptions = {}): Terminal {
  const [program, ...rest] = words.split(" ");
  const command = [process.execPath, program === "lcm-tui" ? tuiBin : bin, ...rest].join(" ");
  const terminal = startTerminal(command, { cwd: state, ...options, env: { ...environment, ...options.env } });
  terminals.push(terminal);
  return terminal;
}

const first = "The ferry's new booking desk";

async function leavesAsFound(terminal: Terminal, status: number): Promise<void> {
  const ended = await terminal.ended();
  assert.equal(ended.status, status, terminal.screen());
  assert.deepEqual(terminal.modes(), {
    screen: "normal",
    mouse: "none",
    isPasteBracketed: false,
    isWrapping: true,
    isCursorShown: true,
    isFocusTold: false,
  });
  assert.notEqual(ended.before, "");
  assert.equal(ended.after, ended.before, "the tty settings are restored");
}

describe("the terminal UI on a terminal", { skip: withoutPseudoTerminal }, () => {
  it("opens with `lcm`, and quits with q", async () => {
    const terminal = start("lcm");
    await terminal.sees(first);
    const { screen, mouse, isPasteBracketed, isCursorShown } = terminal.modes();
    assert.deepEqual([screen, mouse, isPasteBracketed, isCursorShown], ["alternate", "any", true, false]);
    terminal.press("q");
    await leavesAsFound(terminal, 0);
    assert.equal(terminal.screen(), "", "nothing is left behind");
  });

  it("opens another database with --db, redraws on resize, and quits with Ctrl-C", async () => {
    const terminal = start(`lcm --db ${database}`);
    await terminal.sees(first);
    terminal.resize(60, 12);
    await terminal.sees(/^─{60}$/m);
    terminal.resize(130, 40);
    await terminal.sees(/^─{130}$/m);
    terminal.press("ctrl+c");
    await leavesAsFound(terminal, 0);
  });

  it("shows that it is read-only, and quits with Escape", async () => {
    const terminal = start("lcm tui --read-only");
    await terminal.sees("read-only");
    await terminal.sees(first);
    terminal.press("escape");
    await terminal.sees("press esc again to quit");
    terminal.press("escape");
    await leavesAsFound(terminal, 0);
  });

  it("opens with `lcm-tui`, and SIGTERM quits cleanly", async () => {
    const terminal = start(`lcm-tui --db ${database}`);
    await terminal.sees(first);
    terminal.signal("SIGTERM");
    await leavesAsFound(terminal, 143);
  });

  it("quits cleanly on SIGHUP, and when its window is closed", async () => {
    const [hung, closed] = [start("lcm"), start("lcm")];
    await Promise.all([hung.sees(first), closed.sees(first)]);
    hung.signal("SIGHUP");
    await leavesAsFound(hung, 129);
    closed.close();
    while (closed.isRunning()) await new Promise((resolve) => setTimeout(resolve, 20));
  });

  it("restores the terminal and reports an unexpected error", async () => {
    const broken = join(state, "broken.mjs");
    writeFileSync(
      broken,
      `process.on("SIGUSR2", () => { throw new Error("it threw"); });
       process.on("SIGCONT", () => void Promise.reject(new Error("it was rejected")));`,
    );
    for (const [signal, words] of [
      ["SIGUSR2", "it threw"],
      ["SIGCONT", "it was rejected"],
    ] as const) {
      const terminal = start("lcm", { env: { NODE_OPTIONS: `--import ${broken}` } });
      await terminal.sees(first);
      terminal.signal(signal);
      await leavesAsFound(terminal, 70);
      assert.match(terminal.screen(), new RegExp(`^error: unexpected error: ${words}\\nhint: .*LCM_DEBUG=1`));
    }
  });

  it("suspends with Ctrl-Z, and resumes with fg", async () => {
    const terminal = startTerminal("bash --norc --noprofile -i", {
      cwd: state,
      env: { ...environment, PS1: "shell> ", NODE_OPTIONS: "" },
    });
    terminals.push(terminal);
    await terminal.sees("shell>");
    terminal.press(`${process.execPath} ${bin}`, "enter");
    await terminal.sees(first);
    terminal.press("\u001a");
    await terminal.sees("Stopped");
    assert.equal(terminal.modes().screen, "normal");
    assert.equal(terminal.modes().mouse, "none");
    terminal.press("fg", "enter");
    await terminal.sees(first);
    assert.equal(terminal.modes().mouse, "any");
    terminal.press("q");
    await terminal.sees(/ fg\n[^>]*\nshell>/); // The shell repeats the command, in as many lines as its path takes.
    terminal.press("exit", "enter");
    await leavesAsFound(terminal, 0);
  });

  it("does not open if the output is not a terminal", async () => {
    const piped = startTerminal(`sh -c '${process.execPath} ${bin} | cat; ${process.execPath} ${bin} tui | cat'`, {
      rows: 80,
      env: environment,
    });
    assert.equal((await piped.ended()).status, 0);
    assert.match(piped.screen(), /^Lossless context management: /m);
    assert.match(piped.screen(), /error: the terminal UI needs a terminal\b/);
    assert.ok(!piped.written().includes("\u001b[?1049h"));
  });
});

describe("the terminal UI in any window", () => {
  const conversation = 1 as ConversationId;
  const places: readonly Destination[] = [
    { kind: "conversations" },
    { kind: "messages", conversation },
    { kind: "summaries", conversation },
    { kind: "context", conversation },
    { kind: "files", conversation },
    { kind: "search", conversation },
    { kind: "status", conversation },
    { kind: "history", conversation },
    { kind: "transcripts" },
  ];
  const sizes = [
    [20, 5],
    [300, 100],
    [1, 1],
    [33, 7],
    [80, 24],
  ] as const;

  it("draws every screen at every size", async () => {
    await Promise.all(places.map(survivesResizes));
  });

  async function survivesResizes(place: Destination): Promise<void> {
    const port = portOver(database, { readOnly: true, sessions: state });
    const robot = startRobot(port, { place });
    await robot.sees("lossless-claw");
    for (const [columns, rows] of sizes) {
      await robot.resize(columns, rows);
      await robot.press("down", "J");
      assert.equal(robot.isOver(), false);
    }
    await robot.sees("lossless-claw");
    await robot.end();
    await port.close();
  }

  it("quits and restores the terminal when its database fails", async () => {
    const port = portOver(database);
    let looks = 0;
    const broken: Port = {
      ...port,
      stamp() {
        if (looks++ > 0) throw new Error("the file system is gone");
        return "1";
      },
    };
    const robot = startRobot(broken);
    await assert.rejects(robot.over(), /the file system is gone/);
    assert.ok(robot.written().endsWith("\u001b[?1049l\u001b[?25h\u001b[?2026l"), "the alternate screen is left");
    await port.close();
  });
});
