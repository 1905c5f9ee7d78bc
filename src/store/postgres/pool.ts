/** Connections to a server, or to the primary of several. Loads the driver only when a database is opened. */

// oxlint-disable-next-line typescript/triple-slash-reference -- whoever compiles one entry needs our types of the driver
/// <reference path="./pg.d.ts" />

import type { Client, Pool as Driver } from "pg";
import type { Address } from "./address.ts";
import { isLost } from "./errors.ts";
import { decoders } from "./values.ts";

export type { Client };
export type Pool = Pick<Driver, "connect" | "end">;

const connectMs = 10_000;

export async function openPool({ connections }: Pick<Address, "connections">, connectionsMax: number): Promise<Pool> {
  const { default: pg } = await import("pg");
  const pools = connections.map((connectionString) => {
    const pool = new pg.Pool({
      connectionString,
      application_name: "lossless-claw",
      max: connectionsMax,
      connectionTimeoutMillis: connectMs,
      allowExitOnIdle: true,
      pipeline: true,
      onConnect: async (client) => await look(client, connections.length > 1),
      types: { getTypeParser: (oid, format) => decoders.get(oid) ?? pg.types.getTypeParser(oid, format) },
    });
    // Whoever waits for an answer gets the error; without listeners it would end the process.
    pool.on("error", () => undefined);
    pool.on("connect", (client) => client.on("error", () => undefined));
    return pool;
  });
  return primaryOf(pools);
}

/** Connects to the server that was the primary last, or else to the one that is it now. */
function primaryOf(pools: readonly Driver[]): Pool {
  let last = 0;
  return {
    async connect() {
      let reason: unknown;
      for (let tried = 0; tried < pools.length; tried++) {
        const at = (last + tried) % pools.length;
        try {
          const client = await pools[at]?.connect();
          if (client === undefined) continue;
          last = at;
          return client;
        } catch (error) {
          if (!isLost(error)) throw error;
          reason ??= error;
        }
      }
      throw reason;
    },
    end: async () => void (await Promise.all(pools.map(async (pool) => await pool.end()))),
  };
}

const direct = new WeakSet<Client>();

/** Whether a connection is to the server itself. A pooler in between gives each transaction another connection behind it. */
export const isDirect = (client: Client): boolean => direct.has(client);

async function look(client: Client, mustBePrimary: boolean): Promise<void> {
  const { rows } = await client.query("SELECT pg_is_in_recovery() AS is_replica, pg_backend_pid() AS process");
  // The code of a server that cannot be used now.
  if (mustBePrimary && rows[0]?.["is_replica"] === 1)
    throw Object.assign(new Error("the server is a replica"), { code: "57P03" });
  // A pooler makes up the process that it names when a client connects.
  if (rows[0]?.["process"] === client.processID) direct.add(client);
}
