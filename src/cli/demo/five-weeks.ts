/**
 * The conversation that the demo shows: five weeks between the owner of a small tea shop and her assistant, in the shape
 * in which a host writes its transcript. It is data, in the folder `demo` of this package.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageFolder } from "../../package.ts";
import type { JsonObject } from "../../core/base/json.ts";

/** One line of a transcript. */
interface DemoEntry extends JsonObject {
  readonly id: string;
  readonly timestamp: string;
  readonly message: JsonObject;
}

/**
 * What a reader of it would expect to be remembered: decisions with their reasons, numbers, names, dates; of what was
 * revised, the last version. The yardstick of every summariser. Answers are names and numbers rather than phrases, so
 * that other words for the same are no loss.
 */
export interface KeyFact {
  readonly question: string;
  /** Strings that must all appear where the fact is told. */
  readonly answer: readonly string[];
  /** The entry that tells it. */
  readonly saidIn: string;
}

export const demoSession = "demo-five-weeks";

export const readDemoTranscript = (): readonly DemoEntry[] =>
  linesOf("five-weeks.jsonl").map((line): DemoEntry => JSON.parse(line));

/** In the order in which they were said. */
export const readKeyFacts = (): readonly KeyFact[] =>
  linesOf("key-facts.jsonl").map((line): KeyFact => JSON.parse(line));

const linesOf = (file: string): readonly string[] =>
  readFileSync(join(packageFolder(), "demo", file), "utf8")
    .trimEnd()
    .split("\n");
