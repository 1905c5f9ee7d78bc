/**
 * New texts for summaries that stand. Which ones, and what each is made from, is a plan; a draft is what the model writes
 * from the sources as they are now; applying it leaves the summary's id, sources and place. Sources come before what was
 * made from them, so that each is written from fresh text.
 *
 * A text is only ever replaced by one that a model wrote, and never by one of a lower level. Drafts are kept, so that
 * what was looked at is what is applied, and paid for once; and work that was interrupted goes on where it was.
 */

import { LcmError } from "../base/errors.ts";
import { bottomUp, closure, reachedFrom } from "../model/summary-graph.ts";
import type { Conversation, ConversationId, NewSummary, Refusal, Summary, SummaryId } from "../model/types.ts";
import { rulesOf } from "../compaction/choose-runs.ts";
import { sourceOfSummary, targetTokensOf } from "../summarize/source.ts";
import type { Rules } from "../compaction/choose-runs.ts";
import type { Changed, PartOf, RewritePlan, Skeleton, Store, SummaryFacts, Written } from "../model/store.ts";
import { templateNameOf } from "../prompts/summary.ts";
import type { TemplateName } from "../prompts/summary.ts";
import type { Settings } from "../model/settings.ts";
import { draftWithModel, modelName, promptFor } from "../summarize/summarize.ts";
import type { SummarizeDeps } from "../summarize/summarize.ts";
import type { Overlay } from "../summarize/source.ts";
import { mustFind } from "../model/find-conversation.ts";
import { promptBudgetDefault } from "../model/prompt-cost.ts";

export interface RewriteDeps extends SummarizeDeps {
  readonly store: Store;
}

// ── The plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface RewriteRequest {
  readonly conversation: ConversationId;
  /** One, alone or with all below it, wherever it stands; or those that the context reaches, of one depth or all. */
  readonly select:
    | { readonly summary: SummaryId }
    | { readonly subtree: SummaryId }
    | { readonly depth: number }
    | { readonly all: true };
}

export interface PlannedRewrite extends Pick<SummaryFacts, "depth" | "level" | "tokens" | "earliestAt" | "latestAt"> {
  readonly conversation: ConversationId;
  readonly summary: SummaryId;
  /** How many messages or summaries it was made from, and their tokens as they are now. */
  readonly sources: number;
  readonly sourceTokens: number;
  readonly targetTokens: number;
  readonly template: TemplateName;
}

export interface PlannedRewrites {
  /** In the order in which they are written. */
  readonly targets: readonly PlannedRewrite[];
  /** Those that have no sources to be written from. */
  readonly skipped: readonly SkippedRewrite[];
}

interface SkippedRewrite extends Pick<PlannedRewrite, "conversation" | "summary"> {
  readonly reason: string;
}

export async function planRewrite(
  { store, settings }: Pick<RewriteDeps, "store" | "settings">,
  { conversation, select }: RewriteRequest,
): Promise<PlannedRewrites> {
  const bones = await store.skeleton(conversation);
  return planRewritesOf(bones, selected(bones, select), rewriteRules(settings, bones.conversation));
}

/** How long summaries are: as compaction would make them now. */
export const rewriteRules = (settings: Settings, { promptBudget }: Conversation): Rules =>
  rulesOf(settings, false, promptBudget ?? promptBudgetDefault);

function selected(
  { conversation, context, summaries, sources }: Skeleton,
  select: RewriteRequest["select"],
): ReadonlySet<SummaryId> {
  if ("summary" in select || "subtree" in select) {
    const wanted = "summary" in select ? select.summary : select.subtree;
    if (summaries.some(({ id }) => id === wanted))
      return new Set("summary" in select ? [wanted] : closure([wanted], (id) => sources.get(id)));
    throw new LcmError("not_found", `${wanted} is no summary of conversation ${conversation.id}`, {
      hint: `\`lcm dag ${conversation.id}\` lists them`,
    });
  }
  const reached = reachedFrom(context, (id) => sources.get(id));
  if ("all" in select) return new Set(reached);
  const ofDepth = new Set(summaries.flatMap(({ id, depth }) => (depth === select.depth ? [id] : [])));
  return new Set(reached.filter((id) => ofDepth.has(id)));
}

/** Sources first. Within a depth by place in the conversation: times may be equal, and copies have those of others. */
function inOrder(bones: Skeleton, wanted: ReadonlySet<SummaryId>): readonly SummaryFacts[] {
  const places = new Map(reachedFrom(bones.context, (id) => bones.sources.get(id)).map((id, place) => [id, place]));
  const placeOf = ({ id }: SummaryFacts): number => places.get(id) ?? places.size;
  return bottomUp(bones.summaries.filter(({ id }) => wanted.has(id))).toSorted(
    (a, b) => a.depth - b.depth || placeOf(a) - placeOf(b),
  );
}

/** Pure: what writing these summaries anew would take. */
export function planRewritesOf(bones: Skeleton, wanted: ReadonlySet<SummaryId>, rules: Rules): PlannedRewrites {
  const tokensOf = new Map<string | number, number>(bones.summaries.map(({ id, tokens }) => [id, tokens]));
  for (const [index, id] of bones.messageIds.entries()) tokensOf.set(id, bones.messageTokens[index] ?? 0);
  const conversation = bones.conversation.id;
  const targets: PlannedRewrite[] = [];
  const skipped: SkippedRewrite[] = [];
  for (const summary of inOrder(bones, wanted)) {
    const { id, depth, level, tokens, earliestAt, latestAt } = summary;
    const from = bones.sources.get(id);
    const sources: readonly (string | number)[] = [...(from?.messages ?? []), ...(from?.summaries ?? [])];
    if (sources.length === 0) {
      skipped.push({ conversation, summary: id, reason: sourceless(summary) });
      continue;
    }
    const sourceTokens = sources.reduce<number>((sum, each) => sum + (tokensOf.get(each) ?? 0), 0);
    targets.push({
      conversation,
      summary: id,
      depth,
      level,
      tokens,
      earliestAt,
      latestAt,
      sources: sources.length,
      sourceTokens,
      targetTokens: targetTokensOf(rules, depth, sourceTokens),
      template: templateNameOf(depth),
    });
  }
  return { targets, skipped };
}

export const sourceless = ({ carriedFrom }: Pick<SummaryFacts, "carriedFrom">): string =>
  carriedFrom === null
    ? "it has no sources"
    : `it was carried over from ${carriedFrom} of an earlier conversation, and has no sources of its own`;

// ── One draft ────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface DraftOptions {
  /** In which the sources tell times; null tells none, and the setting holds if it is left out. */
  readonly zone?: string | null;
  /** What comes with this request; the setting holds besides. */
  readonly customInstructions?: string | null;
  readonly signal?: AbortSignal;
  /** Drafts of sources, and of what comes before, that are not applied. */
  readonly overlay?: Overlay;
  /** Only a draft that is kept: nobody is asked. */
  readonly onlyKept?: boolean;
  /** Another text, although one is kept. */
  readonly fresh?: boolean;
}

export type RewriteDraft =
  | {
      readonly kind: "drafted";
      readonly old: Summary;
      readonly summary: NewSummary;
      /** Drafted before, from the very same. */
      readonly isKept: boolean;
      /** `forgets` of the conversation, and the revisions of the summaries below, when the sources were read. */
      readonly forgets: number;
      readonly sources: NonNullable<RewritePlan["sources"]>;
    }
  /** It says already what this model wrote from the very same. */
  | { readonly kind: "current" }
  /** There is no text to put in the place of the old one. */
  | { readonly kind: "unusable"; readonly reason: string }
  /** The provider's trouble, whatever text was asked for; or nobody was to be asked. */
  | { readonly kind: "refused"; readonly refusal: Refusal; readonly message: string; readonly ofStore?: Error };

const noneKept: RewriteDraft = { kind: "refused", refusal: "cancelled", message: "no draft is kept" };

/** What the model would put in the place of a summary's text. Throws `unavailable` without a model. */
export async function draftRewrite(
  deps: RewriteDeps,
  id: SummaryId,
  options: DraftOptions = {},
): Promise<RewriteDraft> {
  const { store, settings, model } = deps;
  if (model === null) throw missingModel();
  const [old] = await store.summaries({ ids: [id] });
  if (old === undefined) return { kind: "unusable", reason: "it is not there any more" };
  const conversation = await mustFind(store, old.conversation);
  const { forgets } = conversation;
  const sources = await sourcesOf(store, id);
  const { zone = settings.timezone, overlay = new Map(), customInstructions = null, signal } = options;
  const source = await sourceOfSummary(store, old, { targets: rewriteRules(settings, conversation), zone, overlay });
  if (source === null) return { kind: "unusable", reason: sourceless(old) };

  // What comes before it is told to the model, and is no source: a draft fits whatever has become of that since. Or one
  // answer that was of no use, or another concurrency, would have all later drafts asked for again and applied unseen.
  const { system, prompt } = promptFor(deps, { ...source, previousContext: null }, { customInstructions }, "normal");
  const { tokens, overheadTokens } = source;
  const basis = JSON.stringify([modelName(model), system, prompt, tokens, overheadTokens]);
  const levels = levelsInPlaceOf(old);
  const kept = options.fresh === true ? null : await store.draft(id, basis);
  if (kept !== null && kept.text === old.text && old.rewriteReason === null) return { kind: "current" };
  if (kept !== null && levels.some((level) => level === kept.level))
    return { kind: "drafted", old, summary: kept, isKept: true, forgets, sources };
  if (options.onlyKept === true) return noneKept;

  const asking = { purpose: "rewrite", customInstructions, ...(signal && { signal }) } as const;
  const drafted = await draftWithModel({ ...deps, model }, source, asking, levels);
  if (drafted.kind !== "drafted") return drafted;
  await store.saveDraft(id, basis, drafted.summary, forgets);
  return { kind: "drafted", old, summary: drafted.summary, isKept: false, forgets, sources };
}

async function sourcesOf(store: Store, id: SummaryId): Promise<NonNullable<RewritePlan["sources"]>> {
  const { summaries: ids = [] } = (await store.sources([id])).get(id) ?? {};
  return (await store.summaries({ ids })).map(({ id: summary, revision }) => ({ summary, revision }));
}

/** A normal text says more than an aggressive one, so the model is not asked for that in its place. */
const levelsInPlaceOf = ({ level, text }: Summary): readonly ("normal" | "aggressive")[] =>
  level === "normal" && text.trim() !== "" ? ["normal"] : ["normal", "aggressive"];

export const missingModel = (): LcmError =>
  new LcmError("unavailable", "summaries are only rewritten by a model, and there is none", {
    hint: "--model provider/model or LCM_SUMMARY_MODEL names one",
  });

/** Stale if the summary or one it was written from has been rewritten, or something was forgotten, since then. */
export const applyRewrite = async (
  { store }: Pick<RewriteDeps, "store">,
  { old, summary, forgets, sources }: Extract<RewriteDraft, { readonly kind: "drafted" }>,
  partOf?: PartOf,
): Promise<Written<Changed & { readonly revision: number }>> =>
  await store.rewrite({ summary: old.id, revision: old.revision, forgets, sources }, summary, partOf);

// ── All of a plan ────────────────────────────────────────────────────────────────────────────────────────────────────

export interface RewriteOptions extends Omit<DraftOptions, "overlay" | "onlyKept"> {
  /** Count the drafts that are kept, without asking; draft; or draft and apply each. */
  readonly mode: "look" | "draft" | "apply";
  readonly operation?: "rewrite" | "repair";
  /** How many are drafted at the same time, within a depth. */
  readonly concurrency?: number;
  /** Called once, before the first is applied: not at all where none is of use. */
  readonly beforeApplying?: () => Promise<void>;
  /** Called for each, in the order of the plan. */
  readonly onResult?: (result: RewriteResult) => void;
}

export type RewriteResult = { readonly target: PlannedRewrite } & (
  | {
      readonly status: "drafted" | "applied";
      readonly old: Summary;
      readonly summary: NewSummary;
      readonly isKept: boolean;
    }
  | { readonly status: "unusable"; readonly reason: string }
  /** It says already what it would be made to say, or the work ended before it. */
  | { readonly status: "current" | "unreached" }
);

export interface RewriteReport {
  readonly results: readonly RewriteResult[];
  /** The number of the change; null if nothing was applied. */
  readonly change: number | null;
  /** What ended the work early: trouble of the provider, */
  readonly stopped: { readonly refusal: Refusal; readonly message: string } | null;
  /** or of the database, after something was applied; before that it is thrown. */
  readonly failed: Error | null;
}

/** So often a summary is drafted at most, if it is rewritten by others meanwhile. */
const staleMax = 5;

/**
 * Drafts what was planned, and applies each draft before what stands on it is drafted. What is applied stays, whatever
 * ends the work: trouble of the provider, or the signal.
 */
export async function rewriteAll(
  deps: RewriteDeps,
  { targets }: PlannedRewrites,
  options: RewriteOptions,
): Promise<RewriteReport> {
  const { mode, operation = "rewrite", onResult = () => undefined } = options;
  const overlay = new Map<SummaryId, NewSummary>();
  const results: RewriteResult[] = [];
  let change: number | null = null;
  let stopped: RewriteReport["stopped"] = null;
  let failed: Error | null = null;
  /** Will be asked for: nobody knows yet what those above it are written from. */
  const unknown = new Set<SummaryId>();
  const draft = async ({ summary }: PlannedRewrite): Promise<RewriteDraft> => {
    const sources = unknown.size === 0 ? null : (await deps.store.sources([summary])).get(summary);
    if (sources?.summaries.some((id) => unknown.has(id)) === true) return noneKept;
    return await draftRewrite(deps, summary, { ...options, overlay, onlyKept: mode === "look" });
  };

  const settle = async (target: PlannedRewrite, first: RewriteDraft): Promise<RewriteResult> => {
    for (let attempts = 0; attempts < staleMax; attempts++) {
      const drafted = attempts === 0 ? first : await draft(target);
      if (drafted.kind === "unusable") return { target, status: "unusable", reason: drafted.reason };
      if (drafted.kind === "current") return { target, status: "current" };
      if (drafted.kind === "refused") {
        const { refusal, message, ofStore } = drafted;
        if (ofStore !== undefined) throw ofStore;
        if (mode === "look") unknown.add(target.summary);
        else stopped ??= { refusal, message };
        return { target, status: "unreached" };
      }
      const { old, summary, isKept } = drafted;
      if (mode !== "apply") {
        overlay.set(target.summary, summary);
        return { target, status: "drafted", old, summary, isKept };
      }
      if (change === null) await options.beforeApplying?.();
      const applied = await applyRewrite(deps, drafted, { operation, ...(change !== null && { change }) });
      if (applied.kind === "written") {
        change = applied.change;
        return { target, status: "applied", old, summary, isKept };
      }
    }
    return { target, status: "unusable", reason: "it was changed by others again and again" };
  };

  /** What was applied before the database failed is applied, and has to be told. */
  const orFail = async <T>(work: Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (change === null) throw error;
      failed ??= error instanceof Error ? error : new Error(String(error));
      return otherwise;
    }
  };

  for (const wave of wavesOf(targets, options.concurrency ?? 1)) {
    const isOver = (): boolean => failed !== null || stopped !== null || options.signal?.aborted === true;
    const drafts = isOver() ? [] : await orFail(Promise.all(wave.map(draft)), []);
    for (const [at, target] of wave.entries()) {
      const drafted = failed === null ? drafts[at] : undefined;
      const unreached: RewriteResult = { target, status: "unreached" };
      const result = drafted === undefined ? unreached : await orFail(settle(target, drafted), unreached);
      results.push(result);
      onResult(result);
    }
  }
  return { results, change, stopped, failed };
}

/**
 * What is drafted at the same time: so many of one depth. The next ones read what came of these; so it does not depend
 * on who is quicker what anything is drafted from, and a draft that is kept is found again.
 */
function wavesOf(targets: readonly PlannedRewrite[], concurrency: number): readonly (readonly PlannedRewrite[])[] {
  const waves: PlannedRewrite[][] = [];
  for (const target of targets) {
    const wave = waves.at(-1);
    const [first] = wave ?? [];
    const isOfIt = first?.conversation === target.conversation && first.depth === target.depth;
    if (wave !== undefined && isOfIt && wave.length < concurrency) wave.push(target);
    else waves.push([target]);
  }
  return waves;
}
