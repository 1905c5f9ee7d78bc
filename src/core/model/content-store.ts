/** The port for large content that was moved out of messages: where its bytes are kept. */

import type { NewFile } from "./store.ts";
import type { ConversationId, FileEncoding, FileId, StoredFile } from "./types.ts";

/** No method changes content that it was not given the id or URI of. A URI that leads elsewhere is `denied`. */
export interface ContentStore {
  /** Stages new content. Throws `invalid` if it could not be read back unchanged, `unavailable` if there is no room. */
  put(id: FileId, file: NewFile): Promise<ContentDraft>;
  /** Throws `unavailable` if there is no such content. */
  read(file: Pick<StoredFile, "id" | "storageUri" | "encoding">): Promise<string>;
  /** The path of the file that has the content, for people; null if it is not in a file. */
  path(storageUri: string): Promise<string | null>;
  /** Null if there is no such content. Never throws. */
  facts(storageUri: string): Promise<ContentFacts | null>;
  /** What is in the place of content that is not a plain file of the store, such as `a symbolic link`; null otherwise. */
  oddity(storageUri: string): Promise<string | null>;
  /** Atomic: a crash leaves either the old content or the new. */
  replace(storageUri: string, content: string, encoding: FileEncoding): Promise<ContentSize>;
  /** Idempotent. */
  remove(storageUri: string): Promise<void>;
  /** Everything that `put` ever staged and that is still there, of one conversation or of all. */
  list(conversation: ConversationId | null): Promise<readonly ListedContent[]>;
  /** Whether the bytes contain any of these texts; false if the content is gone. */
  contains(storageUri: string, texts: readonly string[]): Promise<boolean>;
}

export interface ContentSize {
  readonly bytes: number;
  /** Null for bytes that are not text. */
  readonly lines: number | null;
}

export interface ContentFacts {
  readonly bytes: number;
  readonly writtenAtMs: number;
}

export interface ContentDraft extends ContentSize {
  readonly storageUri: string;
  /**
   * Makes the content readable under its URI. Idempotent and synchronous: it runs inside the transaction that records
   * the file, so that a crash rarely leaves content without a row.
   */
  readonly keep: () => void;
  /** Removes the draft unless it was kept. */
  readonly drop: () => Promise<void>;
}

export interface ListedContent {
  readonly id: FileId;
  readonly storageUri: string;
  /** Staged, and not kept yet or never. */
  readonly isDraft: boolean;
}
