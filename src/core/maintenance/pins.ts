/**
 * Pins and unpins what a user said, for a person or the agent, and finds standing instructions in messages that were
 * stored before there were pins. Only a user's message can be pinned, whole or in part, in the user's own words.
 */

import { LcmError } from "../base/errors.ts";
import { plural } from "../base/format.ts";
import { firstSentences, findWords, pinsIn, findStanding, wordsMax } from "../messages/standing.ts";
import type { Changed, PinPlan } from "../model/changes.ts";
import { mustFind } from "../model/find-conversation.ts";
import { isAutomated } from "../model/session-pattern.ts";
import type { Store } from "../model/store.ts";
import { messageName } from "../model/types.ts";
import type { ConversationId, Message, MessageId, NewPin, Pin } from "../model/types.ts";
import { applyOrReplan } from "./apply-or-replan.ts";

export interface PinRequest {
  readonly message: MessageId;
  /** Whose prompts show it; by default the message's own conversation. */
  readonly conversation?: ConversationId;
  /** Part of the message, verbatim. By default its standing instructions, else its beginning. */
  readonly text?: string;
  readonly reason?: string;
  readonly by: "person" | "agent";
}

export interface PinChange extends PinPlan {
  /** As it is now; null if it was never pinned. */
  readonly before: Pin | null;
}

/** Throws `not_found`, or `invalid` if it is not the user's, does not say this, or would change nothing. */
export async function planPin(store: Store, request: PinRequest): Promise<PinChange> {
  const message = await mustFindMessage(store, request.message);
  const { by, text, reason = "" } = request;
  const words = wordsToPin(message, text, by);
  const pin = { message: message.id, words, saidAt: message.at, state: "pinned", origin: by, reason } as const;
  const change = await changeOf(store, request.conversation ?? message.conversation, pin);
  if (change.before?.state === "pinned" && change.before.words === words)
    throw new LcmError("invalid", `${messageName(message.id)} is pinned already`, {
      hint: "list pins with `lcm pins`",
    });
  return change;
}

/** It stays unpinned, whatever cues or models find in it later. */
export async function planUnpin(store: Store, request: Omit<PinRequest, "text">): Promise<PinChange> {
  const { message, by, reason = "" } = request;
  const conversation = request.conversation ?? (await mustFindMessage(store, message)).conversation;
  const known = (await store.pins(conversation)).find((each) => each.message === message);
  if (known?.state !== "pinned")
    throw new LcmError("not_found", `${messageName(message)} is not pinned in conversation ${conversation}`, {
      hint: "list pins with `lcm pins CONVERSATION`",
    });
  const { words, saidAt } = known;
  return await changeOf(store, conversation, { message, words, saidAt, state: "unpinned", origin: by, reason });
}

async function changeOf(store: Store, conversation: ConversationId, pin: NewPin): Promise<PinChange> {
  const { forgets } = await mustFind(store, conversation);
  const before = (await store.pins(conversation)).find(({ message }) => message === pin.message) ?? null;
  return { conversation, pin, forgets, before };
}

async function mustFindMessage(store: Store, id: MessageId): Promise<Message> {
  const [message] = await store.messages({ ids: [id] });
  if (message !== undefined) return message;
  throw new LcmError("not_found", `there is no ${messageName(id)}`, { hint: "find messages with `lcm grep`" });
}

function wordsToPin(message: Message, text: string | undefined, by: PinRequest["by"]): string {
  const name = messageName(message.id);
  if (message.role !== "user")
    throw new LcmError("invalid", `${name} is a message of the ${message.role}; only what a user said can be pinned`);
  if (text === undefined) {
    const words = findStanding(message)?.words ?? firstSentences(message);
    if (words !== null) return words;
    throw new LcmError("invalid", `${name} has no words of the user`, { hint: "pin another message" });
  }
  if (text.trim().length > wordsMax)
    throw new LcmError("invalid", `a pin has at most ${plural(wordsMax, "character")}`, { hint: "pin one sentence" });
  const words = findWords(message, text, by === "person" ? "all" : "own");
  if (words !== null) return words;
  const whose = by === "person" ? "" : " in the user's own words";
  throw new LcmError("invalid", `${name} does not say that${whose}`, { hint: "copy the words from the message" });
}

/** Applies a change as planned; plans again if something was forgotten meanwhile. */
export async function pin(store: Store, change: PinChange): Promise<Changed> {
  const { pin: wanted, conversation } = change;
  const { message, words, reason, origin } = wanted;
  const by = origin === "agent" ? "agent" : "person";
  const { done } = await applyOrReplan(change, {
    apply: async (plan) => await store.pin(plan),
    replan: async () =>
      wanted.state === "pinned"
        ? await planPin(store, { message, conversation, text: words, reason, by })
        : await planUnpin(store, { message, conversation, reason, by }),
  });
  return { change: done.change };
}

export interface FindPinsOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (messagesRead: number) => void;
}

/** What cues find in all messages of a conversation, without what is pinned or unpinned already. Changes nothing. */
export async function findPins(
  store: Store,
  conversation: ConversationId,
  { signal, onProgress }: FindPinsOptions = {},
): Promise<{ readonly conversation: ConversationId; readonly found: readonly NewPin[]; readonly forgets: number }> {
  const { forgets, sessionKey } = await mustFind(store, conversation);
  const known = new Set((await store.pins(conversation)).map(({ message }) => message));
  const found: NewPin[] = [];
  let read = 0;
  for (let afterSeq = 0; !isAutomated(sessionKey);) {
    signal?.throwIfAborted();
    const page = await store.messages({ conversation, afterSeq, role: "user", limit: messagesPerPage });
    const last = page.at(-1);
    if (last === undefined) break;
    found.push(...pinsIn(page).filter(({ message }) => !known.has(message)));
    afterSeq = last.seq;
    onProgress?.((read += page.length));
  }
  return { conversation, found, forgets };
}

const messagesPerPage = 500;

/** Pins everything that was found, as one change; null if there is nothing to pin. */
export async function pinFound(store: Store, plan: Awaited<ReturnType<typeof findPins>>): Promise<Changed | null> {
  const { conversation, found, forgets } = plan;
  let partOf: Changed | undefined;
  for (const each of found) {
    const written = await store.pin({ conversation, pin: each, forgets }, partOf);
    if (written.kind === "stale")
      throw new LcmError("conflict", `${written.reason}; what was pinned so far stays`, { hint: "run it again" });
    partOf = { change: written.change };
  }
  return partOf ?? null;
}
