/** What the summaries screen asks: the context's items as ids, and details only of visible and selected rows. */

import { LcmError } from "../../core/base/errors.ts";
import { tailOrdinal } from "../../core/compaction/find-runs.ts";
import type { Lcm } from "../../core/lcm.ts";
import { messageName } from "../../core/model/types.ts";
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
import { reads, type OfConversation } from "../../operator/port.ts";
import { stripOf, type StripItem, type Strip } from "./strip.ts";
import type { TreeEntry, Run } from "./tree.ts";
import type { Timestamp } from "../../core/base/time.ts";

export interface SummaryTree {
  readonly conversation: Conversation;
  readonly entries: readonly TreeEntry[];
  /** Null if looking for them would be slow. */
  readonly outside: readonly SummaryId[] | null;
  readonly strip: Strip | null;
  /** Whether there are other conversations. */
  readonly others: boolean;
}

interface OfSummary {
  readonly summary: SummaryId;
}

interface Rows<S, M> {
  readonly summaries: readonly S[];
  readonly messages: readonly M[];
}

/** What a row shows of a summary. */
export interface SummaryFacts extends Pick<Summary, "id" | "depth" | "level" | "tokens"> {
  /** How many sources it was made from. */
  readonly from: number;
  readonly earliestAt: Timestamp;
  readonly latestAt: Timestamp;
  readonly isCarried: boolean;
  /** Whether its text no longer matches its sources. */
  readonly isStale: boolean;
  readonly opening: string;
}

export interface MessageFacts extends Pick<Message, "id" | "role" | "tokens" | "at"> {
  readonly opening: string;
}

/** The path from the top down to a summary, which is the last. */
export interface SummaryPath {
  readonly path: readonly SummaryId[];
  readonly sources: ReadonlyMap<SummaryId, Sources>;
  readonly isOutside: boolean;
}

export type ItemDetail =
  | {
      readonly kind: "summary";
      readonly summary: Omit<Summary, "previousContext">;
      readonly sources: Sources;
      /** Summaries made from it, and those of later segments that carry its text. */
      readonly derived: readonly SummaryId[];
      readonly carriedBy: readonly SummaryId[];
      /** The conversation of the summary whose text it carries, if that still exists. */
      readonly origin: ConversationId | null;
    }
  | { readonly kind: "message"; readonly message: MessageFacts & { readonly seq: number }; readonly text: string };

/** The previous context of a summary: as recorded with it, and as a rewrite would compute it. */
export interface Previous {
  readonly summary: Pick<Summary, "id" | "depth" | "level" | "model">;
  readonly recorded: string | null;
  readonly recomputed: Pick<Summary, "id" | "text"> | null;
}

/** Newest items that are read one by one; of older ones, summaries are read and messages only counted. */
const itemsMax = 2_000;
const summariesMax = 10_000;
/** Up to this many summaries, those outside the context are looked for right away. */
const quickSummaries = 2_000;
const outsideMax = 1_000;
const openingWidth = 200;
const messageCharacters = 20_000;
const batch = 500;

export const summariesAsks = {
  summaryTree: reads(async (lcm, { conversation: id }: OfConversation, { signal }): Promise<SummaryTree> => {
    const conversation = await lcm.store.conversation(id);
    if (conversation === null) throw new LcmError("not_found", `conversation ${id} no longer exists`);
    const isQuick = conversation.totals.summaries <= quickSummaries;
    const entries = await readEntries(lcm, conversation);
    return {
      conversation,
      entries,
      outside: isQuick ? await lcm.store.unused(id, outsideMax) : null,
      strip: stripOf(await readStripItems(lcm, entries, signal), conversation.lastMessageAt),
      others: (await lcm.store.conversations({ limit: 2 })).length > 1,
    };
  }),
  summariesOutside: reads(
    async ({ store }, { conversation }: OfConversation) => await store.unused(conversation, outsideMax),
  ),
  summarySources: reads(async ({ store }, { ids }: { readonly ids: readonly SummaryId[] }) => await store.sources(ids)),
  rowFacts: reads(async ({ store }, { summaries, messages }: Rows<SummaryId, MessageId>) => {
    const sources = await store.sources(summaries);
    return {
      summaries: (await store.summaries({ ids: summaries })).map((each) => summaryFacts(each, sources.get(each.id))),
      messages: (await store.messages({ ids: messages })).map(messageFacts),
    };
  }),
  summaryPath: reads(
    async ({ store }, { conversation, summary }: OfSummary & OfConversation): Promise<SummaryPath | null> => {
      const [found] = await store.summaries({ ids: [summary] });
      if (found?.conversation !== conversation) return null;
      const shown = await store.context(conversation, { kind: "summary", limit: summariesMax, keep: "newest" });
      const { path, isOutside } = await pathTo(store, new Set(shown.map(({ id }) => id)), summary);
      return { path, isOutside, sources: await store.sources(path.slice(0, -1)) };
    },
  ),
  itemDetail: reads(async ({ store }, { of }: { readonly of: SummaryId | MessageId }) =>
    typeof of === "number" ? await messageDetail(store, of) : await summaryDetail(store, of),
  ),
  summaryPrevious: reads(async ({ store }, { summary: id }: OfSummary): Promise<Previous> => {
    const summary = await mustFind(store, id);
    const { depth, level, model, previousContext: recorded } = summary;
    const before = recorded === null && depth <= 1 ? await summaryBefore(store, summary) : null;
    return { summary: { id, depth, level, model }, recorded, recomputed: before };
  }),
};

// ── The context ──────────────────────────────────────────────────────────────────────────────────────────────────────

async function readEntries({ store, settings }: Lcm, { id, totals }: Conversation): Promise<readonly TreeEntry[]> {
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
  // Without summaries among them they extend the first run; otherwise their places are unknown.
  if (older.length === 0 && first?.kind === "run" && first.place === "older")
    return [{ ...first, first: oldest.id, count: first.count + count, tokens: first.tokens + tokens }, ...others];
  const place = older.length === 0 ? "older" : "anywhere";
  const run: Run = { kind: "run", first: oldest.id, last: oldest.id, count, tokens, place };
  return [run, ...older.map(toEntry), ...entries];
}

const toEntry = ({ id }: { readonly id: SummaryId }): TreeEntry => ({ kind: "summary", id });

function entriesOf(items: readonly ContextItem[], tail: number): readonly TreeEntry[] {
  const entries: TreeEntry[] = [];
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

/** In batches, since every summary is read with its text. */
async function readStripItems(
  { store }: Lcm,
  entries: readonly TreeEntry[],
  signal: AbortSignal,
): Promise<readonly StripItem[]> {
  const strip: StripItem[] = [];
  for (let from = 0; from < entries.length; from += batch) {
    signal.throwIfAborted();
    const some = entries.slice(from, from + batch);
    const summaries = await store.summaries({
      ids: some.flatMap((each) => (each.kind === "summary" ? [each.id] : [])),
    });
    const messages = await store.messages({ ids: some.flatMap((each) => (each.kind === "run" ? [each.first] : [])) });
    const byId = new Map<unknown, StripItem>([
      ...summaries.map((each): [SummaryId, StripItem] => [each.id, stripItemOf(each)]),
      ...messages.map((each): [MessageId, StripItem] => [each.id, { depth: -1, from: each.at }]),
    ]);
    for (const entry of some) {
      const item = byId.get(entry.kind === "summary" ? entry.id : entry.first);
      const isTail = entry.kind === "run" && entry.place === "tail";
      if (item !== undefined) strip.push(isTail ? { ...item, isTail } : item);
    }
  }
  return strip;
}

const stripItemOf = ({ depth, earliestAt, createdAt, carriedFrom }: Summary): StripItem => ({
  depth,
  from: earliestAt ?? createdAt,
  ...(carriedFrom === null ? {} : { isHollow: true }),
});

/** From an item of the context, or from a summary that nothing was made from, down to a summary. */
async function pathTo(
  store: Store,
  shown: ReadonlySet<unknown>,
  id: SummaryId,
): Promise<Pick<SummaryPath, "path" | "isOutside">> {
  const below = new Map<SummaryId, SummaryId | null>([[id, null]]);
  const down = (from: SummaryId): readonly SummaryId[] => {
    const path: SummaryId[] = [];
    for (let step: SummaryId | null = from; step !== null; step = below.get(step) ?? null) path.push(step);
    return path;
  };
  let head: SummaryId = id;
  // A dissolved summary still derives from its sources, so only one of several paths up may lead to the context.
  for (const each of below.keys()) {
    if (shown.has(each)) return { path: down(each), isOutside: false };
    const above = (await store.derived([each])).get(each) ?? [];
    if (above.length === 0) head = each;
    for (const next of above) if (!below.has(next)) below.set(next, each);
  }
  return { path: down(head), isOutside: true };
}

// ── Rows and details ─────────────────────────────────────────────────────────────────────────────────────────────────

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

async function summaryDetail(store: Store, id: SummaryId): Promise<ItemDetail> {
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
  if (summary === undefined) throw new LcmError("not_found", `summary ${id} no longer exists`);
  return summary;
}

async function messageDetail(store: Store, id: MessageId): Promise<ItemDetail> {
  const [message] = await store.messages({ ids: [id] });
  if (message === undefined) throw new LcmError("not_found", `${messageName(id)} no longer exists`);
  const text = wholeLines({ paint: createPaint(false) }, message).join("\n");
  const cut =
    text.length > messageCharacters ? `${text.slice(0, messageCharacters)}\n… press ↵ to see all of it` : text;
  return { kind: "message", message: { ...messageFacts(message), seq: message.seq }, text: cut };
}
