/** Reads a large text for its preview, by lines or at both ends, and fits what it finds into few tokens. */

import { firstLine } from "../base/excerpt.ts";
import { estimateTokens } from "../base/tokens.ts";
import { formatCount } from "../base/format.ts";

/** How much of the beginning, and of the end, is read where reading everything would take long. */
const sampleChars = 200_000;

export const headOf = (content: string): string => content.slice(0, sampleChars);

/** Whole lines of the beginning and the end; null if the text is short enough to read completely. */
export function endsOf(content: string): string | null {
  if (content.length <= 2 * sampleChars) return null;
  const [head, tail] = [headOf(content), content.slice(-sampleChars)];
  return head.slice(0, head.lastIndexOf("\n") + 1) + tail.slice(tail.indexOf("\n") + 1);
}

/** Visits every line, cut to `charsMax`, with its number from 1. Returns the number of lines. */
export function eachLine(content: string, visit: (line: string, number: number) => void, charsMax = 400): number {
  let number = 0;
  for (let from = 0; from < content.length;) {
    const end = content.indexOf("\n", from);
    const to = end < 0 ? content.length : end;
    visit(content.slice(from, Math.min(to, from + charsMax)), ++number);
    from = to + 1;
  }
  return number;
}

export const countLines = (content: string): number => eachLine(content, () => undefined, 0);

/** The first lines that are not blank. */
export const firstLines = (content: string, count: number): readonly string[] =>
  headOf(content)
    .split("\n", count * 4)
    .filter((line) => line.trim() !== "")
    .slice(0, count);

export function lastLine(content: string): string {
  const end = content.slice(-4_000).trimEnd();
  return end.slice(end.lastIndexOf("\n") + 1);
}

const tokensMax = 220;
const lineTokensMax = 70;
const lineCharsMax = 280;

/** As many lines as fit, each cut to a readable length. */
export function fit(lines: readonly string[]): string {
  let text = "";
  for (const line of lines) {
    const longer = text === "" ? cutLine(line) : `${text}\n${cutLine(line)}`;
    if (estimateTokens(longer) > tokensMax) break;
    text = longer;
  }
  return text;
}

export const cutLine = (line: string, charsMax = lineCharsMax, tokens = lineTokensMax): string =>
  narrowed((width) => firstLine(line, width), charsMax, tokens);

/** Cuts at the greatest width that stays within the tokens. */
export function narrowed(cut: (width: number) => string, widthMax: number, tokens: number): string {
  let width = widthMax;
  while (width > 1 && estimateTokens(cut(width)) > tokens) width = Math.floor(width * 0.75);
  return cut(width);
}

export const quote = (text: string): string => `"${cutLine(text, 40, 16)}"`;

/** `what: a, b, c and 4 more`. */
export function list(what: string, items: readonly string[], shown: number): string {
  const more = items.length > shown ? ` and ${formatCount(items.length - shown)} more` : "";
  return `${what}: ${items.slice(0, shown).join(", ")}${more}`;
}

/** With more entries than this, nested ones are left out. */
const innerMax = 24;

/** A list under a heading: all entries if they fit, otherwise some, spread evenly. */
export function outline(
  head: string,
  all: readonly { readonly text: string; readonly isInner: boolean }[],
): readonly string[] {
  const outer = all.filter(({ isInner }) => !isInner);
  const entries = all.length > innerMax && outer.length > 3 ? outer : all;
  for (let most = Math.min(entries.length, 32); most > 0; most--) {
    const shown = Array.from(
      { length: most },
      (_, at) => entries[Math.floor((at * entries.length) / most)]?.text ?? "",
    );
    const lines = shown.map((entry) => cutLine(entry, 70, 18));
    const text = [`${head}${most < all.length ? ", among them" : ""}:`, ...lines];
    if (estimateTokens(text.join("\n")) <= tokensMax) return text;
  }
  return [`${head}.`];
}
