/** Folds one run: reads its source, drafts the summary and puts it in the place of the run. */

import type { ContextItem, ConversationId, Level, Message, Refusal, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { pinsIn } from "../messages/standing.ts";
import { dateWords } from "../summarize/date-words.ts";
import { condensedSource, contextBefore, leafSource, type Targets } from "../summarize/source.ts";
import { summarize, type SummarizeDeps, type SummarizeOptions } from "../summarize/summarize.ts";

/** A run of the context, and the summary that it is to become. */
export interface Run {
  readonly items: readonly ContextItem[];
  /** The messages of a leaf run; of summaries, the texts are read when they are needed. */
  readonly messages: readonly Message[];
  /** Of the summary. */
  readonly depth: number;
  /** Of the items together. */
  readonly tokens: number;
  readonly rules: Targets;
  readonly targetTokens: number;
  /** The conversation's count of redactions when the run was read: a later one makes the fold stale. */
  readonly forgets: number;
}

export type FoldOutcome =
  | { readonly kind: "folded"; readonly tokens: number; readonly level: Level; readonly summary: SummaryId }
  /** The context has changed; the run can be planned again. */
  | { readonly kind: "stale" }
  | { readonly kind: "incompressible" }
  | { readonly kind: "refused"; readonly refusal: Refusal; readonly message: string };

export type FoldRun = (run: Run) => Promise<FoldOutcome>;

export interface FoldRequest {
  readonly conversation: ConversationId;
  /** What to do when the model refuses. */
  readonly onRefusal: "wait" | "extract";
  readonly customInstructions?: string | null;
  /** The one deadline. */
  readonly signal?: AbortSignal;
  /** Once aborted, the model is no longer called. */
  readonly patience?: AbortSignal;
}

export function createFoldRun(deps: SummarizeDeps & { readonly store: Store }, request: FoldRequest): FoldRun {
  const { store, settings } = deps;
  const { conversation, onRefusal, customInstructions = null } = request;
  const signals = [request.signal, request.patience].filter((each) => each !== undefined);
  const options: SummarizeOptions = {
    onRefusal,
    customInstructions,
    ...(signals.length === 0 ? {} : { signal: AbortSignal.any(signals) }),
  };
  return async ({ items, messages, depth, tokens, rules, forgets }) => {
    const previous = await contextBefore(store, conversation, items[0]?.ordinal ?? 0);
    const facts = { conversation, targets: rules, zone: settings.timezone, tokens, previousContext: previous };
    const source =
      depth === 0
        ? { ...leafSource(messages, facts), dateWords: dateWords(messages, facts.zone ?? "UTC") }
        : condensedSource(depth, await store.summaries({ ids: items.map(({ id }) => id as SummaryId) }), facts);
    const drafted = await summarize(deps, source, options);
    if (drafted.kind !== "drafted") return drafted;
    const { pins: named = [], ...summary } = drafted.summary;
    const pins = depth === 0 ? [...pinsIn(messages), ...named] : [];
    const folded = await store.fold(conversation, items, { ...summary, pins, forgets });
    if (folded.kind === "stale") return { kind: "stale" };
    return { kind: "folded", tokens: drafted.summary.tokens, level: drafted.summary.level, summary: folded.summary };
  };
}
