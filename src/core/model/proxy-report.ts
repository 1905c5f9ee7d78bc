/** What a proxy reports about itself and the sessions that it serves: numbers and reasons, never content or headers. */

import type { Timestamp } from "../base/time.ts";

export interface ProxyReport {
  /** What it serves: the name of a program (`lcm run`), or `any agent` (`lcm proxy`). */
  readonly program: string;
  readonly pid: number;
  readonly port: number;
  readonly startedAt: Timestamp;
  /** Null while it runs, and after it was killed. */
  readonly endedAt: Timestamp | null;
  readonly isRunning: boolean;
  readonly sessions: readonly ProxySession[];
  /** The newest last. */
  readonly problems: readonly ProxyProblem[];
}

export interface ProxyProblem {
  readonly at: Timestamp;
  /** What was being done, to be read after "while". */
  readonly doing: string;
  readonly message: string;
}

export interface ProxySession {
  readonly host: string;
  readonly session: string;
  /** Prompts of a person; the requests with results of tools belong to them. */
  readonly turns: number;
  readonly requests: number;
  /** How many of them had our prompt in the place of old messages. */
  readonly replaced: number;
  /** How many of those the provider refused; they were then sent as they came. */
  readonly refused: number;
  /** Bytes of requests as they came, and as they were sent. */
  readonly bytesAsked: number;
  readonly bytesSent: number;
  /** Of what was sent, bytes that the request before began with as well. */
  readonly bytesKept: number;
  /** Input tokens as the provider counts them, and those that it read from its cache. */
  readonly tokensInput: number;
  readonly tokensCached: number;
  /** What the requests would have had in addition as they came; derived from the provider's count by their length. */
  readonly tokensSaved: number;
  /** Why the last request was sent unchanged; empty if it was not. */
  readonly whyUnchanged: string;
  readonly lastAt: Timestamp;
}
