/** Plans a rewrite, drafts a text, and applies that draft exactly as it was shown. */

import { LcmError } from "../core/base/errors.ts";
import type { Finding } from "../core/maintenance/inspect.ts";
import { createLcm, type Lcm } from "../core/lcm.ts";
import type { SummaryId } from "../core/model/types.ts";
import type { Model, PartOf } from "../core/model/store.ts";
import { templateNameOf } from "../core/prompts/summary.ts";
import { rewriteRules, sourceless } from "../core/maintenance/rewrite.ts";
import type { PlannedRewrite, PlannedRewrites, RewriteDraft } from "../core/maintenance/rewrite.ts";
import { sourceText } from "../core/summarize/source-text.ts";
import type { Spend } from "../core/model-calls/metering.ts";
import { sourceOfSummary } from "../core/summarize/source.ts";
import { costOfRewrites, keptOf, type RewritesPlan } from "../format/rewrite.ts";
import { refusalHint } from "../format/model.ts";
import type { Doing, OfConversation, Port } from "./port.ts";
import { mustFind } from "../core/model/find-conversation.ts";

/** One summary, a summary and everything below it, or whatever needs repair. */
export type RewriteSelection =
  | { readonly summary: SummaryId }
  | { readonly subtree: SummaryId }
  | { readonly repair: true };

export interface PlannedWork {
  readonly plan: RewritesPlan;
  readonly spend: Spend;
  readonly timeoutSeconds: number;
  /** What a repair fixes. */
  readonly findings: readonly Finding[];
  /** For a single summary. */
  readonly preview: SourcePreview | null;
}

export interface SourcePreview {
  /** The beginning of what the model would read. */
  readonly source: string;
  readonly isWhole: boolean;
  /** How many summaries were written from the current text. */
  readonly above: number;
}

export type Drafted = Extract<RewriteDraft, { readonly kind: "drafted" }>;

export type Drafting =
  | Exclude<RewriteDraft, { readonly kind: "refused" }>
  | { readonly kind: "refused"; readonly message: string; readonly hint: string };

export type AppliedDraft =
  /** `above`: summaries that were written from the old text. */
  | { readonly kind: "written"; readonly change: number; readonly above: readonly SummaryId[] }
  | { readonly kind: "stale"; readonly reason: string };

export const rewriteAsks = {
  async rewritePlan(
    { conversation, select }: OfConversation & { readonly select: RewriteSelection },
    { port, onProgress }: Doing,
  ): Promise<PlannedWork> {
    const lcm = await port.reading();
    if ("summary" in select) return await workOf(lcm, port, await planOne(lcm, select.summary), onProgress);
    const planned =
      "repair" in select
        ? await lcm.planRepair(conversation)
        : { ...(await lcm.planRewrite({ conversation, select })), findings: [] };
    return await workOf(lcm, port, { ...planned, preview: null }, onProgress);
  },

  /** `isFresh`: ask the model even if a draft is stored. */
  async rewriteDraft(
    { target, isFresh }: { readonly target: PlannedRewrite; readonly isFresh: boolean },
    { port, signal }: Doing,
  ): Promise<Drafting> {
    const { problems } = await port.prompts();
    const unfit = problems.get(target.template);
    if (unfit !== undefined) throw unfit;
    const draft = await port.writing(async (lcm) => await lcm.draftRewrite(target.summary, { fresh: isFresh, signal }));
    if (draft.kind !== "refused") return draft;
    const { refusal, message, ofStore } = draft;
    if (ofStore !== undefined) throw ofStore;
    return { kind: "refused", message, hint: refusalHint(refusal, await port.summariser(), "applied", 1) };
  },

  async rewriteApply(
    { draft, partOf }: { readonly draft: Drafted; readonly partOf: PartOf },
    { port, signal, onProgress }: Doing,
  ): Promise<AppliedDraft> {
    return await port.writing(async (lcm, backUp) => {
      onProgress({ done: 0, of: null, words: "making a backup (once per session)" });
      await backUp();
      signal.throwIfAborted();
      // Past this point it cannot be cancelled: it is one transaction.
      onProgress({ done: 1, of: null, words: "writing" });
      const applied = await lcm.applyRewrite(draft, partOf);
      if (applied.kind !== "written") return applied;
      const above = (await lcm.store.derived([draft.old.id])).get(draft.old.id) ?? [];
      return { kind: "written", change: applied.change, above };
    });
  },
};

/** Nobody reads more than this in a dialog. */
const sourceCharsMax = 20_000;

type Planned = PlannedRewrites & Pick<PlannedWork, "findings" | "preview">;

/** The plan of `planRewrite` for one summary, without reading the whole conversation. */
async function planOne({ store, settings }: Lcm, id: SummaryId): Promise<Planned> {
  const [summary] = await store.summaries({ ids: [id] });
  if (summary === undefined) throw new LcmError("not_found", `${id} no longer exists`);
  const { conversation, depth, level, tokens, earliestAt, latestAt } = summary;
  const rules = rewriteRules(settings, await mustFind(store, conversation));
  const source = await sourceOfSummary(store, summary, { targets: rules, zone: settings.timezone });
  const above = (await store.derived([id])).get(id)?.length ?? 0;
  if (source === null) {
    const skipped = [{ conversation, summary: id, reason: sourceless(summary) }];
    return { targets: [], skipped, findings: [], preview: { source: "", isWhole: true, above } };
  }
  const { passages, tokens: sourceTokens, targetTokens } = source;
  const own = { conversation, summary: id, depth, level, tokens, earliestAt, latestAt };
  const target = { ...own, sources: passages.length, sourceTokens, targetTokens, template: templateNameOf(depth) };
  const text = sourceText(passages);
  const preview = { source: text.slice(0, sourceCharsMax), isWhole: text.length <= sourceCharsMax, above };
  return { targets: [target], skipped: [], findings: [], preview };
}

/** Only reads, so it works on a read-only database too. */
async function workOf(lcm: Lcm, port: Port, planned: Planned, onProgress: Doing["onProgress"]): Promise<PlannedWork> {
  const writer = await port.summariser();
  const { templates, problems } = await port.prompts();
  const [unfit] = [...problems].filter(([name]) => planned.targets.some(({ template }) => template === name));
  if (unfit !== undefined) throw unfit[1];
  const { store, clock, settings } = lcm;
  const looking = createLcm({ store, clock, settings, templates, model: writer === null ? null : named(writer.name) });
  const of = planned.targets.length;
  let done = 0;
  const onResult = (): void => onProgress({ done: ++done, of, words: "looking for stored drafts" });
  const kept =
    writer === null ? { kept: [], current: [] } : keptOf(await looking.rewriteAll(planned, { mode: "look", onResult }));
  const cost = costOfRewrites(planned, kept, templates, null);
  const { targets, skipped, findings, preview } = planned;
  return {
    plan: { targets, skipped, ...kept, model: writer, cost },
    spend: await lcm.spend(),
    timeoutSeconds: settings.summaryTimeoutSeconds,
    findings,
    preview,
  };
}

/** Drafts are stored by model name: looking for them needs the name, never a call. */
function named(name: string): Model {
  const [provider = "", ...rest] = name.split("/");
  return {
    provider,
    name: rest.join("/"),
    complete: async () => ({
      kind: "refused",
      refusal: "cancelled",
      message: "looking for drafts must not call the model",
    }),
  };
}
