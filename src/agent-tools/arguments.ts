/**
 * Checks the arguments of a tool call, and corrects harmless slips of a model: a number as a string, null for nothing.
 * Schemas are plain JSON Schema, which every host and provider accepts; typebox, which checks them, loads on first use.
 */

import { LcmError } from "../core/base/errors.ts";
import type { JsonObject } from "../core/base/json.ts";

export type Parameter = { readonly description: string } & (
  | {
      readonly type: "string";
      readonly minLength?: number;
      readonly enum?: readonly string[];
      readonly default?: string;
    }
  | { readonly type: "integer"; readonly minimum: number; readonly maximum?: number; readonly default?: number }
  | { readonly type: "boolean"; readonly default?: boolean }
  | {
      readonly type: "array";
      readonly items: { readonly type: "string"; readonly description?: string };
      readonly minItems: number;
      readonly maxItems?: number;
    }
  /** Any JSON object. */
  | { readonly type: "object" }
);

export type Parameters = {
  readonly type: "object";
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, Parameter>>;
};

/** The arguments of a call that fits the schema. */
export type ArgumentsOf<P extends Parameters> = {
  readonly [K in keyof P["properties"] & P["required"][number]]: ValueOf<P["properties"][K]>;
} & {
  readonly [K in Exclude<keyof P["properties"], P["required"][number]>]?: ValueOf<P["properties"][K]>;
};

type ValueOf<Q extends Parameter> = Q extends { readonly enum: readonly (infer Choice)[] }
  ? Choice
  : {
      readonly string: string;
      readonly integer: number;
      readonly boolean: boolean;
      readonly array: string[];
      readonly object: JsonObject;
    }[Q["type"]];

/** Throws `invalid` with every problem at once. */
export async function checkArguments<const P extends Parameters>(
  parameters: P,
  given: unknown,
): Promise<ArgumentsOf<P>> {
  const { args, unknown } = correct(parameters, given);
  const { Check, Errors } = await import("typebox/schema");
  const fits = (values: unknown): values is ArgumentsOf<P> => Check(parameters, values);
  if (unknown.length === 0 && fits(args)) return args;
  const wrong = Errors(parameters, args)[1].flatMap((error) =>
    error.keyword === "required" ? error.params.requiredProperties : (error.instancePath.split("/")[1] ?? []),
  );
  const { properties, required } = parameters;
  const missing = required.filter((name) => args[name] === undefined);
  // An unknown name probably means the one argument that is missing.
  const meant = unknown.length === 1 && missing.length === 1 ? missing[0] : undefined;
  const problems = [
    ...unknown.map((name) => unknownArgument(Object.keys(properties), name, meant)),
    ...[...new Set(wrong)].map((name) => problem(name, properties[name], args[name])),
  ];
  throw new LcmError("invalid", problems.join("; "));
}

function correct({ properties, required }: Parameters, given: unknown) {
  if (given !== undefined && given !== null && (typeof given !== "object" || Array.isArray(given))) {
    throw new LcmError("invalid", `the arguments are ${show(given)}, but must be an object`);
  }
  const args: Record<string, unknown> = {};
  const unknown: string[] = [];
  for (const [written, value] of Object.entries(given ?? {})) {
    const name = Object.keys(properties).find((each) => plain(each) === plain(written));
    const parameter = name === undefined ? undefined : properties[name];
    if (name === undefined || parameter === undefined) unknown.push(written);
    else if (!isAbsent(value, required.includes(name))) args[name] = meant(parameter, value);
  }
  return { args, unknown };
}

/** Models fill in arguments that they do not use. */
const isAbsent = (value: unknown, isRequired: boolean): boolean =>
  value === null ||
  value === undefined ||
  (!isRequired && (value === "" || (Array.isArray(value) && value.length === 0)));

function meant(parameter: Parameter, value: unknown): unknown {
  switch (parameter.type) {
    case "integer":
      return typeof value === "string" && /^\s*-?\d+(\.0+)?\s*$/.test(value) ? Number(value) : value;
    case "boolean":
      return typeof value === "string" ? (booleans.get(plain(value)) ?? value) : value;
    case "array":
      if (typeof value !== "string") return value;
      // Ids contain neither spaces nor commas, so a string can be split into ids.
      return parameter.items.description === undefined ? (value.match(/[^\s,;[\]"']+/g) ?? []) : [value];
    case "object":
      return typeof value === "string" ? (parsed(value) ?? value) : value;
    case "string": {
      const text = typeof value === "number" ? String(value) : value;
      if (typeof text !== "string") return text;
      return parameter.enum?.find((choice) => plain(choice) === plain(text)) ?? text;
    }
  }
}

/** Undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // The schema then reports what was passed.
  }
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
]);

/** `all_conversations`, `allconversations` and `allConversations` are the same name. */
const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, "");

function problem(name: string, parameter: Parameter | undefined, value: unknown): string {
  const expected = parameter === undefined ? "something else" : expectation(parameter);
  if (value === undefined) return `${name} is missing: it must be ${expected}`;
  return `${name} is ${show(value)}, but must be ${expected}`;
}

export function expectation(parameter: Parameter): string {
  switch (parameter.type) {
    case "integer":
      return parameter.maximum === undefined
        ? `a whole number, at least ${parameter.minimum}`
        : `a whole number from ${parameter.minimum} to ${parameter.maximum}`;
    case "boolean":
      return "true or false";
    case "array":
      return `a list of ${parameter.items.description ?? "summary ids"}${parameter.maxItems === undefined ? "" : `, at most ${parameter.maxItems}`}`;
    case "object":
      return "an object";
    case "string":
      return parameter.enum === undefined ? "a non-empty string" : `one of ${parameter.enum.join(", ")}`;
  }
}

function unknownArgument(known: readonly string[], name: string, meant: string | undefined): string {
  const [nearest = ""] = known.toSorted((one, other) => distance(one, name) - distance(other, name));
  const likely = distance(nearest, name) <= nearest.length / 3 ? nearest : meant;
  const words = likely === undefined ? "" : `, did you mean ${likely}?`;
  return `there is no argument ${show(name)}${words} (known: ${known.join(", ")})`;
}

/** Edit distance, ignoring case. */
function distance(a: string, b: string): number {
  const letters = b.toLowerCase().slice(0, shownCharsMax).split("");
  let above = [0, ...letters.keys().map((at) => at + 1)];
  for (const letter of a.toLowerCase()) {
    const here = [(above[0] ?? 0) + 1];
    for (const [at, other] of letters.entries()) {
      const kept = (above[at] ?? 0) + (letter === other ? 0 : 1);
      here.push(Math.min(kept, (above[at + 1] ?? 0) + 1, (here[at] ?? 0) + 1));
    }
    above = here;
  }
  return above.at(-1) ?? 0;
}

const shownCharsMax = 60;

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length <= shownCharsMax ? text : `${text.slice(0, shownCharsMax)}…`;
}

/** The maximum is more than any answer needs, and still does not block a host's thread. */
export const tokenCapOf = (description: string) =>
  ({ type: "integer", minimum: 1, maximum: 50_000, description }) as const satisfies Parameter;

export const shownTokenCap = tokenCapOf(
  "Return at most this many tokens of stored text. Default: the setting maxExpandTokens (4000).",
);

export const conversationId = {
  type: "integer",
  minimum: 1,
  description:
    "Read only this conversation, by its number in lcm_grep results. Default: your whole session or project.",
} as const satisfies Parameter;

export const allConversations = {
  type: "boolean",
  default: false,
  description: "Set to true to include other sessions, as far as you are allowed to read them.",
} as const satisfies Parameter;

export const textOf = (description: string) =>
  ({ type: "string", minLength: 1, description }) as const satisfies Parameter;

export const since = textOf(
  "Include only what was said at or after this time or message: 2026-02-17, 2026-02-17T15:30 (UTC, or with an offset), yesterday, tuesday, last week, 2h or 7d (ago), msg_1-42 (only its conversation).",
);

export const after = textOf("Like since, but without the message itself: msg_1-42 for what came after it.");

export const before = textOf("Include only what was said before this time or message, in the same formats as since.");

export const role = textOf(
  "Include only messages of this role: user, assistant, tool (results) or system; several separated by commas.",
);

/** For searches: one search for all of them finds much more than one wording alone. */
export const also = {
  type: "array",
  items: { type: "string", description: "search words" },
  minItems: 1,
  maxItems: 5,
  description:
    "The same question in 2 or 3 other wordings, as the answer itself might say it: other words, names, identifiers, " +
    "paths, error messages. What any of them finds is ranked together. Not for regular expressions.",
} as const;
