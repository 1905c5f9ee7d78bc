/**
 * Which sessions are served, and how far: wholly, only to read, or not at all. A session is told by its key, which stays
 * when it is reset; its agent is part of the key.
 */

import { matchesPattern } from "../../core/model/session-pattern.ts";
import type { Settings } from "../../core/model/settings.ts";
import type { HostConfig, SessionCall, TranscriptPlace } from "./host-api.ts";

/** `served`: stored, folded, assembled. `reader`: has the tools, nothing of it is stored. `left`: the host's alone. */
export type Service = "served" | "reader" | "left";

export function serviceOf(settings: Settings, sessionKey: string | undefined): Service {
  // What has no key cannot be found again; a child that answers a question is read from and not kept.
  if (!settings.enabled || sessionKey === undefined || isDelegateKey(sessionKey)) return "left";
  if (matchesAny(settings.ignoreSessionPatterns, sessionKey)) return "left";
  if (isIncognito(sessionKey)) return "reader";
  return matchesAny(settings.statelessSessionPatterns, sessionKey) ? "reader" : "served";
}

/** As the host tells them: it keeps such a session in memory alone, so that nothing of it is ever on a disk. */
export const isIncognito = (sessionKey: string): boolean =>
  /^agent:[^:]+:(?:dashboard|subagent|internal-session-effects):incognito-[^:]+$/iu.test(sessionKey);

const delegateName = "lcm-question-";

/** The key of a child session that answers a question of this agent's. */
export const delegateKey = (agentId: string, name: string): string =>
  `agent:${agentId}:subagent:${delegateName}${name}`;

export const isDelegateKey = (sessionKey: string): boolean => sessionKey.includes(`:subagent:${delegateName}`);

const matchesAny = (patterns: readonly string[], key: string): boolean =>
  patterns.some((pattern) => matchesPattern(pattern, key));

/** How long the host gives a compaction. */
export const compactionSecondsOf = (config: HostConfig | undefined): number =>
  config?.agents?.defaults?.compaction?.timeoutSeconds ?? 180;

/** Where the host keeps the transcript of the session that a call is about. */
export function placeOf({ sessionId, sessionKey, sessionTarget }: SessionCall): TranscriptPlace {
  const key = sessionTarget?.sessionKey ?? sessionKey ?? "";
  return {
    agentId: sessionTarget?.agentId ?? agentOf(key),
    sessionKey: key,
    sessionId: sessionTarget?.sessionId ?? sessionId,
  };
}

export const agentOf = (sessionKey: string): string => /^agent:([^:]+)/.exec(sessionKey)?.[1] ?? "main";
