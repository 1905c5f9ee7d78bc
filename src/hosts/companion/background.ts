/**
 * What a hook leaves to a process of its own, one at a time per database: storing what sessions of the folder left
 * behind, folding what is due, indexing, embedding. It is a composition root; only an explicitly configured model
 * writes summaries, because nobody is asked here.
 */

import { setPriority } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { titled } from "../../core/ingest/import-transcript.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Model } from "../../core/model/store.ts";
import type { ConversationId } from "../../core/model/types.ts";
import { takeLease } from "../../store/lease.ts";
import { retryWhileBusy } from "../../store/sqlite/errors.ts";
import { identify } from "../../store/sqlite/file-kind.ts";
import { leftBehind, storeTranscript } from "../shared/companion.ts";
import { openRuntime } from "../shared/open-runtime.ts";
import type { Runtime } from "../shared/runtime.ts";
import {
  clock,
  findPlace,
  firstRunMs,
  hosts,
  isHostName,
  reporterOf,
  type HostName,
  type Place,
  type Report,
} from "./place.ts";

interface Task {
  readonly host: HostName;
  readonly transcript: string;
  readonly folder: string;
  readonly fold: string;
}

const politeness = 10;
/** How long a fold that a compaction of the host needs waits for another one; what else there is, that one does. */
const patienceMs = 120_000;
const lockMs = 60_000;
const endMs = 30 * 60_000;

export async function main([host, transcript = "", folder = "", fold = ""]: readonly string[]): Promise<number> {
  if (!isHostName(host)) return 0;
  setPriority(politeness);
  setTimeout(() => process.exit(0), endMs).unref();
  const place = await findPlace(process.env);
  const report = reporterOf(place.nearby, host);
  try {
    const release = await waitForLease(
      join(dirname(place.nearby), "lcm-companion.lock"),
      fold === "all" ? patienceMs : 0,
    );
    if (release === null) return 0;
    await work({ host, transcript, folder, fold }, place, report);
    release();
  } catch (error) {
    report("working in the background", error);
  }
  return 0;
}

async function waitForLease(path: string, waitMs: number): Promise<(() => void) | null> {
  for (const end = performance.now() + waitMs; ;) {
    const release = takeLease(path);
    if (release !== null || performance.now() >= end) return release;
    await sleep(200);
  }
}

async function work(task: Task, place: Place, report: Report): Promise<void> {
  // Only a person decides to convert a database that the older program may still be using.
  const { database } = place;
  if (database.kind === "file" && (await retryWhileBusy(lockMs, () => identify(database.path))) === "older_program")
    return;
  const note = (message: string): void => report("working in the background", message);
  const runtime = await openRuntime(process.env, { info: () => undefined, warn: note, error: note });
  try {
    const lcm = await runtime.open();
    const own = await catchUp(lcm, task, place, report);
    const model = await findModel(place);
    if (task.fold === "all" && own !== null) {
      const { outcome, message } = await lcm.compact({
        conversation: own,
        mode: "sweep",
        force: true,
        ...(model === null ? {} : { model: lcm.metered(model) }),
      });
      if (outcome.kind === "failed") report(`compacting conversation ${own}`, message);
    }
    await foldDue(lcm, runtime, model);
    while ((await lcm.store.index(rowsPerBatch)) > 0);
    runtime.embedSoon();
    await runtime.settled();
  } finally {
    await runtime.close();
  }
}

const rowsPerBatch = 1_000;

/** Returns the conversation of the task's own transcript. */
async function catchUp(lcm: Lcm, { host, transcript, folder }: Task, place: Place, report: Report) {
  const { store } = lcm;
  const deps = { store, clock, settings: place.settings.values, onProblem: report };
  const storeOne = async (path: string): Promise<ConversationId | null> => {
    try {
      const stored = await storeTranscript(deps, hosts[host], path);
      if (stored !== null) await titled(store, stored.conversation, stored.title);
      return stored?.conversation.id ?? null;
    } catch (error) {
      report(`storing ${path}`, error);
      return null;
    }
  };
  const own = await storeOne(transcript);
  const bounds = { sinceMs: firstRunMs(place.nearby), lookedAtMax: Infinity };
  for (const other of await leftBehind(store, hosts[host], { folder, transcript }, bounds)) await storeOne(other);
  return own;
}

const conversationsLookedAt = 50;

async function foldDue(lcm: Lcm, runtime: Runtime, model: Model | null): Promise<void> {
  for (const agentId of Object.keys(hosts)) {
    for (const { id } of await lcm.store.conversations({ agentId, active: true, limit: conversationsLookedAt })) {
      if ((await lcm.due(id)).kind === "nothing") continue;
      runtime.compactSoon(id, model);
      await runtime.settled();
    }
  }
}

/** The default of the command line, OpenClaw's own model, would spend money that nobody here has agreed to. */
async function findModel({ settings: { values }, openclawConfig, stateDir }: Place): Promise<Model | null> {
  if (values.summaryModel === null && values.summaryProvider === null) return null;
  const { chooseModel } = await import("../../models/choose-model.ts");
  const choice = chooseModel({ settings: values, openclawConfig, flags: {} });
  if (choice === null) return null;
  const { createModel } = await import("../../models/provider-model.ts");
  return await createModel(choice, { stateDir, env: process.env, timeoutMs: values.summaryTimeoutSeconds * 1_000 });
}
