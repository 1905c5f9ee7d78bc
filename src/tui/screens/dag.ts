/** Not yet. */

import type { Module, Place, Step } from "../contract.ts";

export interface DagScreen {
  readonly kind: "dag";
}

export const openDag = (_place: Extract<Place, { readonly kind: "dag" }>): Step<DagScreen> => ({
  state: { kind: "dag" },
});

export const dagModule: Module<DagScreen, never> = {
  name: "Summaries",
  keys: [],
  title: () => "summaries",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
