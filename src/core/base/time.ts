/** Timestamps: parses, converts and formats them, in any time zone, without a clock or a locale. */

import { assert, LcmError } from "./errors.ts";

declare const brand: unique symbol;

/** UTC with milliseconds, `2026-02-17T07:37:00.000Z`: equal instants are equal strings, and order is string order. */
export type Timestamp = string & { readonly [brand]: "timestamp" };

export const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Smaller numbers are seconds: as milliseconds they would all be before March 1973. */
const secondsBelow = 1e11;

/** Date, clock, second, fraction; sign, hours and minutes of an offset. */
const writtenTime =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?:Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?$/;

/**
 * Parses ISO 8601, SQLite's `2026-02-17 07:37:00`, and milliseconds or seconds since 1970; null for anything else, and
 * for years outside 1970 to 9999. Without `Z` or an offset it is UTC. Digits beyond milliseconds are dropped.
 */
export function parseTimestamp(input: string | number): Timestamp | null {
  if (typeof input === "string") return timestampAt(writtenTimeToMs(input));
  return timestampAt(Math.round(input < secondsBelow ? input * 1000 : input));
}

/** Tests the form of a stored time, which is faster than parsing it. */
export const isTimestamp = (text: string): text is Timestamp => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text);

/** NaN if it is not a time. */
function writtenTimeToMs(text: string): number {
  const match = writtenTime.exec(text);
  if (match === null) return NaN;
  const [, date, clock = "00:00", second = "00", fraction = "", sign, offsetHours = "0", offsetMinutes = "0"] = match;
  const utc = `${date}T${clock}:${second}.${fraction.slice(0, 3).padEnd(3, "0")}Z`;
  const ms = Date.parse(utc);
  // 30 February parses as 2 March, so it does not round-trip.
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== utc) return NaN;
  const offsetMs = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60_000;
  return sign === "-" ? ms + offsetMs : ms - offsetMs;
}

export function timestampToMs(timestamp: Timestamp): number {
  return Date.parse(timestamp);
}

/** Null if the instant is not between 1970 and 9999. */
export const timestampAt = (ms: number): Timestamp | null =>
  ms >= 0 && ms <= lastMs ? (new Date(ms).toISOString() as Timestamp) : null;

/** The same for an instant known to be in range. */
export function msToTimestamp(ms: number): Timestamp {
  const timestamp = timestampAt(ms);
  assert(timestamp !== null, `${ms} ms is out of the range of timestamps`);
  return timestamp;
}

/** A later time, or an earlier one if `ms` is negative; never before 1970. */
export const timeAfter = (timestamp: Timestamp, ms: number): Timestamp =>
  msToTimestamp(Math.max(0, timestampToMs(timestamp) + ms));

/** 0 if the clock was set back meanwhile. */
export const elapsedMs = (from: Timestamp, to: Timestamp): number =>
  Math.max(0, timestampToMs(to) - timestampToMs(from));

export const dayMs = 86_400_000;

/** To the minute, with its zone: `2026-02-17 15:37 UTC`, `2026-02-17 16:37 Europe/Vienna`. */
export function formatTimestamp(timestamp: Timestamp, zone = "UTC"): string {
  const { date, time } = wallTime(timestamp, zone);
  return `${date} ${time} ${zone}`;
}

/** A range, with the date once if both ends are on the same day: `2026-02-17 15:37 – 21:14 UTC`. */
export function formatRange(earliest: Timestamp, latest: Timestamp, zone = "UTC"): string {
  const from = wallTime(earliest, zone);
  const to = wallTime(latest, zone);
  if (from.date !== to.date) return `${from.date} ${from.time} – ${to.date} ${to.time} ${zone}`;
  if (from.time !== to.time) return `${from.date} ${from.time} – ${to.time} ${zone}`;
  return `${from.date} ${from.time} ${zone}`;
}

/** The local date and time in a zone. */
export function wallTime(timestamp: Timestamp, zone: string): { readonly date: string; readonly time: string } {
  if (zone === "UTC") return { date: timestamp.slice(0, 10), time: timestamp.slice(11, 16) };
  const field: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {};
  for (const { type, value } of calendarOf(zone).formatToParts(timestampToMs(timestamp))) field[type] = value;
  return { date: `${field.year}-${field.month}-${field.day}`, time: `${field.hour}:${field.minute}` };
}

/** Cached per zone, since creating one is slow. */
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
    throw new LcmError("invalid", `unknown time zone "${zone}"`, {
      cause,
      hint: "use an IANA name, such as UTC, Europe/Vienna or America/New_York",
    });
  }
}
