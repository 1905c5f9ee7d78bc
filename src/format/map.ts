/** Describes a map or a thorough answer: what it would read and cost, and what was not read. */

import { formatCount, plural } from "../core/base/format.ts";
import type { Spend } from "../core/model-calls/metering.ts";
import { caveatSentence } from "../core/recall/grep.ts";
import type { MapPlan } from "../core/recall/map/plan.ts";
import { coverWords, leftOutWords } from "../core/recall/map/words.ts";
import { callLines, type NamedModel } from "./model.ts";
import type { Page } from "./page.ts";
import { facts } from "./table.ts";

export function mapPlanLines(page: Page, plan: MapPlan, model: NamedModel | null, spend: Spend): readonly string[] {
  const { paint, bounds } = page;
  const named =
    model === null ? paint.bad("none: reading everything needs one") : `${model.name} ${paint.soft(`(${model.from})`)}`;
  const problem = model?.problem === undefined || model.problem === null ? [] : [paint.bad(model.problem)];
  const notes = [...leftOutWords(plan), ...plan.caveats.map((caveat) => caveatSentence(caveat, "flags"))];
  return facts(
    [
      ["model", named, ...problem, ...callLines(page, plan, spend)],
      ["plan", coverWords(plan), ...notes],
    ],
    paint,
    bounds,
  );
}

export const spentWords = (spent: {
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}): string =>
  `${plural(spent.calls, "call")}, ${formatCount(spent.inputTokens)} tokens in, ${formatCount(spent.outputTokens)} out`;
