/** A cursor in rows of which only some are seen, and a text of which only some lines are. */

import type { Binding } from "./contract.ts";

export interface List {
  /** The row that keys act on. */
  readonly cursor: number;
  /** The first row that is seen. */
  readonly top: number;
}

export const startOfList: List = { cursor: 0, top: 0 };

export type ListAction = "up" | "down" | "pageUp" | "pageDown" | "first" | "last";

export const listKeys: readonly Binding<unknown, ListAction>[] = [
  { keys: ["down", "j"], action: "down", says: "go down a line" },
  { keys: ["up", "k"], action: "up", says: "go up a line" },
  { keys: ["pageDown", "ctrl+f"], action: "pageDown", says: "go down a page" },
  { keys: ["pageUp", "ctrl+b"], action: "pageUp", says: "go up a page" },
  { keys: ["g", "home"], action: "first", says: "go to the first" },
  { keys: ["G", "end"], action: "last", says: "go to the last" },
];

export const isListAction = (action: string): action is ListAction => listKeys.some((each) => each.action === action);

/** After a key. `rows` is how many are seen at once. */
export function moved(list: List, action: ListAction, count: number, rows: number): List {
  const { cursor } = list;
  const to = {
    up: cursor - 1,
    down: cursor + 1,
    pageUp: cursor - Math.max(1, rows - 1),
    pageDown: cursor + Math.max(1, rows - 1),
    first: 0,
    last: count - 1,
  }[action];
  return seen({ ...list, cursor: to }, count, rows);
}

/** The same list with the cursor on a row that there is, and that is seen. */
export function seen({ cursor, top }: List, count: number, rows: number): List {
  const at = Math.max(0, Math.min(cursor, count - 1));
  const lowest = Math.max(0, Math.min(top, count - rows));
  return { cursor: at, top: Math.max(at - rows + 1, Math.min(lowest, at), 0) };
}

/** A wheel moves what is seen, and takes the cursor along where it would be out of sight. */
export function wheeled({ cursor, top }: List, lines: number, count: number, rows: number): List {
  const to = Math.max(0, Math.min(top + lines, count - rows));
  return { top: to, cursor: Math.max(0, Math.min(Math.max(cursor, to), to + rows - 1, count - 1)) };
}

// ── Text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

export type ScrollAction = "textUp" | "textDown";

export const scrollKeys: readonly Binding<unknown, ScrollAction>[] = [
  { keys: ["J", "shift+down"], action: "textDown", says: "scroll the text down" },
  { keys: ["K", "shift+up"], action: "textUp", says: "scroll the text up" },
];

/** The same after a key. A text has no cursor: it moves as one at the edge of what is seen would move it. */
export function textMoved(top: number, action: ListAction | ScrollAction, count: number, rows: number): number {
  if (!isListAction(action)) return scrolled(top, action === "textDown" ? 1 : -1, count, rows);
  const isDown = action === "down" || action === "pageDown" || action === "last";
  return moved({ top, cursor: isDown ? top + rows - 1 : top }, action, count, rows).top;
}

/** The first line of a text that is seen, after scrolling by so many. */
export const scrolled = (top: number, lines: number, count: number, rows: number): number =>
  Math.max(0, Math.min(top + lines, count - rows));
