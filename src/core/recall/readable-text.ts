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

/** `brief` leaves out unchanged lines of edits and stack frames, except where the focus is; `whole` keeps all. */
export type Reading = { readonly kind: "whole" } | { readonly kind: "brief"; readonly focus: TextRange };

export function readableText(message: Pick<Message, "role" | "text" | "parts">, reading: Reading): ReadableText {
  const pieces: Piece[] = [];
  const calls: ReadableCall[] = [];
  let [from, shownFrom] = [0, 0];
  for (const part of message.parts) {
    if (part.text === null) continue;
    const isCall = part.type === "tool" && message.role === "assistant";
    const call = isCall ? readableCall(part, reading) : null;
    const brief =
      reading.kind === "brief" && !isCall ? withoutFrames(part.text, shift(reading.focus, -from)) : part.text;
    const shown = call?.text ?? brief;
    const range = { from: shownFrom, to: shownFrom + shown.length };
    pieces.push({ stored: { from, to: from + part.text.length }, range, shown });
    if (call !== null && part.toolCallId !== null) calls.push({ id: part.toolCallId, range, isEdit: call.isEdit });
    from += part.text.length + 1;
    shownFrom = range.to + 1;
  }
  const locate = (range: TextRange): TextRange => locateIn(pieces, message.text, range);
  return { text: pieces.map(({ shown }) => shown).join("\n"), calls, locate };
}

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
    const changes = edits.map(([old, now]) => changedLines(old, now, kind === "whole"));
    return { text: [`${name} ${path}`, ...changes.filter((each) => each !== "")].join("\n"), isEdit: true };
  }
  const long = Object.entries(input).flatMap(([field, value]) =>
    typeof value === "string" && value.includes("\n") ? [{ field, value }] : [],
  );
  if (long.length === 0) return { text: stored, isEdit: false };
  const rest = Object.entries(input).filter(([field]) => !long.some((each) => each.field === field));
  const head = rest.length === 0 ? name : `${name} ${JSON.stringify(Object.fromEntries(rest))}`;
  const isWritten = pathFields.some((field) => typeof input[field] === "string");
  return { text: [head, ...long.map(({ field, value }) => `${field}: ${value}`)].join("\n"), isEdit: isWritten };
}

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
