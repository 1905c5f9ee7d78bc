/**
 * Reads what a model answered about a batch of messages: one JSON object for each, by its key. Only keys of the batch
 * count, each once; whatever else is in the answer is dropped, and what is missing is asked again.
 */

import { misfitOf } from "../../base/json-schema.ts";
import { isObject, isTooDeep, type Json, type JsonObject } from "../../base/json.ts";
import { withoutThoughts } from "../../model-calls/read-answer.ts";

/** The valid results by key. */
export function readResults(answer: string, keys: readonly string[], schema: JsonObject): ReadonlyMap<string, Json> {
  const plain = resultsIn(answer, keys, schema);
  if (plain.size === keys.length) return plain;
  // Reasoning may contain a draft of the answer. It is removed only then: results may quote anything.
  const bare = resultsIn(withoutThoughts(answer), keys, schema);
  return bare.size > plain.size ? bare : plain;
}

function resultsIn(answer: string, keys: readonly string[], schema: JsonObject): ReadonlyMap<string, Json> {
  const known = new Set(keys);
  const results = new Map<string, Json>();
  const misfits = new Set<string>();
  for (const { item, result } of objectsIn(answer)) {
    if (typeof item !== "string" || !known.has(item) || result === undefined) continue;
    const earlier = results.get(item);
    const isOther = earlier !== undefined && JSON.stringify(earlier) !== JSON.stringify(result);
    if (isOther || isTooDeep(result, levelsMax) || misfitOf(schema, result) !== null) misfits.add(item);
    else results.set(item, result);
  }
  // Text in a message may have made the model answer for another one: which answer is right cannot be told.
  for (const key of misfits) results.delete(key);
  return results;
}

/** Deeper results are of no use, and hard to store. */
const levelsMax = 32;

/** The objects of an answer: a JSON array, an object, or one object per line, with or without a fence. */
function objectsIn(answer: string): readonly JsonObject[] {
  const text = answer
    .trim()
    .replace(/^```\w*\s*\n/, "")
    .replace(/\n\s*```$/, "");
  const whole = parsed(text);
  if (whole !== undefined) return (Array.isArray(whole) ? whole : [whole]).filter(isObject);
  return text
    .split("\n")
    .map((line) => line.trim().replace(/,$/, ""))
    .filter((line) => line.startsWith("{"))
    .map(parsed)
    .filter(isObject);
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined; // What cannot be read is asked again.
  }
}
