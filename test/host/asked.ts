/** What a host asks its model, and what the model answers, whichever format is on the wire. */

import type { ScriptedAnswer, Step } from "../support/scripted-provider.ts";

export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

export interface Answer {
  readonly kind: "answer";
  readonly text?: string;
  readonly thinking?: string;
  readonly signature?: string;
  readonly calls?: readonly { readonly name: string; readonly args: object; readonly id?: string }[];
  readonly finish?: "stop" | "length";
  /** Whatever is absent is estimated from the length of what went over the wire. */
  readonly usage?: Partial<Usage>;
}

export type Reply =
  /** Just that text. */
  | string
  | Answer
  /** The error with which a provider refuses a prompt that is too long. */
  | { readonly kind: "overflow" }
  /** An answer in chunks, this many milliseconds apart; only the first half of it, if it breaks. */
  | { readonly kind: "drip"; readonly answer: Answer; readonly pauseMs: number; readonly breaks: boolean }
  /** Trouble: `error`, `body`, `hang`, `cut`. */
  | Exclude<Step, ScriptedAnswer | { kind: "endless" | "reply" | "vectors" }>;

/** A message from the wire, whichever format it had. */
export interface Said {
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly { readonly id: string; readonly name: string }[];
}

export interface Asked {
  /** A turn of an agent, or a single completion such as a plugin requests for a summary. */
  readonly kind: "turn" | "completion";
  readonly format: "openai" | "anthropic" | "responses";
  readonly model: string;
  /** The session key of a turn; "" for a completion. */
  readonly session: string;
  readonly system: string;
  /** Without the system prompt and without the note that the host adds at the end of every turn. */
  readonly messages: readonly Said[];
  /** The user's last message, without the time and the notes that the host puts around it. */
  readonly prompt: string;
  /** Tool results since then. */
  readonly results: readonly string[];
  readonly tools: readonly string[];
  readonly body: ReturnType<typeof JSON.parse>;
  readonly atMs: number;
}
