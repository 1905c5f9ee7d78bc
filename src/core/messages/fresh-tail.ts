/** Finds where the fresh tail of a context begins, without separating a tool result from its call. */

import { safeCuts, type Ties } from "./tool-calls.ts";

/** How many messages before the fresh tail are searched for the call of a result in it. */
export const tailLookback = 64;

/** The position in a list of the newest raw messages. */
export function tailStart(newest: readonly Ties[], freshTailCount: number): number {
  const wanted = Math.max(0, newest.length - freshTailCount);
  return safeCuts(newest).findLast((cut) => cut <= wanted) ?? 0;
}
