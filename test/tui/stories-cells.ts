/** Positions on a screen in cells, as modern terminals count them: an emoji takes two. */

import xterm from "@xterm/headless";
import type { Robot } from "../support/robot.ts";

/** The cell at which these words start, for every row that has them. Draws the screen once more. */
export async function cellsOf(robot: Robot, words: string): Promise<readonly number[]> {
  const lines = robot.lines();
  const width = Math.max(...lines.map((line) => line.length));
  const emulator = new xterm.Terminal({ cols: width, rows: lines.length, allowProposedApi: true, scrollback: 0 });
  emulator.unicode.register({ version: "today", wcwidth: widthOf, charProperties });
  emulator.unicode.activeVersion = "today";
  await new Promise<void>((resolve) => emulator.write(robot.written(), resolve));
  const found = lines.flatMap((_, row) => {
    const cells = Array.from({ length: width }, (__, at) => emulator.buffer.active.getLine(row)?.getCell(at));
    const chars = cells.map((cell) => (cell === undefined || cell.getWidth() === 0 ? "" : cell.getChars() || " "));
    const at = chars.join("").indexOf(words);
    if (at === -1) return [];
    let [cell, seen] = [0, 0];
    while (seen < at) seen += chars[cell++]?.length ?? 1;
    while (chars[cell] === "") cell++;
    return [cell];
  });
  emulator.dispose();
  return found;
}

const isWide =
  /^[\p{Emoji_Presentation}\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\u3000-\u303f\uff01-\uff60]$/u;

const widthOf = (codepoint: number): 0 | 1 | 2 => (isWide.test(String.fromCodePoint(codepoint)) ? 2 : 1);

/** As the emulator packs it: the width, and whether it joins the character before, as a variation selector does. */
function charProperties(codepoint: number, _preceding: number): number {
  return codepoint === 0xfe0f ? (2 << 1) | 1 : widthOf(codepoint) << 1;
}
