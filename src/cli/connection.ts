/**
 * Opens a connection on first use, and reopens it after the file was replaced. Programs that run for days need this when
 * someone restores a backup meanwhile.
 */

import type { Lcm } from "../core/lcm.ts";
import type { Database } from "./commands/_session.ts";

/** `open` is called again after it has thrown. */
export function createConnection(database: Pick<Database, "identity">, open: () => Promise<Lcm>) {
  let current: { readonly identity: string | null; readonly lcm: Promise<Lcm> } | null = null;
  let givenUp: Promise<Lcm>[] = [];
  /** Readers may still use it; `rest` closes it. */
  const giveUp = (): void => {
    if (current !== null) givenUp.push(current.lcm);
    current = null;
  };
  /** Closes what was given up. The caller guarantees that no reader uses it any more. */
  const rest = async (): Promise<void> => {
    const closing = givenUp;
    givenUp = [];
    // A connection whose thread has failed cannot be closed.
    await Promise.all(
      closing.map(async (lcm) => await lcm.then(async (each) => await each.close()).catch(() => undefined)),
    );
  };
  return {
    async get(): Promise<Lcm> {
      const identity = database.identity();
      if (current !== null && current.identity !== identity) giveUp();
      const opened = (current ??= { identity, lcm: open() });
      try {
        return await opened.lcm;
      } catch (error) {
        if (current === opened) current = null;
        throw error;
      }
    },
    giveUp,
    rest,
    async close(): Promise<void> {
      giveUp();
      await rest();
    },
  };
}
