/** The state of one turn: what the host showed at its beginning, what we have shown since, and its budget. */

import { jsonText, type Json } from "../../core/base/json.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import { isCallBlock } from "../../core/messages/dialects.ts";
import type { Sent } from "../../core/seen/record.ts";
import { notRecorded, type Recording } from "../shared/prompt-records.ts";
import { textOf } from "../shared/message-fields.ts";
import type { AssembleCall, AssembleResult, SessionCall, TranscriptPlace } from "./host-api.ts";
import { beginAttempt, isFirstCall, type Attempt } from "./prompt-budget.ts";
import { placeOf } from "./sessions.ts";
import { sumTokens } from "../shared/prompts.ts";

export class LiveTurn {
  /** The prompt of this turn. It stays unchanged as long as it fits, whatever is folded meanwhile. */
  shown: AssembleResult | null = null;
  attempt: Attempt | null = null;
  /** The record of the last prompt. */
  recording: Recording = notRecorded;
  /** Why messages from before this turn are missing from the store; null if none are. */
  behind: string | null = null;
  #target: SessionCall["sessionTarget"];
  #begun: readonly HostMessage[] | null = null;
  #unstored: Unstored = { messages: [], repeats: () => false };

  begin({ sessionTarget }: SessionCall): void {
    this.#target = sessionTarget;
    this.shown = null;
    this.behind = null;
  }

  end(): void {
    this.shown = null;
    this.#begun = null;
  }

  /** The host names the agent when a turn begins but not when it assembles, and not every key contains the agent. */
  placeOf(call: AssembleCall): TranscriptPlace {
    const target = this.#target;
    return placeOf(
      target !== undefined && target.sessionKey === call.sessionKey ? { ...call, sessionTarget: target } : call,
    );
  }

  attemptOf(call: AssembleCall): Attempt {
    if (this.attempt !== null && !isFirstCall(call)) return this.attempt;
    this.#begun ??= call.messages;
    this.#unstored = findUnstored(call, this.#begun);
    this.shown = null;
    return (this.attempt = beginAttempt(call));
  }

  get unstoredTokens(): number {
    return sumTokens(this.#unstored.messages);
  }

  /** Appends what is not stored yet, and cuts off the stored messages that it repeats. */
  append(stored: readonly HostMessage[], storedTokens: number): WithLive {
    const { messages, repeats } = this.#unstored;
    const end = startOfRepeats(stored, repeats);
    return {
      sent: { messages: end, live: messages.length, liveTokens: this.unstoredTokens },
      messages: [...stored.slice(0, end), ...messages],
      tokens: storedTokens + this.unstoredTokens - sumTokens(stored.slice(end)),
    };
  }
}

interface WithLive {
  readonly messages: readonly HostMessage[];
  readonly tokens: number;
  /** For the record of the prompt. */
  readonly sent: Sent;
}

/** Messages of the live turn that are not stored yet. */
interface Unstored {
  readonly messages: readonly HostMessage[];
  /** Whether the live turn contains this stored text as well. */
  readonly repeats: (text: string) => boolean;
}

/**
 * When a turn is retried after an overflow or an empty answer, the host shows its earlier messages as history. It also
 * joins consecutive user messages, so the last one from before may have become the first one of the turn.
 *
 * If a gateway restart left a user message unanswered, the host moves it into the next prompt, but its transcript shows
 * that only after we have read it.
 */
function findUnstored({ messages, prompt = "" }: AssembleCall, begun: readonly HostMessage[]): Unstored {
  const last = begun.at(-1);
  // With a history limit the host may now show fewer messages than it did first.
  const lastJson = jsonText(last ?? null);
  const at = messages.slice(0, begun.length).findLastIndex((message) => jsonText(message) === lastJson);
  const joined = messages[begun.length - 1];
  if (at < 0 && last?.["role"] === "user" && joined !== undefined) {
    const joinedText = textOf(joined["content"]);
    return { messages: messages.slice(begun.length - 1), repeats: (text) => joinedText.includes(text) };
  }
  const newest = textOf(messages.at(-1)?.["content"]);
  return {
    messages: messages.slice(at >= 0 ? at + 1 : begun.length),
    repeats: (text) => prompt.includes(text) && !newest.includes(text),
  };
}

/** Only trailing user messages count, with empty assistant messages between them. */
function startOfRepeats(messages: readonly HostMessage[], repeats: Unstored["repeats"]): number {
  let start = messages.length;
  for (const [at, { role, content }] of [...messages.entries()].reverse()) {
    const text = textOf(content).trim();
    if (role === "user" && text !== "" && repeats(text)) start = at;
    else if (role !== "assistant" || text !== "" || hasCalls(content)) break;
  }
  return start;
}

const hasCalls = (content: Json | undefined): boolean => Array.isArray(content) && content.some(isCallBlock);
