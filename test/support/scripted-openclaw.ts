/**
 * OpenClaw for tests, as a context engine sees it: transcripts with cursors, generations and fence, and turns in real
 * call order. It is the oracle for what must be stored, and records everything sent to the model. Nothing in it is
 * random: the test decides what happens.
 */

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import { tokensOf } from "../../src/core/assembly/present-message.ts";
import { estimateTokens } from "../../src/core/base/tokens.ts";
import type {
  CommitCall,
  CompactCall,
  CompactResult,
  ContextEngine,
  HostConfig,
  Llm,
  ReadTranscript,
  SessionCall,
} from "../../src/hosts/openclaw/host-api.ts";
import type { HostEntry } from "./scripted-host.ts";
import { createTranscript } from "./scripted-transcript.ts";
import type { Transcript } from "./scripted-transcript.ts";
import type { JsonObject } from "../../src/core/base/json.ts";
import { isObject } from "../../src/core/base/json.ts";

export interface OpenClawOptions {
  /** A new one for every turn. */
  readonly engine: (read: ReadTranscript) => ContextEngine;
  readonly llm?: Llm;
  readonly config?: HostConfig;
  /** The model's window in tokens, including the reserve for output and the system prompt. */
  readonly window?: number;
  readonly reserve?: number;
  readonly systemTokens?: number;
  /** The provider counts the schemas of tools; the host does not. */
  readonly schemaTokens?: number;
  /** How many tokens the provider counts for a message. */
  readonly counts?: (message: HostMessage) => number;
  /** What else happens while a tool runs. */
  readonly whileTool?: () => Promise<void>;
}

export interface Turn {
  readonly says?: string;
  /** What each tool returns; each takes one more request to the model. */
  readonly tools?: readonly string[];
  /** `broken_off`: while its last tool ran, which leaves a call without a result. */
  readonly ends?: "answered" | "failed" | "broken_off";
  /** An announcement is answered, and never committed. */
  readonly kind?: "turn" | "heartbeat" | "announcement";
  /** Refused as too long this many times, whatever its length. */
  readonly overflows?: number;
  /** Served without us: the factory failed, or another version of the host ran it. */
  readonly by?: "engine" | "legacy";
}

/** One request to the model, and what led to it. */
export interface Request {
  readonly sessionKey: string;
  readonly turn: number;
  readonly assembled: readonly HostMessage[];
  /** The live turn, which the host adds. */
  readonly live: readonly HostMessage[];
  readonly addition: string | undefined;
  /** The engine's estimate for the assembled messages. */
  readonly estimatedTokens: number;
  /** The budget of the attempt's first call, and how much the turn has grown since. */
  readonly budget: number;
  readonly grown: number;
  /** As the provider counts it. */
  readonly inputTokens: number;
}

interface TurnEnd {
  readonly kind: "answered" | "failed";
  readonly commit: "committed" | "duplicate" | "queued" | null;
  readonly compactions: readonly CompactResult[];
}

export interface ScriptedOpenClaw {
  readonly requests: readonly Request[];
  /** Names of the engine's methods, in the order they were called. */
  readonly calls: readonly string[];
  turn(sessionKey: string, turn?: Turn): Promise<TurnEnd>;
  /** How many turns were committed or attempted; any of them can be committed again. */
  commits(): number;
  commitAgain(nth: number): Promise<"committed" | "duplicate">;
  /** A plugin's run, which has no transcript. */
  standalone(sessionKey: string, turn?: Turn): Promise<void>;
  /** `/compact`. */
  compact(sessionKey: string, call?: Partial<CompactCall>): Promise<CompactResult>;
  /** Only what precedes a turn. */
  bootstrap(sessionKey: string): Promise<{ readonly bootstrapped: boolean; readonly importedMessages?: number }>;
  slash(sessionKey: string, command: string): void;
  reset(sessionKey: string, reason: "new" | "reset" | "idle"): void;
  /** A line that is not a message. */
  note(sessionKey: string, type: string): void;
  /** Rewrites the transcript: the same rows, perhaps with other contents; all cursors become invalid. */
  rewrite(sessionKey: string, change?: (message: HostMessage) => HostMessage): void;
  /** Keeps the header and this many of the newest rows, as `sessions.compact` does with a number of lines. */
  trim(sessionKey: string, rows: number): void;
  /** The next turn under the key belongs to another session. */
  delete(sessionKey: string): void;
  /** What was written between resets, by segment, oldest first, for all sessions that had the key. */
  segments(sessionKey: string): readonly (readonly HostEntry[])[];
  placeOf(sessionKey: string): { readonly agentId: string; readonly sessionKey: string; readonly sessionId: string };
  readonly read: ReadTranscript;
}

interface Session extends Transcript {
  readonly id: string;
  readonly key: string;
  /** Turns that could not be committed and will be offered again. */
  readonly queued: CommitCall[];
}

const epochMs = Date.UTC(2026, 10, 15, 6, 30);
const overflowsMax = 3;

export function createOpenClaw(options: OpenClawOptions): ScriptedOpenClaw {
  const { window = 64_000, reserve = 16_000, systemTokens = 2_000, schemaTokens = 0, counts = tokensOf } = options;
  const sessions: Session[] = [];
  const kept = new Set<string>();
  const requests: Request[] = [];
  const calls: string[] = [];
  const commits: CommitCall[] = [];
  const fence = new AsyncLocalStorage<{ readonly session: Session; readonly before: number }>();
  let moments = 0;
  let turns = 0;

  const now = (): number => epochMs + 1_000 * ++moments;
  const createSession = (id: string, key: string): Session =>
    Object.assign(createTranscript(id, now), { id, key, queued: [] });
  const sessionOf = (key: string): Session => {
    const known = sessions.findLast((each) => each.key === key);
    if (known !== undefined && kept.has(known.id)) return known;
    const made = createSession(`s${sessions.length + 1}`, key);
    sessions.push(made);
    kept.add(made.id);
    return made;
  };

  const read: ReadTranscript = async (request) => {
    await Promise.resolve();
    const session = sessions.find(({ id, key }) => id === request.sessionId && key === request.sessionKey);
    if (session === undefined || !kept.has(session.id) || session.rows.length === 0) return { kind: "missing" };
    const around = fence.getStore();
    return session.page(request, around?.session === session ? around.before : Infinity);
  };

  const callOf = (session: Session): SessionCall => ({
    sessionId: session.id,
    sessionKey: session.key,
    sessionTarget: { agentId: agentOf(session.key), sessionId: session.id, sessionKey: session.key },
    runtimeSettings: { model: { provider: "scripted", resolved: "scripted-1" } },
    runtimeContext: {
      ...(options.llm === undefined ? {} : { llm: options.llm }),
      ...(options.config === undefined ? {} : { config: options.config }),
    },
  });

  const track = async <T>(name: string, call: () => Promise<T>): Promise<T> => {
    calls.push(name);
    return await call();
  };

  /** How the host treats an engine that fails: it goes on. */
  const forgiven = async <T>(call: () => Promise<T>): Promise<T | null> => await call().catch(() => null);

  async function runTurn(session: Session, turn: Turn): Promise<TurnEnd> {
    const { says = `message ${moments}`, tools = [], ends = "answered", kind = "turn" } = turn;
    const isNew = session.rows.length === 0;
    const user = session.say({ role: "user", content: says, ...(kind === "heartbeat" ? { isHeartbeat: true } : {}) });
    const before = session.rows.length - 1;
    const number = ++turns;
    const engine = options.engine(read);
    calls.push("factory");
    const isServed = turn.by !== "legacy" && (await retryQueued(session, engine));
    if (!isServed) {
      for (const [at, text] of tools.entries()) callTool(session, at, text);
      session.say(answer(`legacy answer to ${says}`, 0));
      return { kind: "answered", commit: null, compactions: [] };
    }
    const fenced = async <T>(call: () => Promise<T>): Promise<T> => await fence.run({ session, before }, call);
    const prepare = async (): Promise<void> => {
      await forgiven(async () => {
        await fenced(async () => await track("bootstrap", async () => await engine.bootstrap(callOf(session))));
        await fenced(async () => await track("maintain", async () => await engine.maintain(callOf(session))));
      });
    };
    if (!isNew) await prepare();

    const live: HostMessage[] = [user];
    const compactions: CompactResult[] = [];
    let overflows = turn.overflows ?? 0;
    const named = window - reserve - systemTokens - tokensOf(user);
    const assembleFirst = async (): Promise<Awaited<ReturnType<ContextEngine["assemble"]>>> => {
      const view = session.view(before);
      const { runtimeContext: _, ...call } = callOf(session);
      const limits = { maxOutputTokens: reserve };
      const first = { ...call, runtimeSettings: { ...call.runtimeSettings, limits }, messages: view, prompt: says };
      const given = await forgiven(
        async () =>
          await fenced(
            async () => await track("assemble", async () => await engine.assemble({ ...first, tokenBudget: named })),
          ),
      );
      return given ?? { messages: view, estimatedTokens: 0 };
    };
    let shown = await assembleFirst();
    let pendingFirst = tokensOf(user);
    for (let step = 0; step <= tools.length;) {
      const pending = live.reduce((sum, message) => sum + tokensOf(message), 0);
      const { runtimeContext: _, ...call } = callOf(session);
      const limits = { maxOutputTokens: null };
      const loop = { ...call, runtimeSettings: { ...call.runtimeSettings, limits }, messages: shown.messages };
      const given = await forgiven(
        async () => await track("loop", async () => await engine.assemble({ ...loop, tokenBudget: window - pending })),
      );
      shown = given ?? shown;
      const added = shown.systemPromptAddition === undefined ? 0 : estimateTokens(shown.systemPromptAddition);
      const wire = [...shown.messages, ...live];
      const inputTokens = systemTokens + schemaTokens + added + wire.reduce((sum, message) => sum + counts(message), 0);
      requests.push({
        sessionKey: session.key,
        turn: number,
        assembled: structuredClone(shown.messages),
        live: structuredClone(live),
        addition: shown.systemPromptAddition,
        estimatedTokens: shown.estimatedTokens,
        budget: named,
        grown: pending - pendingFirst,
        inputTokens,
      });
      if (overflows > 0 || inputTokens > window) {
        overflows -= 1;
        const refused: CompactCall = {
          ...callOf(session),
          force: true,
          compactionTarget: "budget",
          tokenBudget: window,
          currentTokenCount: Math.max(inputTokens, window + 1),
        };
        const result = await track("compact", async () => await engine.compact(refused));
        compactions.push(result);
        if (!result.compacted || compactions.length > overflowsMax) return await fail(session, engine, compactions);
        await track("maintain", async () => await engine.maintain(callOf(session)));
        await prepare();
        shown = await assembleFirst();
        pendingFirst = pending;
        continue;
      }
      if (ends === "failed" && step === tools.length) return await fail(session, engine, compactions);
      const text = tools[step];
      if (text === undefined) live.push(session.say(answer(`answer to ${says}`, inputTokens)));
      else {
        await options.whileTool?.();
        live.push(...callTool(session, step, text, ends === "broken_off" && step === tools.length - 1, inputTokens));
      }
      step += 1;
      if (ends === "broken_off" && step >= tools.length) {
        await engine.dispose();
        return { kind: "failed", commit: null, compactions };
      }
    }
    if (kind === "announcement") {
      await engine.dispose();
      return { kind: "answered", commit: null, compactions };
    }
    const commit = await commitOf(session, engine, before, number, kind === "heartbeat");
    await engine.dispose();
    return { kind: "answered", commit, compactions };
  }

  async function fail(
    session: Session,
    engine: ContextEngine,
    compactions: readonly CompactResult[],
  ): Promise<TurnEnd> {
    session.say({ role: "assistant", content: [], stopReason: "error", errorMessage: "the provider failed" });
    await engine.dispose();
    return { kind: "failed", commit: null, compactions };
  }

  function callTool(session: Session, at: number, text: string, isOpen = false, input = 0): readonly HostMessage[] {
    // Some providers restart their call ids in every turn.
    const id = `call_${at}`;
    const call = { type: "toolCall", id, name: "read", arguments: { path: `notes/${at}.md` } };
    const asked = session.say({
      role: "assistant",
      content: [{ type: "thinking", thinking: "what do the notes say?", thinkingSignature: "c2ln" }, call],
      usage: usageOf(input),
      stopReason: "toolUse",
    });
    if (isOpen) return [asked];
    if (at % 2 === 1) session.say({ role: "custom", customType: "nested", excludeFromContext: true, content: "" });
    const result = { toolCallId: id, toolName: "read", content: [{ type: "text", text }], isError: false };
    return [asked, session.say({ role: "toolResult", ...result, details: { lines: 1 } })];
  }

  const answer = (text: string, input: number): HostMessage => ({
    role: "assistant",
    content: [{ type: "text", text }],
    provider: "scripted",
    model: "scripted-1",
    usage: usageOf(input),
    stopReason: "stop",
  });

  async function commitOf(
    session: Session,
    engine: ContextEngine,
    before: number,
    number: number,
    isHeartbeat: boolean,
  ): Promise<TurnEnd["commit"]> {
    const rows = session.rows.slice(before);
    const { runtimeContext: _, ...call } = callOf(session);
    const commit: CommitCall & { readonly isHeartbeat: boolean } = {
      ...call,
      runtimeContext: { modelContextWindow: window },
      advancementKey: `turn-${number}`,
      terminal: { entryId: rows.at(-1)?.id ?? "" },
      messages: rows.flatMap(({ event }) => (isObject(event["message"]) ? [event["message"]] : [])),
      isHeartbeat,
    };
    commits.push(commit);
    try {
      const { status } = await track("commitTurn", async () => await engine.commitTurn(structuredClone(commit)));
      const { runtimeContext, ...rest } = callOf(session);
      const after = { ...rest, runtimeContext: { ...runtimeContext, allowDeferredCompactionExecution: true } };
      await forgiven(async () => await track("maintain", async () => await engine.maintain(after)));
      return status;
    } catch {
      session.queued.push(commit);
      return "queued";
    }
  }

  /** The live turn's user row is written by then, and no fence excludes it. */
  async function retryQueued(session: Session, engine: ContextEngine): Promise<boolean> {
    const [first] = session.queued;
    if (first === undefined) return true;
    const done = await forgiven(
      async () => await track("commitTurn", async () => await engine.commitTurn(structuredClone(first))),
    );
    if (done === null) return false;
    session.queued.shift();
    return await retryQueued(session, engine);
  }

  return {
    requests,
    calls,
    read,
    placeOf: (key) => ({ agentId: agentOf(key), sessionKey: key, sessionId: sessionOf(key).id }),
    turn: async (key, turn = {}) => await runTurn(sessionOf(key), turn),
    commits: () => commits.length,
    async commitAgain(nth) {
      const engine = options.engine(read);
      const again = commits[nth] ?? assert.fail("there was such a turn");
      return (await engine.commitTurn(structuredClone(again))).status;
    },
    async standalone(key, { says = `message ${moments}`, tools = [] } = {}) {
      const engine = options.engine(read);
      const session = createSession(`alone-${key}`, key);
      const { runtimeContext: _, ...call } = callOf(session);
      const limits = { maxOutputTokens: reserve };
      const first = { ...call, runtimeSettings: { limits }, messages: [], prompt: says };
      const { messages: history } = await engine.assemble({ ...first, tokenBudget: window - reserve - systemTokens });
      const live = [session.say({ role: "user", content: says })];
      const after = async (): Promise<void> =>
        await engine.afterTurn({
          ...callOf(session),
          messages: structuredClone([...history, ...live]),
          prePromptMessageCount: history.length,
        });
      await after();
      for (const [at, text] of tools.entries()) {
        live.push(...callTool(session, at, text));
        await engine.assemble({ ...call, messages: history, tokenBudget: window });
        await after();
      }
      live.push(session.say(answer(`answer to ${says}`, 0)));
      await after();
      await engine.maintain(callOf(session));
      await engine.dispose();
    },
    async compact(key, call = {}) {
      const engine = options.engine(read);
      const session = sessionOf(key);
      const asked = { ...callOf(session), force: true, compactionTarget: "threshold" as const, tokenBudget: window };
      const result = await track("compact", async () => await engine.compact({ ...asked, ...call }));
      await engine.dispose();
      return result;
    },
    async bootstrap(key) {
      const engine = options.engine(read);
      const result = await engine.bootstrap(callOf(sessionOf(key)));
      await engine.dispose();
      return result;
    },
    slash(key, command) {
      const session = sessionOf(key);
      session.say({ role: "user", content: command });
      session.say({ ...answer(`did ${command}`, 0), provider: "openclaw", model: "gateway-injected" });
    },
    reset: (key, reason) => sessionOf(key).reset(reason),
    note: (key, type) => void sessionOf(key).note({ type }),
    rewrite: (key, change) => sessionOf(key).rewrite(change),
    trim: (key, rows) => sessionOf(key).trim(rows),
    delete(key) {
      kept.delete(sessionOf(key).id);
    },
    segments: (key) => sessions.filter((each) => each.key === key).flatMap((each) => each.segments()),
  };
}

const agentOf = (key: string): string => key.split(":")[1] ?? "main";

const usageOf = (input: number): JsonObject => ({
  input: Math.floor(input / 2),
  output: 20,
  cacheRead: Math.ceil(input / 2),
});
