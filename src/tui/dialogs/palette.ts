/** The palette: every key of the screen and every command, found by words, so that nobody has to remember keys. */

import type { Frame, Module, PaletteEntry, Step } from "../contract.ts";
import { ends, rule, row } from "../widgets/draw.ts";
import { drawField, field, pasted, textOf, typed, type Field } from "../widgets/field.ts";
import { createRows, seen, startOfList, type List } from "../widgets/list.ts";
import { keyName } from "../keys.ts";
import { breakLines, padEnd, widthOf } from "../../format/width.ts";

export interface Palette {
  readonly kind: "palette";
  readonly entries: readonly PaletteEntry[];
  readonly filter: Field;
  /** The entries that match, best first. */
  readonly found: readonly PaletteEntry[];
  readonly list: List;
}

const columnsMax = 84;
const rowsMax = 18;
/** The field and a blank line. */
const headRows = 2;
/** A rule, and two lines about the selected entry. */
const footRows = 3;

const listRoom = ({ rows }: Pick<Frame, "rows">): number => Math.max(1, rows - headRows - footRows);

const rows = createRows<Palette>({
  count: ({ found }) => found.length,
  place: (_, frame) => ({ above: headRows, rows: listRoom(frame) }),
  open: choose,
});

export const paletteModule: Module<Palette> = {
  name: "Commands",
  open: ({ kind, entries }) => ({ kind, entries, filter: field(), found: entries, list: startOfList }),
  keys: [],
  box: ({ entries }, { columns }) => ({
    columns: Math.min(columnsMax, columns - 4),
    rows: headRows + footRows + Math.min(rowsMax, entries.length),
  }),
  title: () => "commands",
  isTyping: () => true,
  on: {
    ...rows.on,
    pasted: (state, { text }, frame) => filtered({ ...state, filter: pasted(state.filter, text) }, frame),
    key(state, { key }, frame) {
      switch (key.name) {
        case "escape":
        case "ctrl+p":
          return { state, go: { kind: "back" } };
        case "enter":
          return choose(state);
        default: {
          const moved = rows.arrow(state, key, frame);
          return moved ?? filtered({ ...state, filter: typed(state.filter, key) }, frame);
        }
      }
    },
  },
  draw,
};

function choose(state: Palette): Step<Palette> {
  const entry = state.found[state.list.cursor];
  if (entry === undefined) return { state };
  if (entry.because !== null) return { state, notice: { tone: "bad", text: entry.because } };
  return { state, go: { kind: "choose", choice: entry.choice } };
}

/** The palette after the screen below it has changed; the cursor stays on its entry. */
export function withEntries(state: Palette, entries: readonly PaletteEntry[], frame: Frame): Palette {
  const found = matching(entries, textOf(state.filter));
  const before = state.found[state.list.cursor];
  const at = found.findIndex(({ help }) => help === before?.help);
  return { ...state, entries, found, list: seen({ ...state.list, cursor: at }, found.length, listRoom(frame)) };
}

/** The best match is selected. */
const filtered = (state: Palette, frame: Frame): Step<Palette> => {
  const found = matching(state.entries, textOf(state.filter));
  return { state: { ...state, found, list: seen(startOfList, found.length, listRoom(frame)) } };
};

// ── Matching ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The entries that match every word, best first; equally good ones keep their order, available ones first. */
export function matching(entries: readonly PaletteEntry[], text: string): readonly PaletteEntry[] {
  const words = wordsOf(text);
  if (words.length === 0) return entries;
  const scored = entries.map((entry) => ({ entry, score: scoreOf(entry, words) }));
  return scored
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score || Number(a.entry.because !== null) - Number(b.entry.because !== null))
    .map(({ entry }) => entry);
}

const wordsOf = (text: string): readonly string[] =>
  text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean);

function scoreOf({ help, also, key }: PaletteEntry, words: readonly string[]): number {
  const known = wordsOf(`${help} ${also}`);
  let sum = 0;
  for (const word of words) {
    const best = known.reduce(
      (most, each) => Math.max(most, closeness(each, word)),
      word === key?.toLowerCase() ? 4 : 0,
    );
    if (best === 0) return 0;
    sum += best;
  }
  return sum;
}

/** 4: the same word, 3: its beginning, 2: a part of it, 1: its letters in order, beginning with the first. */
function closeness(known: string, word: string): number {
  if (known === word) return 4;
  if (known.startsWith(word)) return 3;
  if (known.includes(word)) return 2;
  if (word.length < 3 || known[0] !== word[0]) return 0;
  let at = 0;
  for (const letter of known) if (letter === word[at]) at += 1;
  return at === word.length ? 1 : 0;
}

// ── Drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function draw({ entries, found, filter, list }: Palette, frame: Frame): readonly string[] {
  const { columns, paint } = frame;
  const room = listRoom(frame);
  const count = found.length === entries.length ? `${entries.length} commands` : `${found.length} of ${entries.length}`;
  const width = entries.reduce((most, { key }) => Math.max(most, key === null ? 0 : widthOf(keyName(key))), 0);
  const lines = found.slice(list.top, list.top + room).map(({ key, help, because }, at) => {
    const name = padEnd(key === null ? "" : keyName(key), width);
    const isSelected = list.top + at === list.cursor;
    const words = because === null ? help : `${help} · ${because}`;
    const painted = isSelected
      ? `${name}  ${words}`
      : because === null
        ? `${paint.strong(name)}  ${words}`
        : paint.soft(`${name}  ${words}`);
    return row(painted, isSelected, columns, paint);
  });
  const shown = found.length === 0 ? ["  no command matches; press ⌫ to see more"] : lines;
  const blank = Array.from({ length: Math.max(0, room - shown.length) }, () => "");
  const selected = found[list.cursor];
  return [
    ends(drawField(">", filter, columns - widthOf(count) - 1, paint), paint.soft(count), columns),
    "",
    ...shown,
    ...blank,
    rule("", columns, paint),
    ...(selected === undefined ? ["", ""] : aboutLines(selected, frame)),
  ];
}

/** Why it is unavailable, or all of its help where the row has no room for it. */
function aboutLines({ help, because, key }: PaletteEntry, { columns, paint }: Frame): readonly string[] {
  const how = key === null || key === "enter" ? "" : `↵ does it; without the palette, press ${keyName(key)}`;
  const lines =
    because === null
      ? [...breakLines(help, columns), paint.soft(how)]
      : breakLines(`unavailable: ${because}`, columns).map(paint.caution);
  return [lines[0] ?? "", lines[1] ?? ""];
}
