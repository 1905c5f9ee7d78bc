/** Runs the terminal UI: turns input and answers into events, draws the state, performs effects. All I/O is here. */

import { TuiAltScreen, type Terminal, type TuiMouseEvent, type TuiMouseEventResult } from "@earendil-works/pi-tui";
import { LcmError, errorText } from "../core/base/errors.ts";
import type { Clock } from "../core/model/store.ts";
import type { Page } from "../format/page.ts";
import { draw, isBusy, start, update, type App, type AppEvent, type AppStep, type Effect } from "./app.ts";
import { perform } from "./asks.ts";
import type { Destination } from "./contract.ts";
import { keyOf } from "./keys.ts";
import type { Failure, Port } from "../operator/port.ts";

export interface Running {
  readonly port: Port;
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly look: Pick<Page, "paint" | "zone" | "typed">;
  /** Where to start; the list of conversations by default. */
  readonly place?: Destination;
  /** Aborting it quits. */
  readonly signal: AbortSignal;
  /** Suspends this process, as Ctrl-Z does; absent where that is impossible. */
  readonly suspend?: () => void;
}

const tickMs = 1_000;
const beatMs = 120;

/** Resolves when the user quits. Always restores the terminal; throws the error it could not recover from. */
export async function runTui(running: Running): Promise<void> {
  const { signal } = running;
  const ended = Promise.withResolvers<void>();
  const session = createSession(running, ended.resolve, ended.reject);
  const leave = (): void => ended.resolve();
  signal.addEventListener("abort", leave, { once: true });
  const lookForModel = createModelWatch(running.port, session.modelFound);
  const ticking = setInterval(() => {
    session.tick();
    lookForModel();
  }, tickMs);
  try {
    session.start();
    lookForModel();
    if (signal.aborted) leave();
    await ended.promise;
  } finally {
    signal.removeEventListener("abort", leave);
    clearInterval(ticking);
    session.stop();
  }
}

/** The state and the screen that shows it: every event goes through `happen`. */
function createSession(running: Running, quit: () => void, fail: (error: unknown) => void) {
  const { port, clock, look } = running;
  let isOver = false;
  let app: App;
  const attempt = (work: () => void): void => {
    if (isOver) return;
    try {
      work();
    } catch (error) {
      fail(error);
    }
  };
  const happen = (event: AppEvent): void => attempt(() => follow(update(app, event)));
  const tick = (): void => attempt(() => happen({ kind: "tick", now: clock.now(), stamp: port.stamp() }));
  const asks = createAsks(port, happen);
  const beat = createBeat(() => happen({ kind: "beat" }));
  const terminal = keysFirst(running.terminal, createInput(happen));
  const screen = new TuiAltScreen(terminal, false);
  const sizeNow = (): App["size"] => ({ columns: terminal.columns, rows: terminal.rows });
  const follow = (step: AppStep): void => {
    ({ app } = step);
    step.effects.forEach(carryOut);
    beat.set(isBusy(app));
    screen.requestRender();
  };
  const carryOut = (effect: Effect): void => {
    if (effect.kind === "ask") void asks.perform(effect);
    else if (effect.kind === "stop") asks.stop(effect.layer, effect.slot);
    else if (effect.kind === "redraw") screen.requestRender(true);
    else if (effect.kind === "suspend") suspend();
    else quit();
  };
  const suspend = (): void => {
    if (running.suspend === undefined) return;
    suspendScreen(screen, running.suspend);
    tick();
  };
  const render = (): string[] => {
    const size = sizeNow();
    if (size.columns !== app.size.columns || size.rows !== app.size.rows) happen({ kind: "resized", size });
    try {
      return [...draw(app)];
    } catch (error) {
      fail(error);
      return [];
    }
  };
  return {
    tick,
    modelFound: (noModel: string | null): void => happen({ kind: "model", noModel }),
    start(): void {
      const { path, readOnly } = port;
      const at = { look, path, readOnly, size: sizeNow(), now: clock.now(), stamp: port.stamp() };
      const first = start(at, running.place);
      app = first.app;
      screen.setLayoutRoot({ render, handleMouse: createMouse(happen), invalidate: () => undefined });
      screen.start();
      terminal.setTitle("lossless-claw");
      follow(first);
    },
    stop(): void {
      isOver = true;
      beat.set(false);
      asks.stopAll();
      screen.stop({ preserveScreen: true });
    },
  };
}

function suspendScreen(screen: TuiAltScreen, suspend: () => void): void {
  screen.stop({ preserveScreen: true });
  suspend();
  screen.start();
  screen.requestRender(true);
}

const ticksPerLook = 10;

/** Finds out now and then whether a model is configured, so that keys that need one can tell before they are pressed. */
function createModelWatch(port: Port, report: (noModel: string | null) => void): () => void {
  let ticks = 0;
  return () => {
    if (ticks++ % ticksPerLook !== 0) return;
    port.summariser().then(
      (writer) => report(writer === null ? noModelWords : null),
      (error: unknown) => report(errorText(error)),
    );
  };
}

const noModelWords = "no model is configured; set LCM_SUMMARY_MODEL, or start with --model provider/model";

/** Ticks only while it is on: the spinner must not redraw an idle screen. */
function createBeat(beat: () => void) {
  let timer: NodeJS.Timeout | null = null;
  return {
    set(isOn: boolean): void {
      if (isOn) timer ??= setInterval(beat, beatMs);
      else if (timer !== null) {
        clearInterval(timer);
        timer = null;
      }
    },
  };
}

/** Performs asks, one per slot: a new one aborts the one before it, whose answer is dropped. */
function createAsks(port: Port, happen: (event: AppEvent) => void) {
  const underWay = new Map<string, AbortController>();
  let performing = 0; // Includes aborted asks that have not returned yet.
  const slotName = (layer: number, slot: string): string => `${layer} ${slot}`;
  return {
    async perform({ layer, slot, ask }: Extract<Effect, { readonly kind: "ask" }>): Promise<void> {
      const name = slotName(layer, slot);
      underWay.get(name)?.abort();
      const controller = new AbortController();
      underWay.set(name, controller);
      const isWanted = (): boolean => underWay.get(name) === controller && !controller.signal.aborted;
      performing += 1;
      try {
        const answer = await perform(ask, {
          port,
          signal: controller.signal,
          onProgress: (progress) => isWanted() && happen({ kind: "progress", layer, ask, progress }),
        });
        if (isWanted()) happen({ kind: "answer", layer, answer });
      } catch (error) {
        const failure = failureOf(error);
        if (isWanted() && (failure.code === "corrupt" || failure.code === "unavailable")) port.renew();
        if (isWanted()) happen({ kind: "failed", layer, ask, failure });
      } finally {
        if (underWay.get(name) === controller) underWay.delete(name);
        performing -= 1;
        if (performing === 0) port.rest();
      }
    },
    /** `slot` null: all of the layer's asks. */
    stop(layer: number, slot: string | null): void {
      for (const [name, controller] of underWay)
        if (slot === null ? name.startsWith(slotName(layer, "")) : name === slotName(layer, slot)) controller.abort();
    },
    stopAll(): void {
      for (const controller of underWay.values()) controller.abort();
    },
  };
}

const failureOf = (error: unknown): Failure =>
  error instanceof LcmError
    ? { code: error.code, message: error.message, hint: error.hint ?? null }
    : { code: "internal", message: errorText(error), hint: null };

const pastedText = (data: string): string | null => /^\u001b\[200~([\s\S]*)\u001b\[201~$/.exec(data)?.[1] ?? null;

const createInput =
  (happen: (event: AppEvent) => void) =>
  (data: string): void => {
    const text = pastedText(data);
    const key = text === null ? keyOf(data) : null;
    if (text !== null) happen({ kind: "pasted", text });
    else if (key !== null) happen({ kind: "key", key });
  };

/** Mouse events and terminal replies, which the renderer handles. */
const isForRenderer = (data: string): boolean => /^\u001b(?:\[<|\[M|\[[IO]$|\]|\[6;|\[\?|P|_)/.test(data);

/** Keys bypass the renderer, which would scroll on some of them. */
function keysFirst(terminal: Terminal, onKey: (data: string) => void): Terminal {
  return new Proxy(terminal, {
    get(target, name) {
      if (name === "start") {
        return (onInput: (data: string) => void, onResize: () => void): void =>
          target.start((data) => (isForRenderer(data) ? onInput(data) : onKey(data)), onResize);
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const doubleClickMs = 500;

/** Handles clicks, double clicks and the wheel. The renderer keeps dragging, which selects text. */
function createMouse(happen: (event: AppEvent) => void): (event: TuiMouseEvent) => TuiMouseEventResult | undefined {
  let last = { column: -1, row: -1, at: -Infinity, count: 0 };
  const isAgain = ({ screenX, screenY }: TuiMouseEvent): boolean =>
    last.column === screenX && last.row === screenY && performance.now() - last.at < doubleClickMs;
  return (event) => {
    const { type, button, screenX: column, screenY: row } = event;
    if (type === "press" && button === "left") return isAgain(event) ? { handled: true } : undefined;
    if (type === "click" && button === "left") {
      const count = isAgain(event) ? last.count + 1 : 1;
      last = { column, row, at: performance.now(), count };
      happen({ kind: "click", column, row, count });
      return { handled: true };
    }
    if (type !== "wheel") return undefined;
    happen({ kind: "wheel", lines: event.wheelDelta ?? 0, column, row });
    return { handled: true };
  };
}
