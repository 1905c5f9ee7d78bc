/**
 * The context engine that the host calls: stores its transcript, builds prompts and starts compaction. Storing and
 * prompting never call a model. Problems are recorded and the host still gets an answer; only a turn that could not be
 * stored is an error, because the host then commits it again.
 */

import { errorText } from "../../core/base/errors.ts";
import { estimateTokens } from "../../core/base/tokens.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import { endChild, grantFork } from "./child-grants.ts";
import { answerCompact, modelOf } from "./compact-call.ts";
import type {
  AssembleCall,
  AssembleResult,
  CommitCall,
  ContextEngine,
  DelegateCompaction,
  ReadTranscript,
  SessionCall,
} from "./host-api.ts";
import { recallAllowance } from "../shared/allowance.ts";
import { cachedTokensOf, inputTokensOf } from "../shared/message-fields.ts";
import { guidanceFor, newestFitting, sumTokens } from "../shared/prompts.ts";
import { notRecorded, recordEnd, recordHosts, recordOurs, whyHosts, type Recording } from "../shared/prompt-records.ts";
import { LiveTurn } from "./live-turn.ts";
import { isSameBudget } from "../../core/model/prompt-cost.ts";
import { budgetOf, learnFromTurn, type Attempt } from "./prompt-budget.ts";
import { drain } from "./read-transcript.ts";
import type { Runtime } from "../shared/runtime.ts";
import { findActive } from "./segments.ts";
import { placeOf, serviceOf } from "./sessions.ts";
import { storeRun, storeUntranscribed } from "./standalone-runs.ts";

export interface EngineDeps {
  readonly id: string;
  readonly version: string;
  readonly runtime: Runtime;
  readonly readTranscript: ReadTranscript;
  readonly delegateCompaction: DelegateCompaction;
}

/** For one turn, one compaction or one hook. */
export function createEngine(deps: EngineDeps): ContextEngine {
  const { runtime } = deps;
  const turn = new LiveTurn();
  const isServed = ({ sessionKey }: SessionCall): boolean =>
    serviceOf(runtime.settings.values, sessionKey) === "served";
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
    bootstrap: async (call) =>
      isServed(call)
        ? await bootstrap(deps, turn, call)
        : { bootstrapped: false, reason: "OpenClaw serves this session" },
    commitTurn: async (call) => (isServed(call) ? await commitTurn(deps, turn, call) : { status: "committed" }),
    assemble: async (call) => (isServed(call) ? await assemble(runtime, turn, call) : passOn(call.messages)),
    async maintain(call) {
      // The host waits for this before the next turn, so compaction is only started here.
      if (isServed(call) && call.runtimeContext?.allowDeferredCompactionExecution === true) {
        const doing = `starting compaction of ${call.sessionKey}`;
        await runtime.attempt(doing, doing, async () => await startCompaction(runtime, call));
      }
      if (isServed(call)) runtime.embedSoon();
      return { changed: false, bytesFreed: 0, rewrittenEntries: 0 };
    },
    async compact(call) {
      try {
        if (!isServed(call)) return await deps.delegateCompaction(call);
        const { currentTokenCount: counted } = call;
        if (counted !== undefined && turn.shown !== null)
          recordEnd(runtime, placeOf(call).sessionKey, turn.recording, { outcome: "overflow", counted });
        const result = await answerCompact(runtime, deps.readTranscript, call);
        turn.shown = null;
        return result;
      } catch (error) {
        runtime.note(`compacting ${call.sessionKey}`, error);
        return { ok: false, compacted: false, reason: errorText(error) };
      }
    },
    ingest: async (call) => ({ ingested: isServed(call) && (await storeMessages(runtime, call, [call.message])) > 0 }),
    ingestBatch: async (call) => ({
      ingestedCount: isServed(call) ? await storeMessages(runtime, call, call.messages) : 0,
    }),
    async afterTurn(call) {
      if (!isServed(call)) return;
      turn.end();
      await storeMessages(runtime, call, call.messages.slice(call.prePromptMessageCount));
    },
    prepareSubagentSpawn: async (call) => await grantFork(runtime, call),
    onSubagentEnded: async ({ childSessionKey }) => await endChild(runtime, childSessionKey),
    dispose: async () => await Promise.resolve(),
  };
}

async function bootstrap({ runtime, readTranscript }: EngineDeps, turn: LiveTurn, call: SessionCall) {
  const place = placeOf(call);
  const doing = `catching up ${place.sessionKey}`;
  turn.begin(call);
  try {
    // Reading that starts after the turn has begun would store the turn as one without a commit.
    const drained = await runtime.inTurn(place.sessionKey, doing, async (left) => {
      const lcm = await runtime.open();
      return left.aborted ? null : await drain(lcm, readTranscript, place);
    });
    if (drained?.value) return { bootstrapped: true, importedMessages: drained.value.messages };
    turn.behind = "the session is still being caught up";
  } catch (error) {
    turn.behind = errorText(error);
    runtime.note(doing, error);
  }
  return { bootstrapped: false, reason: turn.behind };
}

async function commitTurn({ runtime, readTranscript }: EngineDeps, turn: LiveTurn, call: CommitCall) {
  const place = placeOf(call);
  const committed = { key: call.advancementKey, lastKey: call.terminal.entryId };
  const doing = `storing a turn of ${place.sessionKey}`;
  try {
    const status = await runtime.inTurn(place.sessionKey, doing, async () => {
      const lcm = await runtime.open();
      const drained = await drain(lcm, readTranscript, place, committed);
      return drained.isKept ? drained.turn : await storeUntranscribed(lcm, call);
    });
    // The host also commits queued turns of other sessions.
    const { attempt } = turn;
    if (attempt !== null && attempt.session === call.sessionKey) {
      learnFromTurn(runtime.memoryOf(place), attempt, call);
      const last = call.messages.findLast((message) => inputTokensOf(message) > 0);
      const usage = last === undefined ? {} : { counted: inputTokensOf(last), cached: cachedTokensOf(last) };
      const end = { outcome: "answered", turn: call.advancementKey, ...usage } as const;
      recordEnd(runtime, place.sessionKey, turn.recording, end);
    }
    // Null means that storing takes too long for the turn to wait. The next turn reads the transcript anyway; an error
    // would make the host serve that turn, and all queued ones, itself.
    return { status: status?.value === "duplicate" ? ("duplicate" as const) : ("committed" as const) };
  } catch (error) {
    runtime.note(doing, error);
    throw error;
  }
}

async function storeMessages(runtime: Runtime, call: SessionCall, messages: readonly HostMessage[]): Promise<number> {
  const place = placeOf(call);
  const stored = await runtime.attempt(place.sessionKey, `storing a run of ${place.sessionKey}`, async () =>
    storeRun(await runtime.open(), place, messages),
  );
  return stored?.value ?? 0;
}

async function startCompaction(runtime: Runtime, call: SessionCall): Promise<void> {
  const place = placeOf(call);
  const lcm = await runtime.open();
  const conversation = await findActive(lcm.store, place);
  if (conversation === null) return;
  const { promptBudget } = runtime.memoryOf(place);
  // Small changes are not stored: what prompts show follows the stored budget, and should stay.
  const isNew =
    promptBudget !== null && promptBudget > 0 && !isSameBudget(promptBudget, conversation.promptBudget ?? 0, 0.05);
  if (isNew) await lcm.store.setPromptBudget(conversation.id, promptBudget);
  if ((await lcm.due(conversation.id)).kind !== "nothing") runtime.compactSoon(conversation.id, modelOf(runtime, call));
}

async function assemble(runtime: Runtime, turn: LiveTurn, call: AssembleCall): Promise<AssembleResult> {
  const memory = runtime.memoryOf(turn.placeOf(call));
  const attempt = turn.attemptOf(call);
  const { shown } = turn;
  if (shown !== null && shown.estimatedTokens <= budgetOf(attempt, call, memory, additionTokens(shown))) return shown;
  const doing = `building a prompt of ${call.sessionKey}`;
  const build = async () => await buildPrompt(runtime, turn, call, attempt);
  // A store that is behind would make the model answer an old state; then the host's own messages are shown.
  const built = turn.behind === null ? await runtime.attempt(doing, doing, build) : null;
  turn.recording = built === null ? recordPassedOn(runtime, turn, call) : (built.value?.record() ?? notRecorded);
  const prompt = built?.value?.prompt ?? passOn(newestFitting(call.messages, budgetOf(attempt, call, memory, 0)));
  attempt.shownTokens = prompt.estimatedTokens + additionTokens(prompt);
  return (turn.shown = prompt);
}

/** The next answer is then not based on ours. */
const recordPassedOn = async (runtime: Runtime, turn: LiveTurn, call: AssembleCall): Recording => {
  const place = turn.placeOf(call);
  const find = async ({ store }: Lcm) => await findActive(store, place);
  const why = turn.behind === null ? whyHosts.late : whyHosts.behind;
  return await recordHosts(runtime, place.sessionKey, { find, why, model: modelNameOf(call) });
};

const modelNameOf = ({ runtimeSettings }: AssembleCall): string | null => {
  const { resolved, provider } = runtimeSettings?.model ?? {};
  return [provider, resolved].filter((word) => typeof word === "string" && word !== "").join("/") || null;
};

/** Null if nothing of the session is stored. */
async function buildPrompt(
  runtime: Runtime,
  turn: LiveTurn,
  call: AssembleCall,
  attempt: Attempt,
): Promise<{ readonly prompt: AssembleResult; readonly record: () => Recording } | null> {
  const lcm = await runtime.open();
  const place = turn.placeOf(call);
  const conversation = await findActive(lcm.store, place);
  if (conversation === null) return null;
  const guidance = await guidanceFor(lcm, conversation);
  const memory = runtime.memoryOf(place);
  recallAllowance(memory, attempt.named, conversation.promptBudget);
  const budget = budgetOf(attempt, call, memory, guidance === null ? 0 : estimateTokens(guidance));
  const stored = await lcm.assemble(conversation.id, { budget: Math.max(0, budget - turn.unstoredTokens) });
  const { messages, tokens, sent } = turn.append(stored.messages, stored.report.tokens);
  const addition = guidance === null || budget < 0 ? {} : { systemPromptAddition: guidance };
  const about = { ...sent, guidance: addition.systemPromptAddition ?? null, model: modelNameOf(call) };
  const record = async () => await recordOurs(runtime, place.sessionKey, stored, about);
  return { prompt: { messages, estimatedTokens: tokens, ...addition }, record };
}

const additionTokens = ({ systemPromptAddition }: AssembleResult): number =>
  systemPromptAddition === undefined ? 0 : estimateTokens(systemPromptAddition);

const passOn = (messages: readonly HostMessage[]): AssembleResult => ({
  messages,
  estimatedTokens: sumTokens(messages),
});
