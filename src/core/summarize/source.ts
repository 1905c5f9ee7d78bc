/**
 * What a summary is made from, ready to be summarised: the same for one that compaction is about to fold and for one
 * that stands already and is to be written anew. For the latter everything is read as it is now: its sources, and the
 * summary that a reader of the conversation has just read before it.
 */

import { fileIdsOf } from "../ingest/large-content.ts";
import type { ConversationId, FileId, Message, NewSummary, Summary, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { messagePassages, summaryPassages } from "./source-text.ts";
import type { Source } from "./summarize.ts";
import { summaryOverheadTokens } from "../model/prompt-cost.ts";

/** How long summaries should be. */
export interface Targets {
  readonly leafTargetTokens: number;
  readonly condensedTargetTokens: number;
}

/** How long a summary of this depth should be: at most half of what it stands for. */
export const targetTokensOf = (targets: Targets, depth: number, sourceTokens: number): number =>
  Math.min(depth === 0 ? targets.leafTargetTokens : targets.condensedTargetTokens, Math.floor(sourceTokens / 2));

export interface SourceFacts {
  readonly conversation: ConversationId;
  readonly targets: Targets;
  /** In which times are told; null tells none. */
  readonly zone: string | null;
  /** What the sources take in the context. */
  readonly tokens: number;
  readonly previousContext: string | null;
}

export const leafSource = (messages: readonly Message[], { targets, zone, ...about }: SourceFacts): Source => ({
  ...about,
  depth: 0,
  passages: messagePassages(messages, zone),
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
  overheadTokens: 0, // The sources' own wrappers go, and they are more than one.
  targetTokens: targetTokensOf(targets, depth, about.tokens),
  fileIds: [...new Set(summaries.flatMap((summary): readonly FileId[] => summary.fileIds))],
});

// ── Of a summary that stands ─────────────────────────────────────────────────────────────────────────────────────────

/** Texts that are drafted and not applied: whoever reads them sees what would be there. */
export type Overlay = ReadonlyMap<SummaryId, Pick<NewSummary, "text" | "tokens" | "fileIds">>;

export interface SourceReading {
  readonly targets: Targets;
  readonly zone: string | null;
  readonly overlay?: Overlay;
}

/** Null for one without sources: carried over from an earlier segment, or damaged. */
export async function sourceOfSummary(
  store: Store,
  summary: Summary,
  { targets, zone, overlay = new Map() }: SourceReading,
): Promise<Source | null> {
  const { messages: messageIds = [], summaries: summaryIds = [] } =
    (await store.sources([summary.id])).get(summary.id) ?? {};
  const messages = await store.messages({ ids: messageIds });
  const summaries = (await store.summaries({ ids: summaryIds })).map((each) => ({ ...each, ...overlay.get(each.id) }));
  const sources = [...messages, ...summaries];
  if (sources.length === 0) return null;
  const { conversation, depth } = summary;
  const before = depth <= 1 ? await summaryBefore(store, summary) : null;
  const about = {
    conversation,
    targets,
    zone,
    tokens: sources.reduce((sum, { tokens }) => sum + tokens, 0),
    previousContext: before === null ? null : (overlay.get(before.id) ?? before).text,
  };
  return depth === 0 ? leafSource(messages, about) : condensedSource(depth, summaries, about);
}

/**
 * The summary just before this one in the order of the conversation: up to where something stands before it, then down
 * the ends of that to this depth, or as near to it as there is one.
 */
export async function summaryBefore(store: Store, { id, conversation, depth }: Summary): Promise<Summary | null> {
  let before: SummaryId | undefined;
  let beside = (await store.context(conversation, { kind: "summary" })).flatMap((item) =>
    item.kind === "summary" ? [item.id] : [],
  );
  for (const step of await pathDown(store, new Set(beside), id)) {
    const previous = beside[beside.indexOf(step) - 1];
    // Further down is nearer.
    if (previous !== undefined) before = previous;
    beside = [...((await store.sources([step])).get(step)?.summaries ?? [])];
  }
  let found: Summary | null = null;
  while (before !== undefined) {
    const [summary] = await store.summaries({ ids: [before] });
    // Ever less deep, or a damaged database would keep us here.
    if (summary === undefined || (found !== null && summary.depth >= found.depth)) break;
    found = summary;
    before = summary.depth <= depth ? undefined : (await store.sources([before])).get(before)?.summaries.at(-1);
  }
  return found;
}

/** From an item of the context down to a summary, both included; empty where the context does not reach it. */
async function pathDown(store: Store, inContext: ReadonlySet<SummaryId>, id: SummaryId): Promise<readonly SummaryId[]> {
  const below = new Map<SummaryId, SummaryId | null>([[id, null]]);
  // A summary that was dissolved still derives from its sources: only one of several ways up may lead there.
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
