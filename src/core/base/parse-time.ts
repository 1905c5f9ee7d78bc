/** Parses times as people and models write them, such as `yesterday`, `2h` or a local date, into UTC. */

import { LcmError } from "./errors.ts";
import { readRelativeTime } from "./relative-time.ts";
import { dayMs, parseTimestamp, timeAfter, timestampAt, timestampToMs, wallTime, type Timestamp } from "./time.ts";

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: dayMs, w: 7 * dayMs, y: 365 * dayMs };

/** Parses both ends of a time span, if given; `prefix` goes before their names in an error. */
export function parseSpan(
  { since, before }: { readonly since?: string; readonly before?: string },
  zone: string,
  now: Timestamp,
  prefix: "--" | "",
): { readonly since?: Timestamp; readonly before?: Timestamp } {
  const from = since === undefined ? null : parseWhen(`${prefix}since`, since, zone, now);
  const end = (at: Timestamp): Timestamp | null =>
    before === undefined ? null : parseWhen(`${prefix}before`, before, zone, at);
  // From Tuesday to Thursday means the Thursday after that Tuesday.
  const isWeekdayBefore =
    before !== undefined && weekday.test(before.trim()) && from !== null && (end(now) ?? "") <= from;
  const until = end(isWeekdayBefore ? timeAfter(now, 7 * dayMs) : now);
  if (from !== null && until !== null && until <= from) {
    throw new LcmError("invalid", `${prefix}since ${since} is not earlier than ${prefix}before ${before}`, {
      hint: "swap them, or leave one out",
    });
  }
  return { ...(from !== null && { since: from }), ...(until !== null && { before: until }) };
}

/**
 * Parses `2h` or `2 hours ago`, `today`, `yesterday`, `tuesday` (the latest one), `last tuesday`, `two weeks ago` or
 * `last month` (its first day) in six languages, or a date with or without a time. A time without a zone is in `zone`.
 */
export function parseWhen(name: string, text: string, zone: string, now: Timestamp): Timestamp {
  const typed = text.trim();
  const when =
    ago(typed, now) ??
    dayByName(typed, zone, now) ??
    onTheWall(readRelativeTime(typed, now, zone)?.from ?? typed, zone) ??
    parseTimestamp(typed);
  if (when !== null) return when;
  throw new LcmError("invalid", `${name} is ${JSON.stringify(text)}, which is not a time`, {
    hint: "for example 2026-02-17, '2026-02-17 15:30', 2026-02-17T15:30:00Z, yesterday, tuesday, 2h or 7d",
  });
}

/** Parses how long ago something was, or a day. Rejects `6m`, minutes where months are meant, and the future. */
export function parseAge(name: string, text: string, zone: string, now: Timestamp): Timestamp {
  if (/^\d+[mh]$/i.test(text.trim())) {
    throw new LcmError("invalid", `${name} takes days, weeks or years, not ${JSON.stringify(text)}`, {
      hint: "for six months, pass 26w or 180d",
    });
  }
  const when = parseWhen(name, text, zone, now);
  if (when <= now) return when;
  throw new LcmError("invalid", `${name} is in the future: ${JSON.stringify(text)}`, {
    hint: "pass a day in the past",
  });
}

function ago(text: string, now: Timestamp): Timestamp | null {
  const [, count, unit] =
    /^(\d{1,6})([mhdwy])$/.exec(text) ??
    /^(\d{1,6}) ?([mhdwy])(?:in|inute|our|ay|eek|ear)s? ago$/i.exec(text.toLowerCase()) ??
    [];
  if (count === undefined || unit === undefined) return null;
  return fromMs(timestampToMs(now) - Number(count) * (unitMs[unit] ?? 0));
}

const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const weekday = /^(?:(last|on) )?(sun|mon|tue|wed|thu|fri|sat)(?:day|sday|nesday|rsday|urday)?$/i;

function dayByName(text: string, zone: string, now: Timestamp): Timestamp | null {
  const today = new Date(timestampToMs(now) + offsetMs(timestampToMs(now), zone));
  const daysBack = daysSince(text.toLowerCase(), today.getUTCDay());
  if (daysBack === null) return null;
  return fromWall(Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate() - daysBack), zone);
}

/** How many days ago a day was that is named; on a Tuesday, `tuesday` is today, and `last tuesday` a week ago. */
function daysSince(text: string, today: number): number | null {
  if (text === "today") return 0;
  if (text === "yesterday") return 1;
  const [, which, day = ""] = weekday.exec(text) ?? [];
  if (day === "") return null;
  const days = (today - weekdays.indexOf(day) + 7) % 7;
  return days === 0 && which === "last" ? 7 : days;
}

const wall = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)?$/;

function onTheWall(text: string, zone: string): Timestamp | null {
  if (!wall.test(text)) return null;
  // Parsed as if it were UTC, which also rejects 31 February.
  const read = parseTimestamp(text.length === 10 ? `${text}T00:00:00Z` : `${text.replace(" ", "T")}Z`);
  return read === null ? null : fromWall(timestampToMs(read), zone);
}

/** The instant at which clocks in the zone show this time; if they skip it, an instant on either side of the gap. */
function fromWall(shownMs: number, zone: string): Timestamp {
  const first = shownMs - offsetMs(shownMs, zone);
  return fromMs(shownMs - offsetMs(first, zone));
}

/** How far the zone's clocks are ahead of UTC at this instant, to the minute. */
function offsetMs(instantMs: number, zone: string): number {
  const { date, time } = wallTime(fromMs(instantMs), zone);
  return Date.parse(`${date}T${time}Z`) - Math.floor(instantMs / 60_000) * 60_000;
}

function fromMs(ms: number): Timestamp {
  const when = timestampAt(ms);
  if (when !== null) return when;
  throw new LcmError("invalid", "the time is out of range", { hint: "use a year from 1970 to 9999" });
}
