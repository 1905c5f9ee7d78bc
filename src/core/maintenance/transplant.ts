/**
 * Plans and applies a transplant: copies the summaries of a context, and everything below them, into a conversation.
 * A copy that the target already has is rejected before anything is written. What a reset carried over gets its sources.
 */

import type { Copying, Transplanted, TransplantPlan } from "../model/changes.ts";
import { summaryInShort, type SummaryInShort } from "./dissolve.ts";
import { LcmError } from "../base/errors.ts";
import type { ConversationId, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { applyOrReplan } from "./apply-or-replan.ts";
import { sumTokens } from "../base/tokens.ts";
import { plural } from "../base/format.ts";
import { mustFind } from "../model/find-conversation.ts";
import { promptTokens } from "../model/prompt-cost.ts";

export interface Transplantation extends TransplantPlan {
  readonly summaries: readonly SummaryId[];
  /** The same summaries, for display. */
  readonly shown: readonly SummaryInShort[];
  readonly prepended: Copying["prepended"];
  readonly depths: Copying["depths"];
  readonly messages: number;
  readonly carried: Copying["carried"];
  readonly targetContext: { readonly items: number; readonly summaries: number; readonly messages: number };
  /** Of the target's whole context as a prompt. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

/** Throws `conflict` if the target already has copies. A plan without summaries copies nothing. */
export async function planTransplant(
  store: Store,
  source: ConversationId,
  target: ConversationId,
): Promise<Transplantation> {
  if (source === target) {
    throw new LcmError("invalid", "a conversation cannot be transplanted into itself", {
      hint: "pass the source, then the target; run `lcm conversations` to list them",
    });
  }
  const copying = await store.planTransplant(source, target);
  const taker = await mustFind(store, target);
  if (copying.existing.length + copying.copied > 0) throw await duplicate(store, { source, target, ...copying });
  const { totals } = taker;
  const shown = await store.summaries({ ids: copying.summaries });
  const added = shown.filter(({ id }) => copying.prepended.includes(id));
  const covered = await store.summaries({ ids: copying.covered });
  return {
    source,
    target,
    summaries: copying.summaries,
    shown: shown.map(summaryInShort),
    prepended: copying.prepended,
    depths: copying.depths,
    messages: copying.messages,
    carried: copying.carried,
    targetContext: {
      items: totals.contextItems,
      summaries: totals.contextItems - totals.contextMessages,
      messages: totals.contextMessages,
    },
    tokensBefore: promptTokens(totals),
    tokensAfter: promptTokens({
      ...totals,
      contextTokens: totals.contextTokens + sumTokens(added) - sumTokens(covered),
      contextItems: totals.contextItems + added.length - covered.length,
    }),
  };
}

/** What the target already has of the source. */
type Duplicates = Pick<TransplantPlan, "source" | "target"> & Pick<Copying, "existing" | "copied">;

const namedMax = 3;

async function duplicate(store: Store, duplicates: Duplicates): Promise<LcmError> {
  const { target, existing, copied } = duplicates;
  const more = existing.length > namedMax ? ` and ${existing.length - namedMax} more` : "";
  const what =
    existing.length === 0
      ? `copies of ${plural(copied, "message")}`
      : `${existing.slice(0, namedMax).join(", ")}${more}`;
  return new LcmError("conflict", `conversation ${target} already contains ${what}`, {
    hint: await hintFor(store, duplicates),
  });
}

async function hintFor(store: Store, { source, target, existing, copied }: Duplicates): Promise<string> {
  const steps = await store.journal({ conversation: target });
  const earlier = steps.find(
    ({ operation, subject, undoneBy }) =>
      operation === "transplant" && subject === `${source} → ${target}` && undoneBy === null,
  );
  const fresh = "transplant into another conversation";
  if (earlier !== undefined) return `${fresh}, or undo the earlier copy first: \`lcm undo ${earlier.change} --apply\``;
  const carried = (await store.summaries({ ids: existing })).find(({ carriedFrom }) => carriedFrom !== null);
  if (carried !== undefined)
    return `${carried.id} was carried over at a reset; run \`lcm expand ${carried.id}\` to read its sources`;
  const [first] = existing;
  if (copied > 0 || first === undefined) return fresh;
  return `${fresh}, or dissolve the earlier copy first: \`lcm dissolve ${target} --summary ${first} --purge --apply\``;
}

/** With the plan that was applied, made again if the source had changed. */
export type TransplantDone = Omit<Extract<Transplanted, { readonly kind: "written" }>, "kind"> & {
  readonly plan: Transplantation;
};

/** Null if there was nothing to copy. */
export async function transplant(
  store: Store,
  planned: Transplantation,
  onReplan?: (plan: Transplantation) => void,
): Promise<TransplantDone | null> {
  const { source, target } = planned;
  const { plan, done } = await applyOrReplan(planned, {
    apply: async ({ summaries }) => await store.transplant({ source, target, summaries }),
    replan: async () => await planTransplant(store, source, target),
    onReplan,
  });
  if (done.kind === "empty") return null;
  if (done.kind === "duplicate") throw await duplicate(store, { source, target, ...done });
  const { kind: _, ...result } = done;
  return { plan, ...result };
}
