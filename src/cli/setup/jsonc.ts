/**
 * Edits one list in a person's JSON file with comments, and leaves every other byte as it is. Parsing and writing the
 * file again would lose its comments and its layout.
 */

import { LcmError } from "../../core/base/errors.ts";
import type { Json } from "../../core/base/json.ts";

interface Node {
  readonly start: number;
  readonly end: number;
  readonly value: Json;
  /** The members of an object or the items of a list; keys of items are empty. */
  readonly inner: readonly { readonly key: string; readonly node: Node }[];
}

/** Throws `invalid` with the line if the text is not JSON with comments. */
export const readJsonc = (text: string): Json => parse(text).value;

/** The text with this string at the end of the list, which is created if absent. */
export function addToList(text: string, key: string, item: string): string {
  const root = parse(text);
  const list = listOf(root, key);
  const written = JSON.stringify(item);
  if (list !== null) {
    const last = list.inner.at(-1)?.node;
    if (last === undefined) return splice(text, list.start + 1, 0, written);
    return addBehind(text, last, leadOf(text, last.start), written);
  }
  const line = lineEndOf(text);
  const member = `${JSON.stringify(key)}: [${written}]`;
  const last = root.inner.at(-1)?.node;
  if (last === undefined) return splice(text, root.start + 1, 0, `${line}  ${member}${line}`);
  return addBehind(text, last, leadOf(text, last.start) ?? leadOfKey(text, root), member);
}

const lineEndOf = (text: string): string => (text.includes("\r\n") ? "\r\n" : "\n");

/** With these blanks on a line of its own, or without on the line of the last one. */
function addBehind(text: string, last: Node, lead: string | null, words: string): string {
  const comma = skip(text, last.end);
  const isTrailing = text[comma] === ",";
  const added = `${lead === null ? " " : `${lineEndOf(text)}${lead}`}${words}`;
  const from = isTrailing ? comma + 1 : last.end;
  const at = lead === null ? from : from + commentsBehind(text, from);
  return isTrailing ? splice(text, at, 0, `${added},`) : splice(splice(text, at, 0, added), last.end, 0, ",");
}

/** The length of the comments up to the end of the line: they stay with what they follow. */
function commentsBehind(text: string, from: number): number {
  const comments = /(?:[ \t]|\/\*(?:(?!\*\/)[^\n])*\*\/)*(?:\/\/[^\r\n]*)?(?=\r?\n)/y;
  comments.lastIndex = from;
  return comments.exec(text)?.[0].length ?? 0;
}

/** The text without the strings of a list that fit; itself if there are none. */
export function removeFromList(text: string, key: string, isMeant: (item: Json) => boolean): string {
  const list = listOf(parse(text), key);
  const at = list?.inner.findIndex(({ node }) => isMeant(node.value)) ?? -1;
  if (list === null || at < 0) return text;
  const item = list.inner[at]?.node ?? list;
  const [before, next] = [list.inner[at - 1]?.node, list.inner[at + 1]?.node];
  const comma = skip(text, item.end);
  const end = text[comma] === "," ? comma + 1 : item.end;
  // A comma cannot stand alone in a list.
  const left =
    before === undefined
      ? splice(text, item.start, (next?.start ?? end) - item.start, "")
      : withoutLater(text, before, item, end);
  return removeFromList(left, key, isMeant);
}

/** Comments behind the item before it stay. The last item takes the comma of that with it. */
function withoutLater(text: string, before: Node, item: Node, end: number): string {
  const comma = skip(text, before.end);
  const isOnItsLine = leadOf(text, item.start) === null;
  const from = comma + 1 + (isOnItsLine ? 0 : commentsBehind(text, comma + 1));
  const left = splice(text, from, end - from, "");
  return end === item.end ? splice(left, comma, 1, "") : left;
}

function listOf(root: Node, key: string): Node | null {
  const found = root.inner.findLast((member) => member.key === key)?.node;
  if (found !== undefined && !Array.isArray(found.value)) throw new LcmError("invalid", `"${key}" is not a list`);
  return found ?? null;
}

const splice = (text: string, at: number, length: number, added: string): string =>
  text.slice(0, at) + added + text.slice(at + length);

/** The blanks before something that is the first on its line; null if it is not. */
const leadOf = (text: string, start: number): string | null =>
  /(?:^|\n)([ \t]*)$/.exec(text.slice(0, start))?.[1] ?? null;

/** The blanks before the last key that is the first on its line. */
function leadOfKey(text: string, root: Node): string | null {
  const { key, node } = root.inner.at(-1) ?? {};
  if (key === undefined || node === undefined) return null;
  return leadOf(text, text.lastIndexOf(JSON.stringify(key), node.start));
}

// ── Parsing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function parse(text: string): Node {
  const root = parseValue(text, skip(text, 0));
  const end = skip(text, root.end);
  if (end < text.length) throw wrong(text, end);
  if (typeof root.value !== "object" || root.value === null || Array.isArray(root.value)) throw wrong(text, root.start);
  return root;
}

/** The place after blanks and comments. */
function skip(text: string, from: number): number {
  const blank = /(?:[\s\ufeff]|\/\/[^\n]*|\/\*[^]*?\*\/)*/y;
  blank.lastIndex = from;
  blank.exec(text);
  return blank.lastIndex;
}

function parseValue(text: string, start: number): Node {
  const opening = text[start];
  if (opening === "{" || opening === "[") return parseInner(text, start, opening === "{");
  const scalar = /"(?:[^"\\\n]|\\.)*"|-?\d[\d.eE+-]*|true|false|null/y;
  scalar.lastIndex = start;
  const [word] = scalar.exec(text) ?? [];
  if (word === undefined) throw wrong(text, start);
  try {
    return { start, end: start + word.length, value: JSON.parse(word), inner: [] };
  } catch {
    throw wrong(text, start);
  }
}

function parseInner(text: string, start: number, isObject: boolean): Node {
  const inner: { readonly key: string; readonly node: Node }[] = [];
  let at = skip(text, start + 1);
  while (text[at] !== (isObject ? "}" : "]")) {
    let key = "";
    if (isObject) {
      const name = parseValue(text, at);
      const colon = skip(text, name.end);
      if (typeof name.value !== "string" || text[colon] !== ":") throw wrong(text, at);
      key = name.value;
      at = skip(text, colon + 1);
    }
    const node = parseValue(text, at);
    inner.push({ key, node });
    at = skip(text, node.end);
    if (text[at] === ",") at = skip(text, at + 1);
    else if (text[at] !== (isObject ? "}" : "]")) throw wrong(text, at);
  }
  const values = inner.map(({ key, node }) => [key, node.value] as const);
  const value: Json = isObject ? Object.fromEntries(values) : values.map(([, each]) => each);
  return { start, end: at + 1, value, inner };
}

const wrong = (text: string, at: number): LcmError =>
  new LcmError("invalid", `line ${text.slice(0, at).split("\n").length} is not JSON`);
