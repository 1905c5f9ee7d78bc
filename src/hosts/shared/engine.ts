/**
 * The engine for hosts whose prompts we may replace: an adapter passes on what its host writes, asks for prompts, and
 * reports what the provider counted. Every argument and answer is JSON, so that it also works from another process.
 *
 * No call throws, and none but a compaction and a tool waits long: if something of ours fails, the host's own messages
 * are shown, and what was not stored is stored by the next call, which brings it again.
 */

import { refusal, type ToolResult } from "../../agent-tools/define.ts";
import { progressWords } from "../../agent-tools/text.ts";
import { beforeDeadline, withDeadline } from "../../core/base/deadline.ts";
import { LcmError, errorText } from "../../core/base/errors.ts";
import type { Json } from "../../core/base/json.ts";
import { estimateTokens } from "../../core/base/tokens.ts";
import type { Assembly } from "../../core/assembly/assemble.ts";
import type { CompactReport } from "../../core/compaction/compact.ts";
import { titled } from "../../core/ingest/import-transcript.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import { isSameBudget } from "../../core/model/prompt-cost.ts";
import type { Model } from "../../core/model/store.ts";
import type { Conversation } from "../../core/model/types.ts";
import { answerCommand, type HostWords } from "./chat-commands.ts";
import { compactNow } from "./compact-now.ts";
import { compactionText, type CompactionText } from "./compaction-text.ts";
import { LiveSession, type ProviderAnswer, type Room } from "./live-session.ts";
import { offeredTools } from "./offered-tools.ts";
import { recordEnd, recordHosts, recordOurs, whyHosts } from "./prompt-records.ts";
import { guidanceFor } from "./prompts.ts";
import { describeError, type Runtime } from "./runtime.ts";
import { serviceBySettings, whyNotServed } from "./service.ts";
import { hostSession, type HostSession } from "./sessions.ts";

export interface HostEngine {
  /**
   * Stores the host's rows that are new, in order. `from` is the number of rows before the first of these. `later`: they
   * are not stored, and must come again with the next call. `left`: the settings exclude the session.
   */
  store(session: HostSession, rows: readonly Json[], from: number): Promise<"stored" | "later" | "left">;
  /** Our messages for the next request; null if the host's own are to be shown. */
  prompt(session: HostSession, request: PromptRequest): Promise<HostPrompt | null>;
  /** What came of the last prompt. */
  learn(session: HostSession, answer: ProviderAnswer): Promise<void>;
  /** Starts folding in the background, if it is due. */
  foldSoon(session: HostSession): Promise<void>;
  compact(session: HostSession, request: CompactRequest, signal?: AbortSignal): Promise<HostCompaction>;
  tool(session: HostSession, call: ToolCall, signal?: AbortSignal): Promise<ToolAnswer>;
  /** Answers `/lcm`, with the words after it. */
  command(session: HostSession, words: string): Promise<string>;
  /** Ends what is running in the background; what was folded stays. */
  close(): Promise<void>;
}

export interface PromptRequest extends Room {
  /** What the host shows in place of a message's content, by the id of its row; null: nothing. */
  readonly edits?: Readonly<Record<string, Json>>;
  /** The model that the prompt is for, as the host names it. */
  readonly model?: string;
}

export interface HostPrompt {
  readonly messages: readonly HostMessage[];
  readonly tokens: number;
  /** For the system prompt; its tokens are already set aside. Null while the agent sees everything. */
  readonly guidance: string | null;
}

export interface CompactRequest {
  /** `threshold`: the host thinks its context too long; nothing is folded while it waits. */
  readonly why: "asked" | "threshold" | "overflow";
  readonly instructions?: string;
  /** How long the host waits. */
  readonly limitMs?: number;
}

/** `ours`: what the host can store as its own compaction; null if nothing is folded or it could not be read. */
export interface HostCompaction extends Pick<CompactReport, "compacted" | "message"> {
  readonly ours: CompactionText | null;
  /** Whether we did what was asked; if not, the host should. */
  readonly ok: boolean;
}

export interface ToolCall {
  readonly name: string;
  readonly args: Json;
  readonly onProgress?: (words: string) => void;
}

export type ToolAnswer = Pick<ToolResult, "text" | "details" | "isError">;

export interface HostEngineDeps {
  readonly runtime: Runtime;
  readonly words: HostWords;
  /** The host's model, for summaries and questions; null if it offers none now. */
  readonly modelOf: (session: HostSession) => Model | null;
}

const limitMsDefault = 180_000;
/** A host that ends waits at most this long for rows to be stored; its next start brings them again. */
const closeMs = 3_000;

export function createHostEngine(deps: HostEngineDeps): HostEngine {
  const { runtime } = deps;
  const sessions = new Map<string, LiveSession>();
  const liveOf = (session: HostSession): LiveSession => {
    const { sessionKey } = namesOf(session);
    const live = sessions.get(sessionKey) ?? new LiveSession(session, runtime.memoryOf(namesOf(session)));
    sessions.set(sessionKey, live);
    return live;
  };
  const isServed = (session: HostSession): boolean =>
    serviceBySettings(runtime.settings.values, namesOf(session).sessionKey) === "served";
  return {
    async store(session, rows, from) {
      if (!isServed(session)) return "left";
      return (await storeRows(runtime, liveOf(session), rows, from)) ? "stored" : "later";
    },
    async prompt(session, request) {
      return isServed(session) ? await showPrompt(runtime, liveOf(session), request) : null;
    },
    async learn(session, answer) {
      if (isServed(session)) await Promise.resolve(learn(runtime, liveOf(session), answer));
    },
    async foldSoon(session) {
      if (!isServed(session)) return;
      const doing = `starting compaction of ${namesOf(session).sessionKey}`;
      await runtime.attempt(doing, doing, async () => await startFolding(deps, liveOf(session)));
      runtime.embedSoon();
    },
    async compact(session, request, signal) {
      try {
        if (!isServed(session)) return notOurs("lossless-claw does not serve this session");
        if (liveOf(session).isBehind) return notOurs("what the host has written is not stored yet");
        return await compact(deps, liveOf(session), request, signal);
      } catch (error) {
        runtime.note(`compacting ${namesOf(session).sessionKey}`, error);
        return notOurs(describeError(error));
      }
    },
    async tool(session, call, signal) {
      try {
        return await runTool(deps, session, call, signal);
      } catch (error) {
        runtime.note(`running ${call.name} for ${namesOf(session).sessionKey}`, error);
        const known = error instanceof LcmError ? error : new LcmError("unavailable", errorText(error));
        return refusal(call.name, known);
      }
    },
    command: async (session, words) => await runCommand(deps, session, words),
    async close() {
      // What a turn did not wait for may still be stored.
      const queues = [...sessions.keys()].map(
        async (key) => await runtime.inOrder(key, async () => await Promise.resolve()),
      );
      await withDeadline(closeMs, undefined, async (signal) => await beforeDeadline(signal, Promise.all(queues), null));
      await runtime.close().catch((error: unknown) => runtime.note("closing the database", error));
    },
  };
}

const notOurs = (message: string): HostCompaction => ({ ok: false, compacted: false, message, ours: null });

interface Names {
  readonly agentId: string;
  readonly sessionKey: string;
}

function namesOf(session: HostSession): Names {
  const { agentId, sessionKey } = hostSession(session);
  return { agentId: agentId ?? session.host, sessionKey: sessionKey ?? session.sessionId };
}

/** Null if nothing of the session is stored. */
async function findStored({ store }: Lcm, session: HostSession): Promise<Conversation | null> {
  const [active] = await store.conversations({ ...namesOf(session), active: true, includeHidden: true, limit: 1 });
  return active ?? null;
}

const rowsAtATime = 500;

async function storeRows(runtime: Runtime, live: LiveSession, rows: readonly Json[], from: number): Promise<boolean> {
  const { sessionKey } = namesOf(live.session);
  if (rows.length === 0) return !live.isBehind;
  // Until the end: a prompt without these rows would make the model answer an old state.
  live.isBehind = true;
  const stored = await runtime.attempt(sessionKey, `storing rows of ${sessionKey}`, async () => {
    const lcm = await runtime.open();
    const items = live.read(rows, from, lcm.clock.now());
    const conversation = await lcm.store.open(hostSession({ ...live.facts(), ...live.session }));
    for (let at = 0; at < items.length; at += rowsAtATime)
      await lcm.ingest(conversation.id, items.slice(at, at + rowsAtATime));
    if (conversation.title === null) await titled(lcm.store, conversation, live.title());
    return true;
  });
  live.isBehind = stored === null;
  return stored !== null;
}

/** Null if the host's own messages are to be shown. */
async function showPrompt(runtime: Runtime, live: LiveSession, request: PromptRequest): Promise<HostPrompt | null> {
  const { sessionKey } = namesOf(live.session);
  const doing = `building a prompt of ${sessionKey}`;
  const build = async () => await buildPrompt(runtime, live, request);
  const built = live.isBehind ? null : await runtime.attempt(doing, doing, build);
  live.shown = null;
  if (!built?.value) {
    // Of a session of which nothing is stored, nothing is recorded either.
    const why = live.isBehind ? whyHosts.behind : whyHosts.late;
    if (built === null) recordNotOurs(runtime, live, why, request.model);
    return null;
  }
  const { prompt, assembly } = built.value;
  // The host's own request can only do better.
  if (prompt.messages.length === 0) {
    recordNotOurs(runtime, live, whyHosts.unfit, request.model);
    return null;
  }
  const sent = { guidance: prompt.guidance, model: request.model ?? null };
  live.recording = recordOurs(runtime, sessionKey, assembly, sent);
  live.shown = { ...request, tokens: prompt.tokens };
  return prompt;
}

interface Built {
  readonly prompt: HostPrompt;
  readonly assembly: Assembly;
}

async function buildPrompt(runtime: Runtime, live: LiveSession, request: PromptRequest): Promise<Built | null> {
  const lcm = await runtime.open();
  const conversation = await findStored(lcm, live.session);
  if (conversation === null) return null;
  const guidance = await guidanceFor(lcm, conversation);
  const budget = live.budgetFor(request, conversation.promptBudget, guidance === null ? 0 : estimateTokens(guidance));
  const edits = request.edits === undefined ? {} : { edits: new Map(Object.entries(request.edits)) };
  const assembly = await lcm.assemble(conversation.id, { budget, ...edits });
  const { messages, report } = assembly;
  return { prompt: { messages, tokens: report.tokens, guidance }, assembly };
}

/** The next answer is then not based on ours. */
function recordNotOurs(runtime: Runtime, live: LiveSession, why: string, model: string | null = null): void {
  const find = async (lcm: Lcm) => await findStored(lcm, live.session);
  live.recording = recordHosts(runtime, namesOf(live.session).sessionKey, { find, why, model });
}

function learn(runtime: Runtime, live: LiveSession, answer: ProviderAnswer): void {
  live.learn(answer);
  if (answer.kind === "unused") return recordNotOurs(runtime, live, whyHosts.unused);
  const end =
    answer.kind === "overflow"
      ? { outcome: "overflow" as const, counted: answer.countedTokens ?? null }
      : { outcome: "answered" as const, counted: answer.inputTokens, cached: answer.cachedTokens ?? null };
  recordEnd(runtime, namesOf(live.session).sessionKey, live.recording, end);
}

async function startFolding({ runtime, modelOf }: HostEngineDeps, live: LiveSession): Promise<void> {
  const lcm = await runtime.open();
  const conversation = await findStored(lcm, live.session);
  if (conversation === null) return;
  const { promptBudget } = live.memory;
  // Small changes are not stored: what prompts show follows the stored budget, and should stay.
  const isNew =
    promptBudget !== null && promptBudget > 0 && !isSameBudget(promptBudget, conversation.promptBudget ?? 0, 0.05);
  if (isNew) await lcm.store.setPromptBudget(conversation.id, promptBudget);
  if ((await lcm.due(conversation.id)).kind !== "nothing") runtime.compactSoon(conversation.id, modelOf(live.session));
}

async function compact(
  deps: HostEngineDeps,
  live: LiveSession,
  request: CompactRequest,
  signal: AbortSignal | undefined,
): Promise<HostCompaction> {
  const { runtime, modelOf } = deps;
  const { why, instructions, limitMs = limitMsDefault } = request;
  const lcm = await runtime.open();
  const conversation = await findStored(lcm, live.session);
  if (conversation === null) return notOurs("nothing is stored for this session yet");
  if (why === "threshold") {
    await startFolding(deps, live);
    const ours = await compactionText(lcm, conversation);
    const message = ours === null ? "nothing is folded yet" : "what is folded already stands for the older messages";
    return { ok: true, compacted: false, message, ours };
  }
  const budget = live.memory.promptBudget ?? conversation.promptBudget ?? undefined;
  const model = modelOf(live.session);
  const call = { conversation, why, model, budget, instructions, limitMs, signal };
  const { outcome, compacted, message } = await compactNow(runtime, lcm, call);
  return { ok: outcome.kind !== "failed", compacted, message, ours: await compactionText(lcm, conversation) };
}

async function runTool(
  { runtime, modelOf }: HostEngineDeps,
  session: HostSession,
  { name, args, onProgress }: ToolCall,
  signal: AbortSignal | undefined,
): Promise<ToolAnswer> {
  const tool = offeredTools.find((each) => each.name === name);
  const { agentId, sessionKey } = namesOf(session);
  const service = serviceBySettings(runtime.settings.values, sessionKey);
  if (tool === undefined || service === "left" || (tool.isWriting === true && service !== "served"))
    throw new LcmError("denied", `${name} is not available in this session`);
  const lcm = await runtime.open();
  const conversation = service === "served" ? ((await findStored(lcm, session))?.id ?? null) : null;
  const model = modelOf(session);
  const { text, details, isError } = await tool.run(args, {
    lcm,
    reader: { conversation, policy: lcm.settings.scopePolicy, agentId },
    ...(signal === undefined ? {} : { signal }),
    ...(model === null ? {} : { model: lcm.metered(model) }),
    ...(onProgress === undefined ? {} : { onProgress: (progress) => onProgress(progressWords(progress)) }),
  });
  return { text, details, isError };
}

async function runCommand({ runtime, words: host, modelOf }: HostEngineDeps, session: HostSession, words: string) {
  const { sessionKey, agentId } = namesOf(session);
  const { values } = runtime.settings;
  return await answerCommand({
    runtime,
    host,
    words,
    unstored: whyNotServed(values, sessionKey),
    mayRead: serviceBySettings(values, sessionKey) !== "left",
    compactionMs: limitMsDefault,
    model: modelOf(session),
    open: async () => await runtime.open(),
    conversation: async (lcm) => await findStored(lcm, session),
    family: async (lcm) => await lcm.store.conversations({ sessionKey, agentId, includeHidden: true }),
  });
}
