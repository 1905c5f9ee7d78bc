/** Formats times and time ranges that are shown next to each other, as briefly as possible. */

import { formatTimestamp, type Timestamp } from "../core/base/time.ts";

/** A time in a list: to the minute, and without the zone, which is shown once for all. */
export const clockTime = (at: Timestamp, zone: string): string =>
  formatTimestamp(at, zone).slice(0, "2026-02-17 15:37".length);

export interface Spans {
  of(earliest: Timestamp, latest: Timestamp): string;
  /** The year, if they share it, and the zone. */
  readonly words: string;
}

/** Leaves the year out if all times share it. */
export function createSpans(times: readonly Timestamp[], zone: string): Spans {
  const years = new Set(times.map((at) => clockTime(at, zone).slice(0, 4)));
  const yearLength = years.size > 1 ? 0 : "2026-".length;
  return {
    of: (earliest, latest) => spanOf(earliest, latest, zone, yearLength),
    words: `times in ${[...(years.size === 1 ? years : []), zone].join(", ")}`,
  };
}

/** To the minute within a day (`2026-02-17 15:37…16:02`), else to the day (`2026-02-17…2026-03-01`). */
export function spanOf(earliest: Timestamp, latest: Timestamp, zone: string, leftOut = 0): string {
  const [from, to] = [clockTime(earliest, zone), clockTime(latest, zone)];
  if (from === to) return from.slice(leftOut);
  const isOneDay = from.slice(0, 10) === to.slice(0, 10);
  return isOneDay ? `${from.slice(leftOut)}…${to.slice(11)}` : `${from.slice(leftOut, 10)}…${to.slice(leftOut, 10)}`;
}
