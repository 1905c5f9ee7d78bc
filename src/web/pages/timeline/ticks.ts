/** Where the axis of the timeline has ticks, and what is written at them. */

import { msToTimestamp, wallTime } from "../../../core/base/time.ts";
import { formatCount } from "../../../core/base/format.ts";
import type { Camera } from "./camera.ts";

export interface Tick {
  readonly x: number;
  readonly label: string;
  /** Begins a day among hours, or a year among months. */
  readonly isMajor: boolean;
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** Steps with a fixed length; days and longer follow the calendar. */
const evenSteps = [
  ...[1, 5, 15, 30].map((n) => n * second),
  ...[1, 5, 15, 30].map((n) => n * minute),
  ...[1, 3, 6, 12].map((n) => n * hour),
];
const calendarSteps = [
  { days: 1, months: 0, ms: day },
  { days: 7, months: 0, ms: 7 * day },
  { days: 0, months: 1, ms: 30 * day },
  { days: 0, months: 3, ms: 91 * day },
  { days: 0, months: 12, ms: 365 * day },
] as const;

const roomPerTick = 120;

export interface Zoned {
  readonly originMs: number;
  readonly zone: string;
}

/** Ticks between the edges. Days begin at midnight in the zone. */
export function timeTicks(camera: Camera, width: number, { originMs, zone }: Zoned): readonly Tick[] {
  const least = roomPerTick * camera.unit;
  const begin = originMs + camera.left;
  const offset = offsetAt(begin, zone);
  const walls = wallMoments(begin + offset, begin + offset + width * camera.unit, least);
  return walls.map((wall) => {
    // Summer time may begin or end between the ticks.
    const ms = wall - offsetAt(wall - offset, zone);
    const date = new Date(wall);
    const isMidnight = wall % day === 0;
    const isMajor = least > 12 * hour ? date.getUTCMonth() === 0 && date.getUTCDate() === 1 : isMidnight;
    return { x: ms - originMs, isMajor, label: labelOf(date, least, isMidnight) };
  });
}

/** Times as a clock on the wall shows them, as if it were in UTC. */
function wallMoments(begin: number, end: number, least: number): readonly number[] {
  const even = evenSteps.find((step) => step >= least);
  if (even !== undefined) {
    const first = Math.ceil(begin / even);
    return Array.from({ length: Math.max(0, Math.floor(end / even) - first + 1) }, (_, at) => (first + at) * even);
  }
  const step = calendarSteps.find(({ ms }) => ms >= least) ?? calendarSteps[4];
  const date = new Date(begin - (begin % day));
  if (step.months > 0) date.setUTCMonth(date.getUTCMonth() - (date.getUTCMonth() % step.months), 1);
  else if (step.days === 7) date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
  const moments: number[] = [];
  for (; date.getTime() <= end; moveOn(date, step)) if (date.getTime() >= begin) moments.push(date.getTime());
  return moments;
}

function moveOn(date: Date, { days, months }: { readonly days: number; readonly months: number }): void {
  date.setUTCMonth(date.getUTCMonth() + months);
  date.setUTCDate(date.getUTCDate() + days);
}

const offsets = new Map<string, number>();
const offsetsMax = 5_000;

/** How far the clocks of a zone are ahead of UTC; looked up once per hour of time. */
function offsetAt(ms: number, zone: string): number {
  if (zone === "UTC") return 0;
  const hours = Math.floor(ms / hour);
  const key = `${hours} ${zone}`;
  const known = offsets.get(key);
  if (known !== undefined) return known;
  const { date, time } = wallTime(msToTimestamp(Math.max(0, hours * hour)), zone);
  const offset = Date.parse(`${date}T${time}:00Z`) - hours * hour;
  if (offsets.size >= offsetsMax) offsets.clear();
  offsets.set(key, offset);
  return offset;
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;
const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;

function labelOf(date: Date, least: number, isMidnight: boolean): string {
  if (least <= 12 * hour && !isMidnight) return date.toISOString().slice(11, least < minute ? 19 : 16);
  const month = months[date.getUTCMonth()] ?? "";
  if (date.getUTCDate() !== 1 || least <= 7 * day)
    return `${weekdays[date.getUTCDay()] ?? ""} ${date.getUTCDate()} ${month}`;
  return date.getUTCMonth() === 0 ? String(date.getUTCFullYear()) : month;
}

/** Ticks at round message numbers. */
export function orderTicks(camera: Camera, width: number, firstSeq: number): readonly Tick[] {
  const wanted = roomPerTick * camera.unit;
  const power = 10 ** Math.max(0, Math.floor(Math.log10(wanted)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((each) => each >= wanted) ?? power;
  const end = camera.left + width * camera.unit + firstSeq;
  const ticks: Tick[] = [];
  for (let seq = Math.max(firstSeq, Math.ceil((camera.left + firstSeq) / step) * step); seq <= end; seq += step)
    ticks.push({ x: seq - firstSeq, label: `#${formatCount(seq)}`, isMajor: false });
  return ticks;
}
