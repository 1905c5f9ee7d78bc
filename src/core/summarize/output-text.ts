/**
 * Writes what a tool printed for a summariser: short outputs whole, long ones by head and tail with the lines that report
 * errors, passing checks as one line, and encoded bytes as their size.
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

/** `of` is "file" for the text of a file, which is cut more, and in which no check passes. */
export function outputText(text: string, of: "file" | "output" | "check"): string {
  const lines = withoutIndent(mergeRepeats(tidyLines(text)));
  const passed = of === "check" ? passingLine(lines) : null;
  return passed ?? cutLines(lines, limits[isCode(lines) ? "code" : of === "file" ? of : "output"]).join("\n");
}

/** Whether a command only tests, lints, compiles or builds: then a result without errors says no more than its counts. */
export const isCheck = (command: string): boolean => checking.test(command) && !doingMore.test(command);

const checking =
  /\b(?:tests?|check|lint|build|typecheck|tsc|compile|vitest|jest|pytest|mypy|ruff|eslint|biome|clippy|vet|verify)\b/i;
const doingMore = /\b(?:git|deploy|publish|push|release|install|cat|curl|wget|ssh|docker|kubectl|mail)\b/i;

/** Code mentions errors that did not happen, also when a command prints it. */
const isCode = (lines: readonly string[]): boolean =>
  lines.filter((line) => codeLine.test(line)).length > codeShare * lines.filter(isFilled).length;
const codeShare = 0.35;
const codeLine = /[;{}([,>`]$|^\s*(?:\/\/|\/?\*|(?:import|export|const|let|def|class|func|fn|pub|use|from|return) )/;
const isFilled = (line: string): boolean => /\S/.test(line);

/** The lines of a text without escape codes, overwritten progress, trailing blanks and Node's debugger notices. */
function tidyLines(text: string): readonly string[] {
  const lines = withoutBlobs(text).replace(escapeCode, "").trimEnd().split(/\r?\n/);
  const width = Math.max(lineCharsMin, Math.floor(lineCharsTotal / lines.length));
  return lines
    .map((line) => cutLine(line.slice(line.lastIndexOf("\r") + 1).trimEnd(), width))
    .map((line) => line.replace(padding, "  ").replace(ruledLine, "$1$1$1"))
    .filter((line) => !debuggerNotice.test(line));
}

const escapeCode = /\x1b(?:\[[\d;?]{0,32}[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][AB0])/g;
/** Blanks that align columns, and lines that frame tables. */
const padding = /(?<=\S) {3,}(?=\S)/g;
const ruledLine = /([-=_─━*#.])\1{7,}/g;
const debuggerNotice = /^(?:Debugger attached\.|Waiting for the debugger to disconnect\.\.\.)$/;

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

/** Equal lines in a row become one with a count; blank lines in a row become one. */
function mergeRepeats(lines: readonly string[]): readonly string[] {
  const merged: string[] = [];
  for (let at = 0, next = 0; at < lines.length; at = next) {
    const line = lines[at] ?? "";
    for (next = at + 1; next < lines.length && lines[next] === line; next++);
    if (line !== "" || merged.length > 0)
      merged.push(line === "" || next === at + 1 ? line : `${line} (×${next - at})`);
  }
  while (merged.at(-1) === "") merged.pop();
  return merged;
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

/** The counts of a check that passed; null if it failed, or is not a check. */
function passingLine(lines: readonly string[]): string | null {
  if (lines.length <= 2 || !lines.slice(-passingWithin).some((line) => passing.test(line))) return null;
  if (lines.some(isErrorLine)) return null;
  return lines
    .filter((line) => passing.test(line) || count.test(line))
    .slice(-countsMax)
    .map((line) => line.trim())
    .join(" · ");
}

/** A runner reports near its end. */
const passingWithin = 20;
const countsMax = 8;
const passing = new RegExp(
  [
    String.raw`\b(?:no|0) (?:errors?|issues?|problems?|failures?|fixes)\b|\b\d+ (?:tests? )?(?:passed|passing)\b`,
    String.raw`\b(?:pass|passed):? \d+$|\ball (?:\d+ )?(?:tests|checks) (?:have )?pass|test result: ok|✓ built in`,
    String.raw`\bcompiled successfully|\bbuild (?:successful|succeeded|completed?)\b`,
  ].join("|"),
  "i",
);
const count = /^\W{0,3}(?:tests?|test files|files|suites?|passed|skipped|todo|duration\w*)[: ]+\d/i;

/** A text with data URLs and encoded bytes replaced by their size. */
export const withoutBlobs = (text: string): string =>
  !hasLongRun(text)
    ? text
    : text
        .replace(dataUrl, (url, type: string) => `[${type} as data URL, ${formatBytes(url.length)}]`)
        .replace(encoded, (run) => {
          const encoding = encodingOf(run);
          return encoding === null ? run : `[${encoding}, ${formatBytes(run.length)}]`;
        });

const runMin = 60;
const ofRun = new Uint8Array(128);
for (let code = 0; code < 128; code++) if (/[\w+/%-]/.test(String.fromCharCode(code))) ofRun[code] = 1;

/**
 * Whether a text has a word as long as this, which most have not. A long run has a character at one of every so many
 * places, so only there is it looked for; a pattern would try every word from its start.
 */
export function hasLongRun(text: string): boolean {
  const isOfRun = (at: number): boolean => ofRun[text.charCodeAt(at)] === 1;
  for (let at = runMin - 1; at < text.length; at += runMin) {
    if (!isOfRun(at)) continue;
    let [from, to] = [at, at + 1];
    while (from > 0 && isOfRun(from - 1) && to - from < runMin) from -= 1;
    while (to < text.length && isOfRun(to) && to - from < runMin) to += 1;
    if (to - from >= runMin) return true;
  }
  return false;
}

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

/** What somebody wrote: all of it, except encoded bytes and the middle of a very long block of code. */
export function wordsText(text: string): string {
  const clean = withoutBlobs(text);
  const lines = clean.split("\n");
  if (lines.length <= blockLinesMax) return clean;
  const blocks: string[][] = [[]];
  for (const line of lines) {
    const block = blocks.at(-1);
    const isInside = block?.[0]?.startsWith("```") === true;
    if (line.startsWith("```") && !isInside) blocks.push([line]);
    else block?.push(line);
    if (line.startsWith("```") && isInside) blocks.push([]);
  }
  const isBlock = (block: readonly string[]): boolean =>
    isCode(block) || (block[0]?.startsWith("```") === true && block.at(-1)?.startsWith("```") === true);
  const isCut = (block: readonly string[]): boolean => block.length > blockLinesMax && isBlock(block);
  return blocks.flatMap((block) => (isCut(block) ? cutLines(block, pasted) : block)).join("\n");
}

/** Nobody writes so many lines of code, so they were pasted. */
const blockLinesMax = 200;
const pasted: LineLimits = { head: 40, tail: 40, errors: 24 };
