/** What is held by nobody goes now, for tests of what stays in memory. */

import { setImmediate as nextTick } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  // What a registry is told of in one round may let go of something that only the next one can take.
  for (let round = 0; round < 5; round++) {
    collect();
    await nextTick();
  }
}
