/** Formats benchmark results: a table for the terminal, a page for the docs, and a plot of how cost grows. */

import type { Again, Drained } from "./again.ts";
import type { Compacted, Lived, PromptCost, Swept } from "./engine.ts";
import type { ContextFloor, StoreFloor } from "./floor.ts";
import type { Imported, Measured } from "./stage.ts";
import type { Shown } from "./tui.ts";

export interface Result {
  readonly name: string;
  readonly n: number;
  readonly imported: Imported;
  readonly measured: Measured;
  /** These two, and sweeps, only for the medium sizes, where it suffices. */
  readonly again: Again | null;
  readonly drained: Drained | null;
  readonly uncompacted: PromptCost;
  readonly swept: Swept | null;
  readonly compacted: Compacted;
  readonly lived: Lived;
  /** The terminal UI over the compacted conversation; null without a pseudo-terminal. */
  readonly shown: Shown | null;
  readonly floor: {
    readonly store: StoreFloor;
    readonly uncompacted: ContextFloor;
    readonly swept: ContextFloor | null;
    readonly compacted: ContextFloor;
  };
}

type Of = (result: Result) => number | undefined;

interface Figure {
  readonly label: string;
  readonly of: Of;
  readonly floor?: Of;
  /** Its name in the plot, if it is part of it. */
  readonly plotted?: string;
}

/** The renderer draws at most this often. */
const frameMs = 16;

const groups: Readonly<Record<string, readonly Figure[]>> = {
  "Store and open": [
    {
      label: "store a turn of four messages: CPU µs",
      of: ({ measured }) => measured.append.cpuUs,
      floor: ({ floor }) => floor.store.appendCpuUs,
      plotted: "store a turn",
    },
    { label: "· indexing included: CPU µs", of: ({ measured }) => measured.append.cpuWithIndexUs },
    {
      label: "· a single message: CPU µs",
      of: ({ measured }) => measured.append.oneCpuUs,
      floor: ({ floor }) => floor.store.appendOneCpuUs,
    },
    { label: "· elapsed ms, median", of: ({ measured }) => measured.append.wallMs.p50 },
    { label: "· elapsed ms, p99", of: ({ measured }) => measured.append.wallMs.p99 },
    {
      label: "import a transcript, indexing included: CPU µs per message",
      of: ({ imported, n }) => (imported.cpuS * 1e6) / n,
      floor: ({ floor, n }) => (floor.store.importCpuS * 1e6) / n,
      plotted: "import a message",
    },
    { label: "· peak memory (RSS), MB", of: ({ imported }) => imported.peakRssMb },
    { label: "· size of the database relative to the text", of: ({ imported }) => imported.sizeRatio },
    { label: "· again, nothing changed: CPU ms", of: ({ again }) => again?.unchangedCpuMs },
    {
      label: "· again, 100 messages more: CPU ms",
      of: ({ again }) => again?.grownCpuMs,
      floor: ({ floor, n }) => (100_000 * floor.store.importCpuS) / n,
    },
    {
      label: "open the database with its thread: ms",
      of: ({ measured }) => measured.openMs,
      floor: ({ floor }) => floor.store.openMs,
      plotted: "open the database",
    },
  ],
  Assemble: [
    {
      label: "prompt of 200k tokens, compacted conversation: CPU ms",
      of: ({ compacted }) => compacted.prompt.cpuMs,
      floor: ({ floor }) => floor.compacted.promptCpuMs,
      plotted: "assemble a prompt",
    },
    { label: "· items in the prompt", of: ({ compacted }) => compacted.prompt.items },
    { label: "· through the store's thread: elapsed ms", of: ({ compacted }) => compacted.prompt.wallMs },
    { label: "· summaries in the conversation", of: ({ compacted }) => compacted.summaries },
    {
      label: "prompt of 200k tokens, uncompacted conversation: CPU ms",
      of: ({ uncompacted }) => uncompacted.cpuMs,
      floor: ({ floor }) => floor.uncompacted.promptCpuMs,
    },
    { label: "· items in the prompt", of: ({ uncompacted }) => uncompacted.items },
    {
      label: "a whole turn, compaction included: CPU ms",
      of: ({ lived }) => lived.turnCpuMs,
      floor: ({ floor }) => floor.compacted.promptCpuMs + floor.store.appendCpuUs / 1_000,
      plotted: "a whole turn",
    },
    { label: "· bytes identical to the previous prompt: %", of: ({ lived }) => lived.prefixReused * 100 },
    { label: "· the first turn after draining them all: elapsed ms", of: ({ drained }) => drained?.firstTurnMs },
    { label: "· a later one: elapsed ms", of: ({ drained }) => drained?.laterTurnMs },
    { label: "· compactions in these turns", of: ({ lived }) => lived.compactions },
    { label: "· peak memory (RSS), MB", of: ({ lived }) => lived.peakRssMb },
  ],
  Compact: [
    {
      label: "full sweep with an instant model: CPU s",
      of: ({ swept }) => swept?.cpuS,
      floor: ({ floor }) => floor.swept?.sweepCpuS,
    },
    { label: "· passes", of: ({ swept }) => swept?.passes },
    { label: "· peak memory (RSS), MB", of: ({ swept }) => swept?.peakRssMb },
  ],
  Search: [
    {
      label: "rare word: ms",
      of: ({ measured }) => measured.rare.p50,
      floor: ({ floor }) => floor.store.rareMs,
      plotted: "search for a rare word",
    },
    {
      label: "word of medium frequency: ms",
      of: ({ measured }) => measured.mid.p50,
      floor: ({ floor }) => floor.store.midMs,
    },
    {
      label: "common word: ms",
      of: ({ measured }) => measured.common.p50,
      floor: ({ floor }) => floor.store.commonMs,
    },
    {
      label: "question of eight words: ms",
      of: ({ measured }) => measured.question.p50,
      floor: ({ floor }) => floor.store.questionMs,
      plotted: "search for a question",
    },
    { label: "· p95: ms", of: ({ measured }) => measured.question.p95 },
    { label: "· in one conversation with 1% of the messages: ms", of: ({ measured }) => measured.questionInShort.p50 },
    { label: "· in one conversation with 80% of the messages: ms", of: ({ measured }) => measured.questionInLong.p50 },
    {
      label: "regular expression without a match: ms",
      of: ({ measured }) => measured.regexNoMatchMs,
      floor: ({ floor }) => floor.store.regexMs,
      plotted: "search by regular expression",
    },
    {
      label: "· and without a literal: ms",
      of: ({ measured }) => measured.regexNoLiteralMs,
      floor: ({ floor }) => floor.store.regexNoLiteralMs,
    },
    { label: "· that matches only the oldest message: ms", of: ({ measured }) => measured.regexOldestMs },
    { label: "· runaway: ms until the next reader answers", of: ({ measured }) => measured.runawayMs },
  ],
  "Recall from a summary of depth 3, or the deepest": [
    { label: "messages below the summary", of: ({ compacted }) => compacted.recalled.messagesBelow },
    {
      label: "describe: ms",
      of: ({ compacted }) => compacted.recalled.describeMs,
      floor: ({ floor }) => floor.compacted.describeMs,
    },
    {
      label: "expand by one level: ms",
      of: ({ compacted }) => compacted.recalled.expandMs,
      floor: ({ floor }) => floor.compacted.expandMs,
    },
    {
      label: "expand to the messages, ranked: ms",
      of: ({ compacted }) => compacted.recalled.expandAskedMs,
      floor: ({ floor }) => floor.compacted.expandAskedMs,
    },
    {
      label: "answer a question without a model: ms",
      of: ({ compacted }) => compacted.recalled.askMs,
      floor: ({ floor }) => floor.store.questionMs,
    },
  ],
  "Terminal UI": [
    {
      label: "first screen: CPU ms",
      of: ({ shown }) => shown?.firstScreenCpuMs,
      floor: ({ floor }) => floor.store.nodeCpuMs,
      plotted: "first screen of the UI",
    },
    { label: "from a key to the screen: ms, median", of: ({ shown }) => shown?.all.p50, floor: () => frameMs },
    { label: "· p95: ms", of: ({ shown }) => shown?.all.p95, floor: () => frameMs },
  ],
};

const short = (value: number | undefined): string => {
  if (value === undefined) return "";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return value >= 100 ? Math.round(value).toLocaleString("en") : value >= 1 ? value.toFixed(1) : value.toPrecision(2);
};

function cell({ of, floor }: Figure, result: Result): string {
  const [ours, least] = [of(result), floor?.(result)];
  return least === undefined || ours === undefined ? short(ours) : `${short(ours)} / ${short(least)}`;
}

/** Plain text, for the terminal. */
export function table(results: readonly Result[]): string {
  const rows = Object.entries(groups).flatMap(([group, figures]) => [
    [group, ...results.map(({ name }) => name)],
    ...figures.map((figure) => [`  ${figure.label}`, ...results.map((result) => cell(figure, result))]),
  ]);
  const widths = results.map((_, at) => Math.max(...rows.map((row) => row[at + 1]?.length ?? 0)));
  const labels = Math.max(...rows.map(([label = ""]) => label.length));
  return rows
    .map(([label = "", ...cells]) =>
      [label.padEnd(labels), ...cells.map((text, at) => text.padStart(widths[at] ?? 0))].join("  "),
    )
    .join("\n");
}

export interface Circumstances {
  readonly machine: string;
  /** Seconds of a sweep with a slow model, by the number of concurrent calls. */
  readonly concurrency: Readonly<Record<string, number>>;
  /** The section about the other store, if it was measured. */
  readonly postgres: string | null;
}

const profile = `## Where the time goes

Regular expressions grow most with the size of the database, because they read every text: they take 0.7 to 1.3 times as long as a
bare loop. The three slowest steps after them were profiled on 2026-11-16 (\`node --cpu-prof\`, and the CPU of every statement) and
compared with the commit before, on the same files and questions through the store's thread, old and new alternating. The figures are
the lowest CPU of three runs (two at 1m and for the sweep) on a busy machine, so compare ratios. Answers and summaries are
byte-identical, except for random ids.

| step | before | after | ratio |
|---|---:|---:|---:|
| expand to the messages, ranked, 100k: CPU ms | 103 | 56 | 0.54× |
| · 1m: CPU ms | 262 | 89 | 0.34× |
| answer a question without a model, 100k: CPU ms | 101 | 61 | 0.60× |
| · 1m: CPU ms | 135 | 88 | 0.65× |
| full sweep of 100k with an instant model: CPU s | 5.5 | 4.1 | 0.75× |

- **Expanding** used to read thousands of rows only to find that they belong to another time; at 1m that was half of the time. The neighbours of
  a summary are now found by its id, and 19,000 ids are read as a few JSON texts instead of rows. Of the rest, a third is statements
  that read the rows to rank and show, and a fifth is finding words in 2 MB of their text. Reading fewer rows would change the result.
- **Questions and searches** now count words that cannot contain a wanted stem instead of extracting them (11 → 4.6 ns per character;
  a loop that only finds word ends takes 2.3), cut snippets without splitting the text, and read in a few batches. What limits them is
  the 4 MB of candidates to rank: reading these and finding words in them is three fifths of the rest, and fewer would rank worse.
- **A sweep** used to look at 1,024 items of the context for each pass, of which it needs 170; it now looks at 256. Of the rest, a third is
  statements and transactions that read the run, record the call and fold; a third decodes messages and writes the prompt; a fifth
  checks whether the answer is an echo, garbled or too long. That is about 5 ms a pass, while a model takes seconds. (New checks of
  answers, added the same day, take 0.4 s more: they are in these shares, and not in the table.)

What is still above three times its floor was profiled on 2026-11-19, at 10k and 20k:

- **A prompt** renders only the summaries that the one before did not show, which took it from 4.8 to 3.0 ms of CPU. Of the rest, two fifths
  are the statements, a fifth is collecting garbage, and an eighth is comparing checksums of summaries.
- **A sweep** spends 37% on statements and commits, 20% on writing the source text, 17% on finding standing instructions and dates, and
  15% on checking what the model answered.
- **A rare word** takes 0.09 ms in the thread that searches; the rest is the way to that thread and back.
- **The first turn after draining** costs what the first turn of any process does: its code has not been compiled yet. Index batches are
  no longer what it waits for.
- **Opening** is the start of a thread (8 ms), loading half a megabyte of program in it (20 ms), and opening the file (3 ms).
`;

export function page(results: readonly Result[], { machine, concurrency, postgres }: Circumstances): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const sections = Object.entries(groups).map(([group, figures]) =>
    [
      line([group, ...results.map(({ name }) => name)]),
      `|---|${"---:|".repeat(results.length)}`,
      ...figures.map((figure) => line([figure.label, ...results.map((result) => cell(figure, result))])),
    ].join("\n"),
  );
  const [first, last] = [results[0], results.at(-1)];
  const grown = Object.values(groups)
    .flat()
    .flatMap(({ plotted, of }) => {
      const [before, after] = [first && of(first), last && of(last)];
      if (plotted === undefined || before === undefined || after === undefined) return [];
      return [`${plotted} ${(after / before).toFixed(2)}×`];
    });
  const slow = Object.entries(concurrency).map(([calls, seconds]) => `${seconds.toFixed(1)} s at concurrency ${calls}`);
  return `# Benchmarks

Written by \`npm run bench -- --doc\`. The figures are from one run on one machine (${machine}). Compare
ratios rather than absolute times: machines are noisy, CPU time less so.

![How cost grows from a thousand messages to a million](growth.svg)

From ${first?.name ?? ""} to ${last?.name ?? ""}: ${grown.join(", ")}.

A cell with two figures shows ours first and the *floor* second: the same rows written or read by bare prepared statements in the
same run on the same file, with nothing else done ([bench/floor.ts](../bench/floor.ts)). For words the floor is SQLite's own ranking
(\`ORDER BY rank\`) over the same index, for regular expressions a bare loop over every text, for the first screen an empty Node
process, and for a key the ${frameMs} ms between two frames of the renderer.

[bench/corpus.ts](../bench/corpus.ts) generates the corpus: turns of four messages (user, assistant with a tool call, tool result,
assistant) of about 750 characters each, with word frequencies that follow Zipf's law. Four fifths are one conversation, the rest is twenty others. Searches
go through the store's thread, as in a host. A *compacted* conversation has been swept down to half of its budget of 200k
tokens whenever that was due, checked every 600 messages; an *uncompacted* one has had no sweep, and its prompt is the newest 200k tokens. Turns are measured on a compacted conversation: 1,000 more, each stored,
compacted if due, and assembled, in a process with the memory limits of \`lcm serve\`. The model answers at once, so the figures show our own cost only. The terminal UI is the built one, over the
compacted conversation on a pseudo-terminal of 120×40, with keys typed into messages, summaries and context.

${sections.join("\n\n")}

A sweep of 4,000 messages with a model that takes 200 ms: ${slow.join(", ")}.

${postgres === null ? "" : `${postgres}\n\n`}${profile}`;
}

// ── The plot ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const [width, height] = [860, 440];
const frame = { left: 60, right: 620, top: 50, bottom: 390 };
const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f7f7f", "#b8860b"];

/** Each cost as a multiple of its value at the smallest size; both axes are logarithmic. */
export function plot(results: readonly Result[]): string {
  const lines = Object.values(groups)
    .flat()
    .flatMap(({ plotted, of }) => {
      const first = results[0] && of(results[0]);
      if (plotted === undefined || first === undefined) return [];
      return [{ plotted, points: results.map((result) => ({ n: result.n, times: (of(result) ?? first) / first })) }];
    });
  const [from, to] = [results[0]?.n ?? 1, results.at(-1)?.n ?? 10];
  const most = Math.max(10, ...lines.flatMap(({ points }) => points.map(({ times }) => times)));
  const [low, high] = [Math.log10(0.3), Math.log10(most * 1.5)];
  const x = (n: number): number =>
    frame.left + ((frame.right - frame.left) * Math.log(n / from)) / Math.max(1e-9, Math.log(to / from));
  const y = (times: number): number =>
    frame.bottom - ((frame.bottom - frame.top) * (Math.log10(times) - low)) / (high - low);
  const at = (value: number): string => value.toFixed(1);

  const rules = [1, 10, 100, 1_000].filter((times) => times <= most * 1.5);
  const grid = rules.map(
    (times) => `<line class="grid" x1="${frame.left}" x2="${frame.right}" y1="${at(y(times))}" y2="${at(y(times))}"/>
<text x="${frame.left - 8}" y="${at(y(times) + 4)}" text-anchor="end">${times}×</text>`,
  );
  const sizes = results.map(
    ({ n, name }) => `<line class="grid" x1="${at(x(n))}" x2="${at(x(n))}" y1="${frame.top}" y2="${frame.bottom}"/>
<text x="${at(x(n))}" y="${frame.bottom + 20}" text-anchor="middle">${name}</text>`,
  );
  const ends = spaced(lines.map(({ points }) => y(points.at(-1)?.times ?? 1)));
  const drawn = lines.map(({ plotted, points }, line) => {
    const colour = colours[line % colours.length] ?? "";
    const path = points.map(({ n, times }) => `${at(x(n))},${at(y(times))}`).join(" ");
    const last = points.at(-1)?.times ?? 1;
    return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2.5"/>
<line x1="${frame.right}" y1="${at(y(last))}" x2="${frame.right + 14}" y2="${at(ends[line] ?? 0)}" stroke="${colour}"/>
<text x="${frame.right + 18}" y="${at((ends[line] ?? 0) + 4)}" style="fill:${colour}">${plotted} ${last.toFixed(last < 10 ? 2 : 0)}×</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="How cost grows">
<style>
text { font: 13px sans-serif; fill: #444 }
.title { font-weight: bold; fill: #111 }
.grid { stroke: #8884 }
@media (prefers-color-scheme: dark) { text { fill: #bbb } .title { fill: #eee } }
</style>
<text class="title" x="${frame.left}" y="28">Cost relative to ${results[0]?.name ?? ""} messages</text>
${[...grid, ...sizes, ...drawn].join("\n")}
<text x="${(frame.left + frame.right) / 2}" y="${height - 8}" text-anchor="middle">messages stored</text>
</svg>
`;
}

/** Labels at these heights, moved down until none overlap. */
function spaced(heights: readonly number[]): readonly number[] {
  const apart = 17;
  const placed = new Map<number, number>();
  let next = frame.top;
  for (const [index, height] of [...heights.entries()].toSorted(([, a], [, b]) => a - b)) {
    next = Math.max(next, height);
    placed.set(index, next);
    next += apart;
  }
  return heights.map((height, index) => placed.get(index) ?? height);
}
