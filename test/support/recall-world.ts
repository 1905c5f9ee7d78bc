/**
 * Sets up recall in a host: a real store whose sessions each keep a secret, the tools of a run, and scripted
 * sub-agents.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { errorText } from "../../src/core/base/errors.ts";
import type { ConversationId, MessageId, SummaryId } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { builtInTemplates } from "../../src/core/prompts/summary.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { estimateTokens } from "../../src/core/base/tokens.ts";
import type {
  HostRuntime,
  HostTool,
  LlmRequest,
  SessionNames,
  Subagents,
  ToolOutput,
} from "../../src/hosts/openclaw/host-api.ts";
import { runtimeOf } from "../../src/hosts/shared/runtime.ts";
import type { Runtime } from "../../src/hosts/shared/runtime.ts";
import { createTool } from "../../src/hosts/openclaw/tools.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { tools } from "../../src/agent-tools/all.ts";
import { makeScratch } from "./scratch.ts";
import { createHost, toAppendable, user } from "./scripted-host.ts";
import type { Json } from "../../src/core/base/json.ts";
import { msToTimestamp, timestampToMs } from "../../src/core/base/time.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

/** A conversation with one secret: in a message, and in a leaf over it. */
export interface Place {
  readonly id: ConversationId;
  readonly context: Required<SessionNames>;
  readonly secret: string;
  readonly message: MessageId;
  readonly leaf: SummaryId;
}

type RunRequest = Parameters<Subagents["run"]>[0];

/** A running sub-agent. */
export interface ChildRun {
  readonly request: RunRequest;
  /** The tools that it was offered. */
  readonly tools: readonly HostTool[];
  /** The text that a tool call returns to it. */
  readonly call: (name: string, args: Json) => Promise<string>;
}

export interface RecallWorld {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly warnings: readonly string[];
  /** Two segments of one session of Ada's, another session of hers, and one of Bob's. */
  readonly earlier: Place;
  readonly own: Place;
  readonly sister: Place;
  readonly stranger: Place;
  /** The requests to the host, and the sessions it deleted. */
  readonly runs: readonly RunRequest[];
  readonly completions: readonly LlmRequest[];
  readonly deleted: readonly string[];
  readonly host: HostRuntime;
  readonly toolsFor: (context: SessionNames) => readonly HostTool[];
  /** Fails if the session is not offered this tool. */
  readonly call: (
    context: SessionNames,
    name: string,
    args: Json,
    onUpdate?: (update: ToolOutput) => void,
  ) => Promise<ToolOutput>;
  readonly pass: (ms: number) => void;
}

export interface RecallOptions {
  /** How long a turn waits for the store; the default if absent. */
  readonly patienceMs?: number;
  readonly config?: Readonly<Record<string, unknown>>;
  /** What a sub-agent returns, or rejects with. Without it there are no sub-agents, as without a gateway. */
  readonly child?: (run: ChildRun) => Promise<string>;
  readonly subagent?: Partial<Subagents>;
  readonly model?: (request: LlmRequest) => Promise<string>;
}

export const textOf = ({ content }: ToolOutput): string => content.map(({ text }) => text).join("\n");

const scratch = makeScratch("recall");
let databases = 0;

export async function createRecallWorld(options: RecallOptions = {}): Promise<RecallWorld> {
  let nowMs = timestampToMs("2026-02-17T09:00:00.000Z" as Timestamp);
  const now = (): Timestamp => msToTimestamp(nowMs);
  const path = join(scratch, `${++databases}`, "lcm.db");
  const warnings: string[] = [];
  const warn = (message: string): void => void warnings.push(message);
  const runtime = runtimeOf({
    path,
    settings: resolveSettings({ env: {}, config: options.config ?? {} }),
    clock: { now },
    ...(options.patienceMs === undefined ? {} : { patienceMs: options.patienceMs }),
    logger: { info: () => undefined, warn, error: warn },
    openStore: async () => await openSqlite({ path, housekeeping: false, now }),
    templates: async () => await Promise.resolve(builtInTemplates),
  });
  const { store } = await runtime.open();
  const ada = { agentId: "ada", sessionKey: "agent:ada:main", sessionId: "s1" };
  const runs: RunRequest[] = [];
  const completions: LlmRequest[] = [];
  const deleted: string[] = [];
  const host = createHostRuntime(options, { runs, completions, deleted }, (context) => world.toolsFor(context));
  const deps = { runtime: () => runtime, host: () => host };
  const world: RecallWorld = {
    runtime,
    store,
    warnings,
    earlier: await makePlace(store, "amber", ada),
    own: await makePlace(store, "basalt", ada),
    sister: await makePlace(store, "copper", { ...ada, sessionKey: "agent:ada:other", sessionId: "s2" }),
    stranger: await makePlace(store, "diamond", { agentId: "bob", sessionKey: "agent:bob:main", sessionId: "s3" }),
    runs,
    completions,
    deleted,
    host,
    toolsFor: (context) => tools.flatMap((tool) => createTool(tool, context, deps) ?? []),
    async call(context, name, args, onUpdate) {
      const tool = world.toolsFor(context).find((each) => each.name === name);
      assert(tool, `${context.sessionKey} is offered ${name}`);
      return await tool.execute("call-1", args, undefined, onUpdate);
    },
    pass(ms) {
      nowMs += ms;
    },
  };
  return world;
}

async function makePlace(store: Store, secret: string, context: Required<SessionNames>): Promise<Place> {
  const { id } = await store.openSegment(context);
  const host = createHost(secret);
  host.says(user("What is the secret of this place?"));
  host.says({ role: "assistant", content: [{ type: "text", text: `The secret is ${secret}, said the keeper.` }] });
  for (let turn = 0; turn < 4; turn++) host.says(user(`Small talk number ${turn} about the weather.`));
  const { messages } = await store.append(id, host.entries.map(toAppendable));
  const text = `They spoke of the secret: ${secret}.`;
  const folded = await store.fold(id, (await store.context(id)).slice(0, 4), {
    text,
    tokens: estimateTokens(text),
    level: "normal",
    model: null,
    previousContext: null,
    fileIds: [],
  });
  const leaf = folded.kind === "written" ? folded.summary : assert.fail("folded");
  return { id, context, secret, message: messages[1] ?? assert.fail("stored"), leaf };
}

interface Told {
  readonly runs: RunRequest[];
  readonly completions: LlmRequest[];
  readonly deleted: string[];
}

function createHostRuntime(
  { child, model, subagent }: RecallOptions,
  told: Told,
  toolsFor: RecallWorld["toolsFor"],
): HostRuntime {
  const answers = new Map<string, Promise<string>>();
  const outOfScope = (): never => {
    const error = new Error("Plugin runtime subagent methods are only available during a gateway request.");
    error.name = "RequestScopedSubagentRuntimeError";
    throw error;
  };
  return {
    llm: {
      async complete(request) {
        told.completions.push(request);
        if (model === undefined) throw new Error("no model is configured");
        return { text: await model(request), usage: { inputTokens: 70, outputTokens: 7 } };
      },
    },
    subagent: {
      async run(request) {
        if (child === undefined) outOfScope();
        told.runs.push(request);
        const { sessionKey } = request;
        const offered = toolsFor({ sessionKey, agentId: "ada", sessionId: "child" });
        const mine = offered.filter(({ name }) => request.toolsAlsoAllow?.includes(name) ?? true);
        const run: ChildRun = {
          request,
          tools: mine,
          async call(name, args) {
            const tool = mine.find((each) => each.name === name);
            return tool === undefined ? `Tool ${name} not found` : textOf(await tool.execute("call-1", args));
          },
        };
        answers.set(sessionKey, Promise.resolve(run).then(child));
        return await Promise.resolve({ runId: sessionKey });
      },
      async waitForRun({ runId, timeoutMs }) {
        // The host's own check of this call.
        if (!Number.isInteger(timeoutMs)) throw new Error("invalid agent.wait params: at /timeoutMs: must be integer");
        const answer = answers.get(runId) ?? outOfScope();
        return await answer.then(
          (text) => ({ status: "ok", terminalReply: { disposition: "visible", text } }),
          (error: unknown) => ({ status: "error", error: errorText(error) }),
        );
      },
      async getSessionMessages({ sessionKey }) {
        const text = await (answers.get(sessionKey) ?? outOfScope());
        const usage = { input: 300, cacheRead: 20, cacheWrite: 1, output: 30 };
        const step = { role: "assistant", content: [{ type: "text", text: "Let me look." }], usage };
        return { messages: [{ role: "user", content: "…" }, step, { ...step, content: [{ type: "text", text }] }] };
      },
      async deleteSession({ sessionKey }) {
        told.deleted.push(sessionKey);
        await Promise.resolve();
      },
      ...subagent,
    },
  };
}
