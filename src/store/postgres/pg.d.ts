/** What we use of the package `pg`. */
declare module "pg" {
  interface QueryResult {
    readonly rows: readonly Readonly<Record<string, unknown>>[];
  }

  interface Client {
    /** With a name, the server keeps the statement for the next time, as long as the connection lasts. */
    query(
      query: string | { readonly text: string; readonly values: readonly unknown[]; readonly name?: string },
    ): Promise<QueryResult>;
    /** Of the server, as it was told when connecting. */
    readonly processID: number | null;
    on(event: "error", listener: (error: Error) => void): void;
    release(broken?: Error | boolean): void;
  }

  interface PoolConfig {
    readonly connectionString: string;
    readonly application_name: string;
    readonly max: number;
    readonly connectionTimeoutMillis: number;
    readonly allowExitOnIdle: boolean;
    /** Sends queries without waiting for the answers to those before. */
    readonly pipeline: boolean;
    /** Called with each new connection, before anybody uses it. */
    readonly onConnect?: (client: Client) => Promise<void>;
    readonly types: { getTypeParser(oid: number, format?: string): (text: string) => unknown };
  }

  class Pool {
    constructor(config: PoolConfig);
    connect(): Promise<Client>;
    end(): Promise<void>;
    on(event: "error", listener: (error: Error) => void): void;
    on(event: "connect", listener: (client: Client) => void): void;
  }

  const pg: {
    readonly Pool: typeof Pool;
    readonly types: { getTypeParser(oid: number, format?: string): (text: string) => unknown };
  };
  export default pg;
  export type { Client, Pool };
}
