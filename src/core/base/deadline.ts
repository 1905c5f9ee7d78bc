/** What comes first: a piece of work or the signal that is its deadline. Work that is late is left behind, not ended. */

/** What the work gives; `late` if the signal comes first, and then it does not matter how the work ends. */
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
