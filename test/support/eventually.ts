/** Waits for something that another process, thread or timer does, as long as a busy machine may take. */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

/** Only a failing test waits this long. */
export const patienceMs = 120_000;
const lookEveryMs = 5;

/** Fails with `what` if it never becomes so. */
export async function eventually(isSo: () => boolean | Promise<boolean>, what = String(isSo)): Promise<void> {
  const end = performance.now() + patienceMs;
  while (!(await isSo())) {
    assert.ok(performance.now() < end, `never came true: ${what}`);
    await sleep(lookEveryMs);
  }
}
