/**
 * Draws the timeline on a canvas. Only what is in view is looked at; where messages are narrower than a few pixels,
 * columns of pixels show how many tokens they have. Bars of one state are drawn together, and a frame allocates nothing
 * but its ticks.
 */

import { toAxis, toPixel, type Camera } from "./camera.ts";
import { firstAbove, lanes, states } from "./layer.ts";
import type { Bars, Layer, Scale, SummaryBars } from "./layer.ts";
import { orderTicks, timeTicks } from "./ticks.ts";

export interface Theme {
  readonly ink: string;
  readonly soft: string;
  readonly line: string;
  readonly paper: string;
  readonly accent: string;
  /** A colour or pattern per state, in the order of `states`. */
  readonly fills: readonly (string | CanvasPattern)[];
  readonly strokes: readonly string[];
  readonly marks: Readonly<Record<Shape, string>>;
  readonly font: string;
}

/** Marks differ by shape as well as by colour. */
export const shapes = ["line", "notch", "diamond", "ring", "triangle"] as const;
export type Shape = (typeof shapes)[number];

/** Marks of one shape, by place. */
export interface Marks {
  readonly shape: Shape;
  readonly x: Float64Array;
}

export interface Rows {
  /** The top of each depth's row, from the shallowest. */
  readonly summaries: readonly number[];
  readonly summaryHeight: number;
  readonly messagesTop: number;
  readonly laneHeight: number;
  readonly axisTop: number;
  readonly height: number;
}

const marksHeight = 30;
const rowGap = 6;
const axisHeight = 28;

/** Rows from the deepest summaries at the top down to the messages. */
export function rowsOf(depths: number, height: number): Rows {
  const free = height - marksHeight - axisHeight - rowGap * (depths + 1) - 4;
  // A summary's row is about as high as a lane of messages.
  const each = free / (lanes.length + depths);
  const summaryHeight = depths === 0 ? 0 : Math.max(10, Math.min(64, each));
  const laneHeight = Math.max(14, (free - depths * summaryHeight) / lanes.length);
  const messagesTop = marksHeight + depths * (summaryHeight + rowGap) + rowGap;
  return {
    summaries: Array.from({ length: depths }, (_, at) => marksHeight + (depths - 1 - at) * (summaryHeight + rowGap)),
    summaryHeight,
    messagesTop,
    laneHeight,
    axisTop: messagesTop + laneHeight * lanes.length + 4,
    height,
  };
}

export interface Scene {
  readonly scale: Scale;
  /** The coarse one of the whole conversation, and perhaps a finer one of a part. */
  readonly layers: readonly Layer[];
  readonly rows: Rows;
  readonly marks: readonly Marks[];
  readonly theme: Theme;
  readonly width: number;
  readonly density: number;
}

export interface Pointed {
  /** Part of the axis that is selected. */
  readonly selection: readonly [number, number] | null;
  readonly focus: Box | null;
  readonly hover: Box | null;
}

export interface Box {
  readonly from: number;
  readonly to: number;
  readonly top: number;
  readonly height: number;
}

/** A part of a layer that is drawn: between two points of the axis. */
interface Part {
  readonly layer: Layer;
  readonly from: number;
  readonly to: number;
}

export function draw(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, pointed: Pointed): void {
  const { width, rows, theme, density } = scene;
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, rows.height);
  drawAxis(context, scene, camera);
  if (pointed.selection !== null) drawSelection(context, scene, camera, pointed.selection);
  const parts = partsOf(scene, camera);
  for (const part of parts) {
    for (const bars of part.layer.summaries) drawSummaries(context, scene, camera, { part, bars });
    if (isDrawnEach(part, camera)) drawEach(context, scene, camera, part);
  }
  drawColumns(context, scene, camera, parts);
  for (const marks of scene.marks) drawMarks(context, scene, camera, marks);
  drawLaneNames(
    context,
    scene,
    parts.some((part) => isDrawnEach(part, camera)),
  );
  if (pointed.hover !== null) drawFrame(context, camera, pointed.hover, theme.soft);
  if (pointed.focus !== null) drawFrame(context, camera, pointed.focus, theme.accent);
}

/** The finest layer for each place in view. */
function partsOf({ layers, width }: Scene, camera: Camera): readonly Part[] {
  const [left, right] = [toAxis(camera, 0), toAxis(camera, width)];
  const [coarse, fine] = layers;
  if (coarse === undefined) return [];
  if (fine === undefined || fine.to <= left || fine.from >= right) return [{ layer: coarse, from: left, to: right }];
  return [
    ...(fine.from > left ? [{ layer: coarse, from: left, to: fine.from }] : []),
    { layer: fine, from: Math.max(left, fine.from), to: Math.min(right, fine.to) },
    ...(fine.to < right ? [{ layer: coarse, from: fine.to, to: right }] : []),
  ];
}

const firstIn = (bars: Bars, { from }: Part): number => firstAbove(bars.to, from);
const endIn = (bars: Bars, { to }: Part): number => firstAbove(bars.from, to);

// ── Summaries ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Row {
  readonly part: Part;
  readonly bars: SummaryBars;
}

function drawSummaries(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, row: Row): void {
  const { rows, theme, width } = scene;
  const { bars, part } = row;
  const [first, end] = [firstIn(bars, part), endIn(bars, part)];
  const [low, high] = [toPixel(camera, part.from), toPixel(camera, part.to)];
  const top = rows.summaries[bars.depth] ?? 0;
  for (let state = 0; state < states.length; state++) {
    context.fillStyle = theme.fills[state] ?? theme.soft;
    let drawnTo = -Infinity;
    for (let index = first; index < end; index++) {
      if (bars.state[index] !== state) continue;
      const right = Math.min(high, toPixel(camera, bars.to[index] ?? 0));
      // Bars narrower than a pixel share it.
      if (right < drawnTo) continue;
      const left = Math.max(low, toPixel(camera, bars.from[index] ?? 0));
      context.fillRect(left, top, Math.max(1, right - left - (right - left > 4 ? 1 : 0)), rows.summaryHeight);
      drawnTo = left + 1;
    }
  }
  if (end - first < width / 10) drawOutlines(context, scene, camera, row);
}

function drawOutlines(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, { part, bars }: Row): void {
  const { rows, theme, width } = scene;
  const top = (rows.summaries[bars.depth] ?? 0) + 0.5;
  context.lineWidth = 1;
  context.font = theme.font;
  context.textBaseline = "middle";
  for (let index = firstIn(bars, part), end = endIn(bars, part); index < end; index++) {
    const left = Math.max(-2, toPixel(camera, bars.from[index] ?? 0));
    const right = Math.min(width + 2, toPixel(camera, bars.to[index] ?? 0));
    if (right - left < 4) continue;
    context.strokeStyle = theme.strokes[bars.state[index] ?? 0] ?? theme.ink;
    context.strokeRect(left + 0.5, top, right - left - 2, rows.summaryHeight - 1);
    if (right - left > 76 && rows.summaryHeight >= 16) drawLabel(context, scene, { left, top, bars, index });
  }
}

interface Label {
  readonly left: number;
  readonly top: number;
  readonly bars: SummaryBars;
  readonly index: number;
}

function drawLabel(context: CanvasRenderingContext2D, { theme, rows }: Scene, label: Label): void {
  const { left, top, bars, index } = label;
  const middle = top + rows.summaryHeight / 2;
  const at = Math.max(4, left + 5);
  const count = bars.counts[index] ?? 1;
  const name = count > 1 ? `${shortCount(count)} × d${bars.depth}` : `d${bars.depth}`;
  context.fillStyle = theme.paper;
  context.fillRect(at, middle - 8, 66, 16);
  context.fillStyle = theme.ink;
  context.fillText(`${name} · ${shortCount(bars.tokens[index] ?? 0)}`, at + 5, middle + 0.5, 58);
}

const shortCount = (count: number): string =>
  count < 1_000
    ? String(Math.round(count))
    : count < 1e6
      ? `${(count / 1e3).toFixed(1)}k`
      : `${(count / 1e6).toFixed(1)}M`;

// ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** From this many pixels per message on, each is drawn in the lane of its role. */
const pixelsPerMessage = 3;

function isDrawnEach({ layer: { messages, axis }, from, to }: Part, camera: Camera): boolean {
  if (messages.ids === null) return false;
  if (axis === "messages") return 1 / camera.unit >= pixelsPerMessage;
  const count = firstAbove(messages.from, to) - firstAbove(messages.to, from);
  return (to - from) / camera.unit >= pixelsPerMessage * count;
}

function drawEach(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, part: Part): void {
  const { rows, theme, width } = scene;
  const { messages } = part.layer;
  const [first, end] = [firstIn(messages, part), endIn(messages, part)];
  for (let state = 0; state < states.length; state++) {
    context.fillStyle = theme.fills[state] ?? theme.soft;
    context.strokeStyle = theme.strokes[state] ?? theme.ink;
    context.lineWidth = 1;
    for (let index = first; index < end; index++) {
      if (messages.state[index] !== state) continue;
      const left = Math.max(-2, toPixel(camera, messages.from[index] ?? 0));
      const right = Math.min(width + 2, toPixel(camera, messages.to[index] ?? 0));
      const top = rows.messagesTop + (messages.lane[index] ?? 0) * rows.laneHeight;
      context.fillRect(left, top + 1, Math.max(2, right - left), rows.laneHeight - 3);
      if (right - left >= 5) context.strokeRect(left + 0.5, top + 1.5, right - left - 1, rows.laneHeight - 4);
    }
  }
}

/** Lanes are named where they are used; columns have none. */
function drawLaneNames(context: CanvasRenderingContext2D, { rows, theme }: Scene, isUsed: boolean): void {
  context.font = theme.font;
  context.textBaseline = "middle";
  const names = isUsed ? lanes : ["messages"];
  for (const [lane, name] of names.entries()) {
    const top = rows.messagesTop + lane * rows.laneHeight;
    context.fillStyle = theme.paper;
    context.globalAlpha = 0.85;
    context.fillRect(4, top + 4, name.length * 6.6 + 10, 16);
    context.globalAlpha = 1;
    context.fillStyle = theme.soft;
    context.fillText(name, 9, top + 12.5);
  }
}

const columnWidth = 2;
const columnsMax = 4_096;
/** For each column the tokens of each state. */
const amounts = new Float64Array(columnsMax * states.length);

function drawColumns(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, parts: readonly Part[]): void {
  const { rows, theme, width } = scene;
  const columns = Math.min(columnsMax, Math.ceil(width / columnWidth));
  amounts.fill(0, 0, columns * states.length);
  let isEmpty = true;
  for (const part of parts) {
    if (isDrawnEach(part, camera)) continue;
    isEmpty = false;
    addAmounts(camera, part, columns);
  }
  if (isEmpty) return;
  let highest = 1;
  for (let column = 0; column < columns; column++) highest = Math.max(highest, amountOf(column, states.length));
  const room = rows.laneHeight * lanes.length - 4;
  const bottom = rows.messagesTop + rows.laneHeight * lanes.length - 2;
  for (let state = 0; state < states.length; state++) {
    context.fillStyle = theme.fills[state] ?? theme.soft;
    for (let column = 0; column < columns; column++) {
      const own = amounts[column * states.length + state] ?? 0;
      if (own === 0) continue;
      const all = amountOf(column, states.length);
      const height = Math.max(2, room * Math.sqrt(all / highest));
      const below = (height * amountOf(column, state)) / all;
      context.fillRect(column * columnWidth, bottom - below - (height * own) / all, columnWidth, (height * own) / all);
    }
  }
}

/** The tokens in a column of the states before one. */
function amountOf(column: number, before: number): number {
  let sum = 0;
  for (let state = 0; state < before; state++) sum += amounts[column * states.length + state] ?? 0;
  return sum;
}

/** Spreads the tokens of each bar evenly over the columns that it reaches into. */
function addAmounts(camera: Camera, part: Part, columns: number): void {
  const { messages } = part.layer;
  const low = toPixel(camera, part.from);
  const high = toPixel(camera, part.to);
  for (let index = firstIn(messages, part), end = endIn(messages, part); index < end; index++) {
    const left = toPixel(camera, messages.from[index] ?? 0);
    const right = Math.max(left + 0.01, toPixel(camera, messages.to[index] ?? 0));
    const from = Math.max(0, Math.floor(Math.max(low, left) / columnWidth));
    const to = Math.min(columns - 1, Math.floor(Math.min(high, right - 0.01) / columnWidth));
    const wide = Math.max(1, (right - left) / columnWidth);
    const of = (messages.last[index] ?? 0) - (messages.first[index] ?? 0) + 1;
    const each = (messages.tokens[index] ?? 0) / wide / of;
    for (let state = 0; state < states.length; state++) {
      const share = messages.shares[index * states.length + state] ?? 0;
      if (share === 0) continue;
      for (let column = from; column <= to; column++) {
        const at = column * states.length + state;
        amounts[at] = (amounts[at] ?? 0) + Math.max(0.01, each * share);
      }
    }
  }
}

// ── Axis, marks, frames ──────────────────────────────────────────────────────────────────────────────────────────────

function drawAxis(context: CanvasRenderingContext2D, scene: Scene, camera: Camera): void {
  const { scale, rows, theme, width } = scene;
  const ticks = scale.axis === "time" ? timeTicks(camera, width, scale) : orderTicks(camera, width, scale.firstSeq);
  context.font = theme.font;
  context.textBaseline = "middle";
  context.fillStyle = theme.line;
  for (let lane = 1; lane <= lanes.length; lane++)
    context.fillRect(0, rows.messagesTop + lane * rows.laneHeight - 1, width, 1);
  for (const { x, isMajor } of ticks) {
    const top = isMajor ? 0 : rows.messagesTop;
    context.fillRect(Math.round(toPixel(camera, x)), top, 1, rows.axisTop + 8 - top);
  }
  context.fillStyle = theme.soft;
  for (const { x, label } of ticks) context.fillText(label, toPixel(camera, x) + 6, rows.axisTop + 14);
}

function drawSelection(
  context: CanvasRenderingContext2D,
  { rows, theme }: Scene,
  camera: Camera,
  [from, to]: readonly [number, number],
): void {
  const left = toPixel(camera, Math.min(from, to));
  const right = toPixel(camera, Math.max(from, to));
  context.fillStyle = theme.accent;
  context.globalAlpha = 0.14;
  context.fillRect(left, 0, right - left, rows.axisTop);
  context.globalAlpha = 1;
  context.fillRect(left, 0, 1, rows.axisTop);
  context.fillRect(right - 1, 0, 1, rows.axisTop);
}

function drawMarks(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, { shape, x }: Marks): void {
  const { rows, theme, width } = scene;
  context.fillStyle = theme.marks[shape];
  context.strokeStyle = theme.marks[shape];
  context.lineWidth = 1.75;
  let drawnTo = -Infinity;
  context.beginPath();
  for (let index = firstAbove(x, toAxis(camera, -6)); index < x.length; index++) {
    const at = toPixel(camera, x[index] ?? 0);
    if (at > width + 6) break;
    if (at < drawnTo) continue;
    drawnTo = at + 3;
    addShape(context, shape, at, rows.axisTop);
  }
  if (shape === "ring") context.stroke();
  else context.fill();
}

/** Notches are below the others, so that both can be seen at one place. */
function addShape(context: CanvasRenderingContext2D, shape: Shape, at: number, bottom: number): void {
  const top = 4;
  switch (shape) {
    case "line":
      context.rect(at - 0.75, 0, 1.5, bottom);
      break;
    case "notch":
      context.rect(at - 0.75, top + 15, 1.5, 8);
      break;
    case "diamond":
      context.moveTo(at, top);
      context.lineTo(at + 6, top + 6);
      context.lineTo(at, top + 12);
      context.lineTo(at - 6, top + 6);
      break;
    case "ring":
      context.moveTo(at + 4.5, top + 6);
      context.arc(at, top + 6, 4.5, 0, 2 * Math.PI);
      break;
    case "triangle":
      context.moveTo(at - 6, top + 1);
      context.lineTo(at + 6, top + 1);
      context.lineTo(at, top + 12);
      context.rect(at - 0.5, top + 8, 1, bottom - top - 8);
      break;
  }
}

function drawFrame(context: CanvasRenderingContext2D, camera: Camera, box: Box, colour: string): void {
  const left = toPixel(camera, box.from);
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.strokeRect(left - 1, box.top - 1, Math.max(3, toPixel(camera, box.to) - left) + 2, box.height + 2);
}

// ── Where things are ─────────────────────────────────────────────────────────────────────────────────────────────────

/** Row -1 is the messages; others are depths. */
export interface Spot {
  readonly layer: Layer;
  readonly row: number;
  readonly index: number;
}

export function boxOf({ rows }: Pick<Scene, "rows">, camera: Camera, { layer, row, index }: Spot): Box {
  const bars = row < 0 ? layer.messages : layer.summaries[row];
  const [from = 0, to = 0] = [bars?.from[index], bars?.to[index]];
  if (row >= 0) return { from, to, top: rows.summaries[row] ?? 0, height: rows.summaryHeight };
  const isEach = isDrawnEach({ layer, from, to: from + 1 }, camera);
  const lane = layer.messages.lane[index] ?? 0;
  return isEach
    ? { from, to, top: rows.messagesTop + lane * rows.laneHeight, height: rows.laneHeight - 1 }
    : { from, to, top: rows.messagesTop, height: rows.laneHeight * lanes.length };
}

/** The row at a height; null between rows. */
export function rowAt(rows: Rows, y: number): number | null {
  if (y >= rows.messagesTop) return y < rows.axisTop ? -1 : null;
  const row = rows.summaries.findIndex((top) => y >= top && y < top + rows.summaryHeight);
  return row < 0 ? null : row;
}

export function layerAt({ layers }: Pick<Scene, "layers">, x: number): Layer | null {
  const [coarse = null, fine] = layers;
  return fine !== undefined && x >= fine.from && x < fine.to ? fine : coarse;
}
