/** Deadlines: waits for work until a signal aborts or a time is up. And turns: long work lets others run in between. */

/** Resolves after what waits already has had its turn: timers, signals, answers of a server. */
export const nextTurn = async (): Promise<void> => await new Promise((resolve) => void setImmediate(resolve));

/** The result of the work, or `late` if the signal comes first. Late work is abandoned, not stopped. */
export async function beforeDeadline<T, Late>(
  signal: AbortSignal | undefined,
  work: Promise<T>,
  late: Late,
): Promise<T | Late> {
  if (signal === undefined) return await work;
  const deadline = Promise.withResolvers<Late>();
  const pass = (): void => deadline.resolve(late);
  if (signal.aborted) pass();
  signal.addEventListener("abort", pass, { once: true });
  try {
    return await Promise.race([work, deadline.promise]);
  } finally {
    signal.removeEventListener("abort", pass);
  }
}

/** Runs work with a signal that aborts after `ms`, or together with the outer one. */
export async function withDeadline<T>(
  ms: number,
  outer: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  const timer = setTimeout(() => own.abort(new DOMException("The time is up", "TimeoutError")), ms);
  const follow = (): void => {
    clearTimeout(timer); // Work that ignores its signal may never end.
    own.abort(outer?.reason);
  };
  outer?.addEventListener("abort", follow, { once: true });
  if (outer?.aborted === true) follow();
  try {
    return await work(own.signal);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", follow);
  }
}
