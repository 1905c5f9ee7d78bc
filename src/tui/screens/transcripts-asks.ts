/** What the list of transcripts asks: which there are, and that one be stored. */

import type { Performers, Transcript } from "../port.ts";

export interface TranscriptsAsks {
  readonly transcripts: { readonly ask: object; readonly told: Transcripts };
  /** Told in the words of `lcm import`. */
  readonly importTranscript: { readonly ask: { readonly transcript: Transcript }; readonly told: string };
}

export interface Transcripts {
  /** Where they were looked for. */
  readonly folder: string;
  /** The newest first. */
  readonly found: readonly Transcript[];
}

export const transcriptsAsks: Performers<TranscriptsAsks> = {
  transcripts: async (_ask, { port }) => ({ folder: port.sessions, found: await port.transcripts() }),
  importTranscript: async ({ transcript }, { port, signal, onProgress }) =>
    await port.importTranscript(transcript, (progress) => {
      signal.throwIfAborted(); // What was stored so far stays, and the same file can be imported again.
      onProgress(progress);
    }),
};
