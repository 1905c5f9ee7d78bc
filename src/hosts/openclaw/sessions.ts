/** Decides which sessions are served, by their keys: fully, only with recall tools, or not at all. */

import { agentInKey } from "../../core/model/session-pattern.ts";
import type { Settings } from "../../core/model/settings.ts";
import { serviceBySettings, type Service } from "../shared/service.ts";
import type { HostConfig, SessionCall, TranscriptPlace } from "./host-api.ts";

export function serviceOf(settings: Settings, sessionKey: string | undefined): Service {
  // Without a key a session cannot be found again; a child that answers a question is not kept.
  if (sessionKey === undefined || isDelegateKey(sessionKey)) return "left";
  const service = serviceBySettings(settings, sessionKey);
  return service === "served" && isIncognito(sessionKey) ? "reader" : service;
}

/** By the host's own rule. It keeps such sessions in memory, so nothing of them may reach a disk. */
export const isIncognito = (sessionKey: string): boolean =>
  /^agent:[^:]+:(?:dashboard|subagent|internal-session-effects):incognito-[^:]+$/iu.test(sessionKey);

const delegateName = "lcm-question-";

/** The key of a child session that answers a question of this agent. */
export const delegateKey = (agentId: string, name: string): string =>
  `agent:${agentId}:subagent:${delegateName}${name}`;

export const isDelegateKey = (sessionKey: string): boolean => sessionKey.includes(`:subagent:${delegateName}`);

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
