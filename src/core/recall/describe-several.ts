/** Describes several items at once: ids in a list, ranges of messages, and messages around one, with marks between. */

import { LcmError } from "../base/errors.ts";
import type { Store } from "../model/store.ts";
import {
  conversationIn,
  messageIdOf,
  parseMessageId,
  seqOf,
  type ConversationId,
  type MessageId,
  type Role,
} from "../model/types.ts";
import { describe, type Described, type DescribeRequest } from "./describe.ts";
import { marksAmong, type Mark } from "./marks.ts";
import { isWithin, lastMessage } from "./scope.ts";

export interface SeveralRequest extends DescribeRequest {
  /** How many messages on either side to add. */
  readonly around?: number;
  /** Of ranges and neighbours, only messages of these roles. */
  readonly roles?: readonly Role[];
}

export interface Several {
  readonly items: readonly Described[];
  readonly marks: readonly Mark[];
  /** Items that were asked for and did not fit, from this id on. */
  readonly leftOut: { readonly count: number; readonly from: string | null };
  /** The last message of its conversation, if messages beyond it were asked for. */
  readonly last: MessageId | null;
  readonly tokens: number;
}

/** A range may be long; what is beyond this is left out. */
const rangeMax = 200;
const idsMax = 50;
/** The least worth showing of an item. */
const leastTokens = 24;

/** Whether this names more than one item, or neighbours. */
export const namesSeveral = ({ id, around = 0 }: Pick<SeveralRequest, "id" | "around">): boolean =>
  around > 0 || /[\s,;]|^(?:msg_)?\d+-\d+(?:\.\.|…)/.test(id.trim().replace(/^message /, ""));

export async function describeSeveral(store: Store, request: SeveralRequest): Promise<Several> {
  const { around = 0, roles: _roles, ...one } = request;
  const slack = (request.wholeCap ?? request.tokenCap) / request.tokenCap;
  const asked = [...new Set(idsOf(request.id).flatMap((target) => expanded(target, around)))];
  const last = asked.length > 1 ? await endBefore(store, request, asked) : null;
  const ids = asked.length > 1 ? await existing(store, request, asked.slice(0, rangeMax), last !== null) : asked;
  const sizes = await sizesOf(store, ids);
  const shown = Math.min(ids.length, Math.max(1, Math.floor(request.tokenCap / leastTokens)));
  const caps = share(sizes.slice(0, shown), request.tokenCap);
  const items: Described[] = [];
  // Whoever looks for words looks at all of them.
  const isOnce = ids.length > 1 && request.find === undefined;
  for (const [at, id] of ids.slice(0, shown).entries()) {
    const tokenCap = Math.max(1, caps[at] ?? 1);
    items.push(
      await describe(store, { ...one, id: String(id), isOnce, tokenCap, wholeCap: Math.floor(slack * tokenCap) }),
    );
  }
  const count = asked.length > rangeMax ? asked.length - shown : ids.length - shown;
  const from = ids[shown] ?? asked[rangeMax];
  return {
    items,
    marks: await marksOf(store, items),
    last,
    leftOut: { count, from: count === 0 || from === undefined ? null : String(from) },
    tokens: items.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

/** An id as it is written, or a range of messages. */
type Target = string | { readonly first: MessageId; readonly last: MessageId };

/** Reads `msg_1-74..msg_1-77`, `msg_1-74..77`, and ids separated by commas or blanks. */
function idsOf(text: string): readonly Target[] {
  const words = text
    .replace(/\s*(?:\.{2,3}|…|\bto\b)\s*/g, "..")
    .replace(/message (?=\d)/g, "msg_")
    .split(/[\s,;]+/)
    .filter((word) => word !== "");
  if (words.length > idsMax)
    throw new LcmError("invalid", `${words.length} ids are too many: pass at most ${idsMax}`, {
      hint: "name consecutive messages as a range, such as msg_1-74..77",
    });
  return words.map((word) => (/^(?:msg_)?\d+-\d+\.\./.test(word) ? rangeOf(word) : word));
}

function rangeOf(word: string): Target {
  const [from = "", to = ""] = word.split("..");
  const first = parseMessageId(from);
  const seq = /^\d{1,8}$/.test(to) ? Number(to) : null;
  const last = first === null || seq === null ? parseMessageId(to) : messageIdOf(conversationIn(first), seq);
  if (first === null || last === null || conversationIn(first) !== conversationIn(last) || last < first)
    throw new LcmError("invalid", `${JSON.stringify(word)} is not a range of messages`, {
      hint: "for example msg_1-74..msg_1-77, or msg_1-74..77",
    });
  return { first, last };
}

function expanded(target: Target, around: number): readonly (string | MessageId)[] {
  const message = typeof target === "string" ? parseMessageId(target) : null;
  if (typeof target === "string" && (message === null || around === 0)) return [message ?? target];
  const { first, last } =
    typeof target === "string" ? { first: message ?? (0 as MessageId), last: message ?? (0 as MessageId) } : target;
  const conversation = conversationIn(first);
  const start = Math.max(1, seqOf(first) - around);
  const length = Math.min(rangeMax + 1, seqOf(last) + around - start + 1);
  return Array.from({ length }, (_, index) => messageIdOf(conversation, start + index));
}

/** The last message of a conversation within reach, if one that is beyond it was asked for. */
async function endBefore(
  store: Store,
  { reach }: DescribeRequest,
  ids: readonly (string | MessageId)[],
): Promise<MessageId | null> {
  const furthest = ids.findLast((id) => typeof id === "number");
  if (furthest === undefined || !(await isWithin(store, reach, conversationIn(furthest)))) return null;
  const last = await lastMessage(store, conversationIn(furthest));
  return last === undefined || last.id >= furthest ? null : last.id;
}

/** Of a range, the messages that exist and have one of the roles; nothing at all is an error, unless the end says why. */
async function existing(
  store: Store,
  { reach, roles }: SeveralRequest,
  ids: readonly (string | MessageId)[],
  isBeyond: boolean,
): Promise<readonly (string | MessageId)[]> {
  const messages = ids.filter((id) => typeof id === "number");
  if (messages.length === 0) return ids;
  const within = new Map<ConversationId, boolean>();
  const stored = new Set<MessageId>();
  let isAny = false;
  for (const { id, conversation, role } of await store.messages({ ids: messages })) {
    if (!within.has(conversation)) within.set(conversation, await isWithin(store, reach, conversation));
    if (within.get(conversation) !== true) continue;
    isAny = true;
    if (roles?.includes(role) !== false) stored.add(id);
  }
  const found = ids.filter((id) => typeof id === "string" || stored.has(id));
  return found.length === 0 && !isAny && !isBeyond ? ids.slice(0, 1) : found;
}

async function sizesOf(store: Store, ids: readonly (string | MessageId)[]): Promise<readonly number[]> {
  const messages = ids.filter((id) => typeof id === "number");
  const tokens = new Map(
    (messages.length === 0 ? [] : await store.messages({ ids: messages })).map((each) => [each.id, each.tokens]),
  );
  return ids.map((id) => (typeof id === "number" ? (tokens.get(id) ?? 0) : Infinity));
}

/** Short items get what they need, the long ones share the rest equally. */
function share(sizes: readonly number[], tokens: number): readonly number[] {
  const caps = new Map<number, number>();
  let [left, waiting] = [tokens, sizes.length];
  for (const [at, size] of [...sizes.entries()].toSorted(([, one], [, other]) => one - other)) {
    const cap = Math.min(Math.max(size, leastTokens), Math.floor(left / waiting));
    caps.set(at, cap);
    left -= Math.min(cap, size);
    waiting -= 1;
  }
  return sizes.map((_, at) => caps.get(at) ?? 0);
}

/** Marks within each run of consecutive messages. */
async function marksOf(store: Store, items: readonly Described[]): Promise<readonly Mark[]> {
  const runs: (typeof messages)[] = [];
  const messages = items.flatMap((item) => (item.kind === "message" ? [item.message] : []));
  for (const message of messages) {
    const last = runs.at(-1)?.at(-1);
    if (last?.conversation === message.conversation && last.seq === message.seq - 1) runs.at(-1)?.push(message);
    else runs.push([message]);
  }
  const marks = new Map<string, Mark>();
  for (const run of runs.filter(({ length }) => length > 1))
    for (const mark of await marksAmong(store, run)) marks.set(`${mark.afterSeq} ${mark.at ?? ""} ${mark.text}`, mark);
  return [...marks.values()];
}
