/** Not yet. */

import type { Module, Place, Step } from "../contract.ts";

export interface FilesScreen {
  readonly kind: "files";
}

export const openFiles = (_place: Extract<Place, { readonly kind: "files" }>): Step<FilesScreen> => ({
  state: { kind: "files" },
});

export const filesModule: Module<FilesScreen, never> = {
  name: "Files",
  keys: [],
  title: () => "files",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
