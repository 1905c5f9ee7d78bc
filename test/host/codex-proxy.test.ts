/** The real Codex through the proxy. Its app server does headless what its terminal does: compact, go back, fork. */

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { codex } from "../../src/hosts/codex/host.ts";
import { codexRows } from "../../src/hosts/shared/rows/codex.ts";
import { pictureBytes } from "../support/picture.ts";
import { makeScratch } from "../support/scratch.ts";
import { rowsOf } from "./coding-agents.ts";
import { hostPath, namedHostBin } from "./install.ts";
import { describeProxied, type DrivenAgent } from "./proxy-scenarios.ts";

type Json = ReturnType<typeof JSON.parse>;

const configFor = (base: string): string => `model = "scripted"
model_provider = "scripted"
model_context_window = 120000
model_auto_compact_token_limit = 76000
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.scripted]
name = "Scripted"
base_url = "${base}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
`;

interface AppServer {
  ask(method: string, params: object): Promise<Json>;
  /** Waits for the end of a turn of this thread that comes after `from` other messages. */
  turnEnd(threadId: string, from: number): Promise<void>;
  count(): number;
  end(): Promise<void>;
}

const patienceMs = 120_000;

async function startServer(home: string, folder: string): Promise<AppServer> {
  const child: ChildProcess = spawn(namedHostBin("codex", "codex"), ["app-server"], {
    cwd: folder,
    // It asks its makers about plugins, and without a network it would wait for their address.
    env: {
      HOME: home,
      PATH: hostPath,
      LANG: "C.UTF-8",
      SCRIPTED_KEY: "sk-dummy",
      HTTPS_PROXY: "http://127.0.0.1:9",
      NO_PROXY: "127.0.0.1",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  assert(child.stdin && child.stdout);
  const { stdin } = child;
  const messages: Json[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => messages.push(JSON.parse(line)));
  const find = async (isWanted: (message: Json) => boolean, from: number, what: string): Promise<Json> => {
    for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(5)) {
      const found = messages.slice(from).find(isWanted);
      if (found !== undefined) return found;
    }
    throw new Error(`no ${what} from Codex: ${JSON.stringify(messages.slice(-5)).slice(-3_000)}`);
  };
  let asked = 0;
  const server: AppServer = {
    count: () => messages.length,
    async ask(method, params) {
      const [id, from] = [++asked, messages.length];
      stdin.write(`${JSON.stringify({ id, method, params })}\n`);
      const answer = await find((message) => message.id === id, from, `answer to ${method}`);
      assert.equal(answer.error, undefined, `${method}: ${JSON.stringify(answer.error)}`);
      return answer.result;
    },
    async turnEnd(threadId, from) {
      const isEnd = ({ method, params }: Json): boolean => method === "turn/completed" && params.threadId === threadId;
      const { turn } = (await find(isEnd, from, "end of a turn")).params;
      assert.equal(turn.status, "completed", JSON.stringify(turn));
    },
    async end() {
      const ended = once(child, "exit");
      stdin.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), 3_000);
      await ended;
      clearTimeout(timer);
    },
  };
  await server.ask("initialize", { clientInfo: { name: "test", title: "test", version: "1" } });
  stdin.write(`${JSON.stringify({ method: "initialized" })}\n`);
  return server;
}

async function start(base: string): Promise<DrivenAgent> {
  const home = makeScratch("codex");
  const folder = join(home, "project");
  const picture = join(home, "picture.png");
  for (const each of [folder, join(home, ".codex")]) mkdirSync(each);
  writeFileSync(join(home, ".codex", "config.toml"), configFor(base));
  writeFileSync(picture, pictureBytes(32));
  let server = await startServer(home, folder);
  const { thread } = await server.ask("thread/start", { cwd: folder });
  let lastTurn = "";
  const say = async (threadId: string, ...input: readonly object[]): Promise<void> => {
    const from = server.count();
    const { turn } = await server.ask("turn/start", { threadId, input });
    if (threadId === thread.id) lastTurn = turn.id;
    await server.turnEnd(threadId, from);
  };
  const rollouts = (): ReadonlyMap<string, readonly string[]> =>
    Map.groupBy(
      globSync(".codex/sessions/*/*/*/*.jsonl", { cwd: home }).map((path) => join(home, path)),
      (path) => codex.sessionIdOf(path) ?? "",
    );
  return {
    prompt: async (text) => await say(thread.id, { type: "text", text }),
    show: async (text) => await say(thread.id, { type: "text", text }, { type: "localImage", path: picture }),
    async rewind(text) {
      await server.ask("thread/revert", { threadId: thread.id, beforeTurnId: lastTurn });
      await say(thread.id, { type: "text", text });
    },
    async resume() {
      await server.end();
      server = await startServer(home, folder);
      await server.ask("thread/resume", { threadId: thread.id });
    },
    async fork(text) {
      const { thread: other } = await server.ask("thread/fork", { threadId: thread.id });
      await say(other.id, { type: "text", text });
    },
    async compact() {
      const from = server.count();
      await server.ask("thread/compact/start", { threadId: thread.id });
      await server.turnEnd(thread.id, from);
    },
    // A thread that went back goes on in another file. One that was forked off names the rows that it begins with.
    records: () =>
      [...rollouts()].map(([sessionId, transcripts]) => {
        const rows = transcripts.flatMap(rowsOf);
        return { sessionId, rows, transcripts, beginsAs: rows[0].payload.forked_from_id };
      }),
    compactions: () =>
      (rollouts().get(thread.id) ?? []).flatMap(rowsOf).filter(({ type }) => type === "compacted").length,
    close: async () => await server.end(),
  };
}

describeProxied({
  name: "Codex",
  wire: "responses",
  rows: codexRows,
  companion: codex,
  shell: (command) => `CALL exec_command {"cmd":"${command}"}`,
  subagent: (task) => `CALL multi_agent_v1::spawn_agent {"message":"${task}"}`,
  start,
});
