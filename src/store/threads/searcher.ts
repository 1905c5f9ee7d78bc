/** Searches in a thread that can be ended, so that a long one delays nothing else and can be cancelled. */

import type { SearchLimits, SearchRequest, SearchResult } from "../../core/model/store.ts";
import { closed, type Thread } from "./calls.ts";
import { cancelled, searchTimeoutMsDefault, throwIfCancelled } from "../search/limits.ts";

type SearchThread = Thread<"search">;

/** How long past its limit a search may still return what it has found so far. */
const graceMs = 10;

/** How long before its limit a search has a replacement thread started, so that the next search need not wait for one. */
const headStartMs = 200;

/** Searches without the thread, where that is quick enough; null where it may not be. */
export type SearchElsewhere = (request: SearchRequest, limits: SearchLimits) => Promise<unknown> | null;

/**
 * Runs one search at a time, so that ending the thread ends no other search. The thread is started by the first search.
 * Until it is ready, searches are made elsewhere if they may be, since starting it takes longer than most of them.
 */
export function createSearcher(start: () => SearchThread, elsewhere: SearchElsewhere = () => null) {
  let thread: SearchThread | null = null;
  let successor: SearchThread | null = null;
  let turn: Promise<unknown> = Promise.resolve();
  let isStopped = false;
  const living = (known: SearchThread | null): SearchThread => (known?.isAlive() === true ? known : start());
  const prepareSuccessor = (): void => {
    if (!isStopped) successor = living(successor);
  };
  /** Does not wait for the old thread, which ends with its current statement. */
  const replace = (): void => {
    const old = thread;
    prepareSuccessor();
    thread = successor;
    successor = null;
    void old?.end();
  };

  const search = async (request: SearchRequest, limits: SearchLimits = {}): Promise<SearchResult> => {
    if (isStopped) throw closed();
    const { signal, timeoutMs = searchTimeoutMsDefault } = limits;
    throwIfCancelled(signal);
    const startedMs = performance.now();
    const outcome = Promise.withResolvers<SearchResult>();
    let state: "queued" | "running" | "over" = "queued";
    // Also ends a search that is still queued: waiting counts towards its time limit.
    const end = (settle: () => void): void => {
      if (state === "running") replace();
      state = "over";
      settle();
    };
    const timers = [
      startTimer(timeoutMs - headStartMs, () => state === "running" && prepareSuccessor()),
      startTimer(timeoutMs + graceMs, () => end(() => outcome.resolve(nothingIn(timeoutMs)))),
    ];
    const cancel = (): void => end(() => outcome.reject(cancelled()));
    signal?.addEventListener("abort", cancel, { once: true });

    const run = async (): Promise<void> => {
      if (state === "over") return;
      if (isStopped) return outcome.reject(closed());
      state = "running";
      const left = { timeoutMs: Math.max(0, timeoutMs - (performance.now() - startedMs)) };
      thread = living(thread);
      const found = thread.isReady() ? null : elsewhere(request, left);
      (found ?? thread.call("search", [request, left])).then(
        (value) => outcome.resolve(withTimeout(value as SearchResult, timeoutMs)),
        outcome.reject,
      );
      await outcome.promise;
    };
    turn = turn.then(run).catch(() => undefined); // Its caller gets the error; the next search runs regardless.
    try {
      return await outcome.promise;
    } finally {
      state = "over";
      for (const timer of timers) clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    }
  };

  return {
    search,
    stop(): void {
      isStopped = true;
      void thread?.end();
      void successor?.end();
    },
  };
}

/** Longer waits overflow a timer, which would then fire at once; they count as no limit. */
const timerMsMax = 2 ** 31 - 1;

const startTimer = (ms: number, act: () => void): NodeJS.Timeout | undefined =>
  ms > timerMsMax ? undefined : setTimeout(act, Math.max(0, ms));

const nothingIn = (timeoutMs: number): SearchResult => ({
  hits: [],
  caveats: [{ kind: "time", timeoutMs, scanned: 0, of: 0 }],
});

/** A queued search had less time left, but its caveat names the limit that its caller set. */
const withTimeout = ({ caveats, ...found }: SearchResult, timeoutMs: number): SearchResult => ({
  ...found,
  caveats: caveats.map((caveat) => (caveat.kind === "time" ? { ...caveat, timeoutMs } : caveat)),
});
