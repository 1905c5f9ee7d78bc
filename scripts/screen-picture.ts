/** Draws what a terminal shows as an SVG picture, in the reader's light or dark colours. */

import xterm from "@xterm/headless";

export interface PictureSize {
  readonly columns: number;
  readonly rows: number;
}

interface Run {
  readonly column: number;
  readonly width: number;
  readonly text: string;
  readonly style: string;
}

const cell = { width: 8.4, height: 18 };
const margin = { side: 16, top: 44, bottom: 12 };

/** Colours by terminal colour, light and dark; without a number, those of text and background. */
const colours: Readonly<Record<string, readonly [light: string, dark: string]>> = {
  text: ["#24292f", "#d7dce2"],
  back: ["#ffffff", "#16191f"],
  edge: ["#d0d7de", "#2f3640"],
  1: ["#c22b35", "#ff7b7b"],
  2: ["#1a7f37", "#7ee787"],
  3: ["#8a6100", "#e3b341"],
  4: ["#0757c2", "#79b8ff"],
  5: ["#8250df", "#d2a8ff"],
  6: ["#0b7285", "#66d9e8"],
};

/** `written` is everything the program wrote to the terminal. */
export async function drawPicture(written: string, { columns, rows }: PictureSize, label: string): Promise<string> {
  const terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, scrollback: 0 });
  await new Promise<void>((resolve) => terminal.write(written, resolve));
  const width = columns * cell.width + 2 * margin.side;
  const height = rows * cell.height + margin.top + margin.bottom;
  const lines = Array.from({ length: rows }, (_, row) =>
    runsOf(terminal, row)
      .map((run) => drawRun(run, row))
      .join(""),
  );
  const buttons = [0, 1, 2].map((at) => `<circle class="button" cx="${22 + at * 18}" cy="20" r="5.5"/>`).join("");
  const size = `viewBox="0 0 ${round(width)} ${height}" width="${round(width)}" height="${height}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escape(label)}">`,
    `<style>${styles()}</style>`,
    `<rect class="window" x=".5" y=".5" width="${round(width - 1)}" height="${height - 1}" rx="9"/>${buttons}`,
    ...lines.filter((line) => line !== ""),
    "</svg>\n",
  ].join("\n");
}

/** Neighbouring cells of one style. */
function runsOf(terminal: InstanceType<typeof xterm.Terminal>, row: number): readonly Run[] {
  const line = terminal.buffer.active.getLine(row);
  const runs: Run[] = [];
  if (line === undefined) return runs;
  for (let column = 0; column < terminal.cols; column++) {
    const shown = line.getCell(column);
    if (shown === undefined || shown.getWidth() === 0) continue;
    const width = shown.getWidth();
    const text = shown.getChars() || " ";
    const style = [
      shown.isFgPalette() ? `c${shown.getFgColor() % 8}` : "",
      shown.isBold() ? "bold" : "",
      shown.isDim() ? "dim" : "",
      shown.isInverse() ? "inverse" : "",
    ]
      .filter((name) => name !== "")
      .join(" ");
    const last = runs.at(-1);
    const isNext = last !== undefined && last.column + last.width === column && last.style === style;
    if (isNext) runs[runs.length - 1] = { ...last, width: last.width + width, text: last.text + text };
    else runs.push({ column, width, text, style });
  }
  return runs.filter(({ text, style }) => text.trim() !== "" || style.includes("inverse"));
}

function drawRun({ column, width, text, style }: Run, row: number): string {
  const [x, y] = [margin.side + column * cell.width, margin.top + row * cell.height];
  const isInverse = style.includes("inverse");
  const back = isInverse
    ? `<rect class="mark" x="${round(x)}" y="${y}" width="${round(width * cell.width)}" height="${cell.height}"/>`
    : "";
  // Spaces at the ends say nothing, but would be stretched with the text.
  const [before, shown] = [text.length - text.trimStart().length, text.trim()];
  if (shown === "") return back;
  const after = text.length - before - shown.length;
  const at = `x="${round(x + before * cell.width)}" y="${y + 13.5}"`;
  const length = `textLength="${round((width - before - after) * cell.width)}" lengthAdjust="spacingAndGlyphs"`;
  return `${back}<text ${style === "" ? "" : `class="${style}" `}${at} ${length}>${escape(shown)}</text>`;
}

function styles(): string {
  const rules = (at: 0 | 1): string => {
    const of = (name: string): string => colours[name]?.[at] ?? "";
    const palette = Object.keys(colours).filter((name) => /^\d/.test(name));
    return [
      `text{fill:${of("text")}}.window{fill:${of("back")};stroke:${of("edge")}}.button{fill:${of("edge")}}`,
      ...palette.map((name) => `.c${name}{fill:${of(name)}}`),
      `.mark{fill:${of("text")}}text.inverse{fill:${of("back")}}`,
    ].join("");
  };
  const font = "font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre";
  const weights = ".bold{font-weight:600}.dim{opacity:.62}";
  return `text{${font}}${rules(0)}${weights}@media(prefers-color-scheme:dark){${rules(1)}}`;
}

const round = (value: number): number => Math.round(value * 10) / 10;

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
