/** Answers the host's compact call: before a turn, after an overflow, or when a person asks for it. */

import { withDeadline } from "../../core/base/deadline.ts";
import type { CompactReport } from "../../core/compaction/compact.ts";
import type { Lcm } from "../../core/lcm.ts";
import { promptTokens } from "../../core/model/prompt-cost.ts";
import type { Model } from "../../core/model/store.ts";
import type { Conversation } from "../../core/model/types.ts";
import type { CompactCall, CompactResult, ReadTranscript, SessionCall } from "./host-api.ts";
import { createHostModel } from "./host-model.ts";
import { learnFromOverflow } from "./prompt-budget.ts";
import { drain } from "./read-transcript.ts";
import type { Runtime } from "./runtime.ts";
import { findActive } from "./segments.ts";
import { compactionSecondsOf, placeOf } from "./sessions.ts";

export async function compactNow(runtime: Runtime, read: ReadTranscript, call: CompactCall): Promise<CompactResult> {
  const lcm = await runtime.open();
  const place = placeOf(call);
  const isOverflow = call.compactionTarget === "budget";
  // Between turns this may be the first call of a session. Within a turn, only the turn itself is new.
  if (!isOverflow) await runtime.inOrder(place.sessionKey, async () => drain(lcm, read, place));
  const conversation = await findActive(lcm.store, place);
  if (conversation === null)
    return { ok: true, compacted: false, reason: needless(call, "nothing is stored for this session yet") };
  if (isOverflow && call.tokenBudget !== undefined)
    learnFromOverflow(runtime.memoryOf(place), call.tokenBudget, call.currentTokenCount);
  const budget = conversation.promptBudget ?? call.tokenBudget;
  const shown = async () => (await lcm.assemble(conversation.id, budget === undefined ? {} : { budget })).report;
  const before = isOverflow ? await shown() : null;
  const isShownFiner = (before?.finer.items ?? 0) > 0;
  const request = compactionFor(lcm, conversation, call, { model: modelOf(runtime, call), budget, isShownFiner });
  const { endMs, patienceMs } = waitsOf(call, runtime.isCompacting(conversation.id));
  const report = await withDeadline(endMs, call.abortSignal, async (signal) =>
    withDeadline(patienceMs, signal, async (patience) => lcm.compact({ ...request, signal, patience })),
  );
  if (before === null || !isShownFiner || report.compacted) return toResult(report, call);
  // The prompt got smaller although nothing was folded: it no longer shows finer texts.
  const { tokens: tokensAfter } = await shown();
  return toResult(
    { ...report, compacted: tokensAfter < before.tokens, tokensBefore: before.tokens, tokensAfter },
    call,
  );
}

/** The model that the host offers for this call, if any. */
export function modelOf(runtime: Runtime, { runtimeContext, runtimeSettings }: SessionCall): Model | null {
  const llm = runtimeContext?.llm;
  return llm === undefined ? null : createHostModel(llm, runtime, runtimeSettings);
}

interface CompactionFacts {
  readonly model: Model | null;
  readonly budget: number | undefined;
  readonly isShownFiner: boolean;
}

function compactionFor(lcm: Lcm, { id, totals }: Conversation, call: CompactCall, facts: CompactionFacts) {
  const { model, budget, isShownFiner } = facts;
  const common = {
    conversation: id,
    force: true,
    ...(model === null ? {} : { model: lcm.metered(model) }),
    ...(budget === undefined ? {} : { budget }),
    ...(call.customInstructions ? { customInstructions: call.customInstructions } : {}),
  };
  if (call.compactionTarget !== "budget") return { ...common, mode: "sweep" as const };
  // The prompt was too long and must shrink, even if it is within the budget that we assumed.
  const within = Math.floor((budget ?? totals.contextTokens) * lcm.settings.contextThreshold);
  const targetTokens = Math.min(within, isShownFiner ? promptTokens(totals) : Math.floor(totals.contextTokens / 2));
  return { ...common, mode: "until_under" as const, targetTokens };
}

/**
 * Waits for the model at most two thirds of the host's time limit; the rest is for compacting without it. A turn that
 * needs the compaction waits less than a person who asked for one, and least if a background call to the model is already
 * unanswered.
 */
function waitsOf({ compactionTarget, runtimeContext }: CompactCall, isUnderWay: boolean) {
  const ms = Math.max(1, compactionSecondsOf(runtimeContext?.config)) * 1_000;
  const patienceMs = compactionTarget !== "budget" ? Infinity : isUnderWay ? 5_000 : 30_000;
  return { endMs: 0.9 * ms, patienceMs: Math.min(patienceMs, (2 / 3) * ms) };
}

/**
 * The host recognises "nothing to compact". It also asks before a turn whose last prompt was long, if only because of
 * tools, and takes any other reason for a failure: then it refuses this turn and every later one.
 */
const needless = ({ compactionTarget }: CompactCall, why: string): string =>
  compactionTarget === "budget" ? `nothing to compact: ${why}` : why;

const failedKinds: ReadonlySet<string> = new Set<CompactReport["outcome"]["kind"]>(["failed", "waiting"]);

function toResult(report: CompactReport, call: CompactCall): CompactResult {
  const { outcome, compacted, tokensBefore, tokensAfter, message, passes } = report;
  return {
    ok: outcome.kind !== "failed",
    compacted,
    ...(compacted ? {} : { reason: failedKinds.has(outcome.kind) ? message : needless(call, message) }),
    result: { tokensBefore, tokensAfter, details: { outcome: outcome.kind, passes: passes.length, message } },
  };
}
