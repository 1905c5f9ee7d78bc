/**
 * Writes what a tool printed for a summariser: short outputs whole, long ones by head and tail with the lines that report
 * errors, and encoded bytes as their size.
 */

import { outputCues } from "./extractive-cues.ts";
import { formatBytes, plural } from "../base/format.ts";

/** How many lines of a long text are kept: at its ends, and in between those that report errors. */
export interface LineLimits {
  readonly head: number;
  readonly tail: number;
  readonly errors: number;
}

const limits = {
  code: { head: 14, tail: 6, errors: 0 },
  file: { head: 14, tail: 6, errors: 6 },
  output: { head: 10, tail: 8, errors: 24 },
} as const satisfies Record<string, LineLimits>;

/** `of` is "file" for the text of a file, which is cut more. */
export function outputText(text: string, of: "file" | "output"): string {
  const lines = withoutIndent(tidyLines(text));
  return cutLines(lines, limits[isCode(lines) ? "code" : of]).join("\n");
}

/** Code mentions errors that did not happen, also when a command prints it. */
const isCode = (lines: readonly string[]): boolean =>
  lines.filter((line) => codeLine.test(line)).length > codeShare * lines.filter(isFilled).length;
const codeShare = 0.35;
const codeLine = /[;{}([,>`]$|^\s*(?:\/\/|\/?\*|(?:import|export|const|let|def|class|func|fn|pub|use|from|return) )/;
const isFilled = (line: string): boolean => /\S/.test(line);

/** The lines of a text without escape codes, overwritten progress, trailing blanks and Node's debugger notices. */
function tidyLines(text: string): readonly string[] {
  const clean = withoutBlobs(text).replace(escapeCode, "").replace(debuggerNotice, "").replace(blankLines, "\n\n");
  const lines = clean.trimEnd().split(/\r?\n/);
  const width = Math.max(lineCharsMin, Math.floor(lineCharsTotal / lines.length));
  return lines
    .map((line) => cutLine(line.slice(line.lastIndexOf("\r") + 1).trimEnd(), width))
    .map((line) => line.replace(padding, "  ").replace(ruledLine, "$1$1$1"));
}

const escapeCode = /\x1b(?:\[[\d;?]{0,32}[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][AB0])/g;
const debuggerNotice = /^(?:Debugger attached\.|Waiting for the debugger to disconnect\.\.\.)(?:\s*\n|$)/gm;
const blankLines = /\n(?:[ \t\r]*\n){2,}/g;
/** Blanks that align columns, and lines that frame tables. */
const padding = /(?<=\S) {3,}(?=\S)/g;
const ruledLine = /([-=_─━*#.])\1{7,}/g;

/** A line may have this many characters, or more if there are few lines. */
const lineCharsMin = 300;
const lineCharsTotal = 3_000;

/** Fewer characters are not worth the note that they were left out. */
const cutCharsMin = 80;

/** A line with its middle cut out if it is much longer than `width`. */
export function cutLine(line: string, width: number): string {
  if (line.length <= width + cutCharsMin) return line;
  const tail = Math.floor(width / 4);
  const [head, rest] = [line.slice(0, width - tail), line.slice(-tail)];
  return `${head.toWellFormed()} … ${plural(line.length - width, "character")} left out … ${rest.toWellFormed()}`;
}

/** The lines without the indentation that all of them have. */
export function withoutIndent(lines: readonly string[]): readonly string[] {
  const filled = lines.filter(isFilled);
  let indent = /^[ \t]{0,200}/.exec(filled[0] ?? "")?.[0] ?? "";
  for (const line of filled) while (!line.startsWith(indent)) indent = indent.slice(0, -1);
  return indent === "" ? lines : lines.map((line) => line.slice(indent.length));
}

/** The lines at both ends and those that report errors, with a note for each gap. */
export function cutLines(all: readonly string[], { head, tail, errors }: LineLimits): readonly string[] {
  if (all.length <= head + tail + gapMin) return all;
  const lines = all.filter(isFilled);
  const kept: string[] = [];
  let skipped: string[] = [];
  let [found, frames] = [0, 0];
  for (const [at, line] of lines.entries()) {
    const isEnd = at < head || at >= lines.length - tail;
    const isError = !isEnd && found < errors && isErrorLine(line);
    if (isError) found++;
    frames = isError ? framesMax : /^\s+\S/.test(line) ? frames - 1 : 0;
    if (!isEnd && !isError && frames <= 0) skipped.push(line);
    else {
      kept.push(...(skipped.length < gapMin ? skipped : [`… ${plural(skipped.length, "line")} left out`]), line);
      skipped = [];
    }
  }
  return kept;
}

/** A gap of fewer lines is not worth its note. */
const gapMin = 3;
/** Indented lines kept below an error: stack frames, the assertion, what was expected. */
const framesMax = 9;

const noErrors = /\b(?:errors?|fail\w{0,5})\W{1,3}0\b|\b(?:no|without) (?:errors?|failures?)\b/gi;

function isErrorLine(line: string): boolean {
  if (codeLine.test(line)) return false;
  const [cue] = outputCues.find(([, pattern]) => pattern.test(line.replace(noErrors, ""))) ?? [];
  return cue === "failing" || cue === "exit" || /\bWARN(?:ING)?\b/.test(line);
}

/** False for an output without a line that reports an error. */
export const reportsErrors = (text: string): boolean => tidyLines(text).some(isErrorLine);

/** A text with data URLs and encoded bytes replaced by their size. */
export const withoutBlobs = (text: string): string =>
  !longRun.test(text)
    ? text
    : text
        .replace(dataUrl, (url, type: string) => `[${type} as data URL, ${formatBytes(url.length)}]`)
        .replace(encoded, (run) => {
          const encoding = encodingOf(run);
          return encoding === null ? run : `[${encoding}, ${formatBytes(run.length)}]`;
        });

/** Most texts have no word as long as this, which is quickly found. */
const longRun = /[\w+/%-]{60}/;
const dataUrl = /\bdata:([\w.+/-]{1,80})(?:;[\w=.-]{1,60}){0,3},[\w+/=%-]{64,}/g;
/** A long run of one alphabet, also in lines of equal width. A run begins at its first character, so this is linear. */
const encoded = /(?<![\w+/-])(?:[\w+/-]{60,80}\r?\n){3,}[\w+/-]{0,80}={0,2}|(?<![\w+/-])[\w+/-]{160,}={0,2}/g;

/** Null for words, paths and rules, which do not mix cases and digits all the way. */
function encodingOf(run: string): "hex" | "base64" | null {
  const sample = run.slice(0, 400);
  const [hasDigits, hasSmall, hasCapitals] = [/\d/, /[a-z]/, /[A-Z]/].map((kind) => kind.test(sample));
  if (/^[\da-f\s]+$/i.test(sample)) return hasDigits && (hasSmall || hasCapitals) ? "hex" : null;
  const isMixed = hasDigits && hasSmall && hasCapitals && !/[-_/]{3}|(?:\/[\w-]{1,30}){6}/.test(sample);
  return isMixed ? "base64" : null;
}

/** What somebody wrote: all of it, except encoded bytes and the middle of a very long block of code or data. */
export function wordsText(text: string): string {
  const clean = withoutBlobs(text);
  const isCut = (block: string): boolean => block.split("\n", blockLinesMax + 1).length > blockLinesMax;
  if (!isCut(clean)) return clean;
  const blocks = clean
    .split(/^(?=```)/m)
    .flatMap((block) => (block.startsWith("```") ? block : block.split(/(?<=\n\n)/)));
  return blocks.map((block) => (isCut(block) ? cutLines(block.split("\n"), pasted).join("\n") : block)).join("");
}

/** Nobody writes so many lines without a blank one, so they were pasted. */
const blockLinesMax = 200;
const pasted: LineLimits = { head: 40, tail: 40, errors: 24 };
