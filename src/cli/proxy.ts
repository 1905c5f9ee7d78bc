/**
 * Runs the proxy with the settings, database and model of the command line: by itself (`lcm proxy`), or around a program
 * that it points at itself (`lcm run`). Keys stay with the program: nothing here reads or keeps them.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { constants } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LcmError } from "../core/base/errors.ts";
import { parseObject } from "../core/base/json.ts";
import type { DatabasePlace } from "../core/base/database-place.ts";
import type { Model } from "../core/model/store.ts";
import type { Timestamp } from "../core/base/time.ts";
import { logProblem, problemLogOf } from "../hosts/shared/problem-log.ts";
import { openRuntime } from "../hosts/shared/open-runtime.ts";
import type { ClientModel } from "../proxy/client-model.ts";
import { createService } from "../proxy/service.ts";
import { startProxy, type Proxy } from "../proxy/server.ts";
import { commandFor } from "../proxy/command-line.ts";
import { boundMemory } from "./bound-memory.ts";
import type { ProxyRequest, RunRequest } from "./commands/_proxying.ts";
import type { CommandContext } from "./commands/_session.ts";
import { createReportWriter, proxyFolder, writePrivate } from "./proxy-reports.ts";
import { configuredModel } from "./serve.ts";

/** A request waits at most this long for us. */
const patienceMs = 1_000;
/** After a program has ended, folding may go on this long. */
const lingerMs = 3_000;

interface Started {
  readonly proxy: Proxy;
  readonly stop: () => Promise<void>;
}

interface StartOptions {
  readonly context: CommandContext;
  readonly place: DatabasePlace;
  readonly port: number;
  readonly secret: string;
  readonly storeOnly: boolean;
  readonly upstreams: Readonly<Record<string, string>>;
  readonly folder: string | null;
  /** What is served, for the report. */
  readonly program: string;
}

async function start(options: StartOptions): Promise<Started> {
  boundMemory();
  const { context, place, port, secret, storeOnly, upstreams, folder, program } = options;
  // Into the log only: the terminal belongs to the program.
  const note = (message: string): void =>
    logProblem(problemLogOf(place.nearby), {
      at: new Date().toISOString() as Timestamp,
      host: "proxy",
      doing: "serving requests",
      message,
    });
  const logger = { info: () => undefined, warn: note, error: note };
  const runtime = await openRuntime(process.env, logger, place, { patienceMs });
  const { values } = runtime.settings;
  const { proxyTokens: tokensMax } = values;
  const model = await configuredModel(context, note);
  const changed = (): void => reports.changed();
  const modelWith = async (client: ClientModel): Promise<Model> =>
    await (await import("./open.ts")).keyedModel(client, values);
  const consent = values.proxyClientKey ? { modelWith } : {};
  const service = createService({ runtime, tokensMax, model, storeOnly, folder, changed, ...consent });
  const onlyOwn = folder !== null; // The address of a proxy that stays may be given to anybody, such as a container.
  const proxy = await startProxy({ port, secret, upstreams, service, onlyOwn, env: process.env }).catch(
    refusePort(port),
  );
  const about = { program, pid: process.pid, port: proxy.port, startedAt: runtime.clock.now() };
  let endedAt: Timestamp | null = null;
  const reports = createReportWriter(place.nearby, () => ({ ...about, endedAt, ...service.status() }));
  // A fault of ours must not cut agents off from their model.
  const survive = (error: unknown): void => runtime.note("serving requests", error);
  process.on("uncaughtException", survive);
  // Not awaited: a database that cannot be opened must not keep anybody waiting.
  runtime.open().catch((error: unknown) => runtime.note("opening the database", error));
  return {
    proxy,
    stop: async () => {
      process.off("uncaughtException", survive);
      await proxy.close();
      service.end();
      const late = async (): Promise<void> => await sleep(lingerMs, undefined, { ref: false });
      await Promise.race([runtime.settled(), late()]);
      await Promise.race([runtime.close(), late()]);
      endedAt = runtime.clock.now();
      reports.end();
    },
  };
}

function refusePort(port: number) {
  return (error: unknown): never => {
    if (!(error instanceof Error) || !("code" in error) || error.code !== "EADDRINUSE") throw error;
    throw new LcmError("conflict", `another program listens on port ${port}`, {
      hint: "choose another one with --port. Agents that are set to this address send their requests and keys to the program there",
      cause: error,
    });
  };
}

const providers = { anthropic: "https://api.anthropic.com", openai: "https://api.openai.com/v1" };

/** What the program would have used, unless it is named. `port` is our own, if it is known before. */
function upstreamsFor(named: readonly string[], port: number | null): Readonly<Record<string, string>> {
  const { ANTHROPIC_BASE_URL: anthropic, OPENAI_BASE_URL: openai } = process.env;
  // A user who has set these to our own address wants what they were before.
  const isOwn = (url: string): boolean =>
    port !== null && new RegExp(`^https?://(?:127\\.0\\.0\\.1|localhost):${port}(?:/|$)`, "i").test(url);
  const own = Object.entries({ anthropic, openai }).flatMap(([name, url]) =>
    url === undefined || url === "" || isOwn(url) ? [] : [parseUpstream(`${name}=${url}`)],
  );
  return { ...providers, ...Object.fromEntries(own), ...Object.fromEntries(named.map(parseUpstream)) };
}

function parseUpstream(text: string): readonly [string, string] {
  const [, name, url] = /^([\w-]+)=(https?:\/\/\S+)$/.exec(text) ?? [];
  const { username, password, search, hash } = URL.parse(url ?? "") ?? { search: "invalid" };
  // The names of our own paths. And nothing in an address may get lost or be shown.
  const isTaken = name === "status" || name?.startsWith("run-");
  if (name === undefined || url === undefined || isTaken || username || password || search || hash)
    throw new LcmError("invalid", `${JSON.stringify(text)} is not an upstream`, {
      hint: "pass a name and a URL without a query or a password, such as openrouter=https://openrouter.ai/api/v1",
    });
  return [name, url];
}

// ── lcm proxy ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Where the proxy of a database is, now or the next time. */
interface Place {
  readonly port: number;
  readonly secret: string;
  /** The process that serves it. Once that has ended, its port may belong to somebody else, who must not get the secret. */
  readonly pid: number;
}

const placeFile = (path: string): string => join(proxyFolder(path), `${basename(path)}.json`);

const portDefault = 7_717;

export async function serveProxy(
  request: ProxyRequest & { readonly context: CommandContext; readonly signal: AbortSignal },
): Promise<void> {
  const { context, database, storeOnly, upstreams: named, print, signal } = request;
  const { place } = database;
  const known = readPlace(place.nearby);
  if (known !== null && (await isServing(known)))
    throw new LcmError("conflict", `a proxy of this database is running on port ${known.port}`, {
      hint: "it serves several agents at once; `lcm proxy status` shows them",
    });
  const secret = known?.secret ?? randomBytes(24).toString("base64url");
  const port = request.port ?? known?.port ?? portDefault;
  const upstreams = upstreamsFor(named, port);
  const program = "any agent";
  const { proxy, stop } = await start({ context, place, port, secret, storeOnly, upstreams, folder: null, program });
  writePrivate(placeFile(place.nearby), { port, secret, pid: process.pid });
  print(`listening on 127.0.0.1:${proxy.port}; set the base URL of an agent to one of these:`);
  for (const [name, url] of Object.entries(upstreams)) print(`${proxy.urlOf(name)}  (${url})`);
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  await stop();
}

/** Null if there is none, or if other users may have read or written it: its secret is none then. */
function readPlace(path: string): Place | null {
  try {
    const { uid, mode } = statSync(placeFile(path));
    const isPrivate = process.getuid === undefined || (uid === process.getuid() && (mode & 0o077) === 0);
    const { port, secret, pid = 0 } = parseObject(readFileSync(placeFile(path), "utf8"));
    if (typeof port !== "number" || typeof secret !== "string" || typeof pid !== "number") return null;
    return isPrivate && /^[\w-]{32}$/.test(secret) ? { port, secret, pid } : null;
  } catch {
    return null; // There was none yet.
  }
}

const answerMs = 2_000;

async function isServing({ port, secret, pid }: Place): Promise<boolean> {
  try {
    if (!(pid > 0)) return false; // Other numbers name groups.
    process.kill(pid, 0); // Throws if there is no such process of ours.
    const signal = AbortSignal.timeout(answerMs);
    return (await fetch(`http://127.0.0.1:${port}/${secret}/status`, { signal, redirect: "error" })).ok;
  } catch {
    return false; // It is not running.
  }
}

// ── lcm run ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Returns the exit status of the program. */
export async function runAgent(request: RunRequest & { readonly context: CommandContext }): Promise<number> {
  const { context, database, storeOnly, withMcp, upstreams: named, command } = request;
  const upstreams = upstreamsFor(named, null);
  const { proxy, stop } = await start({
    context,
    place: database.place,
    port: 0,
    secret: randomBytes(24).toString("base64url"),
    storeOnly,
    upstreams,
    folder: process.cwd(),
    program: basename(command[0] ?? ""),
  });
  const run = randomBytes(6).toString("hex");
  const [, program = ""] = process.argv;
  const planned = commandFor(command, {
    urlOf: (name) => proxy.urlOf(name, run),
    mcp: withMcp ? [process.execPath, program, "--db", database.path, "mcp"] : null,
    env: process.env,
  });
  try {
    const [file = "", ...args] = planned.words;
    const child = spawn(file, args, { stdio: "inherit", env: { ...process.env, ...planned.env } });
    return await ended(child, file);
  } finally {
    await stop();
  }
}

/** The terminal sends Ctrl-C to both; other signals come to us alone and are passed on. */
async function ended(child: ChildProcess, file: string): Promise<number> {
  const ignore = (): void => undefined;
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
  const passed: readonly NodeJS.Signals[] = ["SIGTERM", "SIGHUP"];
  process.on("SIGINT", ignore);
  for (const signal of passed) process.on(signal, pass);
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once("error", (cause) =>
        reject(
          new LcmError("not_found", `${file} could not be started`, { hint: "check its name and your PATH", cause }),
        ),
      );
      child.once("exit", (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
    });
  } finally {
    process.off("SIGINT", ignore);
    for (const signal of passed) process.off(signal, pass);
  }
}
