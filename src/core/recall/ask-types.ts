/** Types for asking a question: the request, the delegate and its task, progress, and the answer. */

import type { GrantId, MessageId, SummaryId } from "../model/types.ts";
import type { Model, SearchCaveat, ToolOffer } from "../model/store.ts";
import type { Reach } from "./scope.ts";
import type { LoopOutcome } from "../model-calls/tool-loop.ts";
import type { Json } from "../base/json.ts";
import type { MapProgress } from "./map/map.ts";

export interface AskRequest {
  /** The question. */
  readonly prompt: string;
  /** Search words, for one the question itself. With `summaryIds` they may be left out, and rank what lies below instead. */
  readonly query?: string;
  /** The question in other words, up to 5; searched together with it. */
  readonly also?: readonly string[];
  readonly summaryIds?: readonly SummaryId[];
  /** Limit of the answer. */
  readonly maxTokens?: number;
  /** Limit of what may be read; `maxExpandTokens` by default. */
  readonly tokenCap?: number;
  /** A function is called within the deadline. */
  readonly reach: Reach | (() => Promise<Reach>);
  /** The deadline of the whole request. */
  readonly signal?: AbortSignal;
  /** Time until the signal fires: the grant expires shortly after. */
  readonly timeoutMs: number;
  /** A host's sub-agent; null for excerpts without an answer; the model by default. */
  readonly delegate?: Delegate | null;
  /** Replaces the default model. Its calls must already be metered and bounded. */
  readonly model?: Model;
  /** Offered to the delegate. */
  readonly tools?: readonly DelegateTool[];
  readonly onProgress?: (progress: AskProgress) => void;
  /** Time zone of excerpts; UTC by default. */
  readonly zone?: string;
}

export interface DelegateTool extends ToolOffer {
  /** Reads only under the grant. Errors are results. */
  run(args: Json, access: { readonly grant: GrantId; readonly signal?: AbortSignal }): Promise<ToolReading>;
}

export interface ToolReading {
  readonly text: string;
  readonly isError: boolean;
  readonly read: Read;
}

/** What was returned, and may therefore be cited. */
export interface Read {
  readonly summaries: readonly SummaryId[];
  readonly messages: readonly MessageId[];
  readonly tokens: number;
}

export interface Task {
  readonly system: string;
  /** The question and the excerpts found so far. */
  readonly prompt: string;
  readonly grant: GrantId;
  /** Summaries to start from. */
  readonly summaryIds: readonly SummaryId[];
  readonly maxTokens: number;
  readonly signal: AbortSignal | undefined;
  readonly tools: readonly DelegateTool[];
}

/** Answers a task. It may fail, throw or hang: the answer is then made of excerpts. */
export type Delegate = (task: Task) => Promise<LoopOutcome>;

export type AskProgress =
  | { readonly kind: "searching"; readonly query: string }
  | { readonly kind: "found"; readonly summaries: number; readonly messages: number }
  | { readonly kind: "reading"; readonly ids: readonly string[]; readonly tokens: number }
  | { readonly kind: "asking"; readonly model: string; readonly step: number }
  | MapProgress;

export interface Answer {
  readonly answer: string;
  /** Summaries that the answer cites, and that were read or cover messages that were. */
  readonly citedIds: readonly SummaryId[];
  readonly citedMessages: readonly MessageId[];
  readonly expandedSummaryCount: number;
  /** Tokens of stored text read for the answer. */
  readonly totalSourceTokens: number;
  /** Whether the answer was cut at `maxTokens`. */
  readonly truncated: boolean;
  readonly by: "model" | "delegate" | "excerpts";
  /** Why the answer is incomplete; null if it is complete. */
  readonly partial: string | null;
  readonly caveats: readonly SearchCaveat[];
}
