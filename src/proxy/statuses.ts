/** What happened in each session since the proxy was started: numbers and reasons, never content or headers. */

import type { ProxySession } from "../core/model/proxy-report.ts";
import type { Clock } from "../core/model/store.ts";
import type { Usage } from "./wires/wire.ts";

export interface SentRequest extends Pick<ProxySession, "bytesAsked" | "bytesSent" | "bytesKept" | "whyUnchanged"> {
  /** Whether a person's new words are at its end. */
  readonly isPrompt: boolean;
}

export interface StatusEntry {
  read(): ProxySession;
  countRequest(request: SentRequest): void;
  countRefusal(): void;
  /** Of a request with so many bytes as it came, and as it was sent. */
  countUsage(usage: Usage, bytesAsked: number, bytesSent: number): void;
}

const statusesKept = 200;

/** `changed` is called after each change. */
export function createStatuses(clock: Clock, changed: () => void) {
  const entries = new Map<string, StatusEntry>();
  return {
    of(this: void, host: string, session: string): StatusEntry {
      const key = `${host}:${session}`;
      const entry = entries.get(key) ?? createEntry(clock, changed, { host, session });
      entries.delete(key);
      entries.set(key, entry);
      for (const oldest of entries.keys()) if (entries.size > statusesKept) entries.delete(oldest);
      return entry;
    },
    /** How often our prompt was refused in a session. */
    refused: (host: string, session: string): number => entries.get(`${host}:${session}`)?.read().refused ?? 0,
    all: (): readonly ProxySession[] => [...entries.values()].map((entry) => entry.read()),
  };
}

function createEntry(
  clock: Clock,
  changed: () => void,
  { host, session }: Pick<ProxySession, "host" | "session">,
): StatusEntry {
  const counts = { turns: 0, requests: 0, replaced: 0, refused: 0, bytesAsked: 0, bytesSent: 0, bytesKept: 0 };
  const tokens = { tokensInput: 0, tokensCached: 0, tokensSaved: 0 };
  let about = { whyUnchanged: "", lastAt: clock.now() };
  return {
    read: () => ({ host, session, ...counts, ...tokens, ...about }),
    countRequest({ bytesAsked, bytesSent, bytesKept, whyUnchanged, isPrompt }) {
      counts.turns += isPrompt ? 1 : 0;
      counts.requests += 1;
      counts.replaced += whyUnchanged === "" ? 1 : 0;
      counts.bytesAsked += bytesAsked;
      counts.bytesSent += bytesSent;
      counts.bytesKept += bytesKept;
      about = { whyUnchanged, lastAt: clock.now() };
      changed();
    },
    countRefusal() {
      counts.refused += 1;
      changed();
    },
    countUsage({ input, cached }, bytesAsked, bytesSent) {
      tokens.tokensInput += input;
      tokens.tokensCached += cached;
      tokens.tokensSaved += Math.round(input * (bytesAsked / bytesSent - 1));
      changed();
    },
  };
}
