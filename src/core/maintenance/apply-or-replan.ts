/**
 * Applying a plan while others write. A write that finds its plan stale has changed nothing; then it is planned again,
 * and that plan is applied, a few times at most: whoever writes all the time must not keep an operator waiting forever.
 */

import type { Written } from "../model/changes.ts";
import { LcmError } from "../base/errors.ts";

export const attemptsMax = 5;

type Stale = Extract<Written, { readonly kind: "stale" }>;

interface Steps<Plan, Done> {
  readonly apply: (plan: Plan) => Promise<Done | Stale>;
  readonly replan: () => Promise<Plan>;
  /** Called with what is about to be applied in place of the plan that was shown. */
  readonly onReplan?: ((plan: Plan) => void) | undefined;
  /** What is said when every plan was stale, and why the last one was. */
  readonly giveUp?: (reason: string) => LcmError;
}

const nothingChanged = (reason: string): LcmError =>
  new LcmError("conflict", `nothing was changed, because others keep writing: ${reason}`, { hint: "run it again" });

/** What was applied, and what came of it. `conflict` if every plan was stale; whatever planning throws is thrown. */
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
