/**
 * Finds out whether a transaction was committed whose answer was lost with the connection. The server remembers how each
 * transaction ended, so this needs no table; what it remembers of is only certain while no other server has taken over.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Pool } from "./pool.ts";

/** Names a transaction: its number, and the history of the server that gave the number. */
export interface Mark {
  readonly transaction: string;
  readonly timeline: string;
  /** When the server last recovered from a crash: that resets its statistics, and is the only thing that everybody sees. */
  readonly recovery: string;
}

const history = `left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS timeline,
  coalesce(pg_stat_get_bgwriter_stat_reset_time()::text, '') AS recovery`;

export const numberStatement = `SELECT pg_current_xact_id()::text AS transaction, ${history}`;

/** Gives a transaction its mark, and tells the version of the schema that it finds. */
export const markStatement = `${numberStatement}, version FROM lcm_schema`;

/** A commit of this waits until everything before it is as safe as a commit is, on replicas too. */
export const safeStatement = "SELECT pg_logical_emit_message(true, 'lossless-claw', '')";

export type Outcome = "committed" | "aborted" | "unknown";

const pauseMs = 50;

/** Asks until the transaction has ended and the server can be reached, for a limited time. */
export async function settle(pool: Pool, mark: Mark, limitMs: number): Promise<Outcome> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const outcome = await askOnce(pool, mark).catch(() => "in progress" as const); // Not reachable now.
    if (outcome !== "in progress") return outcome;
    if (performance.now() > deadline) return "unknown";
    await sleep(pauseMs);
  }
}

async function askOnce(pool: Pool, mark: Mark): Promise<Outcome | "in progress"> {
  const client = await pool.connect();
  let isBroken = true;
  try {
    const outcome = await statusOf(client, mark);
    // A commit that was waiting for a replica when its connection broke is visible, but may be on one server alone.
    if (outcome === "committed") await client.query(safeStatement);
    isBroken = false;
    return outcome;
  } finally {
    client.release(isBroken);
  }
}

async function statusOf(client: Client, mark: Mark): Promise<Outcome | "in progress"> {
  const { rows } = await client.query(`SELECT ${history}`);
  // A replica that took over may have given the same number to another transaction.
  if (rows[0]?.["timeline"] !== mark.timeline) return "unknown";
  const hasRecovered = rows[0]?.["recovery"] !== mark.recovery;
  const answer = await client.query({ text: hasRecovered ? statusAfterCrash : status, values: [mark.transaction] });
  const found = answer.rows[0]?.["status"];
  return found === "committed" || found === "aborted" || found === "in progress" ? found : "unknown";
}

const status = "SELECT pg_xact_status($1::text::xid8) AS status";

/**
 * A crash may have lost all traces of a transaction, whose number is then given again. So it is not running, it has failed
 * if its number has not been given or belongs to one that has, and otherwise nobody knows.
 */
const statusAfterCrash = `SELECT CASE WHEN $1::text::xid8 >= pg_snapshot_xmax(pg_current_snapshot())
  OR pg_xact_status($1::text::xid8) IN ('aborted', 'in progress') THEN 'aborted' END AS status`;
