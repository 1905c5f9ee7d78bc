/** Decides by the settings how a session is served. */

import { matchesPattern } from "../../core/model/session-pattern.ts";
import type { Settings } from "../../core/model/settings.ts";

/** `served`: stored, folded, assembled. `reader`: gets the tools, but is not stored. `left`: the host's alone. */
export type Service = "served" | "reader" | "left";

export function serviceBySettings(settings: Settings, sessionKey: string): Service {
  const { enabled, ignoreSessionPatterns, statelessSessionPatterns } = settings;
  if (!enabled || matchesAny(ignoreSessionPatterns, sessionKey)) return "left";
  return matchesAny(statelessSessionPatterns, sessionKey) ? "reader" : "served";
}

/** Why the settings keep a session from being stored; null if they do not. */
export function whyNotServed(settings: Settings, sessionKey: string): string | null {
  if (!settings.enabled) return "lossless-claw is disabled (`enabled: false`).";
  switch (serviceBySettings(settings, sessionKey)) {
    case "served":
      return null;
    case "reader":
      return "It is read-only (`statelessSessionPatterns`): nothing is stored or folded.";
    case "left":
      return "It is ignored (`ignoreSessionPatterns`): nothing is stored or folded.";
  }
}

const matchesAny = (patterns: readonly string[], key: string): boolean =>
  patterns.some((pattern) => matchesPattern(pattern, key));
