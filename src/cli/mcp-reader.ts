/**
 * Finds out for whom `lcm mcp` reads: the session that its client is in, and the project. What a client sends is data:
 * it can name a session, but not widen what the policy allows.
 */

import { parse, resolve } from "node:path";
import type { Lcm } from "../core/lcm.ts";
import type { Conversation } from "../core/model/types.ts";
import type { Reader } from "../core/recall/scope.ts";
import { oneLine } from "../format/safe-text.ts";
import { readSessionNote } from "../hosts/shared/session-note.ts";

/** Where a server was started, and by which agent. */
export interface Surroundings {
  readonly folder: string;
  readonly home: string;
  /** The session in which Claude Code started it. */
  readonly claudeSession: string | null;
  /** The folder where our hook for Claude Code notes which session is current since then. */
  readonly pluginData: string | null;
  /** The process of the host. */
  readonly parentPid: number;
}

/** What the operator chose. */
export interface ReaderChoice {
  readonly conversation?: string | undefined;
  readonly folder?: string | undefined;
  readonly policy: Reader["policy"];
}

/** A session by the names its host gave it, the likeliest first. */
interface HostSession {
  readonly agentId: string;
  readonly sessionIds: readonly string[];
}

export interface ReaderWithNote {
  readonly reader: Reader;
  readonly note?: string;
}

/** `meta` is what the client sent with a call. */
export async function readerFor(
  lcm: Lcm,
  choice: ReaderChoice,
  surroundings: Surroundings,
  meta: unknown,
): Promise<ReaderWithNote> {
  const { policy } = choice;
  const started = startedIn(surroundings);
  const session = started ?? (policy === "all" ? namedIn(meta) : null);
  const own = choice.conversation === undefined ? await findOwn(lcm, session) : await lcm.find(choice.conversation);
  const agent = policy === "all" || session === null ? {} : { agentId: session.agentId };
  const reader = { conversation: own?.id ?? null, policy, ...agent };
  if (choice.folder !== undefined) return { reader: { ...reader, folder: resolve(choice.folder) } };
  if (choice.conversation !== undefined) return { reader };
  const folder = own?.folder ?? projectIn(surroundings);
  if (folder === null) return { reader };
  const [stored] = await lcm.store.conversations({ folder, limit: 1 });
  if (stored !== undefined || policy !== "all" || started !== null) return { reader: { ...reader, folder } };
  // A client whose sessions nobody stores would never find anything, and not know why.
  return { reader, note: `No stored conversation belongs to the folder ${oneLine(folder)}: all of them are read.` };
}

/** Whether the session is known without asking the client. */
export const isStartedInSession = (surroundings: Surroundings): boolean => startedIn(surroundings) !== null;

function startedIn({ claudeSession, pluginData, parentPid, folder }: Surroundings): HostSession | null {
  const noted = pluginData === null ? null : readSessionNote(pluginData, parentPid, folder);
  const sessionIds = [noted?.sessionId ?? null, claudeSession].filter((id) => id !== null);
  return sessionIds.length === 0 ? null : { agentId: "claude-code", sessionIds };
}

/** Codex names the thread of each call; that of a sub-agent differs from its session. */
function namedIn(meta: unknown): HostSession | null {
  const turn = fieldOf(meta, "x-codex-turn-metadata");
  const named = [fieldOf(turn, "thread_id"), fieldOf(turn, "session_id")];
  const sessionIds = named.filter((id) => typeof id === "string");
  return sessionIds.length === 0 ? null : { agentId: "codex", sessionIds };
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;

async function findOwn({ store }: Lcm, session: HostSession | null): Promise<Conversation | null> {
  if (session === null) return null;
  const { agentId, sessionIds } = session;
  for (const sessionId of sessionIds) {
    const [newest] = await store.conversations({ agentId, sessionId, limit: 1 });
    if (newest !== undefined) return newest;
  }
  return null;
}

/** Programs that nobody started for a project run in the root or in the home folder. */
const projectIn = ({ folder, home }: Surroundings): string | null =>
  [parse(folder).root, home].includes(folder) ? null : folder;
