/** The terminal UI as one state: a stack of layers, a status line, a key bar. `update` and `draw` are pure. */

import type { Ask } from "./asks.ts";
import type { Asking, Choice, Frame, Going, LayerEvent, Notice, Destination, Step } from "./contract.ts";
import { boxPlace, ends, fit, fitAll, over, spinner, textPage } from "./widgets/draw.ts";
import { barEntries, drawBar, helpLines, keyName, type BarEntry, type Key, type Offer } from "./keys.ts";
import { advance, bindingFor, open, reasonAgainst, withModule, type Layer } from "./layers.ts";
import { commonKeys, commonOffers, offersOf, paletteEntries, subjectOf } from "./offers.ts";
import { withEntries } from "./dialogs/palette.ts";
import type { Timestamp } from "../core/base/time.ts";
import { widthOf } from "../format/width.ts";
import { oneLine } from "../format/safe-text.ts";
import type { Page } from "../format/page.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface App {
  readonly look: Pick<Page, "paint" | "zone" | "typed">;
  readonly path: string;
  readonly readOnly: string | null;
  /** Why no model can be asked; null if one can, or before that is known. */
  readonly noModel: string | null;
  readonly size: Size;
  /** Never empty; keys go to the last one. */
  readonly layers: readonly Opened[];
  /** The id of the next layer. */
  readonly opened: number;
  /** `about`: the ask that failed; its next answer clears the notice. */
  readonly notice: (Notice & { readonly about?: Ask["kind"] }) | null;
  /** Keys pressed before the data they act on was read. */
  readonly held: readonly Key[];
  /** Of the database file when it was last checked; null if there was none. */
  readonly stamp: string | null;
  /** Whether a read failed, and is to be repeated. */
  readonly isBehind: boolean;
  readonly now: Timestamp;
  readonly beat: number;
}

interface Opened {
  readonly id: number;
  readonly layer: Layer;
}

export type AppEvent =
  | LayerEvent<"key" | "pasted" | "click" | "wheel">
  | (LayerEvent<"answer" | "failed" | "progress"> & { readonly layer: number })
  | { readonly kind: "resized"; readonly size: Size }
  | { readonly kind: "tick"; readonly now: Timestamp; readonly stamp: string | null }
  | { readonly kind: "model"; readonly noModel: string | null }
  | { readonly kind: "beat" };

export type Effect =
  /** Aborts an earlier ask in the same slot of the layer. */
  | { readonly kind: "ask"; readonly layer: number; readonly slot: string; readonly ask: Ask }
  /** Aborts the layer's ask in a slot; null: all of its asks. */
  | { readonly kind: "stop"; readonly layer: number; readonly slot: string | null }
  | { readonly kind: "redraw" }
  | { readonly kind: "suspend" }
  | { readonly kind: "quit" };

export interface AppStep {
  readonly app: App;
  readonly effects: readonly Effect[];
}

export type Start = Pick<App, "look" | "path" | "readOnly" | "size" | "now" | "stamp">;

export function start(given: Start, place: Destination = { kind: "conversations" }): AppStep {
  const app: App = { ...given, noModel: null, layers: [], opened: 0, notice: null, held: [], isBehind: false, beat: 0 };
  return push(app, place);
}

// ── The room ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const titleRows = 1;
const footRows = 2;

const roomOf = ({ size }: App): Size => ({
  columns: size.columns,
  rows: Math.max(1, size.rows - titleRows - footRows),
});

const frameIn = (app: App, { columns, rows }: Size): Frame => ({
  ...app.look,
  columns,
  bounds: columns,
  rows,
  now: app.now,
  readOnly: app.readOnly,
  noModel: app.noModel,
  beat: app.beat,
});

const roomFrame = (app: App): Frame => frameIn(app, roomOf(app));

/** A layer gets the whole room, or a box in the middle of it. */
function frameOf(app: App, layer: Layer): Frame {
  const box = boxOf(app, layer);
  return box === null ? roomFrame(app) : frameIn(app, { columns: box.columns - 4, rows: box.rows - 2 });
}

function boxOf(app: App, layer: Layer): ReturnType<typeof boxPlace> | null {
  return withModule(layer, (module, state) => {
    if (module.box === undefined) return null;
    return boxPlace(module.box(state, roomFrame(app)), roomOf(app));
  });
}

// ── Update ───────────────────────────────────────────────────────────────────────────────────────────────────────────

export function update(app: App, event: AppEvent): AppStep {
  switch (event.kind) {
    case "key":
      return keyed(app, event.key);
    case "pasted":
      return isTyping(topOf(app).layer) ? toTop(app, event) : still(app);
    case "click":
      return clicked(app, event);
    case "wheel":
      return pointed(app, event);
    case "resized":
      return toAll({ ...app, size: event.size }, { kind: "resized" });
    case "answer": {
      const notice = app.notice?.about === event.answer.kind ? null : app.notice;
      return then(then(to({ ...app, isBehind: false, notice }, event.layer, event), releaseHeld), withNewEntries);
    }
    case "progress":
      return to(app, event.layer, event);
    case "failed":
      return failed(app, event);
    case "tick":
      return ticked(app, event.now, event.stamp);
    case "model":
      return withNewEntries({ ...app, noModel: event.noModel });
    case "beat":
      return still({ ...app, beat: app.beat + 1 });
  }
}

const still = (app: App): AppStep => ({ app, effects: [] });

function then({ app, effects }: AppStep, next: (app: App) => AppStep): AppStep {
  const step = next(app);
  return { app: step.app, effects: [...effects, ...step.effects] };
}

function topOf({ layers }: App): Opened {
  const top = layers.at(-1);
  if (top === undefined) throw new RangeError("no layer is open");
  return top;
}

const isTyping = (layer: Layer): boolean => withModule(layer, (module, state) => module.isTyping?.(state) ?? false);

const isUnread = (layer: Layer): boolean => withModule(layer, (module, state) => module.isUnread?.(state) ?? false);

export const isBusy = ({ layers }: Pick<App, "layers">): boolean =>
  layers.some(({ layer }) => isUnread(layer) || withModule(layer, (module, state) => module.isBusy?.(state) ?? false));

function failed(app: App, event: Extract<AppEvent, { readonly kind: "failed" }>): AppStep {
  const { ask, failure } = event;
  const text = [failure.message, ...(failure.hint === null ? [] : [app.look.typed(failure.hint)])].join(" · ");
  const notice = { tone: "bad", text: oneLine(text), about: ask.kind } as const;
  return to({ ...app, isBehind: true, held: [], notice }, event.layer, event);
}

function ticked(app: App, now: Timestamp, stamp: string | null): AppStep {
  const next = { ...app, now, stamp };
  if (stamp === null && app.stamp === null) return still({ ...next, isBehind: true });
  if (stamp === null) {
    const text = `${app.path} no longer exists; the screen shows what was read before`;
    return still({ ...next, isBehind: true, notice: { tone: "bad", text } });
  }
  if (stamp === app.stamp && !app.isBehind) return still(next);
  // The file is back, so the notice about it goes; a success, such as the import that created it, stays.
  const isBack = app.stamp === null && app.notice?.tone !== "good";
  return toAll(isBack ? { ...next, notice: null } : next, { kind: "changed" });
}

/** Sends an event to every visible layer: the top one, and those it is drawn over. */
function toAll(app: App, event: LayerEvent): AppStep {
  return seenLayers(app).reduce((step, { id }) => then(step, (next) => to(next, id, event)), still(app));
}

function seenLayers(app: App): readonly Opened[] {
  const from = app.layers.findLastIndex(({ layer }) => boxOf(app, layer) === null);
  return app.layers.slice(Math.max(0, from));
}

const toTop = (app: App, event: LayerEvent): AppStep => to(app, topOf(app).id, event);

/** Events for a layer that was closed meanwhile are dropped. */
function to(app: App, id: number, event: LayerEvent): AppStep {
  const opened = app.layers.find((each) => each.id === id);
  if (opened === undefined) return still(app);
  const frame = frameOf(app, opened.layer);
  return took(
    app,
    id,
    withModule(opened.layer, (module, state) => advance(module, state, event, frame)),
  );
}

/** Applies a layer's step to the app. */
function took(app: App, id: number, step: Step<Layer>): AppStep {
  const layers = app.layers.map((each) => (each.id === id ? { id, layer: step.state } : each));
  // A success stays until a key is pressed.
  const notice = app.notice?.tone === "good" ? app.notice : (step.notice ?? app.notice);
  const next: App = { ...app, layers, notice };
  const effects = (step.asks ?? []).map((asking) => effectOf(id, asking));
  const { go: going } = step;
  return going === undefined ? { app: next, effects } : then({ app: next, effects }, (gone) => go(gone, id, going));
}

function effectOf(layer: number, { slot, ...ask }: Asking): Effect {
  return { kind: "ask", layer, slot: slot ?? ask.kind, ask };
}

function go(app: App, id: number, going: Going): AppStep {
  switch (going.kind) {
    case "open":
      return push(app, going.place);
    case "become":
      return then(close(app, id), (closed) => push(closed, going.place));
    case "back":
      return back(app, id);
    case "stop":
      return { app, effects: [{ kind: "stop", layer: id, slot: going.slot }] };
    case "choose":
      return then(close(app, id), (closed) => chosen(closed, going.choice));
  }
}

const chosen = (app: App, choice: Choice): AppStep =>
  choice.kind === "open" ? push(app, choice.place) : keyed(app, { name: choice.key, text: "" });

function push(app: App, place: Destination): AppStep {
  const id = app.opened;
  const step = open(place);
  const layers = [...app.layers, { id, layer: step.state }];
  return took({ ...app, layers, opened: id + 1 }, id, step);
}

const close = (app: App, id: number): AppStep => ({
  app: { ...app, layers: app.layers.filter((each) => each.id !== id) },
  effects: [{ kind: "stop", layer: id, slot: null }],
});

/** Going back from the first screen quits. */
function back(app: App, id: number): AppStep {
  if (app.layers.length === 1) return { app, effects: [{ kind: "quit" }] };
  return then(close(app, id), (closed) => toTop(closed, { kind: "returned" }));
}

// ── Keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One Escape too many on the way back must not quit. */
const quitWords = "press esc again to quit, or q";

const keyed = (app: App, key: Key): AppStep =>
  isHeld(app, key)
    ? still({ ...app, held: [...app.held, key], notice: { tone: "info", text: heldWords(key) } })
    : pressed({ ...app, held: [], notice: null }, key, app.notice?.text === quitWords);

function pressed(app: App, key: Key, isQuitting = false): AppStep {
  const { id, layer } = topOf(app);
  const frame = frameOf(app, layer);
  if (key.name === "ctrl+c") return { app, effects: [{ kind: "quit" }] };
  if (key.name === "ctrl+z") return { app, effects: [{ kind: "suspend" }] };
  const isText = isTyping(layer);
  if (isText && key.name === "ctrl+p" && layer.kind !== "palette") return push(app, paletteOf(app));
  const own = withModule(layer, (module, state) => {
    if (isText) return advance(module, state, { kind: "key", key }, frame);
    const binding = bindingFor(module, state, key.name, frame);
    if (binding === null) return null;
    const why = reasonAgainst(binding, state, frame);
    if (why === null) return advance(module, state, { kind: "pressed", name: key.name }, frame);
    return { state, notice: { tone: "bad", text: `${keyName(key.name)}: ${why}` } } as const;
  });
  if (own !== null) return took(app, id, own);
  const common = commonKeys.find(({ keys }) => keys.includes(key.name));
  switch (common?.action) {
    case "palette":
      return push(app, paletteOf(app));
    case "help":
      return layer.kind === "text" && layer.title === helpTitle ? back(app, id) : push(app, helpOf(app));
    case "back":
      if (key.name !== "escape" || app.layers.length > 1 || isQuitting) return back(app, id);
      return still({ ...app, notice: { tone: "info", text: quitWords } });
    case "redraw":
      return { app, effects: [{ kind: "redraw" }] };
    default:
      return still(app);
  }
}

/** Whether a key waits for a read: it needs the data, or follows one that does. Keys that change data never wait. */
function isHeld(app: App, key: Key): boolean {
  const { layer } = topOf(app);
  if (!isUnread(layer) || isTyping(layer) || commonKeys.some(({ keys }) => keys.includes(key.name))) return false;
  return withModule(layer, (module, state) => {
    const frame = frameOf(app, layer);
    const binding = bindingFor(module, state, key.name, frame);
    if (binding === null || binding.changes === true) return false;
    return app.held.length > 0 || binding.moves === true || reasonAgainst(binding, state, frame) !== null;
  });
}

const heldWords = ({ name }: Key): string => `${keyName(name)}: waiting for the data`;

/** Presses the keys that waited, in order, until one opens a layer that is still reading. */
function releaseHeld(app: App): AppStep {
  const [key, ...held] = app.held;
  if (key === undefined || isUnread(topOf(app).layer)) return still(app);
  return then(pressed({ ...app, held, notice: null }, key), releaseHeld);
}

const helpTitle = "keys";

function helpOf(app: App): Destination {
  const { layer } = topOf(app);
  const name = withModule(layer, (module) => module.name);
  const groups = [
    { name, offers: offersOf(layer, frameOf(app, layer)) },
    { name: "Everywhere", offers: commonOffers(app.layers.length === 1) },
  ];
  const { columns } = textPage(roomFrame(app));
  return { kind: "text", title: helpTitle, lines: helpLines(groups, columns, app.look.paint) };
}

function paletteOf(app: App): Destination<"palette"> {
  const { layer } = topOf(app);
  const subject = subjectOf(app.layers.map((each) => each.layer));
  return { kind: "palette", entries: paletteEntries(layer, frameOf(app, layer), subject) };
}

/** An open palette lists what is available now. */
function withNewEntries(app: App): AppStep {
  const { id, layer } = topOf(app);
  if (layer.kind !== "palette" || app.layers.length === 1) return still(app);
  const { entries } = paletteOf({ ...app, layers: app.layers.slice(0, -1) });
  const renewed = { id, layer: withEntries(layer, entries, frameOf(app, layer)) };
  return still({ ...app, layers: [...app.layers.slice(0, -1), renewed] });
}

// ── The mouse ────────────────────────────────────────────────────────────────────────────────────────────────────────

function clicked(app: App, event: Extract<AppEvent, { readonly kind: "click" }>): AppStep {
  if (event.row !== app.size.rows - 1) return pointed({ ...app, notice: null }, event);
  const entry = barOf(app).find(({ from, to: end }) => event.column >= from && event.column < end);
  const text = entry !== undefined && entry.key.length === 1 ? entry.key : "";
  return entry === undefined ? still(app) : pressed({ ...app, notice: null }, { name: entry.key, text });
}

/** To the top layer, if the pointer is on it. */
function pointed(app: App, event: LayerEvent<"click" | "wheel">): AppStep {
  const { id, layer } = topOf(app);
  const box = boxOf(app, layer);
  const [left, above] = box === null ? [0, titleRows] : [box.column + 2, titleRows + box.row + 1];
  const [column, row] = [event.column - left, event.row - above];
  const { columns, rows } = frameOf(app, layer);
  if (column < 0 || row < 0 || column >= columns || row >= rows) return still(app);
  return to(app, id, { ...event, column, row });
}

// ── Draw ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** As many lines as the terminal has rows, each of its full width. */
export function draw(app: App): readonly string[] {
  const { size } = app;
  const room = roomOf(app);
  const body = seenLayers(app).reduce<readonly string[]>(
    (below, { layer }) => {
      const frame = frameOf(app, layer);
      const lines = withModule(layer, (module, state) => module.draw(state, frame));
      const box = boxOf(app, layer);
      if (box === null) return fitAll(lines, room.columns, room.rows);
      const title = withModule(layer, (module, state) => module.title(state));
      return over(below, { ...box, title, lines }, room.columns, frame.paint);
    },
    fitAll([], room.columns, room.rows),
  );
  const whole = [titleLine(app), ...body, noticeLine(app), drawBar(barOf(app), app.look.paint)];
  return fitAll(whole.length > size.rows ? whole.slice(-size.rows) : whole, size.columns, size.rows);
}

/** The path of open screens, and the database. What does not fit is dropped: its folders, earlier screens, its name. */
function titleLine({ layers, path, readOnly, size, look, ...app }: App): string {
  const { paint } = look;
  const titles = layers
    .filter(({ layer }) => withModule(layer, (module) => module.box === undefined))
    .map(({ layer }) => withModule(layer, (module, state) => oneLine(module.title(state))));
  const mark = ` ${isBusy({ layers }) ? spinner(app.beat) : "◆"} `;
  const [whole, file] = [oneLine(path), oneLine(path.replace(/^.*[/\\]/s, ""))];
  const all = ["lossless-claw", ...titles].join(" › ");
  const ways = titles.map((_, from) => (from === 0 ? all : ["…", ...titles.slice(from)].join(" › ")));
  const marked = (name: string): string =>
    [...(readOnly === null ? [] : ["read-only"]), ...(name === "" ? [] : [name])].map((each) => `${each} `).join("· ");
  const pairs = [
    [all, whole],
    ...(ways.length === 0 ? [all] : ways).flatMap((way) => [
      [way, file],
      [way, ""],
    ]),
  ] as const;
  const fits = ([way = "", name = ""]: readonly string[]): boolean =>
    widthOf(mark) + widthOf(way) + 1 + widthOf(marked(name)) <= size.columns;
  const [way = "", name = ""] = pairs.find(fits) ?? [titles.at(-1) ?? all, ""];
  return paint.selected(ends(mark + way, marked(name), size.columns));
}

function noticeLine({ notice, size, look }: App): string {
  const { paint } = look;
  if (notice === null) return paint.soft("─".repeat(size.columns));
  const tone = { info: (text: string) => text, good: paint.good, bad: paint.bad }[notice.tone];
  return tone(fit(` ${notice.tone === "bad" ? "✗ " : notice.tone === "good" ? "✓ " : ""}${notice.text}`, size.columns));
}

function barOf(app: App): readonly BarEntry[] {
  const { layer } = topOf(app);
  if (isTyping(layer)) return barEntries(typingOffers, app.size.columns);
  // Only available keys; the help lists the others with the reason.
  const own = offersOf(layer, frameOf(app, layer)).filter(({ because }) => because === null);
  const isTaken = (key: string): boolean => own.some(({ keys, short }) => short !== undefined && keys.includes(key));
  const common = commonOffers(app.layers.length === 1).filter(({ keys }) => !isTaken(keys[0] ?? ""));
  return barEntries([...own, ...common], app.size.columns);
}

const typingOffers: readonly Offer[] = [
  { keys: ["enter"], short: "accept", help: "", because: null },
  { keys: ["escape"], short: "cancel", help: "", because: null },
];
