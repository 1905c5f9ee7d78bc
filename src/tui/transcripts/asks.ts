/** What the transcripts screen asks: the list of transcripts, and to import one. */

import type { Doing, Transcript } from "../../operator/port.ts";

export interface Transcripts {
  readonly folder: string;
  /** Newest first. */
  readonly found: readonly Transcript[];
}

export const transcriptsAsks = {
  async transcripts(_ask: object, { port }: Doing): Promise<Transcripts> {
    return { folder: port.sessions, found: await port.transcripts() };
  },
  /** Returns the report of `lcm import`. */
  async importTranscript(
    { transcript }: { readonly transcript: Transcript },
    { port, signal, onProgress }: Doing,
  ): Promise<string> {
    return await port.importTranscript(transcript, (progress) => {
      signal.throwIfAborted(); // What is stored stays, and importing the file again continues.
      onProgress(progress);
    });
  },
};
