/** What the files screen asks: the files of a conversation, and some lines of one. */

import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId, FileId, MessageId, StoredFile } from "../../core/model/types.ts";
import type { Store } from "../../core/model/store.ts";
import { bareName } from "../../format/conversations.ts";
import { reads, type OfConversation } from "../../operator/port.ts";
import { linesOf } from "../widgets/pane.ts";

export interface Files {
  /** Of the conversation. */
  readonly name: string;
  /** Newest first. */
  readonly files: readonly FileRow[];
}

export type FileRow = Pick<StoredFile, "id" | "name" | "mimeType" | "bytes" | "lines" | "encoding" | "createdAt">;

export interface FileLook {
  readonly exploration: readonly string[];
  /** The message it was moved out of. */
  readonly message: { readonly conversation: ConversationId; readonly id: MessageId } | null;
  readonly content: FileText | { readonly kind: "bytes" } | { readonly kind: "lost"; readonly why: string };
}

/** Some lines of a file. `lines` has more entries than line numbers where a very long line was split. */
export interface FileText {
  readonly kind: "text";
  readonly from: number;
  readonly to: number;
  /** How many lines the file has. */
  readonly count: number;
  readonly lines: readonly string[];
}

interface FilesAsked extends OfConversation {
  /** A file to include even if it belongs to another conversation. */
  readonly also: FileId | null;
}

interface LineRange {
  readonly file: FileId;
  readonly from: number;
  readonly to: number;
}

export const filesAsks = {
  /** Null if the conversation no longer exists. */
  files: reads(async ({ store }, { conversation, also }: FilesAsked): Promise<Files | null> => {
    const of = await store.conversation(conversation);
    if (of === null) return null;
    const own = await store.files(conversation);
    const other = also === null || own.some(({ id }) => id === also) ? null : await store.file(also);
    return {
      name: bareName(of),
      files: [...(other === null ? [] : [other]), ...own.toReversed()],
    };
  }),
  /** Null if the file no longer exists. */
  fileLook: reads(async ({ store }, { file: id, from, to }: LineRange): Promise<FileLook | null> => {
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

/** Lines may be arbitrarily long. */
const charactersMax = 200_000;

async function textOf(store: Store, id: FileId, from: number, to: number): Promise<FileLook["content"]> {
  try {
    const { text, lines: count } = await store.fileLines(id, { fromLine: from, toLine: to, charactersMax });
    if (text.length < charactersMax)
      return { kind: "text", from, to: Math.min(to, count), count, lines: count === 0 ? [] : linesOf(text) };
    // The last line is cut, so it is left for the next read, unless it is the only one.
    const end = text.lastIndexOf("\n");
    const whole = end === -1 ? `${text}…` : text.slice(0, end);
    return { kind: "text", from, to: from + whole.split("\n").length - 1, count, lines: linesOf(whole) };
  } catch (error) {
    if (error instanceof LcmError && error.code === "unavailable") return { kind: "lost", why: error.message };
    throw error;
  }
}
