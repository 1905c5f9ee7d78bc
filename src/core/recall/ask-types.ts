/** What can be asked of what was said, who may answer, what they are told meanwhile, and what an answer tells. */

import type { GrantId, MessageId, SummaryId } from "../model/types.ts";
import type { Model, SearchCaveat, ToolOffer } from "../model/store.ts";
import type { Reach } from "./scope.ts";
import type { LoopOutcome } from "../model-calls/tool-loop.ts";
import type { Json } from "../base/json.ts";

export interface AskRequest {
  /** The question. */
  readonly prompt: string;
  /** Words to find what speaks of it by; or the summaries to look into, which are then ranked by it. */
  readonly query?: string;
  readonly summaryIds?: readonly SummaryId[];
  /** How long the answer may be. */
  readonly maxTokens?: number;
  /** How much may be read for it; `maxExpandTokens` if left out. */
  readonly tokenCap?: number;
  /** Found out within the deadline, if it has to be found out. */
  readonly reach: Reach | (() => Promise<Reach>);
  /** The deadline of all of it. */
  readonly signal?: AbortSignal;
  /** How long the signal leaves: the grant outlives it by little. */
  readonly timeoutMs: number;
  /** Who answers: a host's sub-agent; null for nobody, so that excerpts are the answer; the model if left out. */
  readonly delegate?: Delegate | null;
  /** The model that answers instead of the usual one. Its calls should be counted and bounded already. */
  readonly model?: Model;
  /** What a delegate may call. */
  readonly tools?: readonly DelegateTool[];
  readonly onProgress?: (progress: AskProgress) => void;
  /** Of the times in excerpts; UTC if left out. */
  readonly zone?: string;
}

export interface DelegateTool extends ToolOffer {
  /** Reads under the grant and nothing else. What goes wrong is a result that says so. */
  run(args: Json, held: { readonly grant: GrantId; readonly signal?: AbortSignal }): Promise<ToolReading>;
}

export interface ToolReading {
  readonly text: string;
  readonly isError: boolean;
  readonly read: Read;
}

/** What was handed out, and so may be cited. */
export interface Read {
  readonly summaries: readonly SummaryId[];
  readonly messages: readonly MessageId[];
  readonly tokens: number;
}

export interface Task {
  readonly system: string;
  /** The question, with what was found so far. */
  readonly prompt: string;
  readonly grant: GrantId;
  /** Summaries to read on from. */
  readonly summaryIds: readonly SummaryId[];
  readonly maxTokens: number;
  readonly signal: AbortSignal | undefined;
  readonly tools: readonly DelegateTool[];
}

/** Answers a task. It may fail, throw or hang: then it is done without. */
export type Delegate = (task: Task) => Promise<LoopOutcome>;

export type AskProgress =
  | { readonly kind: "searching"; readonly query: string }
  | { readonly kind: "found"; readonly summaries: number; readonly messages: number }
  | { readonly kind: "reading"; readonly ids: readonly string[]; readonly tokens: number }
  | { readonly kind: "asking"; readonly model: string; readonly step: number };

export interface Answer {
  readonly answer: string;
  /** Summaries that were read, or that stand for messages that were, and that the answer names. */
  readonly citedIds: readonly SummaryId[];
  readonly citedMessages: readonly MessageId[];
  readonly expandedSummaryCount: number;
  /** Tokens of stored text that were read for it. */
  readonly totalSourceTokens: number;
  /** Whether there is more of it than `maxTokens` allow. */
  readonly truncated: boolean;
  readonly by: "model" | "delegate" | "excerpts";
  /** Why it is less than was asked for; null if it is not. */
  readonly partial: string | null;
  readonly caveats: readonly SearchCaveat[];
}
