/**
 * Offers our tools to the host's models: which session gets which tool, and what it may read. The host creates them for
 * every run in another copy of the plugin than the engine's, so shared state is in the runtime.
 *
 * Errors are returned, not thrown: the host shows the model only one line of a thrown error inside JSON, but a result with
 * an `error` in its details completely.
 */

import { LcmError, errorText } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Reader } from "../../core/recall/scope.ts";
import { progressWords } from "../../agent-tools/text.ts";
import { refusal, type Tool } from "../../agent-tools/define.ts";
import { createDelegate, type DelegateDeps } from "./delegate.ts";
import { createHostModel } from "./host-model.ts";
import type { HostRuntime, HostTool, SessionNames, ToolOutput } from "./host-api.ts";
import type { Logger, Runtime } from "../shared/runtime.ts";
import { agentOf, isDelegateKey, serviceOf } from "./sessions.ts";
import { findActive } from "./segments.ts";
import type { Json, JsonObject } from "../../core/base/json.ts";

export interface ToolDeps {
  /** Throws for invalid settings. */
  readonly runtime: () => Runtime;
  readonly host: () => HostRuntime;
  readonly logger?: Logger;
}

/** Null hides the tool from the session. Never throws. */
export function createTool(tool: Tool, context: SessionNames, deps: ToolDeps): HostTool | null {
  const { sessionKey } = context;
  const runtime = runtimeIn(deps);
  if (runtime === null || sessionKey === undefined || !isOffered(tool, sessionKey, runtime)) return null;
  const session = { ...context, sessionKey, agentId: context.agentId ?? agentOf(sessionKey) };
  return {
    name: tool.name,
    label: tool.label,
    description: tool.description,
    parameters: tool.parameters,
    catalogMode: "direct-only",
    async execute(_callId, args, signal, onUpdate) {
      try {
        if (isDelegateKey(sessionKey)) return await readForQuestion(tool, runtime, sessionKey, args);
        return await run(tool, { ...session, runtime, host: deps.host }, args, { signal, onUpdate });
      } catch (error) {
        runtime.note(`running ${tool.name} for ${sessionKey}`, error);
        return failed(tool.name, error);
      }
    },
  };
}

/** Logs invalid settings once per process: the host asks for every tool in every run. */
function runtimeIn({ runtime, logger }: ToolDeps): Runtime | null {
  try {
    return runtime();
  } catch (error) {
    const shared = globalThis as { [logged]?: Set<string> };
    const message = `the lcm tools are unavailable: ${errorText(error)}`;
    if (!(shared[logged] ??= new Set()).has(message)) logger?.error(message);
    shared[logged].add(message);
    return null;
  }
}

const logged = Symbol.for("lossless-claw.logged");

function isOffered({ audience, isWriting }: Tool, sessionKey: string, { settings, grants }: Runtime): boolean {
  const isGranted = grants.has(sessionKey);
  if (isDelegateKey(sessionKey)) return isGranted && audience !== "agent";
  const service = serviceOf(settings.values, sessionKey);
  if (service === "left" || (isWriting === true && service !== "served")) return false;
  return isGranted || audience !== "delegate";
}

/** Uses the question's own tools, which read under its grant and record what is read. */
async function readForQuestion({ name }: Tool, { grants }: Runtime, sessionKey: string, args: Json) {
  const issued = grants.get(sessionKey);
  const tool = issued?.tools?.find((each) => each.name === name);
  if (issued === undefined || tool === undefined) {
    const hint = "stop here; the answer is no longer needed";
    return failed(name, new LcmError("denied", "the question has ended, so nothing can be read for it", { hint }));
  }
  const { text, isError } = await tool.run(args, { grant: issued.grant });
  return toOutput(text, isError ? { error: text } : {});
}

type Session = Omit<DelegateDeps, "lcm" | "conversation"> & Pick<SessionNames, "sessionId">;

type Call = Parameters<HostTool["execute"]>;

async function run(
  tool: Tool,
  session: Session,
  args: Json,
  { signal, onUpdate }: { readonly signal: Call[2]; readonly onUpdate: Call[3] },
): Promise<ToolOutput> {
  const { runtime } = session;
  const lcm = await runtime.open();
  const reader = await readerOf(lcm, session);
  const { conversation } = reader;
  const grant = tool.audience === "delegate" ? runtime.grants.get(session.sessionKey)?.grant : undefined;
  const { text, details } = await tool.run(args, {
    lcm,
    reader,
    ...(grant === undefined ? {} : { grant }),
    ...(signal === undefined ? {} : { signal }),
    delegate: createDelegate({ ...session, lcm, conversation }),
    model: lcm.metered(
      createHostModel({ complete: async (asked) => await session.host().llm.complete(asked) }, runtime),
    ),
    onProgress: (progress) => onUpdate?.(toOutput(progressWords(progress), {})),
  });
  return toOutput(text, details);
}

/** A session that is not stored has no conversation of its own and reads as its agent. */
async function readerOf({ store, settings }: Lcm, session: Session): Promise<Reader> {
  const { agentId, sessionKey, sessionId = "" } = session;
  const isStored = serviceOf(settings, sessionKey) === "served";
  const active = isStored ? await findActive(store, { agentId, sessionKey, sessionId }) : null;
  return { conversation: active?.id ?? null, policy: settings.scopePolicy, agentId };
}

const toOutput = (text: string, details: JsonObject): ToolOutput => ({ content: [{ type: "text", text }], details });

function failed(name: string, error: unknown): ToolOutput {
  const known = error instanceof LcmError ? error : new LcmError("unavailable", errorText(error), { cause: error });
  const { text, details } = refusal(name, known);
  return toOutput(text, details);
}
