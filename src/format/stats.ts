/** Describes what prompts cost over time: a plot, a table of stretches, and the sums. */

import { formatBytes, formatCount, plural } from "../core/base/format.ts";
import type { PromptCost, PromptStats } from "../core/seen/stats.ts";
import type { Page } from "./page.ts";
import { oneLine } from "./safe-text.ts";
import { table } from "./table.ts";
import { createSpans } from "./times.ts";

const levels = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/** One cell per amount, as high as its share of the most; a space for what is not known. */
export function sparkline(amounts: readonly (number | null)[], most: number): string {
  const cell = (amount: number): string =>
    levels[Math.min(levels.length - 1, Math.floor((amount / Math.max(1, most)) * levels.length))] ?? levels[0];
  return amounts.map((amount) => (amount === null ? " " : cell(amount))).join("");
}

/** Neighbouring prompts, at most this many stretches of the same length. */
export function stretchesOf<T>(prompts: readonly T[], most: number): readonly (readonly T[])[] {
  const length = Math.max(1, Math.ceil(prompts.length / Math.max(1, most)));
  return Array.from({ length: Math.ceil(prompts.length / length) }, (_, at) =>
    prompts.slice(at * length, (at + 1) * length),
  );
}

const meanOf = (numbers: readonly number[]): number | null =>
  numbers.length === 0 ? null : numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

/** How much of the bytes of these prompts the ones before them had; null if none can be compared. */
function sharedShare(prompts: readonly PromptCost[]): number | null {
  const compared = prompts.filter(({ shared }) => shared !== null);
  const bytes = compared.reduce((sum, prompt) => sum + prompt.bytes, 0);
  return bytes === 0 ? null : compared.reduce((sum, { shared }) => sum + (shared ?? 0), 0) / bytes;
}

const percent = (share: number | null): string => (share === null ? "" : `${(100 * share).toFixed(1)}%`);

const tokensOf = (prompts: readonly PromptCost[]): number | null =>
  meanOf(prompts.flatMap(({ hosts, tokens }) => (hosts === null ? [tokens] : [])));

/** Two rows of cells: how large prompts were, and how much of each the one before had. */
export function statsPlot(
  { paint, columns }: Pick<Page, "paint" | "columns">,
  { prompts }: PromptStats,
): readonly string[] {
  const names = ["tokens ", "shared "] as const;
  const stretches = stretchesOf(prompts, Math.max(8, columns - names[0].length));
  const tokens = stretches.map(tokensOf);
  const most = tokens.reduce<number>((largest, each) => Math.max(largest, each ?? 0), 0);
  const isChanged = stretches.map((some) => some.some((prompt) => prompt.isChanged));
  return [
    paint.soft(names[0]) + sparkline(tokens, most),
    paint.soft(names[1]) + paint.good(sparkline(stretches.map(sharedShare), 1)),
    paint.soft(`changed${isChanged.map((is) => (is ? "╵" : " ")).join("")}`.trimEnd()),
  ];
}

const rowsShown = 16;

export function statsTable(page: Pick<Page, "paint" | "bounds" | "zone">, { prompts }: PromptStats): readonly string[] {
  const { paint, bounds, zone } = page;
  const spans = createSpans(
    prompts.map(({ at }) => at),
    zone,
  );
  const sum = (numbers: readonly (number | null)[]): number =>
    numbers.reduce<number>((total, each) => total + (each ?? 0), 0);
  const rows = stretchesOf(prompts, rowsShown).map((some) => {
    const [first, last] = [some[0], some.at(-1)];
    const counted = sum(some.map((prompt) => prompt.counted));
    const cached = sum(some.map((prompt) => prompt.cached));
    const changes = some.filter((prompt) => prompt.isChanged);
    const tokens = tokensOf(some);
    return [
      first?.number === last?.number ? String(first?.number) : `${first?.number}–${last?.number}`,
      first === undefined || last === undefined ? "" : spans.of(first.at, last.at),
      tokens === null ? "" : formatCount(tokens),
      percent(sharedShare(some)),
      changes.length === 0 ? "" : formatCount(changes.length),
      counted === 0 ? "" : formatCount(counted),
      counted === 0 ? "" : percent(cached / counted),
    ];
  });
  const lines = table(
    [
      { title: "prompts" },
      { title: "time", paint: paint.soft, spare: true },
      { title: "tokens", align: "right" },
      { title: "shared", align: "right", paint: paint.good },
      { title: "changes", align: "right" },
      { title: "counted", align: "right", spare: true },
      { title: "cached", align: "right", spare: true },
    ],
    rows,
    bounds,
    paint,
  );
  return [...lines, paint.soft(spans.words)];
}

/** The prompts one by one. */
export function promptTable(
  page: Pick<Page, "paint" | "bounds" | "zone">,
  prompts: readonly PromptCost[],
): { readonly lines: readonly string[]; readonly times: string } {
  const { paint, bounds, zone } = page;
  const spans = createSpans(
    prompts.map(({ at }) => at),
    zone,
  );
  const rows = prompts.map(({ number, at, tokens, bytes, shared, isChanged, summaries, hosts, model, outcome }) => [
    formatCount(number),
    spans.of(at, at),
    hosts === null ? formatCount(tokens) : "",
    shared === null ? "" : percent(shared / Math.max(1, bytes)),
    hosts === null ? formatCount(summaries) : "",
    [
      ...(hosts === null ? [] : [`the host's own: ${hosts}`]),
      ...(isChanged ? ["changed before its end"] : []),
      ...(outcome === "overflow" ? ["refused as too long"] : []),
      ...(model === null ? [] : [oneLine(model)]),
    ].join(" · "),
  ]);
  const lines = table(
    [
      { title: "prompt", align: "right" },
      { title: "time", paint: paint.soft },
      { title: "tokens", align: "right" },
      { title: "shared", align: "right", paint: paint.good },
      { title: "summaries", align: "right", spare: true },
      { title: "", flexible: true },
    ],
    rows,
    bounds,
    paint,
  );
  return { lines, times: spans.words };
}

export function statsLines({
  prompts,
  bytes,
  shared,
  changes,
  lost,
  counted,
  cached,
  ...calls
}: PromptStats): readonly string[] {
  const hosts = prompts.filter((prompt) => prompt.hosts !== null).length;
  return [
    `${plural(prompts.length, "prompt")}${hosts === 0 ? "" : `, ${hosts === prompts.length ? "" : `${formatCount(hosts)} of them `}built by the host itself`}`,
    ...(bytes === 0
      ? []
      : [`${percent(shared / bytes)} of their bytes are those of the prompt before, from the beginning`]),
    changes === 0
      ? "no prompt changed before its end"
      : `${plural(changes, "prompt")} changed before the end, by a fold, an eviction or a rewrite: ${formatBytes(lost)} had to be sent again`,
    ...(counted === 0
      ? []
      : [`the provider counted ${formatCount(counted)} tokens, ${percent(cached / counted)} of them from its cache`]),
    calls.calls === 0
      ? "no model was called for summaries"
      : `${plural(calls.calls, "call")} for summaries: ${formatCount(calls.inputTokens)} tokens in, ${formatCount(calls.outputTokens)} out`,
  ];
}
