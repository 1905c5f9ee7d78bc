/** What every host of a soak does besides the gateway: it talks while the gate is open, and is checked while it is not. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Gate } from "./gate.ts";
import type { Ledger } from "./ledger.ts";
import type { Weather } from "./weather.ts";

export interface Companion {
  readonly name: string;
  readonly weather: Weather;
  /** How many turns it has begun. */
  readonly turns: () => number;
  /** Talks, and is killed, until it is over. */
  live(gate: Gate, over: AbortSignal): Promise<void>;
  /** Everything pauses: each session is answered, and stored as the host has it. */
  check(): Promise<void>;
  /** Figures of its own, by name. */
  readonly figures: () => Readonly<Record<string, unknown>>;
  /** Forgets requests that are no longer needed. */
  forget(): void;
  close(): Promise<void>;
}

/** Counts under the name of a host. */
export const ledgerOf = (ledger: Ledger, host: string): Ledger => ({
  ...ledger,
  count: (kind) => ledger.count(`${host}: ${kind}`),
  event: (kind, words) => ledger.event(`${host}: ${kind}`, words),
  broken: (what, detail) => ledger.broken(`${host}: ${what}`, detail),
});

/** Tries again until what only needs time has happened. */
export async function eventually<T>(check: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await sleep(1_000);
  }
}

const attempts = 6;

/** With a sound model a turn is answered, whatever happened before it; `turn` returns why it was not, or null. */
export async function answered(ledger: Ledger, session: string, turn: () => Promise<string | null>): Promise<void> {
  let last = "";
  for (let attempt = 0; attempt < attempts; attempt++) {
    const why = await turn().catch(String);
    if (why === null) return;
    last = why;
    ledger.event("turn of a quiet point not answered", `${session}: ${last.slice(0, 200)}`);
    await sleep(5_000);
  }
  ledger.broken("a sound model gets through", `${session}: ${last}`);
}
