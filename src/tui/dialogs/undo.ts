/** Not yet. */

import type { Module, Place, Step } from "../contract.ts";

export interface UndoDialog {
  readonly kind: "undo";
}

export const openUndo = (_place: Extract<Place, { readonly kind: "undo" }>): Step<UndoDialog> => ({
  state: { kind: "undo" },
});

export const undoModule: Module<UndoDialog, never> = {
  name: "Undo",
  box: () => ({ columns: 40, rows: 3 }),
  keys: [],
  title: () => "undo",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
