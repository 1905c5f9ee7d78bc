/**
 * The port of language models: requests, tool calls and answers.
 *
 * Provider trouble is a value, and the caller enforces deadlines.
 */

import type { CallPurpose, ConversationId, Refusal } from "./types.ts";
import type { Json, JsonObject } from "../base/json.ts";

export interface CompletionRequest {
  readonly purpose: CallPurpose;
  readonly conversation: ConversationId | null;
  readonly system: string;
  readonly prompt: string;
  readonly temperature: number;
  readonly maxOutputTokens: number;
  /** The deadline of the whole operation. An implementation may give up earlier, with `timeout`. */
  readonly signal?: AbortSignal;
  /** Tools that the model may call before it answers. An implementation may ignore them. */
  readonly tools?: readonly ToolOffer[];
  /** Calls so far and their results, oldest first. */
  readonly steps?: readonly ToolStep[];
}

export interface ToolOffer {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, an object. */
  readonly parameters: JsonObject;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** Not checked against the schema. */
  readonly args: Json;
}

/** One completion that called tools, and the results. */
export interface ToolStep {
  readonly completion: Extract<Completion, { readonly kind: "text" }>;
  readonly results: readonly { readonly call: ToolCall; readonly text: string; readonly isError: boolean }[];
}

export interface Refused {
  readonly kind: "refused";
  readonly refusal: Refusal;
  /** For the operator; never parsed. */
  readonly message: string;
  /** Set if the call could not be recorded: the error of the store. */
  readonly ofStore?: Error;
}

export type Completion =
  | Refused
  | {
      readonly kind: "text";
      /** Unchanged: it may be empty, cut short or full of reasoning. */
      readonly text: string;
      /** Calls to run before the next completion. A model may make up names of tools. */
      readonly calls?: readonly ToolCall[];
      /** Opaque: what the implementation needs with the next step. */
      readonly memo?: unknown;
      readonly finish: "stop" | "length" | "other";
      readonly inputTokens: number;
      readonly outputTokens: number;
      /** Called by the summariser when it has read this answer. For measuring; must not throw. */
      readonly onRead?: (verdict: SummaryVerdict) => void;
    };

/** `reason` is a clause that says why the answer is unusable as a summary; null if it is used. */
export interface SummaryVerdict {
  readonly level: "normal" | "aggressive";
  readonly reason: string | null;
}

export interface Model {
  readonly provider: string;
  readonly name: string;
  /** Why a call would fail, found without calling anyone: no credential, for example. Null promises nothing. */
  check?(): Promise<Refused | null>;
  /** One model call. Provider trouble is a refusal, never an exception. It may hang: the caller enforces the deadline. */
  complete(request: CompletionRequest): Promise<Completion>;
}
