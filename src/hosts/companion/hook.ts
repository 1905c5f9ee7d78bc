/**
 * The hook of Claude Code and Codex, and its composition root: `lcm-hook.js HOST`, with the call on stdin. It stores what
 * the transcript has gained and leaves the rest to a process of its own. Whatever happens, the host goes on: the exit
 * status is 0, nothing is printed but what the host asked for, and there is a time limit.
 */

import { spawn } from "node:child_process";
import { dirname } from "node:path";
import { text } from "node:stream/consumers";
import { LcmError } from "../../core/base/errors.ts";
import type { JsonObject } from "../../core/base/json.ts";
import { compact } from "../../core/compaction/compact.ts";
import { due } from "../../core/compaction/due.ts";
import { titled } from "../../core/ingest/import-transcript.ts";
import { durabilityOf } from "../../core/model/settings.ts";
import type { Store } from "../../core/model/store.ts";
import type { Conversation } from "../../core/model/types.ts";
import { builtInTemplates } from "../../core/prompts/summary.ts";
import { isBusy, retryWhileBusy } from "../../store/sqlite/errors.ts";
import { identify } from "../../store/sqlite/file-kind.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import { contextAnswer, leftBehind, parseHookCall, planHook, storeTranscript } from "../shared/companion.ts";
import type { HookCall, HookPlan } from "../shared/companion.ts";
import { recap } from "../shared/recap.ts";
import { noteSession } from "../shared/session-note.ts";
import { clock, findPlace, firstRunMs, hosts, isHostName, reporterOf } from "./place.ts";
import type { HostName, Place, Report } from "./place.ts";

/** The hosts wait longer; see the timeouts in plugin/. */
const hookMs = 8_000;
/** What takes longer is left to the background: a long transcript at first sight, a lock, a fold. */
const storeMs = 200;
const lockMs = 200;
const foldMs = 1_000;
/** Transcripts near by; the background looks at more. */
const lookedAtMax = 50;

interface Task {
  readonly name: HostName;
  readonly call: HookCall;
  readonly plan: HookPlan;
  readonly place: Place;
  readonly report: Report;
}

export async function main([name]: readonly string[]): Promise<number> {
  if (!isHostName(name)) return 0;
  setTimeout(() => process.exit(0), hookMs).unref();
  let report: Report = () => undefined;
  try {
    const call = parseHookCall(await text(process.stdin));
    if (call === null) return 0;
    const place = await findPlace(process.env);
    if (!place.settings.values.enabled) return 0;
    report = reporterOf(place.nearby, name);
    const answer = await serve({ name, call, plan: planHook(call), place, report });
    if (answer !== null) process.stdout.write(JSON.stringify(answer));
  } catch (error) {
    report("serving a hook", error);
  }
  return 0;
}

async function serve(task: Task): Promise<JsonObject | null> {
  const { call, plan, place, report } = task;
  const sinceMs = firstRunMs(place.nearby);
  if (plan.isStart) noteReader(call, report);
  if (plan.transcript === null) return null;
  try {
    const { answer, isLeft } = await storeAndAnswer(task, plan.transcript, sinceMs);
    if (isLeft) startBackground(task);
    return answer;
  } catch (error) {
    // The background waits longer for a lock, which may be its own.
    if (!(error instanceof LcmError && isBusy(error.cause))) report(`storing ${plan.transcript}`, error);
    startBackground(task);
    return null;
  }
}

/** For the MCP server of the same host process. */
function noteReader({ sessionId, folder }: HookCall, report: Report): void {
  const { CLAUDE_PLUGIN_DATA: data, CLAUDE_PID: pid } = process.env;
  try {
    if (data !== undefined) noteSession(data, pid === undefined ? null : Number(pid), { sessionId, folder });
  } catch (error) {
    report("noting the session", error);
  }
}

interface Served {
  readonly answer: JsonObject | null;
  /** Whether the background has something to do. */
  readonly isLeft: boolean;
}

async function storeAndAnswer(task: Task, transcript: string, sinceMs: number): Promise<Served> {
  const { name, call, plan, place, report } = task;
  const { settings } = place;
  const store = await openAtOnce(place);
  if (store === null) return { answer: null, isLeft: true };
  try {
    const deps = { store, clock, settings: settings.values, onProblem: report };
    const stored = await storeTranscript(deps, hosts[name], transcript, AbortSignal.timeout(storeMs));
    const conversation = stored && (await titled(store, stored.conversation, stored.title));
    const isLeft =
      stored?.isWhole === false ||
      (conversation !== null && (await isFoldLeft(task, store, conversation))) ||
      (plan.catchesUp && (await leftBehind(store, hosts[name], call, { sinceMs, lookedAtMax })).length > 0);
    const answer = plan.givesRecap && conversation !== null ? await recapFor(task, store, conversation) : null;
    return { answer, isLeft };
  } finally {
    await store.close();
  }
}

/** Null for a file that must be upgraded first, which may take long. */
async function openAtOnce({ database, settings }: Place): Promise<Store | null> {
  const limits = { housekeeping: false, connectionsMax: 1, lockTimeoutMs: lockMs };
  if (database.kind === "server") {
    const { openServer } = await import("../../store/open.ts");
    return await openServer(database.url, { settings: settings.values, env: process.env, ...limits });
  }
  const { path } = database;
  if ((await retryWhileBusy(lockMs, () => identify(path))) === "outdated") return null;
  const durability = durabilityOf(settings.values, "normal"); // The transcript brings every row again.
  return await openSqlite({ path, durability, housekeeping: false, busyTimeoutMs: lockMs });
}

/** Without a model, all of it takes a few milliseconds, and then the recap is ready when the host asks for it. */
async function isFoldLeft({ plan, place }: Task, store: Store, conversation: Conversation): Promise<boolean> {
  const settings = place.settings.values;
  if (plan.fold === "nothing") return false;
  if (plan.fold === "due") return (await due({ store, settings }, conversation)).kind !== "nothing";
  if (settings.summaryModel !== null || settings.summaryProvider !== null) return true;
  const deps = { store, clock, settings, model: null, templates: builtInTemplates, leftAlone: new Set<string>() };
  const request = { conversation: conversation.id, mode: "sweep", force: true } as const;
  const { outcome } = await compact(deps, { ...request, signal: AbortSignal.timeout(foldMs) });
  return outcome.kind === "bounded";
}

async function recapFor({ name, place }: Task, store: Store, conversation: Conversation): Promise<JsonObject | null> {
  const tokensMax = place.settings.values.companionTokens;
  const text = await recap(store, conversation, { tokensMax, charactersMax: hosts[name].contextCharactersMax });
  return text === null ? null : contextAnswer(text);
}

/** Not in the host's process group, so that it outlives the hook and the host. */
function startBackground({ name, call, plan, place, report }: Task): void {
  const [, program = ""] = process.argv;
  const words = [program, "--background", name, call.transcript, call.folder, plan.fold];
  const options = { detached: true, stdio: "ignore", cwd: dirname(place.nearby), windowsHide: true } as const;
  const child = spawn(process.execPath, words, options);
  child.on("error", (error) => report("starting the background", error));
  child.unref();
}
