/** Reading what nobody has promised the shape of: files that may not be there, values that may be anything. */

import { readFile } from "node:fs/promises";
import { LcmError } from "../core/base/errors.ts";

/** Null if there is no such file. */
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

/** What lies at a path of keys; undefined where one of them is missing. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const key of path) found = isFields(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  return found;
}

/** The text at a path, trimmed; null where there is none, or only blanks. */
export function textAt(value: unknown, ...path: readonly string[]): string | null {
  const found = valueAt(value, ...path);
  return typeof found === "string" && found.trim() !== "" ? found.trim() : null;
}

/** Undefined for what is not JSON. Says nothing about why: such messages quote the text, and it may hold a secret. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
