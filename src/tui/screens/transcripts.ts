/** Not yet. */

import type { Module, Step } from "../contract.ts";

export interface TranscriptsScreen {
  readonly kind: "transcripts";
}

export const openTranscripts = (): Step<TranscriptsScreen> => ({ state: { kind: "transcripts" } });

export const transcriptsModule: Module<TranscriptsScreen, never> = {
  name: "Transcripts",
  keys: [],
  title: () => "transcripts",
  update: (state) => ({ state }),
  draw: () => ["not yet"],
};
