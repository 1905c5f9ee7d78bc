/** What the list of transcripts asks: which there are, and that one be stored. */

import type { Doing, Transcript } from "../port.ts";

export interface Transcripts {
  /** Where they were looked for. */
  readonly folder: string;
  /** The newest first. */
  readonly found: readonly Transcript[];
}

export const transcriptsAsks = {
  async transcripts(_ask: object, { port }: Doing): Promise<Transcripts> {
    return { folder: port.sessions, found: await port.transcripts() };
  },
  /** Told in the words of `lcm import`. */
  async importTranscript(
    { transcript }: { readonly transcript: Transcript },
    { port, signal, onProgress }: Doing,
  ): Promise<string> {
    return await port.importTranscript(transcript, (progress) => {
      signal.throwIfAborted(); // What was stored so far stays, and the same file can be imported again.
      onProgress(progress);
    });
  },
};
