/** Keys by the names that people give them, and how a table of them is shown: as a bar, as a page, as a document. */

import { decodeKittyPrintable, isKeyRelease, parseKey } from "@earendil-works/pi-tui";
import type { Paint } from "../format/paint.ts";
import { padEnd, widthOf, wrap } from "../format/width.ts";

export interface Key {
  /** `j`, `G`, `?`, `enter`, `escape`, `pageUp`, `ctrl+c`, `space`. */
  readonly name: string;
  /** What it writes; empty for a key that writes nothing. */
  readonly text: string;
}

/** The key that a terminal sent; null for one that was let go, and for what is no key. */
export function keyOf(data: string): Key | null {
  if (isKeyRelease(data)) return null;
  const isPlain = !/[\u0000-\u001f\u007f-\u009f]/.test(data);
  const text = decodeKittyPrintable(data) ?? (isPlain ? data : "");
  if (text !== "") return { name: text === " " ? "space" : text, text };
  const name = parseKey(data);
  return name === undefined ? null : { name, text: "" };
}

/** What keys do in every list, and in every text. */
export type ListAction = "up" | "down" | "pageUp" | "pageDown" | "first" | "last";
export type ScrollAction = "textUp" | "textDown";
/** Lines to scroll by, or a key that does. */
export type Scroll = ListAction | ScrollAction | number;

/** What a key does, whether it can be done now or not. */
export interface Offer {
  readonly keys: readonly string[];
  readonly short?: string;
  readonly says: string;
  /** Why it cannot be done now. */
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

/** What the same key does on more than one screen, in the same words. */
export const says = {
  context: "show what the model sees of the conversation",
  history: "show what was changed, and take it back",
  messages: "show the messages of the conversation",
  repair: "have the summaries written anew that are in need of it",
  search: "search the conversation",
  summaries: "show the summaries of the conversation",
} as const;

export const keyName = (key: string): string => names[key] ?? key;

/** One of the help bar's entries, and where it stands, so that it can be clicked. */
export interface BarEntry {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

const barGap = 2;

/** As many as fit, in the order given. The last two are kept whatever there is. */
export function barEntries(offers: readonly Offer[], columns: number): readonly BarEntry[] {
  const shown = offers.filter(({ short }) => short !== undefined);
  const texts = shown.map(({ keys, short }) => `${keyName(keys[0] ?? "")} ${short}`);
  const widthFrom = (at: number): number => texts.slice(at).reduce((sum, text) => sum + widthOf(text) + barGap, 0);
  const tail = Math.max(0, shown.length - 2);
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

/** Every key with what it does, one below the other. */
export function helpLines(
  groups: readonly { readonly name: string; readonly offers: readonly Offer[] }[],
  columns: number,
  paint: Paint,
): readonly string[] {
  const keysOf = ({ keys }: Offer): string => keys.map(keyName).join(" ");
  const offers = groups.flatMap((group) => group.offers);
  const width = offers.reduce((most, offer) => Math.max(most, widthOf(keysOf(offer))), 0);
  const lines = (offer: Offer): readonly string[] => {
    const words = wrap(offer.says, columns - width - 4);
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
