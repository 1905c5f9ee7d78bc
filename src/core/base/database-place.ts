/** Where a database is: in a file, or in a schema of a PostgreSQL server. What is shown of a URL never has its password. */

import { LcmError } from "./errors.ts";

/** `shown` is for people. `nearby` is a path on this machine: logs, locks and reports lie beside it. */
export type DatabasePlace =
  | { readonly kind: "file"; readonly path: string; readonly shown: string; readonly nearby: string }
  | { readonly kind: "server"; readonly url: string; readonly shown: string; readonly nearby: string };

export interface Address {
  /** For the driver, one for each server that may be the primary; they contain the password, if the URL did. */
  readonly connections: readonly [string, ...string[]];
  /** The PostgreSQL schema that has our tables. */
  readonly schema: string;
  /** Into how many partitions tables are divided when the schema is created; null for none. */
  readonly partitions: number | null;
  /** For people: without the password. */
  readonly shown: string;
}

const schemaDefault = "lcm";
/** Parameters of the connection that a person may read, and without which a copied command would not connect. */
const harmless: ReadonlySet<string> = new Set(["schema", "sslmode", "sslrootcert", "connect_timeout"]);
const partitionsMax = 1_024;

export const isPostgresUrl = (text: string): boolean => /^postgres(?:ql)?:\/\//i.test(text.trim());

/**
 * `postgres://user@host:5432/database?schema=lcm`. Several hosts (`a:5432,b:5432`) are servers of which one is the
 * primary. Other parameters are those of the driver.
 */
export function readAddress(given: string): Address {
  const text = given.trim();
  const [, scheme = "", user = "", hosts = "", rest = ""] = /^(\w+:\/\/)([^@/?#]*@)?([^/?#]*)(.*)$/s.exec(text) ?? [];
  const [first = null, ...others] = hosts.split(",").map((host) => URL.parse(scheme + user + host + rest));
  if (first === null || others.includes(null) || !isPostgresUrl(text))
    throw new LcmError("invalid", "the URL of the database cannot be read", {
      hint: "write it as postgres://user@host:5432/database?schema=lcm, with the password in PGPASSWORD or a PGPASSFILE",
    });
  const urls = [first, ...others.filter((url) => url !== null)] as const;
  const schema = first.searchParams.get("schema") ?? schemaDefault;
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw new LcmError("invalid", `${JSON.stringify(schema)} is not a usable name of a schema`, {
      hint: "use lowercase letters, digits and underscores, such as schema=lcm",
    });
  const partitions = first.searchParams.get("partitions");
  if (
    partitions !== null &&
    !(/^\d+$/.test(partitions) && Number(partitions) >= 1 && Number(partitions) <= partitionsMax)
  )
    throw new LcmError("invalid", `partitions must be a whole number from 1 to ${partitionsMax}`);
  const connectionOf = (url: URL): string => {
    // The primary is looked for by ourselves, and the other two are ours.
    for (const name of ["schema", "partitions", "target_session_attrs"]) url.searchParams.delete(name);
    return url.href;
  };
  const [connection, ...further] = urls.map(connectionOf);
  return {
    connections: [connection ?? "", ...further],
    schema,
    partitions: partitions === null ? null : Number(partitions),
    shown: shownOf(urls, schema),
  };
}

function shownOf([first, ...others]: readonly [URL, ...URL[]], schema: string): string {
  const shown = new URL(first);
  shown.password = "";
  shown.hash = "";
  const unknown = Array.from(shown.searchParams.keys()).filter((name) => !harmless.has(name));
  for (const name of unknown) shown.searchParams.delete(name);
  shown.searchParams.set("schema", schema);
  const hosts = [first, ...others].map(({ host }) => host).join();
  return shown.href.replace(first.host, () => hosts);
}

/** A path or URL as it may be shown. */
export function withoutPassword(given: string): string {
  if (!isPostgresUrl(given)) return given;
  try {
    return readAddress(given).shown;
  } catch {
    return "postgres://…"; // Whatever is wrong with it, a part may be the password.
  }
}
