/**
 * What a model passes to a tool, against what the tool takes. Models err in harmless ways (a number as a string, one id
 * where a list is wanted, null for nothing), and where the meaning is clear they get what they meant; everything else
 * is told with the argument's name, what is wrong and a call that works. The schemas are plain JSON Schema, so that
 * every host and provider takes them; typebox, which checks them, is loaded with the first call.
 */

import { LcmError } from "../core/base/errors.ts";
import type { Lcm } from "../core/lcm.ts";
import { parseSpan } from "../core/base/parse-time.ts";

export type Parameter = { readonly description: string } & (
  | {
      readonly type: "string";
      readonly minLength?: number;
      readonly enum?: readonly string[];
      readonly default?: string;
    }
  | { readonly type: "integer"; readonly minimum: number; readonly maximum?: number; readonly default?: number }
  | { readonly type: "boolean"; readonly default?: boolean }
  | { readonly type: "array"; readonly items: { readonly type: "string" }; readonly minItems: number }
);

export type Parameters = {
  readonly type: "object";
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, Parameter>>;
};

/** What a call holds that fits the schema. */
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
    }[Q["type"]];

/** What the tool takes, as its types say; throws `invalid` for what cannot be meant. */
export async function checkArguments<const P extends Parameters>(
  parameters: P,
  given: unknown,
): Promise<ArgumentsOf<P>> {
  const { args, unknown } = mend(parameters, given);
  const { Check, Errors } = await import("typebox/schema");
  const fits = (values: unknown): values is ArgumentsOf<P> => Check(parameters, values);
  if (unknown.length === 0 && fits(args)) return args;
  const wrong = Errors(parameters, args)[1].flatMap((error) =>
    error.keyword === "required" ? error.params.requiredProperties : (error.instancePath.split("/")[1] ?? []),
  );
  const { properties, required } = parameters;
  const missing = required.filter((name) => args[name] === undefined);
  // Another name for the one thing that is missing means that.
  const meant = unknown.length === 1 && missing.length === 1 ? missing[0] : undefined;
  const problems = [
    ...unknown.map((name) => unknownArgument(Object.keys(properties), name, meant)),
    ...[...new Set(wrong)].map((name) => problem(name, properties[name], args[name])),
  ];
  throw new LcmError("invalid", problems.join("; "));
}

// ── What was meant ───────────────────────────────────────────────────────────────────────────────────────────────────

function mend({ properties, required }: Parameters, given: unknown) {
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

/** Models fill in what they do not use. */
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
      // Ids hold neither blanks nor commas, so one, several and a list written as text all say which they are.
      return typeof value === "string" ? (value.match(/[^\s,;[\]"']+/g) ?? []) : value;
    case "string": {
      const text = typeof value === "number" ? String(value) : value;
      if (typeof text !== "string") return text;
      return parameter.enum?.find((choice) => plain(choice) === plain(text)) ?? text;
    }
  }
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
]);

/** `all_conversations`, `allconversations` and `allConversations` are one name. */
const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, "");

// ── What is wrong ────────────────────────────────────────────────────────────────────────────────────────────────────

function problem(name: string, parameter: Parameter | undefined, value: unknown): string {
  const expected = parameter === undefined ? "something else" : expectation(parameter);
  if (value === undefined) return `${name} is missing: it must be ${expected}`;
  return `${name} is ${show(value)}, but must be ${expected}`;
}

/** What a value may be, in words. */
export function expectation(parameter: Parameter): string {
  switch (parameter.type) {
    case "integer":
      return parameter.maximum === undefined
        ? `a whole number from ${parameter.minimum} on`
        : `a whole number from ${parameter.minimum} to ${parameter.maximum}`;
    case "boolean":
      return "true or false";
    case "array":
      return "a list of summary ids";
    case "string":
      return parameter.enum === undefined ? "a text that is not empty" : `one of ${parameter.enum.join(", ")}`;
  }
}

function unknownArgument(known: readonly string[], name: string, meant: string | undefined): string {
  const [nearest = ""] = known.toSorted((one, other) => distance(one, name) - distance(other, name));
  const likely = distance(nearest, name) <= nearest.length / 3 ? nearest : meant;
  const words = likely === undefined ? "" : `, did you mean ${likely}?`;
  return `there is no argument ${show(name)}${words} (known: ${known.join(", ")})`;
}

/** How many letters must change to make one word of the other. */
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

// ── What several tools take ──────────────────────────────────────────────────────────────────────────────────────────

/** At most more than any answer is worth, and what a host's thread can still take in without a pause. */
export const tokenCapOf = (description: string) =>
  ({ type: "integer", minimum: 1, maximum: 50_000, description }) as const satisfies Parameter;

export const shownTokenCap = tokenCapOf(
  "How many tokens of stored text to show at most; the setting maxExpandTokens (4000) if left out.",
);

export const conversationId = {
  type: "integer",
  minimum: 1,
  description: "Only this conversation, by its number as lcm_grep shows it; your whole session if left out.",
} as const satisfies Parameter;

export const allConversations = {
  type: "boolean",
  default: false,
  description: "Also other sessions than your own, as far as you are allowed to read.",
} as const satisfies Parameter;

/** A text that is not empty. */
export const textOf = (description: string) =>
  ({ type: "string", minLength: 1, description }) as const satisfies Parameter;

export const since = textOf(
  "Only from this time on, in UTC: 2026-02-17, 2026-02-17T15:30 (or with an offset), yesterday, or ago: 2h, 7d.",
);

export const before = textOf("Only before this time, written like since.");

export const spanOf = (args: { readonly since?: string; readonly before?: string }, { clock }: Lcm) =>
  parseSpan(args, "UTC", clock.now(), "");
