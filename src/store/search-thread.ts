/** The thread in which searches of a database on a server run, over a connection of its own: both ends. */

import { parentPort, Worker, workerData } from "node:worker_threads";
import { openServerHere, type SharedFiles } from "./open-server.ts";
import { answerCalls, callThread, type Thread } from "./threads/calls.ts";

interface SearchStart extends SharedFiles {
  readonly lcmSearches: string;
}

const isSearchStart = (data: unknown): data is SearchStart =>
  typeof data === "object" && data !== null && "lcmSearches" in data;

if (parentPort !== null && isSearchStart(workerData)) {
  const { lcmSearches: url, ...shared } = workerData;
  answerCalls(parentPort, openServerHere(url, { ...shared, connectionsMax: 1, housekeeping: false, mustExist: true }));
}

/** Only what can be cloned goes to another thread. */
export function startSearchThread(url: string, { settings, env }: SharedFiles): Thread<"search"> {
  const { sharedFiles, sharedFilesEndpoint } = settings;
  const start: SearchStart = { lcmSearches: url, settings: { sharedFiles, sharedFilesEndpoint }, env: { ...env } };
  return callThread(new Worker(new URL(import.meta.url), { workerData: start }));
}
