/** Not yet. */

import type { Module, Place, Step } from "../contract.ts";

export interface TransplantDialog {
  readonly kind: "transplant";
}

export const openTransplant = (_place: Extract<Place, { readonly kind: "transplant" }>): Step<TransplantDialog> => ({
  state: { kind: "transplant" },
});

export const transplantModule: Module<TransplantDialog, never> = {
  name: "Transplant",
  box: () => ({ columns: 40, rows: 3 }),
  keys: [],
  title: () => "transplant",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
