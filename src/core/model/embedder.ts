/**
 * The port of embedding models: texts in, vectors out. Optional; without one, search goes by words alone.
 *
 * Provider trouble is a value, and the caller enforces deadlines.
 */

import type { Refused } from "./language-model.ts";

export interface EmbedRequest {
  readonly texts: readonly string[];
  /** Some models expect questions and the texts that answer them to be marked as such. */
  readonly kind: "query" | "passage";
  readonly signal?: AbortSignal;
}

export type Embedding =
  | Refused
  | {
      readonly kind: "vectors";
      /** Identifies the model, as exactly as is known: vectors of another model cannot be compared with these. */
      readonly model: string;
      /** One per text, in order, all of one length. */
      readonly vectors: readonly Float32Array[];
    };

export interface Embedder {
  /** As configured, for people. */
  readonly name: string;
  /** Whose calls cost something or leave the machine; absent for a model on this one. */
  readonly remote?: { readonly provider: string; readonly model: string };
  /** How many texts one call should have. */
  readonly batch: number;
  /** Provider trouble is a refusal, never an exception. The first call may load the model. It may hang. */
  embed(request: EmbedRequest): Promise<Embedding>;
  /** Frees what the model holds. The next call loads it again. */
  close(): Promise<void>;
}
