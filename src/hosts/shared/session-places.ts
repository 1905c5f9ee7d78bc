/** Where the agents on a machine keep their sessions, and what the name of a session's file says. */

import { join } from "node:path";
import type { TranscriptFormat } from "../../core/ingest/import-transcript.ts";
import { formatOf } from "./rows/formats.ts";
import type { HostName, RowFormat } from "./rows/row-format.ts";
import { hostSession } from "./sessions.ts";

export interface SessionPlace {
  readonly host: HostName;
  /** For people. */
  readonly name: string;
  /** The folder with all sessions; for OpenCode, the one with its database. */
  readonly folder: string;
  /** The files of sessions in it, and of their sub-agents. */
  readonly patterns: readonly string[];
}

/** `env` may move a host's folder away from the home folder. */
export function sessionPlaces(
  env: Readonly<Record<string, string | undefined>>,
  home: string,
): readonly SessionPlace[] {
  const folderOf = (variable: string, ...usual: readonly string[]): string => env[variable] || join(home, ...usual);
  const claudeCode = folderOf("CLAUDE_CONFIG_DIR", ".claude");
  const patterns = ["*/*.jsonl", "*/*/subagents/agent-*.jsonl"];
  return [
    { host: "claude-code", name: "Claude Code", folder: join(claudeCode, "projects"), patterns },
    {
      host: "codex",
      name: "Codex",
      folder: folderOf("CODEX_HOME", ".codex"),
      patterns: ["sessions/*/*/*/rollout-*.jsonl", "archived_sessions/rollout-*.jsonl"],
    },
    {
      host: "opencode",
      name: "OpenCode",
      folder: join(folderOf("XDG_DATA_HOME", ".local", "share"), "opencode"),
      patterns: ["opencode.db"],
    },
    {
      host: "pi",
      name: "Pi",
      folder: join(folderOf("PI_CODING_AGENT_DIR", ".pi", "agent"), "sessions"),
      patterns: ["--*--/*.jsonl"],
    },
  ];
}

/** Names by which hosts' files are found below any folder. */
export const sessionFilesBelow: readonly string[] = [
  "**/????????-????-????-????-????????????.jsonl",
  "**/agent-*.jsonl",
  "**/rollout-*.jsonl",
  "**/--*--/*.jsonl",
  "**/opencode.db",
];

/** A session as its file is named; null for a file that could be anybody's. */
export function sessionOfPath(path: string): { readonly host: HostName; readonly sessionId: string } | null {
  for (const [host, name] of fileNames) {
    const [, sessionId] = name.exec(path) ?? [];
    if (sessionId !== undefined) return { host, sessionId };
  }
  return null;
}

const uuid = String.raw`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`;
const fileNames: readonly (readonly [HostName, RegExp])[] = [
  ["pi", /[/\\]--[^/\\]*--[/\\][^/\\]*?_([^/\\]+)\.jsonl$/],
  ["codex", new RegExp(`(?:^|[/\\\\])rollout-[^/\\\\]*?-(${uuid})(?:_${uuid})?\\.jsonl$`)],
  ["claude-code", new RegExp(`(?:^|[/\\\\])(${uuid})\\.jsonl$`)],
  ["claude-code", /(?:^|[/\\])agent-([^/\\]+)\.jsonl$/],
];

/**
 * How a transcript of a host is imported from this file. Its name says whose session it is, as it does for a hook: rows of
 * a fork may still name the session they were copied from.
 */
export function importFormat({ host, createReader }: RowFormat, path = ""): TranscriptFormat {
  const named = sessionOfPath(path);
  const own = named?.host === host ? named.sessionId : null;
  return {
    createReader: () => createReader(path),
    identify({ id, folder, parentSessionId }) {
      const sessionId = own ?? id;
      return sessionId === null ? null : hostSession({ host, sessionId, folder, parentSessionId });
    },
  };
}

/** For Pi, whose rows look like OpenClaw's: null unless the file lies where Pi puts it. */
export const formatOfPath = (path: string): TranscriptFormat | null => {
  const session = sessionOfPath(path);
  return session?.host === "pi" ? importFormat(formatOf("pi")) : null;
};
