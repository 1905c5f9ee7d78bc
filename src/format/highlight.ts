/** Finds where lines match a search, to highlight those places. */

import { runInNewContext } from "node:vm";
import type { Paint } from "./paint.ts";

export type Match = readonly [from: number, to: number];

/** The matches in each line. */
type Finder = (lines: readonly string[]) => readonly (readonly Match[])[];

export function createFinder(pattern: string, isRegex: boolean): Finder {
  if (isRegex) return patternFinder(pattern);
  const find = wordFinder(pattern);
  return (lines) => lines.map(find);
}

export const marked = (line: string, matches: readonly Match[], paint: Paint): string =>
  matches.toReversed().reduce((rest, [from, to]) => {
    const match = paint.match(rest.slice(from, to));
    return rest.slice(0, from) + match + rest.slice(to);
  }, line);

const findingMs = 50;

/** A pattern can backtrack catastrophically even on a short line; then nothing is highlighted. */
function patternFinder(pattern: string): Finder {
  const flags = /\p{Lu}/u.test(pattern.replace(/\\./gs, "")) ? "g" : "gi";
  const code =
    "lines.map((line) => Array.from(line.matchAll(new RegExp(pattern, flags)), (match) => [match.index, match.index + match[0].length]))";
  return (lines) => {
    try {
      const matches: unknown = runInNewContext(code, { lines, pattern, flags }, { timeout: findingMs });
      return Array.isArray(matches) ? matches : [];
    } catch {
      return []; // The hit is shown all the same, without colour.
    }
  };
}

/** Search matches words in all their forms, so any word with the same stem is highlighted. */
function wordFinder(pattern: string): (line: string) => readonly Match[] {
  const words = pattern.match(/[\p{L}\p{N}\p{Emoji_Presentation}][\p{L}\p{N}\p{M}]*/gu) ?? [];
  const stems = [...new Set(words.map((word) => word.toLowerCase()))].map((word) => {
    const isLetters = /^[a-z]{5,}$/.test(word);
    return isLetters ? `${word.replace(/(?:ions?|ing|ies|ed|es|s|e|y)$/, "")}\\p{L}*` : word;
  });
  if (stems.length === 0) return () => [];
  const isScriptWithoutSpaces =
    /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|\p{Emoji_Presentation}/u;
  const alternatives = stems.map((stem) =>
    isScriptWithoutSpaces.test(stem) ? stem : `(?<![\\p{L}\\p{N}])${stem}(?![\\p{L}\\p{N}])`,
  );
  const any = new RegExp(alternatives.join("|"), "giu");
  return (line) => Array.from(line.matchAll(any), (match) => [match.index, match.index + match[0].length] as const);
}
