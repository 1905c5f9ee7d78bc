/** Vectors of messages, one bit per dimension: what the store keeps of an embedding model's answers. */

import type { Timestamp } from "../base/time.ts";
import type { ConversationId } from "./types.ts";

/** Consecutive messages of one conversation that have no vector of a model yet. */
export interface PendingVectors {
  readonly conversation: ConversationId;
  /** The number of the first in its conversation. */
  readonly firstSeq: number;
  /** The beginning of each; empty if it gets no vector, because it says nothing or repeats what was recalled. */
  readonly texts: readonly string[];
  /** `forgets` of the conversation when they were read. */
  readonly forgets: number;
}

export interface NewVectors extends Pick<PendingVectors, "conversation" | "firstSeq" | "forgets"> {
  readonly model: string;
  /** One per message, all of one length in bytes, a multiple of 4; all zeros for a message without one. */
  readonly vectors: readonly Uint8Array[];
}

/** Questions as vectors of a model, for a search by meaning: one for each way to put it. */
export interface MeaningQuery {
  readonly model: string;
  readonly vectors: readonly Uint8Array[];
}

/** What is stored of one model. */
export interface VectorTotals {
  readonly model: string;
  /** Messages that have a vector or need none, and messages that are still to be embedded. */
  readonly made: number;
  readonly pending: number;
  readonly bytes: number;
}

/** What became of an embedder's work. */
export interface EmbedderRecord {
  /** As configured. */
  readonly name: string;
  /** How many texts it has embedded. */
  readonly embedded: number;
  /** Why it last failed, if it has not succeeded since. */
  readonly failure: string | null;
  readonly at: Timestamp;
}
