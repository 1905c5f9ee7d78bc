/**
 * Measures the cost of storing, searching, compacting, assembling and showing at each size: `npm run bench [-- 1k 10k
 * 100k 1m] [--doc]`. With `--doc` PostgreSQL is measured beside SQLite, too, and the figures of this run become
 * docs/benchmarks.md.
 *
 * Each size is imported in a separate process (for its memory) and measured in another. Compare ratios and CPU within
 * one run: machines are noisy. The floor is the same rows inserted with bare prepared statements in the same run.
 */

import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Again, Drained } from "./again.ts";
import { corpusEntry } from "./corpus.ts";
import type { Compacted, Lived, PromptCost, Swept } from "./engine.ts";
import type { ContextFloor, StoreFloor } from "./floor.ts";
import { page, plot, table } from "./page.ts";
import type { Result } from "./page.ts";
import { besideSqlite } from "./postgres-page.ts";
import type { Compared } from "./postgres-steps.ts";
import type { Imported, Measured } from "./stage.ts";
import type { Shown } from "./tui.ts";

const sizes = new Map([
  ["1k", 1_000],
  ["10k", 10_000],
  ["100k", 100_000],
  ["1m", 1_000_000],
]);
const writesPage = process.argv.includes("--doc");
const asked = process.argv
  .slice(2)
  .filter((name) => name !== "--doc")
  .map((name) => name.toLowerCase());
const chosen = [...sizes].filter(([name]) => asked.length === 0 || asked.includes(name));
if (chosen.length === 0) {
  console.error(`unknown size: ${asked.join(" ")}; choose from ${[...sizes.keys()].join(" ")}`);
  process.exit(2);
}

// The terminal UI is measured as published.
if (spawnSync(process.execPath, [fileURLToPath(new URL("../scripts/build.ts", import.meta.url))]).status !== 0)
  throw new Error("the build failed: see npm run build");

const folder = mkdtempSync(join(tmpdir(), "lcm-bench-"));
/** Where what needs a database of its own is measured, too. */
const mediumSizes = ["10k", "100k"];
const results: Result[] = [];
let concurrency: Readonly<Record<string, number>> = {};
try {
  for (const [name, n] of chosen) {
    const transcript = join(folder, `${name}.jsonl`);
    process.stderr.write(`${name}: writing the transcript …`);
    writeTranscript(transcript, n);
    process.stderr.write(" importing …");
    const database = join(folder, `${name}.db`);
    const imported = stage("stage", "import", database, transcript, String(n)) as Imported;
    process.stderr.write(" measuring …");
    const measured = stage("stage", "measure", database, transcript, String(n)) as Measured;
    process.stderr.write(" assembling …");
    const uncompacted = stage("engine", "prompt", database) as PromptCost;
    process.stderr.write(" floor …");
    const onStore = stage("floor", "store", database, transcript, String(n)) as StoreFloor;
    const onUncompacted = stage("floor", "context", database, "long", String(uncompacted.items)) as ContextFloor;
    clear(database);
    process.stderr.write(" importing again …");
    const sweeps = mediumSizes.includes(name);
    const again = sweeps ? (stage("again", "again", database, transcript, String(n)) as Again) : null;
    rmSync(transcript);
    clear(database);
    const drained = sweeps ? (stage("again", "drained", database, "", String(n)) as Drained) : null;
    clear(database);
    process.stderr.write(" sweeping …");
    const swept = sweeps ? (stage("engine", "sweep", database, String(n)) as Swept) : null;
    const onSwept = sweeps ? (stage("floor", "context", database, "sweep", "400") as ContextFloor) : null;
    clear(database);
    process.stderr.write(" compacted conversation …");
    const compacted = stage("engine", "compacted", database, String(n)) as Compacted;
    const lived = stage("engine", "lived", database, String(n)) as Lived;
    const items = String(compacted.prompt.items);
    const onCompacted = stage("floor", "context", database, "compacted", items) as ContextFloor;
    process.stderr.write(" terminal UI …\n");
    const shown = process.platform === "linux" ? (stage("tui", database) as Shown) : null;
    clear(database);
    const floor = { store: onStore, uncompacted: onUncompacted, swept: onSwept, compacted: onCompacted };
    results.push({ name, n, imported, measured, again, drained, uncompacted, swept, compacted, lived, shown, floor });
  }
  process.stderr.write("slow model …\n");
  concurrency = stage("engine", "concurrency", join(folder, "slow.db")) as typeof concurrency;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

const out = fileURLToPath(new URL("./out/", import.meta.url));
report(writesPage ? measurePostgres(chosen.map(([name]) => name).filter((name) => mediumSizes.includes(name))) : []);

/** By the benchmark of both stores, which prints its progress and leaves its figures in a file. */
function measurePostgres(names: readonly string[]): readonly Compared[] {
  if (names.length === 0) return [];
  process.stderr.write("PostgreSQL …\n");
  const script = fileURLToPath(new URL("./postgres.ts", import.meta.url));
  const { status } = spawnSync(process.execPath, [script, ...names], { stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error(`the benchmark of PostgreSQL failed with ${status}`);
  return JSON.parse(readFileSync(join(out, "postgres.json"), "utf8")) as readonly Compared[];
}

function writeTranscript(path: string, n: number): void {
  const file = openSync(path, "w");
  let lines: string[] = [];
  for (let index = 0; index < n; index++) {
    lines.push(JSON.stringify(corpusEntry(index)));
    if (lines.length === 2_000 || index === n - 1) {
      writeSync(file, `${lines.join("\n")}\n`);
      lines = [];
    }
  }
  closeSync(file);
}

function clear(database: string): void {
  for (const suffix of ["", ".floor", ".folds"].flatMap((copy) => ["", "-wal", "-shm"].map((log) => copy + log)))
    rmSync(`${database}${suffix}`, { force: true });
}

function stage(file: "stage" | "floor" | "again" | "engine" | "tui", ...args: readonly string[]): unknown {
  const script = fileURLToPath(new URL(`./${file}.ts`, import.meta.url));
  const child = spawnSync(process.execPath, [script, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 1 << 26,
  });
  if (child.status !== 0) throw new Error(`${args[0]} failed with ${child.status}`);
  return JSON.parse(child.stdout);
}

function report(compared: readonly Compared[]): void {
  const machine = `${cpus()[0]?.model ?? "unknown CPU"}, ${cpus().length} cores, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Node ${process.versions.node}`;
  console.log(`${table(results)}\n\n${machine}; the second figure in a cell is the floor`);
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, "latest.json"), JSON.stringify(results, null, 2));
  console.log("all figures: bench/out/latest.json");
  if (!writesPage) return;
  const docs = fileURLToPath(new URL("../docs/", import.meta.url));
  writeFileSync(
    join(docs, "benchmarks.md"),
    page(results, { machine, concurrency, postgres: compared.length > 0 ? besideSqlite(compared) : null }),
  );
  writeFileSync(join(docs, "growth.svg"), plot(results));
}
