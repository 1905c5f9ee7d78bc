/** Plans a repair: selects the summaries whose findings a new text fixes. */

import { eachConversation, inspectConversation, isFixedByText, type Finding } from "./inspect.ts";
import { isSummaryId, type ConversationId, type SummaryId } from "../model/types.ts";
import type { Skeleton, Store } from "../model/store.ts";
import { planRewritesOf, rewriteRules, type PlannedRewrites } from "./rewrite.ts";
import type { Settings } from "../model/settings.ts";

export interface PlannedRepair extends PlannedRewrites {
  /** Why each summary of the plan needs a new text. */
  readonly findings: readonly Finding[];
}

/** For one conversation, or for all. */
export async function planRepair(
  { store, settings }: { readonly store: Store; readonly settings: Settings },
  only: ConversationId | null,
  onProgress: (progress: { readonly done: number; readonly of: number }) => void = () => undefined,
): Promise<PlannedRepair> {
  const plans: PlannedRepair[] = [];
  for await (const id of eachConversation(store, only, onProgress)) {
    const skeleton = await store.skeleton(id);
    const findings = repairable(skeleton, inspectConversation(skeleton));
    const wanted = new Set(findings.map(({ subject }) => subject).filter(isSummaryId));
    plans.push({ findings, ...planRewritesOf(skeleton, wanted, rewriteRules(settings, skeleton.conversation)) });
  }
  return {
    findings: plans.flatMap(({ findings }) => findings),
    targets: plans.flatMap(({ targets }) => targets),
    skipped: plans.flatMap(({ skipped }) => skipped),
  };
}

export function repairable({ summaries }: Skeleton, findings: readonly Finding[]): readonly Finding[] {
  const levelOf = new Map<string, string>(summaries.map(({ id, level }): [SummaryId, string] => [id, level]));
  // An aggressive summary is the second attempt of a model, not a defect.
  return findings.filter(
    ({ code, subject }) =>
      isFixedByText(code) && !(code === "summary_below_normal" && levelOf.get(subject) === "aggressive"),
  );
}
