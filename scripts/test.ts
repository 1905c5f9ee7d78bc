/**
 * Runs every check (`npm test`), the quick ones first, or only those that answer within a minute (`npm run test:quick`).
 * A stage that passes prints one line; the first that fails shows its output, and ends the run. The tests of real hosts
 * mostly wait, and so run beside the others.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { startPostgres } from "../test/support/postgres-server.ts";
import { makeScratch } from "../test/support/scratch.ts";
import { inBatches, quickFiles, testFiles } from "./test-files.ts";

interface Stage {
  readonly name: string;
  /** One line on success, or null after showing the failure. */
  readonly check: () => Promise<string | null>;
}

const isQuick = process.argv.includes("--quick");
const isTimed = process.argv.includes("--times");

/** The pages of the explorer run in a browser, and have other types. */
const types = "tsc -p . && tsc -p src/web/pages";

/** One after the other; those in one row at the same time. */
const stages: readonly (readonly Stage[])[] = isQuick
  ? [
      [{ name: "types", check: () => command(types) }],
      [{ name: "lint", check: () => command("oxlint") }],
      [{ name: "tests", check: async () => await runTests(quickFiles()) }],
    ]
  : [
      [{ name: "types", check: () => command(types) }],
      [{ name: "lint", check: () => command("oxlint") }],
      [{ name: "format", check: () => command("oxfmt --check .") }],
      [{ name: "unused", check: () => command("knip") }],
      [{ name: "generated", check: () => command("node scripts/generate.ts --check") }],
      [
        { name: "tests", check: async () => await runTests(testFiles()) },
        { name: "host", check: () => command("node test/host/run.ts") },
      ],
    ];

/** A test file that takes longer hangs. */
const fileTimeoutMs = 15 * 60_000;

/** How many of the slowest files `npm test -- --times` lists. */
const timesShown = 60;

// Off the full hour and with summer time, unless a zone is given: time zone mistakes show here first.
process.env["TZ"] ??= "America/St_Johns";

// A hundred processes and some thousand threads read the same sources: they are compiled once.
process.env["NODE_COMPILE_CACHE"] ??= resolve(import.meta.dirname, "..", "node_modules", ".cache", "compiled");

// Expensive fixtures are made once, and shared here by all tests.
process.env["LCM_TEST_SHARED"] ??= makeScratch("shared");

/** Where each test file adds its processor time. */
const cpuTimes = join(makeScratch("times"), "cpu");
if (isTimed) process.env["LCM_TEST_CPU"] = cpuTimes;
/** How long test files took; those of hosts are timed by their own process. */
const elapsed = new Map<string, number>();

// Ended from outside, it still ends what it has started.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

const beganMs = performance.now();
for (const row of stages) {
  const passed = await Promise.all(row.map(runStage));
  if (isTimed && row.some(({ name }) => name === "tests")) printTimes();
  if (passed.includes(false)) process.exit(1);
}

if (isQuick) {
  const took = ((performance.now() - beganMs) / 1000).toFixed(0);
  console.log(`good as far as it goes, after ${took} s; \`npm test\` runs the rest:`);
  console.log("  format, unused code and generated pages; command line, terminal UI, hosts, proxy and MCP;");
  console.log(
    `  crashes and simulation; ${testFiles().length - quickFiles().length} of ${testFiles().length} test files, and those of real hosts`,
  );
}

async function runStage({ name, check }: Stage): Promise<boolean> {
  const started = performance.now();
  const good = await check();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (good === null) console.error(`✗ ${name} failed after ${seconds} s`);
  else console.log(`✓ ${[name.padEnd(10), `${seconds} s`.padStart(8), good].join(" ").trimEnd()}`);
  return good !== null;
}

/** The one line of a command that succeeds. */
async function command(line: string): Promise<string | null> {
  const child = spawn(line, { shell: true, stdio: ["ignore", "pipe", "pipe"] });
  process.once("exit", () => child.kill()); // The hosts would go on, if other tests cannot even start.
  const closed = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [status] = await closed;
  if (status === 0) return stdout.split("\n").findLast((said) => /OpenClaw\b/.test(said)) ?? "";
  process.stderr.write(`$ ${line}\n${stdout}${stderr}`);
  return null;
}

/** Shows failures as they happen, and skipped tests with the reason; passes are only counted. */
async function runTests(files: readonly string[]): Promise<string | null> {
  const execArgv = isTimed ? ["--import", new URL("cpu-time.ts", import.meta.url).href] : [];
  const server = isQuick ? null : await startPostgres();
  if (server !== null) process.env["LCM_TEST_POSTGRES"] = server.url;
  // The processor time of a file is known only if it has a process of its own.
  const processes = isTimed ? files : inBatches(files);
  // Towards the end there are tests of browsers and terminals, which wait for them.
  const concurrency = availableParallelism() + 1;
  const events = run({ files: processes, execArgv, concurrency, timeout: fileTimeoutMs });
  let summary = "";
  let isGood = false;
  events.on("test:pass", ({ name, skip }) => {
    if (skip !== undefined) console.log(`  skipped: ${name}${typeof skip === "string" ? ` (${skip})` : ""}`);
  });
  events.on("test:summary", ({ counts, file, duration_ms, success }) => {
    // Each file has its own summary; the last one, without a file, covers them all.
    if (file !== undefined) return void elapsed.set(relative("", file), duration_ms / 1000);
    isGood = success;
    summary = `${counts.tests} tests in ${files.length} files, ${counts.skipped} skipped`;
  });
  const failures = events.filter(({ type }) => type === "test:fail" || type === "test:stderr").compose(new spec());
  for await (const shown of failures) process.stderr.write(shown);
  await server?.stop();
  return isGood ? summary : null;
}

/** The files that take the most processor time, where it is known with that of the processes they start. */
function printTimes(): void {
  const lines = existsSync(cpuTimes) ? readFileSync(cpuTimes, "utf8").trimEnd().split("\n") : [];
  const costs = lines.map((line) => {
    const [file = "", own = "", others = ""] = line.split("\t");
    return { file, own: Number(own), others: Number(others) };
  });
  const total = costs.reduce((sum, { own, others }) => sum + own + others, 0);
  console.log(`  processor time of all files: ${total.toFixed(0)} s; those that take the most:`);
  console.log("   in all  started  elapsed");
  const shown = costs.toSorted((a, b) => b.own + b.others - a.own - a.others).slice(0, timesShown);
  for (const { file, own, others } of shown) {
    const seconds = [own + others, others, elapsed.get(file) ?? NaN];
    const cells = seconds.map((each) => (Number.isNaN(each) ? "–" : `${each.toFixed(1)} s`).padStart(9));
    console.log(`${cells.join("")}  ${file}`);
  }
}
