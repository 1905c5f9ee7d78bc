/**
 * The stage of the timeline: holds the layers, the camera and what is pointed at, asks for finer layers when the view needs
 * them, and draws at most once per frame of the screen.
 */

import type { Timeline } from "../../contract.ts";
import { between, pan, reaching, showing, toAxis, wholeOf, zoom, type Camera, type Room } from "./camera.ts";
import { boxOf, draw, layerAt, rowAt, rowsOf } from "./draw.ts";
import type { Marks, Rows, Scene, Spot, Theme } from "./draw.ts";
import {
  barAt,
  barOfSeq,
  placeOfSeq,
  refined,
  seqAtPlace,
  toLayer,
  toScale,
  type Axis,
  type Bars,
  type Layer,
  type Scale,
} from "./layer.ts";

/** An item by row and message, which stays the same when layers are replaced. Row -1 is the messages. */
export interface Target {
  readonly row: number;
  readonly seq: number;
}

export interface Item extends Target {
  readonly first: number;
  readonly last: number;
  readonly count: number;
  readonly tokens: number;
  readonly state: number;
  /** A summary's or message's id; null for several that share a bar. */
  readonly id: string | number | null;
}

/** Numbers of messages, both included. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

export interface StageEvents {
  /** The view has moved, or what it shows is new. */
  readonly onView: () => void;
  /** A part should be read as fine as this. */
  readonly onNeed: (window: Window, cells: number) => void;
}

export interface Stage {
  setTimeline(whole: Timeline, axis: Axis, zone: string): void;
  setDetail(timeline: Timeline): void;
  setMarks(marks: readonly (Pick<Marks, "shape"> & { readonly seqs: readonly number[] })[]): void;
  setTheme(theme: Theme): void;
  resize(width: number, height: number, density: number): void;
  zoomBy(factor: number, pixel?: number, isSmooth?: boolean): void;
  panBy(pixels: number): void;
  showAll(): void;
  show(window: Window): void;
  /** Shows it if it is outside the view, without zooming. */
  reach(target: Target): void;
  setFocus(target: Target | null): void;
  setHover(target: Target | null): void;
  setSelection(window: readonly [number, number] | null): void;
  placeAt(pixel: number): number;
  seqAt(pixel: number): number;
  itemAt(x: number, y: number): Item | null;
  item(target: Target): Item | null;
  /** The neighbour of an item in its row, or the item above or below it. */
  step(from: Target, direction: "left" | "right" | "up" | "down"): Item | null;
  view(): Window;
  /** How many rows of summaries there are. */
  depths(): number;
  end(): void;
}

const heightLeast = 200;
const animationMs = 160;
const reach = 6;
/** Pixels per cell that is asked for. */
const pixelsPerCell = 2;
const cellsMax = 2_000;

interface State {
  whole: Timeline | null;
  scale: Scale | null;
  layers: readonly Layer[];
  camera: Camera;
  rows: Rows;
  theme: Theme | null;
  width: number;
  height: number;
  density: number;
  ownMarks: readonly Marks[];
  givenMarks: readonly Marks[];
  focus: Target | null;
  hover: Target | null;
  selection: readonly [number, number] | null;
  /** The part that was last asked for. */
  asked: { readonly window: Window; readonly cells: number } | null;
}

export function createStage(canvas: HTMLCanvasElement, events: StageEvents): Stage {
  const context = canvas.getContext("2d");
  const state: State = {
    whole: null,
    scale: null,
    layers: [],
    camera: { left: 0, unit: 1 },
    rows: rowsOf(0, heightLeast),
    theme: null,
    width: 1,
    height: heightLeast,
    density: 1,
    ownMarks: [],
    givenMarks: [],
    focus: null,
    hover: null,
    selection: null,
    asked: null,
  };
  const paint = createPainter(context, state);
  const move = createMover(state, () => {
    need(state, events);
    paint();
    events.onView();
  });
  return {
    ...createSetters(state, move, paint),
    ...createMoves(state, move),
    resize(width, height, density) {
      const goal = move.goal();
      const isMoving = goal !== state.camera;
      const isWhole = showsAll(state, goal);
      Object.assign(state, { width, height: Math.max(heightLeast, height), density });
      canvas.width = Math.round(width * density);
      canvas.height = Math.round(state.height * density);
      state.rows = rowsOf(depthsOf(state), state.height);
      // What opens beside the canvas changes its size, while a double click is still zooming.
      move.to(isWhole ? wholeOf(roomOf(state)) : pan(roomOf(state), goal, 0), isMoving);
    },
    placeAt: (pixel) => toAxis(state.camera, pixel),
    seqAt: (pixel) => (state.scale === null ? 0 : Math.floor(seqAtPlace(state.scale, toAxis(state.camera, pixel)))),
    itemAt: (x, y) => itemAt(state, x, y),
    item: (target) => itemOf(spotOf(state, target)),
    step: (from, direction) => step(state, from, direction),
    view: () => viewOf(state),
    depths: () => depthsOf(state),
    end: () => move.stop(),
  };
}

type Setters = "setTimeline" | "setDetail" | "setMarks" | "setTheme" | "setFocus" | "setHover" | "setSelection";

const createSetters = (state: State, move: Mover, paint: () => void): Pick<Stage, Setters> => ({
  setTimeline(whole, axis, zone) {
    setTimeline(state, whole, axis, zone);
    move.stay();
  },
  setDetail(timeline) {
    if (state.scale === null) return;
    state.scale = refined(state.scale, timeline);
    state.layers = [...state.layers.slice(0, 1), toLayer(timeline, state.scale)];
    move.stay();
  },
  setMarks(given) {
    state.givenMarks = given.map(({ shape, seqs }) => ({ shape, x: marksAt(state, seqs) }));
    paint();
  },
  setTheme(theme) {
    state.theme = theme;
    paint();
  },
  setFocus(target) {
    state.focus = target;
    paint();
  },
  setHover(target) {
    state.hover = target;
    paint();
  },
  setSelection(selection) {
    state.selection = selection;
    paint();
  },
});

const createMoves = (state: State, move: Mover): Pick<Stage, "zoomBy" | "panBy" | "showAll" | "show" | "reach"> => ({
  zoomBy: (factor, pixel = state.width / 2, isSmooth = false) =>
    move.to(zoom(roomOf(state), isSmooth ? move.goal() : state.camera, factor, pixel), isSmooth),
  panBy: (pixels) => move.to(pan(roomOf(state), state.camera, pixels), false),
  showAll: () => move.to(wholeOf(roomOf(state)), true),
  show({ from, to }) {
    if (state.scale === null) return;
    move.to(showing(roomOf(state), placeOfSeq(state.scale, from), placeOfSeq(state.scale, to + 1)), true);
  },
  reach({ row, seq }) {
    const spot = spotOf(state, { row, seq });
    if (spot === null) return;
    const { from, to } = boxOf(state, state.camera, spot);
    move.to(reaching(roomOf(state), state.camera, from, to), true);
  },
});

const showsAll = (state: State, camera = state.camera): boolean =>
  camera.unit >= roomOf(state).length / Math.max(1, state.width) - 1e-9;

const depthsOf = ({ whole }: State): number => (whole === null ? 0 : whole.depthMax + 1);

/** The closest view shows about a dozen messages, or a minute. */
function roomOf({ scale, width }: State): Room {
  return { length: scale?.length ?? 1, width, least: scale?.axis === "time" ? 60_000 : 12 };
}

function viewOf({ scale, camera, width }: State): Window {
  if (scale === null) return { from: 0, to: 0 };
  const from = Math.floor(seqAtPlace(scale, camera.left));
  return { from, to: Math.max(from, Math.floor(seqAtPlace(scale, toAxis(camera, width)))) };
}

/** Keeps what is shown if the same conversation has only grown. */
function setTimeline(state: State, whole: Timeline, axis: Axis, zone: string): void {
  const before = state.scale;
  const isSame = state.whole?.conversation.id === whole.conversation.id && before !== null;
  const view = viewOf(state);
  const isWhole = before === null || showsAll(state);
  const scale = toScale(axis, whole, zone);
  state.scale = scale;
  state.whole = whole;
  state.layers = [toLayer(whole, scale)];
  state.asked = null;
  state.rows = rowsOf(depthsOf(state), state.height);
  state.ownMarks = marksOf(state.layers[0]);
  if (!isSame || isWhole) state.camera = wholeOf(roomOf(state));
  else if (before.axis !== axis)
    state.camera = showing(roomOf(state), placeOfSeq(scale, view.from), placeOfSeq(scale, view.to + 1), 0);
  else state.camera = pan(roomOf(state), state.camera, 0);
}

const shapeOf = {
  reset: "line",
  fold: "notch",
  rewrite: "ring",
  change: "ring",
  pin: "ring",
  forgotten: "ring",
} as const;

function marksOf(layer: Layer | undefined): readonly Marks[] {
  const byShape = Map.groupBy(layer?.marks ?? [], ({ mark }) => shapeOf[mark.kind]);
  return [...byShape].map(([shape, marks]) => ({ shape, x: Float64Array.from(marks, ({ x }) => x).sort() }));
}

const marksAt = ({ scale }: State, seqs: readonly number[]): Float64Array =>
  scale === null ? new Float64Array() : Float64Array.from(seqs, (seq) => placeOfSeq(scale, seq)).sort();

// ── Finer layers ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** Asks for a finer layer, with as much again on both sides, unless there is one, or it was asked for. */
function need(state: State, { onNeed }: StageEvents): void {
  const { scale, camera, width, layers, asked } = state;
  const [coarse, fine] = layers;
  if (scale === null || coarse === undefined) return;
  const wanted = camera.unit * pixelsPerCell * 2;
  const isFineEnough = (layer: Layer): boolean => layer.fineness <= wanted;
  const [left, right] = [Math.max(0, camera.left), Math.min(scale.length, toAxis(camera, width))];
  if (isFineEnough(coarse)) return;
  if (fine !== undefined && isFineEnough(fine) && fine.from <= left && fine.to >= right) return;
  const span = right - left;
  const from = Math.floor(seqAtPlace(scale, left - span));
  const to = Math.ceil(seqAtPlace(scale, right + span));
  const cells = Math.min(cellsMax, Math.ceil((3 * width) / pixelsPerCell));
  if (asked !== null && asked.window.from === from && asked.window.to === to) return;
  state.asked = { window: { from, to }, cells };
  onNeed({ from, to }, cells);
}

// ── Frames ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function createPainter(context: CanvasRenderingContext2D | null, state: State): () => void {
  let isWaiting = false;
  const frame = (): void => {
    isWaiting = false;
    const { scale, theme, camera, layers, rows, width, density, ownMarks, givenMarks, selection } = state;
    if (context === null || scale === null || theme === null) return;
    const scene: Scene = { scale, layers, rows, theme, width, density, marks: [...ownMarks, ...givenMarks] };
    const boxOfTarget = (target: Target | null) => {
      const spot = target === null ? null : spotOf(state, target);
      return spot === null ? null : boxOf(scene, camera, spot);
    };
    draw(context, scene, camera, { selection, focus: boxOfTarget(state.focus), hover: boxOfTarget(state.hover) });
  };
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(frame);
  };
}

interface Mover {
  to(camera: Camera, isSmooth: boolean): void;
  /** Where the camera is on its way to. */
  goal(): Camera;
  stay(): void;
  stop(): void;
}

function createMover(state: State, moved: () => void): Mover {
  let goal: Camera | null = null;
  let timer = 0;
  const stop = (): void => {
    cancelAnimationFrame(timer);
    goal = null;
  };
  const isStill = matchMedia("(prefers-reduced-motion: reduce)");
  return {
    to(camera, isSmooth) {
      stop();
      if (!isSmooth || isStill.matches || document.hidden) {
        state.camera = camera;
        moved();
        return;
      }
      goal = camera;
      const from = state.camera;
      const started = performance.now();
      const next = (now: number): void => {
        const share = Math.min(1, Math.max(0, now - started) / animationMs);
        state.camera = share === 1 ? camera : between(from, camera, 1 - (1 - share) ** 3);
        if (share === 1) goal = null;
        else timer = requestAnimationFrame(next);
        moved();
      };
      timer = requestAnimationFrame(next);
    },
    goal: () => goal ?? state.camera,
    stay: moved,
    stop,
  };
}

// ── What is where ────────────────────────────────────────────────────────────────────────────────────────────────────

const barsOf = (layer: Layer, row: number): Bars | undefined => (row < 0 ? layer.messages : layer.summaries[row]);

function spotOf({ layers, scale }: State, { row, seq }: Target): Spot | null {
  if (scale === null) return null;
  const place = placeOfSeq(scale, seq);
  const [coarse, fine] = layers;
  const layer = fine !== undefined && place >= fine.from && place < fine.to ? fine : coarse;
  const bars = layer === undefined ? undefined : barsOf(layer, row);
  if (layer === undefined || bars === undefined) return null;
  const index = barOfSeq(bars, seq);
  return index < 0 ? null : { layer, row, index };
}

function itemOf(spot: Spot | null): Item | null {
  if (spot === null) return null;
  const { layer, row, index } = spot;
  const bars = barsOf(layer, row);
  if (bars === undefined) return null;
  const [first = 0, last = 0] = [bars.first[index], bars.last[index]];
  const id = row < 0 ? layer.messages.ids?.[index] : layer.summaries[row]?.ids[index];
  const count = row < 0 ? last - first + 1 : (layer.summaries[row]?.counts[index] ?? 1);
  return {
    row,
    seq: first,
    first,
    last,
    count,
    id: id ?? null,
    tokens: bars.tokens[index] ?? 0,
    state: bars.state[index] ?? 0,
  };
}

function itemAt(state: State, x: number, y: number): Item | null {
  const row = rowAt(state.rows, y);
  const place = toAxis(state.camera, x);
  const layer = layerAt(state, place);
  const bars = row === null || layer === null ? undefined : barsOf(layer, row);
  if (row === null || layer === null || bars === undefined) return null;
  const index = barAt(bars, place, reach * state.camera.unit);
  return index < 0 ? null : itemOf({ layer, row, index });
}

function step(state: State, from: Target, direction: "left" | "right" | "up" | "down"): Item | null {
  const spot = spotOf(state, from);
  if (direction === "up" || direction === "down") {
    const row = from.row + (direction === "up" ? 1 : -1);
    return row < -1 || row >= depthsOf(state) ? null : nearest(state, { row, seq: from.seq });
  }
  if (spot === null) return nearest(state, from);
  const bars = barsOf(spot.layer, spot.row);
  const index = spot.index + (direction === "left" ? -1 : 1);
  if (bars !== undefined && index >= 0 && index < bars.count) return itemOf({ ...spot, index });
  // The next layer may go on where this one ends.
  const item = itemOf(spot);
  if (item === null) return null;
  return itemOf(spotOf(state, { row: from.row, seq: direction === "left" ? item.first - 1 : item.last + 1 }));
}

function nearest(state: State, { row, seq }: Target): Item | null {
  const found = itemOf(spotOf(state, { row, seq }));
  const { scale, layers } = state;
  if (found !== null || scale === null) return found;
  const place = placeOfSeq(scale, seq);
  const layer = layerAt({ layers }, place);
  const bars = layer === null ? undefined : barsOf(layer, row);
  if (layer === null || bars === undefined) return null;
  const index = barAt(bars, place, Infinity);
  return index < 0 ? null : itemOf({ layer, row, index });
}
