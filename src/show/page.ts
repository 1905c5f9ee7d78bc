/** What text is written for: a terminal, a file, a pane of the terminal UI. */

import type { Paint } from "./render.ts";

/** Where text goes: a terminal, a file or another program. */
export interface Output {
  readonly stream: NodeJS.WritableStream;
  readonly isTerminal: boolean;
  /** Width of the terminal; null where there is none and no width was asked for. */
  readonly columns: number | null;
  readonly colour: boolean;
}

export interface Page {
  readonly paint: Paint;
  /** How wide a line may be. Where there is no terminal, so wide that whoever reads it is not flooded. */
  readonly columns: number;
  /** The same where there is a terminal; null where nothing needs to be broken or cut. */
  readonly bounds: number | null;
  /** The zone in which times are shown. */
  readonly zone: string;
  /** `lcm …` commands in these words as they would have to be typed here. */
  readonly typed: (words: string) => string;
}
