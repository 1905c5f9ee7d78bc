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
