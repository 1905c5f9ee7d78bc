/** Predicts the passes of a compaction: makes the same ones over a copy of the context, without calling a model. */

import { modeOf, runMode, type CompactRequest } from "./compact.ts";
import type { ContextItem, Conversation, ConversationId, SummaryId } from "../model/types.ts";
import { Passes, type PassDeps, type PassReport } from "./passes.ts";
import type { FoldRun } from "./fold-run.ts";
import type { ContextWindow, Store } from "../model/store.ts";
import type { Settings } from "../model/settings.ts";
import { askableTokensMin } from "../summarize/summarize.ts";
import { readTokensOf } from "../summarize/source-text.ts";
import { mustFind } from "../model/find-conversation.ts";
import { promptTokens, summaryOverheadTokens } from "../model/prompt-cost.ts";
import { countBelow } from "../base/increasing.ts";
import { due, type Due } from "./due.ts";

/** What a compaction would do if every summary came out at its target length. */
export interface CompactionPlan {
  readonly conversation: ConversationId;
  readonly due: Due;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly passes: readonly PlannedPass[];
}

export interface PlannedPass extends Pick<PassReport, "depth" | "sources" | "sourceTokens"> {
  readonly targetTokens: number;
  /** Of its sources as a model reads them; undefined if they were not read. */
  readonly readTokens?: number;
}

interface PlanDeps extends Pick<PassDeps, "leftAlone"> {
  readonly store: Store;
  readonly settings: Settings;
}

/** Throws the reason of the request's signal once that is aborted. */
export async function planCompaction(deps: PlanDeps, request: CompactRequest): Promise<CompactionPlan> {
  const { store, leftAlone } = deps;
  const conversation = await mustFind(store, request.conversation);
  const pressure = await due(deps, conversation, request.budget);
  const mode = modeOf(deps.settings, request, pressure);
  const { readTokens, ...copy } = await copyContext(store, conversation, request.signal);
  const settings = { ...deps.settings, summaryConcurrency: 1 };
  const work = new Passes({ ...copy, settings, leftAlone: new Set(leftAlone) }, request, pressure);
  if (mode !== null) await runMode(work, mode, settings, { request, pressure, conversation });
  request.signal?.throwIfAborted();
  const passes = work.reports.map(({ depth, sources, sourceTokens, tokens, summary }) => {
    return { depth, sources, sourceTokens, targetTokens: tokens, ...readTokens(summary) };
  });
  const tokensBefore = promptTokens(conversation.totals);
  return { conversation: conversation.id, due: pressure, tokensBefore, tokensAfter: work.tokens, passes };
}

const itemsPerRead = 4_096;

async function copyContext(
  store: Store,
  conversation: Conversation,
  signal: AbortSignal | undefined,
): Promise<Pick<PassDeps, "store" | "foldRun"> & { readonly readTokens: (made: SummaryId) => object }> {
  const items: ContextItem[] = [];
  for (let after = Number.MIN_SAFE_INTEGER; ;) {
    signal?.throwIfAborted();
    const page = await store.context(conversation.id, { after, limit: itemsPerRead, keep: "oldest" });
    items.push(...page);
    after = page.at(-1)?.ordinal ?? after;
    if (page.length < itemsPerRead) break;
  }
  const copy = new ContextCopy(items);
  let { totals } = conversation;
  let made = 0;
  const read = new Map<SummaryId, number>();
  const foldRun: FoldRun = async ({ items: run, messages, depth, tokens, targetTokens }) => {
    const fitting = Math.min(targetTokens, tokens - (depth === 0 ? summaryOverheadTokens : 0) - 1);
    if (fitting < askableTokensMin) return { kind: "incompressible" };
    const summary = `sum_planned${++made}` as SummaryId;
    if (depth === 0) read.set(summary, readTokensOf(messages));
    copy.fold(run, { kind: "summary", id: summary, ordinal: run[0]?.ordinal ?? 0, tokens: fitting, depth });
    totals = {
      ...totals,
      contextItems: totals.contextItems + 1 - run.length,
      contextTokens: totals.contextTokens + fitting - tokens,
      contextMessages: totals.contextMessages - (depth === 0 ? run.length : 0),
    };
    return { kind: "folded", tokens: fitting, level: "normal", summary };
  };
  return {
    foldRun,
    readTokens: (made) => (read.has(made) ? { readTokens: read.get(made) } : {}),
    store: {
      conversation: async () => ({ ...conversation, totals }),
      context: async (_, window) => copy.read(window),
      messages: async (selection) => await store.messages(selection),
    },
  };
}

/** A context in memory, read like the stored one. Folded items leave their slots empty, so that none has to be moved. */
class ContextCopy {
  readonly #ordinals: readonly number[];
  readonly #slots: (ContextItem | null)[];

  constructor(items: readonly ContextItem[]) {
    this.#ordinals = items.map(({ ordinal }) => ordinal);
    this.#slots = [...items];
  }

  read({ after = -Infinity, before = Infinity, kind, limit = Infinity, keep = "oldest" }: ContextWindow = {}) {
    const [first, end] = [countBelow(this.#ordinals, after + 1), countBelow(this.#ordinals, before)];
    const found: ContextItem[] = [];
    for (let at = 0; at < end - first && found.length < limit; at++) {
      const item = this.#slots[keep === "oldest" ? first + at : end - 1 - at] ?? null;
      if (item !== null && (kind === undefined || item.kind === kind)) found.push(item);
    }
    return keep === "oldest" ? found : found.toReversed();
  }

  fold(run: readonly ContextItem[], summary: ContextItem): void {
    const first = countBelow(this.#ordinals, summary.ordinal);
    this.#slots.fill(null, first, countBelow(this.#ordinals, (run.at(-1)?.ordinal ?? 0) + 1));
    this.#slots[first] = summary;
  }
}
