/**
 * Reads a transcript file on from where it was last read: whole lines only, each with its number in the file. A cursor
 * names the place, how the file begins and what comes before the place, so that a file that was replaced, or rewritten
 * at its end, is read again from the start. A session may have several files: its cursor then has a place in each.
 */

import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync, statSync, type Stats } from "node:fs";
import { isObject, type Json } from "../../core/base/json.ts";

export interface ReadLines {
  readonly lines: readonly { readonly text: string; readonly position: number }[];
  /** After these lines. */
  readonly cursor: string;
  /** Whether whole lines may be left. */
  readonly hasMore: boolean;
}

interface Place {
  readonly offset: number;
  /** Lines before it. */
  readonly lines: number;
  /** A hash of the first bytes and of the last ones before it. */
  readonly head: string;
  /** Left out by who reads a file that only grows. */
  readonly of?: FileState;
}

/** By what a file is recognised that was replaced or rewritten since, even where its beginning and end stay. */
export interface FileState {
  /** A file that replaces another has a number of its own. */
  readonly number: number;
  readonly changedMs: number;
}

/** A session has seldom more files; of one without a place everything is read again, and found to be stored. */
const placesMax = 16;
/** Enough for the first line's ids and time, which no other file shares. */
const headBytes = 1_024;
const bytesPerRead = 1_000_000;
const newline = 10;

/** Null if the file does not exist. A line that is longer than `bytesMax` is still read whole. */
export function readOn(path: string, cursor: string | null, bytesMax: number = bytesPerRead): ReadLines | null {
  const file = openIfThere(path);
  if (file === null) return null;
  try {
    const { size } = fstatSync(file);
    const place = placeIn(file, cursor, size) ?? start;
    const bytes = wholeLines(file, place.offset, size, bytesMax);
    const texts = bytes.length === 0 ? [] : bytes.toString("utf8", 0, bytes.length - 1).split("\n");
    const offset = place.offset + bytes.length;
    const next: Place = { offset, lines: place.lines + texts.length, head: headOf(file, offset) };
    return {
      lines: texts.map((text, at) => ({ text, position: place.lines + at + 1 })),
      cursor: cursorWith(next, place, cursor),
      hasMore: bytes.length > 0 && offset < size,
    };
  } finally {
    closeSync(file);
  }
}

/** Before it is read: what changes it meanwhile is then found the next time. */
export function stateOf(path: string): FileState {
  const { ino, mtimeMs } = statSync(path);
  return { number: ino, changedMs: mtimeMs };
}

/** The cursor at a place of the file, after this many lines; `cursor` is the session's so far. */
export function cursorAt(path: string, place: Omit<Place, "head">, cursor: string | null): string {
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    return cursorWith({ ...place, head: headOf(file, place.offset) }, placeIn(file, cursor, size), cursor);
  } finally {
    closeSync(file);
  }
}

/** Where a cursor points in a file of this size; null if it points nowhere in it, or the file was rewritten since. */
export function placeAfter(path: string, cursor: string | null, size: number): Pick<Place, "offset" | "lines"> | null {
  const place = findPlace(path, cursor, size);
  if (place === null || place.offset === 0 || isRewritten(place, statSync(path))) return null;
  return { offset: place.offset, lines: place.lines };
}

/** A file of the same length that was written to was rewritten in place; a longer one may only have grown. */
const isRewritten = ({ offset, of }: Place, { ino, mtimeMs, size }: Stats): boolean =>
  of !== undefined && (of.number !== ino || (offset === size && of.changedMs !== mtimeMs));

/** Whether nothing was added to the file since. */
export function isReadWhole(path: string, cursor: string | null): boolean {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0 || !placesOf(cursor).some(({ offset }) => offset === size)) return size === 0;
  return findPlace(path, cursor, size)?.offset === size;
}

function findPlace(path: string, cursor: string | null, size: number): Place | null {
  const file = cursor === null ? null : openIfThere(path);
  if (file === null) return null;
  try {
    return placeIn(file, cursor, size);
  } finally {
    closeSync(file);
  }
}

function openIfThere(path: string): number | null {
  try {
    return openSync(path, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

const start: Place = { offset: 0, lines: 0, head: "" };

/** Null if the cursor has no place in this file. */
const placeIn = (file: number, cursor: string | null, size: number): Place | null =>
  placesOf(cursor).find(({ offset, head }) => offset <= size && headOf(file, offset) === head) ?? null;

/** The newest place first, then those in other files. */
function cursorWith(newest: Place, before: Place | null, cursor: string | null): string {
  const others = placesOf(cursor).filter(({ head }) => head !== before?.head);
  return JSON.stringify(others.length === 0 ? newest : [newest, ...others].slice(0, placesMax));
}

function placesOf(cursor: string | null): readonly Place[] {
  try {
    const places = JSON.parse(cursor ?? "[]") as Json;
    return (Array.isArray(places) ? places : [places]).flatMap((place: Json) => {
      if (!isObject(place)) return [];
      const { offset, lines, head } = place;
      const isPlace = typeof offset === "number" && typeof lines === "number" && typeof head === "string";
      return isPlace ? [{ offset, lines, head, ...stateIn(place["of"]) }] : [];
    });
  } catch {
    return []; // Not written by this reader; the file is read from the start.
  }
}

function stateIn(value: Json | undefined): { readonly of?: FileState } {
  if (!isObject(value)) return {};
  const { number, changedMs } = value;
  return typeof number === "number" && typeof changedMs === "number" ? { of: { number, changedMs } } : {};
}

function headOf(file: number, offset: number): string {
  const length = Math.min(offset, headBytes);
  return createHash("sha256")
    .update(readBytes(file, 0, length))
    .update(readBytes(file, offset - length, length))
    .digest("base64url")
    .slice(0, 16);
}

/** Up to the last newline; what is behind it is still being written. */
function wholeLines(file: number, offset: number, size: number, bytesMax: number): Buffer {
  for (let length = bytesMax; ; length *= 2) {
    const bytes = readBytes(file, offset, Math.min(length, size - offset));
    const end = bytes.lastIndexOf(newline);
    if (end >= 0 || offset + bytes.length >= size || bytes.length < length) return bytes.subarray(0, end + 1);
  }
}

function readBytes(file: number, offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  return bytes.subarray(0, readSync(file, bytes, 0, length, offset));
}
