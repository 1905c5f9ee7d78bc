/** A text over the screen: the keys, the context that a summary was given, a whole message. */

import type { Frame, Module, Place, Step } from "../contract.ts";
import { windowed } from "../draw.ts";
import { isListAction, listKeys, moved, scrolled, scrollKeys } from "../list.ts";
import type { ListAction, ScrollAction } from "../list.ts";

export interface TextDialog {
  readonly kind: "text";
  readonly title: string;
  readonly lines: readonly string[];
  readonly top: number;
}

export const openText = ({ title, lines }: Extract<Place, { readonly kind: "text" }>): Step<TextDialog> => ({
  state: { kind: "text", title, lines, top: 0 },
});

/** How wide its lines may be in such a room. */
export const textColumns = ({ columns }: Pick<Frame, "columns">): number => Math.max(20, Math.min(100, columns - 8));

export const textModule: Module<TextDialog, ListAction | ScrollAction> = {
  name: "A text",
  box: ({ lines }, { columns }) => ({ columns: Math.min(100, columns - 8), rows: lines.length }),
  keys: [...listKeys, ...scrollKeys],
  title: ({ title }) => title,
  update(state, event, { rows }) {
    const scroll = (lines: number): Step<TextDialog> => ({
      state: { ...state, top: scrolled(state.top, lines, state.lines.length, rows) },
    });
    if (event.kind === "wheel") return scroll(event.lines);
    if (event.kind === "resized") return scroll(0);
    if (event.kind !== "action") return { state };
    if (event.action === "textDown") return scroll(1);
    if (event.action === "textUp") return scroll(-1);
    if (!isListAction(event.action)) return { state };
    // A text has no cursor: what would be seen with one at its edge.
    const isDown = event.action === "down" || event.action === "pageDown" || event.action === "last";
    const at = { top: state.top, cursor: isDown ? state.top + rows - 1 : state.top };
    return { state: { ...state, top: moved(at, event.action, state.lines.length, rows).top } };
  },
  draw: ({ lines, top }, frame) => windowed(lines, top, frame),
};
