/** The tables of the API: a function for each read and each write, which compile only if none is missing. */

import type { Json } from "../core/base/json.ts";
import type { Clock } from "../core/model/store.ts";
import type { Doing } from "../operator/port.ts";
import type { Reads, Writes } from "./contract.ts";
import type { Query } from "./query.ts";

/** Of all reads, or of some. */
export type ReadTable<Names extends keyof Reads = keyof Reads> = {
  readonly [Name in Names]: (query: Query, doing: Doing) => Promise<Reads[Name]["answer"]>;
};

export type WriteTable = {
  readonly [Name in keyof Writes]: (body: Json, doing: Doing) => Promise<Writes[Name]["answer"]>;
};

/** What does not change while the server runs. */
export interface About {
  readonly version: string;
  readonly zone: string;
  readonly clock: Clock;
}
