/**
 * Indexes new rows in small batches, writes missing checksums and checkpoints the write-ahead log, between calls and
 * never inside one.
 */

import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { checksumBatch, hasBacklog } from "../checksums.ts";
import type { Script } from "../script.ts";
import { indexBatch, unindexedRows } from "../search/indexing.ts";
import { errcodeOf } from "./errors.ts";
import type { Runner } from "./runner.ts";
import { searchIndex } from "./search-index.ts";

const rowsPerBatch = 256;
const checkedPerBatch = 64;
/** The log is checkpointed each time it has grown by this much. */
const logBytesMax = 4 * 2 ** 20;

export function createHousekeeper(db: DatabaseSync, path: string, runner: Runner, writes: () => Promise<unknown>) {
  let checkpointedBytes = 0;
  let isStopped = false;
  let isScheduled = false;

  const checkpoint = (): void => {
    const bytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes < checkpointedBytes) checkpointedBytes = 0; // The log was truncated.
    if (bytes - checkpointedBytes < logBytesMax) return;
    db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    checkpointedBytes = bytes;
  };
  const tidy = (rowsMax: number): number => {
    const left = runner.atomically("BEGIN IMMEDIATE", indexBatch(searchIndex, rowsMax));
    checkpoint();
    return left;
  };
  const tend = async (): Promise<void> => {
    await writes();
    isScheduled = false;
    if (isStopped || db.isTransaction) return;
    try {
      const { unindexed, isUnchecked } = runner.atomically("BEGIN", pendingWork());
      if (unindexed >= rowsPerBatch) {
        if (tidy(rowsPerBatch) >= rowsPerBatch || isUnchecked) wake();
        return;
      }
      if (isUnchecked && runner.atomically("BEGIN IMMEDIATE", checksumBatch(checkedPerBatch))) wake();
      checkpoint();
    } catch (error) {
      // Another process is writing, or the disk is full, which the next write reports to its caller. Search also reads
      // the rows that are not indexed yet.
      if (errcodeOf(error) === null) throw error;
    }
  };
  /** Looks for work soon; called after each write. */
  const wake = (): void => {
    if (isScheduled || isStopped) return;
    isScheduled = true;
    setImmediate(() => void tend()).unref();
  };
  const stop = (): void => void (isStopped = true);
  return { tidy, wake, stop };
}

function* pendingWork(): Script<{ readonly unindexed: number; readonly isUnchecked: boolean }> {
  return { unindexed: yield* unindexedRows(), isUnchecked: yield* hasBacklog() };
}
