/**
 * Drives the real OpenCode over its own server: a home with our plugin in it, sessions, prompts, reverts, and the rows of
 * its database. The model behind it is scripted.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text as textOf } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { freePort } from "../support/free-port.ts";
import { hostPath, namedHostBin } from "./install.ts";
import { pluginFolder } from "./plugin.ts";

type Json = ReturnType<typeof JSON.parse>;

export interface Home {
  readonly folder: string;
  /** The folder that the agent works in. */
  readonly work: string;
  readonly database: string;
}

export interface HomeOptions {
  readonly modelUrl: string;
  /** The plugin's file; none if left out. */
  readonly plugin?: string;
  readonly limit?: { readonly context: number; readonly output: number };
  /** What else its config says about the model. */
  readonly model?: object;
  readonly config?: object;
}

const hostFolder = fileURLToPath(new URL("opencode/", import.meta.url));

export function createHome({ modelUrl, plugin, limit, model = {}, config = {} }: HomeOptions): Home {
  const folder = mkdtempSync(join(tmpdir(), "opencode-"));
  const work = join(folder, "work");
  mkdirSync(work);
  const models = {
    scripted: { name: "Scripted", tool_call: true, limit: limit ?? { context: 60_000, output: 4_000 }, ...model },
  };
  const scripted = {
    npm: "@ai-sdk/openai-compatible",
    name: "Scripted",
    options: { baseURL: `${modelUrl}/v1`, apiKey: "dummy" },
    models,
  };
  prepareSettings(folder, {
    model: "scripted/scripted",
    small_model: "scripted/scripted",
    plugin: plugin === undefined ? [] : [pathToFileURL(plugin).href],
    provider: { scripted },
    ...config,
  });
  return { folder, work, database: join(folder, ".openclaw", "lcm.db") };
}

/** Writes its config into a home, with what it would fetch from npm at its first start. */
export function prepareSettings(home: string, config: object): void {
  const settings = join(home, ".config", "opencode");
  mkdirSync(settings, { recursive: true });
  copyFileSync(join(hostFolder, "package-lock.json"), join(settings, "package-lock.json"));
  const name = "@opencode-ai/plugin";
  const { dependencies } = JSON.parse(readFileSync(join(hostFolder, "package.json"), "utf8"));
  writeFileSync(join(settings, "package.json"), JSON.stringify({ dependencies: { [name]: dependencies[name] } }));
  symlinkSync(join(hostFolder, "node_modules"), join(settings, "node_modules"));
  const all = { autoupdate: false, share: "disabled", permission: "allow", ...config };
  writeFileSync(join(settings, "opencode.json"), JSON.stringify(all));
}

export const removeHome = ({ folder }: Home): void => {
  if (process.env["LCM_HOST_KEEP"] === undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
};

export interface OpenCode {
  readonly process: ChildProcess;
  request(method: "GET" | "POST" | "DELETE", path: string, body?: object, limitMs?: number): Promise<Json>;
  createSession(): Promise<string>;
  /** Waits for the answer. Its text, and what the host says about it. */
  prompt(session: string, text: string, limitMs?: number): Promise<{ readonly text: string; readonly info: Json }>;
  messages(session: string): Promise<readonly Json[]>;
  /** What it has written so far. */
  log(): string;
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/** Runs `opencode run`, which ends when it is answered; the id of the session. */
export async function runOnce(home: Home, text: string): Promise<string> {
  const args = ["run", "--format", "json", text];
  const child = spawn(namedHostBin("opencode", "opencode"), args, {
    cwd: home.work,
    env: environmentOf(home),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = await Promise.all([textOf(child.stdout), once(child, "close")]);
  const [first = "{}"] = said.trim().split("\n");
  return JSON.parse(first).sessionID;
}

/** What it has logged. */
export const logOf = ({ folder }: Home): string =>
  readFileSync(join(folder, ".local", "share", "opencode", "log", "opencode.log"), "utf8");

const environmentOf = ({ folder }: Home): NodeJS.ProcessEnv => ({
  PATH: hostPath,
  HOME: folder,
  TMPDIR: tmpdir(),
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  OPENCODE_DISABLE_MODELS_FETCH: "1",
});

const startMs = 120_000;
const answerMs = 120_000;

export async function startOpenCode(home: Home, env: Readonly<Record<string, string>> = {}): Promise<OpenCode> {
  const port = await freePort();
  const child = spawn(namedHostBin("opencode", "opencode"), ["serve", "--port", `${port}`, "--hostname", "127.0.0.1"], {
    cwd: home.work,
    env: { ...environmentOf(home), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (log += text));
  const request: OpenCode["request"] = async (method, path, body, limitMs = answerMs) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { "content-type": "application/json" },
      signal: AbortSignal.timeout(limitMs),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 500)}`);
    return text === "" ? null : JSON.parse(text);
  };
  const deadline = Date.now() + startMs;
  // The first request loads the plugins.
  while (!(await request("GET", "/session", undefined, 5_000).catch(() => null))) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`OpenCode did not start:\n${log}`);
    await sleep(100);
  }
  return {
    process: child,
    request,
    createSession: async () => (await request("POST", "/session", {})).id,
    async prompt(session, text, limitMs) {
      const body = { parts: [{ type: "text", text }] };
      const { info, parts } = await request("POST", `/session/${session}/message`, body, limitMs);
      const said = parts.filter((part: Json) => part.type === "text").map((part: Json) => part.text);
      return { text: said.join("\n"), info };
    },
    messages: async (session) => await request("GET", `/session/${session}/message`),
    log: () => log,
    async kill(signal = "SIGTERM") {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "close");
      child.kill(signal);
      await ended;
    },
  };
}

/** The process ids of the side processes that this server has started. */
export function sideProcesses({ process: { pid } }: OpenCode): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  return children.map(Number).filter((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes("lcm.js"));
}

/** The messages of a session as its database has them now, oldest first. */
export function databaseRows(home: Home, session: string): readonly Json[] {
  const database = new DatabaseSync(join(home.folder, ".local", "share", "opencode", "opencode.db"), {
    readOnly: true,
  });
  try {
    const parts = database
      .prepare("SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id")
      .all(session);
    return database
      .prepare("SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id")
      .all(session)
      .map(({ id, data }) => ({
        info: { ...JSON.parse(String(data)), id, sessionID: session },
        parts: parts
          .filter((part) => part["message_id"] === id)
          .map((part) => ({ ...JSON.parse(String(part["data"])), id: part["id"], sessionID: session, messageID: id })),
      }));
  } finally {
    database.close();
  }
}

/** Our plugin as it is published. */
export const openCodePlugin = (): string => join(pluginFolder(), "dist", "hosts", "opencode", "plugin.js");
