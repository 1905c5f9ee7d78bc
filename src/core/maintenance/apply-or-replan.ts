/**
 * Applies a plan while others write: a stale plan is made again and retried, a few times at most.
 * A stale write has changed nothing, so retrying is safe.
 */

import type { Written } from "../model/changes.ts";
import { LcmError } from "../base/errors.ts";

export const attemptsMax = 5;

type Stale = Extract<Written, { readonly kind: "stale" }>;

interface Steps<Plan, Done> {
  readonly apply: (plan: Plan) => Promise<Done | Stale>;
  readonly replan: () => Promise<Plan>;
  /** Called with the new plan before it is applied. */
  readonly onReplan?: ((plan: Plan) => void) | undefined;
  /** The error if every plan was stale, from the reason of the last. */
  readonly giveUp?: (reason: string) => LcmError;
}

const nothingChanged = (reason: string): LcmError =>
  new LcmError("conflict", `nothing was changed: ${reason}, ${attemptsMax} times in a row`, { hint: "run it again" });

/** The plan that was applied, and its result. Throws `conflict` if every plan was stale, and what `replan` throws. */
export async function applyOrReplan<Plan, Done extends { readonly kind: string }>(
  first: Plan,
  { apply, replan, onReplan, giveUp = nothingChanged }: Steps<Plan, Done>,
): Promise<{ readonly plan: Plan; readonly done: Done }> {
  let plan = first;
  for (let attempt = 1; ; attempt++) {
    const done = await apply(plan);
    if (!isStale(done)) return { plan, done };
    if (attempt === attemptsMax) throw giveUp(done.reason);
    plan = await replan();
    onReplan?.(plan);
  }
}

const isStale = (done: { readonly kind: string }): done is Stale => done.kind === "stale";
