/**
 * Loaded into each thread of the real program before it starts: counts its writing statements and sends SIGKILL right
 * after a chosen one. The process dies in the middle of its transaction. `COUNT_TO` names a file for the count of the
 * thread that writes, `KILL_AT` the statement.
 */

import { writeFileSync } from "node:fs";
import { StatementSync } from "node:sqlite";

const killAt = Number(process.env["KILL_AT"] ?? 0);
const countTo = process.env["COUNT_TO"];
let written = 0;

const isWrite = /^\s*(?:INSERT|UPDATE|DELETE)\b/i;
for (const name of ["run", "all"] as const) {
  const original = StatementSync.prototype[name];
  const counting = function (this: StatementSync, ...values: never[]): unknown {
    const result: unknown = Reflect.apply(original, this, values);
    if (!isWrite.test(this.sourceSQL)) return result;
    if (++written === killAt) process.kill(process.pid, "SIGKILL");
    if (countTo !== undefined) writeFileSync(countTo, String(written));
    return result;
  };
  Object.defineProperty(StatementSync.prototype, name, { value: counting });
}
