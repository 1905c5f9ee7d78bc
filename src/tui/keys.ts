/** Key names, and how key bindings are shown: as a bar, as a help page, in `docs/keys.md`. */

import { decodeKittyPrintable, isKeyRelease, parseKey } from "@earendil-works/pi-tui";
import type { Paint } from "../format/paint.ts";
import { padEnd, widthOf, wrap } from "../format/width.ts";

export interface Key {
  /** `j`, `G`, `?`, `enter`, `escape`, `pageUp`, `ctrl+c`, `space`. */
  readonly name: string;
  /** The text it types; empty for a key that types nothing. */
  readonly text: string;
}

/** The key in the terminal's input; null for a key release and for anything else. */
export function keyOf(data: string): Key | null {
  if (isKeyRelease(data)) return null;
  const isPlain = !/[\u0000-\u001f\u007f-\u009f]/.test(data);
  const text = decodeKittyPrintable(data) ?? (isPlain ? data : "");
  if (text !== "") return { name: text === " " ? "space" : text, text };
  const name = parseKey(data);
  return name === undefined ? null : { name, text: "" };
}

export type ListAction = "up" | "down" | "pageUp" | "pageDown" | "first" | "last";
export type ScrollAction = "textUp" | "textDown";
/** A number of lines, or a scrolling key. */
export type Scroll = ListAction | ScrollAction | number;

/** A key as the bar and the help page show it. */
export interface Offer {
  readonly keys: readonly string[];
  readonly short?: string;
  readonly help: string;
  /** Why it is unavailable. */
  readonly because: string | null;
}

const names: Readonly<Record<string, string>> = {
  enter: "↵",
  escape: "esc",
  pageUp: "PgUp",
  pageDown: "PgDn",
  up: "↑",
  down: "↓",
  left: "←",
  right: "→",
  space: "space",
};

export const keyName = (key: string): string => names[key] ?? key;

/** An entry of the key bar, and its columns: it can be clicked. */
export interface BarEntry {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

const barGap = 2;
const lastOnes = 3;

/** As many as fit, in the given order. The last three (commands, help and back) stay longest. */
export function barEntries(offers: readonly Offer[], columns: number): readonly BarEntry[] {
  const shown = offers.filter(({ short }) => short !== undefined);
  const texts = shown.map(({ keys, short }) => `${keyName(keys[0] ?? "")} ${short}`);
  const widthFrom = (at: number): number => texts.slice(at).reduce((sum, text) => sum + widthOf(text) + barGap, 0);
  const tail = Math.max(0, shown.length - lastOnes);
  const entries: BarEntry[] = [];
  let from = 1;
  for (const [at, offer] of shown.entries()) {
    const text = texts[at] ?? "";
    const needed = at < tail ? widthOf(text) + barGap + widthFrom(tail) : widthOf(text);
    if (from + needed > columns) continue;
    entries.push({ key: offer.keys[0] ?? "", from, to: from + widthOf(text), text });
    from += widthOf(text) + barGap;
  }
  return entries;
}

export function drawBar(entries: readonly BarEntry[], paint: Paint): string {
  let line = "";
  for (const { from, text } of entries) {
    const [key = "", ...words] = text.split(" ");
    line = padEnd(line, from);
    line += `${paint.strong(key)} ${words.join(" ")}`;
  }
  return line;
}

/** One key per line, with its help and, if it is unavailable, the reason. */
export function helpLines(
  groups: readonly { readonly name: string; readonly offers: readonly Offer[] }[],
  columns: number,
  paint: Paint,
): readonly string[] {
  const keysOf = ({ keys }: Offer): string => keys.map(keyName).join(" ");
  const offers = groups.flatMap((group) => group.offers);
  const width = offers.reduce((most, offer) => Math.max(most, widthOf(keysOf(offer))), 0);
  const lines = (offer: Offer): readonly string[] => {
    const words = wrap(offer.help, columns - width - 4);
    const because = offer.because === null ? [] : wrap(`(${offer.because})`, columns - width - 4);
    const soft = offer.because === null ? (text: string): string => text : paint.soft;
    return [...words.map(soft), ...because.map(paint.caution)].map(
      (line, at) => `  ${soft(padEnd(at === 0 ? keysOf(offer) : "", width))}  ${line}`,
    );
  };
  return groups.flatMap(({ name, offers: own }, at) => [
    ...(at === 0 ? [] : [""]),
    paint.strong(name),
    ...own.flatMap(lines),
  ]);
}
