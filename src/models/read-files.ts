/** Reads files that may be missing, and fields of values of unknown shape. */

import { readFile } from "node:fs/promises";
import { LcmError } from "../core/base/errors.ts";

/** Null if the file does not exist. */
export async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return null;
    throw new LcmError("denied", `${path} cannot be read`, { cause });
  }
}

type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The value at a path of keys; undefined if one is missing. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const key of path) found = isFields(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  return found;
}

/** The trimmed text at a path; null if there is none or it is blank. */
export function textAt(value: unknown, ...path: readonly string[]): string | null {
  const found = valueAt(value, ...path);
  return typeof found === "string" && found.trim() !== "" ? found.trim() : null;
}

/** Undefined if the text is not JSON. The parser's message is dropped: it quotes the text, which may contain a secret. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
