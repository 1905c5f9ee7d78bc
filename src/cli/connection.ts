/**
 * A connection that is opened when it is first wanted, and anew after the file was replaced or the connection given up:
 * for programs that are left running for days, while somebody restores a backup beside them.
 */

import type { Lcm } from "../core/lcm.ts";
import type { Database } from "./commands/_session.ts";

/** `open` is asked again after it has thrown. */
export function createConnection(database: Pick<Database, "identity">, open: () => Promise<Lcm>) {
  let current: { readonly identity: string | null; readonly lcm: Promise<Lcm> } | null = null;
  let givenUp: Promise<Lcm>[] = [];
  /** Somebody may still be reading through it: it is closed when nobody is. */
  const giveUp = (): void => {
    if (current !== null) givenUp.push(current.lcm);
    current = null;
  };
  /** Nobody is reading through what was given up. */
  const rest = async (): Promise<void> => {
    const closing = givenUp;
    givenUp = [];
    // Its thread may be what has failed.
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
