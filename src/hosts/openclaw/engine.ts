/**
 * The context engine, as the host calls it. It stores what the host's transcript holds, shows what the store holds, and
 * has old parts folded where nobody waits for it.
 *
 * Storing and showing never ask a model. What goes wrong is noted and told in the status, and the host gets an answer
 * all the same: its own messages, if ours cannot be read. Only a turn that could not be stored is an error to the host,
 * because it then brings the turn again.
 */

import { isCallBlock } from "../../core/messages/dialects.ts";
import type { HostMessage, Incoming } from "../../core/messages/codec.ts";
import { errorText } from "../../core/base/errors.ts";
import type { CompactReport } from "../../core/compaction/compact.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation } from "../../core/model/types.ts";
import { safeCuts, tiesOf } from "../../core/messages/tool-calls.ts";
import type { Model } from "../../core/model/store.ts";
import { tokensOf } from "../../core/assembly/present-message.ts";
import { estimateTokens } from "../../core/base/tokens.ts";
import {
  beginAttempt,
  budgetOf,
  isFirstCall,
  learnFromOverflow,
  learnFromTurn,
  recallAllowance,
} from "./prompt-budget.ts";
import type { Attempt } from "./prompt-budget.ts";
import { endChild, grantFork } from "./child-grants.ts";
import { textOf } from "./delegate.ts";
import type {
  AssembleCall,
  AssembleResult,
  CommitCall,
  CompactCall,
  CompactResult,
  ContextEngine,
  DelegateCompaction,
  ReadTranscript,
  SessionCall,
  TranscriptPlace,
} from "./host-api.ts";
import { createHostModel } from "./host-model.ts";
import type { Runtime, SessionMemory } from "./runtime.ts";
import { compactionSecondsOf, placeOf, serviceOf } from "./sessions.ts";
import { standalonePrefix } from "./align-older.ts";
import { drain, findActive } from "./read-transcript.ts";
import type { Json } from "../../core/base/json.ts";
import { parseTimestamp } from "../../core/base/time.ts";
import { pair } from "../../core/assembly/pair-results.ts";
import { recallGuidance } from "../../core/prompts/guidance.ts";
import { withDeadline } from "../../core/base/deadline.ts";

export interface EngineDeps {
  readonly id: string;
  readonly version: string;
  readonly runtime: Runtime;
  readonly readTranscript: ReadTranscript;
  readonly delegateCompaction: DelegateCompaction;
}

/** For one turn, one compaction or one hook. */
export function createEngine(deps: EngineDeps): ContextEngine {
  const { runtime, readTranscript } = deps;
  const isServed = ({ sessionKey }: SessionCall): boolean =>
    serviceOf(runtime.settings.values, sessionKey) === "served";
  /** Agents may have sessions of one key. */
  const memoryIn = ({ agentId, sessionKey }: TranscriptPlace): SessionMemory =>
    runtime.memoryOf(JSON.stringify([agentId, sessionKey]));
  /** What this turn was shown: it stays as it is, whatever is folded meanwhile, as long as it fits. */
  let shown: AssembleResult | null = null;
  let attempt: Attempt | null = null;
  /** What the host had to show when the turn began, and what has come of the turn since if it is tried anew. */
  let begun: readonly HostMessage[] | null = null;
  let live: readonly HostMessage[] = [];
  /** Whether the live turn says something again that the store holds as said before it. */
  let isSaidAgain: (text: string) => boolean = () => false;
  /** Why the store does not hold what came before this turn; null if it does. */
  let behind: string | null = null;
  /** The host names the agent when it begins a turn, and not when it assembles: not every key tells whose it is. */
  let target: SessionCall["sessionTarget"];
  const placeIn = (call: AssembleCall): TranscriptPlace =>
    placeOf(target?.sessionKey === call.sessionKey && target !== undefined ? { ...call, sessionTarget: target } : call);

  return {
    info: {
      id: deps.id,
      name: "lossless-claw",
      version: deps.version,
      transcriptSemantics: {
        currentTurnFence: "before-current-turn-entry-v1",
        turnAdvancementIdempotency: "atomic-idempotent-v1",
      },
      ownsCompaction: true,
      turnMaintenanceMode: "background",
    },

    async bootstrap(call) {
      if (!isServed(call)) return { bootstrapped: false, reason: "this session is left to the host" };
      const place = placeOf(call);
      const during = `${place.sessionKey} was caught up`;
      target = call.sessionTarget;
      shown = null;
      behind = null;
      try {
        // What begins when the turn has begun already would take it for one that came without a commit.
        const drained = await runtime.inTurn(place.sessionKey, during, async (left) => {
          const lcm = await runtime.open();
          return left.aborted ? null : await drain(lcm, readTranscript, place);
        });
        if (drained?.value) return { bootstrapped: true, importedMessages: drained.value.messages };
        behind = "the session is still being caught up";
      } catch (error) {
        behind = errorText(error);
        runtime.note(during, error);
      }
      return { bootstrapped: false, reason: behind };
    },

    async commitTurn(call) {
      if (!isServed(call)) return { status: "committed" };
      const place = placeOf(call);
      const turn = { key: call.advancementKey, lastKey: call.terminal.entryId };
      const during = `a turn of ${place.sessionKey} was stored`;
      try {
        const status = await runtime.inTurn(place.sessionKey, during, async () => {
          const lcm = await runtime.open();
          const drained = await drain(lcm, readTranscript, place, turn);
          return drained.isKept ? drained.turn : await storeUnkept(lcm, call);
        });
        // The host also brings turns of other sessions that it has queued.
        if (attempt !== null && attempt.session === call.sessionKey) learnFromTurn(memoryIn(place), attempt, call);
        // The answer of the turn waits for this. What is not stored in time is in the transcript, and the next turn
        // begins with looking there; an error would only have the host serve that one, and all it has queued, itself.
        return { status: status?.value === "duplicate" ? "duplicate" : "committed" };
      } catch (error) {
        runtime.note(during, error);
        throw error;
      }
    },

    async assemble(call) {
      if (!isServed(call)) return passOn(call);
      const memory = memoryIn(placeIn(call));
      if (attempt === null || isFirstCall(call)) {
        attempt = beginAttempt(call);
        ({ live, isSaidAgain } = liveIn(call, (begun ??= call.messages)));
        shown = null;
      }
      if (shown !== null && shown.estimatedTokens <= budgetOf(attempt, call, memory, addedBy(shown))) return shown;
      const during = `a prompt of ${call.sessionKey} was assembled`;
      const current = attempt;
      const assembled = async () => await assembleFor(await runtime.open(), call, current);
      shown = behind === null ? ((await runtime.attempt(during, during, assembled))?.value ?? null) : null;
      // Without what came last the model would answer to an old state of things: the host has that.
      shown ??= fitted(call, budgetOf(attempt, call, memory, 0));
      attempt.shownTokens = shown.estimatedTokens + addedBy(shown);
      return shown;
    },

    async maintain(call) {
      // The host waits for this before the next turn. So what takes a model is only begun here.
      if (isServed(call) && call.runtimeContext?.allowDeferredCompactionExecution === true) {
        const during = `${call.sessionKey} was looked after`;
        await runtime.attempt(during, during, async () => await beginFolding(call));
      }
      return { changed: false, bytesFreed: 0, rewrittenEntries: 0 };
    },

    async compact(call) {
      try {
        if (!isServed(call)) return await deps.delegateCompaction(call);
        const result = await compactNow(call);
        shown = null;
        return result;
      } catch (error) {
        runtime.note(`${call.sessionKey} was compacted`, error);
        return { ok: false, compacted: false, reason: errorText(error) };
      }
    },

    async ingest(call) {
      return { ingested: isServed(call) && (await storeStandalone(call, [call.message])) > 0 };
    },
    async ingestBatch(call) {
      return { ingestedCount: isServed(call) ? await storeStandalone(call, call.messages) : 0 };
    },
    async afterTurn(call) {
      if (!isServed(call)) return;
      [shown, begun] = [null, null];
      await storeStandalone(call, call.messages.slice(call.prePromptMessageCount));
    },

    prepareSubagentSpawn: async (call) => await grantFork(runtime, call),
    onSubagentEnded: async ({ childSessionKey }) => await endChild(runtime, childSessionKey),
    dispose: async () => await Promise.resolve(),
  };

  async function assembleFor(lcm: Lcm, call: AssembleCall, current: Attempt): Promise<AssembleResult | null> {
    const conversation = await findActive(lcm.store, placeIn(call));
    if (conversation === null) return null;
    const guidance = await guidanceFor(lcm, conversation);
    const memory = memoryIn(placeIn(call));
    recallAllowance(memory, current, conversation.promptBudget);
    const budget = budgetOf(current, call, memory, guidance === null ? 0 : estimateTokens(guidance));
    const liveTokens = sumOf(live);
    const { messages, report } = await lcm.assemble(conversation.id, { budget: Math.max(0, budget - liveTokens) });
    const addition = guidance === null || budget < 0 ? {} : { systemPromptAddition: guidance };
    const end = endBefore(messages, isSaidAgain);
    const tokens = report.tokens + liveTokens - sumOf(messages.slice(end));
    return { messages: [...messages.slice(0, end), ...live], estimatedTokens: tokens, ...addition };
  }

  async function beginFolding(call: SessionCall): Promise<void> {
    const place = placeOf(call);
    const lcm = await runtime.open();
    const conversation = await findActive(lcm.store, place);
    if (conversation === null) return;
    const { promptBudget } = memoryIn(place);
    if (promptBudget !== null && promptBudget > 0) await lcm.store.setPromptBudget(conversation.id, promptBudget);
    if ((await lcm.due(conversation.id)).kind !== "nothing") runtime.compactSoon(conversation.id, modelOf(call));
  }

  async function compactNow(call: CompactCall): Promise<CompactResult> {
    const lcm = await runtime.open();
    const place = placeOf(call);
    const isOverflow = call.compactionTarget === "budget";
    // Between turns it may be the first thing that is asked of a session. Within one, what is new is the turn itself.
    if (!isOverflow) await runtime.inOrder(place.sessionKey, async () => drain(lcm, readTranscript, place));
    const conversation = await findActive(lcm.store, place);
    if (conversation === null)
      return { ok: true, compacted: false, reason: needless(call, "nothing is stored of this session yet") };
    const memory = memoryIn(place);
    if (isOverflow && call.tokenBudget !== undefined)
      learnFromOverflow(memory, call.tokenBudget, call.currentTokenCount);
    const request = compactionFor(lcm, conversation, call);
    const { endMs, patienceMs } = waitsOf(call, runtime.isCompacting(conversation.id));
    const report = await withDeadline(endMs, call.abortSignal, async (signal) =>
      withDeadline(patienceMs, signal, async (patience) => lcm.compact({ ...request, signal, patience })),
    );
    return toResult(report, call);
  }

  function compactionFor(lcm: Lcm, { id, promptBudget, totals }: Conversation, call: CompactCall) {
    const model = modelOf(call);
    const { contextThreshold } = lcm.settings;
    const budget = promptBudget ?? call.tokenBudget;
    const common = {
      conversation: id,
      force: true,
      ...(model === null ? {} : { model: lcm.metered(model) }),
      ...(budget === undefined ? {} : { budget }),
      ...(call.customInstructions ? { customInstructions: call.customInstructions } : {}),
    };
    if (call.compactionTarget !== "budget") return { ...common, mode: "sweep" as const };
    // A prompt that was too long must become shorter, also where it is within what we took for its budget.
    const within = Math.floor((budget ?? totals.contextTokens) * contextThreshold);
    const targetTokens = Math.min(within, Math.floor(totals.contextTokens / 2));
    return { ...common, mode: "until_under" as const, targetTokens };
  }

  function modelOf({ runtimeContext, runtimeSettings }: SessionCall): Model | null {
    const llm = runtimeContext?.llm;
    return llm === undefined ? null : createHostModel(llm, runtime, runtimeSettings);
  }

  /** A run that no transcript is kept of: its messages have no ids, but each has its time. */
  async function storeStandalone(call: SessionCall, messages: readonly HostMessage[]): Promise<number> {
    const place = placeOf(call);
    const stored = await runtime.attempt(place.sessionKey, `a run of ${place.sessionKey} was stored`, async () => {
      const lcm = await runtime.open();
      const conversation = await lcm.store.open(place);
      return (await lcm.ingest(conversation.id, itemsOf(lcm, messages, timeKeys()))).messages.length;
    });
    return stored?.value ?? 0;
  }
}

interface Live {
  readonly live: readonly HostMessage[];
  readonly isSaidAgain: (text: string) => boolean;
}

/**
 * A turn that is tried anew, after an overflow or an empty answer: the host then counts what has come of it as told
 * before, and only asks to go on. None of that is stored yet. The host joins messages of a user, also across answers
 * without a word, so that the last one of before may have become the first one of the turn.
 *
 * A user's words without an answer, because the gateway was ended, the host takes out of what was said, and puts them
 * into the next prompt. That it has done so stands in its transcript only after we have read it.
 */
function liveIn({ messages, prompt = "" }: AssembleCall, begun: readonly HostMessage[]): Live {
  const last = begun.at(-1);
  // With a limit to its history the host may show less of what was before than it did first.
  const words = JSON.stringify(last);
  const at = messages.slice(0, begun.length).findLastIndex((message) => JSON.stringify(message) === words);
  const joined = messages[begun.length - 1];
  if (at < 0 && last?.["role"] === "user" && joined !== undefined) {
    const told = textOf(joined["content"]);
    return { live: messages.slice(begun.length - 1), isSaidAgain: (text) => told.includes(text) };
  }
  const before = textOf(messages.at(-1)?.["content"]);
  return {
    live: messages.slice(at >= 0 ? at + 1 : begun.length),
    isSaidAgain: (text) => prompt.includes(text) && !before.includes(text),
  };
}

/** Where what the live turn says again begins, at the end of what was said. */
function endBefore(messages: readonly HostMessage[], isSaidAgain: Live["isSaidAgain"]): number {
  let end = messages.length;
  for (const [at, { role, content }] of [...messages.entries()].reverse()) {
    const text = textOf(content).trim();
    if (role === "user" && text !== "" && isSaidAgain(text)) end = at;
    else if (role !== "assistant" || text !== "" || hasCalls(content)) break;
  }
  return end;
}

const hasCalls = (content: Json | undefined): boolean => Array.isArray(content) && content.some(isCallBlock);

const sumOf = (messages: readonly HostMessage[]): number =>
  messages.reduce((sum, message) => sum + tokensOf(message), 0);

const addedBy = ({ systemPromptAddition }: AssembleResult): number =>
  systemPromptAddition === undefined ? 0 : estimateTokens(systemPromptAddition);

/** What an agent is told about its memory; nothing as long as it sees all there is. */
async function guidanceFor({ store }: Lcm, { id, totals }: Conversation): Promise<string | null> {
  const isBegunAnew = (await store.conversations({ familyOf: id, limit: 2 })).length > 1;
  const isFolded = totals.summaries > 0;
  return isFolded || isBegunAnew ? recallGuidance({ isFolded, isBegunAnew }) : null;
}

const passOn = ({ messages }: AssembleCall): AssembleResult => ({
  messages,
  estimatedTokens: sumOf(messages),
});

/** The newest of the host's own messages that fit, calls with their results. */
function fitted({ messages }: AssembleCall, budget: number): AssembleResult {
  const costs = messages.map(tokensOf);
  const sums = [0];
  for (const cost of costs.toReversed()) sums.push((sums.at(-1) ?? 0) + cost);
  const costFrom = (at: number): number => sums[messages.length - at] ?? 0;
  if (costFrom(0) <= budget) return { messages, estimatedTokens: costFrom(0) };
  // Providers want a user's message first.
  const cuts = [...safeCuts(messages.map(tiesOf)), messages.length].filter(
    (at) => messages[at]?.["role"] !== "assistant",
  );
  const cut = cuts.find((each) => costFrom(each) <= budget) ?? messages.length;
  const kept = pair(messages.slice(cut)).messages.map(({ message }) => message);
  return { messages: kept, estimatedTokens: sumOf(kept) };
}

// ── Compaction that is waited for ────────────────────────────────────────────────────────────────────────────────────

/**
 * How long the model is waited for: at most two thirds of the time there is, and most of the rest is for going on without
 * one. Whoever has asked for a compaction can wait; a turn that needs one to go on cannot, least of all when the model
 * has been asked already, in the background, and has not answered.
 */
function waitsOf({ compactionTarget, runtimeContext }: CompactCall, isUnderWay: boolean) {
  const ms = Math.max(1, compactionSecondsOf(runtimeContext?.config)) * 1_000;
  const patienceMs = compactionTarget !== "budget" ? Infinity : isUnderWay ? 5_000 : 30_000;
  return { endMs: 0.9 * ms, patienceMs: Math.min(patienceMs, (2 / 3) * ms) };
}

/**
 * In words by which the host knows that there is no need to. It asks before a turn, too, when the last prompt was long, be
 * it by its tools alone; any other reason it takes for a failure, and refuses this turn and every one after it.
 */
const needless = ({ compactionTarget }: CompactCall, why: string): string =>
  compactionTarget === "budget" ? `nothing to compact: ${why}` : why;

const endsBadly: ReadonlySet<string> = new Set<CompactReport["outcome"]["kind"]>(["failed", "waiting"]);

function toResult(report: CompactReport, call: CompactCall): CompactResult {
  const { outcome, compacted, tokensBefore, tokensAfter, message, passes } = report;
  return {
    ok: outcome.kind !== "failed",
    compacted,
    ...(compacted ? {} : { reason: endsBadly.has(outcome.kind) ? message : needless(call, message) }),
    result: { tokensBefore, tokensAfter, details: { outcome: outcome.kind, passes: passes.length, message } },
  };
}

// ── Messages without a transcript ────────────────────────────────────────────────────────────────────────────────────

/** A session that the host keeps no transcript of: the turn's own key and the place in it stand for an id. */
async function storeUnkept(lcm: Lcm, call: CommitCall): Promise<"new" | "duplicate" | "unnamed"> {
  const place = placeOf(call);
  const { sessionKey, agentId } = place;
  // It may be a session that was deleted, and its key begun anew since.
  const family = await lcm.store.conversations({ sessionKey, agentId, includeHidden: true });
  const own = family.filter(({ sessionId }) => sessionId === place.sessionId).toSorted((a, b) => b.id - a.id)[0];
  const conversation = own ?? (await lcm.store.open(place));
  const items = itemsOf(lcm, call.messages, (_, at) => `turn:${call.advancementKey}:${at}`);
  return (await lcm.ingest(conversation.id, items, { turnKey: call.advancementKey })).turn;
}

function itemsOf(
  { clock }: Lcm,
  messages: readonly HostMessage[],
  keyOf: (message: HostMessage, at: number) => string,
): readonly Incoming[] {
  return messages.map((raw, index) => {
    const { timestamp } = raw;
    const time = typeof timestamp === "number" || typeof timestamp === "string" ? parseTimestamp(timestamp) : null;
    return { kind: "message", message: raw, key: keyOf(raw, index), at: time ?? clock.now() };
  });
}

/** What says who said it when; several of one moment are counted. */
function timeKeys(): (message: HostMessage) => string {
  const met = new Map<string, number>();
  return ({ role, timestamp, toolCallId = null }) => {
    const moment = `${standalonePrefix}${JSON.stringify([timestamp, role, toolCallId])}`;
    const count = (met.get(moment) ?? 0) + 1;
    met.set(moment, count);
    return count === 1 ? moment : `${moment}#${count}`;
  };
}
