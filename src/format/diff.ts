/** Makes a unified diff of two texts, and colours and wraps it for a terminal. */

import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";
import type { Paint } from "./paint.ts";
import { wrap } from "./width.ts";
import { harmless } from "./safe-text.ts";
import type { Output } from "./page.ts";

/** In the format of `diff -u`. Empty if the texts are equal. */
export function unifiedDiff(old: string, now: string): string {
  if (old === now) return "";
  const options = { headerOptions: FILE_HEADERS_ONLY };
  return createTwoFilesPatch("old", "new", `${old}\n`, `${now}\n`, undefined, undefined, options);
}

/** Lines are wrapped only on a terminal: a piped diff may be applied. */
export const diffColumns = ({ isTerminal, columns }: Output): number | null => (isTerminal ? columns : null);

/** Prose has long lines: each is wrapped to `columns`, and every piece gets the sign of its line. */
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
