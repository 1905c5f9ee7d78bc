/** Forces garbage collection, for tests of what stays in memory. */

import { setImmediate as nextTick } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  // One round of a finalisation registry may release something that only the next round can collect.
  for (let round = 0; round < 5; round++) {
    collect();
    await nextTick();
  }
}
