/** JSON: the types of its values, and a parser for objects. */

import { assert } from "./errors.ts";

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
