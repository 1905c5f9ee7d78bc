/** The part of Pi's extension API that we use, as found in versions 0.87 and 1.5. Pi itself is absent when we compile. */

import type { Json, JsonObject } from "../../core/base/json.ts";
import type { HostMessage } from "../../core/messages/codec.ts";

export interface PiApi {
  on<Event extends keyof PiEvents>(
    event: Event,
    handler: (event: PiEvents[Event], context: PiContext) => Promise<unknown>,
  ): void;
  registerTool(tool: PiTool): void;
  registerCommand(name: string, command: PiCommand): void;
  getActiveTools(): readonly string[];
  getAllTools(): readonly { readonly name: string; readonly description?: string; readonly parameters?: unknown }[];
  /** Since 1.0. */
  getSettings?(): unknown;
}

export interface PiEvents {
  readonly context: { readonly messages: readonly HostMessage[] };
  readonly turn_end: { readonly message: HostMessage };
  readonly agent_end: unknown;
  /** Since 1.0. */
  readonly agent_before_settle: BeforeSettle;
  readonly agent_settled: unknown;
  readonly session_before_compact: BeforeCompact;
  readonly session_shutdown: unknown;
}

/** The end of a run, at which entries can be added to the session. */
export interface BeforeSettle {
  /** Those that other extensions add. */
  readonly entries: readonly { readonly type: string }[];
  /** What Pi itself would show. */
  readonly context: { readonly contextMessages: readonly HostMessage[] };
}

export interface BeforeCompact {
  readonly preparation: { readonly firstKeptEntryId: string; readonly tokensBefore: number };
  readonly branchEntries: readonly { readonly id: string }[];
  readonly customInstructions?: string;
  readonly reason?: "manual" | "threshold" | "overflow";
  readonly signal?: AbortSignal;
}

export interface PiContext {
  readonly cwd: string;
  /** False in print mode, where notifications are not shown. */
  readonly hasUI: boolean;
  readonly model: PiModel | undefined;
  readonly modelRegistry: {
    find(provider: string, id: string): PiModel | undefined;
    complete(model: PiModel, prompt: PiPrompt, options: PiOptions): Promise<HostMessage>;
  };
  readonly sessionManager: {
    getSessionId(): string;
    getHeader(): object | null;
    /** All rows but the header, in the order of the file. */
    getEntries(): readonly { readonly type: string }[];
    /** The rows from the root to the current one. */
    getBranch(): readonly { readonly id: string; readonly type: string; readonly firstKeptEntryId?: string }[];
  };
  readonly ui: { notify(text: string, kind?: "info" | "warning" | "error"): void };
  getSystemPrompt(): string;
}

export interface PiModel {
  readonly provider: string;
  readonly id: string;
  readonly contextWindow: number;
}

interface PiPrompt {
  readonly systemPrompt: string;
  readonly messages: readonly HostMessage[];
}

interface PiOptions {
  readonly maxTokens: number;
  readonly cacheRetention: "none";
  readonly signal?: AbortSignal;
}

export interface PiTool {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  /** JSON Schema. */
  readonly parameters: unknown;
  readonly promptGuidelines?: readonly string[];
  readonly annotations: { readonly readOnlyHint: boolean };
  /** Throws if the tool refuses: Pi shows the model the message. */
  execute(
    id: string,
    args: Json,
    signal: AbortSignal | undefined,
    onUpdate: ((result: ToolOutput) => void) | undefined,
    context: PiContext,
  ): Promise<ToolOutput>;
}

export interface ToolOutput {
  readonly content: readonly { readonly type: "text"; readonly text: string }[];
  readonly details: JsonObject;
}

export interface PiCommand {
  readonly description: string;
  handler(words: string, context: PiContext): Promise<void>;
}
