/** The database of another program that keeps its sessions in one. */

import type { JsonObject } from "../base/json.ts";

export interface ForeignSession {
  readonly id: string;
  readonly updatedMs: number;
  readonly messages: number;
  /** Changes with every change of the session or of its messages. */
  readonly stamp: string;
}

/** Opened only for reading. */
export interface ForeignDatabase {
  sessions(): readonly ForeignSession[];
  /** The rows of a session, in the form in which the program exports them. */
  rows(session: string): Iterable<JsonObject>;
  close(): void;
}
