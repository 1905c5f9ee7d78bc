/**
 * Checks values against JSON Schemas that models are asked to follow: the keywords that say what a value is made of.
 * A schema with any other keyword is refused, so that nothing in it is silently ignored.
 */

import { LcmError } from "./errors.ts";
import { isObject, isTooDeep, type Json, type JsonObject } from "./json.ts";
import { estimateTokens } from "./tokens.ts";

const types = ["object", "array", "string", "number", "integer", "boolean", "null"];

/** What each keyword's value must be. */
const keywords: Readonly<Record<string, (value: Json) => boolean>> = {
  type: (value) => [value].flat().every((each) => typeof each === "string" && types.includes(each)),
  enum: (value) => Array.isArray(value) && value.length > 0,
  const: () => true,
  properties: isObject,
  required: (value) => Array.isArray(value) && value.every((each: Json) => typeof each === "string"),
  additionalProperties: (value) => typeof value === "boolean",
  items: isObject,
  anyOf: (value) => Array.isArray(value) && value.length > 0 && value.every((each: Json) => isObject(each)),
  ...Object.fromEntries(
    ["minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"].map((name) => [name, isNumber]),
  ),
  ...Object.fromEntries(["title", "description", "default", "examples", "$schema"].map((name) => [name, () => true])),
};

function isNumber(value: Json): boolean {
  return typeof value === "number";
}

const levelsMax = 16;
const charactersMax = 10_000;

/** Throws `invalid` if a schema is not one that this file can check. */
export function checkSchema(schema: Json): asserts schema is JsonObject {
  const refuse = (problem: string): never => {
    throw new LcmError("invalid", `the schema ${problem}`, {
      hint: `for example {"type":"object","properties":{"topic":{"type":"string"}},"required":["topic"]}`,
    });
  };
  if (!isObject(schema)) return refuse("is not an object");
  if (isTooDeep(schema, levelsMax)) return refuse(`is nested more than ${levelsMax} levels deep`);
  if (JSON.stringify(schema).length > charactersMax) return refuse(`has more than ${charactersMax} characters`);
  for (const inner of withInner(schema)) {
    for (const [name, value] of Object.entries(inner)) {
      const isRight = Object.hasOwn(keywords, name) ? keywords[name] : undefined;
      if (isRight === undefined)
        refuse(`uses ${JSON.stringify(name)}, which is not supported (known: ${Object.keys(keywords).join(", ")})`);
      else if (value === undefined || !isRight(value)) refuse(`has a wrong value of ${name}: ${JSON.stringify(value)}`);
    }
  }
}

/** A schema and those inside it. */
function withInner(schema: JsonObject): readonly JsonObject[] {
  const { properties, items, anyOf } = schema;
  const inner = [
    ...Object.values(isObject(properties) ? properties : {}),
    items,
    ...(Array.isArray(anyOf) ? anyOf : []),
  ];
  if (inner.some((each) => each !== undefined && !isObject(each)))
    throw new LcmError("invalid", "the schema describes a property by something that is not an object");
  return [schema, ...inner.filter(isObject).flatMap(withInner)];
}

/** Why a value does not fit a schema, as a clause; null if it does. The schema must have been checked. */
export function misfitOf(schema: JsonObject, value: Json, at = "the value"): string | null {
  const { type, enum: choices, anyOf } = schema;
  if (type !== undefined && ![type].flat().some((each) => isOfType(value, each)))
    return `${at} is not ${typeWords(type)}`;
  if (Array.isArray(choices) && !choices.some((each: Json) => isSame(each, value)))
    return `${at} is none of ${JSON.stringify(choices)}`;
  if (schema["const"] !== undefined && !isSame(schema["const"], value))
    return `${at} is not ${JSON.stringify(schema["const"])}`;
  if (Array.isArray(anyOf) && anyOf.every((each: Json) => isObject(each) && misfitOf(each, value, at) !== null))
    return `${at} fits none of the alternatives`;
  const size = sizeMisfit(schema, value, at);
  if (size !== null) return size;
  if (Array.isArray(value)) return itemsMisfit(schema, value, at);
  return isObject(value) ? fieldsMisfit(schema, value, at) : null;
}

const typeWords = (type: Json): string =>
  [type]
    .flat()
    .filter((each) => typeof each === "string")
    .join(" or ");

function isOfType(value: Json, type: Json): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  return type === "object" ? isObject(value) : typeof value === type;
}

/** Of JSON values, whatever the order of their keys. */
function isSame(one: Json, other: Json): boolean {
  if (Array.isArray(one) || Array.isArray(other))
    return Array.isArray(one) && Array.isArray(other) && one.length === other.length && sameFields(one, other);
  if (isObject(one) && isObject(other))
    return Object.keys(one).length === Object.keys(other).length && sameFields(one, other);
  return one === other;
}

const sameFields = (one: object, other: object): boolean => {
  const fields = new Map<string, Json>(Object.entries(other));
  return Object.entries(one).every(([name, value]) => fields.has(name) && isSame(value, fields.get(name) ?? null));
};

function sizeMisfit(schema: JsonObject, value: Json, at: string): string | null {
  const [name, size] = Array.isArray(value)
    ? (["Items", value.length] as const)
    : typeof value === "string"
      ? (["Length", [...value].length] as const)
      : (["imum", value] as const);
  if (typeof size !== "number") return null;
  const [least, most] = [schema[`min${name}`], schema[`max${name}`]];
  if (typeof least === "number" && size < least) return `${at} is below min${name} ${least}`;
  return typeof most === "number" && size > most ? `${at} is above max${name} ${most}` : null;
}

function itemsMisfit({ items }: JsonObject, value: readonly Json[], at: string): string | null {
  if (!isObject(items)) return null;
  for (const [place, item] of value.entries()) {
    const misfit = misfitOf(items, item, `${at}[${place}]`);
    if (misfit !== null) return misfit;
  }
  return null;
}

function fieldsMisfit(schema: JsonObject, value: JsonObject, at: string): string | null {
  const { required, additionalProperties } = schema;
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  for (const name of Array.isArray(required) ? required : [])
    if (typeof name === "string" && !Object.hasOwn(value, name)) return `${at} has no ${JSON.stringify(name)}`;
  for (const [name, inner] of Object.entries(value)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property === undefined && additionalProperties === false) return `${at} has an unknown ${JSON.stringify(name)}`;
    const misfit = isObject(property) && inner !== undefined ? misfitOf(property, inner, `${at}.${name}`) : null;
    if (misfit !== null) return misfit;
  }
  return null;
}

/** About how many tokens a typical value has. */
export const valueTokens = (schema: JsonObject): number => estimateTokens(JSON.stringify(sampleOf(schema)));

const sampleWords = "a few words as a model writes them";

function sampleOf({ type, enum: choices, properties, items, anyOf, const: one }: JsonObject): Json {
  if (one !== undefined) return one;
  if (Array.isArray(choices)) return choices[0] ?? null;
  const [first] = Array.isArray(anyOf) ? anyOf : [];
  if (isObject(first)) return sampleOf(first);
  if (isObject(properties))
    return Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [name, isObject(property) ? sampleOf(property) : null]),
    );
  switch ([type].flat()[0]) {
    case "boolean":
      return false;
    case "number":
    case "integer":
      return 10;
    case "array":
      return isObject(items) ? [sampleOf(items)] : [];
    case "null":
      return null;
    case "object":
      return {};
    default:
      return sampleWords;
  }
}
