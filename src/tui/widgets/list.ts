/** A cursor in rows of which only some are seen, and a text of which only some lines are. */

import type { Binding, Frame, Handlers, Point, Step } from "../contract.ts";
import type { Key, ListAction, Scroll, ScrollAction } from "../keys.ts";

export interface List {
  /** The row that keys act on. */
  readonly cursor: number;
  /** The first row that is seen. */
  readonly top: number;
}

export const startOfList: List = { cursor: 0, top: 0 };

type Named<A> = Pick<Binding<never>, "keys" | "says" | "short"> & { readonly action: A };

export const listKeys: readonly Named<ListAction>[] = [
  { keys: ["down", "j"], action: "down", says: "go down a line" },
  { keys: ["up", "k"], action: "up", says: "go up a line" },
  { keys: ["pageDown", "ctrl+f"], action: "pageDown", says: "go down a page" },
  { keys: ["pageUp", "ctrl+b"], action: "pageUp", says: "go up a page" },
  { keys: ["g", "home"], action: "first", says: "go to the first" },
  { keys: ["G", "end"], action: "last", says: "go to the last" },
];

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

/** Of rows that are others now: on the one that the cursor was on, which is at `at`, or -1 where it is gone. */
export const stayed = (list: List, at: number, count: number, rows: number): List =>
  seen({ ...list, cursor: at === -1 ? list.cursor : at }, count, rows);

/** A wheel moves what is seen, and takes the cursor along where it would be out of sight. */
export function wheeled({ cursor, top }: List, lines: number, count: number, rows: number): List {
  const to = Math.max(0, Math.min(top + lines, count - rows));
  return { top: to, cursor: Math.max(0, Math.min(Math.max(cursor, to), to + rows - 1, count - 1)) };
}

/** Where the rows of a list are. */
interface Extent {
  /** Lines above the first. */
  readonly above: number;
  /** How many are seen at once. */
  readonly rows: number;
  /** How many may be drawn, where that is more: what stands between them is not always seen. */
  readonly drawn?: number;
  /** How wide they are, where something stands beside them. */
  readonly columns?: number;
}

/** The rows of a layer, and what is to be known of them for keys and the mouse to move in them. */
interface Rows<S> {
  readonly count: (state: S) => number;
  readonly place: (state: S, frame: Frame) => Extent;
  /** Which one is so many lines below the first, where that is not simply the how many-th; null where none is. */
  readonly at?: (state: S, line: number, frame: Frame) => number | null;
  /** What a double click does. */
  readonly open: (state: S, frame: Frame) => Step<S>;
  /** Scrolls the text beside or below them, if there is one. */
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
  /** The arrows move also while something is typed. */
  const arrow = (state: S, { name }: Key, frame: Frame): Step<S> | null => {
    const found = listKeys.find(({ action }) => action === name);
    return found === undefined ? null : move(state, found.action, frame);
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

/** The same, each with what it does here. */
export const bound = <S, A extends string>(
  keys: readonly Named<A>[],
  act: (state: S, action: A, frame: Frame) => Step<S>,
): readonly Binding<S>[] =>
  keys.map((each) => ({ ...each, moves: true, does: (state, frame) => act(state, each.action, frame) }));

// ── Text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

export const scrollKeys: readonly Named<ScrollAction>[] = [
  { keys: ["J", "shift+down"], action: "textDown", says: "scroll the text down" },
  { keys: ["K", "shift+up"], action: "textUp", says: "scroll the text up" },
];

/** Keys for a text beside a list: a line at a time. */
export const textKeys = <S>(scroll: (state: S, lines: number, frame: Frame) => Step<S>): readonly Binding<S>[] =>
  bound(scrollKeys, (state, action, frame) => scroll(state, action === "textDown" ? 1 : -1, frame));

/** Keys and the wheel for a layer that is a text, all of it. */
export function createScroll<S>(by: (state: S, by: Scroll, frame: Frame) => S) {
  const act = (state: S, lines: Scroll, frame: Frame): Step<S> => ({ state: by(state, lines, frame) });
  const on = {
    resized: (state, _, frame) => act(state, 0, frame),
    wheel: (state, { lines }, frame) => act(state, lines, frame),
  } satisfies Handlers<S>;
  return { by, on, keys: [...bound(listKeys, act), ...bound(scrollKeys, act)] };
}

/** The first line of a text that is seen, after scrolling. A text has no cursor: it moves as one at its edge would. */
export function scrolled(top: number, by: Scroll, count: number, rows: number): number {
  if (typeof by === "number") return Math.max(0, Math.min(top + by, count - rows));
  if (by === "textUp" || by === "textDown") return scrolled(top, by === "textDown" ? 1 : -1, count, rows);
  const isDown = by === "down" || by === "pageDown" || by === "last";
  return moved({ top, cursor: isDown ? top + rows - 1 : top }, by, count, rows).top;
}
