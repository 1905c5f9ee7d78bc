/**
 * What we do beside a host that builds its own prompts (Claude Code, Codex): store its transcripts as they grow, from its
 * hooks, and give it a recap after it has compacted. Every call may be the first, the last, or a repetition.
 */

import { errorText } from "../../core/base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../core/base/json.ts";
import { ingest } from "../../core/ingest/ingest.ts";
import type { Incoming } from "../../core/messages/codec.ts";
import type { Settings } from "../../core/model/settings.ts";
import type { Clock, SessionIdentity, Store } from "../../core/model/store.ts";
import type { Conversation } from "../../core/model/types.ts";
import { isReadWhole, readOn, type ReadLines } from "./read-on.ts";
import type { RowFormat } from "./rows/row-format.ts";
import { serviceBySettings } from "./service.ts";
import { hostSession } from "./sessions.ts";

/** What differs between such hosts. */
export interface CompanionHost {
  readonly name: "claude-code" | "codex";
  readonly rows: RowFormat;
  /** The session that writes this file; null if the file is not a transcript. */
  sessionIdOf(transcript: string): string | null;
  /** Transcripts, also of sub-agents, that were written to since then, the newest first; perhaps of other folders, too. */
  transcriptsNear(transcript: string, sinceMs: number): readonly string[];
  /** Whether the session of a transcript works in this folder. */
  isOf(folder: string, transcript: string): boolean;
  /** The host shows only the beginning of a longer text. */
  readonly contextCharactersMax: number;
}

/** One call of a hook, as far as we use it. */
export interface HookCall {
  readonly event: string;
  /** Of a start: why. */
  readonly source: string | null;
  readonly sessionId: string;
  readonly transcript: string;
  readonly folder: string;
  /** Of a sub-agent that has stopped. */
  readonly agentTranscript: string | null;
}

/** Null for anything else than a call of a hook. */
export function parseHookCall(text: string): HookCall | null {
  const input = JSON.parse(text) as Json;
  if (!isObject(input)) return null;
  const field = (name: string): string | null => {
    const value = input[name];
    return typeof value === "string" && value !== "" ? value : null;
  };
  const [event, sessionId, transcript] = ["hook_event_name", "session_id", "transcript_path"].map(field);
  if (!event || !sessionId || !transcript) return null;
  const folder = field("cwd") ?? "";
  return {
    event,
    source: field("source"),
    sessionId,
    transcript,
    folder,
    agentTranscript: field("agent_transcript_path"),
  };
}

export interface HookPlan {
  /** What to store before the hook returns. */
  readonly transcript: string | null;
  /** Whether the session may be a new one for this process of the host. */
  readonly isStart: boolean;
  readonly givesRecap: boolean;
  /** What to fold: what is due, or all that can be, because the host is about to forget it. */
  readonly fold: "nothing" | "due" | "all";
  /** Whether to look for what other sessions of the folder, or a killed one, left unstored. */
  readonly catchesUp: boolean;
}

export function planHook({ event, source, transcript, agentTranscript }: HookCall): HookPlan {
  const plan: HookPlan = {
    transcript,
    isStart: false,
    givesRecap: false,
    fold: "nothing",
    catchesUp: false,
  };
  switch (event) {
    case "SessionStart": {
      const givesRecap = source === "compact";
      return { ...plan, isStart: true, givesRecap, catchesUp: !givesRecap };
    }
    case "Stop":
      return { ...plan, fold: "due" };
    case "SessionEnd":
      // The host is about to exit, and reports a hook that does not return soon.
      return plan;
    case "SubagentStop":
      return { ...plan, transcript: agentTranscript };
    case "PreCompact":
      return { ...plan, fold: "all" };
    default:
      return { ...plan, transcript: null };
  }
}

/** Transcripts of a folder that have something that is not stored, among the newest. */
export async function leftBehind(
  store: Store,
  host: CompanionHost,
  { folder, transcript }: Pick<HookCall, "folder" | "transcript">,
  { sinceMs, lookedAtMax }: { readonly sinceMs: number; readonly lookedAtMax: number },
): Promise<readonly string[]> {
  const left: string[] = [];
  for (const path of host.transcriptsNear(transcript, sinceMs).slice(0, lookedAtMax)) {
    const sessionId = host.sessionIdOf(path);
    if (sessionId === null || !host.isOf(folder, path)) continue;
    const known = await findConversation(store, hostSession({ host: host.name, sessionId }));
    if (!isReadWhole(path, known?.hostCursor ?? null)) left.push(path);
  }
  return left;
}

/** What a hook prints so that the model reads the text with its next request; the same in both hosts. */
export const contextAnswer = (text: string): JsonObject => ({
  hookSpecificOutput: { hookEventName: "SessionStart", additionalContext: text },
});

export interface StoreDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: Settings;
  /** Lines that cannot be read are left out. */
  readonly onProblem: (doing: string, error: unknown) => void;
}

export interface StoredTranscript {
  readonly conversation: Conversation;
  /** What its host calls the session, if that was in what was read. */
  readonly title: string | null;
  /** False if the signal ended it. */
  readonly isWhole: boolean;
}

/**
 * Stores what is new in a transcript, piece by piece, each with the cursor after it in one transaction. Null if there is
 * nothing to store, or the settings exclude the session.
 */
export async function storeTranscript(
  deps: StoreDeps,
  host: CompanionHost,
  transcript: string,
  signal?: AbortSignal,
): Promise<StoredTranscript | null> {
  const sessionId = host.sessionIdOf(transcript);
  if (sessionId === null) return null;
  const named = hostSession({ host: host.name, sessionId });
  if (serviceBySettings(deps.settings, named.sessionKey ?? "") !== "served") return null;
  let conversation = await findConversation(deps.store, named);
  let cursor = conversation?.hostCursor ?? null;
  const reader = host.rows.createReader(transcript);
  for (;;) {
    const read = readOn(transcript, cursor);
    if (read === null) return null;
    const items = itemsOf(deps, reader, read, transcript);
    if (items.length > 0) {
      const { folder, parentSessionId } = reader.session();
      // The first rows of a session may not name its folder.
      if (conversation === null || (conversation.folder === null && folder !== null))
        conversation = await deps.store.open(hostSession({ host: host.name, sessionId, folder, parentSessionId }));
      await ingest(deps, conversation.id, items, { hostCursor: read.cursor });
    }
    cursor = read.cursor;
    if (read.hasMore && signal?.aborted !== true) continue;
    return conversation && { conversation, title: reader.session().title, isWhole: !read.hasMore };
  }
}

async function findConversation(store: Store, { sessionKey, agentId }: SessionIdentity): Promise<Conversation | null> {
  const names = { ...(sessionKey ? { sessionKey } : {}), ...(agentId ? { agentId } : {}) };
  const [known] = await store.conversations({ ...names, active: true, includeHidden: true, limit: 1 });
  return known ?? null;
}

function itemsOf(
  { clock, onProblem }: StoreDeps,
  reader: ReturnType<RowFormat["createReader"]>,
  { lines }: ReadLines,
  transcript: string,
): readonly Incoming[] {
  const now = clock.now();
  return lines.flatMap(({ text, position }) => {
    if (text.trim() === "") return [];
    try {
      const read = reader.read(JSON.parse(text) as Json, position, now);
      if (read.kind === "item") return [read.item];
      if (read.kind === "malformed") onProblem(`reading line ${position} of ${transcript}`, read.reason);
    } catch (error) {
      // The host was killed while it wrote the line.
      onProblem(`reading line ${position} of ${transcript}`, errorText(error));
    }
    return [];
  });
}
