/**
 * What is published, packed; and an npm registry on loopback that offers the packages lying in this repository and in the
 * host, and nothing else: what an installation needs from the network, without one.
 */

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { hostBin } from "./install.ts";

/** Packs a folder that has been built, and tells the tarball. */
export function pack(folder: string, into: string): string {
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", into, folder];
  const [{ filename }] = JSON.parse(execFileSync("npm", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }));
  return join(into, filename);
}

export interface Registry {
  /** For `npm_config_registry`. */
  readonly url: string;
  /** `npm install …` in a folder, as the host does it for a plugin. */
  install(folder: string, ...packages: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** The host wants some packages, also of its plugins, in the version that it has itself. */
const shelves = ["../../node_modules/", "openclaw/node_modules/"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);

export async function startRegistry(): Promise<Registry> {
  const server = createServer((request, response) => {
    const [name = "", version] = decodeURIComponent(request.url ?? "")
      .slice(1)
      .split("/-/");
    const found = foldersOf(name);
    const folder = found.get(version ?? "");
    if (folder !== undefined) response.end(packed(folder));
    else if (version === undefined && found.size > 0) response.end(JSON.stringify(described(name, found, url)));
    else response.writeHead(404).end("{}");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    async install(folder, ...packages) {
      const args = ["install", "--omit=dev", "--omit=peer", "--legacy-peer-deps", "--ignore-scripts", ...packages];
      // Not within the folder, which may be a plugin: the host copies all that lies there.
      const env = { PATH: (await hostBin()).path, HOME: dirname(folder), npm_config_registry: url };
      await promisify(execFile)("npm", args, { cwd: folder, env });
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

const manifestOf = (folder: string) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

/** By version. */
function foldersOf(name: string): ReadonlyMap<string, string> {
  const folders = shelves.map((shelf) => join(shelf, name)).filter((path) => existsSync(join(path, "package.json")));
  return new Map(folders.map((folder) => [String(manifestOf(folder).version), folder]));
}

function described(name: string, found: ReadonlyMap<string, string>, url: string): object {
  const [latest] = found.keys();
  const versions = [...found].map(([version, folder]) => [
    version,
    { ...manifestOf(folder), dist: { tarball: `${url}/${name}/-/${version}` } },
  ]);
  return { name, "dist-tags": { latest }, versions: Object.fromEntries(versions) };
}

function packed(folder: string): Buffer {
  const args = ["-cz", "--exclude=./node_modules", "--transform=s,^\\.,package,", "-C", folder, "."];
  const tarball = execFileSync("tar", args, { maxBuffer: 1e9 });
  assert(tarball.length > 0);
  return tarball;
}
