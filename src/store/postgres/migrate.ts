/**
 * Creates our tables in a schema, or brings those of an earlier program forward, one numbered step after the other. Each
 * step is a transaction that excludes writers and gives way to readers.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { LcmError } from "../../core/base/errors.ts";
import { shellPath } from "../../core/base/format.ts";
import type { Address } from "./address.ts";
import { codeOf, newerSchema, translateError } from "./errors.ts";
import { lockStatement } from "./locks.ts";
import type { Client, Pool } from "./pool.ts";
import { schemaStatements, schemaVersion, upgrades, type Upgrade } from "./schema.ts";

/** `pg_input_is_valid` came with the first, identity columns of partitioned tables with the second. */
const serverMin = { plain: 160_000, partitioned: 170_000 };

/** What this program knows. */
export interface Versions {
  readonly current: number;
  /** Each leads to its version from the one before. */
  readonly upgrades: readonly Upgrade[];
}

interface MigrateOptions {
  readonly versions?: Versions;
  /** Throws `not_found` if there is nothing, instead of creating it. */
  readonly mustExist?: boolean;
}

/** Safe if several processes open the database at once. */
export async function migrate(
  pool: Pool,
  address: Address,
  { versions = { current: schemaVersion, upgrades }, mustExist = false }: MigrateOptions = {},
): Promise<void> {
  const client = await pool.connect().catch((error: unknown) => {
    throw translateError(error);
  });
  let isBroken = true;
  try {
    let version = await versionOf(client, address.schema);
    if (version === null && mustExist) throw nothingThere(address.shown);
    if (version === null) await change(client, address, async () => await create(client, address));
    version ??= await versionOf(client, address.schema);
    for (; version !== null && version < versions.current; version = await versionOf(client, address.schema))
      await upgrade(client, address, versions.upgrades);
    if (version !== null && version > versions.current) throw newerSchema(version);
    isBroken = false;
  } catch (error) {
    throw translateError(error);
  } finally {
    client.release(isBroken);
  }
}

const nothingThere = (shown: string): LcmError =>
  new LcmError("not_found", `there is nothing of ours at ${shown}`, {
    hint:
      `fill it with \`lcm move --from FILE --to ${shellPath(shown)}\` or \`lcm import\`, ` +
      "or name another database with --db or LCM_DATABASE_URL",
  });

/** Null if there are no tables yet. */
async function versionOf(client: Client, schema: string): Promise<number | null> {
  const exists = await numberOf(
    client,
    `SELECT count(*) FROM pg_tables WHERE schemaname = '${schema}'
    AND tablename = 'lcm_schema'`,
  );
  return exists === 0 ? null : await numberOf(client, `SELECT max(version) FROM ${schema}.lcm_schema`);
}

/** Runs a transaction that excludes all writers. */
async function change(client: Client, { schema }: Address, work: () => Promise<void>): Promise<void> {
  try {
    await client.query(`BEGIN; ${lockStatement(schema, null)}`);
    await work();
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined); // The first error is the one to report.
    throw error;
  }
}

async function create(client: Client, { schema, partitions, shown }: Address): Promise<void> {
  if ((await versionOf(client, schema)) !== null) return; // Another process was first.
  const version = await numberOf(client, `SELECT current_setting('server_version_num')::bigint`);
  const oldest = partitions === null ? serverMin.plain : serverMin.partitioned;
  if (version < oldest)
    throw new LcmError(
      "conflict",
      `PostgreSQL ${Math.floor(version / 10_000)} is too old; ${oldest / 10_000} is the oldest that works`,
    );
  try {
    const exists = await numberOf(client, `SELECT count(*) FROM pg_namespace WHERE nspname = '${schema}'`);
    if (exists === 0) await client.query(`CREATE SCHEMA ${schema}`);
    await client.query(`SET LOCAL search_path = ${schema}, pg_catalog`);
    await client.query(schemaStatements(partitions).join(";\n"));
  } catch (error) {
    throw notAllowed(
      error,
      `${shown} has no tables yet, and this role may not create them`,
      `let an administrator run CREATE SCHEMA ${schema} AUTHORIZATION, followed by the role`,
    );
  }
}

/** A reader in the way is waited for, but not so that readers behind us wait for long. */
const readersWaitMs = 200;
const patienceMs = 10 * 60_000;

async function upgrade(client: Client, address: Address, steps: readonly Upgrade[]): Promise<void> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      await change(client, address, async () => await upgradeOnce(client, address, steps));
      return;
    } catch (error) {
      if (codeOf(error) !== "55P03" || performance.now() > deadline)
        throw notAllowed(
          error,
          `the tables of ${address.shown} are of an earlier version, and this role may not change them`,
          "open the database once as the role that owns the tables, for example with lcm status",
        );
    }
    await sleep(readersWaitMs * (1 + Math.random()));
  }
}

async function upgradeOnce(client: Client, { schema, shown }: Address, steps: readonly Upgrade[]): Promise<void> {
  const version = (await versionOf(client, schema)) ?? 0;
  const next = steps.find(({ to }) => to === version + 1);
  if (next === undefined) {
    if (steps.some(({ to }) => to > version)) throw new LcmError("corrupt", `${shown} has schema version ${version}`);
    return; // Another process was first.
  }
  await client.query(`SET LOCAL search_path = ${schema}, pg_catalog; SET LOCAL lock_timeout = ${readersWaitMs}`);
  await client.query([...next.statements, `UPDATE lcm_schema SET version = ${next.to}`].join(";\n"));
}

const notAllowed = (cause: unknown, message: string, hint: string): unknown =>
  codeOf(cause) === "42501" ? new LcmError("denied", message, { cause, hint }) : cause;

async function numberOf(client: Client, query: string): Promise<number> {
  const { rows } = await client.query(query);
  return Number(Object.values(rows[0] ?? {})[0] ?? 0);
}
