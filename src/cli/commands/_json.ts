/**
 * Describes what `--json` prints: JSON Schemas that carry the type they describe, so that the compiler compares them with
 * what a command prints. docs/json.md is made from them, and a test validates the output of every command.
 */

import type { JsonObject } from "../../core/base/json.ts";

declare const described: unique symbol;

export type Schema<T = unknown> = JsonObject & { readonly [described]?: T };

export type TypeOf<S> = S extends { readonly [described]?: infer T } ? T : never;

const make = <T>(schema: JsonObject): Schema<T> => schema;

export const anything = make<unknown>({});
export const text = make<string>({ type: "string" });
export const whole = make<number>({ type: "integer" });
export const real = make<number>({ type: "number" });
export const flag = make<boolean>({ type: "boolean" });
/** UTC with milliseconds. */
export const time = make<string>({
  type: "string",
  pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`,
  title: "time",
});

export const list = <T>(items: Schema<T>): Schema<readonly T[]> => make({ type: "array", items });

export const maybe = <T>(schema: Schema<T>): Schema<T | null> => make({ anyOf: [schema, { type: "null" }] });

export const oneOf = <const T extends string>(...values: readonly T[]): Schema<T> => make({ enum: [...values] });

export const either = <const S extends readonly Schema[]>(...schemas: S): Schema<TypeOf<S[number]>> =>
  make({ anyOf: [...schemas] });

/** Any keys, such as those of a host's message. */
export const record = <T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> =>
  make({ type: "object", additionalProperties: values });

type Fields = Readonly<Record<string, Schema>>;

type ObjectOf<F extends Fields> = {
  readonly [K in keyof F as K extends `${string}?` ? never : K]: TypeOf<F[K]>;
} & { readonly [K in keyof F as K extends `${infer Name}?` ? Name : never]?: TypeOf<F[K]> };

/** Exactly these keys; one that ends in `?` may be absent. */
export function object<const F extends Fields>(fields: F): Schema<ObjectOf<F>> {
  const keys = Object.keys(fields);
  return make({
    type: "object",
    properties: Object.fromEntries(Object.entries(fields).map(([key, schema]) => [key.replace(/\?$/, ""), schema])),
    required: keys.filter((key) => !key.endsWith("?")),
    additionalProperties: false,
  });
}

export const about = <T>(schema: Schema<T>, description: string): Schema<T> => make({ ...schema, description });

/** For a shape that contains itself: `refer("node")` within `defining({ node }, …)`. */
export const refer = (name: string): Schema => make({ $ref: `#/$defs/${name}` });
export const defining = <T>(definitions: Fields, schema: Schema<T>): Schema<T> =>
  make({ ...schema, $defs: definitions });
