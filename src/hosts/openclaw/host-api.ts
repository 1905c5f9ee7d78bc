/**
 * The part of OpenClaw's plugin API that we use, as observed in version 2026.9.6. The host exports no types for the engine
 * or the transcript reader, and as an optional peer it is absent when we compile.
 */

import type { Json, JsonObject } from "../../core/base/json.ts";
import type { Logger } from "../shared/runtime.ts";

// ── The plugin's api ─────────────────────────────────────────────────────────────────────────────────────────────────

export interface PluginApi {
  /** openclaw.json as written. */
  readonly config: HostConfig;
  /** Some of its properties throw while the plugin registers. */
  readonly runtime: HostRuntime;
  readonly logger: Logger;
  on(hook: string, handler: (event: HookEvent, context: SessionNames) => unknown): void;
  registerContextEngine(id: string, factory: () => Promise<ContextEngine>): void;
  registerTool(factory: (context: SessionNames) => HostTool | null, options: { readonly name: string }): void;
  registerCommand(command: SlashCommand): void;
  /** `program` is a commander program. */
  registerCli(
    registrar: (host: { readonly program: unknown; readonly config: HostConfig }) => Promise<void>,
    options: { readonly descriptors: readonly CliDescriptor[] },
  ): void;
  registerService(service: { readonly id: string; start(): void; stop(): Promise<void> }): void;
}

interface CliDescriptor {
  readonly name: string;
  readonly description: string;
  readonly hasSubcommands: boolean;
}

/** How hooks, tools and commands identify their session. */
export interface SessionNames {
  readonly agentId?: string;
  readonly sessionKey?: string;
  readonly sessionId?: string;
}

export interface HostConfig {
  readonly plugins?: {
    readonly slots?: { readonly contextEngine?: string };
    readonly entries?: Readonly<Record<string, { readonly config?: Readonly<Record<string, unknown>> } | undefined>>;
  };
  readonly agents?: {
    readonly defaults?: {
      readonly compaction?: { readonly timeoutSeconds?: number };
      /** The machine's own if left out. */
      readonly userTimezone?: string;
    };
  };
}

export interface HostRuntime {
  readonly llm: Llm;
  readonly subagent: Subagents;
}

/** As far as `session_end` needs it. */
export interface HookEvent extends SessionNames {
  readonly reason?: string;
}

export interface SlashCommand {
  readonly name: string;
  readonly description: string;
  readonly acceptsArgs: boolean;
  readonly requireAuth?: boolean;
  handler(context: CommandContext): Promise<{ readonly text: string }>;
}

export interface CommandContext extends SessionNames {
  readonly args?: string;
  readonly config?: HostConfig;
  readonly runtimeContext?: { readonly llm?: Llm };
}

// ── Tools, the host's model, and its sub-agents ──────────────────────────────────────────────────────────────────────

export interface HostTool {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly parameters: JsonObject;
  /** Always in the prompt: a model does not think of searching the host's tool catalogue for its own past. */
  readonly catalogMode: "direct-only";
  execute(
    callId: string,
    args: Json,
    signal?: AbortSignal,
    onUpdate?: (update: ToolOutput) => void,
  ): Promise<ToolOutput>;
}

export interface ToolOutput {
  readonly content: readonly { readonly type: "text"; readonly text: string }[];
  readonly details: JsonObject;
}

export interface Llm {
  complete(request: LlmRequest): Promise<LlmAnswer>;
}

export interface LlmRequest {
  readonly messages: readonly { readonly role: "system" | "user" | "assistant"; readonly content: string }[];
  readonly systemPrompt?: string;
  /** Refused unless the operator allows it. */
  readonly model?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly signal?: AbortSignal;
  readonly purpose?: string;
}

export interface LlmAnswer {
  readonly text: string;
  readonly stopReason?: string;
  readonly usage?: {
    readonly inputTokens?: number;
    readonly outputTokens?: number;
    readonly cacheReadTokens?: number;
    readonly cacheWriteTokens?: number;
  };
}

/** Works only while the gateway serves a request; otherwise every method throws. */
export interface Subagents {
  run(request: {
    /** `agent:<id>:subagent:<name>`. */
    readonly sessionKey: string;
    readonly message: string;
    readonly extraSystemPrompt?: string;
    /** Exactly these tools of ours; the host's own cannot be named. */
    readonly toolsAlsoAllow?: readonly string[];
    readonly promptMode?: "minimal";
    readonly lightContext?: boolean;
    readonly deliver?: boolean;
    readonly idempotencyKey?: string;
  }): Promise<{ readonly runId: string }>;
  /** A time-out does not end the run. */
  waitForRun(request: { readonly runId: string; readonly timeoutMs?: number }): Promise<{
    readonly status: "ok" | "error" | "timeout" | "pending";
    readonly error?: string;
    readonly terminalReply?: { readonly disposition?: string; readonly text?: string };
  }>;
  getSessionMessages(request: {
    readonly sessionKey: string;
    readonly limit?: number;
  }): Promise<{ readonly messages: readonly Json[] }>;
  deleteSession(request: { readonly sessionKey: string; readonly deleteTranscript?: boolean }): Promise<void>;
}

// ── The engine ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Created for every turn, compaction and hook, so it can only remember the state of one turn. */
export interface ContextEngine {
  readonly info: {
    readonly id: string;
    readonly name: string;
    readonly version?: string;
    /** Without both, the host serves every turn with its own engine and only logs it. */
    readonly transcriptSemantics: {
      readonly currentTurnFence: "before-current-turn-entry-v1";
      readonly turnAdvancementIdempotency: "atomic-idempotent-v1";
    };
    readonly ownsCompaction: true;
    readonly turnMaintenanceMode: "background";
  };
  /** Before every turn of a session that has a transcript. */
  bootstrap(call: SessionCall): Promise<{
    readonly bootstrapped: boolean;
    readonly importedMessages?: number;
    readonly reason?: string;
  }>;
  /** The next turn of the session waits until it returns, despite "background". */
  maintain(call: SessionCall): Promise<{
    readonly changed: boolean;
    readonly bytesFreed: number;
    readonly rewrittenEntries: number;
  }>;
  /** Only for runs without a transcript. */
  ingest(call: SessionCall & { readonly message: JsonObject }): Promise<{ readonly ingested: boolean }>;
  ingestBatch(call: SessionCall & { readonly messages: readonly JsonObject[] }): Promise<{
    readonly ingestedCount: number;
  }>;
  afterTurn(
    call: SessionCall & { readonly messages: readonly JsonObject[]; readonly prePromptMessageCount: number },
  ): Promise<void>;
  /** If it fails, it is called again before the next turn. */
  commitTurn(call: CommitCall): Promise<{ readonly status: "committed" | "duplicate" }>;
  /** Called before the prompt and before every request to the model; the host adds the live turn itself. */
  assemble(call: AssembleCall): Promise<AssembleResult>;
  compact(call: CompactCall): Promise<CompactResult>;
  prepareSubagentSpawn(call: SpawnCall): Promise<{ rollback(): Promise<void> } | undefined>;
  onSubagentEnded(call: { readonly childSessionKey: string; readonly reason?: string }): Promise<void>;
  dispose(): Promise<void>;
}

export interface SessionCall {
  readonly sessionId: string;
  readonly sessionKey?: string;
  readonly sessionTarget?: { readonly agentId?: string; readonly sessionId: string; readonly sessionKey: string };
  readonly runtimeSettings?: RuntimeSettings;
  readonly runtimeContext?: RuntimeContext;
}

export interface RuntimeSettings {
  readonly model?: { readonly resolved?: string | null; readonly provider?: string | null };
  /** The reserve for output in the first assembly of an attempt; null in the tool loop. */
  readonly limits?: { readonly maxOutputTokens?: number | null };
}

export interface RuntimeContext {
  readonly llm?: Llm;
  readonly config?: HostConfig;
  readonly modelContextWindow?: number;
  /** True for the `maintain` call after a turn. */
  readonly allowDeferredCompactionExecution?: boolean;
}

export interface CommitCall extends SessionCall {
  /** The host's key of the turn. */
  readonly advancementKey: string;
  /** Its last row. */
  readonly terminal: { readonly entryId: string };
  /** As in the transcript, without ids. */
  readonly messages: readonly JsonObject[];
}

export interface AssembleCall extends SessionCall {
  /** What the host would show, or what the previous call of this turn returned. */
  readonly messages: readonly JsonObject[];
  readonly tokenBudget?: number;
  /** The user's new message, in the first call of an attempt. */
  readonly prompt?: string;
}

export interface AssembleResult {
  readonly messages: readonly JsonObject[];
  readonly estimatedTokens: number;
  readonly systemPromptAddition?: string;
}

export interface CompactCall extends SessionCall {
  readonly tokenBudget?: number;
  readonly force?: boolean;
  /** The provider's count, if its refusal is the reason for this call. */
  readonly currentTokenCount?: number;
  readonly compactionTarget?: "budget" | "threshold";
  readonly customInstructions?: string;
  readonly abortSignal?: AbortSignal;
}

/** If compact throws, the host disables the whole engine until the process ends. */
export interface CompactResult {
  readonly ok: boolean;
  readonly compacted: boolean;
  readonly reason?: string;
  readonly result?: { readonly tokensBefore: number; readonly tokensAfter: number; readonly details?: JsonObject };
}

export interface SpawnCall {
  readonly parentSessionKey: string;
  /** Present if the context is forked. */
  readonly parentSessionId?: string;
  readonly childSessionKey: string;
  readonly contextMode?: "isolated" | "fork";
  readonly ttlMs?: number;
}

// ── The transcript ───────────────────────────────────────────────────────────────────────────────────────────────────

export interface TranscriptPlace {
  readonly agentId: string;
  readonly sessionKey: string;
  readonly sessionId: string;
}

export type TranscriptPage =
  | {
      readonly kind: "page";
      readonly cursor: string;
      readonly hasMore: boolean;
      readonly events: readonly { readonly seq: number; readonly event: Json }[];
      /** Present if the next event alone exceeds `maxBytes`. */
      readonly requiredBytes?: number;
    }
  /** The cursor is no longer valid; this one starts from the beginning. */
  | { readonly kind: "reset"; readonly cursor: string }
  | { readonly kind: "missing" };

/** From `openclaw/plugin-sdk/session-transcript-runtime`. During a turn, the transcript ends before that turn. */
export type ReadTranscript = (
  request: TranscriptPlace & { readonly cursor?: string; readonly maxEvents?: number; readonly maxBytes?: number },
) => Promise<TranscriptPage>;

/** From `openclaw/plugin-sdk/core`: the host's own compaction, for sessions that we do not serve. */
export type DelegateCompaction = (call: CompactCall) => Promise<CompactResult>;
