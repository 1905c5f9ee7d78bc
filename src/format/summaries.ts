/** What is said about summaries wherever they are shown. */

import { messageName } from "../core/model/types.ts";
import type { Level, MessageId } from "../core/model/types.ts";

/** Why a text says less than it could. */
export const levelWords: Readonly<Record<Exclude<Level, "normal">, string>> = {
  aggressive: "from a second, stricter attempt",
  extractive: "extracted without a model",
  truncated: "cut short, no level helped",
};

/** `msg_4…msg_9, msg_12`: messages that follow each other are told by the first and the last. */
export function messageRuns(ids: readonly MessageId[]): string {
  const runs: [first: MessageId, last: MessageId][] = [];
  for (const id of ids) {
    const run = runs.at(-1);
    if (run?.[1] === id - 1) run[1] = id;
    else runs.push([id, id]);
  }
  return runs.map((ends) => [...new Set(ends)].map(messageName).join("…")).join(", ");
}
