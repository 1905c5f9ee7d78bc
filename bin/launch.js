/**
 * Starts a program of this package on a Node that can run it. A bin gets whatever Node is first on the user's PATH;
 * when that one is too old, this finds a better one and starts the same bin again on it, or says what is missing.
 *
 * This file alone is read by the old Node. So it is plain JavaScript, and asks for nothing younger than Node 14: no
 * `node:` names, no syntax of later years.
 */

import { spawn, spawnSync } from "child_process";
import { existsSync, readFileSync, realpathSync } from "fs";
import { createRequire } from "module";
import { constants } from "os";
import { delimiter, dirname, join } from "path";
import { fileURLToPath, pathToFileURL } from "url";

/** Said once, in package.json: `>=24.16`. */
const nodeNeeded = neededNode();
const unavailable = 6;
/** Set for the second start, so that a Node that lies about its version cannot start itself for ever. */
const guard = "LCM_LAUNCHED";
const versionTimeoutMs = 10000;

/**
 * @typedef {{ readonly path: string, readonly version: string | null }} Candidate  A Node, and what it says it is.
 * @typedef {{ readonly [name: string]: string | undefined }} Environment
 */

/**
 * Runs `main(argv)` of a module on this Node, or on a better one; the process ends with the status it answers.
 *
 * @param {string} mainPath a module that exports `main(argv): Promise<number>`
 * @param {readonly string[]} argv
 * @param {(why: string) => void} onMissing says that there is no Node that will do
 * @returns {Promise<void>}
 */
export async function launch(mainPath, argv, onMissing = refuse) {
  if (isGoodEnough(process.versions.node)) {
    delete process.env[guard];
    rememberCompiled(mainPath);
    /** @type {{ main(argv: readonly string[]): Promise<number> }} */
    const program = await import(pathToFileURL(mainPath).href);
    process.exitCode = await program.main(argv);
    return;
  }
  const found = process.env[guard] ? [] : findNodes(process.env);
  const good = found.find((node) => isGoodEnough(node.version));
  if (good) await startAgain(good.path);
  else onMissing(explainMissing(found));
}

/**
 * Most of what a short command takes in a checkout is leaving the types out of its sources and compiling them. The result
 * is kept in the checkout itself: what lies in a folder that others may write to is not to be run.
 *
 * @param {string} mainPath
 */
function rememberCompiled(mainPath) {
  /** @type {{ enableCompileCache?: (folder: string) => unknown }} */
  const nodeModule = createRequire(import.meta.url)("module");
  if (mainPath.slice(-3) !== ".ts" || !nodeModule.enableCompileCache) return;
  const folder = join(packageRoot(), "node_modules", ".cache", "compiled");
  nodeModule.enableCompileCache(folder);
  // Threads do not inherit the cache itself, but they read the environment.
  if (!process.env.NODE_COMPILE_CACHE) process.env.NODE_COMPILE_CACHE = folder;
}

/**
 * A program's main module, the command line's by default: the sources in a checkout, so that a forgotten build is never
 * what runs; the built one where the package is installed, which has no sources.
 *
 * @param {string} name
 * @returns {string}
 */
export function programPath(name = "cli/main") {
  const source = join(packageRoot(), "src", `${name}.ts`);
  return existsSync(source) ? source : join(packageRoot(), "dist", `${name}.js`);
}

/**
 * `lcm-tui` is `lcm` with the terminal UI as what it does when no command is named.
 *
 * @param {readonly string[]} argv
 * @returns {readonly string[]}
 */
export function tuiArguments(argv) {
  // Of the options that stand before a command, these are the ones followed by a value.
  const valued = ["--db", "--sessions", "--model", "--provider", "--base-url", "--prompt-dir"];
  const isValue = (/** @type {number} */ at) => valued.indexOf(argv[at - 1] || "") !== -1;
  const asksVersion = argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V");
  const namesCommand = argv.some((word, at) => word.charAt(0) !== "-" && !isValue(at));
  return namesCommand || asksVersion ? argv : ["tui"].concat(argv);
}

/**
 * @param {string | null} version
 * @returns {boolean}
 */
function isGoodEnough(version) {
  const rank = (/** @type {string} */ text) => {
    const [major, minor] = text.split(".");
    return Number(major) * 1000 + Number(minor);
  };
  return version !== null && rank(version) >= rank(nodeNeeded);
}

// ── Looking for a Node ───────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Every Node there is besides this one, the most deliberate choice first, up to the first that will do.
 *
 * @param {Environment} env
 * @returns {readonly Candidate[]}
 */
function findNodes(env) {
  const places = [
    env.LCM_NODE,
    join(packageRoot(), "node_modules", ".bin", nodeFile()),
    nodeOfPackage(),
    ...(env.PATH || "").split(delimiter).map((folder) => folder && join(folder, nodeFile())),
  ];
  const seen = [realpathSync(process.execPath)];
  const found = [];
  for (const place of places) {
    if (!place || !existsSync(place) || seen.indexOf(realpathSync(place)) >= 0) continue;
    seen.push(realpathSync(place));
    const candidate = { path: place, version: versionOf(place) };
    found.push(candidate);
    if (isGoodEnough(candidate.version)) break;
  }
  return found;
}

/** @returns {string} */
function nodeFile() {
  return process.platform === "win32" ? "node.exe" : "node";
}

/** @returns {string} */
function nodePackage() {
  const platform = process.platform === "win32" ? "win" : process.platform;
  const prefix = platform === "darwin" && process.arch === "arm64" ? "node-bin" : "node";
  return `${prefix}-${platform}-${process.arch}`;
}

/** @returns {string | undefined} */
function nodeOfPackage() {
  try {
    const manifest = createRequire(import.meta.url).resolve(`${nodePackage()}/package.json`);
    return join(dirname(manifest), "bin", nodeFile());
  } catch {
    // Not installed, which is the usual case: it is one place of several.
    return undefined;
  }
}

/**
 * @param {string} path
 * @returns {string | null} null when it cannot be run or says something else
 */
function versionOf(path) {
  const answer = spawnSync(path, ["--version"], { encoding: "utf8", timeout: versionTimeoutMs });
  const said = answer.error ? "" : answer.stdout.trim();
  return /^v\d+\.\d+\.\d+/.test(said) ? said.slice(1) : null;
}

/**
 * @param {readonly Candidate[]} found
 * @returns {string}
 */
function explainMissing(found) {
  const others = found.map((node) =>
    node.version === null ? `${node.path} does not run as a Node` : `${node.path} is ${node.version}`,
  );
  return [
    `lossless-claw needs Node ${nodeNeeded} or newer, and this is Node ${process.versions.node} (${process.execPath}).`,
    `It looked for a newer one in LCM_NODE (${process.env.LCM_NODE || "not set"}), in node_modules/.bin beside the`,
    `package, in the package ${nodePackage()} and in every folder of PATH, and`,
    others.length > 0 ? `found only these: ${others.join("; ")}.` : "found no other.",
    "Install one from https://nodejs.org/en/download, or set LCM_NODE to the path of one that you have.",
  ].join(" ");
}

/** @param {string} why */
function refuse(why) {
  process.stderr.write(`${why}\n`);
  process.exitCode = unavailable;
}

// ── Starting again ───────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Runs this very command on another Node and ends as it ends.
 *
 * @param {string} node
 * @returns {Promise<void>}
 */
function startAgain(node) {
  const env = Object.assign({}, process.env);
  env[guard] = "1";
  const child = spawn(node, process.argv.slice(1), { stdio: "inherit", env });
  // A terminal sends its signals to the child as well; passing them on would turn one Ctrl-C into two.
  const hasTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  /** @type {readonly NodeJS.Signals[]} */
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) {
    process.on(signal, () => {
      if (signal === "SIGTERM" || !hasTerminal) child.kill(signal);
    });
  }
  return new Promise((resolve) => {
    child.on("error", (error) => {
      refuse(`lossless-claw found a Node at ${node}, but it did not start: ${error.message}`);
      resolve();
    });
    child.on("exit", (status, signal) => {
      for (const each of signals) process.removeAllListeners(each);
      if (signal) process.kill(process.pid, signal);
      process.exitCode = signal ? 128 + constants.signals[signal] : status || 0;
      resolve();
    });
  });
}

/** @returns {string} */
function neededNode() {
  /** @type {{ readonly engines: { readonly node: string } }} */
  const manifest = JSON.parse(readFileSync(join(packageRoot(), "package.json"), "utf8"));
  return manifest.engines.node.replace(/^>=/, "");
}

/** @returns {string} */
function packageRoot() {
  return dirname(dirname(fileURLToPath(import.meta.url)));
}
