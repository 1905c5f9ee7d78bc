/** Describes the level of a summary. */

import type { Level } from "../core/model/types.ts";

/** Why a summary says less than it could. */
export const levelWords: Readonly<Record<Exclude<Level, "normal">, string>> = {
  aggressive: "shorter, from a second, stricter attempt",
  extractive: "extracted without a model",
  truncated: "cut short, no usable answer",
};
