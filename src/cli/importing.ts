/** One transcript file, stored: what `lcm import` and the terminal UI do alike, and in which words it is told. */

import type { ImportReport, ImportTarget } from "../core/ingest.ts";
import type { Lcm } from "../core/lcm.ts";
import { noTranscript } from "../core/transcript.ts";
import { plural } from "../show/render.ts";
import { openTranscript } from "./files.ts";
import type { TranscriptFile } from "./files.ts";

export type Imported = ImportReport & {
  /** Where the last line ends in the middle; null if it does not. */
  readonly torn: number | null;
};

/** Throws `invalid` for what is no transcript; `onProgress` hears how many bytes were read. */
export async function importTranscriptFile(
  lcm: Lcm,
  file: TranscriptFile,
  target: ImportTarget,
  onProgress: (bytes: number) => void,
): Promise<Imported> {
  const transcript = await openTranscript(file);
  const report = await lcm.import(transcript.lines, target, () => onProgress(transcript.bytesRead()));
  if (report.conversation === null && transcript.unreadable.length > 0)
    throw noTranscript(transcript.unreadable.length);
  const malformed = [...report.malformed, ...transcript.unreadable].toSorted((a, b) => a.position - b.position);
  return { ...report, malformed, torn: transcript.tornAt() };
}

export function importedCounts({ messages, entries, duplicates, differing, malformed }: ImportReport): string {
  const known = duplicates - differing.length;
  const parts = [
    plural(messages, "message"),
    plural(entries, "other entry", "other entries"),
    `${known.toLocaleString("en-US")} already stored`,
  ];
  const problems = [
    ...(differing.length === 0 ? [] : [`${plural(differing.length, "line")} unlike what is stored`]),
    ...(malformed.length === 0 ? [] : [`${plural(malformed.length, "line")} not readable`]),
  ];
  return [...parts, ...problems].join(", ");
}
