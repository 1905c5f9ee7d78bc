/** Runs the real Pi, headless, with our extension as it is published and a scripted model. */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { text as textOf } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { FindingCode } from "../../src/core/maintenance/inspect.ts";
import type { Conversation } from "../../src/core/model/types.ts";
import { flattened } from "../support/lossless.ts";
import { hostPath, piProgram } from "./install.ts";
import type { ModelServer } from "./model-server.ts";
import { pluginFolder } from "./plugin.ts";
import { withStore } from "./stored.ts";

type Json = ReturnType<typeof JSON.parse>;

export interface PiHome {
  readonly folder: string;
  /** The folder that the agent works in. */
  readonly work: string;
  readonly database: string;
  readonly env: NodeJS.ProcessEnv;
}

export interface PiOptions {
  readonly window?: number;
  readonly reserve?: number;
  readonly env?: NodeJS.ProcessEnv;
  /** False: Pi without us. */
  readonly isOurs?: boolean;
  /** Whether its model takes pictures, and thinks. */
  readonly isSeeing?: boolean;
}

/** A home folder of its own for Pi. */
export function createPiHome(folder: string, { url }: Pick<ModelServer, "url">, options: PiOptions = {}): PiHome {
  const { window = 32_000, reserve = 4_000, isOurs = true, isSeeing = false } = options;
  const [agent, work] = [join(folder, ".pi", "agent"), join(folder, "work")];
  for (const each of [agent, work]) mkdirSync(each, { recursive: true });
  const model = {
    id: "scripted",
    contextWindow: window,
    maxTokens: 2_000,
    input: ["text", ...(isSeeing ? ["image"] : [])],
    reasoning: isSeeing,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  };
  const provider = { baseUrl: `${url}/v1`, api: "openai-completions", apiKey: "dummy", models: [model] };
  writeFileSync(join(agent, "models.json"), JSON.stringify({ providers: { scripted: provider } }));
  const settings = {
    defaultProvider: "scripted",
    defaultModel: "scripted",
    compaction: { enabled: true, reserveTokens: reserve, keepRecentTokens: 2_000 },
    retry: { enabled: !isOurs },
    ...(isOurs ? { packages: [pluginFolder()] } : {}),
  };
  writeFileSync(join(agent, "settings.json"), JSON.stringify(settings));
  const database = options.env?.["LCM_DATABASE_URL"] ?? join(folder, "lcm.db");
  const { TZ } = process.env;
  const env = {
    PATH: hostPath,
    TZ,
    HOME: folder,
    PI_OFFLINE: "1",
    LCM_DATABASE_PATH: join(folder, "lcm.db"),
    ...options.env,
  };
  return { folder, work, database, env };
}

/** One prompt in print mode; returns what Pi prints. */
export async function printPi(home: PiHome, words: readonly string[]): Promise<string> {
  return (await runPi(home, words)).printed;
}

/** The same, with what it warns of. */
export async function runPi({ env, work }: PiHome, words: readonly string[]) {
  const child = spawn(process.execPath, [piProgram, ...words], {
    cwd: work,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: patienceMs,
  });
  const [printed, errors] = await Promise.all([textOf(child.stdout), textOf(child.stderr), once(child, "close")]);
  assert.equal(child.exitCode, 0, errors);
  return { printed, errors };
}

export interface RunningPi {
  /** Sends a prompt and waits for the end of the turn. */
  say(text: string, more?: object): Promise<void>;
  /** Sends any command of the rpc protocol; returns its response. */
  ask(command: object, waitMs?: number): Promise<Json>;
  /** Everything that Pi has printed so far. */
  readonly events: readonly Json[];
  /** Waits for an event that comes, or has come, after `from` others. */
  event(type: string, from?: number): Promise<Json>;
  kill(): Promise<void>;
  /** Ends it as a person would. */
  end(): Promise<void>;
}

const patienceMs = 180_000;

/** A test that fails leaves its Pi running. */
const running = new Set<ChildProcess>();
after(() => {
  for (const child of running) child.kill("SIGKILL");
});

/** Many turns in one process, over rpc. */
export async function startPi({ env, work }: PiHome, words: readonly string[] = []): Promise<RunningPi> {
  const child: ChildProcess = spawn(process.execPath, [piProgram, "--mode", "rpc", ...words], { cwd: work, env });
  running.add(child);
  child.on("close", () => running.delete(child));
  assert(child.stdin && child.stdout && child.stderr);
  const { stdin } = child;
  const events: Json[] = [];
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (errors += text));
  stdin.on("error", () => undefined); // It was killed.
  createInterface({ input: child.stdout }).on("line", (line) => events.push(JSON.parse(line)));
  const find = async (
    isWanted: (event: Json) => boolean,
    from: number,
    what: string,
    waitMs = patienceMs,
  ): Promise<Json> => {
    const startedMs = performance.now();
    for (let at = from; ;) {
      for (; at < events.length; at++) if (isWanted(events[at])) return events[at];
      const isOver = child.exitCode !== null || child.signalCode !== null;
      if (isOver || performance.now() - startedMs > waitMs)
        throw new Error(`no ${what} from Pi, which ${isOver ? "has ended" : "is silent"}\n${errors}`);
      await sleep(5);
    }
  };
  let asked = 0;
  const pi: RunningPi = {
    events,
    event: async (type, from = 0) => await find((event) => event.type === type, from, type),
    async ask(command, waitMs) {
      const [id, from] = [`r${++asked}`, events.length];
      stdin.write(`${JSON.stringify({ id, ...command })}\n`);
      return await find((event) => event.type === "response" && event.id === id, from, "response", waitMs);
    },
    async say(text, more = {}) {
      const from = events.length;
      const response = await pi.ask({ type: "prompt", message: text, ...more });
      assert.ok(response.success, JSON.stringify(response));
      await pi.event("agent_settled", from);
    },
    async kill() {
      child.kill("SIGKILL");
      await once(child, "close");
    },
    async end() {
      stdin.end();
      if (child.exitCode === null) await once(child, "close");
    },
  };
  await pi.ask({ type: "get_state" });
  return pi;
}

/** An extension that does what a person or another extension does: goes back, edits the context, says something. */
const helper = `
export default function (pi) {
  let edit = null;
  pi.on("turn_end", async () => { const entries = edit === null ? [] : [edit]; edit = null; return { entries }; });
  pi.registerCommand("go", { description: "", async handler(words, ctx) {
    const [target, how] = words.split(" ");
    await ctx.navigateTree(target, { summarize: how === "summarize" });
  } });
  pi.registerCommand("edit", { description: "", async handler(words) {
    const [targetId, content] = words.split(" ");
    edit = { type: "context_edit", targetId, replacement: content === undefined ? null : { content } };
  } });
  pi.registerCommand("inject", { description: "", async handler(words) {
    pi.sendMessage({ customType: "test", content: words, display: true });
  } });
}`;

/** Puts it into a home; returns the words with which Pi loads it. */
export function putHelper(home: PiHome): readonly string[] {
  const file = join(home.folder, "helper.js");
  writeFileSync(file, helper);
  return ["-e", file];
}

export function transcriptFiles({ folder }: PiHome): readonly string[] {
  const sessions = join(folder, ".pi", "agent", "sessions");
  return globSync("**/*.jsonl", { cwd: sessions })
    .toSorted()
    .map((file) => join(sessions, file));
}

/** The transcripts of a home, oldest first, each as its rows. */
export const transcriptsOf = (home: PiHome): readonly (readonly Json[])[] =>
  transcriptFiles(home)
    .map((file) => readFileSync(file, "utf8"))
    .map((text) =>
      text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    );

/**
 * Asserts that the store has exactly Pi's rows, each equal, and that nothing is lost or duplicated in the context. On a
 * server other homes may have conversations, too. `brought` lists findings that the test causes.
 */
export async function assertStored(
  home: PiHome,
  brought: readonly FindingCode[] = [],
): Promise<readonly Conversation[]> {
  return await withStore(home, async (lcm) => {
    const isOwn = ({ folder }: Conversation): boolean =>
      home.env["LCM_DATABASE_URL"] === undefined || folder === home.work;
    const conversations = (await lcm.store.conversations()).filter(isOwn).toSorted((a, b) => a.id - b.id);
    const transcripts = new Map(transcriptsOf(home).map((rows) => [rows[0].id, rows]));
    assert.deepEqual(new Set(conversations.map(({ sessionId }) => sessionId)), new Set(transcripts.keys()));
    for (const { id, sessionId } of conversations) {
      const lines = (await Array.fromAsync(lcm.export(id))).map((line) => JSON.parse(line));
      assert.deepEqual(lines, transcripts.get(sessionId));
      const keys = (await flattened(lcm.store, id)).map(({ key }) => key);
      assert.deepEqual(keys, activeBranch(lines));
      const findings = await lcm.inspect(id);
      assert.deepEqual(
        findings.filter(({ severity, code }) => severity !== "info" && !brought.includes(code)),
        [],
      );
    }
    return conversations;
  });
}

/** The ids of the rows that Pi's model may see, from the root to the newest row. */
function activeBranch(rows: readonly Json[]): readonly string[] {
  const byId = new Map(rows.slice(1).map((row) => [row.id, row]));
  const branch: Json[] = [];
  for (let row = rows.at(-1); row !== undefined && row.type !== "session"; row = byId.get(row.parentId))
    branch.push(row);
  const isShown = ({ type, message }: Json): boolean =>
    type === "message" ? message.role !== "system" : type === "custom_message" || type === "branch_summary";
  return branch
    .reverse()
    .filter(isShown)
    .map(({ id }) => id);
}
