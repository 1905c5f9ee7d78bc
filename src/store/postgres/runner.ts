/**
 * Runs scripts on PostgreSQL, each inside one transaction on one connection. Statements whose rows a script does not need
 * are sent without waiting; their answers are checked before the commit is reported. A read sees one snapshot.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { Apart, together, type Asked, type Row, type Script } from "../script.ts";
import {
  commitUnknown,
  isLost,
  isNewerSchema,
  isRetryable,
  isStalePlan,
  newerSchema,
  translateError,
} from "./errors.ts";
import { lockStatement, sharedLockStatement, type Lock } from "./locks.ts";
import { markStatement, safeStatement, settle, type Mark } from "./outcome.ts";
import { isDirect, type Client, type Pool } from "./pool.ts";
import { schemaVersion } from "./schema.ts";
import { toQueries, type Query } from "./translate.ts";

export interface RunnerOptions {
  readonly pool: Pool;
  readonly schema: string;
  /** How long a call may wait for the locks of others before it is `unavailable`. */
  readonly lockTimeoutMs: number;
  /** How long to look for the outcome of a commit whose answer was lost. */
  readonly settleMs?: number;
  /** Told of each transaction how often it waited for the server. */
  readonly onEnd?: (roundTrips: number) => void;
}

export interface Runner {
  readonly read: <T>(script: () => Script<T>) => Promise<T>;
  /** Writes of this process under the same lock are done in the order in which they were called. */
  readonly write: <T>(lock: Lock, script: () => Script<T>) => Promise<T>;
  /** For a script that takes the locks of conversations itself. */
  readonly writeLocking: <T>(script: () => Script<T>) => Promise<T>;
  /** Resolves once the writes called so far have ended, with or without success. */
  readonly settled: () => Promise<unknown>;
}

export function createRunner({
  pool,
  schema,
  lockTimeoutMs,
  settleMs = 15_000,
  onEnd = ignore,
}: RunnerOptions): Runner {
  // PgBouncer hands a connection from one transaction to the next, so nothing is set for longer than one.
  // A plan that was made while a table was small is kept: every table is read by an index, however small.
  const path = `SET LOCAL search_path = ${schema}, pg_catalog; SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan`;
  const reading = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${path}`;
  const writing = `BEGIN; ${path}; SET LOCAL lock_timeout = ${lockTimeoutMs}`;
  const inOrder = createOrder();
  /** Whether something may be stored that is not safe yet: the next commit waits until it is. */
  let isUnsure = false;
  /** A newer program has changed the tables since they were opened. */
  let outdated: Error | null = null;
  const attempt = async <T>(begin: string, script: Script<T>): Promise<T> => {
    const wasUnsure = isUnsure;
    const first = wasUnsure ? `${begin}; ${safeStatement}` : begin;
    // The mark comes last: it is of the snapshot that follows the lock.
    const end = await runOnce(pool, { schema, begin: `${first}; ${markStatement}`, script, onEnd });
    if (end.kind === "unknown") {
      const outcome = await settle(pool, end.mark, settleMs);
      if (outcome === "aborted") throw end.cause;
      isUnsure = outcome === "unknown";
      if (isUnsure) throw commitUnknown(end.cause);
    } else if (wasUnsure) isUnsure = false;
    return end.value;
  };
  const writeUnder = async <T>(lock: string, script: () => Script<T>): Promise<T> => {
    try {
      return await retry(async () => await attempt(`${writing}; ${lock}`, script()));
    } catch (error) {
      if (isNewerSchema(error) && error instanceof Error) outdated = error;
      throw error;
    }
  };
  return {
    async read(script) {
      if (outdated !== null) throw outdated;
      return await retry(
        async () => (await runOnce(pool, { schema, begin: reading, isRead: true, script: script(), onEnd })).value,
      );
    },
    write: async (lock, script) =>
      await inOrder.run(lock, async () => await writeUnder(lockStatement(schema, lock), script)),
    writeLocking: async (script) =>
      await inOrder.run("indexing", async () => await writeUnder(sharedLockStatement(schema), script)),
    settled: inOrder.settled,
  };
}

const ignore = (): void => undefined;

const triesMax = 10;

/** Runs a transaction again if the server ended it for another one, or if the connection broke before the commit. */
async function retry<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (tries === triesMax || !(isRetryable(error) || isLost(error))) throw translateError(error);
    }
    await sleep(Math.random() * 2 ** tries);
  }
}

/** How a transaction ended; if the connection broke while it was committed, nobody has told us. */
type End<T> =
  | { readonly kind: "done"; readonly value: T }
  | { readonly kind: "unknown"; readonly value: T; readonly mark: Mark; readonly cause: unknown };

interface Transaction<T> {
  readonly onEnd: (roundTrips: number) => void;
  readonly schema: string;
  readonly begin: string;
  readonly script: Script<T>;
  readonly isRead?: boolean;
}

async function runOnce<T>(pool: Pool, { script, isRead = false, onEnd, ...start }: Transaction<T>): Promise<End<T>> {
  const client = await pool.connect();
  const flow = createFlow(client, start);
  let broken = false;
  try {
    let step = script.next();
    while (step.done !== true) step = script.next(await flow.ask(step.value));
    if (isRead) {
      await flow.finish();
      return { kind: "done", value: step.value };
    }
    const mark = await flow.mark();
    try {
      await flow.commit();
    } catch (cause) {
      if (mark === null || !isLost((await flow.firstError()) ?? cause)) throw cause;
      broken = true;
      return { kind: "unknown", value: step.value, mark, cause };
    }
    return { kind: "done", value: step.value };
  } catch (error) {
    const first = (await flow.firstError()) ?? error;
    broken = isLost(first) || isLost(error) || isStalePlan(first);
    if (!broken)
      broken = await client.query("ROLLBACK").then(
        () => false,
        () => true,
      );
    throw first;
  } finally {
    client.release(broken);
    onEnd(flow.roundTrips());
  }
}

type Answer = Awaited<ReturnType<Client["query"]>>;

/** Queries of one transaction, in order. */
function createFlow(client: Client, { begin, schema }: Pick<Transaction<unknown>, "begin" | "schema">) {
  const sent: Promise<unknown>[] = [];
  const isKept = isDirect(client);
  let [isAnswered, roundTrips] = [true, 0];
  const send = (query: Query | string): Promise<Answer> => {
    isAnswered = false;
    const answer = client.query(typeof query === "string" ? query : sendable(query, isKept ? schema : null));
    answer.catch(() => undefined); // Looked at by `commit` or `firstError`.
    sent.push(answer);
    return answer;
  };
  const begun = send(begin);
  const answered = <T>(answer: T): T => {
    if (!isAnswered) roundTrips += 1;
    isAnswered = true;
    return answer;
  };
  return {
    roundTrips: (): number => roundTrips,
    async ask(asked: Asked): Promise<readonly Row[]> {
      const queries = asked instanceof Apart ? asked.statements.flatMap(toQueries) : toQueries(asked);
      const answers = queries.map((query) => ({ answer: send(query), isNeeded: query.answers }));
      const results = await Promise.all(
        answers.map(async ({ answer, isNeeded }) => (isNeeded ? ((await answer).rows as readonly Row[]) : [])),
      );
      if (answers.some(({ isNeeded }) => isNeeded)) answered(results);
      if (asked instanceof Apart) return together(results);
      return results.length === 1 ? (results[0] ?? []) : results.flat();
    },
    /** Known before the commit is sent, in case its answer never comes; null for a read. */
    async mark(): Promise<Mark | null> {
      const start = await begun;
      if (roundTrips === 0) answered(start);
      return markOf(start);
    },
    /** A read has all it needs: nobody waits for the end of its transaction, but whoever uses the connection next. */
    async finish(): Promise<void> {
      const all = Promise.all(sent);
      void send("COMMIT");
      await all;
      if (roundTrips === 0) answered(null);
    },
    async commit(): Promise<void> {
      const committed = send("COMMIT");
      await Promise.all(sent.slice(0, -1)); // The server rolls back at a COMMIT after an error.
      answered(await committed);
    },
    /** The error of the statement that failed first: those after it fail only because of it. */
    async firstError(): Promise<unknown> {
      const failed = (await Promise.allSettled(sent)).find(({ status }) => status === "rejected");
      return failed?.status === "rejected" ? failed.reason : undefined;
    },
  };
}

/** A statement is kept under a name of its schema: types of the same name are others in another one. */
const sendable = ({ text, values, name }: Query, schema: string | null) =>
  name === undefined || schema === null ? { text, values } : { text, values, name: `${name} ${schema}`.slice(0, 63) };

/** The beginning of a transaction is several statements, and the last one of a write tells its mark. */
function markOf(begun: Answer | readonly Answer[]): Mark | null {
  const [row] = [begun].flat().at(-1)?.rows ?? [];
  if (row === undefined) return null;
  const { transaction, timeline, recovery, version } = row;
  if (Number(version) > schemaVersion) throw newerSchema(Number(version));
  return { transaction: String(transaction), timeline: String(timeline), recovery: String(recovery) };
}

/** Runs work under the same lock one after another, and work under no narrower lock alone. */
function createOrder() {
  const last = new Map<number | string, Promise<unknown>>();
  let alone: Promise<unknown> = Promise.resolve();
  const settled = (): Promise<unknown> => Promise.all([alone, ...last.values()]);
  return {
    settled,
    async run<T>(lock: Lock, work: () => Promise<T>): Promise<T> {
      const result = (lock === null ? settled() : (last.get(lock) ?? alone)).then(work);
      const ended = result.catch(() => undefined); // Its caller gets the error; the next one runs regardless.
      if (lock === null) {
        alone = ended;
        last.clear();
      } else {
        last.set(lock, ended);
        void ended.then(() => last.get(lock) === ended && last.delete(lock));
      }
      return await result;
    },
  };
}
