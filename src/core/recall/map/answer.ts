/**
 * Reads what a model answered about a batch of messages: one JSON object for each, by its key. Only keys of the batch
 * count, each once; whatever else is in the answer is dropped, and what is missing is asked again.
 */

import { misfitOf } from "../../base/json-schema.ts";
import { isObject, isTooDeep, type Json, type JsonObject } from "../../base/json.ts";
import { withoutThoughts } from "../../model-calls/read-answer.ts";

/** The valid results by key. `problem`: why a result is missing, as a clause; null if none is. */
export interface ReadResults {
  readonly results: ReadonlyMap<string, Json>;
  readonly problem: string | null;
}

export function readResults(answer: string, keys: readonly string[], schema: JsonObject): ReadResults {
  const plain = resultsIn(answer, keys, schema);
  // Reasoning may contain a draft of the answer. It is removed only then: results may quote anything.
  return plain.problem === null ? plain : better(plain, resultsIn(withoutThoughts(answer), keys, schema));
}

const better = (one: ReadResults, other: ReadResults): ReadResults =>
  other.results.size > one.results.size ? other : one;

function resultsIn(answer: string, keys: readonly string[], schema: JsonObject): ReadResults {
  const known = new Set(keys);
  const results = new Map<string, Json>();
  const misfits = new Map<string, string>();
  for (const { item, result } of objectsIn(answer)) {
    if (typeof item !== "string" || !known.has(item) || result === undefined) continue;
    const earlier = results.get(item);
    const misfit = isTooDeep(result, levelsMax) ? "it is nested too deeply" : misfitOf(schema, result);
    if (misfit !== null) misfits.set(item, misfit);
    else if (earlier !== undefined && JSON.stringify(earlier) !== JSON.stringify(result))
      misfits.set(item, "it was answered twice, differently");
    else results.set(item, result);
  }
  // Text in a message may have made the model answer for another one: which answer is right cannot be told.
  for (const key of misfits.keys()) results.delete(key);
  const [misfit] = misfits.values();
  const isComplete = keys.every((key) => results.has(key));
  return { results, problem: isComplete ? null : (misfit ?? "it was not answered") };
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
