/** A one-line text field: editing, pasting, drawing. */

import type { Paint } from "../../format/paint.ts";
import type { Frame, Handlers, Step } from "../contract.ts";
import type { Key } from "../keys.ts";
import { padEnd, widthOf } from "../../format/width.ts";
import { harmless } from "../../format/safe-text.ts";

export interface Field {
  readonly before: string;
  /** From the cursor on. */
  readonly after: string;
}

export const field = (text = ""): Field => ({ before: text, after: "" });
export const textOf = ({ before, after }: Field): string => before + after;

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });
const graphemes = (text: string): readonly string[] => Array.from(segmenter.segment(text), ({ segment }) => segment);

/** The field after a key; unchanged if the key does not edit. */
export function typed(given: Field, key: Key): Field {
  const { before, after } = given;
  if (key.text !== "") return { before: before + key.text, after };
  switch (key.name) {
    case "backspace":
      return { before: graphemes(before).slice(0, -1).join(""), after };
    case "delete":
      return { before, after: graphemes(after).slice(1).join("") };
    case "left":
      return { before: graphemes(before).slice(0, -1).join(""), after: (graphemes(before).at(-1) ?? "") + after };
    case "right":
      return { before: before + (graphemes(after)[0] ?? ""), after: graphemes(after).slice(1).join("") };
    case "home":
    case "ctrl+a":
      return { before: "", after: before + after };
    case "end":
    case "ctrl+e":
      return { before: before + after, after: "" };
    case "ctrl+u":
      return { before: "", after };
    case "ctrl+w":
    case "alt+backspace":
      return { before: before.replace(/\S+\s*$/u, ""), after };
    default:
      return given;
  }
}

/** Handlers for a layer with a text field: Enter passes the text on unless it is empty, Escape discards it. */
export const lineOf = <S extends { readonly typing: Field | null }>(
  done: (state: S, text: string, frame: Frame) => Step<S>,
) =>
  ({
    key(state, { key }, frame) {
      const line = state.typing ?? field();
      if (key.name !== "enter" && key.name !== "escape") return { state: { ...state, typing: typed(line, key) } };
      const text = key.name === "enter" ? textOf(line).trim() : "";
      const left = { ...state, typing: null };
      return text === "" ? { state: left } : done(left, text, frame);
    },
    pasted: (state, { text }) => ({ state: { ...state, typing: pasted(state.typing ?? field(), text) } }),
  }) satisfies Handlers<S>;

const pastedMax = 4_000;

/** Pasted text becomes one line without control characters. */
export const pasted = ({ before, after }: Field, text: string): Field => ({
  before: before + harmless(text.slice(0, pastedMax).replace(/\s+/gu, " ")),
  after,
});

/** Shows the cursor; a long line is cut on the left to keep it visible. */
export function drawField(label: string, { before: whole, after }: Field, columns: number, paint: Paint): string {
  const [at = " ", ...rest] = graphemes(after);
  const room = Math.max(1, columns - widthOf(label) - 3);
  let before = whole;
  if (widthOf(before) > room) {
    const last = graphemes(before).slice(1 - room);
    while (widthOf(last.join("")) > room - 1) last.shift();
    before = `…${last.join("")}`;
  }
  return padEnd(`${paint.strong(label)} ${before}${paint.selected(at)}${rest.join("")}`, columns);
}
