/** Lets the work of a soak through, and stops it for a while. */

export type Gate = ReturnType<typeof createGate>;

/** Lets many through while open; closing waits for those inside. */
export function createGate() {
  let closed: PromiseWithResolvers<void> | null = null;
  const inside = new Set<Promise<void>>();
  return {
    async pass(work: () => Promise<void>): Promise<void> {
      const mine = closed === null ? work() : closed.promise.then(work);
      inside.add(mine);
      await mine.finally(() => inside.delete(mine));
    },
    async close(): Promise<void> {
      closed ??= Promise.withResolvers<void>();
      await Promise.allSettled(inside);
    },
    open(): void {
      closed?.resolve();
      closed = null;
    },
  };
}
