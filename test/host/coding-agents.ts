/**
 * Runs the real Claude Code and Codex, headless, each in a home of its own, with our plugin installed as a user installs
 * it and the scripted model behind them.
 */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Timestamp } from "../../src/core/base/time.ts";
import { createLcm, type Lcm } from "../../src/core/lcm.ts";
import type { Conversation } from "../../src/core/model/types.ts";
import { takeLease } from "../../src/store/lease.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeScratch } from "../support/scratch.ts";
import { hostPath, namedHostBin, type NamedHost } from "./install.ts";
import type { Asked, Reply } from "./model-server.ts";
import { pluginFolder } from "./plugin.ts";

type Json = ReturnType<typeof JSON.parse>;

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
}

export interface CodingAgent {
  readonly name: "claude-code" | "codex";
  readonly home: string;
  /** The project. */
  readonly folder: string;
  readonly database: string;
  /** How the model calls a tool of ours. */
  tool(name: string): string;
  /** The tool that runs a command, and its arguments. */
  shell(command: string): { readonly name: string; readonly args: object };
  /** Starts a turn; the caller waits for its end or kills it. */
  start(prompt: string, session?: Session): ChildProcess;
  /** Makes the host compact its context, at the latest when the next turn begins. */
  compact(session: Session): Promise<Ran>;
  /** What makes the model start a sub-agent. */
  subagent(prompt: string): string;
  /** Runs a turn to its end. */
  turn(prompt: string, session?: Session): Promise<Ran>;
  run(...words: readonly string[]): Promise<Ran>;
  /** Starts its program, with an input to write to. */
  spawn(...words: readonly string[]): ChildProcess;
  /** All transcripts, the oldest first. */
  transcripts(): readonly string[];
}

/** Null begins one. */
export type Session = { readonly resume: string; readonly words?: readonly string[] } | null;

/** A home with the plugin in it, as the guide says. */
export async function createClaudeCode(modelUrl: string, env: NodeJS.ProcessEnv = {}): Promise<CodingAgent> {
  const agent = create("claude-code", "claude", {
    env: {
      ANTHROPIC_BASE_URL: modelUrl,
      ANTHROPIC_API_KEY: "dummy",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      // It refuses to run without asking as root, except in a sandbox; this is one.
      IS_SANDBOX: "1",
      ...env,
    },
    turnWords: (prompt, session) => [
      "-p",
      prompt,
      "--model=claude-sonnet-4-5",
      "--permission-mode=bypassPermissions",
      ...(session === null ? [] : ["--resume", session.resume, ...(session.words ?? [])]),
    ],
    transcripts: [".claude/projects/*/*.jsonl", ".claude/projects/*/*/subagents/*.jsonl"],
    tool: (name) => `mcp__plugin_lossless-claw_lcm__${name}`,
    compaction: "/compact",
    subagent: (prompt) => callLine("Agent", { description: "a small task", prompt, subagent_type: "general-purpose" }),
    shell: (command) => ({ name: "Bash", args: { command, description: "a command" } }),
  });
  await succeed(agent.run("plugin", "marketplace", "add", pluginFolder()));
  await succeed(agent.run("plugin", "install", "lossless-claw@lossless"));
  return agent;
}

export async function createCodex(modelUrl: string, env: NodeJS.ProcessEnv = {}): Promise<CodingAgent> {
  const agent = create("codex", "codex", {
    // It asks its makers about plugins, and without a network it would wait for their address.
    env: { SCRIPTED_KEY: "dummy", HTTPS_PROXY: "http://127.0.0.1:9", NO_PROXY: "127.0.0.1", ...env },
    turnWords: (prompt, session) => [
      "exec",
      "--json",
      "--skip-git-repo-check",
      "--dangerously-bypass-hook-trust",
      ...(session === null ? [] : ["resume", session.resume, ...(session.words ?? [])]),
      prompt,
    ],
    transcripts: [".codex/sessions/*/*/*/*.jsonl"],
    tool: (name) => `mcp__lcm::${name}`,
    // It compacts when a request was larger than the limit in its config.
    compaction: fillLine(45_000),
    subagent: (prompt) => callLine("multi_agent_v1::spawn_agent", { message: prompt }),
    shell: (command) => ({ name: "exec_command", args: { cmd: command } }),
  });
  mkdirSync(join(agent.home, ".codex"));
  writeFileSync(join(agent.home, ".codex", "config.toml"), codexConfig(modelUrl));
  await succeed(agent.run("plugin", "marketplace", "add", pluginFolder()));
  await succeed(agent.run("plugin", "add", "lossless-claw@lossless"));
  return agent;
}

const codexConfig = (modelUrl: string): string => `model = "scripted"
model_provider = "scripted"
model_context_window = 60000
model_auto_compact_token_limit = 40000
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.scripted]
name = "Scripted"
base_url = "${modelUrl}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
`;

interface Ways extends Pick<CodingAgent, "tool" | "shell" | "subagent"> {
  /** The prompt of a turn after which the host compacts. */
  readonly compaction: string;
  readonly env: NodeJS.ProcessEnv;
  turnWords(prompt: string, session: Session): readonly string[];
  /** Patterns below the home. */
  readonly transcripts: readonly string[];
}

function create(name: NamedHost & CodingAgent["name"], program: string, ways: Ways): CodingAgent {
  const home = makeScratch(name);
  const folder = join(home, "project");
  mkdirSync(folder);
  const env = { HOME: home, PATH: hostPath, TMPDIR: process.env["TMPDIR"], LANG: "C.UTF-8", ...ways.env };
  const spawnIt = (words: readonly string[], input: "ignore" | "pipe" = "ignore"): ChildProcess =>
    spawn(namedHostBin(name, program), words, { cwd: folder, env, stdio: [input, "pipe", "pipe"] });
  const start: CodingAgent["start"] = (prompt, session = null) => spawnIt(ways.turnWords(prompt, session));
  return {
    name,
    home,
    folder,
    database: ways.env["LCM_DATABASE_PATH"] ?? join(home, ".openclaw", "lcm.db"),
    tool: ways.tool,
    shell: ways.shell,
    subagent: ways.subagent,
    start,
    turn: async (prompt, session) => await endOf(start(prompt, session)),
    compact: async (session) => await endOf(start(ways.compaction, session)),
    run: async (...words) => await endOf(spawnIt(words)),
    spawn: (...words) => spawnIt(words, "pipe"),
    transcripts: () =>
      globSync([...ways.transcripts], { cwd: home })
        .map((path) => join(home, path))
        .toSorted(),
  };
}

async function endOf(child: ChildProcess): Promise<Ran> {
  const started = performance.now();
  const [out, err]: [string[], string[]] = [[], []];
  child.stdout?.on("data", (piece: Buffer) => out.push(piece.toString()));
  child.stderr?.on("data", (piece: Buffer) => err.push(piece.toString()));
  const [status] = await once(child, "close");
  return { status, stdout: out.join(""), stderr: err.join(""), ms: performance.now() - started };
}

/** For a turn that must not fail. */
export async function succeed(running: Promise<Ran>): Promise<Ran> {
  const ran = await running;
  assert.equal(ran.status, 0, `${ran.stdout}\n${ran.stderr}`);
  return ran;
}

// ── The model ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A prompt for the scripted model to call a tool: `CALL name {…}` on a line of its own. */
export const callLine = (name: string, args: object): string => `CALL ${name} ${JSON.stringify(args)}`;

/** A prompt for the scripted model to claim that the request had so many tokens. */
const fillLine = (tokens: number): string => `FILL ${tokens}`;

export const hostSummary = "The agent's own summary of the work so far.";

/** Calls the tool that the newest prompt names, once; writes summaries; otherwise repeats what it was told last. */
export function obey({ body, tools }: Asked): Reply {
  const said: readonly Json[] = (body.messages ?? body.input).flatMap(piecesOf);
  if (said.slice(-3).some(({ text }) => /create a detailed summary|CONTEXT CHECKPOINT COMPACTION/i.test(text)))
    return { kind: "answer", text: `<summary>${hostSummary}</summary>` };
  const last = said.findLast(({ text }) => !isReminder(text));
  if (last === undefined || tools.length === 0) return "ok";
  if (last.isResult) return `The tool said: ${last.text.slice(0, 2_000)}`;
  const filled = /^FILL (\d+)$/.exec(last.text);
  if (filled !== null) return { kind: "answer", text: "full", usage: { input: Number(filled[1]) } };
  const called = /^CALL (\S+) (\{.*\})$/m.exec(last.text);
  if (called === null) return `You said: ${last.text.trim().split("\n").at(-1) ?? ""}`;
  const [, name = "", args = "{}"] = called;
  return { kind: "answer", text: `calling ${name}`, calls: [{ name, args: JSON.parse(args) }] };
}

/** What users and tools said, block by block, in either host's format. */
function piecesOf({ type, role, content, output }: Json): readonly { text: string; isResult: boolean }[] {
  if (output !== undefined) return [{ text: textIn(output), isResult: true }];
  if (type !== undefined && type !== "message") return [];
  if (role !== "user") return [];
  const blocks: readonly Json[] = typeof content === "string" ? [{ text: content }] : content;
  return blocks.map((block) =>
    block.type === "tool_result"
      ? { text: textIn(block.content), isResult: true }
      : { text: block.text ?? "", isResult: false },
  );
}

const textIn = (content: Json): string =>
  typeof content === "string" ? content : (content ?? []).map((part: Json) => part.text ?? "").join("\n");

const isReminder = (text: string): boolean => /^\s*<(?:system-reminder|environment_context)>/.test(text);

// ── The store ────────────────────────────────────────────────────────────────────────────────────────────────────────

export async function withDatabase<T>({ database }: CodingAgent, use: (lcm: Lcm) => Promise<T>): Promise<T> {
  const store = await openSqlite({ path: database, readOnly: true });
  const lcm = createLcm({ store, clock: { now: () => new Date().toISOString() as Timestamp } });
  try {
    return await use(lcm);
  } finally {
    await lcm.close();
  }
}

const settleMs = 30_000;

/** Waits until no process of ours has been working in the background for a while; one may not have begun yet. */
export async function settled({ database }: CodingAgent): Promise<void> {
  const lease = join(database, "..", "lcm-companion.lock");
  const end = performance.now() + settleMs;
  for (let free = 0; performance.now() < end;) {
    await sleep(200);
    const release = takeLease(lease);
    release?.();
    free = release === null ? 0 : free + 1;
    if (free === 8) return;
  }
  assert.fail("the background does not end");
}

export const rowsOf = (transcript: string): readonly Json[] =>
  readFileSync(transcript, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

/** What the host's id of the session is, by the name of the file. */
export const sessionOf = (transcript: string): string =>
  /([0-9a-f]{8}-[0-9a-f-]{27}|agent-\w+)\.jsonl$/.exec(transcript)?.[1]?.replace(/^agent-/, "") ?? "";

/**
 * Asserts that every row of every transcript is stored once, in order, and reads back equal, each in a conversation of its
 * own, and that the database is sound. Returns the conversations by session.
 */
export async function assertAllStored(agent: CodingAgent): Promise<ReadonlyMap<string, Conversation>> {
  const found = new Map<string, Conversation>();
  assert.ok(existsSync(agent.database), "there is a database");
  await withDatabase(agent, async (lcm) => {
    for (const transcript of agent.transcripts()) {
      const session = sessionOf(transcript);
      const [conversation, ...others] = await lcm.store.conversations({ sessionKey: `${agent.name}:${session}` });
      assert.ok(conversation !== undefined, `${transcript} is not stored`);
      assert.deepEqual(others, []);
      found.set(session, conversation);
      const stored = (await Array.fromAsync(lcm.export(conversation.id))).map((line) => JSON.parse(line));
      const rows = rowsOf(transcript);
      const odd = rows.findIndex((row, at) => !isDeepStrictEqual(row, stored[at]));
      assert.equal(odd, -1, `row ${odd + 1} of ${transcript}: ${JSON.stringify(rows[odd])?.slice(0, 500)}`);
      assert.equal(stored.length, rows.length);
      const findings = await lcm.inspect(conversation.id);
      assert.deepEqual(
        findings.filter(({ severity }) => severity !== "info"),
        [],
      );
    }
  });
  return found;
}
