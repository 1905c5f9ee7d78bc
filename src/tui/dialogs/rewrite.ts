/** Not yet. */

import type { Module, Place, Step } from "../contract.ts";

export interface RewriteDialog {
  readonly kind: "rewrite";
}

export const openRewrite = (_place: Extract<Place, { readonly kind: "rewrite" }>): Step<RewriteDialog> => ({
  state: { kind: "rewrite" },
});

export const rewriteModule: Module<RewriteDialog, never> = {
  name: "Rewrite",
  box: () => ({ columns: 40, rows: 3 }),
  keys: [],
  title: () => "rewrite",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
