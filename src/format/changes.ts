/** Describes changes made by operators: a table of them, one step by step, and what undoing one would do. */

import type { Change, PlannedUndo } from "../core/maintenance/history.ts";
import { diffLines, unifiedDiff } from "./diff.ts";
import { formatTimestamp } from "../core/base/time.ts";
import { listed, plural } from "../core/base/format.ts";
import { breakLines, cut } from "./width.ts";
import { table } from "./table.ts";
import { createSpans } from "./times.ts";
import { oneLine } from "./safe-text.ts";
import { stateWords, type ChangeInShort } from "./shared-words.ts";
import type { Page } from "./page.ts";

export type { ChangeInShort } from "./shared-words.ts";

/** `spare` marks columns that may be left out, `times` says how to read the times. */
export function changeTable(
  { paint, bounds, zone }: Page,
  changes: readonly ChangeInShort[],
  spare: { readonly spare?: true } = {},
): { readonly lines: readonly string[]; readonly times: string } {
  const spans = createSpans(
    changes.map(({ at }) => at),
    zone,
  );
  const states = changes.map(stateWords);
  const hasStates = states.some((state) => state !== "");
  const faded = (cell: string, row: number): string => (changes[row]?.state === "undone" ? paint.soft(cell) : cell);
  const rows = changes.map(({ change, at, operation, conversations, what }, row) => [
    String(change),
    spans.of(at, at),
    operation,
    conversations.length > 3 ? plural(conversations.length, "conversation") : conversations.join(", "),
    ...(hasStates ? [states[row] ?? ""] : []),
    oneLine(what),
  ]);
  const columns = [
    { title: "change", align: "right", paint: paint.strong },
    { title: "when", paint: paint.soft, ...spare },
    { title: "operation", paint: faded },
    { title: "in", align: "right", ...spare },
    ...(hasStates ? [{ title: "state", paint: paint.caution }] : []),
    { title: "details", flexible: true, paint: faded },
  ] as const;
  return { lines: table(columns, rows, bounds, paint), times: spans.words };
}

/** `change 12 · rewrite · conversation 3 · 2026-02-17 15:37 UTC`. */
function changeHeadline({ paint, columns, zone }: Page, { change, at, operation, conversations }: Change): string {
  const numbers = listed(conversations.map(String));
  const where = conversations.length === 0 ? [] : [`conversation${conversations.length === 1 ? "" : "s"} ${numbers}`];
  const words = [`change ${change}`, operation, ...where, formatTimestamp(at, zone)];
  return paint.strong(cut(words.join(" · "), columns));
}

/** Every step, with a diff of the texts it changed; `diffColumns` is the width of the diff. */
export function changeLines(page: Page, change: Change, diffColumns: number | null): readonly string[] {
  const { paint } = page;
  return [
    changeHeadline(page, change),
    ...change.steps.flatMap(({ what, texts, undoneBy }) => {
      const isPart = undoneBy !== null && change.state !== "undone";
      const line = `  ${oneLine(what)}${isPart ? paint.caution(` (undone by ${undoneBy})`) : ""}`;
      return texts === null ? [line] : [line, ...diffLines(paint, unifiedDiff(texts.before, texts.after), diffColumns)];
    }),
  ];
}

const stepsShown = 10;

export function undoLines(page: Page, { undoing, summary }: PlannedUndo): readonly string[] {
  const { steps, what } = undoing;
  const lines = [changeHeadline(page, undoing), `${summary === null ? "undoes" : "undoes only"}: ${oneLine(what)}`];
  if (steps.length === 1) return lines;
  const more = steps.length - stepsShown;
  return [
    ...lines,
    ...steps.slice(0, stepsShown).map((step) => `  ${oneLine(step.what)}`),
    ...(more > 0 ? [`  and ${plural(more, "more", "more")}; --json lists all`] : []),
  ];
}

export function obstacleLines({ paint, columns }: Page, { obstacles }: PlannedUndo): readonly string[] {
  // The search for obstacles is bounded.
  const more = obstacles.length - stepsShown;
  return [
    paint.caution("in the way:"),
    ...obstacles
      .slice(0, stepsShown)
      .flatMap(({ message }) => breakLines(message, columns - 2).map((line) => `  ${line}`)),
    ...(more > 0 ? [`  and at least ${plural(more, "more", "more")}; --json lists them`] : []),
  ];
}

export function undoRefusal({ undoing, obstacles }: PlannedUndo): {
  readonly message: string;
  readonly hint: string | null;
} {
  const remedies = [...new Set(obstacles.flatMap(({ remedy }) => remedy ?? []))];
  return {
    message: `change ${undoing.change} cannot be undone now; nothing was changed`,
    hint: remedies.length === 0 ? null : hintOf(undoing.state === "undone", remedies),
  };
}

function hintOf(isUndone: boolean, [first, ...others]: readonly string[]): string {
  if (isUndone) return `to redo the change, run \`${first} --apply\``;
  const rest = others.length === 0 ? "" : `, then ${listed(others.map((each) => `\`${each} --apply\``))}`;
  return `first run \`${first} --apply\`${rest}`;
}

export const undoneWords = ({ undoing, summary }: PlannedUndo): string =>
  `undid ${summary === null ? "" : "that part of "}change ${undoing.change}`;
