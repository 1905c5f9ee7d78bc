/**
 * The port to a model: what it is asked, what it may call before it answers, and how it answers. Provider trouble is a
 * value; whoever asks keeps the time.
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
  /** The deadline of the operation that asks. An implementation may give up earlier, as `timeout`. */
  readonly signal?: AbortSignal;
  /** What the model may call before it answers. An implementation without tools answers at once. */
  readonly tools?: readonly ToolOffer[];
  /** What it has called so far and what came of it, oldest first. */
  readonly steps?: readonly ToolStep[];
}

export interface ToolOffer {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments, an object. */
  readonly parameters: JsonObject;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** As the model wrote them: not checked against the schema. */
  readonly args: Json;
}

/** One completion that called tools, and what each call gave. */
export interface ToolStep {
  readonly completion: Extract<Completion, { readonly kind: "text" }>;
  readonly results: readonly { readonly call: ToolCall; readonly text: string; readonly isError: boolean }[];
}

/** Why there is no answer. */
export interface Refused {
  readonly kind: "refused";
  readonly refusal: Refusal;
  /** A sentence for the operator; nothing is decided by its words. */
  readonly message: string;
  /** It was not the provider: the call could not be noted, and this is why. */
  readonly ofStore?: Error;
}

export type Completion =
  | Refused
  | {
      readonly kind: "text";
      /** As the model wrote it: it may be empty, cut short or full of reasoning. */
      readonly text: string;
      /** What it wants called before it goes on; only of the tools that were offered, or of names it made up. */
      readonly calls?: readonly ToolCall[];
      /** What the implementation needs to see again with the next step; nobody else looks into it. */
      readonly memo?: unknown;
      readonly finish: "stop" | "length" | "other";
      readonly inputTokens: number;
      readonly outputTokens: number;
    };

export interface Model {
  readonly provider: string;
  readonly name: string;
  /**
   * What keeps it from being asked, seen without asking anyone: such a call is not made, and so is no call. Null, like
   * an implementation without this, promises nothing. Never throws for what it finds.
   */
  check?(): Promise<Refused | null>;
  /** One model call. Never throws for provider trouble; that is a refusal. It may hang: whoever asks keeps the time. */
  complete(request: CompletionRequest): Promise<Completion>;
}
