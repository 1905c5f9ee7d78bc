/** Reads fields of parsed JSON whose shape is not checked. */

import type { Json } from "../../src/core/base/json.ts";

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}

export function textOf(value: unknown, name: string): string {
  const found = field(value, name);
  return typeof found === "string" ? found : "";
}

export const parseJsonl = (text: string): readonly Json[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line): Json => JSON.parse(line));
