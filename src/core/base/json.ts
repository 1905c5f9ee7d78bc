/** JSON: the types of its values, a parser for objects, and what to do with values that are nested too deeply to walk. */

import { assert, LcmError } from "./errors.ts";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [field: string]: Json | undefined;
}

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function parseObject(text: string): JsonObject {
  const value: Json = JSON.parse(text);
  assert(isObject(value), "stored metadata is a JSON object");
  return value;
}

/** Deeper values are not walked: recursion, databases and hosts have limits, the lowest at 1,000 levels. */
const levelsMax = 500;

export const isTooDeep = (value: Json | undefined, levels = levelsMax): boolean =>
  typeof value === "object" &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner: Json | undefined) => isTooDeep(inner, levels - 1)));

/** The JSON text of a value of any depth; `JSON.stringify` fails at some thousand levels. */
export function jsonText(value: Json): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return writeLevelByLevel(value);
    throw error;
  }
}

type Container = readonly Json[] | JsonObject;

/** A container that is being written: its members, how many are written, and how it ends. */
interface Open {
  readonly container: Container;
  readonly members: readonly (readonly [label: string, value: Json])[];
  written: number;
  readonly end: string;
}

function writeLevelByLevel(value: Json): string {
  const pieces: string[] = [];
  const open: Open[] = [];
  const within = new Set<Container>();
  const write = (written: Json): void => {
    if (typeof written !== "object" || written === null) return void pieces.push(JSON.stringify(written));
    if (within.has(written)) throw new LcmError("invalid", "a value that contains itself is not JSON");
    within.add(written);
    pieces.push(Array.isArray(written) ? "[" : "{");
    open.push({ container: written, members: membersOf(written), written: 0, end: Array.isArray(written) ? "]" : "}" });
  };
  write(value);
  for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
    const member = last.members[last.written];
    if (member === undefined) {
      pieces.push(last.end);
      within.delete(last.container);
      open.pop();
      continue;
    }
    pieces.push(last.written++ === 0 ? "" : ",", member[0]);
    write(member[1]);
  }
  return pieces.join("");
}

const membersOf = (container: Container): Open["members"] =>
  Array.isArray(container)
    ? container.map((item: Json | undefined) => ["", item ?? null])
    : Object.entries(container).flatMap(([field, inner]) =>
        inner === undefined ? [] : [[`${JSON.stringify(field)}:`, inner] as const],
      );
