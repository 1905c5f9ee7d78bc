/**
 * Collects the source of a summary: of a run about to be folded, or of a stored summary to rewrite. The latter reads
 * its sources and the summary before it as they are now.
 */

import { fileIdsOf } from "../ingest/large-content.ts";
import type { ConversationId, FileId, Message, NewSummary, Summary, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { messagePassages, summaryPassages } from "./source-text.ts";
import type { Source } from "./summarize.ts";
import { summaryOverheadTokens } from "../model/prompt-cost.ts";

/** Target length of summaries. */
export interface Targets {
  readonly leafTargetTokens: number;
  readonly condensedTargetTokens: number;
}

/** The target length of a summary of this depth: at most half of its sources. */
export const targetTokensOf = (targets: Targets, depth: number, sourceTokens: number): number =>
  Math.min(depth === 0 ? targets.leafTargetTokens : targets.condensedTargetTokens, Math.floor(sourceTokens / 2));

export interface SourceFacts {
  readonly conversation: ConversationId;
  readonly targets: Targets;
  /** Time zone of the labels; null leaves times out. */
  readonly zone: string | null;
  /** Tokens of the sources in the context. */
  readonly tokens: number;
  readonly previousContext: string | null;
}

export const leafSource = (messages: readonly Message[], { targets, zone, ...about }: SourceFacts): Source => ({
  ...about,
  depth: 0,
  messages,
  passages: messagePassages(messages, zone, true),
  overheadTokens: summaryOverheadTokens,
  targetTokens: targetTokensOf(targets, 0, about.tokens),
  fileIds: fileIdsOf(messages),
});

export const condensedSource = (
  depth: number,
  summaries: readonly Summary[],
  { targets, zone, ...about }: SourceFacts,
): Source => ({
  ...about,
  depth,
  passages: summaryPassages(summaries, zone),
  overheadTokens: 0, // The wrappers of at least two sources go away.
  targetTokens: targetTokensOf(targets, depth, about.tokens),
  fileIds: [...new Set(summaries.flatMap((summary): readonly FileId[] => summary.fileIds))],
});

/** Drafts not applied yet, read in place of the stored summaries. */
export type Overlay = ReadonlyMap<SummaryId, Pick<NewSummary, "text" | "tokens" | "fileIds">>;

/** Null for a summary without sources: carried over from an earlier segment, or damaged. */
export async function sourceOfSummary(
  store: Store,
  summary: Summary,
  { targets, zone, overlay = new Map() }: Pick<SourceFacts, "targets" | "zone"> & { readonly overlay?: Overlay },
): Promise<Source | null> {
  const { messages: messageIds = [], summaries: summaryIds = [] } =
    (await store.sources([summary.id])).get(summary.id) ?? {};
  const messages = await store.messages({ ids: messageIds });
  const summaries = (await store.summaries({ ids: summaryIds })).map((each) => ({ ...each, ...overlay.get(each.id) }));
  const sources = [...messages, ...summaries];
  if (sources.length === 0) return null;
  const { conversation, depth } = summary;
  const about = {
    conversation,
    targets,
    zone,
    tokens: sources.reduce((sum, { tokens }) => sum + tokens, 0),
    previousContext: depth <= 1 ? await previousContext(store, summary, overlay) : null,
  };
  return depth === 0 ? leafSource(messages, about) : condensedSource(depth, summaries, about);
}

/**
 * What came before an item of the context, as the model reads it: the summary just before it, or the nearest one, and
 * whether messages lie between. Null only at the beginning of the record.
 */
export async function contextBefore(
  store: Store,
  conversation: ConversationId,
  ordinal: number,
): Promise<string | null> {
  const nearest = { before: ordinal, limit: 1, keep: "newest" } as const;
  const [item] = await store.context(conversation, nearest);
  if (item === undefined) return null;
  const [last = item] =
    item.kind === "summary" ? [] : await store.context(conversation, { ...nearest, kind: "summary" });
  const [summary] = last.kind === "summary" ? await store.summaries({ ids: [last.id] }) : [];
  if (summary === undefined) return notShown;
  return last === item ? summary.text : `${summary.text}\n\n${gap}`;
}

const notShown = "(Earlier messages exist, but are not shown here.)";
const gap = "(Between this summary and the record below are messages that have not been summarised yet.)";

/** The same for a stored summary. */
async function previousContext(store: Store, summary: Summary, overlay: Overlay): Promise<string | null> {
  const { conversation, earliestAt } = summary;
  const before = await summaryBefore(store, summary);
  if (before === null) {
    const [first] = await store.messages({ conversation, limit: 1, keep: "oldest" });
    return first === undefined || earliestAt === null || earliestAt <= first.at ? null : notShown;
  }
  const { text } = overlay.get(before.id) ?? before;
  const own = (await store.context(conversation, { kind: "summary" })).find(({ id }) => id === summary.id);
  const [item] = own ? await store.context(conversation, { before: own.ordinal, limit: 1, keep: "newest" }) : [];
  return item?.kind === "message" ? `${text}\n\n${gap}` : text;
}

/**
 * The summary just before this one in the conversation: up to the nearest ancestor with a summary before it, then down
 * that summary's last sources to this depth, or as close to it as there is one.
 */
export async function summaryBefore(store: Store, { id, conversation, depth }: Summary): Promise<Summary | null> {
  let before: SummaryId | undefined;
  let beside = (await store.context(conversation, { kind: "summary" })).flatMap((item) =>
    item.kind === "summary" ? [item.id] : [],
  );
  for (const step of await pathDown(store, new Set(beside), id)) {
    const previous = beside[beside.indexOf(step) - 1];
    // A predecessor further down is closer.
    if (previous !== undefined) before = previous;
    beside = [...((await store.sources([step])).get(step)?.summaries ?? [])];
  }
  let nearest: Summary | null = null;
  while (before !== undefined) {
    const [summary] = await store.summaries({ ids: [before] });
    // The depth must fall, or a damaged database would loop for ever.
    if (summary === undefined || (nearest !== null && summary.depth >= nearest.depth)) break;
    nearest = summary;
    before = summary.depth <= depth ? undefined : (await store.sources([before])).get(before)?.summaries.at(-1);
  }
  return nearest;
}

/** The path from a context item down to a summary, both included; empty if the context does not reach it. */
async function pathDown(store: Store, inContext: ReadonlySet<SummaryId>, id: SummaryId): Promise<readonly SummaryId[]> {
  const below = new Map<SummaryId, SummaryId | null>([[id, null]]);
  // A dissolved summary still derives from its sources, so perhaps only one of several ways up reaches the context.
  for (const each of below.keys()) {
    if (inContext.has(each)) {
      const path: SummaryId[] = [];
      for (let step: SummaryId | null = each; step !== null; step = below.get(step) ?? null) path.push(step);
      return path;
    }
    for (const above of (await store.derived([each])).get(each) ?? []) if (!below.has(above)) below.set(above, each);
  }
  return [];
}
