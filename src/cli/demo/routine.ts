/** What a routine is: a kind of exchange that comes back every few days, written anew each time. */

import type { Chance } from "./chance.ts";

export interface Routine {
  /** How often in the five weeks. */
  readonly uses: number;
  readonly on: "workdays" | "any day";
  /** The day on which it first makes sense; the first day unless told. */
  readonly since?: number;
  /** Between which hours (UTC). */
  readonly hours: readonly [from: number, to: number];
  /** In the notation of read.ts. */
  readonly write: (chance: Chance, day: Day) => string;
}

export interface Day {
  /** From 1 to 35. */
  readonly number: number;
  /** 2026-09-07 */
  readonly date: string;
  readonly weekday: string;
}

/** A question, a call with what it printed, and the answer. */
export const looked = (ask: string, call: string, printed: readonly string[], answer: string): string =>
  `> ${ask}\n$ ${call}\n=${printed.join("\n|")}\n< ${answer}`;

/** Rows that begin with a dash, cells between bars. */
export const rowsOf = (text: string): readonly (readonly string[])[] =>
  text
    .split(/^- /m)
    .slice(1)
    .map((row) =>
      row
        .trim()
        .replace(/\s*\n\s*/g, " ")
        .split(" | "),
    );

/** Entries between bars or line ends. */
export const listOf = (text: string): readonly string[] => text.trim().split(/ \| |\n/);
