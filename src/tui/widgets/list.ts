/** Lists and scrolling texts: the cursor, the visible part, their keys and the mouse. */

import type { Binding, Frame, Handlers, Point, Step } from "../contract.ts";
import type { Key, ListAction, Scroll, ScrollAction } from "../keys.ts";

export interface List {
  /** The selected row. */
  readonly cursor: number;
  /** The first visible row. */
  readonly top: number;
}

export const startOfList: List = { cursor: 0, top: 0 };

type Named<A> = Pick<Binding<never>, "keys" | "help" | "short"> & { readonly action: A };

export const listKeys: readonly Named<ListAction>[] = [
  { keys: ["down", "j"], action: "down", help: "move down a line" },
  { keys: ["up", "k"], action: "up", help: "move up a line" },
  { keys: ["pageDown", "ctrl+f"], action: "pageDown", help: "move down a page" },
  { keys: ["pageUp", "ctrl+b"], action: "pageUp", help: "move up a page" },
  { keys: ["g", "home"], action: "first", help: "jump to the start" },
  { keys: ["G", "end"], action: "last", help: "jump to the end" },
];

/** The list after a key. `rows`: how many are visible. */
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

/** Moves the cursor to an existing row, and scrolls to make it visible. */
export function seen({ cursor, top }: List, count: number, rows: number): List {
  const at = Math.max(0, Math.min(cursor, count - 1));
  const lowest = Math.max(0, Math.min(top, count - rows));
  return { cursor: at, top: Math.max(at - rows + 1, Math.min(lowest, at), 0) };
}

/** Keeps the cursor on its item after the rows changed. `at`: where the item is now, or -1. */
export const stayed = (list: List, at: number, count: number, rows: number): List =>
  seen({ ...list, cursor: at === -1 ? list.cursor : at }, count, rows);

/** The wheel scrolls, and moves the cursor only to keep it visible. */
export function wheeled({ cursor, top }: List, lines: number, count: number, rows: number): List {
  const to = Math.max(0, Math.min(top + lines, count - rows));
  return { top: to, cursor: Math.max(0, Math.min(Math.max(cursor, to), to + rows - 1, count - 1)) };
}

/** Where the rows of a list are drawn. */
interface Extent {
  /** Lines above the first row. */
  readonly above: number;
  /** How many rows are visible. */
  readonly rows: number;
  /** How many lines the rows may take, if other lines lie between them. */
  readonly drawn?: number;
  /** Their width, if there is a pane beside them. */
  readonly columns?: number;
}

interface Rows<S> {
  readonly count: (state: S) => number;
  readonly place: (state: S, frame: Frame) => Extent;
  /** The row on a line below the first; null if that line is not a row. Without it, each line is a row. */
  readonly at?: (state: S, line: number, frame: Frame) => number | null;
  /** On a double click. */
  readonly open: (state: S, frame: Frame) => Step<S>;
  /** Scrolls the text beside or below the list. */
  readonly scroll?: (state: S, lines: number, frame: Frame) => Step<S>;
}

/** Keys and the mouse for a layer with a list. */
export function createRows<S extends { readonly list: List }>({ count, place, at, open, scroll }: Rows<S>) {
  const room = (state: S, frame: Frame): number => place(state, frame).rows;
  const to = (state: S, list: List): Step<S> => ({ state: { ...state, list } });
  const move = (state: S, action: ListAction, frame: Frame): Step<S> =>
    to(state, moved(state.list, action, count(state), room(state, frame)));
  const isBeyond = ({ column, row }: Point, { above, rows, drawn = rows, columns = Infinity }: Extent): boolean =>
    column >= columns || row >= above + drawn;
  /** Arrow keys also work while typing. */
  const arrow = (state: S, { name }: Key, frame: Frame): Step<S> | null => {
    const key = listKeys.find(({ action }) => action === name);
    return key === undefined ? null : move(state, key.action, frame);
  };
  const on = {
    resized(given, _, frame) {
      const step = scroll?.(given, 0, frame) ?? { state: given };
      const { state } = step;
      return { ...step, ...to(state, seen(state.list, count(state), room(state, frame))) };
    },
    wheel(state, event, frame) {
      if (scroll !== undefined && isBeyond(event, place(state, frame))) return scroll(state, event.lines, frame);
      return to(state, wheeled(state.list, event.lines, count(state), room(state, frame)));
    },
    click(state, event, frame) {
      const { top } = state.list;
      const where = place(state, frame);
      const line = event.row - where.above;
      const cursor = line < 0 || isBeyond(event, where) ? null : at === undefined ? top + line : at(state, line, frame);
      if (cursor === null || cursor >= count(state)) return { state };
      const step = to(state, { top, cursor });
      return event.count > 1 ? { ...step, ...open(step.state, frame) } : step;
    },
  } satisfies Handlers<S>;
  return { move, arrow, on, keys: bound(listKeys, move) };
}

export const bound = <S, A extends string>(
  keys: readonly Named<A>[],
  act: (state: S, action: A, frame: Frame) => Step<S>,
): readonly Binding<S>[] =>
  keys.map((each) => ({ ...each, moves: true, does: (state, frame) => act(state, each.action, frame) }));

export const scrollKeys: readonly Named<ScrollAction>[] = [
  { keys: ["J", "shift+down"], action: "textDown", help: "scroll the text down" },
  { keys: ["K", "shift+up"], action: "textUp", help: "scroll the text up" },
];

/** Keys that scroll a text beside a list, one line at a time. */
export const textKeys = <S>(scroll: (state: S, lines: number, frame: Frame) => Step<S>): readonly Binding<S>[] =>
  bound(scrollKeys, (state, action, frame) => scroll(state, action === "textDown" ? 1 : -1, frame));

/** Keys and the wheel for a layer that is one text. */
export function createScroll<S>(by: (state: S, by: Scroll, frame: Frame) => S) {
  const act = (state: S, lines: Scroll, frame: Frame): Step<S> => ({ state: by(state, lines, frame) });
  const on = {
    resized: (state, _, frame) => act(state, 0, frame),
    wheel: (state, { lines }, frame) => act(state, lines, frame),
  } satisfies Handlers<S>;
  return { by, on, keys: [...bound(listKeys, act), ...bound(scrollKeys, act)] };
}

/** The first visible line after scrolling. A text scrolls as a list does whose cursor is at the edge. */
export function scrolled(top: number, by: Scroll, count: number, rows: number): number {
  if (typeof by === "number") return Math.max(0, Math.min(top + by, count - rows));
  if (by === "textUp" || by === "textDown") return scrolled(top, by === "textDown" ? 1 : -1, count, rows);
  const isDown = by === "down" || by === "pageDown" || by === "last";
  return moved({ top, cursor: isDown ? top + rows - 1 : top }, by, count, rows).top;
}
