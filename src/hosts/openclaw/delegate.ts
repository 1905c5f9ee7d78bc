/**
 * Questions, answered by a sub-agent of the host: a session of its own that may use lcm_expand and lcm_describe under
 * the question's grant, is not stored, and is deleted when it has answered. Where the host has no sub-agents to give,
 * its model is asked instead; what fails beyond that is an answer of excerpts, which the core makes.
 *
 * A question is one model call in the books, whatever the sub-agent does for it, so that ceiling and breaker hold.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { beforeDeadline } from "../../core/base/deadline.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { ConversationId } from "../../core/model/types.ts";
import type { Completion, CompletionRequest } from "../../core/model/store.ts";
import type { Delegate, Task } from "../../core/recall/ask-types.ts";
import type { HostRuntime, Subagents } from "./host-api.ts";
import { createHostModel } from "./host-model.ts";
import type { Runtime } from "./runtime.ts";
import { delegateKey } from "./sessions.ts";
import type { Json } from "../../core/base/json.ts";
import { isObject } from "../../core/base/json.ts";
import { timestampToMs } from "../../core/base/time.ts";
import { lastDelegatePrompt } from "../../core/prompts/delegate.ts";

export interface DelegateDeps {
  readonly runtime: Runtime;
  readonly lcm: Lcm;
  readonly host: () => HostRuntime;
  /** Who asks. */
  readonly agentId: string;
  readonly sessionKey: string;
  readonly conversation: ConversationId | null;
}

/** Of our tools a child gets exactly these: it can ask no questions in its turn. */
const delegateTools: readonly string[] = ["lcm_expand", "lcm_describe"];

/** So much of a question's time it waits for another one of its session; the rest would hardly do for an answer. */
const waitingShare = 0.8;

/** For one question, whose time begins now. */
export function createDelegate(deps: DelegateDeps): Delegate {
  const { runtime, lcm, sessionKey, conversation } = deps;
  const wholeMs = lcm.settings.expandTimeoutSeconds * 1_000;
  const begunMs = timestampToMs(lcm.clock.now());
  const leftMs = (share = 1): number => Math.max(1, begunMs + share * wholeMs - timestampToMs(lcm.clock.now()));
  return async (task) => {
    const model = lcm.metered({
      provider: "openclaw",
      name: "sub-agent",
      complete: async (request) => await askHost(deps, task, request, leftMs),
    });
    const { system, prompt, maxTokens: maxOutputTokens, signal } = task;
    const question = { purpose: "expand", conversation, system, prompt, temperature: 0.2, maxOutputTokens } as const;
    const completion = await inTurn(runtime, `questions of ${sessionKey}`, leftMs(waitingShare), async () =>
      model.complete({ ...question, ...(signal && { signal }) }),
    );
    if (completion === null)
      return { kind: "failed", reason: "another question of this session was still being answered" };
    if (completion.kind === "text")
      return { kind: "answered", text: completion.text, isCut: completion.finish === "length" };
    return { kind: "failed", reason: `OpenClaw did not answer (${completion.refusal}): ${completion.message}` };
  };
}

/** Null if its turn has not come after so long; then it does not come at all. */
async function inTurn<T>(
  runtime: Runtime,
  queue: string,
  timeoutMs: number,
  work: () => Promise<T>,
): Promise<T | null> {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), timeoutMs);
  const mine = runtime.inOrder(queue, async () => {
    clearTimeout(timer);
    return patience.signal.aborted ? null : await work();
  });
  return await beforeDeadline(patience.signal, mine, null);
}

async function askHost(
  deps: DelegateDeps,
  task: Task,
  request: CompletionRequest,
  leftMs: () => number,
): Promise<Completion> {
  const { runtime, host, agentId } = deps;
  const child = delegateKey(agentId, randomUUID());
  runtime.grants.set(child, { grant: task.grant, tools: task.tools });
  const runId = await begin(deps, child, request);
  if (runId === null) {
    runtime.grants.delete(child);
    const model = createHostModel(host().llm, runtime);
    // It has no tools, so it must not be told to use them.
    return await model.complete({ ...request, prompt: lastDelegatePrompt(request.prompt, []) });
  }
  const { subagent } = host();
  let isOver = false;
  try {
    const ended = await beforeDeadline(request.signal, subagent.waitForRun({ runId, timeoutMs: leftMs() }), null);
    isOver = ended?.status === "ok" || ended?.status === "error";
    return await answerOf(subagent, child, ended);
  } finally {
    runtime.grants.delete(child);
    void detached(remove, runtime, subagent, { child, runId, isOver });
  }
}

/** The run of a child session; null where there is no gateway to make one. */
async function begin(
  { runtime, host }: DelegateDeps,
  child: string,
  { system, prompt }: CompletionRequest,
): Promise<string | null> {
  try {
    const { runId } = await host().subagent.run({
      sessionKey: child,
      message: prompt,
      extraSystemPrompt: system,
      promptMode: "minimal",
      lightContext: true,
      deliver: false,
      toolsAlsoAllow: delegateTools,
      idempotencyKey: child,
    });
    return runId;
  } catch (error) {
    const isExpected = error instanceof Error && error.name === "RequestScopedSubagentRuntimeError";
    if (!isExpected) runtime.note("a sub-agent was asked", error);
    return null;
  }
}

type Ended = Awaited<ReturnType<Subagents["waitForRun"]>>;

async function answerOf(subagent: Subagents, child: string, ended: Ended | null): Promise<Completion> {
  if (ended === null || ended.status === "timeout" || ended.status === "pending")
    return { kind: "refused", refusal: "timeout", message: "the sub-agent was still at work" };
  if (ended.status === "error")
    return { kind: "refused", refusal: "unreachable", message: ended.error ?? "the sub-agent failed" };
  // Without them an answer stands all the same; only what it took is not known.
  const { messages } = await subagent
    .getSessionMessages({ sessionKey: child, limit: messagesMax })
    .catch((): { readonly messages: readonly Json[] } => ({ messages: [] }));
  const said = messages.filter(isObject).filter(({ role }) => role === "assistant");
  const used = said.map(({ usage = {} }) => (isObject(usage) ? usage : {}));
  const sum = (...fields: readonly string[]): number =>
    used.reduce((total, usage) => total + fields.reduce((all, field) => all + numberIn(usage[field]), 0), 0);
  return {
    kind: "text",
    text: ended.terminalReply?.text ?? textOf(said.at(-1)?.["content"]),
    finish: said.at(-1)?.["stopReason"] === "length" ? "length" : "stop",
    inputTokens: sum("input", "cacheRead", "cacheWrite"),
    outputTokens: sum("output"),
  };
}

const messagesMax = 200;

const numberIn = (value: Json | undefined): number => (typeof value === "number" ? value : 0);

/** The text of a message as the host writes one. */
export function textOf(content: Json | undefined): string {
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content.filter(isObject) : [];
  return parts.flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : [])).join("\n");
}

/** What a tool call may do, the host allows as long as the call's turn goes on; this outlives it. */
const detached = AsyncLocalStorage.snapshot();

const removalsMax = 3;
const pauseMs = 500;
const endMs = 60_000;

/** Nobody waits for it: it takes seconds. It ends a run that goes on, which may write once more before it has ended. */
async function remove(
  runtime: Runtime,
  subagent: Subagents,
  { child, runId, isOver }: { readonly child: string; readonly runId: string; readonly isOver: boolean },
): Promise<void> {
  for (let removals = 1, isLast = isOver; ; removals++) {
    try {
      await subagent.deleteSession({ sessionKey: child, deleteTranscript: true });
      if (isLast) return;
      isLast = true;
    } catch (error) {
      if (removals >= removalsMax)
        return runtime.note(`the session ${child} was deleted, which had answered a question`, error);
    }
    await Promise.allSettled([subagent.waitForRun({ runId, timeoutMs: endMs }), pause(pauseMs, null, { ref: false })]);
  }
}
