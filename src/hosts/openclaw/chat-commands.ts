/** Answers `/lcm` in a chat of OpenClaw: whose session it is, and what only this host knows. */

import { errorText } from "../../core/base/errors.ts";
import { msToTimestamp, type Timestamp } from "../../core/base/time.ts";
import { answerCommand, code, type HostWords } from "../shared/chat-commands.ts";
import type { Runtime } from "../shared/runtime.ts";
import type { CommandContext, ReadTranscript } from "./host-api.ts";
import { createHostModel } from "./host-model.ts";
import { drainToReset } from "./read-transcript.ts";
import { familyOf, findActive } from "./segments.ts";
import type { Service } from "../shared/service.ts";
import { agentOf, compactionSecondsOf, isIncognito, serviceOf } from "./sessions.ts";

const engineId = "lossless-claw";

const host: HostWords = {
  name: "OpenClaw",
  shell: "openclaw lcm",
  ownCompaction: "`/compact` uses OpenClaw's own compaction",
  alias: "/lossless",
};

/** Never throws. */
export async function runCommand(
  runtime: Runtime,
  read: ReadTranscript,
  call: CommandContext,
): Promise<{ readonly text: string }> {
  const { sessionKey = "", sessionId = "" } = call;
  const service = serviceOf(runtime.settings.values, call.sessionKey);
  const place = { agentId: call.agentId ?? agentOf(sessionKey), sessionKey, sessionId };
  const llm = call.runtimeContext?.llm;
  const text = await answerCommand({
    runtime,
    host,
    words: call.args ?? "",
    unstored: whyUnstored(runtime, call, service),
    mayRead: service !== "left",
    zone: call.config?.agents?.defaults?.userTimezone,
    compactionMs: compactionSecondsOf(call.config) * 1_000,
    model: llm === undefined ? null : createHostModel(llm, runtime),
    async open() {
      const lcm = await runtime.open();
      const doing = `catching up ${sessionKey} for a command`;
      // Stores a reset that is only in the transcript so far. If that fails, the next turn does it.
      if (service === "served" && sessionId !== "")
        await runtime.attempt(sessionKey, doing, async () => await drainToReset(lcm, read, place));
      return lcm;
    },
    conversation: async ({ store }) => await findActive(store, place),
    family: async ({ store }) => await familyOf(store, place),
    concerns: (clock) => concernsOf(call, clock),
  });
  return { text };
}

/** Why nothing of a session is stored; null if it is stored. */
function whyUnstored(runtime: Runtime, call: CommandContext, service: Service): string | null {
  const { values, sources } = runtime.settings;
  if (service === "served") return null;
  if (!values.enabled) return `The plugin is disabled (\`enabled: false\`, ${sources.enabled}).`;
  if (call.sessionKey === undefined) return "This chat has no session, so nothing is stored.";
  if (isIncognito(call.sessionKey)) return "It is incognito: nothing is stored or folded.";
  return service === "reader"
    ? "It is read-only (`statelessSessionPatterns`): nothing is stored or folded."
    : "It is ignored (`ignoreSessionPatterns`): nothing is stored or folded.";
}

function concernsOf({ config }: CommandContext, clock: (at: Timestamp) => string): readonly string[] {
  const slot = config?.plugins?.slots?.contextEngine ?? engineId;
  const quarantine = findQuarantine();
  return [
    slot !== engineId &&
      `OpenClaw's context engine is ${code(slot)}, so nothing new is stored; see \`plugins.slots.contextEngine\``,
    quarantine !== null &&
      `OpenClaw has disabled this engine: ${quarantine.why} (${clock(quarantine.at)}). Until OpenClaw restarts, ` +
        "`/compact` uses its own compaction; `/lcm compact` uses ours",
  ].filter((concern) => concern !== false);
}

/** The host's record of an engine that threw where it must not. Other versions of the host have none. */
function findQuarantine(): { readonly at: Timestamp; readonly why: string } | null {
  const registry: unknown = Reflect.get(globalThis, Symbol.for("openclaw.contextEngineRegistryState"));
  const engines = isObject(registry) ? registry["quarantinedEngines"] : null;
  const entry: unknown = engines instanceof Map ? engines.get(engineId) : null;
  if (!isObject(entry)) return null;
  const { failedAt, operation, reason } = entry;
  const at = msToTimestamp(failedAt instanceof Date ? failedAt.getTime() : 0);
  return { at, why: `${code(errorText(operation))} failed with "${errorText(reason)}"` };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
