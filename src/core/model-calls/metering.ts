/**
 * Meters model calls: records each call before it is made, enforces the spend ceiling, and pauses refused credentials.
 *
 * All of it is in the store, so processes that share a database share one ceiling, and a restart loses nothing.
 */

import { beforeDeadline } from "../base/deadline.ts";
import { errorText, LcmError } from "../base/errors.ts";
import { refusals, tokensMax, type NewCall, type Refusal } from "../model/types.ts";
import type { Embedder } from "../model/embedder.ts";
import { estimateTokens } from "../base/tokens.ts";
import type {
  CallBounds,
  Clock,
  Completion,
  CompletionRequest,
  Model,
  OpenBreaker,
  Refused,
  Store,
  UsageTotals,
} from "../model/store.ts";
import type { Settings } from "../model/settings.ts";
import { elapsedMs, timeAfter, type Timestamp } from "../base/time.ts";

interface SpendDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: Settings;
}

const minuteMs = 60_000;
/** Long enough that a wrong key costs few calls an hour, short enough that a corrected one is soon noticed. */
const breakerMs = 10 * minuteMs;

interface MeterOptions {
  /** Ignored to try a credential that was just refused, for an operator who has corrected it. */
  readonly breaker?: "heeded" | "ignored";
}

/**
 * Wraps a model so that its calls are recorded and limited. Never throws: trouble of the store is a refusal with
 * `ofStore`. A model that cannot be called at all is refused without a record.
 */
export function meter(deps: SpendDeps, model: Model, options: MeterOptions = {}): Model {
  const { provider, name } = model;
  return {
    provider,
    name,
    async complete(request) {
      if (request.signal?.aborted === true) return cancelled;
      const obstacle = await within(request.signal, async () => (await model.check?.()) ?? null);
      if (obstacle !== null) return obstacle;
      const { conversation, purpose } = request;
      const call = { conversation, purpose, provider, model: name };
      return await recorded(deps, call, { ...options, callsMax: deps.settings.spendCeilingCalls }, async () => {
        const completion = await completeWithin(model, request);
        return { answer: completion, ...(completion.kind === "text" ? completion : nothingRead) };
      });
    },
  };
}

const nothingRead = { inputTokens: 0, outputTokens: 0 };

/** The same for an embedding model that is not on this machine. A tenth of the calls is left for questions. */
export function meterEmbedder(deps: SpendDeps, embedder: Embedder, options: MeterOptions = {}): Embedder {
  const { remote } = embedder;
  if (remote === undefined) return embedder;
  const most = deps.settings.embedCeilingCalls;
  return {
    ...embedder,
    async embed(request) {
      if (request.signal?.aborted === true) return cancelled;
      const call = { conversation: null, purpose: "embed", ...remote } as const;
      const callsMax = request.kind === "query" ? most : Math.floor(0.9 * most);
      return await recorded(deps, call, { ...options, callsMax }, async () => {
        const answer = await within(request.signal, async () => await embedder.embed(request));
        const read = request.texts.reduce((sum, text) => sum + estimateTokens(text), 0);
        return { answer, ...nothingRead, ...(answer.kind === "refused" ? {} : { inputTokens: read }) };
      });
    },
  };
}

interface Answered<A> {
  readonly answer: A | Refused;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Makes a call between its two records. Only the store can throw here: its trouble must not be taken for the provider's. */
async function recorded<A extends { readonly kind: string }>(
  { store, clock, settings }: SpendDeps,
  call: NewCall,
  { callsMax, breaker }: MeterOptions & Pick<CallBounds, "callsMax">,
  work: () => Promise<Answered<A>>,
): Promise<A | Refused> {
  const begun = clock.now();
  const bounds = {
    callsMax,
    windowSince: timeAfter(begun, -minuteMs * settings.spendWindowMinutes),
    breakerSince: breaker === "ignored" ? null : timeAfter(begun, -breakerMs),
  };
  try {
    const admission = await store.beginCall(call, bounds);
    if (admission.kind === "refused") return admission;
    const { answer, inputTokens, outputTokens } = await work();
    const result = isRefused(answer) ? answer.refusal : "ok";
    await store.endCall(admission.id, {
      inputTokens,
      outputTokens,
      result,
      durationMs: elapsedMs(begun, clock.now()),
    });
    return answer;
  } catch (error) {
    return error instanceof Error ? { ...refusedBy(error), ofStore: error } : refusedBy(error);
  }
}

const isRefused = (answer: { readonly kind: string }): answer is Refused => answer.kind === "refused";

/** One call. An abort of its signal and an error of the adapter both become refusals. */
export const completeWithin = async (model: Model, request: CompletionRequest): Promise<Completion> =>
  await within(request.signal, async () => counted(await model.complete(request)));

const within = async <T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T | Refused> =>
  signal?.aborted === true ? cancelled : await beforeDeadline(signal, work().catch(refusedBy), cancelled);

const cancelled: Refused = {
  kind: "refused",
  refusal: "cancelled",
  message: "the call was cancelled before the model answered",
};

const refusedBy = (error: unknown): Refused => ({
  kind: "refused",
  refusal: error instanceof LcmError ? refusalOf(error) : "unreachable",
  message: errorText(error),
});

/** Replaces token counts and refusals that make no sense, which an adapter may return. */
function counted(completion: Completion): Completion {
  if (completion.kind === "refused")
    return refusals.includes(completion.refusal) ? completion : { ...completion, refusal: "rejected" };
  const { inputTokens, outputTokens } = completion;
  return { ...completion, inputTokens: wholeTokens(inputTokens), outputTokens: wholeTokens(outputTokens) };
}

const wholeTokens = (tokens: number): number => {
  const whole = Math.round(tokens);
  return whole > 0 && whole <= tokensMax ? whole : 0;
};

function refusalOf({ code }: LcmError): Refusal {
  if (code === "denied") return "auth";
  return code === "unavailable" ? "unreachable" : "rejected";
}

/** The calls of the current window, and the providers that are paused. */
export interface Spend {
  readonly windowMinutes: number;
  readonly callsMax: number;
  readonly usage: UsageTotals;
  /** Each with the time at which it is tried again. */
  readonly breakers: readonly (OpenBreaker & { readonly until: Timestamp })[];
}

export async function spendOf({ store, clock, settings }: SpendDeps): Promise<Spend> {
  const now = clock.now();
  const breakers = await store.openBreakers(timeAfter(now, -breakerMs), now);
  return {
    windowMinutes: settings.spendWindowMinutes,
    callsMax: settings.spendCeilingCalls,
    usage: await store.usageSince(timeAfter(now, -minuteMs * settings.spendWindowMinutes), now),
    breakers: breakers.map((breaker) => ({ ...breaker, until: timeAfter(breaker.at, breakerMs) })),
  };
}
