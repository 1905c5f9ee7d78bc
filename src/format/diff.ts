/** Two texts as a unified diff, and that diff as a person reads it: signs in front, colours if there are any. */

import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";
import type { Paint } from "./paint.ts";
import { wrap } from "./width.ts";
import { harmless } from "./safe-text.ts";
import type { Output } from "./page.ts";

/** In the form that `diff -u` has: `---` and `+++`, then hunks. Empty if the texts are equal. */
export function unifiedDiff(old: string, now: string): string {
  if (old === now) return "";
  const options = { headerOptions: FILE_HEADERS_ONLY };
  return createTwoFilesPatch("old", "new", `${old}\n`, `${now}\n`, undefined, undefined, options);
}

/** Who reads it from a pipe may want to apply it: only on a terminal its lines are broken. */
export const diffColumns = ({ isTerminal, columns }: Output): number | null => (isTerminal ? columns : null);

/** A paragraph of prose is one long line: where there is a width it is broken, each piece behind the line's sign. */
export function diffLines(paint: Paint, diff: string, columns: number | null): readonly string[] {
  const lines = harmless(diff).replace(/\n$/, "").split("\n");
  const room = columns === null ? null : Math.max(20, columns - 1);
  return lines.flatMap((line, at) => {
    const colour = colourOf(paint, line, at < 2);
    const text = line.slice(1);
    const isBroken = room !== null && at >= 2 && text.trim() !== "";
    return (isBroken ? wrap(text, room) : [text]).map((piece) => colour(line.charAt(0) + piece));
  });
}

function colourOf(paint: Paint, line: string, isHeader: boolean): (text: string) => string {
  if (isHeader) return paint.strong;
  if (line.startsWith("+")) return paint.good;
  if (line.startsWith("-")) return paint.bad;
  return line.startsWith(" ") ? (text) => text : paint.soft;
}
