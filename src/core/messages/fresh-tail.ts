/** Where the fresh tail of a context begins. */

import type { Ties } from "./tool-calls.ts";
import { safeCuts } from "./tool-calls.ts";
/** How far before the fresh tail a call may lie whose result is in it. */
export const tailLookback = 64;

/** Where the fresh tail begins among the newest raw messages: no result in it is without its call. */
export function tailStart(newest: readonly Ties[], freshTailCount: number): number {
  const wanted = Math.max(0, newest.length - freshTailCount);
  return safeCuts(newest).findLast((cut) => cut <= wanted) ?? 0;
}
