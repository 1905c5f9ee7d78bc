/** Not yet. */

import type { Module, Place, Step } from "../contract.ts";

export interface StatusScreen {
  readonly kind: "status";
}

export const openStatus = (_place: Extract<Place, { readonly kind: "status" }>): Step<StatusScreen> => ({
  state: { kind: "status" },
});

export const statusModule: Module<StatusScreen, never> = {
  name: "Status",
  keys: [],
  title: () => "status",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
