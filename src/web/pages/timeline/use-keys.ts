/** The keys of the timeline: everything that a pointer does, without one. */

import { useCallback } from "preact/hooks";
import { useKeys, type Key } from "../keys.ts";
import { go, placeNow, withSettings } from "../router.ts";
import { useAround } from "../session.ts";
import type { Axis } from "./layer.ts";
import type { Item, Stage, Window } from "./stage.ts";
import type { StageRef } from "./use-stage.ts";

interface KeysUse {
  readonly stage: StageRef;
  readonly focus: Item | null;
  readonly setFocus: (item: Item | null) => void;
  readonly setOpened: (item: Item | null) => void;
  readonly select: (window: Window | null) => void;
  readonly selection: Window | null;
  readonly axis: Axis;
}

export function useTimelineKeys({ stage, focus, setFocus, setOpened, select, selection, axis }: KeysUse): void {
  const { place } = useAround();
  const move = useCallback(
    (direction: "left" | "right" | "up" | "down") => (event: KeyboardEvent) => {
      const { current } = stage;
      if (current === null) return;
      const { from, to } = current.view();
      const next =
        focus === null
          ? current.step({ row: 0, seq: Math.floor((from + to) / 2) }, "down")
          : current.step(focus, direction);
      if (next === null) return;
      setFocus(next);
      current.reach(next);
      if (!event.shiftKey) return;
      const first = Math.min(selection?.from ?? focus?.first ?? next.first, next.first);
      const last = Math.max(selection?.to ?? focus?.last ?? next.last, next.last);
      select({ from: first, to: last });
    },
    [focus, selection],
  );
  const keys: readonly Key[] = [
    { keys: ["ArrowLeft"], does: "previous item; with shift, select up to it", run: move("left") },
    { keys: ["ArrowRight"], does: "next item; with shift, select up to it", run: move("right") },
    { keys: ["ArrowUp"], does: "the summary above", run: move("up") },
    { keys: ["ArrowDown"], does: "what is below", run: move("down") },
    { keys: ["Enter"], does: "open the item", run: () => (isOnControl() ? undefined : openItem(focus, setOpened)) },
    { keys: ["+", "="], does: "zoom in", run: () => stage.current?.zoomBy(0.5, undefined, true) },
    { keys: ["-", "_"], does: "zoom out", run: () => stage.current?.zoomBy(2, undefined, true) },
    { keys: ["["], does: "pan back", run: () => stage.current?.panBy(-200) },
    { keys: ["]"], does: "pan on", run: () => stage.current?.panBy(200) },
    { keys: ["0"], does: "show all", run: () => stage.current?.showAll() },
    {
      keys: ["z"],
      does: "zoom to the selection or the item",
      run: () => (selection ?? focus) !== null && zoomTo(stage.current, selection, focus),
    },
    {
      keys: ["a"],
      does: "change the axis",
      run: () => go(withSettings(placeNow(place), { axis: axis === "time" ? "messages" : "time" })),
    },
    { keys: ["/"], does: "find on the timeline", run: () => document.getElementById("timeline-search")?.focus() },
    {
      keys: ["Escape"],
      does: "close the item, clear the selection",
      run: () => {
        setOpened(null);
        select(null);
      },
    },
  ];
  useKeys("Timeline", keys);
}

const isOnControl = (): boolean => document.activeElement?.matches("a, button, summary") === true && activate();

/** Enter on a link or button is theirs. */
function activate(): boolean {
  if (document.activeElement instanceof HTMLElement) document.activeElement.click();
  return true;
}

const openItem = (item: Item | null, open: (item: Item) => void): void => {
  if (item !== null) open(item);
};

function zoomTo(stage: Stage | null, selection: Window | null, focus: Item | null): void {
  if (selection !== null) stage?.show(selection);
  else if (focus !== null) stage?.show({ from: focus.first, to: focus.last });
}
