/**
 * Values as PostgreSQL takes them. Its texts have neither NUL nor half of a surrogate pair: these are written as a
 * noncharacter and a code, and so is that noncharacter itself.
 */

import type { Value } from "../script.ts";

const escape = "\uffff";
/** What cannot be stored as it is. */
const unstorable = /[\0\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const hideText = (text: string): string =>
  text.includes("\0") || text.includes(escape) || !text.isWellFormed()
    ? text.replace(unstorable, (character) => {
        if (character === "\0") return `${escape}0`;
        if (character === escape) return `${escape}1`;
        return `${escape}${character.charCodeAt(0).toString(16)}`;
      })
    : text;

export const showText = (text: string): string =>
  text.includes(escape)
    ? text.replace(
        /\uffff(?:([01])|(d[89a-f][0-9a-f]{2}))/g,
        (_, plain: string | undefined, half: string | undefined) =>
          plain === "0" ? "\0" : plain === "1" ? escape : String.fromCharCode(Number.parseInt(half ?? "", 16)),
      )
    : text;

export const encode = (value: Value): Value => (typeof value === "string" ? hideText(value) : value);

/** A list of texts as JSON, which escapes what texts cannot have. */
export const encodeList = (value: Value): Value =>
  typeof value === "string" && /\\u|\uffff/.test(value)
    ? JSON.stringify(
        (JSON.parse(value) as readonly unknown[]).map((each) => (typeof each === "string" ? hideText(each) : each)),
      )
    : value;

/** The same list as an array. */
export const asArray = (value: Value): readonly Value[] =>
  (JSON.parse(String(value)) as readonly Value[]).map((each) => encode(each));

const number = (text: string): unknown => Number(text);

/** By the number of the type: whole numbers, sums and truths are numbers in a row, as in SQLite. */
export const decoders: ReadonlyMap<number, (text: string) => unknown> = new Map([
  [16, (text: string) => (text === "t" ? 1 : 0)],
  [20, number],
  [21, number],
  [23, number],
  [25, showText],
  [701, number],
  [1005, (text: string) => text],
  [1700, number],
]);
