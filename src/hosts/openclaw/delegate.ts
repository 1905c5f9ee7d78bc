/**
 * Answers questions with a sub-agent of the host. Its session reads and searches under the question's grant,
 * is not stored, and is deleted afterwards. Without sub-agents the host's model answers; if that fails, the core answers
 * with excerpts. A question counts as one model call, whatever the sub-agent does.
 */

import { textOf } from "../shared/message-fields.ts";
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
import type { Runtime } from "../shared/runtime.ts";
import { delegateKey } from "./sessions.ts";
import { isObject, type Json } from "../../core/base/json.ts";
import { lastDelegatePrompt } from "../../core/prompts/delegate.ts";

export interface DelegateDeps {
  readonly runtime: Runtime;
  readonly lcm: Lcm;
  readonly host: () => HostRuntime;
  /** The agent that asks. */
  readonly agentId: string;
  readonly sessionKey: string;
  readonly conversation: ConversationId | null;
}

/** The only tools of ours that a child gets, so it cannot ask questions itself. */
const delegateTools: readonly string[] = ["lcm_expand", "lcm_describe", "lcm_grep"];

/** The share of its time that a question waits for an earlier one of its session. */
const waitingShare = 0.8;

/** For one question; its time starts now. */
export function createDelegate(deps: DelegateDeps): Delegate {
  const { runtime, lcm, sessionKey, conversation } = deps;
  const wholeMs = lcm.settings.expandTimeoutSeconds * 1_000;
  const begunMs = performance.now();
  const leftMs = (share = 1): number => Math.max(1, Math.ceil(begunMs + share * wholeMs - performance.now()));
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
      return { kind: "failed", reason: "another question from this session is still being answered" };
    if (completion.kind === "text")
      return { kind: "answered", text: completion.text, isCut: completion.finish === "length" };
    return { kind: "failed", reason: `OpenClaw did not answer (${completion.refusal}): ${completion.message}` };
  };
}

/** Null if its turn has not come in time; then the work is not started. */
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
    // It has no tools, so the prompt must not mention them.
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

/** Starts the run of a child session; null if there is no gateway to start it. */
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
    if (!isExpected) runtime.note("starting a sub-agent", error);
    return null;
  }
}

type Ended = Awaited<ReturnType<Subagents["waitForRun"]>>;

async function answerOf(subagent: Subagents, child: string, ended: Ended | null): Promise<Completion> {
  if (ended === null || ended.status === "timeout" || ended.status === "pending")
    return { kind: "refused", refusal: "timeout", message: "the sub-agent is still working" };
  if (ended.status === "error")
    return { kind: "refused", refusal: "unreachable", message: ended.error ?? "the sub-agent failed" };
  // Without the messages only the token counts are missing.
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

/** The host revokes a tool call's permissions when its turn ends; deleting the child takes longer. */
const detached = AsyncLocalStorage.snapshot();

const removalsMax = 3;
const pauseMs = 500;
const endMs = 60_000;

/** Takes seconds, so no caller waits. Deleting ends a running child, which may write once more, so it is deleted twice. */
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
      if (removals >= removalsMax) return runtime.note(`deleting ${child}, which answered a question`, error);
    }
    await Promise.allSettled([subagent.waitForRun({ runId, timeoutMs: endMs }), pause(pauseMs, null, { ref: false })]);
  }
}
