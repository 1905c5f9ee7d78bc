/**
 * Our tools as the host offers them to a model: which session gets which, and for whom each one reads. The host makes
 * them anew for every run, in a copy of the plugin that is not the engine's, so whatever they share is the runtime's.
 *
 * A refusal is returned and not thrown: of what is thrown the host shows the model one line inside of JSON, and what is
 * returned with an `error` in its details it takes for a failure too, and shows as it is.
 */

import { LcmError, errorText } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Reader } from "../../core/recall/scope.ts";
import { progressWords } from "../../agent-tools/text.ts";
import { refusal } from "../../agent-tools/define.ts";
import type { Tool } from "../../agent-tools/define.ts";
import { createDelegate } from "./delegate.ts";
import type { HostRuntime, HostTool, Logger, SessionNames, ToolOutput } from "./host-api.ts";
import type { Runtime } from "./runtime.ts";
import { agentOf, isDelegateKey, serviceOf } from "./sessions.ts";
import { findActive } from "./read-transcript.ts";
import type { Json, JsonObject } from "../../core/base/json.ts";

export interface ToolDeps {
  /** Throws for settings that are wrong. */
  readonly runtime: () => Runtime;
  readonly host: () => HostRuntime;
  readonly logger?: Logger;
}

/** Null hides it from the session. Never throws. */
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
        runtime.note(`${tool.name} was at work for ${sessionKey}`, error);
        return failed(tool.name, error);
      }
    },
  };
}

/** Said once in a process: the host asks for every tool in every run, and settings stay wrong until somebody mends them. */
function runtimeIn({ runtime, logger }: ToolDeps): Runtime | null {
  try {
    return runtime();
  } catch (error) {
    const shared = globalThis as { [told]?: Set<string> };
    const words = `the tools are hidden: ${errorText(error)}`;
    if (!(shared[told] ??= new Set()).has(words)) logger?.error(words);
    shared[told].add(words);
    return null;
  }
}

const told = Symbol.for("lossless-claw.told");

function isOffered({ audience }: Tool, sessionKey: string, { settings, grants }: Runtime): boolean {
  const isGranted = grants.has(sessionKey);
  if (isDelegateKey(sessionKey)) return isGranted && audience !== "agent";
  if (serviceOf(settings.values, sessionKey) === "left") return false;
  return isGranted || audience !== "delegate";
}

/** Through the question's own tools: they read under its grant, and note what is read. */
async function readForQuestion({ name }: Tool, { grants }: Runtime, sessionKey: string, args: Json) {
  const held = grants.get(sessionKey);
  const tool = held?.tools?.find((each) => each.name === name);
  if (held === undefined || tool === undefined) {
    const hint = "end here: nobody waits for an answer any more";
    return failed(name, new LcmError("denied", "the question is over, and nothing is read for it", { hint }));
  }
  const { text, isError } = await tool.run(args, { grant: held.grant });
  return toOutput(text, isError ? { error: text } : {});
}

interface Session {
  readonly sessionKey: string;
  readonly sessionId?: string;
  readonly agentId: string;
  readonly runtime: Runtime;
  readonly host: () => HostRuntime;
}

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
    onProgress: (progress) => onUpdate?.(toOutput(progressWords(progress), {})),
  });
  return toOutput(text, details);
}

/** The session's own conversation is where it begins to read; one of which nothing is stored is only its agent's. */
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
