/** Content as the store keeps it: some of it is stored in the same transaction as the row that names it. */

import type { ContentDraft, ContentStore } from "../../core/model/content-store.ts";
import type { FileId } from "../../core/model/types.ts";
import type { NewFile } from "../../core/model/store.ts";
import type { Statement } from "../script.ts";

export interface StagedContent extends ContentDraft {
  /** Statements that store it, for the transaction that records the file. */
  readonly rows?: readonly Statement[];
}

export interface StoredContent extends ContentStore {
  put(id: FileId, file: NewFile): Promise<StagedContent>;
}
