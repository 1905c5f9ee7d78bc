/**
 * What a mouse, a touchpad or fingers do on the timeline: the wheel and a pinch zoom, a sideways wheel and a finger pan, a
 * drag with the mouse selects, a click opens, a double click zooms.
 */

import type { Item, Stage } from "./stage.ts";

export interface Gestures {
  readonly onHover: (item: Item | null, at: { readonly x: number; readonly y: number }) => void;
  readonly onOpen: (item: Item | null) => void;
  readonly onSelect: (from: number, to: number) => void;
}

/** Less than this is a click with an unsteady hand. */
const dragLeast = 5;

export function listenToPointers(canvas: HTMLCanvasElement, stage: Stage, gestures: Gestures): () => void {
  const abort = new AbortController();
  const { signal } = abort;
  const fingers = new Map<number, { x: number; y: number }>();
  let start: { readonly x: number; readonly place: number; readonly isTouch: boolean } | null = null;
  let isDrag = false;
  const pointOf = ({ clientX, clientY }: MouseEvent) => {
    const { left, top } = canvas.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  };
  const onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { x } = pointOf(event);
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 24 : 1;
    const [across, along] = [event.deltaX * lines, event.deltaY * lines];
    if (event.shiftKey || Math.abs(across) > Math.abs(along))
      stage.panBy(Math.abs(across) > Math.abs(along) ? across : along);
    else stage.zoomBy(Math.exp(along * (event.ctrlKey ? 0.01 : 0.002)), x);
  };
  const onDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const point = pointOf(event);
    fingers.set(event.pointerId, point);
    start = { x: point.x, place: stage.placeAt(point.x), isTouch: event.pointerType === "touch" };
    isDrag = fingers.size > 1;
  };
  const onMove = (event: PointerEvent): void => {
    const point = pointOf(event);
    const before = fingers.get(event.pointerId);
    if (before === undefined) {
      gestures.onHover(stage.itemAt(point.x, point.y), point);
      return;
    }
    const [other] = [...fingers].flatMap(([id, finger]) => (id === event.pointerId ? [] : [finger]));
    if (other !== undefined) {
      const [was, is] = [Math.abs(before.x - other.x), Math.abs(point.x - other.x)];
      stage.zoomBy(Math.max(10, was) / Math.max(10, is), (point.x + other.x) / 2);
      stage.panBy((before.x - point.x) / 2);
    } else if (start !== null && (isDrag || Math.abs(point.x - start.x) >= dragLeast)) {
      if (!isDrag) canvas.setPointerCapture(event.pointerId);
      isDrag = true;
      if (start.isTouch) stage.panBy(before.x - point.x);
      else stage.setSelection([start.place, stage.placeAt(point.x)]);
    }
    fingers.set(event.pointerId, point);
  };
  const onUp = (event: PointerEvent): void => {
    const point = pointOf(event);
    if (!fingers.delete(event.pointerId) || start === null || fingers.size > 0) return;
    if (!isDrag) gestures.onOpen(stage.itemAt(point.x, point.y));
    else if (!start.isTouch)
      gestures.onSelect(stage.seqAt(Math.min(start.x, point.x)), stage.seqAt(Math.max(start.x, point.x)));
    start = null;
  };
  const onDouble = (event: MouseEvent): void => {
    const { x, y } = pointOf(event);
    const item = stage.itemAt(x, y);
    if (item !== null && item.last - item.first > 8) stage.show({ from: item.first, to: item.last });
    else stage.zoomBy(0.25, x, true);
  };
  canvas.addEventListener("wheel", onWheel, { passive: false, signal });
  canvas.addEventListener("pointerdown", onDown, { signal });
  canvas.addEventListener("pointermove", onMove, { signal });
  canvas.addEventListener("pointerup", onUp, { signal });
  canvas.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId), { signal });
  canvas.addEventListener("pointerleave", () => gestures.onHover(null, { x: 0, y: 0 }), { signal });
  canvas.addEventListener("dblclick", onDouble, { signal });
  return () => abort.abort();
}
