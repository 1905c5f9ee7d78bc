/**
 * Copying what a conversation's context knows into another one, with everything below it. The plan counts what would be
 * copied and what the target would carry from then on; what the target holds already is refused before anything happens.
 */

import type { Copying, Transplanted, TransplantPlan } from "../model/changes.ts";
import { summaryInShort } from "./dissolve.ts";
import type { SummaryInShort } from "./dissolve.ts";
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
  /** The same ones, as one would show them. */
  readonly shown: readonly SummaryInShort[];
  readonly depths: Copying["depths"];
  readonly messages: number;
  readonly targetContext: { readonly items: number; readonly summaries: number; readonly messages: number };
  /** Of the target's whole context, as a prompt. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

/** `conflict` if the target holds some of it already. Nothing to copy is a plan without summaries. */
export async function planTransplant(
  store: Store,
  source: ConversationId,
  target: ConversationId,
): Promise<Transplantation> {
  if (source === target) {
    throw new LcmError("invalid", "a conversation cannot be transplanted into itself", {
      hint: "name the one to copy from, then the one to copy into; `lcm conversations` lists them",
    });
  }
  const copying = await store.planTransplant(source, target);
  const taker = await mustFind(store, target);
  if (copying.existing.length + copying.copied > 0) throw await duplicate(store, { source, target, ...copying });
  const { totals } = taker;
  const shown = await store.summaries({ ids: copying.summaries });
  return {
    source,
    target,
    summaries: copying.summaries,
    shown: shown.map(summaryInShort),
    depths: copying.depths,
    messages: copying.messages,
    targetContext: {
      items: totals.contextItems,
      summaries: totals.contextItems - totals.contextMessages,
      messages: totals.contextMessages,
    },
    tokensBefore: promptTokens(totals),
    tokensAfter: promptTokens({
      ...totals,
      contextTokens: totals.contextTokens + sumTokens(shown),
      contextItems: totals.contextItems + shown.length,
    }),
  };
}

/** What of the one conversation the other holds already. */
type Held = Pick<TransplantPlan, "source" | "target"> & Pick<Copying, "existing" | "copied">;

const namedMax = 3;

/** Says what is there, and the way on that fits how it came there. */
async function duplicate(store: Store, held: Held): Promise<LcmError> {
  const { target, existing, copied } = held;
  const more = existing.length > namedMax ? ` and ${existing.length - namedMax} more` : "";
  const what =
    existing.length === 0
      ? `${plural(copied, "message")} of those that would be copied`
      : `what would be copied: ${existing.slice(0, namedMax).join(", ")}${more}`;
  return new LcmError("conflict", `conversation ${target} already holds ${what}`, {
    hint: await wayOn(store, held),
  });
}

async function wayOn(store: Store, { source, target, existing, copied }: Held): Promise<string> {
  const steps = await store.journal({ conversation: target });
  const earlier = steps.find(
    ({ operation, subject, undoneBy }) =>
      operation === "transplant" && subject === `${source} → ${target}` && undoneBy === null,
  );
  const fresh = "transplant into a fresh conversation";
  if (earlier !== undefined)
    return `${fresh}, or take the earlier copy back first: \`lcm undo ${earlier.change} --apply\``;
  const carried = (await store.summaries({ ids: existing })).find(({ carriedFrom }) => carriedFrom !== null);
  if (carried !== undefined)
    return `${carried.id} was carried over at a reset; \`lcm expand ${carried.id}\` reads what is below it`;
  const [first] = existing;
  if (copied > 0 || first === undefined) return fresh;
  return `${fresh}, or dissolve the earlier copy first: \`lcm dissolve ${target} --summary ${first} --purge --apply\``;
}

/** With what was applied: the plan given, or one made again because the source had changed. */
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
  const { change, contextItems, summaries, messages } = done;
  return { plan, change, contextItems, summaries, messages };
}
