/** Measures, cuts, pads and wraps text by the terminal columns it takes, in any script. */

import stringWidth from "fast-string-width";
import { once } from "../core/base/once.ts";

/** The library counts these as one column. It needs the joiners and tags inside emoji to recognise those. */
const invisible = once(() => /[\p{Cf}--[\u200d\u{e0020}-\u{e007f}]]|\u200d(?!\p{Extended_Pictographic})/gv);
const notAscii = /[^\x00-\x7f]/;

export const widthOf = (text: string): number =>
  stringWidth(notAscii.test(text) ? text.replace(invisible(), "") : text);

const graphemes = once(() => new Intl.Segmenter("en", { granularity: "grapheme" }));

/** The text in at most this many columns; `…` marks a cut. */
export function cut(text: string, columns: number): string {
  if (text.length <= columns && widthOf(text) <= columns) return text;
  let width = 0;
  let kept = "";
  let besideEllipsis = "";
  for (const { segment } of graphemes().segment(text)) {
    width += widthOf(segment);
    if (width > columns) return columns < 1 ? "" : `${besideEllipsis.trimEnd()}…`;
    kept += segment;
    if (width < columns) besideEllipsis = kept;
  }
  return text;
}

export const padEnd = (text: string, columns: number): string =>
  text + " ".repeat(Math.max(0, columns - widthOf(text)));
export const padStart = (text: string, columns: number): string =>
  " ".repeat(Math.max(0, columns - widthOf(text))) + text;

/** Lines of at most this many columns (at least one), broken between words, and inside a word that is too long. */
export function wrap(text: string, room: number): readonly string[] {
  const columns = Math.max(1, room);
  const words = text.split(/(?<=\s)/);
  return fill(
    words.flatMap((word) => (widthOf(word.trimEnd()) > columns ? chunksOf(word, columns) : [word])),
    columns,
  );
}

/** Between graphemes: libraries that wrap by code point tear combining marks and joined emoji apart. */
function chunksOf(word: string, columns: number): readonly string[] {
  const chunks: string[] = [];
  let chunk = "";
  let width = 0;
  for (const { segment } of graphemes().segment(word)) {
    const next = widthOf(segment);
    if (width > 0 && width + next > columns) {
      chunks.push(chunk);
      chunk = "";
      width = 0;
    }
    chunk += segment;
    width += next;
  }
  return [...chunks, chunk];
}

const afterSpace = /(?<= )/;
const afterSpaceOutsideQuotes = /(?<= )(?=(?:[^`]*`[^`]*`)*[^`]*$)/;

/** Like `wrap`, but keeps paths whole and, where they fit, `quoted commands`, because readers copy them. */
export function breakLines(text: string, columns: number): readonly string[] {
  if (widthOf(text) <= columns) return [text];
  const isPaired = text.split("`").length % 2 === 1;
  const words = text.split(isPaired ? afterSpaceOutsideQuotes : afterSpace);
  return fill(
    words.flatMap((word) => (widthOf(word.trimEnd()) > columns ? word.split(afterSpace) : [word])),
    columns,
  );
}

/** Puts as many pieces on each line as fit, and drops the spaces at a break. One that fits no line stays where it is. */
function fill(pieces: readonly string[], columns: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const piece of pieces) {
    const own = piece.trimEnd();
    if (line !== "" && widthOf(line + own) > columns && widthOf(own) <= columns) {
      lines.push(line.trimEnd());
      line = "";
    }
    line += piece;
  }
  return line.trim() === "" ? lines : [...lines, line.trimEnd()];
}

/** A note as it is written out, broken to the width of the terminal if there is one. */
export const breakText = (text: string, columns: number | null): string =>
  `${text
    .split("\n")
    .flatMap((line) => breakLines(line, columns ?? Infinity))
    .join("\n")}\n`;
