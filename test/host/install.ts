/**
 * Installs the hosts that host tests run, when first needed, each in its own folder with its own lockfile. This keeps the
 * installation of this repository small for those who do not run host tests.
 */

import { spawn, spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Names the server whose schemas the gateways of a run use instead of files, see run.ts. */
export const serverVariable = "LCM_HOST_SERVER";

/** Options of Node that every host process of a run gets, see run.ts. */
export const nodeOptionsVariable = "LCM_HOST_NODE_OPTIONS";

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

const repositoryBin = fileURLToPath(new URL("../../node_modules/.bin/", import.meta.url));

/** Large hosts that are installed and tested only if a word on the command line names them. */
export const namedHosts = { "claude-code": "350 MB", codex: "440 MB", opencode: "450 MB" } as const;
export type NamedHost = keyof typeof namedHosts;

/** The program of a host that `npm run test:host -- NAME` has installed. */
export const namedHostBin = (name: NamedHost, program: string): string =>
  join(folderOf(name), "node_modules", ".bin", program);

const folderOf = (name: string): string => fileURLToPath(new URL(`${name}/`, import.meta.url));

/** The repository's own Node. */
export const hostNode = join(repositoryBin, "node");

/** The environment of every host process, so that `node` means the repository's there, too. */
export const hostPath = [repositoryBin, process.env["PATH"]].join(delimiter);

/** The host's folder; installs it first, by its lockfile, if absent. */
export async function hostBin(): Promise<HostBin> {
  const modules = await installHost("openclaw", "330 packages, 650 MB, about a minute");
  return {
    node: hostNode,
    openclaw: join(modules, "openclaw", "openclaw.mjs"),
    path: hostPath,
    compiled: join(modules, ".cache", "compiled"),
  };
}

/** Returns the folder of its packages. */
export async function installHost(name: string, size: string): Promise<string> {
  const folder = folderOf(name);
  const modules = join(folder, "node_modules");
  // Written last: an interrupted installation, or one of another lockfile, is repeated.
  const lock = join(folder, "package-lock.json");
  const installed = join(modules, ".installed-lock.json");
  if (existsSync(installed) && readFileSync(installed, "utf8") === readFileSync(lock, "utf8")) return modules;
  const started = performance.now();
  process.stdout.write(`host: installing ${name} into test/host/${name}, once: ${size}\n`);
  const npm = spawn("npm", ["ci", "--loglevel=error"], {
    cwd: folder,
    env: { ...process.env, PATH: hostPath },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [status] = await once(npm, "close");
  if (status !== 0) throw new Error(`npm ci in ${folder} ended with ${status}`);
  copyFileSync(lock, installed);
  process.stdout.write(`host: installed in ${Math.round((performance.now() - started) / 1000)} s\n`);
  return modules;
}

/** Pi's published program. Its package names others that it contains already, and that no registry has to have. */
const piPackage = {
  name: "@earendil-works/pi-coding-agent",
  version: "1.5.0",
  integrity: "sha512-xNDZ5kqowO6Z03FS2gwAkPEGk1ssxVcYKQ6qZId84mFEvwACvvyc2l0vAMOS+c5zvxLRMLBE9r4y44IGYkMJaQ==",
} as const;

/** What Node runs as `pi`. */
export const piProgram = join(folderOf("pi"), "node_modules", piPackage.name, "dist", "bundle", "cli.js");

export async function installPi(): Promise<void> {
  const { name, version, integrity } = piPackage;
  const modules = await installHost("pi", "39 MB, some seconds");
  if (existsSync(piProgram)) return;
  const run = (command: string, args: readonly string[]): string => {
    const options = { cwd: modules, env: { ...process.env, PATH: hostPath }, encoding: "utf8" } as const;
    const { status, stdout, stderr } = spawnSync(command, args, options);
    if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}: ${stderr}`);
    return stdout.trim();
  };
  const file = join(
    modules,
    run("npm", ["pack", "--silent", `${name}@${version}`])
      .split("\n")
      .at(-1) ?? "",
  );
  const found = `sha512-${hash("sha512", readFileSync(file), "base64")}`;
  if (found !== integrity) throw new Error(`${file} has the integrity ${found}, not ${integrity}`);
  const unfinished = mkdtempSync(join(modules, ".pi-"));
  run("tar", ["xzf", file, "-C", unfinished]);
  mkdirSync(join(modules, dirname(name)), { recursive: true });
  renameSync(join(unfinished, "package"), join(modules, name));
  for (const path of [unfinished, file]) rmSync(path, { recursive: true });
}
