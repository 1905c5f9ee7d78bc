/**
 * `npm run bench [-- 1k 10k 100k 1m] [--doc]`: what storing, finding, compacting, assembling and showing cost at each size, and how it grows. With
 * `--doc` the figures of this run become docs/benchmarks.md.
 *
 * Each size is imported in a process of its own (for its memory) and measured in another. Compare ratios and CPU within
 * one run: machines are noisy. The floor is the same rows inserted with bare prepared statements in the same run.
 */

import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { corpusEntry } from "./corpus.ts";
import type { Lived, PromptCost, Swept } from "./engine.ts";
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

const folder = mkdtempSync(join(tmpdir(), "lcm-bench-"));
interface Result {
  readonly name: string;
  readonly n: number;
  readonly imported: Imported;
  readonly measured: Measured;
  readonly uncompacted: PromptCost;
  /** Only for the middling sizes: it says no more at the others. */
  readonly swept: Swept | null;
  readonly lived: Lived;
  /** The terminal UI over the lived conversation; null where there is no pseudo-terminal to be had. */
  readonly shown: Shown | null;
}
const sweptSizes = ["10k", "100k"];
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
    rmSync(transcript);
    process.stderr.write(" measuring …");
    const measured = stage("stage", "measure", database, transcript, String(n)) as Measured;
    process.stderr.write(" assembling …");
    const uncompacted = stage("engine", "prompt", database) as PromptCost;
    process.stderr.write(" sweeping …");
    const swept = sweptSizes.includes(name)
      ? (stage("engine", "sweep", `${database}.sweep`, String(n)) as Swept)
      : null;
    clear(database);
    clear(`${database}.sweep`);
    process.stderr.write(" living …");
    const lived = stage("engine", "life", database, String(n)) as Lived;
    process.stderr.write(" showing …\n");
    const shown = process.platform === "linux" ? (stage("tui", database) as Shown) : null;
    clear(database);
    results.push({ name, n, imported, measured, uncompacted, swept, lived, shown });
  }
  process.stderr.write("a slow model …\n");
  concurrency = stage("engine", "concurrency", join(folder, "slow.db")) as typeof concurrency;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

report();

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
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${database}${suffix}`, { force: true });
}

function stage(file: "stage" | "engine" | "tui", ...args: readonly string[]): unknown {
  const script = fileURLToPath(new URL(`./${file}.ts`, import.meta.url));
  const child = spawnSync(process.execPath, [script, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 1 << 26,
  });
  if (child.status !== 0) throw new Error(`${args[0]} failed with ${child.status}`);
  return JSON.parse(child.stdout);
}

function report(): void {
  const columns = results.map(({ name }) => name);
  const row = (label: string, cell: (result: (typeof results)[number]) => string): readonly string[] => [
    label,
    ...results.map(cell),
  ];
  const ms = (value: number): string =>
    value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(3);
  const pair = ({ p50, p95 }: { p50: number; p95: number }): string => `${ms(p50)} / ${ms(p95)}`;
  const table = [
    ["", ...columns],
    row("import: CPU s", ({ imported }) => imported.cpuS.toFixed(2)),
    row("import: wall s", ({ imported }) => imported.wallS.toFixed(2)),
    row("import: peak RSS MB", ({ imported }) => imported.peakRssMb.toFixed(0)),
    row("file over raw text", ({ imported }) => `${imported.sizeRatio.toFixed(2)}×`),
    row("append of a turn: CPU µs", ({ measured }) => measured.append.cpuUs.toFixed(0)),
    row("  wall ms p50 / p99", ({ measured }) => `${ms(measured.append.p50)} / ${ms(measured.append.p99)}`),
    row("  with its share of indexing: CPU µs", ({ measured }) => measured.append.cpuWithIndexUs.toFixed(0)),
    row("floor, bare statements: CPU µs", ({ measured }) => measured.floor.cpuUs.toFixed(0)),
    row("  append over floor", ({ measured }) => `${(measured.append.cpuUs / measured.floor.cpuUs).toFixed(2)}×`),
    row(
      "  with indexing over floor",
      ({ measured }) => `${(measured.append.cpuWithIndexUs / measured.floor.cpuUs).toFixed(2)}×`,
    ),
    row("open, worker included: ms", ({ measured }) => ms(measured.openMs)),
    row("rare term: ms p50 / p95", ({ measured }) => pair(measured.rare)),
    row("  right after the import: ms", ({ imported }) => ms(imported.rareAfterImportMs)),
    row("mid term: ms p50 / p95", ({ measured }) => pair(measured.mid)),
    row("common term: ms p50 / p95", ({ measured }) => pair(measured.common)),
    row("question, whole store: ms p50 / p95", ({ measured }) => pair(measured.question)),
    row("  in one conversation, 1% of it", ({ measured }) => pair(measured.questionInShort)),
    row("  in one conversation, 80% of it", ({ measured }) => pair(measured.questionInLong)),
    row("regex without match: ms", ({ measured }) => ms(measured.regexNoMatchMs)),
    row("regex without literal, no match: ms", ({ measured }) => ms(measured.regexNoLiteralMs)),
    row("regex, oldest message: ms", ({ measured }) => ms(measured.regexOldestMs)),
    row("runaway regex: new reader after ms", ({ measured }) => ms(measured.runawayMs)),
    row("prompt of 200k, uncompacted: CPU ms", ({ uncompacted }) => ms(uncompacted.cpuMs)),
    row("  items", ({ uncompacted }) => String(uncompacted.items)),
    row("prompt of 200k, lived: CPU ms", ({ lived }) => ms(lived.prompt.cpuMs)),
    row("  items", ({ lived }) => String(lived.prompt.items)),
    row("  µs an item", ({ lived }) => ((lived.prompt.cpuMs * 1_000) / lived.prompt.items).toFixed(1)),
    row("  through the thread: ms", ({ lived }) => ms(lived.prompt.wallMs)),
    row("  summaries below it / deepest", ({ lived }) => `${lived.summaries} / d${lived.deepest}`),
    row("a lived turn, compaction included: CPU ms", ({ lived }) => ms(lived.turnCpuMs)),
    row("  prefix bytes reused over 1,000 turns", ({ lived }) => `${(lived.prefixReused * 100).toFixed(1)}%`),
    row("  compactions among them", ({ lived }) => String(lived.compactions)),
    row("describe of a node of depth 3 (or the deepest): ms", ({ lived }) => ms(lived.recalled.describeMs)),
    row("  messages below it / its depth", ({ lived }) => `${lived.recalled.messagesBelow} / d${lived.recalled.depth}`),
    row("  expand it by a level: ms", ({ lived }) => ms(lived.recalled.expandMs)),
    row("  expand it to the messages, ranked: ms", ({ lived }) => ms(lived.recalled.expandAskedMs)),
    row("question to the conversation, without a model: ms", ({ lived }) => ms(lived.recalled.askMs)),
    row("life: peak RSS MB", ({ lived }) => lived.peakRssMb.toFixed(0)),
    row("terminal UI, first screen: CPU ms", ({ shown }) => (shown === null ? "" : ms(shown.firstScreenCpuMs))),
    row("  from a key to the screen: ms p50 / p95", ({ shown }) => (shown === null ? "" : pair(shown.all))),
    row("full sweep, instant model: CPU s", ({ swept }) => (swept === null ? "" : swept.cpuS.toFixed(2))),
    row("  passes", ({ swept }) => (swept === null ? "" : String(swept.passes))),
    row("  peak RSS MB", ({ swept }) => (swept === null ? "" : swept.peakRssMb.toFixed(0))),
  ];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((cells) => cells[column]?.length ?? 0))) ?? [];
  for (const cells of table) {
    console.log(
      cells
        .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart((widths[at] ?? 0) + 2)))
        .join(""),
    );
  }
  const first = results[0];
  const last = results.at(-1);
  const growth =
    first === undefined || last === undefined || first === last
      ? ""
      : `From ${first.name} to ${last.name}, appending grows ${grown(first, last, ({ measured }) => measured.append.cpuUs)}, a lived prompt ${grown(first, last, ({ lived }) => lived.prompt.cpuMs / lived.prompt.items)} an item, a lived turn ${grown(first, last, ({ lived }) => lived.turnCpuMs)}.`;
  const slow = Object.entries(concurrency).map(
    ([workers, seconds]) => `${seconds.toFixed(1)} s at concurrency ${workers}`,
  );
  const slowly = `A sweep of 4,000 messages with a model that takes 200 ms: ${slow.join(", ")}.`;
  const machine = `${cpus()[0]?.model ?? "unknown CPU"}, ${cpus().length} cores, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Node ${process.versions.node}`;
  console.log(`\n${growth}\n${slowly}\n${machine}`);
  const out = fileURLToPath(new URL("./out/", import.meta.url));
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, "latest.json"), JSON.stringify(results, null, 2));
  console.log("all figures: bench/out/latest.json");
  if (writesPage)
    writeFileSync(
      fileURLToPath(new URL("../docs/benchmarks.md", import.meta.url)),
      page(table, `${growth}\n\n${slowly}`, machine),
    );
}

function grown(first: Result, last: Result, figure: (result: Result) => number): string {
  return `${(figure(last) / figure(first)).toFixed(2)}×`;
}

/** The table as a page. Its first row is the head; a label that begins with blanks belongs to the one above. */
function page(table: readonly (readonly string[])[], growth: string, machine: string): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replace(/^ +/, "· ")).join(" | ")} |`;
  const [head = [], ...rows] = table;
  return `# What it costs

Written by \`npm run bench -- --doc\`; the figures are those of one run on one machine (${machine}). Compare ratios: machines
are noisy, CPU time less so.

The corpus is made by [bench/corpus.ts](../bench/corpus.ts): turns of four messages (user, assistant with a tool call,
tool result, assistant) of about 750 characters each, words by Zipf's law. Four fifths are one conversation, the rest is
twenty others. The *floor* is the same rows (messages, parts, context, totals; values ready) inserted with bare prepared
statements, in the same run, on the same file. Searches go through the store's thread, as in a host.

A *lived* conversation has had a full sweep every 600 messages; an *uncompacted* one never (then the prompt is its newest
200k tokens). The life measured after that is 1,000 turns more, each stored, compacted if due, and assembled. The model
answers at once, so what is measured is ours. The terminal UI is measured over the same conversation on a pseudo-terminal
of 120×40, with keys typed into messages, summaries and the context; it draws at most every 16 ms.

${line(head)}
|---|${"---:|".repeat(head.length - 1)}
${rows.map(line).join("\n")}

${growth}
`;
}
