/**
 * Finds the elements of one array of a request's body, as places in its bytes, so that the array can be replaced and
 * every other byte stays. What was found in the session's last body is not scanned again as far as both begin alike.
 */

export interface Range {
  readonly from: number;
  readonly to: number;
}

export interface ScannedBody {
  readonly bytes: Buffer;
  /** The array, with its brackets. */
  readonly array: Range;
  readonly count: number;
  /** Where each element begins and ends, by turns; counted from the array's bracket. */
  readonly places: Int32Array;
  /** How many elements, and how many bytes of the body, are those that the body before begins with. */
  readonly keptElements: number;
  readonly keptBytes: number;
  /** The body with an empty array, as text. */
  readonly rest: string;
}

/** What is more than this at once keeps others waiting. */
export const sliceBytes = 262_144;
/** No agent sends more. A body that only looks like a request must take neither memory nor time. */
const elementsMax = 2_000_000;
const fieldsMax = 1_000;
const depthMax = 1_000;

/** Null if the body is not an object with exactly one such array. Yields after each slice. */
export function* scanBody(
  bytes: Buffer,
  field: string,
  last: ScannedBody | null = null,
): Generator<void, ScannedBody | null> {
  const open = findArray(bytes, field);
  if (open === null) return null;
  const keptBytes = last === null ? 0 : commonLength(bytes, last.bytes);
  const kept = last === null ? 0 : elementsInCommon(bytes, open, last, keptBytes);
  let places = new Int32Array(2 * kept + 256);
  if (last !== null) places.set(last.places.subarray(0, 2 * kept));
  let count = kept;
  let at = skipSpace(bytes, kept === 0 ? open + 1 : open + (places[2 * kept - 1] ?? 0));
  for (let yielded = at; bytes[at] !== code.close;) {
    if (count > 0) {
      if (bytes[at] !== code.comma) return null;
      at = skipSpace(bytes, at + 1);
    }
    const end = valueEnd(bytes, at);
    if (end === at || at >= bytes.length || count === elementsMax) return null;
    if (2 * count === places.length) places = grown(places);
    places[2 * count] = at - open;
    places[2 * count + 1] = end - open;
    count++;
    at = skipSpace(bytes, end);
    if (at - yielded < sliceBytes) continue;
    yielded = at;
    yield;
  }
  if (hasField(bytes, at + 1, field)) return null;
  const rest = `${bytes.toString("utf8", 0, open)}[]${bytes.toString("utf8", at + 1)}`;
  const array = { from: open, to: at + 1 };
  return { bytes, array, count, places: places.subarray(0, 2 * count), keptElements: kept, keptBytes, rest };
}

function grown(places: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * places.length);
  larger.set(places);
  return larger;
}

/** The body with other elements in its array. */
export function withElements({ bytes, array }: ScannedBody, elements: readonly Buffer[]): Buffer {
  const parts = elements.flatMap((element, at) => (at === 0 ? [element] : [comma, element]));
  return Buffer.concat([bytes.subarray(0, array.from + 1), ...parts, bytes.subarray(array.to - 1)]);
}

export const elementBytes = ({ bytes, array: { from }, places }: ScannedBody, at: number): Buffer =>
  bytes.subarray(from + (places[2 * at] ?? 0), from + (places[2 * at + 1] ?? 0));

const comma = Buffer.from(",");

/** How many bytes two texts have in common at the beginning. */
export function commonLength(one: Buffer, other: Buffer): number {
  let [from, to] = [0, Math.min(one.length, other.length)];
  while (from < to) {
    const middle = Math.ceil((from + to) / 2);
    if (one.compare(other, from, middle, from, middle) === 0) from = middle;
    else to = middle - 1;
  }
  return from;
}

/** How many elements of the last array this one begins with. */
function elementsInCommon(bytes: Buffer, open: number, last: ScannedBody, keptBytes: number): number {
  const { array, places, count } = last;
  const common =
    keptBytes > open
      ? Math.min(keptBytes, array.to) - open
      : commonLength(bytes.subarray(open), last.bytes.subarray(array.from, array.to));
  // What follows the last one that is equal must be there, too: a number may go on.
  let [from, to] = [0, count];
  while (from < to) {
    const middle = Math.ceil((from + to) / 2);
    if ((places[2 * middle - 1] ?? 0) < common) from = middle;
    else to = middle - 1;
  }
  return from;
}

const code = { quote: 34, comma: 44, open: 91, backslash: 92, close: 93, openObject: 123, closeObject: 125, colon: 58 };

/** The place of the array's opening bracket. */
function findArray(bytes: Buffer, field: string): number | null {
  let at = skipSpace(bytes, 0);
  if (bytes[at] !== code.openObject) return null;
  at = skipSpace(bytes, at + 1);
  for (let fields = 0; bytes[at] === code.quote; fields++) {
    const { name, value } = fieldAt(bytes, at);
    if (value === null || fields === fieldsMax) return null;
    if (name === field) return bytes[value] === code.open ? value : null;
    at = skipSpace(bytes, valueEnd(bytes, value));
    if (bytes[at] === code.comma) at = skipSpace(bytes, at + 1);
  }
  return null;
}

/** A second field of the name would be the one that counts; of very many fields, any may be. */
function hasField(bytes: Buffer, from: number, field: string): boolean {
  let at = skipSpace(bytes, from);
  for (let fields = 0; bytes[at] === code.comma; fields++) {
    const { name, value } = fieldAt(bytes, skipSpace(bytes, at + 1));
    if (name === field || value === null || fields === fieldsMax) return true;
    at = skipSpace(bytes, valueEnd(bytes, value));
  }
  return false;
}

function fieldAt(bytes: Buffer, at: number): { readonly name: string; readonly value: number | null } {
  const end = stringEnd(bytes, at);
  const name = bytes.toString("utf8", at + 1, end - 1);
  const colon = skipSpace(bytes, end);
  // A name with escapes may be any name.
  const isPlain = bytes[at] === code.quote && bytes[colon] === code.colon && !name.includes("\\");
  return { name, value: isPlain ? skipSpace(bytes, colon + 1) : null };
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && (bytes[at] ?? 0) <= 32) at++;
  return at;
}

/** Behind the closing quote. */
function stringEnd(bytes: Buffer, from: number): number {
  for (let quote = bytes.indexOf(code.quote, from + 1); quote >= 0; quote = bytes.indexOf(code.quote, quote + 1)) {
    let before = quote - 1;
    while (bytes[before] === code.backslash) before--;
    if ((quote - before) % 2 === 1) return quote + 1;
  }
  return bytes.length;
}

/** `from` if there is no value, or one that is nested too deeply. */
function valueEnd(bytes: Buffer, from: number): number {
  const first = bytes[from];
  if (first === code.quote) return stringEnd(bytes, from);
  let at = from;
  if (first !== code.openObject && first !== code.open) {
    while (at < bytes.length && !isEnd(bytes[at] ?? 0)) at++;
    return at;
  }
  for (let depth = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === code.quote) at = stringEnd(bytes, at) - 1;
    else if (byte === code.openObject || byte === code.open) {
      if (++depth > depthMax) return from;
    } else if ((byte === code.closeObject || byte === code.close) && --depth === 0) return at + 1;
  }
  return bytes.length;
}

const isEnd = (byte: number): boolean =>
  byte <= 32 || byte === code.comma || byte === code.close || byte === code.closeObject;
