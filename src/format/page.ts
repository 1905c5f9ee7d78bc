/** Describes where text goes: the output stream, its width, its colours and the time zone. */

import type { Paint } from "./paint.ts";

/** A terminal, a file or another program. */
export interface Output {
  readonly stream: NodeJS.WritableStream;
  readonly isTerminal: boolean;
  /** Width of the terminal, or of COLUMNS; null if neither is known. */
  readonly columns: number | null;
  readonly colour: boolean;
}

export interface Page {
  readonly paint: Paint;
  /** How wide a line may be; a fixed width where there is no terminal. */
  readonly columns: number;
  /** The width of the terminal; null where nothing needs to be broken or cut. */
  readonly bounds: number | null;
  /** The time zone in which times are shown. */
  readonly zone: string;
  /** Rewrites the `lcm …` commands in a text as they have to be typed here. */
  readonly typed: (words: string) => string;
}
