/**
 * Old conversations, out: deleted, or first put into an archive from which they can be brought back. Which ones is said by
 * age, by name or one by one; nothing is chosen that nobody asked for.
 */

import type { Archived, Extent, Removed, Written } from "../model/changes.ts";
import { databaseFileOf } from "../model/database-file.ts";
import { LcmError } from "../base/errors.ts";
import type { Conversation, ConversationId, Totals } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { applyOrReplan, attemptsMax } from "./apply-or-replan.ts";
import { matchesPattern } from "../model/session-pattern.ts";
import { compare } from "../base/format.ts";
import type { Timestamp } from "../base/time.ts";

/** At least one; a conversation goes if all hold. */
export interface PruneRequest {
  /** Nothing was said in it, or done to one without messages, since then. */
  readonly olderThan?: Timestamp;
  /** Its session key or its session id is like that. */
  readonly pattern?: string;
  /** It is one of these. */
  readonly conversations?: readonly ConversationId[];
  /** Its session was deleted in the host. */
  readonly hidden?: boolean;
}

export interface PrunePlan {
  /** Longest silent first. */
  readonly conversations: readonly Leaving[];
  readonly totals: Pick<Leaving, "messages" | "summaries" | "bytes" | "files" | "fileBytes"> & {
    readonly conversations: number;
  };
}

/** A conversation that would go. */
export interface Leaving
  extends
    Pick<Conversation, "revision" | "title" | "sessionKey" | "sessionId" | "active" | "hidden">,
    Pick<Totals, "messages" | "summaries">,
    Pick<Extent, "conversation" | "bytes" | "files" | "fileBytes"> {
  readonly lastActivityAt: Timestamp;
  readonly warnings: readonly string[];
}

export async function planPrune(store: Store, request: PruneRequest): Promise<PrunePlan> {
  const chosen = choose(await store.conversations({ includeHidden: true }), request);
  const extents = await store.extents(chosen.map(({ id }) => id));
  const byId = new Map(extents.map((extent) => [extent.conversation, extent]));
  const conversations = chosen.flatMap((conversation) => {
    const extent = byId.get(conversation.id);
    return extent === undefined ? [] : [toLeaving(conversation, extent, new Set(byId.keys()))];
  });
  const sum = (of: keyof PrunePlan["totals"] & keyof Leaving): number =>
    conversations.reduce((total, each) => total + each[of], 0);
  return {
    conversations,
    totals: {
      conversations: conversations.length,
      messages: sum("messages"),
      summaries: sum("summaries"),
      bytes: sum("bytes"),
      files: sum("files"),
      fileBytes: sum("fileBytes"),
    },
  };
}

/** Longest silent first. Pure. */
export function choose(all: readonly Conversation[], request: PruneRequest): readonly Conversation[] {
  const { olderThan, pattern, conversations, hidden = false } = request;
  if (olderThan === undefined && pattern === undefined && conversations === undefined && !hidden) {
    throw new LcmError("invalid", "which conversations should go is not said", {
      hint: "name them, or say --older-than 90d, --match 'agent:*:cron:*' or --hidden",
    });
  }
  return all
    .filter(
      (each) =>
        (olderThan === undefined || lastActivity(each) < olderThan) &&
        (pattern === undefined || namesOf(each).some((name) => matchesPattern(pattern, name))) &&
        (conversations === undefined || conversations.includes(each.id)) &&
        (!hidden || each.hidden),
    )
    .toSorted((a, b) => compare(lastActivity(a), lastActivity(b)) || a.id - b.id);
}

const lastActivity = ({ lastMessageAt, updatedAt }: Conversation): Timestamp => lastMessageAt ?? updatedAt;

const namesOf = ({ sessionKey, sessionId }: Conversation): readonly string[] =>
  sessionKey === null ? [sessionId] : [sessionKey, sessionId];

function toLeaving(conversation: Conversation, extent: Extent, going: ReadonlySet<ConversationId>): Leaving {
  const { id, title, sessionKey, sessionId, active, hidden, revision } = conversation;
  const { messages, summaries } = conversation.totals;
  const { bytes, files, fileBytes } = extent;
  const staying = (ids: readonly ConversationId[]): readonly ConversationId[] => ids.filter((each) => !going.has(each));
  return {
    conversation: id,
    revision,
    title,
    sessionKey,
    sessionId,
    active,
    hidden,
    messages,
    summaries,
    lastActivityAt: lastActivity(conversation),
    bytes,
    files,
    fileBytes,
    warnings: [
      ...(active && !hidden && conversation.hostCursor !== null
        ? ["the host still has this session: it stores it again, from the start, when it next opens it"]
        : []),
      ...staying(extent.carriedBy).map(
        (carrier) => `conversation ${carrier} carries summaries of it: they stay, and can no longer be expanded`,
      ),
      ...staying(extent.tiedTo).map(
        (holder) => `conversation ${holder} points to rows of it, by mistake: it cannot go alone; see \`lcm doctor\``,
      ),
    ],
  };
}

// ── Doing it ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface PruneOptions {
  /** Where they are put before they go; without it they are only deleted. */
  readonly archive?: string;
  /** Once, when an archive is written, if one is wanted, and before anything is deleted. */
  readonly beforeDeleting?: () => Promise<void>;
  /** One of them was written to meanwhile, and this is the plan now. */
  readonly onReplan?: (plan: PrunePlan) => void;
}

export interface Pruned extends Removed {
  /** What was done in the end. */
  readonly plan: PrunePlan;
  readonly archive: Archived | null;
}

/** Null if, planned again, there is nothing left that would go. */
export async function prune(
  store: Store,
  request: PruneRequest,
  planned: PrunePlan,
  { archive: to, beforeDeleting, onReplan }: PruneOptions = {},
): Promise<Pruned | null> {
  let archive: Archived | null = null;
  const remove = async (plan: PrunePlan): Promise<Written<Removed> | { readonly kind: "nothing" }> => {
    if (plan.conversations.length === 0) return { kind: "nothing" };
    const going = plan.conversations.map(({ conversation, revision }) => ({ conversation, revision }));
    const ids = going.map(({ conversation }) => conversation);
    // What is removed is as it was planned, and so it is in the archive, which was written since. One that was overtaken
    // is this command's own to replace.
    if (to !== undefined) archive = await databaseFileOf(store).archive(ids, to, archive !== null);
    if (plan === planned) await beforeDeleting?.();
    return await store.remove(going);
  };
  const { plan, done } = await applyOrReplan(planned, {
    apply: remove,
    replan: async () => await planPrune(store, request),
    onReplan,
    giveUp: (reason) =>
      new LcmError("conflict", `nothing was deleted: ${reason}, ${attemptsMax} times`, {
        hint: `run it again when less is going on${archive === null ? "" : `; ${archive.path} is out of date, and can go`}`,
      }),
  });
  if (done.kind === "nothing") return null;
  const { change, bytes, reusable } = done;
  return { change, bytes, reusable, plan, archive };
}
