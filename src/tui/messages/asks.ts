/** What the messages screen asks: a page around a place, one whole message, and the summary that covers it. */

import { LcmError } from "../../core/base/errors.ts";
import { fileIdsOf } from "../../core/ingest/large-content.ts";
import { messageName, parseMessageId } from "../../core/model/types.ts";
import type { Conversation, ConversationId, FileId, Message, MessageId } from "../../core/model/types.ts";
import type { Store } from "../../core/model/store.ts";
import { parseWhen } from "../../core/base/parse-time.ts";
import { marksAmong, type Mark } from "../../core/recall/marks.ts";
import { bareName } from "../../format/conversations.ts";
import { sectionsOf, type MessageSection } from "../../format/messages.ts";
import { linesOf } from "../widgets/pane.ts";
import { reads, type OfConversation } from "../../operator/port.ts";
import { formatTimestamp, type Timestamp } from "../../core/base/time.ts";
import { formatCount } from "../../core/base/format.ts";
import { oneLine } from "../../format/safe-text.ts";

export type MessagePlace =
  | { readonly kind: "newest" }
  | { readonly kind: "oldest" }
  | { readonly kind: "message"; readonly id: MessageId }
  /** As typed: `#51204`, `msg_1-123`, or a time. */
  | { readonly kind: "typed"; readonly words: string; readonly zone: string; readonly now: Timestamp };

export type Arrival =
  | { readonly kind: "found"; readonly page: MessagesPage; readonly cursor: number }
  | { readonly kind: "nowhere"; readonly why: string };

type At<Where> = OfConversation & Readonly<Where>;

interface OfMessage {
  readonly message: MessageId;
}

export interface MessagesPage {
  /** Null if it no longer exists. */
  readonly conversation: { readonly name: string; readonly messages: number } | null;
  readonly messages: readonly ShownMessage[];
  /** Whether it includes the conversation's first (last) message. */
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** As much of a message as the transcript shows. */
export interface ShownMessage extends Pick<Message, "id" | "seq" | "role" | "at" | "tokens" | "aside"> {
  readonly pieces: readonly ShownPiece[];
  readonly isWhole: boolean;
  readonly files: readonly FileId[];
  /** What happened after it: a compaction, a reset, another model. */
  readonly marks: readonly Mark[];
}

interface ShownPiece {
  readonly kind: MessageSection["kind"];
  readonly lines: readonly string[];
  /** Its number of lines, including those not shown. */
  readonly count: number;
}

const pageSize = 80;

export const messagesAsks = {
  messagesAt: reads(async ({ store }, { conversation, place }: At<{ place: MessagePlace }>): Promise<Arrival> => {
    try {
      const cursor = await seqOf(store, conversation, place);
      return { kind: "found", cursor, page: await pageAround(store, conversation, cursor) };
    } catch (error) {
      if (!(error instanceof LcmError) || !["invalid", "not_found"].includes(error.code)) throw error;
      return { kind: "nowhere", why: oneLine([error.message, error.hint ?? []].flat().join(" · ")) };
    }
  }),
  messagesAround: reads(
    async ({ store }, { conversation, seq }: At<{ seq: number }>) => await pageAround(store, conversation, seq),
  ),
  /** Its lines; null if it no longer exists. */
  messageWhole: reads(async ({ store }, { message: id }: OfMessage): Promise<readonly string[] | null> => {
    const [message] = await store.messages({ ids: [id] });
    if (message === undefined) return null;
    return sectionsOf(message).flatMap(({ kind, text }, at) => [
      ...(at > 0 ? [""] : []),
      ...(kind === "thinking" ? ["(thinking)"] : []),
      ...linesOf(withLinks(text)),
    ]);
  }),
  /** The leaf that covers it, if any. */
  messageSummary: reads(async ({ store }, { message }: OfMessage) => {
    const [leaf] = await store.summaries({ ids: (await store.coveredBy(message)).slice(0, 1) });
    return leaf === undefined ? null : { conversation: leaf.conversation, summary: leaf.id };
  }),
};

async function pageAround(store: Store, conversation: ConversationId, seq: number): Promise<MessagesPage> {
  const older = await read(store, conversation, { beforeSeq: seq, limit: pageSize + 1, keep: "newest" });
  const newer = await read(store, conversation, { afterSeq: seq - 1, limit: pageSize + 1 });
  const messages = [...older.slice(-pageSize), ...newer.slice(0, pageSize)];
  const marks = await marksAmong(store, messages);
  return {
    conversation: await nameOf(store, conversation),
    messages: messages.map((message) =>
      shown(
        message,
        marks.filter(({ afterSeq }) => afterSeq === message.seq),
      ),
    ),
    isFirst: older.length <= pageSize,
    isLast: newer.length <= pageSize,
  };
}

/** Limits of what is shown of one message. */
const charactersMax = 16_000;
const piecesMax = 50;

function shown(message: Message, marks: readonly Mark[]): ShownMessage {
  const { id, seq, role, at, tokens, aside } = message;
  const all = sectionsOf(message);
  let left = charactersMax;
  const pieces = all.slice(0, piecesMax).map(({ kind, text }): ShownPiece => {
    const kept = text.slice(0, left);
    left -= kept.length;
    return { kind, lines: linesOf(withLinks(kept)), count: linesIn(text) };
  });
  const length = all.reduce((sum, { text }) => sum + text.length, 0);
  const isWhole = all.length <= piecesMax && length <= charactersMax;
  return { id, seq, role, at, tokens, aside, pieces, isWhole, files: fileIdsOf([message]), marks };
}

function linesIn(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

/** The reference to a file is worded for models; for people it names the key. */
const withLinks = (text: string): string =>
  text.replace(/\[File (file_[^\]\n]*)\. Moved out of this message; lcm_describe shows it\.\]/g, "[$1; f opens it]");

type Range = Omit<Extract<Parameters<Store["messages"]>[0], { readonly limit?: number }>, "conversation">;

const read = async (store: Store, conversation: ConversationId, range: Range): Promise<readonly Message[]> =>
  await store.messages({ conversation, ...range });

async function nameOf(store: Store, id: ConversationId): Promise<MessagesPage["conversation"]> {
  const found: Conversation | null = await store.conversation(id);
  if (found === null) return null;
  return { name: bareName(found), messages: found.totals.messages };
}

/** The `seq` of the message at a place; 0 in an empty conversation. */
async function seqOf(store: Store, conversation: ConversationId, place: MessagePlace): Promise<number> {
  const last = (await read(store, conversation, { limit: 1, keep: "newest" }))[0];
  if (last === undefined || place.kind === "newest") return last?.seq ?? 0;
  if (place.kind === "oldest") return (await read(store, conversation, { limit: 1 }))[0]?.seq ?? 0;
  if (place.kind === "message") return await seqOfMessage(store, conversation, place.id);
  const words = place.words.trim();
  const id = words.startsWith("msg_") ? parseMessageId(words) : null;
  if (id !== null) return await seqOfMessage(store, conversation, id);
  const seq = /^#?(\d{1,15})$/.exec(words)?.[1];
  if (seq === undefined) return await seqOfTime(store, conversation, last, place);
  const [found] = await read(store, conversation, { afterSeq: Number(seq) - 1, limit: 1 });
  if (found !== undefined) return found.seq;
  throw new LcmError("not_found", `there is no message ${formatCount(Number(seq))}`, {
    hint: `the last one is ${formatCount(last.seq)}`,
  });
}

async function seqOfMessage(store: Store, conversation: ConversationId, id: MessageId): Promise<number> {
  const [found] = await store.messages({ ids: [id] });
  if (found?.conversation === conversation) return found.seq;
  const where = found === undefined ? {} : { hint: `it is in conversation ${found.conversation}` };
  throw new LcmError("not_found", `${messageName(id)} is not in this conversation`, where);
}

/** The first message from that time on, by binary search: messages are in time order. */
async function seqOfTime(
  store: Store,
  conversation: ConversationId,
  last: Message,
  { words, zone, now }: Extract<MessagePlace, { readonly kind: "typed" }>,
): Promise<number> {
  const at = parseWhen("the place to go to", words, zone, now);
  if (last.at < at) {
    throw new LcmError("not_found", `there are no messages after ${formatTimestamp(at, zone)}`, {
      hint: `the last one is from ${formatTimestamp(last.at, zone)}`,
    });
  }
  let [from, to] = [1, last.seq];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const [found] = await read(store, conversation, { afterSeq: middle - 1, limit: 1 });
    if (found === undefined || found.at >= at) to = middle;
    else from = found.seq + 1;
  }
  return (await read(store, conversation, { afterSeq: from - 1, limit: 1 }))[0]?.seq ?? last.seq;
}
