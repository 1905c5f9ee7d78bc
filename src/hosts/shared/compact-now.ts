/** Compacts while a host waits: because a person asked for it, or because a prompt was too long. */

import { withDeadline } from "../../core/base/deadline.ts";
import type { CompactReport } from "../../core/compaction/compact.ts";
import type { Lcm } from "../../core/lcm.ts";
import { promptTokens } from "../../core/model/prompt-cost.ts";
import type { Model } from "../../core/model/store.ts";
import type { Conversation } from "../../core/model/types.ts";
import type { Runtime } from "./runtime.ts";

export interface CompactNow {
  readonly conversation: Conversation;
  readonly why: "asked" | "overflow";
  readonly model: Model | null;
  /** The prompt budget, if anyone has named one. */
  readonly budget: number | undefined;
  readonly instructions?: string | undefined;
  /** How long the host waits. */
  readonly limitMs: number;
  readonly signal?: AbortSignal | undefined;
}

export async function compactNow(runtime: Runtime, lcm: Lcm, call: CompactNow): Promise<CompactReport> {
  const { conversation, budget } = call;
  const shown = async () => (await lcm.assemble(conversation.id, budget === undefined ? {} : { budget })).report;
  const before = call.why === "overflow" ? await shown() : null;
  const isShownFiner = (before?.finer.items ?? 0) > 0;
  const request = compactionFor(lcm, call, isShownFiner);
  const { endMs, patienceMs } = waitsOf(call, runtime.isCompacting(conversation.id));
  const report = await withDeadline(endMs, call.signal, async (signal) =>
    withDeadline(patienceMs, signal, async (patience) => lcm.compact({ ...request, signal, patience })),
  );
  if (before === null || !isShownFiner || report.compacted) return report;
  // The prompt got smaller although nothing was folded: it no longer shows finer texts.
  const { tokens: tokensAfter } = await shown();
  return { ...report, compacted: tokensAfter < before.tokens, tokensBefore: before.tokens, tokensAfter };
}

function compactionFor(lcm: Lcm, call: CompactNow, isShownFiner: boolean) {
  const { id, totals } = call.conversation;
  const { model, budget, instructions } = call;
  const common = {
    conversation: id,
    force: true,
    ...(model === null ? {} : { model: lcm.metered(model) }),
    ...(budget === undefined ? {} : { budget }),
    ...(instructions ? { customInstructions: instructions } : {}),
  };
  if (call.why === "asked") return { ...common, mode: "sweep" as const };
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
function waitsOf({ why, limitMs }: CompactNow, isUnderWay: boolean) {
  const patienceMs = why === "asked" ? Infinity : isUnderWay ? 5_000 : 30_000;
  return { endMs: 0.9 * limitMs, patienceMs: Math.min(patienceMs, (2 / 3) * limitMs) };
}
