/** Not yet. */

import type { Module, Place, Step } from "../contract.ts";

export interface ContextScreen {
  readonly kind: "context";
}

export const openContext = (_place: Extract<Place, { readonly kind: "context" }>): Step<ContextScreen> => ({
  state: { kind: "context" },
});

export const contextModule: Module<ContextScreen, never> = {
  name: "Context",
  keys: [],
  title: () => "context",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
