/**
 * What rewriting asks: what it would take, a draft, and to put that draft in place. Only a draft waits for the model, and
 * only that is cut short by whoever cancels: what is applied is applied whole, and exactly as it was seen.
 */

import { LcmError } from "../../core/base/errors.ts";
import type { Finding } from "../../core/maintenance/inspect.ts";
import { createLcm } from "../../core/lcm.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { SummaryId } from "../../core/model/types.ts";
import type { Model, PartOf } from "../../core/model/store.ts";
import { templateNameOf } from "../../core/prompts/summary.ts";
import { rewriteRules, sourceless } from "../../core/maintenance/rewrite.ts";
import type { PlannedRewrite, PlannedRewrites, RewriteDraft } from "../../core/maintenance/rewrite.ts";
import { sourceText } from "../../core/summarize/source-text.ts";
import type { Spend } from "../../core/model-calls/metering.ts";
import { sourceOfSummary } from "../../core/summarize/source.ts";
import { costOfRewrites, keptOf } from "../../format/rewrite.ts";
import type { RewritesPlan } from "../../format/rewrite.ts";
import { refusalHint } from "../../format/model.ts";
import type { Doing, OfConversation, Port } from "../port.ts";
import { mustFind } from "../../core/model/find-conversation.ts";

/** What is planned, by whom, and what that may cost. */
export interface PlannedWork {
  readonly plan: RewritesPlan;
  readonly spend: Spend;
  /** How long an answer may take. */
  readonly timeoutSeconds: number;
}

export interface RewritePreview extends PlannedWork {
  /** What the model would be given: its beginning. */
  readonly source: string;
  readonly isWhole: boolean;
  /** How many summaries were written from the text as it is. */
  readonly above: number;
}

export interface ManyPlanned extends PlannedWork {
  /** What is wrong with them, if that is why they are here. */
  readonly findings: readonly Finding[];
}

export type Drafted = Extract<RewriteDraft, { readonly kind: "drafted" }>;

export type Drafting =
  | Exclude<RewriteDraft, { readonly kind: "refused" }>
  | { readonly kind: "refused"; readonly message: string; readonly hint: string };

export type AppliedDraft =
  /** `above`: what was written from the old text. */
  | { readonly kind: "written"; readonly change: number; readonly above: readonly SummaryId[] }
  | { readonly kind: "stale"; readonly reason: string };

export const rewriteAsks = {
  async rewritePreview({ summary }: { readonly summary: SummaryId }, { port }: Doing): Promise<RewritePreview> {
    const lcm = await port.reading();
    const { source, planned } = await planOne(lcm, summary);
    const above = (await lcm.store.derived([summary])).get(summary) ?? [];
    return {
      ...(await workOf(lcm, port, planned)),
      source: source.slice(0, sourceCharsMax),
      isWhole: source.length <= sourceCharsMax,
      above: above.length,
    };
  },

  /** `isFresh`: another text, also where one is kept. */
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
      onProgress({ done: 0, of: null, words: "making a backup first, once a session" });
      await backUp();
      signal.throwIfAborted();
      // From here on it is all done or nothing is: who would cancel is told so.
      onProgress({ done: 1, of: null, words: "writing it" });
      const applied = await lcm.applyRewrite(draft, partOf);
      if (applied.kind !== "written") return applied;
      const above = (await lcm.store.derived([draft.old.id])).get(draft.old.id) ?? [];
      return { kind: "written", change: applied.change, above };
    });
  },

  /** A summary and all below it; or, where none is named, what is in need of repair. */
  async rewritesPlan(
    { conversation, summary }: OfConversation & { readonly summary: SummaryId | null },
    { port, onProgress }: Doing,
  ): Promise<ManyPlanned> {
    const lcm = await port.reading();
    const planned =
      summary === null
        ? await lcm.planRepair(conversation)
        : { ...(await lcm.planRewrite({ conversation, select: { subtree: summary } })), findings: [] };
    return { ...(await workOf(lcm, port, planned, onProgress)), findings: planned.findings };
  },
};

/** Nobody reads more of it in a dialog. */
const sourceCharsMax = 20_000;

/** As `planRewrite` plans it, without looking at the whole conversation for one summary. */
async function planOne(lcm: Lcm, id: SummaryId): Promise<{ source: string; planned: PlannedRewrites }> {
  const { store, settings } = lcm;
  const [summary] = await store.summaries({ ids: [id] });
  if (summary === undefined) throw new LcmError("not_found", `${id} is not there any more`);
  const { conversation, depth, level, tokens, earliestAt, latestAt } = summary;
  const rules = rewriteRules(settings, await mustFind(store, conversation));
  const source = await sourceOfSummary(store, summary, { targets: rules, zone: settings.timezone });
  if (source === null) {
    const skipped = [{ conversation, summary: id, reason: sourceless(summary) }];
    return { source: "", planned: { targets: [], skipped } };
  }
  const { passages, tokens: sourceTokens, targetTokens } = source;
  const own = { conversation, summary: id, depth, level, tokens, earliestAt, latestAt };
  const target = { ...own, sources: passages.length, sourceTokens, targetTokens, template: templateNameOf(depth) };
  return { source: sourceText(passages), planned: { targets: [target], skipped: [] } };
}

/** Reads only; also for whoever may not write. */
async function workOf(
  lcm: Lcm,
  port: Port,
  planned: PlannedRewrites,
  onProgress?: Doing["onProgress"],
): Promise<PlannedWork> {
  const writer = await port.summariser();
  const { templates, problems } = await port.prompts();
  const [unfit] = [...problems].filter(([name]) => planned.targets.some(({ template }) => template === name));
  if (unfit !== undefined) throw unfit[1];
  const { store, clock, settings } = lcm;
  const looking = createLcm({ store, clock, settings, templates, model: writer === null ? null : named(writer.name) });
  const of = planned.targets.length;
  let done = 0;
  const onResult = (): void => onProgress?.({ done: ++done, of, words: "looking for drafts that are kept" });
  const kept =
    writer === null ? { kept: [], current: [] } : keptOf(await looking.rewriteAll(planned, { mode: "look", onResult }));
  const cost = costOfRewrites(planned, kept, templates, null);
  const { targets, skipped } = planned;
  return {
    plan: { targets, skipped, ...kept, model: writer, cost },
    spend: await lcm.spend(),
    timeoutSeconds: settings.summaryTimeoutSeconds,
  };
}

/** Drafts are kept by the name of who wrote them: to look for them it is only named. */
function named(name: string): Model {
  const [provider = "", ...rest] = name.split("/");
  return {
    provider,
    name: rest.join("/"),
    complete: async () => ({ kind: "refused", refusal: "cancelled", message: "it is not to be asked" }),
  };
}
