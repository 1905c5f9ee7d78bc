/** Reads the demo conversation, five weeks of a tea shop owner and her assistant, and its key facts. */

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
 * A fact that a reader would expect to be remembered; every summariser is measured by these. Answers are names and
 * numbers, so that paraphrasing does not count as a loss.
 */
export interface KeyFact {
  readonly question: string;
  /** Strings that must all appear in one place. */
  readonly answer: readonly string[];
  /** The entry that states it. */
  readonly saidIn: string;
}

/** Prompts of the demo are recorded as if they were sent to this model: the first has room for everything. */
export const demoModel = { model: "demo" } as const;
export const largeBudget = 200_000;
/** The context window of a small local model. */
export const smallBudget = 16_000;

export const demoSession = "demo-five-weeks";

export const readDemoTranscript = (): readonly DemoEntry[] =>
  linesOf("five-weeks.jsonl").map((line): DemoEntry => JSON.parse(line));

/** In chronological order. */
export const readKeyFacts = (): readonly KeyFact[] =>
  linesOf("key-facts.jsonl").map((line): KeyFact => JSON.parse(line));

const linesOf = (file: string): readonly string[] =>
  readFileSync(join(packageFolder(), "demo", file), "utf8")
    .trimEnd()
    .split("\n");
