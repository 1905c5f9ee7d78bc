/** Summaries that `inspect` finds fault with and that a new text mends: which they are, and why. */

import { eachConversation, inspectConversation, isMendedByText } from "./inspect.ts";
import type { Finding } from "./inspect.ts";
import { isSummaryId } from "../model/types.ts";
import type { ConversationId, SummaryId } from "../model/types.ts";
import type { Skeleton, Store } from "../model/store.ts";
import { planRewritesOf, rewriteRules } from "./rewrite.ts";
import type { PlannedRewrites } from "./rewrite.ts";
import type { Settings } from "../model/settings.ts";

export interface PlannedRepair extends PlannedRewrites {
  /** What is wrong with the summaries of the plan. */
  readonly findings: readonly Finding[];
}

/** Of one conversation, or of all. */
export async function planRepair(
  { store, settings }: { readonly store: Store; readonly settings: Settings },
  only: ConversationId | null,
  onProgress: (progress: { readonly done: number; readonly of: number }) => void = () => undefined,
): Promise<PlannedRepair> {
  const plans: PlannedRepair[] = [];
  for await (const id of eachConversation(store, only, onProgress)) {
    const bones = await store.skeleton(id);
    const findings = mendable(bones, inspectConversation(bones));
    const wanted = new Set(findings.map(({ subject }) => subject).filter(isSummaryId));
    plans.push({ findings, ...planRewritesOf(bones, wanted, rewriteRules(settings, bones.conversation)) });
  }
  return {
    findings: plans.flatMap(({ findings }) => findings),
    targets: plans.flatMap(({ targets }) => targets),
    skipped: plans.flatMap(({ skipped }) => skipped),
  };
}

export function mendable({ summaries }: Skeleton, findings: readonly Finding[]): readonly Finding[] {
  const levelOf = new Map<string, string>(summaries.map(({ id, level }): [SummaryId, string] => [id, level]));
  // The barest facts are what a model made of it when it was asked twice: nothing that is broken.
  return findings.filter(
    ({ code, subject }) =>
      isMendedByText(code) && !(code === "summary_below_normal" && levelOf.get(subject) === "aggressive"),
  );
}
