/** Not yet. */

import type { Module, Place, Step } from "../contract.ts";

export interface DissolveDialog {
  readonly kind: "dissolve";
}

export const openDissolve = (_place: Extract<Place, { readonly kind: "dissolve" }>): Step<DissolveDialog> => ({
  state: { kind: "dissolve" },
});

export const dissolveModule: Module<DissolveDialog, never> = {
  name: "Dissolve",
  box: () => ({ columns: 40, rows: 3 }),
  keys: [],
  title: () => "dissolve",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
