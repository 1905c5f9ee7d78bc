/** Plans and applies a prune: selects old conversations, archives them if requested, and deletes them. */

import type { Archived, Extent, Removed, Written } from "../model/changes.ts";
import { LcmError } from "../base/errors.ts";
import type { Conversation, ConversationId, Totals } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { applyOrReplan, attemptsMax } from "./apply-or-replan.ts";
import { matchesPattern } from "../model/session-pattern.ts";
import { compare } from "../base/format.ts";
import type { Timestamp } from "../base/time.ts";

/** At least one condition; a conversation is deleted if it meets all of them. */
export interface PruneRequest {
  /** No message since then; for an empty conversation, no write. */
  readonly olderThan?: Timestamp;
  /** Matches the session key or session id. */
  readonly pattern?: string;
  readonly conversations?: readonly ConversationId[];
  /** Its session was deleted in the host. */
  readonly hidden?: boolean;
}

export interface PrunePlan {
  /** Least recently active first. */
  readonly conversations: readonly PrunedConversation[];
  readonly totals: Pick<PrunedConversation, "messages" | "summaries" | "bytes" | "files" | "fileBytes"> & {
    readonly conversations: number;
  };
}

/** A conversation that would be deleted. */
export interface PrunedConversation
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
    return extent === undefined ? [] : [toPruned(conversation, extent, new Set(byId.keys()))];
  });
  const sum = (of: keyof PrunePlan["totals"] & keyof PrunedConversation): number =>
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

/** Least recently active first. Pure. */
export function choose(all: readonly Conversation[], request: PruneRequest): readonly Conversation[] {
  const { olderThan, pattern, conversations, hidden = false } = request;
  if (olderThan === undefined && pattern === undefined && conversations === undefined && !hidden) {
    throw new LcmError("invalid", "no conversations selected", {
      hint: "pass their ids, or --older-than 90d, --match 'agent:*:cron:*' or --hidden",
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

function toPruned(conversation: Conversation, extent: Extent, going: ReadonlySet<ConversationId>): PrunedConversation {
  const { id, title, sessionKey, sessionId, active, hidden, revision } = conversation;
  const { messages, summaries } = conversation.totals;
  const { bytes, files, fileBytes } = extent;
  const staying = (ids: readonly ConversationId[]): readonly ConversationId[] => ids.filter((each) => !going.has(each));
  const about = { conversation: id, revision, title, sessionKey, sessionId, active, hidden, messages, summaries };
  const size = { bytes, files, fileBytes };
  return {
    ...about,
    lastActivityAt: lastActivity(conversation),
    ...size,
    warnings: [
      ...(active && !hidden && conversation.hostCursor !== null
        ? ["the host still has this session and will store it again from the start when it next opens it"]
        : []),
      ...staying(extent.carriedBy).map(
        (carrier) => `conversation ${carrier} carries summaries from it: they stay, but can no longer be expanded`,
      ),
      ...staying(extent.tiedTo).map(
        (holder) =>
          `conversation ${holder} wrongly refers to its rows, so it cannot be deleted alone; run \`lcm doctor\``,
      ),
    ],
  };
}

export interface PruneOptions {
  /** Path of the archive to write first; without it, they are only deleted. */
  readonly archive?: string;
  /** Called once, after the archive is written and before anything is deleted. */
  readonly beforeDeleting?: () => Promise<void>;
  /** Called with the new plan if a conversation changed meanwhile. */
  readonly onReplan?: (plan: PrunePlan) => void;
}

export interface Pruned extends Removed {
  /** The plan that was applied. */
  readonly plan: PrunePlan;
  readonly archive: Archived | null;
}

/** Null if a new plan has nothing left to delete. */
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
    // `remove` checks the revisions, so the archive contains exactly what is deleted. An archive of a stale plan is our
    // own, and is overwritten.
    if (to !== undefined) archive = await store.archive(ids, to, archive !== null);
    if (plan === planned) await beforeDeleting?.();
    return await store.remove(going);
  };
  const { plan, done } = await applyOrReplan(planned, {
    apply: remove,
    replan: async () => await planPrune(store, request),
    onReplan,
    giveUp: (reason) =>
      new LcmError("conflict", `nothing was deleted: ${reason}, ${attemptsMax} times in a row`, {
        hint: `run it again when the host is less busy${archive === null ? "" : `; ${archive.path} is out of date and can be deleted`}`,
      }),
  });
  if (done.kind === "nothing") return null;
  const { change, bytes, reusable } = done;
  return { change, bytes, reusable, plan, archive };
}
