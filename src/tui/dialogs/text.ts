/** A dialog that shows a scrolling text, such as the help page. */

import type { Module } from "../contract.ts";
import { windowed } from "../widgets/draw.ts";
import { createScroll, scrolled } from "../widgets/list.ts";

export interface TextDialog {
  readonly kind: "text";
  readonly title: string;
  readonly lines: readonly string[];
  readonly top: number;
}

const scroll = createScroll<TextDialog>((state, by, { rows }) => ({
  ...state,
  top: scrolled(state.top, by, state.lines.length, rows),
}));

export const textModule: Module<TextDialog> = {
  name: "Text",
  open: (place) => ({ ...place, top: 0 }),
  box: ({ lines }, { columns }) => ({ columns: Math.min(100, columns - 8), rows: lines.length }),
  keys: scroll.keys,
  title: ({ title }) => title,
  on: scroll.on,
  draw: ({ lines, top }, frame) => windowed(lines, top, frame),
};
