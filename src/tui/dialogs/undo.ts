/** Taking back a change: what would be reverted and what is in the way, then yes or no. */

import type { Module, Place, Step } from "../contract.ts";
import { planKeys, planModule, startPlanning, updatePlan } from "./plan.ts";
import type { PlanAction, Planning } from "./plan.ts";

export interface UndoDialog extends Planning {
  readonly kind: "undo";
  readonly change: number;
}

export function openUndo({ change }: Extract<Place, { readonly kind: "undo" }>): Step<UndoDialog> {
  const { state, asks } = startPlanning({ kind: "undo", change });
  return { state: { ...state, kind: "undo", change }, asks };
}

/** The change that has to be taken back before this one, if there is one. */
function firstInTheWay({ phase, change }: UndoDialog): number | null {
  if (phase.kind !== "asking" || phase.planned.kind !== "undo") return null;
  const [first] = phase.planned.plan.obstacles;
  return first === undefined || first.change === change ? null : first.change;
}

export const undoModule: Module<UndoDialog, PlanAction | "first"> = {
  ...planModule,
  name: "Undo",
  keys: [
    ...planKeys,
    { keys: ["u"], action: "first", short: "that first", says: "look at the change that has to be taken back first" },
  ],
  isOffered: (state, action) =>
    action === "first" ? firstInTheWay(state) !== null : planModule.isOffered(state, action),
  title: ({ change }) => `take back change ${change}`,
  update(state, event, frame) {
    if (event.kind !== "action") return updatePlan(state, event, frame);
    const { action, ...rest } = event;
    if (action !== "first") return updatePlan(state, { ...rest, action }, frame);
    const first = firstInTheWay(state);
    return first === null ? { state } : { state, go: { kind: "open", place: { kind: "undo", change: first } } };
  },
};
