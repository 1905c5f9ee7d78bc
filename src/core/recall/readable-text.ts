/** Rewrites a message for reading: an edit as the lines that differ, long arguments unescaped, a stack trace by its error. */

import type { TextRange } from "../base/excerpt.ts";
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import type { Message, Part } from "../model/types.ts";

export interface ReadableText {
  readonly text: string;
  /** Tool calls, and where each is in the text. */
  readonly calls: readonly ReadableCall[];
  /** Where a range of the stored text is in this one. */
  readonly locate: (range: TextRange) => TextRange;
}

export interface ReadableCall {
  readonly id: string;
  readonly range: TextRange;
  /** Whether it changes a file: what it returns is then mostly that it did. */
  readonly isEdit: boolean;
}

/**
 * `whole` keeps all. `once` leaves out lines that an output repeats, `brief` also unchanged lines of edits and stack
 * frames, except where the focus is.
 */
export type Reading =
  | { readonly kind: "whole" }
  | { readonly kind: "once" }
  | { readonly kind: "brief"; readonly focus: TextRange };

export function readableText(message: Pick<Message, "role" | "text" | "parts">, reading: Reading): ReadableText {
  const pieces: Piece[] = [];
  const calls: ReadableCall[] = [];
  let [from, shownFrom] = [0, 0];
  for (const part of message.parts) {
    if (part.text === null) continue;
    const isCall = part.type === "tool" && message.role === "assistant";
    const call = isCall ? readableCall(part, reading) : null;
    const shown =
      call?.text ?? readableWords(part.text, message.role === "tool" || part.type === "tool", reading, from);
    const range = { from: shownFrom, to: shownFrom + shown.length };
    pieces.push({ stored: { from, to: from + part.text.length }, range, shown });
    if (call !== null && part.toolCallId !== null) calls.push({ id: part.toolCallId, range, isEdit: call.isEdit });
    from += part.text.length + 1;
    shownFrom = range.to + 1;
  }
  const locate = (range: TextRange): TextRange => locateIn(pieces, message.text, range);
  return { text: pieces.map(({ shown }) => shown).join("\n"), calls, locate };
}

function readableWords(words: string, isOutput: boolean, reading: Reading, from: number): string {
  if (reading.kind === "whole") return words;
  const once = isOutput ? withoutRepeats(words) : words;
  return reading.kind === "once" ? once : withoutFrames(once, once === words ? shift(reading.focus, -from) : nowhere);
}

const nowhere: TextRange = { from: 0, to: 0 };

interface Piece {
  readonly stored: TextRange;
  readonly range: TextRange;
  readonly shown: string;
}

const shift = ({ from, to }: TextRange, by: number): TextRange => ({ from: from + by, to: to + by });

/** In a rewritten piece, where the same words are; otherwise where the piece begins. */
function locateIn(pieces: readonly Piece[], text: string, range: TextRange): TextRange {
  const piece = pieces.find(({ stored }) => range.from <= stored.to);
  if (piece === undefined || range.from >= range.to) return range;
  const { stored, range: place, shown } = piece;
  if (shown === text.slice(stored.from, stored.to)) return shift(range, place.from - stored.from);
  const words = text.slice(range.from, Math.min(range.to, stored.to));
  const longestFirst = words.split(/\\[nt"]|\s+|["{}]/).toSorted((one, other) => other.length - one.length);
  for (const word of [words, ...longestFirst].filter((each) => each !== "")) {
    const at = shown.indexOf(word);
    if (at >= 0) return { from: place.from + at, to: place.from + at + word.length };
  }
  return { from: place.from, to: Math.min(place.to, place.from + 1) };
}

// ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The arguments in which tools pass the old and the new text of an edit. */
const editFields = [
  ["oldText", "newText"],
  ["old_string", "new_string"],
  ["oldString", "newString"],
  ["old_str", "new_str"],
] as const;
const pathFields = ["path", "file_path", "filePath", "file"];

function readableCall(part: Part, { kind }: Reading): { readonly text: string; readonly isEdit: boolean } {
  const stored = part.text ?? "";
  const name = part.toolName ?? "";
  const input = part.kept === null ? inputOf(stored.slice(name.length + 1)) : {};
  const edits = editsIn(input);
  if (edits.length > 0) {
    const path = pathFields.map((field) => input[field]).find((value) => typeof value === "string") ?? "";
    const changes = edits.map(([old, now]) => changedLines(old, now, kind !== "brief"));
    return { text: [`${name} ${path}`, ...changes.filter((each) => each !== "")].join("\n"), isEdit: true };
  }
  const fields = Object.keys(input);
  const isLong = (field: string): boolean => textOf(input[field] ?? null).includes("\n");
  const isWritten = fields.some(isLong) && pathFields.some((field) => typeof input[field] === "string");
  if (fields.length === 0) return { text: stored, isEdit: false };
  // What a call is about needs no name: its path, or the only text that it has.
  const texts = fields.filter((field) => typeof input[field] === "string");
  const about = pathFields.find((field) => texts.includes(field)) ?? (texts.length === 1 ? texts[0] : undefined);
  const others = fields.filter((field) => field !== about && !(kind === "brief" && timeField.test(field)));
  const wordsOf = (field: string): string => `${field}: ${textOf(input[field] ?? null)}`;
  const short = others.filter((field) => !isLong(field)).map(wordsOf);
  const head = [name, ...(about === undefined ? [] : [textOf(input[about] ?? null)])].join(" ");
  const lines = [`${head}${short.length === 0 ? "" : ` (${short.join(", ")})`}`, ...others.filter(isLong).map(wordsOf)];
  return { text: lines.join("\n"), isEdit: isWritten };
}

/** How long a call may take says nothing about what it does. */
const timeField = /timeout/i;

const textOf = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));

/** Empty if the arguments are not an object, or were not stored as JSON. */
function inputOf(text: string): JsonObject {
  try {
    const value: Json = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** Pairs of old and new text: of the call itself, or of its list of edits. */
function editsIn(input: JsonObject): readonly (readonly [old: string, now: string])[] {
  const listed = input["edits"];
  return [input, ...(Array.isArray(listed) ? listed.filter(isObject) : [])].flatMap((edit) =>
    editFields.flatMap(([before, after]) => {
      const [old, now] = [edit[before], edit[after]];
      return typeof old === "string" && typeof now === "string" ? [[old, now] as const] : [];
    }),
  );
}

function changedLines(old: string, now: string, isWhole: boolean): string {
  const [before, after] = [old.split("\n"), now.split("\n")];
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start++;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const gone = before.slice(start, before.length - end);
  const come = after.slice(start, after.length - end);
  const sign = (mark: string, lines: readonly string[]): readonly string[] => lines.map((line) => `${mark} ${line}`);
  if (isWhole)
    return [
      ...sign(" ", before.slice(0, start)),
      ...sign("-", gone),
      ...sign("+", come),
      ...sign(" ", before.slice(before.length - end)),
    ].join("\n");
  // Lines that are on both sides say nothing about the change.
  const lacking = (lines: readonly string[], others: readonly string[]): readonly string[] => {
    const known = new Set(others.map((line) => line.trim()));
    return lines.filter((line) => !known.has(line.trim())).map((line) => line.trim());
  };
  return [...sign("-", lacking(gone, come)), ...sign("+", lacking(come, gone))].join("\n");
}

// ── Stack traces ─────────────────────────────────────────────────────────────────────────────────────────────────────

const frame = /^\s*at .*:\d+(?::\d+)?\)?,?\s*$|^\s+at \S.*\(.*\)\s*$|^\s*File ".*", line \d+/;
/** What the inspector of Node.js adds to every output. */
const inspectorLine = /^\s*(?:Debugger attached\.|Waiting for the debugger to disconnect\.\.\.)\s*$/;

function withoutFrames(text: string, focus: TextRange): string {
  if (!/^\s*at |^\s*File "|^\s*Debugger attached|^\s*Waiting for the debugger/m.test(text)) return text;
  const kept: string[] = [];
  let [from, isInFrames] = [0, false];
  for (const line of text.split("\n")) {
    const isFocus = focus.from < from + line.length && focus.to > from;
    from += line.length + 1;
    if (inspectorLine.test(line)) continue;
    // The first frame says where it was.
    if (frame.test(line) && isInFrames && !isFocus) continue;
    isInFrames = frame.test(line);
    kept.push(line);
  }
  return kept.join("\n");
}

// ── Lines that repeat ────────────────────────────────────────────────────────────────────────────────────────────────

/** Lines that an output has so often are noise after the first. Code repeats lines, too, but they are indented. */
const repeatsMin = 3;
const noiseLine = /^(?=.*\p{L})\S.{11,}/u;

function withoutRepeats(text: string): string {
  const lines = text.split("\n");
  const counts = new Map<string, number>();
  for (const line of lines) if (noiseLine.test(line)) counts.set(line, (counts.get(line) ?? 0) + 1);
  if (![...counts.values()].some((count) => count >= repeatsMin)) return text;
  const seen = new Set<string>();
  const kept = lines.filter((line) => {
    const isRepeated = (counts.get(line) ?? 0) >= repeatsMin && seen.has(line);
    seen.add(line);
    return !isRepeated;
  });
  return kept.join("\n").replace(/\n{3,}/g, "\n\n");
}
