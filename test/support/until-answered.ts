/** Makes a call as a host does: the same call again while the store is unavailable. */

import { setTimeout as sleep } from "node:timers/promises";
import { LcmError } from "../../src/core/base/errors.ts";

const triesMax = 2_000;

export async function untilAnswered<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof LcmError && error.code === "unavailable") || tries === triesMax) throw error;
      await sleep(Math.min(500, 5 * tries));
    }
  }
}
