/** Not yet. */

import type { Module, Place, Step } from "../contract.ts";

export interface HistoryScreen {
  readonly kind: "history";
}

export const openHistory = (_place: Extract<Place, { readonly kind: "history" }>): Step<HistoryScreen> => ({
  state: { kind: "history" },
});

export const historyModule: Module<HistoryScreen, never> = {
  name: "History",
  keys: [],
  title: () => "history",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
