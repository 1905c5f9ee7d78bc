/** Runs a long command until it ends, Ctrl-C is pressed or its time is up, and says what is left then. */

import { setTimeout as sleep } from "node:timers/promises";
import { LcmError } from "../../core/base/errors.ts";
import type { LongCommand } from "./_long.ts";

type Ending<T> =
  | { readonly kind: "done"; readonly value: T }
  /** `isStuck`: the work is inside a step that only the end of the process can stop. */
  | { readonly kind: "stopped"; readonly by: StoppedBy; readonly isStuck: boolean };

export type StoppedBy = "interrupt" | "limit";

interface Limits {
  /** Runs work that Ctrl-C aborts. */
  readonly interruptible: <T>(work: (signal: AbortSignal) => Promise<T>) => Promise<T>;
  readonly timeoutSeconds: number | undefined;
  readonly endsItself: boolean;
}

/** How long a step under way may take to end after its command was stopped. */
const graceMs = 1_000;

export async function runUntilStopped<T>(
  { interruptible, timeoutSeconds, endsItself }: Limits,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<Ending<T>> {
  return await interruptible(async (interruption) => {
    const limit = timeoutSeconds === undefined ? [] : [AbortSignal.timeout(Math.ceil(timeoutSeconds * 1_000))];
    const signal = AbortSignal.any([interruption, ...limit]);
    const stopped = (isStuck: boolean): Ending<T> => ({ kind: "stopped", by: stoppedBy(signal), isStuck });
    const over = new AbortController();
    const stuck = endsItself ? new Promise<never>(() => undefined) : afterGrace(signal, over.signal);
    try {
      const running = work(signal).then((value): Ending<T> => ({ kind: "done", value }));
      return await Promise.race([running, stuck.then(() => stopped(true))]);
    } catch (error) {
      if (signal.aborted && isFrom(error, signal.reason)) return stopped(false);
      throw error;
    } finally {
      over.abort();
    }
  });
}

async function afterGrace(signal: AbortSignal, over: AbortSignal): Promise<void> {
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true, signal: over }));
  await sleep(graceMs, undefined, { signal: over }).catch(() => undefined); // The work has ended meanwhile.
}

export const stoppedBy = ({ reason }: AbortSignal): StoppedBy => (reason === "SIGINT" ? "interrupt" : "limit");

/** Adapters put the reason of a signal into an error of their own. */
const isFrom = (error: unknown, reason: unknown): boolean =>
  error === reason || (error instanceof Error && error.cause !== undefined && isFrom(error.cause, reason));

/** `reached`: how far it came, as the progress line showed it; empty if nothing was counted. */
export function stoppedError(
  { kept, next }: LongCommand,
  by: StoppedBy,
  timeoutSeconds: number | undefined,
  reached: string,
): LcmError {
  const why = by === "interrupt" ? "interrupted" : `stopped at the time limit of ${timeoutSeconds} s`;
  return new LcmError("unavailable", `${why}${reached === "" ? "" : ` at ${reached}`}: ${kept}`, { hint: next });
}

/** Resolves with the work, or rejects with the reason of the signal if that comes first; the work is then abandoned. */
export async function orStopped<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const stopped = new Promise<never>((_, reject) => {
    const stop = (): void => reject(new LcmError("unavailable", "stopped", { cause: signal.reason }));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true, signal: over.signal });
  });
  return await Promise.race([work, stopped]).finally(() => over.abort());
}
