/**
 * Fixes the date and the ids in every thread, loaded before all else, so that pages stay true in years to come. Today
 * is always a month after the demo's last message, and the ids that a command makes are always the same.
 */

import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { isMainThread } from "node:worker_threads";

/** The running command, for every thread of it that makes ids. */
export const seedVariable = "GUIDES_COMMAND";

// Shared by the process, so that no thread's clock is behind another's.
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
