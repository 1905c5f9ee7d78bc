/**
 * Drives the real OpenClaw gateway: on loopback, in its own home, with the models of a scripted server. Whatever
 * happens to the test, none of its processes and folders stay behind.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text as textOf } from "node:stream/consumers";
import { after } from "node:test";
import { zstdDecompressSync } from "node:zlib";
import { freePort } from "../support/free-port.ts";
import { hostBin, nodeOptionsVariable, serverVariable } from "./install.ts";
import type { HostBin } from "./install.ts";
import type { ModelServer } from "./model-server.ts";
import { openLine } from "./rpc.ts";
import type { Line } from "./rpc.ts";

/** The available models, by wire format. The first is the default. */
export const models = { openai: "openai-wire/scripted", anthropic: "anthropic-wire/scripted" } as const;

export interface GatewayOptions {
  readonly server: ModelServer;
  /** The window of both models; 64,000 if absent. */
  readonly contextWindow?: number;
  /** `plugins` of openclaw.json, see `enginePlugin`. Without it there are none, and the host's legacy engine serves. */
  readonly plugins?: object;
  /** More of openclaw.json, by top-level key; replaces the default there. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  /** The URL of our database, which other gateways may use, too. Otherwise it is this gateway's own. */
  readonly database?: string;
}

type Json = ReturnType<typeof JSON.parse>;

export interface Turn {
  readonly status: number;
  /** The answer, or the error. */
  readonly text: string;
}

export interface CliRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Gateway {
  /** Its HOME, which contains the state directory `.openclaw`. */
  readonly home: string;
  readonly state: string;
  /** Our database: its path, or its URL if it is on a server. */
  readonly database: string;
  /** Sends a message to the agent, with a picture as a data URL if given, and waits for the answer. */
  turn(
    sessionKey: string,
    text: string,
    options?: { readonly model?: string; readonly picture?: string; readonly timeoutMs?: number },
  ): Promise<Turn>;
  /** Calls a method of the gateway, such as `sessions.compact`; throws if it refuses. */
  rpc(method: string, params?: object, timeoutMs?: number): Promise<Json>;
  /** The answer to a slash command, or to any other message in the chat. */
  chat(sessionKey: string, text: string, timeoutMs?: number): Promise<string>;
  /** Runs `openclaw …`, with or without a running gateway. */
  cli(...args: readonly string[]): Promise<CliRun>;
  /** The host's own transcript of a session: all events, in order. */
  transcript(sessionKey: string): readonly Json[];
  /**
   * Starts the gateway on the existing home. With changes, openclaw.json is rewritten as if these had been the options.
   * Some seconds later the host itself resumes a turn in which the gateway was killed; a message to that session before
   * then may be refused, so this waits until the models have answered. "ready" does not wait.
   */
  start(changes?: Partial<GatewayOptions>, until?: "ready" | "recovered"): Promise<void>;
  restart(changes?: Partial<GatewayOptions>): Promise<void>;
  stop(): Promise<void>;
  /** Kills the gateway and all of its children at once. */
  kill9(): Promise<void>;
  /** Null while none runs. */
  pid(): number | null;
  /** All output of gateways in this home. */
  log(): string;
  /** Waits until the output of the running gateway matches. */
  logged(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>;
}

/** `plugins` for one plugin, which is the context engine under its own id. */
export const enginePlugin = (id: string, path: string, config: object = {}, entry: object = {}): object => ({
  allow: [id],
  load: { paths: [path] },
  slots: { contextEngine: id, memory: "none" },
  entries: { [id]: { enabled: true, config, hooks: { allowConversationAccess: true }, ...entry } },
});

/** A slow machine starts the host in a minute; more is a failure. */
const startTimeoutMs = 180_000;
const turnTimeoutMs = 60_000;
/** The host may take minutes to drain its work; no test waits for that. */
const stopTimeoutMs = 20_000;

const token = "host-tests";
const ends = new Set(["final", "error", "aborted"]);
const running = new Set<ChildProcess>();
const homes: string[] = [];

after(async () => {
  for (const child of running) await kill(child);
  if (process.env["LCM_HOST_KEEP"] !== undefined) return;
  for (const home of homes) rmSync(home, { recursive: true, force: true, maxRetries: 5 });
});
// An interrupted test file runs no hooks.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
process.on("exit", () => {
  for (const child of running) signalGroup(child, "SIGKILL");
});

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const gateway = await createGateway(options);
  await gateway.start();
  return gateway;
}

/** Creates a home with an openclaw.json, and no gateway yet. */
export async function createGateway(first: GatewayOptions): Promise<Gateway> {
  const bin = await hostBin();
  const home = mkdtempSync(join(tmpdir(), "lcm-host-"));
  homes.push(home);
  const state = join(home, ".openclaw");
  const port = await freePort();
  const database = first.database ?? ownDatabase(state);
  let options = first;
  let log = "";
  let logStart = 0;
  let gateway: ChildProcess | null = null;
  const printed = new EventTarget();

  const writeConfig = (): void =>
    writeFileSync(join(state, "openclaw.json"), JSON.stringify(configOf(options, home, port), null, 2));
  const run = (args: readonly string[]): ChildProcess => {
    const child = spawn(bin.node, [bin.openclaw, ...args], {
      cwd: home,
      env: { ...environmentOf(bin, home), ...databaseSetting(database), ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // Its own process group, so that its children end with it.
    });
    running.add(child);
    child.once("close", () => running.delete(child));
    return child;
  };
  const onLine = async <T>(timeoutMs: number, use: (line: Line) => Promise<T>): Promise<T> => {
    const line = await openLine(`ws://127.0.0.1:${port}`, token, timeoutMs);
    try {
      return await use(line);
    } finally {
      line.close();
    }
  };

  const self: Gateway = {
    home,
    state,
    database,
    async turn(sessionKey, text, { model, picture, timeoutMs = turnTimeoutMs } = {}) {
      const shown = { type: "image_url", image_url: { url: picture } };
      const content = picture === undefined ? text : [{ type: "text", text }, shown];
      const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          "x-openclaw-session-key": sessionKey,
          // The host may close a kept-alive connection just when the next turn is sent on it.
          connection: "close",
          ...(model === undefined ? {} : { "x-openclaw-model": model }),
        },
        body: JSON.stringify({ model: `openclaw/${agentOf(sessionKey)}`, messages: [{ role: "user", content }] }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      const body: Json = await response.json();
      const { status } = response;
      // The host does not reveal what an "internal error" is; its log does.
      const why = status === 500 ? `\n${log.slice(-2000)}` : "";
      return { status, text: body.choices?.[0]?.message.content ?? `${JSON.stringify(body)}${why}` };
    },
    rpc: (method, params = {}, timeoutMs = turnTimeoutMs) => onLine(timeoutMs, (line) => line.call(method, params)),
    chat: (sessionKey, message, timeoutMs = turnTimeoutMs) =>
      onLine(timeoutMs, async (line) => {
        const { runId } = await line.call("chat.send", { sessionKey, message, idempotencyKey: crypto.randomUUID() });
        const last = await line.event("chat", (chat) => chat.runId === runId && ends.has(chat.state));
        return (
          last.message?.content.map((part: { text?: string }) => part.text ?? "").join("") ?? last.errorMessage ?? ""
        );
      }),
    async cli(...args) {
      const child = run(args);
      assert(child.stdout && child.stderr);
      const closed = once(child, "close");
      const [stdout, stderr] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
      await closed;
      return { status: child.exitCode, stdout, stderr };
    },
    transcript: (sessionKey) =>
      readTranscript(join(state, "agents", agentOf(sessionKey), "agent/openclaw-agent.sqlite"), sessionKey),
    async start(changes, until = "recovered") {
      assert.equal(gateway, null, "a gateway is already running in this home");
      if (changes) {
        options = { ...options, ...changes };
        writeConfig();
      }
      const child = run(["gateway", "run", "--port", String(port), "--bind", "loopback"]);
      gateway = child;
      logStart = log.length;
      for (const stream of [child.stdout, child.stderr]) {
        stream?.setEncoding("utf8").on("data", (text: string) => {
          log += text;
          printed.dispatchEvent(new Event("text"));
        });
      }
      child.once("close", () => {
        gateway = null;
        printed.dispatchEvent(new Event("text"));
      });
      await self.logged(/\[gateway\] ready/, startTimeoutMs);
      // It reports what there is to recover before that.
      if (until === "ready" || !/marked \d+ startup-orphaned/.test(log.slice(logStart))) return;
      const [, turns] = await self.logged(/restart recovery startup complete: started=(\d+)/);
      await self.logged(new RegExp(`(?:restart recovery terminal:[^]*?){${turns}}`));
    },
    async restart(changes) {
      await self.stop();
      await self.start(changes);
    },
    async stop() {
      if (gateway) await end(gateway);
    },
    async kill9() {
      if (gateway) await kill(gateway);
    },
    pid: () => gateway?.pid ?? null,
    log: () => log,
    async logged(pattern, timeoutMs = turnTimeoutMs) {
      const signal = AbortSignal.timeout(timeoutMs);
      for (;;) {
        const found = pattern.exec(log.slice(logStart));
        if (found) return found;
        const why = gateway === null ? "the gateway has ended" : signal.aborted ? `not within ${timeoutMs} ms` : null;
        if (why !== null) throw new Error(`no ${pattern} in the log: ${why}\n${log.slice(logStart).slice(-4000)}`);
        await once(printed, "text", { signal }).catch(() => undefined); // The deadline is checked above.
      }
    },
  };
  mkdirSync(join(home, "tmp"));
  mkdirSync(state);
  writeConfig();
  return self;
}

const ownDatabase = (state: string): string => {
  const server = process.env[serverVariable];
  if (server === undefined) return join(state, "lcm.db");
  return `${server}?schema=gateway_${process.pid}_${homes.length}`;
};

const databaseSetting = (database: string): Readonly<Record<string, string>> =>
  database.startsWith("postgres:") ? { LCM_DATABASE_URL: database } : {};

const agentOf = (sessionKey: string): string => /^agent:([^:]+):/.exec(sessionKey)?.[1] ?? "main";

/** The whole environment of the host, so that it is the same on every machine. */
const environmentOf = (bin: HostBin, home: string): Readonly<Record<string, string>> => ({
  PATH: bin.path,
  HOME: home,
  TMPDIR: join(home, "tmp"),
  OPENCLAW_STATE_DIR: join(home, ".openclaw"),
  OPENCLAW_CONFIG_PATH: join(home, ".openclaw", "openclaw.json"),
  NODE_COMPILE_CACHE: bin.compiled,
  NODE_OPTIONS: process.env[nodeOptionsVariable] ?? "",
  TZ: "America/St_Johns",
  CI: "1",
  NO_COLOR: "1",
  DO_NOT_TRACK: "1",
  OPENCLAW_NO_AUTO_UPDATE: "1",
  OPENCLAW_DISABLE_BONJOUR: "1",
  OPENCLAW_SKIP_CHANNELS: "1",
  OPENCLAW_SKIP_CRON: "1",
  OPENCLAW_NO_RESPAWN: "1",
});

function configOf({ server, contextWindow = 64_000, plugins, config }: GatewayOptions, home: string, port: number) {
  const provider = (api: string, baseUrl: string): object => ({
    api,
    baseUrl,
    apiKey: "none",
    models: [
      {
        id: "scripted",
        name: "Scripted",
        reasoning: true,
        input: ["text", "image"],
        cost: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 },
        contextWindow,
        maxTokens: 4096,
      },
    ],
  });
  return {
    agents: {
      defaults: {
        workspace: join(home, "workspace"),
        model: { primary: models.openai },
        models: { [models.openai]: {}, [models.anthropic]: {} },
      },
    },
    models: {
      mode: "replace",
      providers: {
        "openai-wire": provider("openai-completions", `${server.url}/v1`),
        "anthropic-wire": provider("anthropic-messages", server.url),
      },
    },
    plugins: plugins ?? { enabled: false },
    gateway: {
      mode: "local",
      port,
      bind: "loopback",
      auth: { mode: "token", token },
      http: { endpoints: { chatCompletions: { enabled: true } } },
    },
    logging: { file: join(home, "openclaw.log") },
    ...config,
  };
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return; // It never started.
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended in the meantime, as intended.
  }
}

/** Returns once every process that had its output open is gone: only then may another gateway use its home. */
async function kill(child: ChildProcess): Promise<void> {
  const closed = once(child, "close");
  signalGroup(child, "SIGKILL");
  await closed;
}

async function end(child: ChildProcess): Promise<void> {
  const closed = once(child, "close");
  child.kill("SIGTERM"); // It ends its own helpers, and needs them until then.
  const late = setTimeout(() => signalGroup(child, "SIGKILL"), stopTimeoutMs);
  await closed;
  clearTimeout(late);
}

function readTranscript(database: string, sessionKey: string): readonly Json[] {
  const db = new DatabaseSync(database, { readOnly: true });
  try {
    return db
      .prepare(
        `SELECT event_json, event_zstd FROM transcript_events JOIN session_windows USING (session_id)
         WHERE session_key = ? ORDER BY session_windows.created_at, seq`,
      )
      .all(sessionKey)
      .map((row: Json) => JSON.parse(row.event_json ?? zstdDecompressSync(row.event_zstd).toString()));
  } finally {
    db.close();
  }
}
