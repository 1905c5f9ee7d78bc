/** The timeline's colours, from the style sheet, and a pattern per state, so that no state is told by colour alone. */

import type { Theme } from "./draw.ts";
import { states } from "./layer.ts";

const tile = 6;

/** How each state is hatched, as lines in a tile. */
const hatches: Readonly<Record<(typeof states)[number], readonly (readonly [number, number, number, number])[]>> = {
  prompt: [],
  context: [
    [-1, 7, 7, -1],
    [-1, 1, 1, -1],
    [5, 7, 7, 5],
  ],
  below: [],
  evicted: [
    [-1, -1, 7, 7],
    [5, -1, 7, 1],
    [-1, 5, 1, 7],
  ],
  outside: [[0, 3, 1, 3]],
  forgotten: [
    [-1, -1, 7, 7],
    [-1, 7, 7, -1],
  ],
};

export function readTheme(canvas: HTMLCanvasElement, density: number): Theme {
  const style = getComputedStyle(canvas);
  /** As a colour of its own, so that the browser has chosen between dark and light. */
  const colour = (name: string): string => {
    canvas.style.color = `var(--${name})`;
    return style.color;
  };
  return {
    ink: colour("ink"),
    soft: colour("soft"),
    line: colour("line"),
    paper: colour("raised"),
    accent: colour("accent"),
    fills: states.map((state) =>
      patternOf(canvas, state, { fill: colour(state), line: colour(`${state}-line`), density }),
    ),
    strokes: states.map((state) => colour(`${state}-line`)),
    marks: {
      line: colour("ink"),
      notch: colour("soft"),
      diamond: colour("bad"),
      ring: colour("accent"),
      triangle: colour("hit"),
    },
    font: `12px ${style.fontFamily}`,
  };
}

interface Look {
  readonly fill: string;
  readonly line: string;
  readonly density: number;
}

function patternOf(
  canvas: HTMLCanvasElement,
  state: (typeof states)[number],
  { fill, line, density }: Look,
): string | CanvasPattern {
  const lines = hatches[state];
  if (lines.length === 0) return fill;
  const small = document.createElement("canvas");
  small.width = small.height = tile * density;
  const context = small.getContext("2d");
  if (context === null) return fill;
  context.scale(density, density);
  context.fillStyle = fill;
  context.fillRect(0, 0, tile, tile);
  context.strokeStyle = line;
  context.lineWidth = 1.2;
  for (const [x, y, toX, toY] of lines) {
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(toX, toY);
    context.stroke();
  }
  const pattern = canvas.getContext("2d")?.createPattern(small, "repeat") ?? null;
  pattern?.setTransform(new DOMMatrix().scale(1 / density));
  return pattern ?? fill;
}
