/** Describes the level of a summary, and lists message ids as ranges. */

import { messageName } from "../core/model/types.ts";
import type { Level, MessageId } from "../core/model/types.ts";

/** Why a summary says less than it could. */
export const levelWords: Readonly<Record<Exclude<Level, "normal">, string>> = {
  aggressive: "shorter: from a second, stricter attempt",
  extractive: "extracted without a model",
  truncated: "cut short: no attempt was usable",
};

/** `msg_4…msg_9, msg_12`: consecutive messages as ranges. */
export function messageRuns(ids: readonly MessageId[]): string {
  const runs: [first: MessageId, last: MessageId][] = [];
  for (const id of ids) {
    const run = runs.at(-1);
    if (run?.[1] === id - 1) run[1] = id;
    else runs.push([id, id]);
  }
  return runs.map((ends) => [...new Set(ends)].map(messageName).join("…")).join(", ");
}
