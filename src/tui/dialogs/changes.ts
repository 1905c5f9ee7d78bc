/** The dialogs for changes without a model: dissolve, transplant, undo, fix. */

import { opens } from "../contract.ts";
import { createPlan, planAgain, type Planning } from "./plan.ts";

export const dissolveModule = createPlan<"dissolve">({
  name: "Dissolve",
  title: ({ request: { conversation, summary } }) => `dissolve ${summary} of conversation ${conversation}`,
  request: (place) => ({ ...place, purge: false }),
  keys: [
    {
      keys: ["x"],
      short: "purge",
      help: "also delete the summary, or keep it",
      when: ({ phase }) => phase.kind !== "applying",
      does: (state) => planAgain(state, { ...state.request, purge: !state.request.purge }),
    },
  ],
});

export const transplantModule = createPlan<"transplant">({
  name: "Transplant",
  title: ({ request: { source, target } }) => `transplant conversation ${source} into ${target}`,
  request: (place) => place,
});

export const undoModule = createPlan<"undo">({
  name: "Undo",
  title: ({ request: { change } }) => `undo change ${change}`,
  request: (place) => place,
  keys: [
    {
      keys: ["u"],
      short: "undo that first",
      help: "show the change that must be undone first",
      when: (state) => firstObstacle(state) !== null,
      does: opens((state) => {
        const change = firstObstacle(state);
        return change === null ? null : { kind: "undo", change };
      }),
    },
  ],
});

/** Fixes findings whose correct value can be derived, as `lcm doctor --fix` does. */
export const fixModule = createPlan<"fix">({
  name: "Fix",
  title: ({ request: { conversation } }) => `fix conversation ${conversation}`,
  request: (place) => place,
});

/** The change that must be undone before this one. */
function firstObstacle({ phase, request }: Planning<"undo">): number | null {
  if (phase.kind !== "asking" || phase.planned.kind !== "undo") return null;
  const [first] = phase.planned.plan.obstacles;
  return first === undefined || first.change === request.change ? null : first.change;
}
