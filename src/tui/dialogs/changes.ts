/** The dialogs that change something without a model: each is a plan, and then yes or no. */

import { opens } from "../contract.ts";
import { createPlan, planAnew } from "./plan.ts";
import type { Planning } from "./plan.ts";

/** Dissolving a summary: what would return to the context. */
export const dissolveModule = createPlan<"dissolve">({
  name: "Dissolve",
  title: ({ request: { conversation, summary } }) => `dissolve ${summary} of conversation ${conversation}`,
  request: (place) => ({ ...place, purge: false }),
  keys: [
    {
      keys: ["x"],
      short: "purge",
      says: "remove the summary's text too, or keep it after all",
      when: ({ phase }) => phase.kind !== "applying",
      does: (state) => planAnew(state, { ...state.request, purge: !state.request.purge }),
    },
  ],
});

/** Copying what one conversation knows into another. */
export const transplantModule = createPlan<"transplant">({
  name: "Transplant",
  title: ({ request: { source, target } }) => `transplant conversation ${source} into ${target}`,
  request: (place) => place,
});

/** Taking back a change: what would be reverted, and what is in the way. */
export const undoModule = createPlan<"undo">({
  name: "Undo",
  title: ({ request: { change } }) => `take back change ${change}`,
  request: (place) => place,
  keys: [
    {
      keys: ["u"],
      short: "that first",
      says: "look at the change that has to be taken back first",
      when: (state) => firstInTheWay(state) !== null,
      does: opens((state) => {
        const change = firstInTheWay(state);
        return change === null ? null : { kind: "undo", change };
      }),
    },
  ],
});

/** Setting right what follows from other rows, as `lcm doctor --fix` does. */
export const fixModule = createPlan<"fix">({
  name: "Set right",
  title: ({ request: { conversation } }) => `set right conversation ${conversation}`,
  request: (place) => place,
});

/** The change that has to be taken back before this one, if there is one. */
function firstInTheWay({ phase, request }: Planning<"undo">): number | null {
  if (phase.kind !== "asking" || phase.planned.kind !== "undo") return null;
  const [first] = phase.planned.plan.obstacles;
  return first === undefined || first.change === request.change ? null : first.change;
}
