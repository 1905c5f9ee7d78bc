/**
 * Makes chosen SQL statements of a program slow, as a large database does. The program gets this as `NODE_OPTIONS`; it
 * runs in each of its threads before the first module.
 */

interface Slow {
  /** Matches the statements. */
  readonly statement: RegExp;
  readonly ms: number;
  /** Only on another thread: in the main thread such a step would make the program deaf. */
  readonly apart: boolean;
}

export const slowStatements = ({ statement, ms, apart }: Slow): string =>
  `--import data:text/javascript,${encodeURIComponent(`
    import { DatabaseSync, StatementSync } from "node:sqlite";
    import { isMainThread } from "node:worker_threads";
    const isSlow = (sql) => ${String(statement)}.test(sql) && !(${apart} && isMainThread);
    const wait = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ms});
    const { exec, prepare } = DatabaseSync.prototype;
    DatabaseSync.prototype.exec = function (sql) {
      if (isSlow(sql)) wait();
      return exec.call(this, sql);
    };
    const slow = new WeakSet();
    DatabaseSync.prototype.prepare = function (sql) {
      const statement = prepare.call(this, sql);
      if (isSlow(sql)) slow.add(statement);
      return statement;
    };
    for (const name of ["all", "run", "get"]) {
      const method = StatementSync.prototype[name];
      StatementSync.prototype[name] = function (...values) {
        if (slow.has(this)) wait();
        return method.apply(this, values);
      };
    }
  `)}`;
