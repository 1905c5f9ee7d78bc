/**
 * The time by which a piece of work must be done; it ends with the work. `AbortSignal.timeout` does not: its timer runs on,
 * and keeps in memory until then whatever belongs to the turn it was set in, which is megabytes of the host's. It also
 * lets a process end while it still waits for a model that is silent.
 */

/** The signal comes after so long, or with the one outside. */
export async function withDeadline<T>(
  ms: number,
  outer: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  const timer = setTimeout(() => own.abort(new DOMException("The time is up", "TimeoutError")), ms);
  const follow = (): void => {
    clearTimeout(timer); // There may be no end to work that heeds no signal.
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
