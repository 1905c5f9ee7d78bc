/** Dissolving a summary: what would return to the context, then yes or no. */

import type { Module, Place, Step } from "../contract.ts";
import { planAnew, planKeys, planModule, startPlanning, updatePlan } from "./plan.ts";
import type { PlanAction, Planning } from "./plan.ts";
import type { ChangeRequest } from "./changes-asks.ts";

export interface DissolveDialog extends Planning {
  readonly kind: "dissolve";
  readonly request: Extract<ChangeRequest, { readonly kind: "dissolve" }>;
}

export function openDissolve(place: Extract<Place, { readonly kind: "dissolve" }>): Step<DissolveDialog> {
  const request = { ...place, purge: false };
  const { state, asks } = startPlanning(request);
  return { state: { ...state, kind: "dissolve", request }, asks };
}

export const dissolveModule: Module<DissolveDialog, PlanAction | "purge"> = {
  ...planModule,
  name: "Dissolve",
  keys: [
    ...planKeys,
    { keys: ["x"], action: "purge", short: "purge", says: "remove the summary's text too, or keep it after all" },
  ],
  isOffered: (state, action) =>
    action === "purge" ? state.phase.kind !== "applying" : planModule.isOffered(state, action),
  title: ({ request: { conversation, summary } }) => `dissolve ${summary} of conversation ${conversation}`,
  update(state, event, frame) {
    if (event.kind !== "action") return updatePlan(state, event, frame);
    const { action, ...rest } = event;
    if (action !== "purge") return updatePlan(state, { ...rest, action }, frame);
    const request = { ...state.request, purge: !state.request.purge };
    return planAnew({ ...state, request }, request);
  },
};
