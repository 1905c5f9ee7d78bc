/**
 * What hosts write, and how it becomes what we store: one file per host. A row is a message, a note (the host's own words:
 * kept, but not part of the conversation), or an entry that is kept whole. No row is lost, and each is written back equal.
 */

import { isObject, jsonText, type Json, type JsonObject } from "../../../core/base/json.ts";
import type { Timestamp } from "../../../core/base/time.ts";
import type { Incoming } from "../../../core/messages/codec.ts";
import {
  timeOf,
  type RowReader,
  type SessionFacts,
  type TranscriptLine,
} from "../../../core/messages/transcript-line.ts";

export const hostNames = ["pi", "claude-code", "codex", "opencode", "chatgpt", "claude-ai"] as const;
export type HostName = (typeof hostNames)[number];

export interface RowFormat {
  readonly host: HostName;
  /** Whether this row can only come from this host. */
  readonly recognises: (row: JsonObject) => boolean;
  /**
   * A reader for one session. It may start in the middle of a file, where a cursor points. The file's name may say what
   * its rows do not.
   */
  readonly createReader: (path?: string) => RowReader;
}

/** A reader that decides on each row by itself, and collects what the rows say about their session. */
export function readerOf(
  itemOf: (row: JsonObject, position: number, now: Timestamp) => Incoming,
  factsIn: (row: JsonObject) => Partial<SessionFacts>,
): RowReader {
  let session = noFacts;
  return {
    session: () => session,
    read(row: Json, position: number, now: Timestamp): TranscriptLine {
      if (!isObject(row)) return { kind: "malformed", reason: "the line is not a JSON object" };
      session = joinFacts(session, factsIn(row));
      return { kind: "item", item: itemOf(row, position, now), sessionId: session.id };
    },
  };
}

const noFacts: SessionFacts = { id: null, folder: null, parentSessionId: null, title: null };

/** Titles are given again as a session goes on; everything else is as it was said first. */
const joinFacts = (known: SessionFacts, more: Partial<SessionFacts>): SessionFacts => ({
  id: known.id ?? more.id ?? null,
  folder: known.folder ?? more.folder ?? null,
  parentSessionId: known.parentSessionId ?? more.parentSessionId ?? null,
  title: more.title ?? known.title,
});

/** A row that is kept whole. */
export const entryOf = (
  row: JsonObject,
  key: string,
  parentKey?: string | null,
  type = stringIn(row, "type") ?? "unknown",
): Incoming => ({
  kind: "entry",
  entry: {
    key,
    type,
    at: timeOf(row),
    raw: jsonText(row),
    ...(parentKey === undefined ? {} : { parentKey }),
  },
});

/** The text in a field; null for an empty one and for anything else. */
export function stringIn(row: JsonObject, field: string): string | null {
  const value = row[field];
  return typeof value === "string" && value !== "" ? value : null;
}

export const listIn = (row: JsonObject, field: string): readonly Json[] => {
  const value = row[field];
  return Array.isArray(value) ? value : [];
};

export const objectIn = (row: JsonObject, field: string): JsonObject => {
  const value = row[field];
  return isObject(value) ? value : {};
};
