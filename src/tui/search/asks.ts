/** What the search and the files ask: what matches, which files there are, and what one of them says. */

import { setTimeout as pause } from "node:timers/promises";
import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId, FileId, MessageId, StoredFile } from "../../core/model/types.ts";
import type { SearchCaveat, SearchHit, SearchRequest, Store } from "../../core/model/store.ts";
import { reachOf } from "../../core/recall/scope.ts";
import type { Reach } from "../../core/recall/scope.ts";
import { bareName } from "../../format/conversations.ts";
import { createFinder } from "../../format/highlight.ts";
import type { Match } from "../../format/highlight.ts";
import { linesOf } from "../widgets/pane.ts";
import { reads } from "../port.ts";
import type { Doing, OfConversation } from "../port.ts";
import { oneLine } from "../../format/safe-text.ts";

export interface Query {
  readonly pattern: string;
  readonly mode: SearchRequest["mode"];
  readonly scope: SearchRequest["scope"];
  readonly where: "conversation" | "family" | "all";
  readonly conversation: ConversationId | null;
}

export type Found =
  | { readonly kind: "found"; readonly hits: readonly Hit[]; readonly caveats: readonly SearchCaveat[] }
  /** It is no pattern, or no more than the beginning of one. */
  | { readonly kind: "refused"; readonly why: string };

export interface Hit {
  readonly hit: SearchHit;
  /** What the conversation is called. */
  readonly where: string;
  /** The text around the match in one line, and where in it the matches are. */
  readonly snippet: string;
  readonly matches: readonly Match[];
}

export interface Files {
  /** What the conversation is called. */
  readonly name: string;
  /** Newest first. */
  readonly files: readonly FileRow[];
}

/** A file beside others. */
export type FileRow = Pick<StoredFile, "id" | "name" | "mimeType" | "bytes" | "lines" | "encoding" | "createdAt">;

export interface FileLook {
  readonly exploration: readonly string[];
  /** What it was moved out of. */
  readonly message: { readonly conversation: ConversationId; readonly id: MessageId } | null;
  readonly content:
    | FileText
    | { readonly kind: "bytes" }
    /** It cannot be read any more. */
    | { readonly kind: "lost"; readonly why: string };
}

/** A stretch of a file, by the numbers of its lines; those that are very long are several here. */
export interface FileText {
  readonly kind: "text";
  readonly from: number;
  readonly to: number;
  /** How many lines there are in all. */
  readonly count: number;
  readonly lines: readonly string[];
}

interface FilesAsked extends OfConversation {
  /** One that is to be among them, though it may be of another conversation. */
  readonly also: FileId | null;
}

/** Lines of a file, by their numbers. */
interface Stretch {
  readonly file: FileId;
  readonly from: number;
  readonly to: number;
}

const hitsMax = 50;

/** Whoever types on has another pattern by then. */
const pauseMs = 60;

export const searchAsks = {
  async grep({ pattern, mode, scope, where, conversation }: Query, { port, signal }: Doing): Promise<Found> {
    await pause(pauseMs, undefined, { signal });
    const lcm = await port.reading();
    const reach = await reachFor(lcm.store, where, conversation);
    const timeoutMs = lcm.settings.searchTimeoutSeconds * 1_000;
    try {
      const { hits, caveats } = await lcm.grep({ pattern, mode, scope, reach, limit: hitsMax }, { timeoutMs, signal });
      const names = await namesOf(lcm.store, hits);
      const snippets = hits.map(({ snippet }) => oneLine(snippet));
      const matches = createFinder(pattern, mode === "regex")(snippets);
      const shown = hits.map((hit, at) => ({
        hit,
        where: names.get(hit.conversation) ?? "",
        snippet: snippets[at] ?? "",
        matches: matches[at] ?? [],
      }));
      return { kind: "found", hits: shown, caveats };
    } catch (error) {
      if (error instanceof LcmError && error.code === "invalid")
        return { kind: "refused", why: oneLine(error.message) };
      throw error;
    }
  },
  /** Null where the conversation is gone. */
  files: reads(async ({ store }, { conversation, also }: FilesAsked): Promise<Files | null> => {
    const found = await store.conversation(conversation);
    if (found === null) return null;
    const own = await store.files(conversation);
    const other = also === null || own.some(({ id }) => id === also) ? null : await store.file(also);
    return {
      name: bareName(found),
      files: [...(other === null ? [] : [other]), ...own.toReversed()],
    };
  }),
  /** Some of its lines, as many as are read at a time at most; null where it is gone. */
  fileLook: reads(async ({ store }, { file: id, from, to }: Stretch): Promise<FileLook | null> => {
    const file = await store.file(id);
    if (file === null) return null;
    const keys = file.messageKey === null ? [] : [file.messageKey];
    const [message] = await store.messages({ conversation: file.conversation, keys });
    return {
      exploration: file.exploration === null ? [] : linesOf(file.exploration),
      message: message === undefined ? null : { conversation: message.conversation, id: message.id },
      content: file.encoding === "base64" ? { kind: "bytes" } : await textOf(store, id, from, to),
    };
  }),
};

/** As `lcm grep` reaches: one, its family, or all that are not hidden. */
async function reachFor(store: Store, where: Query["where"], conversation: ConversationId | null): Promise<Reach> {
  if (where === "conversation" && conversation !== null) return { kind: "conversation", conversations: [conversation] };
  return await reachOf(store, { conversation: where === "family" ? conversation : null, policy: "all" }, {});
}

async function namesOf(store: Store, hits: readonly SearchHit[]): Promise<ReadonlyMap<ConversationId, string>> {
  const ids = [...new Set(hits.map(({ conversation }) => conversation))];
  const found = await Promise.all(ids.map(async (id) => await store.conversation(id)));
  return new Map(found.filter((each) => each !== null).map((each) => [each.id, bareName(each)]));
}

/** A line may be as long as it likes. */
const charactersMax = 200_000;

async function textOf(store: Store, id: FileId, from: number, to: number): Promise<FileLook["content"]> {
  try {
    const { text, lines: count } = await store.fileLines(id, { fromLine: from, toLine: to, charactersMax });
    if (text.length < charactersMax)
      return { kind: "text", from, to: Math.min(to, count), count, lines: count === 0 ? [] : linesOf(text) };
    // The last line is cut: it is the next to be read, unless there is no other.
    const end = text.lastIndexOf("\n");
    const whole = end === -1 ? `${text}…` : text.slice(0, end);
    return { kind: "text", from, to: from + whole.split("\n").length - 1, count, lines: linesOf(whole) };
  } catch (error) {
    if (error instanceof LcmError && error.code === "unavailable") return { kind: "lost", why: error.message };
    throw error;
  }
}
