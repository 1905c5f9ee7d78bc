/** Shows the progress of long work on one line of the terminal, and nothing where there is no terminal. */

import { createPaint } from "../format/paint.ts";
import { formatBytes, formatCount } from "../core/base/format.ts";
import { cut, widthOf } from "../format/width.ts";
import type { Output } from "../format/page.ts";

export interface Reached {
  readonly done: number;
  readonly of: number;
  readonly unit: "bytes" | "rows" | "messages" | "conversations" | "summaries";
  readonly detail?: string;
}

export interface Progress {
  /** Cheap enough to call for every line of a file. */
  update(state: Reached): void;
  /** For work of unknown length. */
  say(words: string): void;
  /** Clears the line. */
  end(): void;
}

const silent: Progress = { update: () => undefined, say: () => undefined, end: () => undefined };

const redrawMs = 80;
/** Shorter work shows no bar. */
const patienceMs = 250;
const clearLine = "\r\u001b[2K";

export function createProgress(
  output: Output | null,
  label: string,
  nowMs: () => number = () => performance.now(),
): Progress {
  if (output === null || !output.isTerminal) return silent;
  const paint = createPaint(output.colour);
  const startedMs = nowMs();
  let drawnMs = startedMs + patienceMs - redrawMs;
  let isShown = false;
  const isTime = (now: number): boolean => {
    if (now - drawnMs < redrawMs) return false;
    drawnMs = now;
    isShown = true;
    return true;
  };
  return {
    update({ done, of, unit, detail }) {
      const now = nowMs();
      if (!isTime(now)) return;
      const share = of > 0 ? Math.min(1, done / of) : 0;
      const amount = amountOf({ done, of, unit });
      const more = `${detail === undefined ? "" : `  ${detail}`}${remaining(now - startedMs, share)}`;
      const words = `${String(Math.floor(share * 100)).padStart(3)}%  ${amount}${more}`;
      const room = (output.columns ?? 80) - 1;
      const cells = Math.max(barMin, Math.min(barMax, room - widthOf(words) - nameMin - 4));
      const name = cut(label, Math.max(nameMin, room - widthOf(words) - cells - 4));
      const bar = drawBar(share, cells);
      const line = `${name}  ${paint.good(bar.full)}${paint.soft(bar.empty)}  ${words}`;
      output.stream.write(clearLine + (widthOf(line) > room ? cut(`${name} ${words}`, room) : line));
    },
    say(words) {
      if (isTime(nowMs())) output.stream.write(clearLine + cut(`${label}  ${words}`, (output.columns ?? 80) - 1));
    },
    end() {
      if (isShown) output.stream.write(clearLine);
      isShown = false;
    },
  };
}

const amountOf = ({ done, of, unit }: Reached): string =>
  unit === "bytes"
    ? `${formatBytes(done)} of ${formatBytes(of)}`
    : `${formatCount(done)} of ${formatCount(of)} ${unit}`;

export interface ProgressLine {
  /** A step that shows how far it is. */
  readonly step: (label: string) => Progress;
  /** Shows the time that has passed, unless a step has shown more just now. */
  readonly tick: () => void;
  readonly clear: () => void;
  /** Shows nothing while a person is asked; that time does not count. */
  readonly pauseFor: <T>(asking: Promise<T>) => Promise<T>;
  /** Shows nothing from now on. */
  readonly silence: () => void;
  /** How far the latest step came; empty if none counted anything. */
  readonly reached: () => string;
}

const stepFreshMs = 1_000;

/** The one progress line of a command. */
export function createProgressLine(output: Output | null, doing: string): ProgressLine {
  const own = createProgress(output, doing);
  let startedMs = performance.now();
  let shownMs = Number.NEGATIVE_INFINITY;
  let latest: Reached | null = null;
  let isSilent = false;
  let asked = 0;
  return {
    step(label) {
      const step = createProgress(output, label);
      const over = (show: () => void): void => {
        shownMs = performance.now();
        if (!isSilent) show();
      };
      return {
        update(state) {
          latest = state;
          over(() => step.update(state));
        },
        say: (words) => over(() => step.say(words)),
        end: () => step.end(),
      };
    },
    tick() {
      const now = performance.now();
      if (!isSilent && asked === 0 && now - shownMs > stepFreshMs)
        own.say(`${Math.floor((now - startedMs) / 1_000)} s`);
    },
    clear: () => own.end(),
    async pauseFor(asking) {
      own.end();
      asked += 1;
      const askedMs = performance.now();
      try {
        return await asking;
      } finally {
        asked -= 1;
        startedMs += performance.now() - askedMs;
      }
    },
    silence: () => void (isSilent = true),
    reached: () => (latest === null ? "" : [amountOf(latest), latest.detail].filter(Boolean).join(", ")),
  };
}

const nameMin = 10;
const barMin = 8;
const barMax = 24;

function drawBar(share: number, cells: number): { readonly full: string; readonly empty: string } {
  const full = Math.round(share * cells);
  return { full: "█".repeat(full), empty: "░".repeat(cells - full) };
}

const estimateAfterMs = 1_500;

/** Shown once there is enough to estimate from. */
function remaining(elapsedMs: number, share: number): string {
  if (elapsedMs < estimateAfterMs || share <= 0) return "";
  const seconds = Math.ceil((elapsedMs / share - elapsedMs) / 1_000);
  return seconds < 60 ? `  ${seconds} s left` : `  ${Math.ceil(seconds / 60)} min left`;
}
