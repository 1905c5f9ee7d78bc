/** Time: which instant a text or a number names, and how it reads in a time zone. Pure: no clock and no locale. */

import { assert, LcmError } from "./errors.ts";

declare const brand: unique symbol;

export const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Numbers below it are seconds: as milliseconds they would all lie before March 1973. */
const secondsBelow = 1e11;

/** Date, clock, second, fraction; sign, hours and minutes of an offset. */
const writtenTime =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?:Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?$/;

/**
 * The instant that a text or a number names, or null if it names none from 1970 to 9999. Understood are ISO 8601 and
 * SQLite's `2026-02-17 07:37:00`, to the day, the minute, the second or finer, with `Z`, an offset, or nothing, which
 * means UTC; and numbers of milliseconds or of seconds since 1970. Digits beyond milliseconds are dropped.
 */
export function parseTimestamp(input: string | number): Timestamp | null {
  return timestampAt(typeof input === "number" ? epochToMs(input) : writtenTimeToMs(input));
}

function epochToMs(epoch: number): number {
  return Math.round(epoch < secondsBelow ? epoch * 1000 : epoch);
}

/** Whether a text has the form of a time as we keep it; quicker than reading it. */
export const isTimestamp = (text: string): text is Timestamp => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text);

/** NaN for what is no time. */
function writtenTimeToMs(text: string): number {
  const match = writtenTime.exec(text);
  if (match === null) return NaN;
  const [, date, clock = "00:00", second = "00", fraction = "", sign, offsetHours = "0", offsetMinutes = "0"] = match;
  const utc = `${date}T${clock}:${second}.${fraction.slice(0, 3).padEnd(3, "0")}Z`;
  const ms = Date.parse(utc);
  // The 30th of February parses as the 2nd of March, and so gives itself away.
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== utc) return NaN;
  const offsetMs = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60_000;
  return sign === "-" ? ms + offsetMs : ms - offsetMs;
}

export function timestampToMs(timestamp: Timestamp): number {
  return Date.parse(timestamp);
}

/** The timestamp of an instant, or null if that is not between 1970 and 9999. */
export const timestampAt = (ms: number): Timestamp | null =>
  ms >= 0 && ms <= lastMs ? (new Date(ms).toISOString() as Timestamp) : null;

/** The same for an instant that is known to be. */
export function msToTimestamp(ms: number): Timestamp {
  const timestamp = timestampAt(ms);
  assert(timestamp !== null, `${ms} ms is no storable time`);
  return timestamp;
}

/** So much later, or earlier if that is negative; never before 1970. */
export const timeAfter = (timestamp: Timestamp, ms: number): Timestamp =>
  msToTimestamp(Math.max(0, timestampToMs(timestamp) + ms));

export const dayMs = 86_400_000;

/** To the minute, with the zone it is told in: `2026-02-17 15:37 UTC`, `2026-02-17 16:37 Europe/Vienna`. */
export function formatTimestamp(timestamp: Timestamp, zone = "UTC"): string {
  const { date, time } = wallTime(timestamp, zone);
  return `${date} ${time} ${zone}`;
}

/** Both ends of a range, the date once if it is one day's: `2026-02-17 15:37 – 21:14 UTC`. */
export function formatRange(earliest: Timestamp, latest: Timestamp, zone = "UTC"): string {
  const from = wallTime(earliest, zone);
  const to = wallTime(latest, zone);
  if (from.date !== to.date) return `${from.date} ${from.time} – ${to.date} ${to.time} ${zone}`;
  if (from.time !== to.time) return `${from.date} ${from.time} – ${to.time} ${zone}`;
  return `${from.date} ${from.time} ${zone}`;
}

/** What calendar and clock show at an instant in a zone. */
export function wallTime(timestamp: Timestamp, zone: string): { readonly date: string; readonly time: string } {
  if (zone === "UTC") return { date: timestamp.slice(0, 10), time: timestamp.slice(11, 16) };
  const field: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {};
  for (const { type, value } of calendarOf(zone).formatToParts(timestampToMs(timestamp))) field[type] = value;
  return { date: `${field.year}-${field.month}-${field.day}`, time: `${field.hour}:${field.minute}` };
}

/** Kept for each zone: to make one takes as long as to use it many times. */
const calendars = new Map<string, Intl.DateTimeFormat>();

function calendarOf(zone: string): Intl.DateTimeFormat {
  const known = calendars.get(zone);
  if (known !== undefined) return known;
  const calendar = openCalendar(zone);
  calendars.set(zone, calendar);
  return calendar;
}

function openCalendar(zone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat("en-u-ca-gregory-nu-latn-hc-h23", {
      timeZone: zone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
    });
  } catch (cause) {
    throw new LcmError("invalid", `there is no time zone "${zone}"`, {
      cause,
      hint: "name it as in the IANA database, such as UTC, Europe/Vienna or America/New_York",
    });
  }
}

/** UTC with milliseconds, `2026-02-17T07:37:00.000Z`: equal instants are equal strings, and order is string order. */
export type Timestamp = string & { readonly [brand]: "timestamp" };
