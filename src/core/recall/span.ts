/** Resolves which part of a record is meant: from times as people write them, from message ids, and from roles. */

import { LcmError } from "../base/errors.ts";
import { parseSpan, parseWhen } from "../base/parse-time.ts";
import { timeAfter, type Timestamp } from "../base/time.ts";
import type { Clock, SearchCaveat, SearchRequest, Store } from "../model/store.ts";
import {
  conversationIn,
  messageName,
  parseMessageId,
  roles,
  type Message,
  type MessageId,
  type Role,
} from "../model/types.ts";
import { mustReach } from "./describe.ts";
import { endWords, lastMessage, type Reach } from "./scope.ts";

/** `since`, `after` and `before` are times or messages; `around` is a message. */
export interface SpanWords {
  readonly since?: string;
  readonly after?: string;
  readonly before?: string;
  readonly around?: string;
  /** One or several, separated by commas. */
  readonly role?: string;
}

/** A message limits the reach to its conversation, since only there is it known what comes before it. */
export interface Span extends Pick<SearchRequest, "since" | "before" | "afterId" | "beforeId" | "roles"> {
  readonly reach: Reach;
  /** A message that was named and is beyond the end of its conversation; the last one was taken instead. */
  readonly beyond?: BeyondEnd;
}

export type BeyondEnd = Omit<Extract<SearchCaveat, { readonly kind: "beyond_end" }>, "kind">;

/** What the words are resolved against; `prefix` goes before their names in an error. */
export interface SpanContext {
  readonly reach: Reach;
  readonly zone: string;
  readonly prefix: "--" | "";
}

/** How many messages on either side are around one. */
const aroundMessages = 25;

export async function resolveSpan(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  words: SpanWords,
  { reach, zone, prefix }: SpanContext,
): Promise<Span> {
  const { since, after, before, around } = words;
  if (since !== undefined && after !== undefined)
    throw new LcmError("invalid", `${prefix}since and ${prefix}after exclude each other`, {
      hint: "leave one of them out",
    });
  const now = clock.now();
  const read = async (name: string, text: string | undefined): Promise<Bound> =>
    text === undefined ? {} : await resolveBound(store, text, { name: `${prefix}${name}`, reach, zone, now });
  const [from, until, near] = [
    await read("since", since ?? after),
    await read("before", before),
    await read("around", around),
  ];
  if (around !== undefined && near.message === undefined)
    throw new LcmError("invalid", `${prefix}around is ${JSON.stringify(around)}, which is not a message id`, {
      hint: "pass an id such as msg_1-42",
    });
  const afterIds = [
    ...(from.message === undefined ? [] : [from.message - (after === undefined ? 1 : 0)]),
    ...(near.message === undefined ? [] : [near.message - aroundMessages - 1]),
  ];
  const beforeIds = [
    // Before a message beyond the end is everything.
    ...(until.message === undefined ? [] : [until.beyond === undefined ? until.message : until.message + 1]),
    ...(near.message === undefined ? [] : [near.message + aroundMessages + 1]),
  ];
  const named = new Set(
    [from, until, near].flatMap(({ message }) => (message === undefined ? [] : conversationIn(message))),
  );
  const [conversation] = named;
  if (named.size > 1) throw new LcmError("invalid", "the messages belong to different conversations");
  const beyond = from.beyond ?? until.beyond ?? near.beyond;
  return {
    reach: conversation === undefined ? reach : { kind: "conversation", conversations: [conversation] },
    ...parseSpan(
      { ...(from.time && { since: from.time }), ...(until.time && { before: until.time }) },
      zone,
      now,
      prefix,
    ),
    ...(afterIds.length > 0 && { afterId: Math.max(0, ...afterIds) as MessageId }),
    ...(beforeIds.length > 0 && { beforeId: Math.min(...beforeIds) as MessageId }),
    ...(beyond && { beyond }),
    ...(words.role !== undefined && { roles: parseRoles(`${prefix}role`, words.role) }),
  };
}

/** The same, with messages as the times at which they were said; one beyond the end has none. */
export async function resolveTimes(
  deps: { readonly store: Store; readonly clock: Clock },
  words: SpanWords,
  context: SpanContext,
): Promise<Pick<Span, "since" | "before" | "roles" | "reach">> {
  const { afterId, beforeId, beyond, ...span } = await resolveSpan(deps, words, context);
  if (beyond !== undefined)
    throw new LcmError("not_found", `there is no ${messageName(beyond.asked)}: ${endWords(beyond.last)}`, {
      hint: "pass an id up to that one, or a time",
    });
  const timeOf = async (id: number | undefined): Promise<Timestamp | undefined> =>
    id === undefined ? undefined : (await deps.store.messages({ ids: [id as MessageId] }))[0]?.at;
  const last = await timeOf(afterId);
  const since =
    (await timeOf(afterId === undefined ? undefined : afterId + 1)) ?? (last === undefined ? last : timeAfter(last, 1));
  const before = await timeOf(beforeId);
  return { ...span, ...(since && { since }), ...(before && { before }) };
}

/** A message, or a time: as written, or computed from a message's own. */
interface Bound {
  readonly message?: MessageId;
  readonly beyond?: BeyondEnd;
  readonly time?: string;
}

interface BoundContext {
  readonly name: string;
  readonly reach: Reach;
  readonly zone: string;
  readonly now: Timestamp;
}

/** `3 days before msg_1-42` */
const fromMessage = /^(\d{1,4})\s*(minutes?|hours?|days?|weeks?)\s+(before|after)\s+(\S+)$/i;
const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

async function resolveBound(store: Store, text: string, context: BoundContext): Promise<Bound> {
  const { name, reach, zone, now } = context;
  const typed = text.trim();
  const [, count, unit = "", side, of = ""] = fromMessage.exec(typed) ?? [];
  const id = /^\d+$/.test(typed) ? null : parseMessageId(count === undefined ? typed : of);
  if (id === null) {
    // Checked here, so that an error names the argument; both ends are parsed together afterwards.
    parseWhen(name, text, zone, now);
    return { time: text };
  }
  const { at, id: message } = await readMessage(store, reach, id);
  if (count === undefined) return { message, ...(message !== id && { beyond: { asked: id, last: message } }) };
  const ms = Number(count) * (unitMs[unit.charAt(0).toLowerCase()] ?? 0);
  return { time: timeAfter(at, side?.toLowerCase() === "before" ? -ms : ms) };
}

/** The message, or the last one of its conversation if it is beyond that. */
async function readMessage(store: Store, reach: Reach, id: MessageId): Promise<Message> {
  const [stored] = await store.messages({ ids: [id] });
  const last = stored === undefined ? await lastMessage(store, conversationIn(id)) : undefined;
  return await mustReach(
    store,
    reach,
    stored ?? (last !== undefined && last.id < id ? last : undefined),
    messageName(id),
  );
}

export function parseRoles(name: string, text: string): readonly Role[] {
  return text
    .split(/[\s,;|]+/)
    .filter((word) => word !== "")
    .map((word) => {
      const role = roles.find((known) => known === word.toLowerCase());
      if (role !== undefined) return role;
      throw new LcmError(
        "invalid",
        `${name} is ${JSON.stringify(text)}, but must be one or several of ${roles.join(", ")}`,
      );
    });
}
