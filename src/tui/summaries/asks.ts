/**
 * What the tree of summaries asks: the items of the context as ids, what an open summary was made from, what the rows
 * say that are seen, and all of the selected one. However long the conversation is, that much is read and no more.
 */

import { LcmError } from "../../core/base/errors.ts";
import { tailOrdinal } from "../../core/compaction/find-runs.ts";
import type { Lcm } from "../../core/lcm.ts";
import type {
  ContextItem,
  Conversation,
  ConversationId,
  Message,
  MessageId,
  Sources,
  Summary,
  SummaryId,
} from "../../core/model/types.ts";
import type { Store } from "../../core/model/store.ts";
import { summaryBefore } from "../../core/summarize/source.ts";
import { inShort, openingOf, wholeLines } from "../../format/messages.ts";
import { createPaint } from "../../format/paint.ts";
import { reads } from "../port.ts";
import type { OfConversation } from "../port.ts";
import { stripOf } from "./strip.ts";
import type { Stretch, Strip } from "./strip.ts";
import type { Entry, Run } from "./tree.ts";
import type { Timestamp } from "../../core/base/time.ts";

export interface DagTop {
  readonly conversation: Conversation;
  readonly entries: readonly Entry[];
  /** Looked for at once only where that is quick; null where it was not. */
  readonly outside: readonly SummaryId[] | null;
  readonly strip: Strip | null;
}

interface OfSummary {
  readonly summary: SummaryId;
}

/** Of the rows that are seen: their ids, or what they say. */
interface Rows<S, M> {
  readonly summaries: readonly S[];
  readonly messages: readonly M[];
}

/** What a row says of a summary. */
export interface SummaryFacts extends Pick<Summary, "id" | "depth" | "level" | "tokens"> {
  /** How many it was made from. */
  readonly from: number;
  readonly earliestAt: Timestamp;
  readonly latestAt: Timestamp;
  readonly isCarried: boolean;
  /** Whether its text no longer fits its sources. */
  readonly isStale: boolean;
  readonly opening: string;
}

export interface MessageFacts extends Pick<Message, "id" | "role" | "tokens" | "at"> {
  readonly opening: string;
}

/** The way down to a summary, itself the last, and what each on it was made from. */
export interface DagPath {
  readonly path: readonly SummaryId[];
  readonly sources: ReadonlyMap<SummaryId, Sources>;
  readonly isOutside: boolean;
}

export type DagDetail =
  | {
      readonly kind: "summary";
      readonly summary: Omit<Summary, "previousContext">;
      readonly sources: Sources;
      /** What was made from it, and which of a later segment carries its text. */
      readonly derived: readonly SummaryId[];
      readonly carriedBy: readonly SummaryId[];
      /** The conversation of the summary whose text it carries; null where there is none, or none any more. */
      readonly origin: ConversationId | null;
    }
  | { readonly kind: "message"; readonly message: MessageFacts & { readonly seq: number }; readonly text: string };

/** What came before a summary: as its prompt was given it, as a rewrite's would be, or nothing. */
export interface Previous {
  readonly summary: Pick<Summary, "id" | "depth" | "level" | "model">;
  readonly recorded: string | null;
  readonly recomputed: Pick<Summary, "id" | "text"> | null;
}

/** Items of a context that are looked at one by one. Of more, the older summaries are, and raw messages are counted. */
const itemsMax = 2_000;
/** Summaries of a context, in all. */
const summariesMax = 10_000;
/** Up to so many summaries of a conversation, those that nothing uses are looked for unasked. */
const quickSummaries = 2_000;
const outsideMax = 1_000;
const openingWidth = 200;
const messageCharacters = 20_000;
const batch = 500;

export const dagAsks = {
  dagTop: reads(async (lcm, { conversation: id }: OfConversation, { signal }): Promise<DagTop> => {
    const conversation = await lcm.store.conversation(id);
    if (conversation === null) throw new LcmError("not_found", `there is no conversation ${id} any more`);
    const isQuick = conversation.totals.summaries <= quickSummaries;
    const entries = await readEntries(lcm, conversation);
    return {
      conversation,
      entries,
      outside: isQuick ? await lcm.store.unused(id, outsideMax) : null,
      strip: stripOf(await readStretches(lcm, entries, signal), conversation.lastMessageAt),
    };
  }),
  dagOutside: reads(
    async ({ store }, { conversation }: OfConversation) => await store.unused(conversation, outsideMax),
  ),
  dagSources: reads(async ({ store }, { ids }: { readonly ids: readonly SummaryId[] }) => await store.sources(ids)),
  dagFacts: reads(async ({ store }, { summaries, messages }: Rows<SummaryId, MessageId>) => {
    const sources = await store.sources(summaries);
    return {
      summaries: (await store.summaries({ ids: summaries })).map((each) => summaryFacts(each, sources.get(each.id))),
      messages: (await store.messages({ ids: messages })).map(messageFacts),
    };
  }),
  dagPath: reads(async ({ store }, { conversation, summary }: OfSummary & OfConversation): Promise<DagPath | null> => {
    const [found] = await store.summaries({ ids: [summary] });
    if (found?.conversation !== conversation) return null;
    const shown = await store.context(conversation, { kind: "summary", limit: summariesMax, keep: "newest" });
    const { path, isOutside } = await pathTo(store, new Set(shown.map(({ id }) => id)), summary);
    return { path, isOutside, sources: await store.sources(path.slice(0, -1)) };
  }),
  dagDetail: reads(async ({ store }, { of }: { readonly of: SummaryId | MessageId }) =>
    typeof of === "number" ? await messageDetail(store, of) : await summaryDetail(store, of),
  ),
  dagPrevious: reads(async ({ store }, { summary: id }: OfSummary): Promise<Previous> => {
    const summary = await mustFind(store, id);
    const { depth, level, model, previousContext: recorded } = summary;
    const before = recorded === null && depth <= 1 ? await summaryBefore(store, summary) : null;
    return { summary: { id, depth, level, model }, recorded, recomputed: before };
  }),
};

// ── The context ──────────────────────────────────────────────────────────────────────────────────────────────────────

async function readEntries({ store, settings }: Lcm, { id, totals }: Conversation): Promise<readonly Entry[]> {
  const items = await store.context(id, { limit: itemsMax, keep: "newest" });
  const tail = await tailOrdinal(store, id, settings.freshTailCount);
  const entries = entriesOf(items, tail);
  const [start] = items;
  if (start === undefined || items.length >= totals.contextItems) return entries;
  const before = { before: start.ordinal, kind: "summary", limit: summariesMax, keep: "newest" } as const;
  const older = (await store.context(id, before)).flatMap((item) => (item.kind === "summary" ? [item] : []));
  const [oldest] = await store.context(id, { kind: "message", limit: 1 });
  const runs = entries.flatMap((entry) => (entry.kind === "run" ? [entry] : []));
  const count = totals.contextMessages - runs.reduce((sum, run) => sum + run.count, 0);
  const tokens = totals.contextMessageTokens - runs.reduce((sum, run) => sum + run.tokens, 0);
  const [first, ...others] = entries;
  if (oldest?.kind !== "message" || count <= 0) return [...older.map(toEntry), ...entries];
  // Without summaries between them, they are the beginning of the first run; else nobody knows where among those they lie.
  if (older.length === 0 && first?.kind === "run" && first.place === "older")
    return [{ ...first, first: oldest.id, count: first.count + count, tokens: first.tokens + tokens }, ...others];
  const place = older.length === 0 ? "older" : "anywhere";
  const run: Run = { kind: "run", first: oldest.id, last: oldest.id, count, tokens, place };
  return [run, ...older.map(toEntry), ...entries];
}

const toEntry = ({ id }: { readonly id: SummaryId }): Entry => ({ kind: "summary", id });

function entriesOf(items: readonly ContextItem[], tail: number): readonly Entry[] {
  const entries: Entry[] = [];
  for (const item of items) {
    if (item.kind === "summary") {
      entries.push(toEntry(item));
      continue;
    }
    const before = entries.at(-1);
    const place = item.ordinal >= tail ? "tail" : "older";
    const isSame = before?.kind === "run" && before.place === place;
    const run: Run = isSame
      ? { ...before, last: item.id, count: before.count + 1, tokens: before.tokens + item.tokens }
      : { kind: "run", first: item.id, last: item.id, count: 1, tokens: item.tokens, place };
    if (isSame) entries.pop();
    entries.push(run);
  }
  return entries;
}

/** Texts come along with when a summary begins, so they are read in batches and let go. */
async function readStretches(
  { store }: Lcm,
  entries: readonly Entry[],
  signal: AbortSignal,
): Promise<readonly Stretch[]> {
  const stretches: Stretch[] = [];
  for (let from = 0; from < entries.length; from += batch) {
    signal.throwIfAborted();
    const some = entries.slice(from, from + batch);
    const summaries = await store.summaries({
      ids: some.flatMap((each) => (each.kind === "summary" ? [each.id] : [])),
    });
    const messages = await store.messages({ ids: some.flatMap((each) => (each.kind === "run" ? [each.first] : [])) });
    const byId = new Map<unknown, Stretch>([
      ...summaries.map((each): [SummaryId, Stretch] => [each.id, summaryStretch(each)]),
      ...messages.map((each): [MessageId, Stretch] => [each.id, { depth: -1, from: each.at }]),
    ]);
    for (const entry of some) {
      const stretch = byId.get(entry.kind === "summary" ? entry.id : entry.first);
      const isTail = entry.kind === "run" && entry.place === "tail";
      if (stretch !== undefined) stretches.push(isTail ? { ...stretch, isTail } : stretch);
    }
  }
  return stretches;
}

const summaryStretch = ({ depth, earliestAt, createdAt, carriedFrom }: Summary): Stretch => ({
  depth,
  from: earliestAt ?? createdAt,
  ...(carriedFrom === null ? {} : { isHollow: true }),
});

/** From an item of the context down to a summary; else from what nothing was made from. */
async function pathTo(
  store: Store,
  shown: ReadonlySet<unknown>,
  id: SummaryId,
): Promise<Pick<DagPath, "path" | "isOutside">> {
  const below = new Map<SummaryId, SummaryId | null>([[id, null]]);
  const down = (from: SummaryId): readonly SummaryId[] => {
    const path: SummaryId[] = [];
    for (let step: SummaryId | null = from; step !== null; step = below.get(step) ?? null) path.push(step);
    return path;
  };
  let head: SummaryId = id;
  // A summary that was dissolved still derives from its sources: only one of several ways up may lead to the context.
  for (const each of below.keys()) {
    if (shown.has(each)) return { path: down(each), isOutside: false };
    const above = (await store.derived([each])).get(each) ?? [];
    if (above.length === 0) head = each;
    for (const next of above) if (!below.has(next)) below.set(next, each);
  }
  return { path: down(head), isOutside: true };
}

// ── What rows say ────────────────────────────────────────────────────────────────────────────────────────────────────

function summaryFacts(summary: Summary, sources: Sources | undefined): SummaryFacts {
  const { id, depth, level, tokens, earliestAt, latestAt, createdAt, carriedFrom, rewriteReason } = summary;
  return {
    id,
    depth,
    level,
    tokens,
    from: (sources?.messages.length ?? 0) + (sources?.summaries.length ?? 0),
    earliestAt: earliestAt ?? createdAt,
    latestAt: latestAt ?? earliestAt ?? createdAt,
    isCarried: carriedFrom !== null,
    isStale: rewriteReason !== null,
    opening: openingOf(summary).slice(0, openingWidth),
  };
}

const messageFacts = (message: Message): MessageFacts => {
  const { id, role, tokens, at } = message;
  return { id, role, tokens, at, opening: inShort(message).slice(0, openingWidth) };
};

async function summaryDetail(store: Store, id: SummaryId): Promise<DagDetail> {
  const { previousContext: _, ...summary } = await mustFind(store, id);
  const { carriedFrom } = summary;
  const [origin] = carriedFrom === null ? [] : await store.summaries({ ids: [carriedFrom] });
  return {
    kind: "summary",
    summary,
    sources: (await store.sources([id])).get(id) ?? { messages: [], summaries: [] },
    derived: (await store.derived([id])).get(id) ?? [],
    carriedBy: await store.carriedBy(id),
    origin: origin?.conversation ?? null,
  };
}

async function mustFind(store: Store, id: SummaryId): Promise<Summary> {
  const [summary] = await store.summaries({ ids: [id] });
  if (summary === undefined) throw new LcmError("not_found", `there is no summary ${id} any more`);
  return summary;
}

async function messageDetail(store: Store, id: MessageId): Promise<DagDetail> {
  const [message] = await store.messages({ ids: [id] });
  if (message === undefined) throw new LcmError("not_found", `there is no message ${id} any more`);
  const text = wholeLines({ paint: createPaint(false) }, message).join("\n");
  const cut = text.length > messageCharacters ? `${text.slice(0, messageCharacters)}\n… enter shows all of it` : text;
  return { kind: "message", message: { ...messageFacts(message), seq: message.seq }, text: cut };
}
