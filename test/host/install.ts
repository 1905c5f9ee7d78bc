/**
 * The OpenClaw that host tests run: in a folder of its own with a lockfile of its own, installed when it is first
 * needed, so that installing this repository stays small for those who do not test against the host.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export interface HostBin {
  /** The repository's own Node; OpenClaw takes no other than 24 and 26. */
  readonly node: string;
  /** What that Node runs as `openclaw`. */
  readonly openclaw: string;
  /** For every process of the host, so that what it calls `node` is that one, too. */
  readonly path: string;
  /** Where what has been compiled once is kept: it halves the start of every gateway after the first. */
  readonly compiled: string;
}

const folder = fileURLToPath(new URL("openclaw/", import.meta.url));
const modules = join(folder, "node_modules");
const repositoryBin = fileURLToPath(new URL("../../node_modules/.bin/", import.meta.url));

/** Where the host is, after installing it unless it is there already, as its lockfile says. */
export async function hostBin(): Promise<HostBin> {
  const bin: HostBin = {
    node: join(repositoryBin, "node"),
    openclaw: join(modules, "openclaw", "openclaw.mjs"),
    path: [repositoryBin, process.env["PATH"]].join(delimiter),
    compiled: join(modules, ".cache", "compiled"),
  };
  // Written last: what was broken off, or is of another lockfile, is installed anew.
  const lock = join(folder, "package-lock.json");
  const installed = join(modules, ".installed-lock.json");
  if (existsSync(installed) && readFileSync(installed, "utf8") === readFileSync(lock, "utf8")) return bin;
  const started = performance.now();
  process.stdout.write(
    "host: installing openclaw into test/host/openclaw, once: 330 packages, 650 MB, about a minute\n",
  );
  const npm = spawn("npm", ["ci", "--loglevel=error"], {
    cwd: folder,
    env: { ...process.env, PATH: bin.path },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [status] = await once(npm, "close");
  if (status !== 0) throw new Error(`npm ci in ${folder} ended with ${status}`);
  copyFileSync(lock, installed);
  process.stdout.write(`host: installed in ${Math.round((performance.now() - started) / 1000)} s\n`);
  return bin;
}
