/**
 * Installs the OpenClaw that host tests run, when first needed, in its own folder with its own lockfile. This keeps the
 * installation of this repository small for those who do not run host tests.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export interface HostBin {
  /** The repository's own Node; OpenClaw accepts only 24 and 26. */
  readonly node: string;
  /** What that Node runs as `openclaw`. */
  readonly openclaw: string;
  /** The environment of every host process, so that `node` means that one there, too. */
  readonly path: string;
  /** The compile cache: it halves the start of every gateway after the first. */
  readonly compiled: string;
}

const folder = fileURLToPath(new URL("openclaw/", import.meta.url));
const modules = join(folder, "node_modules");
const repositoryBin = fileURLToPath(new URL("../../node_modules/.bin/", import.meta.url));

/** The host's folder; installs it first, by its lockfile, if absent. */
export async function hostBin(): Promise<HostBin> {
  const bin: HostBin = {
    node: join(repositoryBin, "node"),
    openclaw: join(modules, "openclaw", "openclaw.mjs"),
    path: [repositoryBin, process.env["PATH"]].join(delimiter),
    compiled: join(modules, ".cache", "compiled"),
  };
  // Written last: an interrupted installation, or one of another lockfile, is repeated.
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
