/** The library: everything an agent builder needs to keep a conversation without loss. */

import type { Clock } from "./core/ports.ts";
import { systemNow } from "./store/sqlite.ts";

export { createLcm } from "./core/lcm.ts";
export type { Lcm } from "./core/lcm.ts";
export { LcmError } from "./core/errors.ts";
export { messageFromStore, messageToStore } from "./core/content.ts";
export { parseTimestamp } from "./core/text.ts";
export type * from "./core/model.ts";
export type * from "./core/ports.ts";
export { openSqlite } from "./store/sqlite.ts";
export { openSqliteWorker } from "./store/sqlite-worker.ts";
export { adopt } from "./store/adopt.ts";

/** The time as the machine has it. */
export const systemClock: Clock = { now: systemNow };
