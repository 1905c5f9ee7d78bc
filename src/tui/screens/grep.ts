/** Not yet. */

import type { Module, Place, Step } from "../contract.ts";

export interface GrepScreen {
  readonly kind: "grep";
}

export const openGrep = (_place: Extract<Place, { readonly kind: "grep" }>): Step<GrepScreen> => ({
  state: { kind: "grep" },
});

export const grepModule: Module<GrepScreen, never> = {
  name: "Search",
  keys: [],
  title: () => "search",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
