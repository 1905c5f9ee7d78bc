/**
 * Runs every check (`npm test`), the quick ones first, or only those that answer within a minute (`npm run test:quick`).
 * A stage that passes prints one line; the first that fails shows its output, and ends the run.
 */

import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { startPostgres } from "../test/support/postgres-server.ts";
import { makeScratch } from "../test/support/scratch.ts";

interface Stage {
  readonly name: string;
  /** One line on success, or null after showing the failure. */
  readonly check: () => string | null | Promise<string | null>;
}

const isQuick = process.argv.includes("--quick");

/** The pages of the explorer run in a browser, and have other types. */
const types = "tsc -p . && tsc -p src/web/pages";

const stages: readonly Stage[] = isQuick
  ? [
      { name: "types", check: () => command(types) },
      { name: "lint", check: () => command("oxlint") },
      { name: "tests", check: async () => await runTests(quickFiles()) },
    ]
  : [
      { name: "types", check: () => command(types) },
      { name: "lint", check: () => command("oxlint") },
      { name: "format", check: () => command("oxfmt --check .") },
      { name: "unused", check: () => command("knip") },
      { name: "generated", check: () => command("node scripts/generate.ts --check") },
      { name: "tests", check: async () => await runTests(testFiles()) },
      { name: "host", check: () => command("node test/host/run.ts") },
    ];

/** A test file that takes longer hangs. */
const fileTimeoutMs = 15 * 60_000;

/** Those that take the most processor time, the longest first, as `npm test -- --times` lists them. */
const longFiles: readonly string[] = [
  "test/store.test.ts",
  "test/scenarios/cli.test.ts",
  "test/scenarios/care.test.ts",
  "test/scenarios/import-export.test.ts",
  "test/scenarios/operator.test.ts",
  "test/simulation/simulation.test.ts",
  "test/scenarios/compact.test.ts",
  "test/scenarios/stopping.test.ts",
  "test/crash/operator.test.ts",
  "test/scenarios/json.test.ts",
  "test/scenarios/mcp.test.ts",
  "test/crash/power-cut.test.ts",
  "src/hosts/companion/hook.test.ts",
  "test/tui/survival.test.ts",
  "test/tui/work.test.ts",
  "test/scenarios/settings.test.ts",
  "test/tui/rewriting.test.ts",
  "test/scenarios/defaults.test.ts",
  "src/hosts/openclaw/engine.test.ts",
  "test/proxy/any-sequence.test.ts",
  "test/recall-floor.test.ts",
  "test/guides.test.ts",
  "test/scenarios/rewriting.test.ts",
  "test/scenarios/recall.test.ts",
  "test/tui/stories-changes.test.ts",
  "test/scenarios/prune.test.ts",
  "test/package.test.ts",
  "src/core/compaction/compact.test.ts",
  "src/core/compaction/compact-limits.test.ts",
  "test/scenarios/engine.test.ts",
  "test/scenarios/adopt.test.ts",
  "src/core/assembly/assemble-budget.test.ts",
  "src/core/ingest/deep-messages.test.ts",
  "src/core/maintenance/plan-fix.test.ts",
  "src/core/assembly/zoom.test.ts",
  "src/core/seen/rebuild.test.ts",
  "src/core/maintenance/transplant.test.ts",
  "src/store/search/search.test.ts",
  "src/store/adopt/adopt.test.ts",
  "src/store/search/regex.test.ts",
  "src/core/maintenance/dissolve.test.ts",
];

const startsProcesses = /"node:(?:child_process|worker_threads)"|openSqliteWorker/;

/** How many of the slowest files `npm test -- --times` lists. */
const timesShown = 60;

// Off the full hour and with summer time, unless a zone is given: time zone mistakes show here first.
process.env["TZ"] ??= "America/St_Johns";

// A hundred processes and some thousand threads read the same sources: they are compiled once.
process.env["NODE_COMPILE_CACHE"] ??= resolve(import.meta.dirname, "..", "node_modules", ".cache", "compiled");

// Expensive fixtures are made once, and shared here by all tests.
process.env["LCM_TEST_SHARED"] ??= makeScratch("shared");

const beganMs = performance.now();
for (const { name, check } of stages) {
  const started = performance.now();
  const good = await check();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (good === null) {
    console.error(`✗ ${name} failed after ${seconds} s`);
    process.exit(1);
  }
  console.log(`✓ ${[name.padEnd(10), `${seconds} s`.padStart(8), good].join(" ").trimEnd()}`);
}

if (isQuick) {
  const took = ((performance.now() - beganMs) / 1000).toFixed(0);
  console.log(`good as far as it goes, after ${took} s; \`npm test\` runs the rest:`);
  console.log("  format, unused code and generated pages; command line, terminal UI, hosts, proxy and MCP;");
  console.log(
    `  crashes and simulation; ${testFiles().length - quickFiles().length} of ${testFiles().length} test files, and those of real hosts`,
  );
}

/** The one line of a command that succeeds. */
function command(line: string): string | null {
  const { status, stdout, stderr } = spawnSync(line, { shell: true, encoding: "utf8", maxBuffer: 1e9 });
  if (status === 0) return stdout.split("\n").findLast((said) => /OpenClaw\b/.test(said)) ?? "";
  process.stderr.write(`$ ${line}\n${stdout}${stderr}`);
  return null;
}

/**
 * Host tests need the host, and come last. Some tests of a server crash it, or take long: `npm run test:postgres`. Those of
 * PgBouncer need it installed: `npm run test:pgbouncer`.
 */
function testFiles(): readonly string[] {
  const exclude = ["test/host/**", "test/pgbouncer/**", "test/postgres-*.test.ts"];
  return longestFirst(globSync(["src/**/*.test.ts", "test/**/*.test.ts"], { exclude }));
}

/** A long file that begins last would keep one processor waiting for another. */
function longestFirst(files: readonly string[]): readonly string[] {
  const rank = new Map([...longFiles.entries()].map(([at, file]) => [resolve(file), at]));
  const rankOf = (file: string): number => rank.get(resolve(file)) ?? longFiles.length;
  return files.toSorted().toSorted((a, b) => rankOf(a) - rankOf(b));
}

/** Tests of single parts that are over soon and start no process. */
function quickFiles(): readonly string[] {
  const isQuickly = (file: string): boolean =>
    !longFiles.some((long) => resolve(long) === resolve(file)) && !startsProcesses.test(readFileSync(file, "utf8"));
  return globSync("src/{core,format,store}/**/*.test.ts").filter(isQuickly).toSorted();
}

/** Shows failures as they happen, and skipped tests with the reason; passes are only counted. */
async function runTests(files: readonly string[]): Promise<string | null> {
  const isTimed = process.argv.includes("--times");
  const cpuTimes = join(makeScratch("times"), "cpu");
  if (isTimed) process.env["LCM_TEST_CPU"] = cpuTimes;
  const execArgv = isTimed ? ["--import", new URL("cpu-time.ts", import.meta.url).href] : [];
  const server = isQuick ? null : await startPostgres();
  if (server !== null) process.env["LCM_TEST_POSTGRES"] = server.url;
  const events = run({ files, execArgv, concurrency: availableParallelism(), timeout: fileTimeoutMs });
  let summary = "";
  let isGood = false;
  const seconds = new Map<string, number>();
  events.on("test:pass", ({ name, skip }) => {
    if (skip !== undefined) console.log(`  skipped: ${name}${typeof skip === "string" ? ` (${skip})` : ""}`);
  });
  events.on("test:summary", ({ counts, file, duration_ms, success }) => {
    // Each file has its own summary; the last one, without a file, covers them all.
    if (file !== undefined) return void seconds.set(relative("", file), duration_ms / 1000);
    isGood = success;
    summary = `${counts.tests} tests in ${files.length} files, ${counts.skipped} skipped`;
  });
  const failures = events.filter(({ type }) => type === "test:fail" || type === "test:stderr").compose(new spec());
  for await (const text of failures) process.stderr.write(text);
  await server?.stop();
  if (isTimed) printTimes(seconds, cpuTimes);
  return isGood ? summary : null;
}

/** The files that take the most processor time, where it is known with that of the processes they start. */
function printTimes(seconds: ReadonlyMap<string, number>, cpuTimes: string): void {
  const lines = existsSync(cpuTimes) ? readFileSync(cpuTimes, "utf8").trimEnd().split("\n") : [];
  const cpu = new Map<string, readonly number[]>();
  for (const [file = "", ...spent] of lines.map((line) => line.split("\t"))) cpu.set(file, spent.map(Number));
  const costs = [...seconds].map(([file, took]) => {
    const [own = 0, others = 0] = cpu.get(file) ?? [];
    return { file, took, own, others };
  });
  const total = costs.reduce((sum, { own, others }) => sum + own + others, 0);
  console.log(`  processor time of all files: ${total.toFixed(0)} s; those that take the most:`);
  console.log("   in all  started  elapsed");
  for (const { file, took, own, others } of costs
    .toSorted((a, b) => b.own + b.others - a.own - a.others)
    .slice(0, timesShown))
    console.log(`${[own + others, others, took].map((each) => `${each.toFixed(1)} s`.padStart(9)).join("")}  ${file}`);
}
