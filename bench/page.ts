/**
 * Formats the results of the benchmark: a table for the terminal, a page for the docs, and a plot of how cost grows.
 */

import type { Lived, PromptCost, Swept } from "./engine.ts";
import type { ContextFloor, StoreFloor } from "./floor.ts";
import type { Imported, Measured } from "./stage.ts";
import type { Shown } from "./tui.ts";

export interface Result {
  readonly name: string;
  readonly n: number;
  readonly imported: Imported;
  readonly measured: Measured;
  readonly uncompacted: PromptCost;
  /** Only for the medium sizes, where it suffices. */
  readonly swept: Swept | null;
  readonly lived: Lived;
  /** The terminal UI over the compacted conversation; null without a pseudo-terminal. */
  readonly shown: Shown | null;
  readonly floor: {
    readonly store: StoreFloor;
    readonly uncompacted: ContextFloor;
    readonly swept: ContextFloor | null;
    readonly lived: ContextFloor;
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
  Storing: [
    {
      label: "a turn of four messages: CPU µs",
      of: ({ measured }) => measured.append.cpuUs,
      floor: ({ floor }) => floor.store.appendCpuUs,
      plotted: "storing a turn",
    },
    { label: "· with its share of indexing", of: ({ measured }) => measured.append.cpuWithIndexUs },
    { label: "· wall ms, median", of: ({ measured }) => measured.append.wallMs.p50 },
    { label: "· wall ms, p99", of: ({ measured }) => measured.append.wallMs.p99 },
    {
      label: "importing a transcript, indexed: CPU µs a message",
      of: ({ imported, n }) => (imported.cpuS * 1e6) / n,
      floor: ({ floor, n }) => (floor.store.importCpuS * 1e6) / n,
      plotted: "importing a message",
    },
    { label: "· peak RSS MB", of: ({ imported }) => imported.peakRssMb },
    { label: "· file over raw text", of: ({ imported }) => imported.sizeRatio },
    {
      label: "opening, with its thread: ms",
      of: ({ measured }) => measured.openMs,
      floor: ({ floor }) => floor.store.openMs,
      plotted: "opening",
    },
  ],
  Prompting: [
    {
      label: "prompt of 200k tokens, lived: CPU ms",
      of: ({ lived }) => lived.prompt.cpuMs,
      floor: ({ floor }) => floor.lived.promptCpuMs,
      plotted: "a prompt",
    },
    { label: "· items in it", of: ({ lived }) => lived.prompt.items },
    { label: "· through the thread: wall ms", of: ({ lived }) => lived.prompt.wallMs },
    { label: "· summaries below it", of: ({ lived }) => lived.summaries },
    {
      label: "prompt of 200k tokens, uncompacted: CPU ms",
      of: ({ uncompacted }) => uncompacted.cpuMs,
      floor: ({ floor }) => floor.uncompacted.promptCpuMs,
    },
    { label: "· items in it", of: ({ uncompacted }) => uncompacted.items },
    {
      label: "a lived turn, compaction included: CPU ms",
      of: ({ lived }) => lived.turnCpuMs,
      floor: ({ floor }) => floor.lived.promptCpuMs + floor.store.appendCpuUs / 1_000,
      plotted: "a whole turn",
    },
    { label: "· prefix bytes reused over 1,000 turns: %", of: ({ lived }) => lived.prefixReused * 100 },
    { label: "· compactions among them", of: ({ lived }) => lived.compactions },
    { label: "· peak RSS MB", of: ({ lived }) => lived.peakRssMb },
  ],
  Compacting: [
    {
      label: "full sweep, instant model: CPU s",
      of: ({ swept }) => swept?.cpuS,
      floor: ({ floor }) => floor.swept?.sweepCpuS,
    },
    { label: "· passes", of: ({ swept }) => swept?.passes },
    { label: "· peak RSS MB", of: ({ swept }) => swept?.peakRssMb },
  ],
  Searching: [
    {
      label: "rare term: ms",
      of: ({ measured }) => measured.rare.p50,
      floor: ({ floor }) => floor.store.rareMs,
      plotted: "finding a rare word",
    },
    {
      label: "middling term: ms",
      of: ({ measured }) => measured.mid.p50,
      floor: ({ floor }) => floor.store.midMs,
    },
    {
      label: "common term: ms",
      of: ({ measured }) => measured.common.p50,
      floor: ({ floor }) => floor.store.commonMs,
    },
    {
      label: "question of eight words: ms",
      of: ({ measured }) => measured.question.p50,
      floor: ({ floor }) => floor.store.questionMs,
      plotted: "a question",
    },
    { label: "· p95", of: ({ measured }) => measured.question.p95 },
    { label: "· in one conversation, 1% of all: ms", of: ({ measured }) => measured.questionInShort.p50 },
    { label: "· in one conversation, 80% of all: ms", of: ({ measured }) => measured.questionInLong.p50 },
    {
      label: "regular expression, no match: ms",
      of: ({ measured }) => measured.regexNoMatchMs,
      floor: ({ floor }) => floor.store.regexMs,
      plotted: "a regular expression",
    },
    {
      label: "· without a literal in it: ms",
      of: ({ measured }) => measured.regexNoLiteralMs,
      floor: ({ floor }) => floor.store.regexNoLiteralMs,
    },
    { label: "· in the oldest message: ms", of: ({ measured }) => measured.regexOldestMs },
    { label: "· runaway: new reader after ms", of: ({ measured }) => measured.runawayMs },
  ],
  "Recalling, from a summary of depth 3 or the deepest": [
    { label: "· messages below it", of: ({ lived }) => lived.recalled.messagesBelow },
    {
      label: "describe: ms",
      of: ({ lived }) => lived.recalled.describeMs,
      floor: ({ floor }) => floor.lived.describeMs,
    },
    {
      label: "expand by a level: ms",
      of: ({ lived }) => lived.recalled.expandMs,
      floor: ({ floor }) => floor.lived.expandMs,
    },
    {
      label: "expand to the messages, ranked: ms",
      of: ({ lived }) => lived.recalled.expandAskedMs,
      floor: ({ floor }) => floor.lived.expandAskedMs,
    },
    {
      label: "a question to the conversation, answered without a model: ms",
      of: ({ lived }) => lived.recalled.askMs,
      floor: ({ floor }) => floor.store.questionMs,
    },
  ],
  Showing: [
    {
      label: "terminal UI, first screen: CPU ms",
      of: ({ shown }) => shown?.firstScreenCpuMs,
      floor: ({ floor }) => floor.store.nodeCpuMs,
      plotted: "the first screen",
    },
    { label: "· from a key to the screen: ms, median", of: ({ shown }) => shown?.all.p50, floor: () => frameMs },
    { label: "· p95", of: ({ shown }) => shown?.all.p95, floor: () => frameMs },
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
}

export function page(results: readonly Result[], { machine, concurrency }: Circumstances): string {
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
  return `# What it costs

Written by \`npm run bench -- --doc\`; the figures are those of one run on one machine (${machine}). Compare ratios: machines
are noisy, CPU time less so.

![How cost grows from a thousand messages to a million](growth.svg)

From ${first?.name ?? ""} to ${last?.name ?? ""}: ${grown.join(", ")}.

Where two figures stand in a cell, the second is the *floor*, measured in the same run on the same file: the same rows
written or read by bare prepared statements with nothing else done, values ready ([bench/floor.ts](../bench/floor.ts)). For words it is
SQLite's own ranking (\`ORDER BY rank\`) over the same index, for regular expressions a bare loop over every text, for the first
screen an empty Node, for a key the ${frameMs} ms that the renderer waits between two drawings.

The corpus is made by [bench/corpus.ts](../bench/corpus.ts): turns of four messages (user, assistant with a tool call,
tool result, assistant) of about 750 characters each, words by Zipf's law. Four fifths are one conversation, the rest is
twenty others. Searches go through the store's thread, as in a host. A *lived* conversation has had a full sweep every 600
messages; an *uncompacted* one never (then the prompt is its newest 200k tokens). The turns measured after that are 1,000
more, each stored, compacted if due, and assembled. The model answers at once, so what is measured is ours. The terminal UI
is the built one, measured over the lived conversation on a pseudo-terminal of 120×40, with keys typed into messages, summaries and context.

${sections.join("\n\n")}

A sweep of 4,000 messages with a model that takes 200 ms: ${slow.join(", ")}.

## By profile

Of what takes longer the more is stored, regular expressions are slowest, which read every text: they take 0.7 to 1.3 times what a
bare loop takes. The three steps behind them were profiled on 2026-11-16 (\`node --cpu-prof\`, and the CPU of every statement) and
compared with the commit before: the same files and questions through the store's thread, old and new in turn, the least CPU of three
runs (of two at 1m, and for the sweep) on a busy machine, so ratios tell more than milliseconds. Answers and summaries are the same to the
byte, but for random ids.

| | before | after | |
|---|---:|---:|---:|
| expand to the messages, ranked, 100k: CPU ms | 103 | 56 | 0.54× |
| · 1m | 262 | 89 | 0.34× |
| a question, answered without a model, 100k: CPU ms | 101 | 61 | 0.60× |
| · 1m | 135 | 88 | 0.65× |
| full sweep of 100k, instant model: CPU s | 5.5 | 4.1 | 0.75× |

- **Expanding** read thousands of rows, half of its time at 1m, only to see that they are of another time. What lies around a
  summary is now told by its id, and 19,000 ids come as a few JSON texts instead of rows. What is left is a third statements that read
  the rows which are ranked and shown, and a fifth finding words in 2 MB of their text: fewer would be another answer.
- **A question** and every search: words that cannot have a stem that is looked for are counted, not cut out (11 → 4.6 ns a
  character, of which a loop that only finds where words end takes 2.3), snippets are cut without taking text apart, and what a
  question reads is asked for in a few goes. The 4 MB of candidates that it ranks are the limit: to read them and to find words in them
  are three fifths of what is left, and fewer would rank worse.
- **A sweep** looked at 1,024 places of the context for each pass and needs 170; it now looks at 256. It is not halved. A third of
  what is left are statements and transactions that read the run, keep the ledger and fold; a third decodes messages and writes the
  prompt; a fifth tells whether the answer is an echo, garbled or too long. That is about 5 ms a pass, where a model
  takes seconds. (New checks of answers, of the same day, take 0.4 s more: they are in these shares, and not in the table.)
`;
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
<text class="title" x="${frame.left}" y="28">Cost as a multiple of what it is at ${results[0]?.name ?? ""} messages</text>
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
