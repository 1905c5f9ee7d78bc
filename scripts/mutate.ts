/**
 * Mutation testing (`npm run mutate`): changes src/core, src/store or src/proxy in one place at a time, and checks that a
 * test fails. Not part of `npm test`, because it takes hours; docs/mutation.md has the results.
 *
 *     npm run mutate -- --sample 800 --seed 1 --json mutants.json   a sample, stratified over the files;
 *                                                                   three times as many of those named by --dense
 *     npm run mutate -- src/core/compaction/choose-runs.ts          all mutants of the named files
 *     npm run mutate -- src/proxy/align.ts                          the same of the proxy, with the proxy's tests
 *     npm run mutate -- --json mutants.json --resume                undecided mutants, and survivors at the cap
 *     npm run mutate -- --json mutants.json --retry                 the survivors again, after new tests
 *
 * Everything runs in copies of the tree, one per worker (`--workers`), so killed tests may leave anything behind. First
 * each test runs alone under coverage. A mutant is then run against the tests that reach it: the test of its file
 * first, then those that killed others of that file, then the quickest, until one fails or their usual durations add up
 * to `--cap` seconds. A test that takes far longer than usual has failed too.
 */

import { spawn } from "node:child_process";
import { cpSync, globSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createRandom } from "../test/support/random.ts";
import { makeScratch } from "../test/support/scratch.ts";
import { mutantsOf } from "./mutants.ts";
import type { Mutant } from "./mutants.ts";

interface Test {
  readonly name: string;
  readonly args: readonly string[];
  /** Processor time: the same however busy the machine is. */
  readonly ms: number;
}

interface Trial extends Mutant {
  /** Names of the tests that reach it. */
  tests: readonly string[];
  verdict: "open" | "killed" | "timeout" | "survived" | "uncovered";
  killer?: string;
  /** Tests that did not notice. */
  passed: string[];
}

const { values: options, positionals: paths } = parseArgs({
  allowPositionals: true,
  options: {
    root: { type: "string", default: join(import.meta.dirname, "..") },
    sample: { type: "string", default: "1000000" },
    seed: { type: "string", default: "1" },
    dense: { type: "string", multiple: true, default: [] },
    json: { type: "string" },
    resume: { type: "boolean", default: false },
    retry: { type: "boolean", default: false },
    workers: { type: "string", default: "2" },
    cap: { type: "string", default: "25" },
  },
});
const root = resolve(options.root);
/** The proxy has tests of its own; the others are not run for it. */
const isProxy = paths.length > 0 && paths.every((path) => path.startsWith("src/proxy"));
/** Prose, types and schema tables have no behaviour to mutate; other tests check them. */
const leftOut = ["**/*.test.ts", "**/prompts.ts", "**/settings-pages.ts", "**/schema.ts", "**/ports.ts"];
/** Elapsed time, on a machine that may be busy. */
const timeoutMs = (usualMs: number): number => 20_000 + 10 * usualMs;
const saysCost = `data:text/javascript,${encodeURIComponent(
  `process.on("exit", () => console.log("\\n# cost", Math.round(process.cpuUsage().user / 1000)))`,
)}`;

/** A part of the store's contract as a separate test, so that a mutant runs only the parts that reach it. */
const contractTest = `import { dirname, join } from "node:path";
import { restore } from "../../store/backup.ts";
import { openSqlite } from "../../store/sqlite.ts";
import { VERB } from "./PART.ts";
VERB({
  open: async (path) => await openSqlite({ path }),
  restore: async (from, path) => {
    await restore(from, path, join(dirname(path), "lcm-files"), "2026-02-17T07:37:00.000Z");
  },
});
`;

// Ctrl-C ends here too, so that the copies are removed.
process.on("SIGINT", () => process.exit(130));

const copies = Array.from({ length: Number(options.workers) }, copyTree);
const { trials, ...kept }: { readonly trials: Trial[]; readonly tests: readonly Test[] } =
  options.json !== undefined && (options.resume || options.retry)
    ? JSON.parse(readFileSync(options.json, "utf8"))
    : { trials: chooseMutants(), tests: [] };
const tests = new Map(kept.tests.map((test) => [test.name, test]));
if (options.retry) for (const trial of trials) if (trial.verdict === "survived") trial.passed = [];
if (options.retry || tests.size === 0) await cover();

/** Untried mutants come before those that reached the cap. */
const open = trials
  .filter(({ verdict }) => ["open", "survived", "uncovered"].includes(verdict))
  .toSorted((a, b) => Number(b.verdict === "open") - Number(a.verdict === "open"));
const total = open.length;
const kills = new Map<string, number>();
for (const { file, killer } of trials) if (killer !== undefined) countKill(file, killer);
await Promise.all(copies.map(work));
report();

// ── The copies ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** The working tree as it is, with a folder for what the tests write. */
function copyTree(): string {
  const copy = makeScratch("mutants");
  for (const name of readdirSync(root)) {
    if (/^(?:\.git|node_modules|dist)$/.test(name)) continue;
    cpSync(join(root, name), join(copy, name), { recursive: true, filter: (path) => !path.includes("node_modules") });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  mkdirSync(join(copy, "left"));
  const scratch = join(copy, "test/support/scratch.ts");
  writeFileSync(scratch, readFileSync(scratch, "utf8").replace('"/dev/shm"', JSON.stringify(join(copy, "left"))));
  const contract = readFileSync(join(copy, "test/store-contract/suite.ts"), "utf8");
  for (const [, verb, part] of contract.matchAll(/import \{ (test\w+) \} from "\.\/(contract\/[\w-]+)\.ts"/g)) {
    const file = join(copy, `test/support/${part}.test.ts`);
    writeFileSync(file, contractTest.replaceAll("VERB", `${verb}`).replace("PART", `${part}`.replace("contract/", "")));
  }
  return copy;
}

// ── The mutants, and the tests that reach them ───────────────────────────────────────────────────────────────────────

/**
 * Each file gives its share of the sample, and at least one; they are shuffled, so that a part of the run is a sample
 * too.
 */
function chooseMutants(): Trial[] {
  const files = globSync(isProxy ? "src/proxy/**/*.ts" : "src/{core,store}/**/*.ts", { cwd: root, exclude: leftOut })
    .filter((file) => paths.length === 0 || paths.some((path) => file.startsWith(path)))
    .toSorted();
  const all = files.map((file) => mutantsOf(file, readFileSync(join(root, file), "utf8")));
  const weightOf = (file: string | undefined): number => (options.dense.some((path) => file?.startsWith(path)) ? 3 : 1);
  const weight = all.reduce((sum, mutants) => sum + mutants.length * weightOf(mutants[0]?.file), 0);
  const random = createRandom(Number(options.seed));
  const chosen = all.flatMap((mutants) => {
    const share = (Number(options.sample) * mutants.length * weightOf(mutants[0]?.file)) / weight;
    return random.shuffled(mutants).slice(0, Math.max(1, Math.round(share)));
  });
  return random.shuffled(chosen).map((mutant) => ({ ...mutant, tests: [], verdict: "open", passed: [] }));
}

/** Runs every test once, unmutated. */
async function cover(): Promise<void> {
  const [copy] = copies;
  if (copy === undefined) return;
  const reached = new Map(trials.map((trial) => [trial, new Set<string>()]));
  // Without the tests of faults: one of them mounts a disk.
  const proxys = ["src/proxy/**/*.test.ts", "test/proxy/!(faults).test.ts"];
  const cores = ["src/{core,store,agent-tools}/**/*.test.ts", "test/simulation/*.test.ts"];
  const files = globSync(isProxy ? proxys : cores, { cwd: copy }).toSorted();
  for (const [at, name] of files.entries()) {
    process.stdout.write(`\r\x1b[Kcovering ${at + 1}/${files.length} ${name}`);
    const args = name.startsWith("test/simulation") ? ["--test-name-pattern=lives of", name] : [name];
    const folder = join(copy, "coverage");
    const { verdict, ms } = await run(copy, { name, args, ms: 120_000 }, { NODE_V8_COVERAGE: folder });
    if (verdict !== "passed") console.log(`\r\x1b[K${name} fails without a mutant; skipped`);
    else tests.set(name, { name, args, ms });
    const counts = readCoverage(folder, copy);
    for (const [trial, names] of reached) if (counts.some((reach) => reach(trial))) names.add(name);
    rmSync(folder, { recursive: true, force: true });
  }
  for (const [trial, names] of reached) trial.tests = [...names].filter((name) => tests.has(name));
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}
interface Script {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly Range[] }[];
}

/** One for each thread that wrote coverage: whether it reached the position of a mutant. */
function readCoverage(folder: string, copy: string): readonly ((mutant: Mutant) => boolean)[] {
  return globSync(join(folder, "*.json")).map((path) => {
    const { result: scripts }: { readonly result: readonly Script[] } = JSON.parse(readFileSync(path, "utf8"));
    const ranges = new Map(
      scripts
        .filter(({ url }) => url.startsWith("file:") && fileURLToPath(url).startsWith(copy))
        .map(({ url, functions }) => [
          fileURLToPath(url).slice(copy.length + 1),
          functions
            .flatMap(({ ranges }) => ranges)
            .toSorted((a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset)),
        ]),
    );
    return ({ file, start }) =>
      (ranges.get(file)?.find(({ startOffset, endOffset }) => startOffset <= start && start < endOffset)?.count ?? 0) >
      0;
  });
}

// ── Running ──────────────────────────────────────────────────────────────────────────────────────────────────────────

async function work(copy: string): Promise<void> {
  for (let trial = open.shift(); trial !== undefined; trial = open.shift()) {
    const path = join(copy, trial.file);
    const source = readFileSync(join(root, trial.file), "utf8");
    if (!source.startsWith(trial.original, trial.start))
      throw new Error(`${place(trial)} has changed: start over without --resume`);
    writeFileSync(path, source.slice(0, trial.start) + trial.replacement + source.slice(trial.end));
    await decide(trial, copy);
    writeFileSync(path, source);
    if (options.json !== undefined)
      writeFileSync(options.json, JSON.stringify({ trials, tests: [...tests.values()] }, null, 1));
    const survived = trials.filter(({ verdict }) => verdict === "survived").length;
    process.stdout.write(
      `\r\x1b[K${total - open.length}/${total}, ${survived} survived, ${place(trial)} ${trial.verdict}`,
    );
  }
}

async function decide(trial: Trial, copy: string): Promise<void> {
  trial.verdict = trial.tests.length === 0 ? "uncovered" : "survived";
  let left = 1000 * Number(options.cap);
  for (const test of inOrder(trial)) {
    left -= test.ms;
    // The first may always run, however long it takes.
    if (left < 0 && trial.passed.length > 0) return;
    const { verdict } = await run(copy, test, { NODE_COMPILE_CACHE: join(copy, "compiled") });
    if (verdict === "passed") {
      trial.passed.push(test.name);
      continue;
    }
    trial.verdict = verdict === "failed" ? "killed" : "timeout";
    trial.killer = test.name;
    countKill(trial.file, test.name);
    return;
  }
}

function countKill(file: string, test: string): void {
  const key = `${file} ${test}`;
  kills.set(key, (kills.get(key) ?? 0) + 1);
}

function inOrder({ file, tests: names, passed }: Trial): readonly Test[] {
  const rank = ({ name, ms }: Test): number =>
    name === file.replace(/\.ts$/, ".test.ts") ? -1 : ms / (1 + 10 * (kills.get(`${file} ${name}`) ?? 0));
  return names
    .flatMap((name) => (passed.includes(name) ? [] : (tests.get(name) ?? [])))
    .toSorted((a, b) => rank(a) - rank(b));
}

/** The first failure ends it. */
async function run(copy: string, test: Test, env: NodeJS.ProcessEnv) {
  const child = spawn(process.execPath, ["--import", saysCost, "--test-reporter=tap", ...test.args], {
    cwd: copy,
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, TZ: "America/St_Johns", SEEDS: "12", TMPDIR: join(copy, "left"), ...env },
  });
  const end = (): void => {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  };
  const exited = new Promise<number | null>((done) => child.once("close", done));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    end();
  }, timeoutMs(test.ms));
  // Before the copies are removed, or it would go on writing into them.
  process.prependOnceListener("exit", end);
  let ms = 0;
  child.stdout.setEncoding("utf8").on("data", (said: string) => {
    if (/^\s*not ok /m.test(said)) end();
    ms = Number(/^# cost (\d+)/m.exec(said)?.[1] ?? ms);
  });
  const status = await exited;
  clearTimeout(timer);
  process.off("exit", end);
  for (const name of readdirSync(join(copy, "left")))
    rmSync(join(copy, "left", name), { recursive: true, force: true });
  const verdict = status === 0 ? "passed" : isLate ? "late" : "failed";
  return { verdict, ms } as const;
}

// ── The report ───────────────────────────────────────────────────────────────────────────────────────────────────────

function place({ file, line }: Mutant): string {
  return `${file}:${line}`;
}

function report(): void {
  const short = (text: string): string => text.replaceAll(/\s+/g, " ").slice(0, 100);
  console.log("\r\x1b[K");
  const files = Map.groupBy(
    trials.toSorted((a, b) => a.file.localeCompare(b.file)),
    ({ file }) => file,
  );
  for (const [file, of] of files) {
    const killed = of.filter(({ verdict }) => verdict === "killed" || verdict === "timeout").length;
    console.log(`${`${killed}/${of.length}`.padStart(9)}  ${file}`);
  }
  const killed = trials.filter(({ verdict }) => verdict === "killed" || verdict === "timeout").length;
  console.log(`${killed} of ${trials.length} killed (${((100 * killed) / trials.length).toFixed(1)} %)\n`);
  for (const trial of trials.toSorted((a, b) => a.file.localeCompare(b.file) || a.line - b.line)) {
    const isOpen = trial.tests.some((name) => !trial.passed.includes(name));
    const rest = trial.verdict === "survived" ? (isOpen ? " (up to the cap)" : "") : ` (${trial.verdict})`;
    if (trial.verdict === "killed") continue;
    console.log(`${place(trial)}  ${short(trial.original)} → ${short(trial.replacement)}${rest}`);
  }
}
