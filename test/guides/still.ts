/**
 * Loaded before all else, in every thread. Today is always the same day, a month after the demo's last message, and the
 * ids that a command makes are always the same: so pages stay true in the years to come, to the last token of an id.
 */

import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { isMainThread } from "node:worker_threads";

/** The command that runs, for whatever thread of it makes ids. */
export const seedVariable = "GUIDES_COMMAND";

// Of the process, not of the thread: no thread's clock is behind another's.
const startedMs = Number((process.env["GUIDES_STARTED"] ??= String(Date.now())));
const offsetMs = Date.parse("2026-11-16T09:00:00Z") - startedMs;
const realNow = Date.now;
const now = (): number => realNow() + offsetMs;

globalThis.Date = new Proxy(Date, {
  construct: (real, given, made) => Reflect.construct(real, given.length === 0 ? [now()] : given, made),
  get: (real, name) => (name === "now" ? now : Reflect.get(real, name)),
});

let made = 0;
export const beginIds = (): void => void (made = 0);

const sameBytes = (size: number): Buffer =>
  crypto
    .createHash("sha256")
    .update(`${process.env[seedVariable]} ${isMainThread} ${++made}`)
    .digest()
    .subarray(0, size);

Object.assign(crypto, { randomBytes: sameBytes });
syncBuiltinESMExports();
