/** What is shown of a message within a number of tokens: the part that matches, its lines, its beginning, its error. */

import { cutPassage, withoutBlanks } from "../../base/cut-passage.ts";
import { inLines, type TextRange } from "../../base/excerpt.ts";
import { estimateTokens } from "../../base/tokens.ts";
import type { Message } from "../../model/types.ts";
import type { ReadableCall } from "../readable-text.ts";

/** A message as the planner needs it; its text is written for reading, see `readableText`. */
export interface Turn extends Pick<Message, "id" | "conversation" | "seq" | "role" | "at" | "text"> {
  readonly calls: readonly ReadableCall[];
  /** Ids of the calls that it answers. */
  readonly answers: readonly string[];
  /** Whether it is the output of a failed call. */
  readonly isFailed: boolean;
}

export interface PassageHit {
  readonly turn: Turn;
  /** The best match in its text; empty if only its neighbours match. */
  readonly focus: TextRange;
  /** Its score as a share of the best; 1 where hits have none. */
  readonly share?: number;
  /** Whether what matches is not part of the text for reading, such as a line that an edit keeps. */
  readonly isHidden?: boolean;
}

/** A text of up to `whole` tokens is not cut, of a longer one at most `tokens` are shown. */
export interface Size {
  readonly tokens: number;
  readonly whole: number;
}

export const isEmpty = ({ from, to }: TextRange): boolean => from >= to;

export function lineAt(text: string, { from, to }: TextRange): TextRange {
  const end = text.indexOf("\n", to);
  return { from: text.lastIndexOf("\n", from) + 1, to: end < 0 ? text.length : end };
}

/** The parts of a message to show within a number of tokens; null if nothing useful fits. */
export interface View {
  readonly turn: Turn;
  /** Whether the parts are single lines. */
  readonly isLines?: boolean;
  readonly cut: (tokensMax: number) => readonly TextRange[] | null;
  /** How much of it is shown beside a hit, if more than of other context. */
  readonly size?: Size;
}

/** The part that matches; of an output or report with an error also the line that names it; of a user's also the start. */
export function viewOf({ turn, focus }: PassageHit): View {
  const { text } = turn;
  const error = turn.isFailed || hasFrames.test(text) ? errorLine(text) : null;
  const lead = turn.role === "user" && turn.answers.length === 0 ? leadOf(text) : null;
  return {
    turn,
    cut(tokensMax) {
      const match = isEmpty(focus) && error !== null ? error : focus;
      const part = cutPassage(text, match, tokensMax);
      if (part === null) return null;
      const others = error === null ? [] : [error];
      if (lead === null || tokensMax < leadTokensMin || lead.to >= part.from)
        return joined([throughList(text, part), ...others]);
      const after = cutPassage(text, match, tokensMax - estimateTokens(text.slice(lead.from, lead.to)) - 2) ?? part;
      return joined([lead, throughList(text, after), ...others]);
    },
  };
}

/** Of many matches in the order of time, the lines with most of the words: of an edit, its lines before and after. */
export function linesOf(hit: PassageHit, words: readonly string[] = []): View {
  const { turn, focus } = hit;
  const { text } = turn;
  if (hit.isHidden !== true && focus.to - focus.from < 2) return viewOf(hit);
  const { lines, first } = linesWith(hit, words);
  const [line] = lines;
  if (line === undefined) return viewOf(hit);
  return {
    turn,
    isLines: true,
    cut(tokensMax) {
      if (estimateTokens(showLines(text, lines)) <= tokensMax) return lines;
      const part = cutPassage(text.slice(line.from, line.to), { from: first, to: first + 1 }, tokensMax);
      return part && [{ from: line.from + part.from, to: line.from + part.to }];
    },
  };
}

interface MatchingLines {
  /** The first line with most of the words and, if that is what an edit takes away, what it puts there. */
  readonly lines: readonly TextRange[];
  /** How many of the words it has, and where in it the first is. */
  readonly count: number;
  readonly first: number;
}

/** Lines of a message with the words of a search; without any, with those of the match. Of an edit, lines that it changes. */
export function linesWith(
  { turn: { text, calls }, focus, isHidden }: PassageHit,
  words: readonly string[],
): MatchingLines {
  const edits = calls.filter(({ isEdit }) => isEdit).map(({ range }) => range);
  const lowerText = text.toLowerCase();
  const asked = words.filter((word) => lowerText.includes(word));
  const matched = lowerText.slice(focus.from, focus.to).split(/\s+/);
  const wanted = asked.length > 0 || isHidden === true ? asked : matched.filter((word) => word !== "");
  const found: { readonly line: TextRange; readonly places: readonly number[] }[] = [];
  let [from, most] = [0, 0];
  for (const written of text.split("\n")) {
    const line = withoutBlanks(text, { from, to: from + written.length });
    const isKept = edits.some((edit) => from >= edit.from && from < edit.to) && !/^[-+] /.test(written);
    from += written.length + 1;
    const lower = isKept ? "" : text.slice(line.from, line.to).toLowerCase();
    const places = wanted.map((word) => lower.indexOf(word)).filter((at) => at >= 0);
    most = Math.max(most, places.length);
    if (places.length > 0 && places.length === most) found.push({ line, places });
  }
  const best = found.filter(({ places }) => places.length === most);
  const [first] = best;
  if (first === undefined) return { lines: [], count: 0, first: 0 };
  const isGone = text.startsWith("- ", first.line.from);
  const come = isGone ? best.find(({ line }) => text.startsWith("+ ", line.from)) : undefined;
  const lines = [first.line, ...(come === undefined ? [] : [come.line])];
  return { lines, count: most, first: Math.min(...first.places) };
}

/** Single lines of a text, each by itself; `…` only where a line was cut. */
export function showLines(text: string, lines: readonly TextRange[]): string {
  return lines
    .map((line) => {
      const { from, to } = withoutBlanks(text, lineAt(text, line));
      return `${from < line.from ? "…" : ""}${inLines(text.slice(line.from, line.to))}${line.to < to ? "…" : ""}`;
    })
    .join("\n");
}

export const hasFrames = /^\s+at .*:\d+/m;
const leadTokensMin = 60;
const leadCharactersMax = 100;

/** The first line or sentence, if it is short. */
function leadOf(text: string): TextRange | null {
  const { from, to } = withoutBlanks(text, wholeText(text));
  const end = /[.!?](?=\s)|\n/.exec(text.slice(from, from + leadCharactersMax + 1))?.index;
  return end === undefined ? null : withoutBlanks(text, { from, to: Math.min(to, from + end + 1) });
}

const listItem = /^\s*(?:[-*•+]|\d{1,2}[.)])\s/;
const listCharactersMax = 240;

/** A part that ends inside a short list goes on to its end. */
function throughList(text: string, part: TextRange): TextRange {
  const lineStart = text.lastIndexOf("\n", part.to - 1) + 1;
  if (!listItem.test(text.slice(lineStart, part.to))) return part;
  let to = part.to;
  for (const line of text.slice(part.to, part.to + listCharactersMax + 1).split(/(?<=\n)/)) {
    if (to > part.to && line.trim() !== "" && !listItem.test(line)) break;
    to += line.length;
  }
  return to - part.to > listCharactersMax ? part : withoutBlanks(text, { from: part.from, to });
}

/** Ranges in order, those that touch as one. */
function joined(ranges: readonly TextRange[]): readonly TextRange[] {
  const merged: { from: number; to: number }[] = [];
  for (const { from, to } of ranges.toSorted((one, other) => one.from - other.from)) {
    const last = merged.at(-1);
    if (last !== undefined && from <= last.to + 1) last.to = Math.max(last.to, to);
    else merged.push({ from, to });
  }
  return merged;
}

export const wholeText = (text: string): TextRange => ({ from: 0, to: text.length });
export const wholeOf = ({ text }: Turn): TextRange => wholeText(text);

/** The beginning of a part of a message: a call, its prose, or all of it. */
export function headOf(turn: Turn, of: TextRange = wholeOf(turn)): View {
  const { from, to } = withoutBlanks(turn.text, of);
  const text = turn.text.slice(from, to);
  return {
    turn,
    cut(tokensMax) {
      const head = cutPassage(text, { from: 0, to: 0 }, tokensMax);
      return head && [{ from: from + head.from, to: from + head.to }];
    },
  };
}

const errorWords =
  /\b(?:\w*error|\w*exception|fatal|panic|fail(?:ed|ure)|denied|refused|cannot|can't|could not|not found|no such|unexpected|invalid|E[A-Z]{4,})\b/i;
const exitLine = /^\s*(?:command )?(?:exited|aborted|exit code|exit status)\b/i;
const lineCharactersMax = 240;

/** The first line that names an error; otherwise the last line. */
export function errorLine(text: string): TextRange | null {
  let [from, last]: [number, TextRange | null] = [0, null];
  for (const line of text.split("\n")) {
    const range = withoutBlanks(text, { from, to: from + Math.min(line.length, lineCharactersMax) });
    from += line.length + 1;
    if (isEmpty(range) || (exitLine.test(line) && last !== null)) continue;
    last = range;
    if (errorWords.test(line) && !exitLine.test(line)) break;
  }
  return last;
}
