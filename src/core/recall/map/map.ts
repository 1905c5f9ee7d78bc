/**
 * Asks a model the same about every message that a cover selects, several calls at a time, within a budget. Every answer
 * is checked and stored as soon as it comes, so a run that was interrupted continues and pays nothing twice. The report
 * names every message that was not read.
 */

import { checkWhole, LcmError } from "../../base/errors.ts";
import { checkSchema } from "../../base/json-schema.ts";
import type { Json } from "../../base/json.ts";
import type { Model, Store } from "../../model/store.ts";
import type { Settings } from "../../model/settings.ts";
import type { MessageId } from "../../model/types.ts";
import { modelName } from "../../summarize/summarize.ts";
import { readCovered, type MapCover, type MapItem } from "./items.ts";
import { createPlanning, itemTokensMax } from "./plan.ts";
import type { MapBudget, MapPlan, MapTask, MapWork } from "./plan.ts";
import { MapRun, type MapSpent, type UnreadReason } from "./run.ts";

export interface MapDeps {
  readonly store: Store;
  readonly settings: Settings;
  /** Its calls must already be metered and bounded. */
  readonly model: Model | null;
}

export interface MapRequest extends MapCover {
  /** What to do for each message. */
  readonly prompt: string;
  /** JSON Schema of each result, with the keywords that json-schema.ts knows. */
  readonly schema: Json;
  /** Limits everything that is spent. By default a fifth more than planned, for answers that are asked again. */
  readonly budget?: MapBudget;
  /** How much of one call may be messages; 8,000 by default. */
  readonly callTokens?: number;
  /** Calls at a time; `summaryConcurrency` by default. */
  readonly concurrency?: number;
  /** Ask again what an earlier run was answered. */
  readonly fresh?: boolean;
  /** Replaces the default model. Its calls must already be metered and bounded. */
  readonly model?: Model;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: MapProgress) => void;
}

export interface MapProgress {
  readonly kind: "mapping";
  /** Messages answered so far, and all. */
  readonly done: number;
  readonly of: number;
  readonly calls: number;
}

/** What only callers in core set. */
export interface MapInternals extends Pick<MapTask, "resultTokens"> {
  /** Corrects a valid result before it is stored; pure. */
  readonly refine?: (item: MapItem, result: Json) => Json;
}

export interface Mapped extends Pick<MapItem, "id" | "role" | "at" | "tokens" | "forgets"> {
  readonly result: Json;
}

export interface MapReport {
  readonly plan: MapPlan;
  /** In the order of reading. */
  readonly results: readonly Mapped[];
  /** The messages without a result, in the same order. */
  readonly unread: readonly { readonly id: MessageId; readonly reason: UnreadReason }[];
  readonly spent: MapSpent;
  /** Why it ended before everything was read, as a clause; null if it did not. */
  readonly stopped: string | null;
}

/** Lists what a map would read, and its cost. Calls no model. */
export async function planMap(
  deps: MapDeps,
  request: MapRequest,
  internals: MapInternals = {},
): Promise<MapPlan & { readonly model: string | null }> {
  const model = request.model ?? deps.model;
  return { ...(await prepare(deps, request, internals)).plan, model: model && modelName(model) };
}

/** Throws `unavailable` without a model, and what the store throws. Trouble of the model is part of the report. */
export async function map(deps: MapDeps, request: MapRequest, internals: MapInternals = {}): Promise<MapReport> {
  const model = request.model ?? deps.model;
  if (model === null) throw missingModel();
  const work = await prepare(deps, request, internals);
  const { plan, items, answered } = work;
  const run = new MapRun(work, {
    asked: taskOf(request, internals),
    model,
    budget: request.budget ?? leewayOver(plan),
    concurrency: request.concurrency ?? deps.settings.summaryConcurrency,
    refine: internals.refine,
    signal: request.signal,
    save: async (answers) => await deps.store.saveMapAnswers(basisOf(request, model), answers),
    onCall: (calls, fresh) =>
      reportSafely(request.onProgress, { kind: "mapping", done: answered.size + fresh, of: items.length, calls }),
  });
  await run.toTheEnd();
  return { plan, ...run.outcome() };
}

const missingModel = (): LcmError =>
  new LcmError("unavailable", "reading every message needs a model, and none is configured", {
    hint: "set LCM_SUMMARY_MODEL, pass --model on the command line, or in code pass a model to createLcm()",
  });

function reportSafely(listener: MapRequest["onProgress"], progress: MapProgress): void {
  try {
    listener?.(progress);
  } catch {
    // Progress is only informative: a listener that throws must not end the work.
  }
}

/** A fifth more than planned, and a few calls, so that few messages can be asked again, too. */
const leewayOver = ({ calls, inputTokens, outputTokens }: MapPlan): MapBudget => ({
  tokens: Math.ceil(1.2 * (inputTokens + outputTokens)) + 8_000,
  calls: Math.ceil(1.2 * calls) + 4,
});

const taskOf = ({ prompt, schema }: MapRequest, { resultTokens }: MapInternals): MapTask => {
  checkSchema(schema);
  return { task: prompt.trim(), schema, ...(resultTokens !== undefined && { resultTokens }) };
};

/** Raised if prompts or answers change their meaning: then nothing that is kept fits any more. */
const version = 1;

const basisOf = ({ prompt, schema }: MapRequest, model: Model): string =>
  JSON.stringify([version, modelName(model), prompt.trim(), schema]);

async function prepare(deps: MapDeps, request: MapRequest, internals: MapInternals): Promise<MapWork> {
  check(request);
  const { store } = deps;
  const model = request.model ?? deps.model;
  const planning = createPlanning(taskOf(request, internals), request.budget, request.callTokens);
  const longest = Math.max(request.callTokens ?? 0, itemTokensMax);
  for await (const page of readCovered(store, request, longest, request.signal)) {
    const ids = page.flatMap((each) => (each.kind === "item" ? [each.item.id] : []));
    const isAsked = model !== null && request.fresh !== true;
    const kept = isAsked ? await store.mapAnswers(basisOf(request, model), ids) : new Map<MessageId, Json>();
    for (const each of page) {
      if (each.kind === "item") planning.add(each.item, kept.get(each.item.id));
      else if (each.kind === "skipped") planning.skip(each.skip);
      else planning.note(each.caveat);
    }
  }
  return planning.end();
}

function check({ prompt, callTokens, concurrency, budget = {}, query, summaryIds }: MapRequest): void {
  if (prompt.trim() === "")
    throw new LcmError("invalid", "prompt is empty", { hint: 'pass a task, such as "Which files does it change?"' });
  if (query?.trim() === "")
    throw new LcmError("invalid", "query is empty", { hint: "leave it out to read everything" });
  if (summaryIds?.length === 0)
    throw new LcmError("invalid", "summaryIds is empty", { hint: "leave it out to read everything" });
  for (const amount of Object.entries({ callTokens, concurrency, ...budget })) checkWhole(...amount);
}
