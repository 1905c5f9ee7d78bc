/**
 * Everything that we rely on in OpenCode (1.18), written down from its own types and from runs: what a plugin gets, its
 * hooks, the messages, and the calls of its client. OpenCode gives plugins a live server; its packages are not ours.
 */

import type { JsonObject } from "../../core/base/json.ts";

/** A message as the host's database and prompts have it. The fields that we do not name are kept as they are. */
export interface HostMessageRow {
  readonly info: MessageInfo;
  readonly parts: readonly HostPart[];
}

export interface MessageInfo extends JsonObject {
  readonly id: string;
  readonly sessionID: string;
  readonly role: string;
}

export interface HostPart extends JsonObject {
  readonly type: string;
}

export interface SessionInfo extends JsonObject {
  readonly id: string;
  readonly directory?: string;
  readonly parentID?: string;
}

export interface ModelLimit {
  readonly context: number;
  readonly output: number;
  /** For models that take less than their window as input. */
  readonly input?: number;
}

type Answer<T> = Promise<{ readonly data?: T; readonly error?: unknown }>;

export interface HostClient {
  readonly session: {
    get(call: { readonly path: { readonly id: string } }): Answer<SessionInfo>;
    /** The newest ones if limited, oldest first. */
    messages(call: {
      readonly path: { readonly id: string };
      readonly query?: { readonly limit: number };
    }): Answer<readonly HostMessageRow[]>;
    /** Returns before the model has answered. */
    promptAsync(call: {
      readonly path: { readonly id: string };
      readonly body: { readonly parts: readonly HostPart[]; readonly agent?: string };
    }): Answer<unknown>;
  };
  readonly config: {
    providers(): Answer<{
      readonly providers: readonly {
        readonly id: string;
        readonly models: Readonly<Record<string, { readonly limit?: ModelLimit }>>;
      }[];
    }>;
  };
  readonly app: {
    log(call: {
      readonly body: { readonly service: string; readonly level: "info" | "warn"; readonly message: string };
    }): Answer<unknown>;
  };
}

export interface PluginInput {
  readonly client: HostClient;
  /** The folder that the server works in. */
  readonly directory: string;
}

export interface HostConfig {
  compaction?: { auto?: boolean | undefined };
  command?: Record<string, { readonly template: string; readonly description: string }>;
}

export interface HostEvent {
  readonly type: string;
  readonly properties: JsonObject;
}

export interface ToolCall {
  readonly sessionID: string;
  readonly abort: AbortSignal;
  readonly metadata: (shown: { readonly title: string }) => void;
}

export interface HostTool {
  readonly description: string;
  /** JSON Schemas of the arguments. The host takes all of them for required: `tool.definition` corrects that. */
  readonly args: JsonObject;
  execute(args: JsonObject, call: ToolCall): Promise<string>;
}

/** An error in a hook fails the turn. What a hook has to say, it writes into its second argument. */
export interface Hooks {
  /** Once, with the live configuration: later changes of it take effect. */
  config(config: HostConfig): Promise<void>;
  event(told: { readonly event: HostEvent }): Promise<void>;
  readonly tool: Readonly<Record<string, HostTool>>;
  "tool.definition"(about: { readonly toolID: string }, definition: { jsonSchema?: JsonObject }): Promise<void>;
  /** Before every request of a turn, and before the request for a compaction; the list is to be changed in place. */
  "experimental.chat.messages.transform"(about: object, prompt: { readonly messages: HostMessageRow[] }): Promise<void>;
  "experimental.chat.system.transform"(
    about: { readonly sessionID?: string },
    prompt: { readonly system: string[] },
  ): Promise<void>;
  /** Directly before the transform of a compaction. */
  "experimental.session.compacting"(about: { readonly sessionID: string }): Promise<void>;
  "command.execute.before"(
    about: { readonly command: string; readonly sessionID: string; readonly arguments: string },
    prompt: { readonly parts: HostPart[] },
  ): Promise<void>;
  dispose(): Promise<void>;
}
