/**
 * Runs the terminal UI on a terminal: keys and answers become events, states become lines, effects are performed. All that
 * is not pure about it is here.
 */

import { TuiAltScreen } from "@earendil-works/pi-tui";
import type { Component, Terminal, TuiMouseEvent, TuiMouseEventResult } from "@earendil-works/pi-tui";
import { LcmError, errorText } from "../core/base/errors.ts";
import type { Clock } from "../core/model/store.ts";
import { draw, isBusy, start, update } from "./app.ts";
import type { App, AppEvent, AppStep, Effect } from "./app.ts";
import { perform } from "./asks.ts";
import type { Place } from "./contract.ts";
import { keyOf } from "./keys.ts";
import type { Failure, Port } from "./port.ts";
import type { Page } from "../format/page.ts";

export interface Running {
  readonly port: Port;
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly look: Pick<Page, "paint" | "zone" | "typed">;
  /** Where it begins; at the conversations if left out. */
  readonly place?: Place;
  /** Ends it, as leaving does. */
  readonly signal: AbortSignal;
  /** Stops this process until it is continued, as Ctrl-Z does elsewhere; left out where that cannot be. */
  readonly suspend?: () => void;
}

const tickMs = 1_000;
const beatMs = 120;

/** Until it is left. The terminal is as it was then, whatever happened; throws what it could not go on after. */
export async function runTui(given: Running): Promise<void> {
  const { port, clock, look, signal } = given;
  const ended = Promise.withResolvers<void>();
  const underWay = new Map<string, AbortController>();
  let performing = 0; // Also what nobody waits for any more.
  const terminal = keysFirst(given.terminal, (data) => {
    const text = pastedText(data);
    const key = text === null ? keyOf(data) : null;
    if (text !== null) happen({ kind: "pasted", text });
    else if (key !== null) happen({ kind: "key", key });
  });
  const screen = new TuiAltScreen(terminal, false);
  const sizeNow = (): App["size"] => ({ columns: terminal.columns, rows: terminal.rows });
  let app: App;

  const follow = (step: AppStep): void => {
    ({ app } = step);
    for (const effect of step.effects) carryOut(effect);
    beat();
    screen.requestRender();
  };
  /** What cannot be gone on after ends the program, which restores the terminal and tells. */
  const attempt = (work: () => void): void => {
    if (isOver) return;
    try {
      work();
    } catch (error) {
      ended.reject(error);
    }
  };
  const happen = (event: AppEvent): void => attempt(() => follow(update(app, event)));
  const tick = (): void => attempt(() => happen({ kind: "tick", now: clock.now(), stamp: port.stamp() }));
  const carryOut = (effect: Effect): void => {
    switch (effect.kind) {
      case "ask":
        return void ask(effect);
      case "stop":
        for (const [name, controller] of underWay)
          if (name === slotName(effect.layer, effect.slot ?? "") || (effect.slot === null && isOf(name, effect.layer)))
            controller.abort();
        return;
      case "redraw":
        return screen.requestRender(true);
      case "suspend":
        return suspend();
      case "quit":
        return ended.resolve();
    }
  };
  const ask = async ({ layer, slot, ask: asked }: Extract<Effect, { readonly kind: "ask" }>): Promise<void> => {
    const name = slotName(layer, slot);
    underWay.get(name)?.abort();
    const controller = new AbortController();
    underWay.set(name, controller);
    const isWanted = (): boolean => underWay.get(name) === controller && !controller.signal.aborted;
    performing += 1;
    try {
      const answer = await perform(asked, {
        port,
        signal: controller.signal,
        onProgress: (progress) => isWanted() && happen({ kind: "progress", layer, ask: asked, progress }),
      });
      if (isWanted()) happen({ kind: "answer", layer, answer });
    } catch (error) {
      const failure = failureOf(error);
      if (isWanted() && (failure.code === "corrupt" || failure.code === "unavailable")) port.renew();
      if (isWanted()) happen({ kind: "failed", layer, ask: asked, failure });
    } finally {
      if (underWay.get(name) === controller) underWay.delete(name);
      performing -= 1;
      if (performing === 0) port.rest();
    }
  };

  /** The terminal is the shell's meanwhile, and may be of another size after. */
  const suspend = (): void => {
    if (given.suspend === undefined) return;
    screen.stop({ preserveScreen: true });
    given.suspend();
    screen.start();
    screen.requestRender(true);
    tick();
  };

  const root: Component = {
    render: () => [...drawn()],
    handleMouse: createMouse(happen),
    invalidate: () => undefined,
  };
  const drawn = (): readonly string[] => {
    const size = sizeNow();
    if (size.columns !== app.size.columns || size.rows !== app.size.rows) happen({ kind: "resized", size });
    try {
      return draw(app);
    } catch (error) {
      ended.reject(error);
      return [];
    }
  };

  // A spinner turns only while there is something to wait for.
  let beating: NodeJS.Timeout | null = null;
  const beat = (): void => {
    const busy = isBusy(app);
    if (busy && beating === null) beating = setInterval(() => happen({ kind: "beat" }), beatMs);
    if (!busy && beating !== null) {
      clearInterval(beating);
      beating = null;
    }
  };
  let isOver = false;
  const leave = (): void => ended.resolve();
  signal.addEventListener("abort", leave, { once: true });
  const ticking = setInterval(tick, tickMs);
  try {
    const begun = {
      look,
      path: port.path,
      readOnly: port.readOnly,
      size: sizeNow(),
      now: clock.now(),
      stamp: port.stamp(),
    };
    const first = start(begun, given.place);
    app = first.app;
    screen.setLayoutRoot(root);
    screen.start();
    terminal.setTitle("lossless-claw");
    follow(first);
    if (signal.aborted) leave();
    await ended.promise;
  } finally {
    isOver = true;
    signal.removeEventListener("abort", leave);
    clearInterval(ticking);
    if (beating !== null) clearInterval(beating);
    for (const controller of underWay.values()) controller.abort();
    screen.stop({ preserveScreen: true });
  }
}

const slotName = (layer: number, slot: string): string => `${layer} ${slot}`;
const isOf = (name: string, layer: number): boolean => name.startsWith(`${layer} `);

const failureOf = (error: unknown): Failure =>
  error instanceof LcmError
    ? { code: error.code, message: error.message, hint: error.hint ?? null }
    : { code: "internal", message: errorText(error), hint: null };

// ── Input ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const pastedText = (data: string): string | null => /^\u001b\[200~([\s\S]*)\u001b\[201~$/.exec(data)?.[1] ?? null;

/** What the mouse and the terminal itself send, which the renderer understands. */
const isForRenderer = (data: string): boolean => /^\u001b(?:\[<|\[M|\[[IO]$|\]|\[6;|\[\?|P|_)/.test(data);

/** Keys come to us before the renderer, which would scroll with some of them. */
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

/** A second click that comes no later than this is a double one. */
const doubleClickMs = 500;

/** Dragging stays with the renderer, which selects and copies text with it; a double click is ours, also on a word. */
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
