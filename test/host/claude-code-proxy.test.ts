/** The real Claude Code through the proxy: turns in print mode; going back, which only its terminal can, on a real one. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { claudeCode } from "../../src/hosts/claude-code/host.ts";
import { claudeCodeRows } from "../../src/hosts/shared/rows/claude-code.ts";
import { pictureBytes } from "../support/picture.ts";
import { makeScratch } from "../support/scratch.ts";
import { startTerminal, type Terminal } from "../support/terminal.ts";
import { rowsOf, sessionOf } from "./coding-agents.ts";
import { hostPath, namedHostBin } from "./install.ts";
import { describeProxied, type DrivenAgent } from "./proxy-scenarios.ts";

type Json = ReturnType<typeof JSON.parse>;

const program = namedHostBin("claude-code", "claude");
const answerMs = 60_000;
const session = "11111111-2222-4333-8444-555555555555";
const options = ["--model=claude-sonnet-4-5", "--permission-mode=bypassPermissions"];

async function start(base: string): Promise<DrivenAgent> {
  const home = makeScratch("claude-code");
  const folder = join(home, "project");
  const picture = join(folder, "picture.png");
  mkdirSync(folder);
  writeFileSync(picture, pictureBytes(32));
  // Its terminal would ask about each of these.
  const known = {
    hasCompletedOnboarding: true,
    theme: "dark",
    bypassPermissionsModeAccepted: true,
    customApiKeyResponses: { approved: ["sk-dummy"], rejected: [] },
    projects: { [folder]: { hasTrustDialogAccepted: true } },
  };
  writeFileSync(join(home, ".claude.json"), JSON.stringify(known));
  const env = {
    HOME: home,
    PATH: hostPath,
    LANG: "C.UTF-8",
    ANTHROPIC_BASE_URL: base,
    ANTHROPIC_API_KEY: "sk-dummy",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    // It compacts at 76,000 tokens: of its window it keeps 20,000 free.
    CLAUDE_CODE_AUTO_COMPACT_WINDOW: "100000",
    CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: "95",
    // It refuses to run without asking as root, except in a sandbox; this is one.
    IS_SANDBOX: "1",
  };
  const transcripts = (): readonly string[] =>
    globSync([".claude/projects/*/*.jsonl", ".claude/projects/*/*/subagents/*.jsonl"], { cwd: home }).map((path) =>
      join(home, path),
    );
  const main = (): string => transcripts().find((path) => path.endsWith(`${session}.jsonl`)) ?? "";
  const say = async (text: string, ...more: readonly string[]): Promise<void> => {
    const named = transcripts().length === 0 ? ["--session-id", session] : ["--resume", session];
    const words = ["-p", text, ...options, ...named, ...more];
    const child = spawn(program, words, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
    const said = await Promise.all([textOf(child.stdout), textOf(child.stderr), once(child, "close")]);
    assert.equal(child.exitCode, 0, `${text.slice(0, 60)}: ${said.slice(0, 2).join("\n").slice(-3_000)}`);
  };
  return {
    prompt: say,
    show: async (text) => await say(`${text} CALL Read {"file_path":"${picture}"}`),
    rewind: async (text) => {
      const terminal = startTerminal(`${program} ${options.join(" ")} --resume ${session}`, { env, cwd: folder });
      try {
        await goBack(terminal, text, () => rowsOf(main()));
      } finally {
        terminal.close();
      }
    },
    // Every turn is a process of its own.
    resume: async () => undefined,
    fork: async (text) => await say(text, "--fork-session"),
    compact: async () => await say("/compact"),
    records: () =>
      transcripts().map((path) => ({ sessionId: sessionOf(path), rows: rowsOf(path), transcripts: [path] })),
    compactions: () => rowsOf(main()).filter(({ subtype }) => subtype === "compact_boundary").length,
    close: async () => undefined,
  };
}

/** A prompt of the test's in the line for input. */
const promptThere = /❯\sturn[^❯]*$/;

/** Esc, Esc: takes the last prompt back, and says this instead. */
async function goBack(terminal: Terminal, text: string, record: () => readonly Json[]): Promise<void> {
  await terminal.sees("❯");
  terminal.press("escape");
  await terminal.drawn(500);
  terminal.press("escape");
  await terminal.sees("Restore the code and/or conversation");
  terminal.press("up");
  await terminal.sees(/❯ turn/);
  terminal.press("enter");
  await terminal.sees("❯ 1. Restore conversation");
  terminal.press("enter");
  // The prompt that was taken back is there to be edited.
  await terminal.sees(promptThere);
  for (let tries = 0; promptThere.test(terminal.screen()) && tries < 20; tries++) {
    terminal.press("\u0015");
    await terminal.drawn(1_000);
  }
  terminal.press(text);
  await terminal.sees(text);
  terminal.press("enter");
  const isAnswered = (): boolean => {
    const rows = record();
    const asked = rows.findIndex(({ message }) => message?.content === text);
    return asked >= 0 && rows.slice(asked).some(({ message }) => message?.stop_reason === "end_turn");
  };
  for (const end = performance.now() + answerMs; !isAnswered(); await terminal.drawn(200))
    assert.ok(performance.now() < end, `no answer:\n${terminal.screen()}`);
}

const task = (prompt: string): string =>
  `CALL Agent {"description":"a small task","prompt":"${prompt}","subagent_type":"general-purpose"}`;

describeProxied({
  name: "Claude Code",
  wire: "anthropic",
  rows: claudeCodeRows,
  companion: claudeCode,
  shell: (command) => `CALL Bash {"command":"${command}","description":"numbers"}`,
  subagent: task,
  start,
});
