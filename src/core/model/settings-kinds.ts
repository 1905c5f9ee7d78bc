/** The kinds of settings: how a value is read from the environment, which values are valid, and how that is documented. */

import type { JsonObject } from "../base/json.ts";

/** One row of the table. The settings of the older program need no `why`. */
export type Setting = { readonly sentence: string; readonly why?: string } & (
  | { readonly kind: "boolean"; readonly default: boolean }
  | { readonly kind: "integer" | "number"; readonly default: number; readonly bounds: Bounds }
  | { readonly kind: "string" | "path" | "url"; readonly default: null; readonly example: string }
  | { readonly kind: "zone"; readonly default: string }
  | { readonly kind: "choice"; readonly default: string; readonly choices: readonly string[] }
  | { readonly kind: "list"; readonly default: readonly string[]; readonly example: readonly string[] }
);

/** Inclusive. */
export type Bounds = readonly [least: number, most: number];

export type Value = boolean | number | string | null | readonly string[];

interface Kind {
  /** The value of a variable's text, not yet checked; undefined if there is none. */
  readonly fromText: (text: string) => unknown;
  /** Whether a value is valid. The JSON schema has the same rule, except for time zones. */
  readonly fits: (value: unknown, limits: Limits) => boolean;
  readonly expectation: (limits: Limits) => string;
  readonly schema: (limits: Limits) => JsonObject;
}

interface Limits {
  readonly bounds: Bounds;
  readonly choices: readonly string[];
}

const isWithin = ([least, most]: Bounds, value: unknown): boolean =>
  typeof value === "number" && value >= least && value <= most;

const isFilled = (value: unknown): value is string => typeof value === "string" && /\S/.test(value);

export const zoneDefault = "UTC";

function isZone(name: string): boolean {
  // The first lookup in the zone tables is slow, and the default needs none.
  if (name === zoneDefault) return true;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false; // A RangeError means that there is no such zone, which the caller reports.
  }
}

const postgresUrl = /^postgres(ql)?:\/\//;

const booleanWords: ReadonlyMap<string, boolean> = new Map([
  ...["true", "1", "yes", "on"].map((word) => [word, true] as const),
  ...["false", "0", "no", "off"].map((word) => [word, false] as const),
]);

const text: Kind = {
  fromText: (text) => text,
  fits: (value) => value === null || isFilled(value),
  expectation: () => "text, not blank",
  schema: () => ({ type: ["string", "null"], pattern: "\\S" }),
};

export const kinds: Readonly<Record<Setting["kind"], Kind>> = {
  boolean: {
    fromText: (text) => booleanWords.get(text.trim().toLowerCase()),
    fits: (value) => typeof value === "boolean",
    expectation: () => "true or false (variables also accept 1 or 0, yes or no, on or off)",
    schema: () => ({ type: "boolean" }),
  },
  integer: {
    fromText: (text) => (/^-?\d+$/.test(text.trim()) ? Number(text) : undefined),
    fits: (value, { bounds }) => Number.isInteger(value) && isWithin(bounds, value),
    expectation: ({ bounds }) => `a whole number from ${bounds.join(" to ")}`,
    schema: ({ bounds: [minimum, maximum] }) => ({ type: "integer", minimum, maximum }),
  },
  number: {
    fromText: (text) => (/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : undefined),
    fits: (value, { bounds }) => isWithin(bounds, value),
    expectation: ({ bounds }) => `a number from ${bounds.join(" to ")}`,
    schema: ({ bounds: [minimum, maximum] }) => ({ type: "number", minimum, maximum }),
  },
  string: text,
  path: { ...text, expectation: () => "a path, not blank" },
  url: {
    fromText: (text) => text.trim(),
    fits: (value) => value === null || (typeof value === "string" && postgresUrl.test(value)),
    expectation: () => "a URL that begins with postgres://",
    schema: () => ({ type: ["string", "null"], pattern: postgresUrl.source }),
  },
  zone: {
    fromText: (text) => text.trim(),
    fits: (value) => isFilled(value) && isZone(value),
    expectation: () => "an IANA time zone name",
    schema: () => ({ type: "string", pattern: "\\S" }),
  },
  choice: {
    fromText: (text) => text.trim(),
    fits: (value, { choices }) => typeof value === "string" && choices.includes(value),
    expectation: ({ choices }) => `one of ${choices.join(", ")}`,
    schema: ({ choices }) => ({ type: "string", enum: choices }),
  },
  list: {
    fromText: (text) =>
      text
        .trim()
        .split(/\s*,\s*/)
        .filter(isFilled),
    fits: (value) => Array.isArray(value) && value.every(isFilled),
    expectation: () => "a list of texts, none blank (in a variable, separated by commas)",
    schema: () => ({ type: "array", items: { type: "string", pattern: "\\S" } }),
  },
};

const limitsOf = (setting: Setting): Limits => ({ bounds: [-Infinity, Infinity], choices: [], ...setting });

export const fits = (setting: Setting, value: unknown): value is Value =>
  kinds[setting.kind].fits(value, limitsOf(setting));
export const expectation = (setting: Setting): string => kinds[setting.kind].expectation(limitsOf(setting));
export const schemaOf = (setting: Setting): JsonObject => kinds[setting.kind].schema(limitsOf(setting));
