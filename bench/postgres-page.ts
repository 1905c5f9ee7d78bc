/** Formats what `npm run bench:postgres` measured as a section of docs/benchmarks.md. */

import type { Compared } from "./postgres-steps.ts";
import { table } from "./table.ts";

/** For the ratio to SQLite, or for the number of round trips. */
const goals: Readonly<Record<string, string>> = {
  "import and index": "≥ 0.6",
  size: "≤ 1.5",
  "append of a turn": "≤ 3.5",
  "fold of 20": "≤ 3",
  "reading for a lived prompt": "≤ 2",
  "grep, rare word": "≤ 3",
  question: "≤ 2",
  "regex, rare": "≤ 2",
  "regex, nowhere": "≤ 2",
  "round trips, append of a turn": "≤ 5",
  "round trips, a prompt": "≤ 6",
};

export function besideSqlite(results: readonly Compared[]): string {
  const sizes = [...new Set(results.map(({ size = "" }) => size))];
  const calls = [...new Set(results.map(({ what }) => what))];
  const head = ["call", ...sizes.flatMap((size) => [`${size}: SQLite`, "PostgreSQL", "ratio"]), "goal"];
  const rows = calls.map((what) => {
    const measured = sizes.map((size) => results.find((each) => each.what === what && each.size === size));
    const unit = measured.find((each) => each !== undefined)?.unit ?? "";
    return [unit === "" ? what : `${what}: ${unit}`, ...measured.flatMap(cellsOf), goals[what] ?? "–"];
  });
  return `## PostgreSQL beside SQLite

Both stores are given the same calls, one after the other in changing order, in one process ([bench/postgres.ts](../bench/postgres.ts)). The server, PostgreSQL 18
with its default settings, is on the same machine and disk, and its commits wait for the disk; SQLite runs in the process itself, and its commits do not wait.
Medians; for round trips, how many a call waits for, measured with half a millisecond added to each.
[PostgreSQL: figures](postgres-figures.md) says where the time goes.

${table(head, rows)}`;
}

function cellsOf(measured: Compared | undefined): readonly string[] {
  if (measured === undefined) return ["", "", ""];
  const { sqlite, postgres } = measured;
  if (sqlite.p50 === 0) return ["", shown(postgres.p50), ""];
  return [shown(sqlite.p50), shown(postgres.p50), (postgres.p50 / sqlite.p50).toFixed(2)];
}

const shown = (value: number): string => (value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(2));
