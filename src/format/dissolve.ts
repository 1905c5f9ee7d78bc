/** Describes what dissolving a summary would do, and what it did. */

import type { Dissolution, Returning } from "../core/maintenance/dissolve.ts";
import { messageName } from "../core/model/types.ts";
import { comparison } from "./bars.ts";
import { openingOf } from "./messages.ts";
import { formatRange } from "../core/base/time.ts";
import { formatCount, plural } from "../core/base/format.ts";
import { summaryOverheadTokens } from "../core/model/prompt-cost.ts";
import { cut } from "./width.ts";
import { facts, table } from "./table.ts";
import type { Page } from "./page.ts";

/** Width of the longest name, with the gap after it. */
const nameColumns = "ordinal shift".length + 2;
const rowsShown = 12;

export function dissolutionLines(page: Page, plan: Dissolution): readonly string[] {
  const { paint, columns, bounds, zone } = page;
  const { dissolved, place, run, shifted, tokensBefore, tokensAfter } = plan;
  const { id, depth, tokens, earliestAt, latestAt } = dissolved;
  const range = earliestAt === null || latestAt === null ? [] : [formatRange(earliestAt, latestAt, zone)];
  const room = columns - nameColumns;
  const returned = run.reduce((sum, item) => sum + item.tokens, 0);
  return facts(
    [
      [
        "summary",
        [paint.strong(id), paint.depth(depth, `d${depth}`), plural(tokens, "token")].join(" · "),
        ...range,
        ...quoted(dissolved.opening, room),
        place === null
          ? "not in the context: nothing returns"
          : `item ${formatCount(place.item)} of ${formatCount(place.of)} in the context`,
      ],
      ...(place === null
        ? []
        : [
            [
              "returns",
              `${countOf(run)}, ${plural(returned, "token")}${around(run)}`,
              ...runTable(page, run, room),
            ] as const,
            [
              "ordinal shift",
              shifted === 0
                ? "none: its place has room"
                : `${plural(shifted, "later item moves", "later items move")} up`,
            ] as const,
          ]),
      [plan.purge ? "purge" : "afterwards", ...afterwards(plan)],
      ...(place === null ? [] : [["prompt", ...comparison(tokensBefore, tokensAfter, room, paint)] as const]),
    ],
    paint,
    bounds,
  );
}

const quoted = (opening: string, room: number): readonly string[] =>
  opening === "" ? [] : [`"${cut(openingOf({ text: opening }), Math.max(10, room - 2))}"`];

/** Each returned summary also costs the XML around it. */
const around = ([first]: readonly Returning[]): string =>
  first?.kind === "summary" ? `, plus about ${summaryOverheadTokens} of markup each in a prompt` : "";

function countOf(run: readonly Returning[]): string {
  const [first] = run;
  return first?.kind === "summary"
    ? `${plural(run.length, "summary", "summaries")} of depth ${first.depth}`
    : plural(run.length, "message");
}

function runTable({ paint }: Page, run: readonly Returning[], room: number): readonly string[] {
  const shown = run.slice(0, rowsShown);
  const rows = shown.map((item) => [
    item.kind === "summary" ? item.id : messageName(item.id),
    item.kind === "summary" ? `d${item.depth}` : item.role,
    formatCount(item.tokens),
    openingOf({ text: item.opening }),
  ]);
  const kindPaint = (cell: string, row: number): string => {
    const item = shown[row];
    return item?.kind === "message" ? paint.role(item.role, cell) : paint.depth(item?.depth ?? 0, cell);
  };
  const lines = table(
    [
      { title: "id", paint: paint.strong },
      { title: shown[0]?.kind === "message" ? "role" : "depth", paint: kindPaint },
      { title: "tokens", align: "right" },
      { title: "text", flexible: true, spare: true },
    ],
    rows,
    room,
    paint,
  );
  return run.length > rowsShown ? [...lines, paint.soft(`and ${formatCount(run.length - rowsShown)} more`)] : lines;
}

function afterwards({ purge, derived, carriedBy }: Dissolution): readonly string[] {
  if (purge) return ["the summary itself is deleted too: search no longer finds it"];
  const dependants = [...derived, ...carriedBy];
  return [
    "the summary stays stored and searchable",
    dependants.length === 0
      ? "nothing depends on it, so it can be purged too"
      : `it cannot be purged: it is used by ${dependants.join(", ")}`,
  ];
}

export const dissolvedWords = ({ run, place, purge }: Dissolution): string =>
  [...(place === null ? [] : [`dissolved: ${countOf(run)} returned`]), ...(purge ? ["purged"] : [])].join("; ");
