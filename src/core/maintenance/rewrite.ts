/**
 * Rewrites summaries with a model: plans which, drafts new texts bottom-up, and applies them in place.
 * A text is only replaced by one that a model wrote, and never by one of a lower level. Drafts are kept, so what was
 * reviewed is what is applied, each is paid for once, and interrupted work resumes.
 */

import { LcmError } from "../base/errors.ts";
import { bottomUp, closure, reachedFrom } from "../model/summary-graph.ts";
import type { Conversation, ConversationId, NewSummary, Refusal, Summary, SummaryId } from "../model/types.ts";
import { rulesOf, type Rules } from "../compaction/choose-runs.ts";
import { sourceOfSummary, targetTokensOf, type Overlay } from "../summarize/source.ts";
import type { Changed, PartOf, RewritePlan, Skeleton, Store, SummaryFacts, Written } from "../model/store.ts";
import { templateNameOf, type TemplateName } from "../prompts/summary.ts";
import type { Settings } from "../model/settings.ts";
import { draftWithModel, modelName, promptFor, type SummarizeDeps } from "../summarize/summarize.ts";
import { mustFind } from "../model/find-conversation.ts";
import { promptBudgetDefault } from "../model/prompt-cost.ts";

export interface RewriteDeps extends SummarizeDeps {
  readonly store: Store;
}

export interface RewriteRequest {
  readonly conversation: ConversationId;
  /** One summary, or it and all below it, anywhere; or those that the context reaches, of one depth or all. */
  readonly select:
    | { readonly summary: SummaryId }
    | { readonly subtree: SummaryId }
    | { readonly depth: number }
    | { readonly all: true };
}

export interface PlannedRewrite extends Pick<SummaryFacts, "depth" | "level" | "tokens" | "earliestAt" | "latestAt"> {
  readonly conversation: ConversationId;
  readonly summary: SummaryId;
  /** How many sources it has, and their tokens now. */
  readonly sources: number;
  readonly sourceTokens: number;
  readonly targetTokens: number;
  readonly template: TemplateName;
}

export interface PlannedRewrites {
  /** In the order of writing: sources first. */
  readonly targets: readonly PlannedRewrite[];
  /** Those without sources. */
  readonly skipped: readonly SkippedRewrite[];
  /** Of a selection by depth or of all: those left out, because the context does not reach them. */
  readonly outside?: readonly SummaryId[];
}

interface SkippedRewrite extends Pick<PlannedRewrite, "conversation" | "summary"> {
  readonly reason: string;
}

export async function planRewrite(
  { store, settings }: Pick<RewriteDeps, "store" | "settings">,
  { conversation, select }: RewriteRequest,
): Promise<PlannedRewrites> {
  const skeleton = await store.skeleton(conversation);
  const wanted = selected(skeleton, select);
  const planned = planRewritesOf(skeleton, wanted, rewriteRules(settings, skeleton.conversation));
  if ("summary" in select || "subtree" in select) return planned;
  const isAsked = ({ depth }: SummaryFacts): boolean => "all" in select || depth === select.depth;
  const outside = skeleton.summaries.filter((summary) => isAsked(summary) && !wanted.has(summary.id));
  return { ...planned, outside: outside.map(({ id }) => id) };
}

/** Target lengths are those that compaction would use now. */
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
    throw new LcmError("not_found", `${wanted} is not a summary of conversation ${conversation.id}`, {
      hint: `run \`lcm dag ${conversation.id}\` to list them`,
    });
  }
  const reached = reachedFrom(context, (id) => sources.get(id));
  if ("all" in select) return new Set(reached);
  const ofDepth = new Set(summaries.flatMap(({ id, depth }) => (depth === select.depth ? [id] : [])));
  return new Set(reached.filter((id) => ofDepth.has(id)));
}

/** Sources first; within a depth by place, because times may be equal and copies have those of their originals. */
function inOrder(skeleton: Skeleton, wanted: ReadonlySet<SummaryId>): readonly SummaryFacts[] {
  const places = new Map(
    reachedFrom(skeleton.context, (id) => skeleton.sources.get(id)).map((id, place) => [id, place]),
  );
  const placeOf = ({ id }: SummaryFacts): number => places.get(id) ?? places.size;
  return bottomUp(skeleton.summaries.filter(({ id }) => wanted.has(id))).toSorted(
    (a, b) => a.depth - b.depth || placeOf(a) - placeOf(b),
  );
}

/** The cost of rewriting these summaries. Pure. */
export function planRewritesOf(skeleton: Skeleton, wanted: ReadonlySet<SummaryId>, rules: Rules): PlannedRewrites {
  const tokensOf = new Map<string | number, number>(skeleton.summaries.map(({ id, tokens }) => [id, tokens]));
  for (const [index, id] of skeleton.messageIds.entries()) tokensOf.set(id, skeleton.messageTokens[index] ?? 0);
  const conversation = skeleton.conversation.id;
  const targets: PlannedRewrite[] = [];
  const skipped: SkippedRewrite[] = [];
  for (const summary of inOrder(skeleton, wanted)) {
    const { id, depth, level, tokens, earliestAt, latestAt } = summary;
    const from = skeleton.sources.get(id);
    const sources: readonly (string | number)[] = [...(from?.messages ?? []), ...(from?.summaries ?? [])];
    if (sources.length === 0) {
      skipped.push({ conversation, summary: id, reason: sourceless(summary) });
      continue;
    }
    const sourceTokens = sources.reduce<number>((sum, each) => sum + (tokensOf.get(each) ?? 0), 0);
    const facts = { depth, level, tokens, earliestAt, latestAt, sources: sources.length, sourceTokens };
    const targetTokens = targetTokensOf(rules, depth, sourceTokens);
    targets.push({ conversation, summary: id, ...facts, targetTokens, template: templateNameOf(depth) });
  }
  return { targets, skipped };
}

export const sourceless = ({ carriedFrom }: Pick<SummaryFacts, "carriedFrom">): string =>
  carriedFrom === null
    ? "it has no sources"
    : `it was carried over from ${carriedFrom} of an earlier segment, so it has no sources of its own`;

export interface DraftOptions {
  /** Time zone of the sources; null for no times; the setting by default. */
  readonly zone?: string | null;
  /** Added to those of the settings. */
  readonly customInstructions?: string | null;
  readonly signal?: AbortSignal;
  /** Unapplied drafts of sources and of preceding summaries. */
  readonly overlay?: Overlay;
  /** Use only a kept draft; do not call the model. */
  readonly onlyKept?: boolean;
  /** Draft again even if a draft is kept. */
  readonly fresh?: boolean;
}

export type RewriteDraft =
  | {
      readonly kind: "drafted";
      readonly old: Summary;
      readonly summary: NewSummary;
      /** Drafted earlier from the same input. */
      readonly isKept: boolean;
      /** `forgets` of the conversation and the revisions of the source summaries when they were read. */
      readonly forgets: number;
      readonly sources: NonNullable<RewritePlan["sources"]>;
    }
  /** The text is already what this model wrote from the same input. */
  | { readonly kind: "current" }
  /** There is no usable new text. */
  | { readonly kind: "unusable"; readonly reason: string }
  /** The provider refused, or the model was not to be called. */
  | { readonly kind: "refused"; readonly refusal: Refusal; readonly message: string; readonly ofStore?: Error };

const noneKept: RewriteDraft = { kind: "refused", refusal: "cancelled", message: "there is no stored draft" };

/** Drafts a new text for a summary. Throws `unavailable` without a model. */
export async function draftRewrite(
  deps: RewriteDeps,
  id: SummaryId,
  options: DraftOptions = {},
): Promise<RewriteDraft> {
  const { store, settings, model } = deps;
  if (model === null) throw missingModel();
  const [old] = await store.summaries({ ids: [id] });
  if (old === undefined) return { kind: "unusable", reason: "it no longer exists" };
  const conversation = await mustFind(store, old.conversation);
  const { forgets } = conversation;
  const sources = await sourcesOf(store, id);
  const { zone = settings.timezone, overlay = new Map(), customInstructions = null, signal } = options;
  const source = await sourceOfSummary(store, old, { targets: rewriteRules(settings, conversation), zone, overlay });
  if (source === null) return { kind: "unusable", reason: sourceless(old) };

  // Preceding summaries are context, not sources, so they are not part of the key. Otherwise one unusable answer, or
  // another concurrency, would invalidate all later drafts, which would then be applied unseen.
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
  await store.saveDraft(id, basis, { ...drafted.summary, forgets });
  return { kind: "drafted", old, summary: drafted.summary, isKept: false, forgets, sources };
}

async function sourcesOf(store: Store, id: SummaryId): Promise<NonNullable<RewritePlan["sources"]>> {
  const { summaries: ids = [] } = (await store.sources([id])).get(id) ?? {};
  return (await store.summaries({ ids })).map(({ id: summary, revision }) => ({ summary, revision }));
}

/** An aggressive text never replaces a normal one. */
const levelsInPlaceOf = ({ level, text }: Summary): readonly ("normal" | "aggressive")[] =>
  level === "normal" && text.trim() !== "" ? ["normal"] : ["normal", "aggressive"];

export const missingModel = (): LcmError =>
  new LcmError("unavailable", "rewriting needs a model, and none is configured", {
    hint: "pass --model provider/model or set LCM_SUMMARY_MODEL",
  });

/** Stale if the summary or one of its sources was rewritten, or something was forgotten, since the draft. */
export const applyRewrite = async (
  { store }: Pick<RewriteDeps, "store">,
  { old, summary, forgets, sources }: Extract<RewriteDraft, { readonly kind: "drafted" }>,
  partOf?: PartOf,
): Promise<Written<Changed & { readonly revision: number }>> =>
  await store.rewrite({ summary: old.id, revision: old.revision, forgets, sources }, summary, partOf);

export interface RewriteOptions extends Omit<DraftOptions, "overlay" | "onlyKept"> {
  /** Count kept drafts without calling the model; draft; or draft and apply each. */
  readonly mode: "look" | "draft" | "apply";
  readonly operation?: "rewrite" | "repair";
  /** How many summaries of one depth to draft at a time. */
  readonly concurrency?: number;
  /** Called once before the first draft is applied; not called if none is usable. */
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
  /** The text is already up to date, or the run ended before it. */
  | { readonly status: "current" | "unreached" }
);

export interface RewriteReport {
  readonly results: readonly RewriteResult[];
  /** The number of the change; null if nothing was applied. */
  readonly change: number | null;
  /** What ended the run early: a refusal of the provider, */
  readonly stopped: { readonly refusal: Refusal; readonly message: string } | null;
  /** or a failure of the database after something was applied; before that, it is thrown. */
  readonly failed: Error | null;
}

/** Attempts per summary if others keep changing it. */
const staleMax = 5;

/** Drafts a plan, and applies each draft before those above it are drafted. Applied drafts stay, whatever ends the run. */
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
  /** Without a kept draft: the input of those above is not known yet. */
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
    return { target, status: "unusable", reason: "it kept changing" };
  };

  /** If the database fails after something was applied, the report must still say what. */
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

/** Batches of one depth. Each batch reads the results of the previous one, so the input of a draft is deterministic. */
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
