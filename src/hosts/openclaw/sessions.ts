/** Decides which sessions are served, by their keys: fully, only with recall tools, or not at all. */

import { agentInKey, matchesPattern } from "../../core/model/session-pattern.ts";
import type { Settings } from "../../core/model/settings.ts";
import type { HostConfig, SessionCall, TranscriptPlace } from "./host-api.ts";

/** `served`: stored, folded, assembled. `reader`: gets the tools, but is not stored. `left`: the host's alone. */
export type Service = "served" | "reader" | "left";

export function serviceOf(settings: Settings, sessionKey: string | undefined): Service {
  // Without a key a session cannot be found again; a child that answers a question is not kept.
  if (!settings.enabled || sessionKey === undefined || isDelegateKey(sessionKey)) return "left";
  if (matchesAny(settings.ignoreSessionPatterns, sessionKey)) return "left";
  if (isIncognito(sessionKey)) return "reader";
  return matchesAny(settings.statelessSessionPatterns, sessionKey) ? "reader" : "served";
}

/** By the host's own rule. It keeps such sessions in memory, so nothing of them may reach a disk. */
export const isIncognito = (sessionKey: string): boolean =>
  /^agent:[^:]+:(?:dashboard|subagent|internal-session-effects):incognito-[^:]+$/iu.test(sessionKey);

const delegateName = "lcm-question-";

/** The key of a child session that answers a question of this agent. */
export const delegateKey = (agentId: string, name: string): string =>
  `agent:${agentId}:subagent:${delegateName}${name}`;

export const isDelegateKey = (sessionKey: string): boolean => sessionKey.includes(`:subagent:${delegateName}`);

const matchesAny = (patterns: readonly string[], key: string): boolean =>
  patterns.some((pattern) => matchesPattern(pattern, key));

/** The host's time limit for a compaction. */
export const compactionSecondsOf = (config: HostConfig | undefined): number =>
  config?.agents?.defaults?.compaction?.timeoutSeconds ?? 180;

export function placeOf({ sessionId, sessionKey, sessionTarget }: SessionCall): TranscriptPlace {
  const key = sessionTarget?.sessionKey ?? sessionKey ?? "";
  return {
    agentId: sessionTarget?.agentId ?? agentOf(key),
    sessionKey: key,
    sessionId: sessionTarget?.sessionId ?? sessionId,
  };
}

export const agentOf = (sessionKey: string): string => agentInKey(sessionKey) ?? "main";
