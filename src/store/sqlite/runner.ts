/**
 * Runs scripts on an open SQLite database, each inside one transaction. A script runs to its end without giving up the
 * thread, so no other script can interleave with it.
 */

import type { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { inSqlite } from "../dialect.ts";
import {
  Apart,
  together,
  whetherInTurn,
  type Asked,
  type Row,
  type Script,
  type Statement,
  type Transactions,
} from "../script.ts";
import { retryWhileBusy } from "./errors.ts";

export type Begin = "BEGIN" | "BEGIN IMMEDIATE";

export function inTransaction<T>(db: DatabaseSync, work: () => T, begin: Begin = "BEGIN IMMEDIATE"): T {
  db.exec(begin);
  try {
    const result = work();
    db.exec("COMMIT");
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

type Execute = (values: Statement["values"]) => readonly Row[];

export type Runner = ReturnType<typeof createRunner>;

export function createRunner(db: DatabaseSync) {
  const prepared = new Map<readonly string[], Execute>();
  const noRows: readonly Row[] = [];
  const yes: readonly Row[] = [{}];

  const prepare = (parts: readonly string[]): Execute => {
    const statement = db.prepare(inSqlite(parts.join("?")));
    const returnsRows = statement.columns().length > 0;
    // `run` always reports the last rowid, and those of the search index exceed what a number can hold.
    if (!returnsRows) statement.setReadBigInts(true);
    const execute: Execute = returnsRows
      ? (values) => statement.all(...values) as readonly Row[]
      : (values) => (statement.run(...values), noRows);
    prepared.set(parts, execute);
    return execute;
  };
  const execute = ({ parts, values }: Statement): readonly Row[] => (prepared.get(parts) ?? prepare(parts))(values);

  const answer = (asked: Asked): readonly Row[] => {
    if (asked === whetherInTurn) return yes;
    if (asked instanceof Apart) return together(asked.statements.map(execute));
    return "parts" in asked ? execute(asked) : asked.flatMap(execute);
  };

  const run = <T>(script: Script<T>): T => {
    let step = script.next();
    while (step.done !== true) step = script.next(answer(step.value));
    return step.value;
  };

  return {
    run,
    atomically: <T>(begin: Begin, script: Script<T>): T => inTransaction(db, () => run(script), begin),
    forgetStatements: () => prepared.clear(),
  };
}

export interface ScriptQueue extends Transactions {
  /** Runs work that is not a script, waiting for the locks of other processes. */
  readonly retry: <T>(work: () => T) => Promise<T>;
  /** Resolves once the writes queued so far have ended, with or without success. */
  readonly settled: () => Promise<unknown>;
}

/** How long calls may follow each other before the thread does something else. */
const turnMs = 20;

/** Waits for the locks of other processes; the writes of this one run one after another. */
export function createQueue(runner: Runner, busyTimeoutMs: number, onWritten: () => void): ScriptQueue {
  let writing: Promise<unknown> = Promise.resolve();
  let turnedMs = performance.now();
  /** Calls never leave the thread by themselves, so a long loop of them would keep signals and timers waiting. */
  const retry = async <T>(work: () => T): Promise<T> => {
    if (performance.now() - turnedMs > turnMs) {
      await nextTurn();
      turnedMs = performance.now();
    }
    return await retryWhileBusy(busyTimeoutMs, work);
  };
  return {
    retry,
    settled: () => writing,
    read: async (script) => await retry(() => runner.atomically("BEGIN", script())),
    async write(script) {
      const result = writing.then(() => retry(() => runner.atomically("BEGIN IMMEDIATE", script())));
      writing = result.catch(() => undefined); // Its caller gets the error; the next write runs regardless.
      const written = await result;
      onWritten();
      return written;
    },
  };
}
