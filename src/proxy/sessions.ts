/** The sessions that the proxy serves, by the host's id, or found by what they say. */

import { randomUUID } from "node:crypto";
import type { Lcm } from "../core/lcm.ts";
import { hostSession } from "../hosts/shared/sessions.ts";
import { findSession, mostQuoted, quotable } from "./find-session.ts";
import type { Identity } from "./identity.ts";
import { answersFrom, textsIn } from "./path.ts";
import { jsonOf, type Request } from "./request.ts";
import { openSession, refresh, type ServedSession } from "./session.ts";

export interface Sessions {
  /**
   * The session of a request, read up to what is stored now; null if it has no id and asks for something of the host's own
   * about no known session. `run`: the program that it comes from.
   */
  find(lcm: Lcm, who: Identity, request: Request, run: string): Promise<ServedSession | null>;
  /** The same without beginning one; null if it is not stored, or has no id. */
  known(lcm: Lcm, who: Identity): Promise<ServedSession | null>;
}

type Named = Pick<Identity, "host" | "parentSessionId"> & { readonly sessionId: string };

const sessionsKept = 200;
/** Of all sessions together; each takes about 200 bytes. */
const rowsKept = 2_000_000;
/** Of sessions that were stored before the proxy was started, so many are looked through. */
const recentMax = 20;
const recentMessagesMax = 20_000;

/** `folder`: where the programs work; null if unknown. */
export function createSessions(folder: string | null): Sessions {
  const sessions = new Map<string, ServedSession>();
  const searched = new Set<string>();

  async function open(lcm: Lcm, { host, sessionId, parentSessionId }: Named): Promise<ServedSession> {
    const key = `${host}:${sessionId}`;
    const known = sessions.get(key);
    const session = known ?? (await openSession(lcm, hostSession({ host, sessionId, parentSessionId, folder })));
    if (known !== undefined) await refresh(lcm, known);
    sessions.delete(key);
    sessions.set(key, session);
    let [kept, rows] = [0, 0];
    for (const [each, { path }] of [...sessions].toReversed()) {
      [kept, rows] = [kept + 1, rows + path.rows.length];
      if (each !== key && (kept > sessionsKept || rows > rowsKept)) sessions.delete(each);
    }
    return session;
  }

  async function readRecent(lcm: Lcm, host: string): Promise<void> {
    if (searched.has(host)) return;
    searched.add(host);
    for (const { sessionId, totals } of await lcm.store.conversations({
      agentId: host,
      active: true,
      limit: recentMax,
    }))
      if (totals.messages <= recentMessagesMax) await open(lcm, { host, sessionId, parentSessionId: null });
  }

  return {
    async known(lcm, { host, sessionId, parentSessionId }) {
      if (sessionId === null) return null;
      const stored = await lcm.store.conversations({ agentId: host, sessionId, active: true, limit: 1 });
      return stored.length === 0 ? null : await open(lcm, { host, sessionId, parentSessionId });
    },
    async find(lcm, who, request, run) {
      const { host, sessionId, parentSessionId } = who;
      if (sessionId !== null) return await open(lcm, { host, sessionId, parentSessionId });
      await readRecent(lcm, host);
      const mine = [...sessions.values()].filter(
        (session) => session.identity.agentId === host && (session.run === null || session.run === run),
      );
      const found = findSession(mine, request.units.pieces) ?? (await findQuoted(lcm, mine, who, request));
      if (found === null && who.kind !== "turn") return null;
      const session = await open(lcm, { host, sessionId: found?.sessionId ?? randomUUID(), parentSessionId });
      session.run ??= run;
      return session;
    },
  };
}

/** Quotes are looked for in the first messages of a request. */
const quotingMax = 3;
/** So many sessions, the last ones, are looked through for what a request for a summary quotes, and so many rows of each. */
const quotedSessionsMax = 10;
const quotedRowsMax = 200;

/** The session that the request is about although it does not show its messages. */
async function findQuoted(
  lcm: Lcm,
  candidates: readonly ServedSession[],
  { kind }: Identity,
  request: Request,
): Promise<ServedSession | null> {
  const isKnown = candidates.some(({ hostsTexts }) => hostsTexts.length > 0);
  if (kind === "turn" && !isKnown) return null;
  const words = firstWords(request);
  const summed = mostQuoted(words, new Map(candidates.map((session) => [session, session.hostsTexts])));
  if (summed !== null || kind === "turn") return summed;
  const answers = new Map<ServedSession, readonly string[]>();
  for (const session of candidates.slice(-quotedSessionsMax)) {
    const written = await answersFrom(lcm.store, session.conversation.id, session.path, quotedRowsMax);
    answers.set(
      session,
      written.flatMap((text) => quotable(text) ?? []),
    );
  }
  return mostQuoted(words, answers);
}

function firstWords(request: Request): string {
  const { wire, scanned } = request;
  const texts: string[] = [];
  for (let at = 0, read = 0; at < scanned.count && read < quotingMax; at++) {
    const element = jsonOf(request, at);
    if (wire.isPinned(element)) continue;
    read++;
    texts.push(...textsIn(wire.toMessage(element)));
  }
  return texts.join("\n");
}
