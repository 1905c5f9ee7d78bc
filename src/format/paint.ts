/** Colours text by its meaning: good, bad, a role, the depth of a summary. */

import picocolors from "picocolors";
import type { Role } from "../core/model/types.ts";

export interface Paint {
  readonly bad: (text: string) => string;
  readonly caution: (text: string) => string;
  readonly good: (text: string) => string;
  /** Secondary text. */
  readonly soft: (text: string) => string;
  readonly strong: (text: string) => string;
  readonly match: (text: string) => string;
  /** The selected row. Without colours it needs another mark too. */
  readonly selected: (text: string) => string;
  readonly role: (role: Role, text: string) => string;
  /** A summary, by its depth. */
  readonly depth: (depth: number, text: string) => string;
}

export function createPaint(colour: boolean): Paint {
  const colours = picocolors.createColors(colour);
  const byRole = {
    system: colours.magenta,
    user: colours.cyan,
    assistant: colours.green,
    tool: colours.yellow,
  } as const;
  const byDepth = [colours.blue, colours.magenta];
  return {
    bad: colours.red,
    caution: colours.yellow,
    good: colours.green,
    soft: colours.dim,
    strong: colours.bold,
    match: (text) => colours.bold(colours.red(text)),
    selected: colours.inverse,
    role: (role, text) => byRole[role](text),
    depth: (depth, text) => (byDepth[depth] ?? colours.cyan)(text),
  };
}
