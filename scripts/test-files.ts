/** Chooses the test files of a run, their order, and which of them share a process. */

import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { makeScratch } from "../test/support/scratch.ts";

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
  "test/tui/stories-keys.test.ts",
  "test/tui/stories.test.ts",
  "src/store/search/search.test.ts",
  "src/store/adopt/adopt.test.ts",
  "src/store/search/regex.test.ts",
  "src/core/maintenance/dissolve.test.ts",
];

const startsProcesses = /"node:(?:child_process|worker_threads)"|openSqliteWorker/;

/** So many that what a process takes to start hardly counts; so few that the last batch keeps nobody waiting for long. */
const filesPerBatch = 12;

/**
 * Host tests need the host, and run beside these. Some tests of a server crash it, or take long: `npm run test:postgres`.
 * Those of PgBouncer need it installed: `npm run test:pgbouncer`.
 */
export function testFiles(): readonly string[] {
  const exclude = ["test/host/**", "test/pgbouncer/**", "test/postgres-*.test.ts"];
  return longestFirst(globSync(["src/**/*.test.ts", "test/**/*.test.ts"], { exclude }));
}

/** Tests of single parts that are over soon and start no process. */
export function quickFiles(): readonly string[] {
  const isQuickly = (file: string): boolean => !isLong(file) && !startsProcesses.test(readFileSync(file, "utf8"));
  return globSync("src/{core,format,store}/**/*.test.ts").filter(isQuickly).toSorted();
}

/**
 * What is run instead of these files: modules that each load several short ones of `src`, and the others themselves. A
 * process that starts for one such file takes longer to load its modules than to run its tests. Each file is a suite
 * there, so that its hooks stay its own. Files of `test` start browsers, servers and programs, and share no process.
 */
export function inBatches(files: readonly string[]): readonly string[] {
  const folder = makeScratch("batches");
  const short = files.filter((file) => !isAlone(file));
  const batches = Array.from({ length: Math.ceil(short.length / filesPerBatch) }, (_, at) => {
    const path = join(folder, `batch-${at + 1}.mjs`);
    const suites = short.slice(at * filesPerBatch, (at + 1) * filesPerBatch).map(suiteOf);
    writeFileSync(path, ['import { describe } from "node:test";', ...suites, ""].join("\n"));
    return path;
  });
  return [...files.filter(isLong), ...batches, ...files.filter((file) => isAlone(file) && !isLong(file))];
}

const suiteOf = (file: string): string => {
  const url = pathToFileURL(resolve(file)).href;
  return `describe(${JSON.stringify(file)}, async () => void (await import(${JSON.stringify(url)})));`;
};

const ranks: ReadonlyMap<string, number> = new Map([...longFiles.entries()].map(([at, file]) => [resolve(file), at]));
const isLong = (file: string): boolean => ranks.has(resolve(file));
const isAlone = (file: string): boolean => isLong(file) || !file.startsWith(`src${sep}`);

/** A long file that begins last would keep one processor waiting for another. */
function longestFirst(files: readonly string[]): readonly string[] {
  const rankOf = (file: string): number => ranks.get(resolve(file)) ?? longFiles.length;
  return files.toSorted().toSorted((a, b) => rankOf(a) - rankOf(b));
}
