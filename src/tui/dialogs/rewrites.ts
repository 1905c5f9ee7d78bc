/** Not yet. */

import type { Module, Place, Step } from "../contract.ts";

export interface RewritesDialog {
  readonly kind: "rewrites";
}

export const openRewrites = (_place: Extract<Place, { readonly kind: "rewrites" }>): Step<RewritesDialog> => ({
  state: { kind: "rewrites" },
});

export const rewritesModule: Module<RewritesDialog, never> = {
  name: "Rewrite many, or repair",
  box: () => ({ columns: 40, rows: 3 }),
  keys: [],
  title: () => "rewrite many, or repair",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
