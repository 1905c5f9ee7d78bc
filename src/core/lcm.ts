/**
 * The façade every surface uses: the library, the command line, the terminal UI, the plugin. It holds a store and a
 * clock, and offers what one can do with a conversation; the work itself is in the file named after each verb.
 */

import { exportTranscript, importTranscript } from "./ingest.ts";
import type { ImportReport, ImportTarget, SourceLine } from "./ingest.ts";
import { inspect } from "./inspect.ts";
import type { Finding, InspectProgress } from "./inspect.ts";
import type { Conversation, ConversationId } from "./model.ts";
import type { Clock, SearchLimits, SearchResult, Store } from "./ports.ts";
import { findConversation, grep } from "./recall.ts";
import type { GrepRequest } from "./recall.ts";

export interface LcmDeps {
  readonly store: Store;
  readonly clock: Clock;
}

export interface Lcm {
  /** For reads and writes that need no deciding. */
  readonly store: Store;
  /** By number, session key or session id; `not_found` when there is none. */
  find(name: string): Promise<Conversation>;
  /** Streams a transcript in. Idempotent, and resumable by running it again. */
  import(
    source: AsyncIterable<SourceLine>,
    target: ImportTarget,
    onProgress?: (position: number) => void,
  ): Promise<ImportReport>;
  /** The transcript's lines, equal to what came in. */
  export(conversation: ConversationId): AsyncGenerator<string>;
  grep(request: GrepRequest, limits?: SearchLimits): Promise<SearchResult>;
  /** Findings of one conversation, or of the whole database. */
  inspect(
    conversation: ConversationId | null,
    onProgress?: (progress: InspectProgress) => void,
  ): Promise<readonly Finding[]>;
  close(): Promise<void>;
}

export function createLcm(deps: LcmDeps): Lcm {
  const { store } = deps;
  return {
    store,
    find: async (name) => await findConversation(store, name),
    import: async (source, target, onProgress) => await importTranscript(deps, source, target, onProgress),
    export: (conversation) => exportTranscript(store, conversation),
    grep: async (request, limits) => await grep(store, request, limits),
    inspect: async (conversation, onProgress) => await inspect(store, conversation, onProgress),
    close: async () => await store.close(),
  };
}
