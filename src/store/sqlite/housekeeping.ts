/**
 * Indexes new rows in small batches, pins what users say for good, writes missing checksums and checkpoints the
 * write-ahead log, between calls and never inside one.
 */

import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { checksumBatch, hasBacklog } from "../checksums.ts";
import { pinNew, pinPending } from "../conversation/pins.ts";
import type { ConversationId } from "../../core/model/types.ts";
import type { Timestamp } from "../../core/base/time.ts";
import type { Script } from "../script.ts";
import { indexBatch, unindexedRows } from "../search/indexing.ts";
import { errcodeOf } from "./errors.ts";
import type { Runner } from "./runner.ts";
import { createSearchIndex } from "./search-index.ts";

const rowsPerBatch = 256;
const checkedPerBatch = 64;
/** After this long without a write even a few rows are indexed: until then every search reads them again. */
const idleMs = 1_000;
/** The log is checkpointed each time it has grown by this much. */
const logBytesMax = 4 * 2 ** 20;

interface Household {
  readonly db: DatabaseSync;
  readonly path: string;
  readonly runner: Runner;
  /** Resolves when the writes so far have ended. */
  readonly writes: () => Promise<unknown>;
  readonly now: () => Timestamp;
}

export function createHousekeeper({ db, path, runner, writes, now }: Household) {
  const looked = new Map<ConversationId, number>();
  let checkpointedBytes = 0;
  let isStopped = false;
  let isScheduled = false;
  let idling: NodeJS.Timeout | undefined;

  const checkpoint = (): void => {
    const bytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes < checkpointedBytes) checkpointedBytes = 0; // The log was truncated.
    if (bytes - checkpointedBytes < logBytesMax) return;
    db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    checkpointedBytes = bytes;
  };
  const tidy = (rowsMax: number): number => {
    const left = runner.atomically(
      "BEGIN IMMEDIATE",
      indexBatch(createSearchIndex(), rowsMax, (...messages) => pinNew(now(), ...messages)),
    );
    checkpoint();
    return left;
  };
  const look = (): void => runner.atomically("BEGIN IMMEDIATE", pinPending(now(), looked));
  const tend = async (): Promise<void> => {
    await writes();
    isScheduled = false;
    if (isStopped || db.isTransaction) return;
    unlessBusy(() => {
      const { unindexed, isUnchecked } = runner.atomically("BEGIN", pendingWork());
      if (unindexed >= rowsPerBatch && (tidy(rowsPerBatch) >= rowsPerBatch || isUnchecked)) return wake();
      if (unindexed > 0) look();
      if (unindexed > 0) rest();
      if (isUnchecked && runner.atomically("BEGIN IMMEDIATE", checksumBatch(checkedPerBatch))) wake();
      checkpoint();
    });
  };
  /** Indexes what is left once nothing has been written for a while. */
  const rest = (): void => {
    idling = setTimeout(() => {
      if (!isStopped && !isScheduled && !db.isTransaction) unlessBusy(() => tidy(rowsPerBatch));
    }, idleMs).unref();
  };
  /** Looks for work soon; called after each write. */
  const wake = (): void => {
    clearTimeout(idling);
    if (isScheduled || isStopped) return;
    isScheduled = true;
    setImmediate(() => void tend()).unref();
  };
  const stop = (): void => {
    clearTimeout(idling);
    isStopped = true;
  };
  /** For a process that ends right after its writes, as a hook does: what it stored is looked through first. */
  const finish = (): void => {
    const isDue = isScheduled && !isStopped && !db.isTransaction;
    stop();
    if (!isDue) return;
    unlessBusy(() => {
      const { unindexed } = runner.atomically("BEGIN", pendingWork());
      if (unindexed > 0 && unindexed < rowsPerBatch) look();
    });
  };
  return { tidy, wake, stop, finish };
}

/** Another process is writing, or the disk is full, which the next write reports to its caller. The work can wait. */
function unlessBusy(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (errcodeOf(error) === null) throw error;
  }
}

function* pendingWork(): Script<{ readonly unindexed: number; readonly isUnchecked: boolean }> {
  return { unindexed: yield* unindexedRows(), isUnchecked: yield* hasBacklog() };
}
