/** Answers the host's compact call: before a turn, after an overflow, or when a person asks for it. */

import type { CompactReport } from "../../core/compaction/compact.ts";
import type { Model } from "../../core/model/store.ts";
import { learnFromOverflow } from "../shared/allowance.ts";
import { compactNow } from "../shared/compact-now.ts";
import type { Runtime } from "../shared/runtime.ts";
import type { CompactCall, CompactResult, ReadTranscript, SessionCall } from "./host-api.ts";
import { createHostModel } from "./host-model.ts";
import { drain } from "./read-transcript.ts";
import { findActive } from "./segments.ts";
import { compactionSecondsOf, placeOf } from "./sessions.ts";

export async function answerCompact(runtime: Runtime, read: ReadTranscript, call: CompactCall): Promise<CompactResult> {
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
  const report = await compactNow(runtime, lcm, {
    conversation,
    why: isOverflow ? "overflow" : "asked",
    model: modelOf(runtime, call),
    budget: conversation.promptBudget ?? call.tokenBudget,
    instructions: call.customInstructions,
    limitMs: Math.max(1, compactionSecondsOf(call.runtimeContext?.config)) * 1_000,
    signal: call.abortSignal,
  });
  return toResult(report, call);
}

/** The model that the host offers for this call, if any. */
export function modelOf(runtime: Runtime, { runtimeContext, runtimeSettings }: SessionCall): Model | null {
  const llm = runtimeContext?.llm;
  return llm === undefined ? null : createHostModel(llm, runtime, runtimeSettings);
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
