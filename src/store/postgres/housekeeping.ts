/** Indexes new rows in small batches and pins what users say for good, between calls and never inside one. */

import type { Timestamp } from "../../core/base/time.ts";
import type { ConversationId } from "../../core/model/types.ts";
import { pinNew, pinPending } from "../conversation/pins.ts";
import { indexBatch, unindexedRows, type SearchIndex } from "../search/indexing.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { Runner } from "./runner.ts";

const rowsPerBatch = 256;

export function createHousekeeper(runner: Runner, searchIndex: SearchIndex, now: () => Timestamp) {
  const looked = new Map<ConversationId, number>();
  let isStopped = false;
  let tending: Promise<void> | null = null;

  /** Several machines may index at once: each takes conversations that no other works on. */
  const index = async (rowsMax: number): Promise<number> =>
    await runner.writeLocking(() => indexBatch(searchIndex, rowsMax, (...messages) => pinNew(now(), ...messages)));
  const tend = async (): Promise<void> => {
    await runner.settled();
    if (isStopped) return;
    const unindexed = await runner.read(unindexedRows);
    if (unindexed >= rowsPerBatch) await index(rowsPerBatch);
    else if (unindexed > 0) await runner.writeLocking(() => pinPending(now(), looked));
  };
  /** Looks for work soon; called after each write. */
  const wake = (): void => {
    if (isStopped || tending !== null) return;
    tending = tend()
      .catch((error: unknown) => {
        if (!(error instanceof LcmError)) throw error; // The next write reports a server that is gone; this can wait.
      })
      .finally(() => (tending = null));
  };
  const stop = (): void => void (isStopped = true);
  return {
    index,
    wake,
    stop,
    async finish(): Promise<void> {
      await tending;
      stop();
    },
  };
}
