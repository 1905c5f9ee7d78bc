/** Words that several views use: names, times and counts, in the session's time zone. */

import { parseMessageId, messageName, seqOf, conversationIn } from "../../core/model/types.ts";
import type { Level, MessageId } from "../../core/model/types.ts";
import { dayMs, msToTimestamp, parseTimestamp, timestampToMs, wallTime, type Timestamp } from "../../core/base/time.ts";
import type { NodeState } from "../contract.ts";
import { addressOf } from "./router.ts";

let zone = "UTC";
export const setZone = (name: string): void => {
  zone = name;
};

/** `2026-02-17 15:37`. */
export function clock(at: Timestamp): string {
  const { date, time } = wallTime(at, zone);
  return `${date} ${time}`;
}

const dateOf = (text: string): Timestamp | null => parseTimestamp(text);
/** The ends of a day such as `2026-02-17`, as far as it has been typed; days of UTC, as searches have them. */
export const startOfDay = (day: string): Timestamp | null => (Number(day.slice(0, 4)) < 1970 ? null : dateOf(day));
export function endOfDay(day: string): Timestamp | null {
  const start = startOfDay(day);
  return start === null ? null : msToTimestamp(timestampToMs(start) + dayMs - 1);
}

/** `2026-02-17 15:37 – 16:02`, `2026-02-17 – 2026-03-01`. */
export function span(from: Timestamp, to: Timestamp): string {
  const [a, b] = [wallTime(from, zone), wallTime(to, zone)];
  if (a.date !== b.date) return `${a.date} – ${b.date}`;
  return a.time === b.time ? `${a.date} ${a.time}` : `${a.date} ${a.time} – ${b.time}`;
}

/** `3 min ago`, and the date after a week. */
export function ago(at: Timestamp, nowMs: number): string {
  const minutes = Math.floor((nowMs - timestampToMs(at)) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return minutes < 7 * 24 * 60 ? `${Math.floor(minutes / 24 / 60)} d ago` : wallTime(at, zone).date;
}

/** `987`, `12.3k`, `128k`, `4.5M`. */
export function short(count: number): string {
  if (count < 1_000) return String(Math.round(count));
  const [by, unit] = count < 999_950 ? [1e3, "k"] : [1e6, "M"];
  return `${(count / by).toFixed(1).replace(/\.0$/, "")}${unit}`;
}

export const percent = (share: number): string =>
  share > 0 && share < 0.01 ? "<1%" : `${(100 * share).toFixed(share > 0.9 && share < 1 ? 1 : 0)}%`;

/** A name in a sentence. */
export const clipped = (name: string): string => (name.length > 40 ? `${name.slice(0, 39).trimEnd()}…` : name);

export const stateWords: Readonly<Record<NodeState, string>> = {
  prompt: "in the prompt",
  context: "in context, shown by its sources",
  evicted: "evicted: does not fit the prompt",
  below: "below a summary",
  outside: "outside the context",
  forgotten: "forgotten",
};

export const levelWords: Readonly<Record<Level, string>> = {
  normal: "written by a model",
  aggressive: "only the essential facts",
  extractive: "extracted without a model",
  truncated: "cut short",
};

export const depthName = (depth: number): string => (depth === 0 ? "d0 leaf" : `d${depth} condensed`);

/** Where a thing is read, by its id; null for what is not an id. */
export function addressOfId(id: string | MessageId): string | null {
  if (typeof id === "number") return addressOf("message", messageName(id));
  if (id.startsWith("sum_")) return addressOf("summary", id);
  if (id.startsWith("file_")) return addressOf("file", id);
  const [, conversation, number] = /^(\d+)#(\d+)$/.exec(id) ?? [];
  if (conversation !== undefined) return addressOf("seen", conversation, { prompt: number });
  const message = parseMessageId(id);
  return message === null ? null : addressOf("message", messageName(message));
}

export const nameOfId = (id: string | MessageId): string => (typeof id === "number" ? messageName(id) : id);

export const timelineOf = (id: MessageId): string =>
  addressOf("timeline", conversationIn(id), { at: seqOf(id), focus: messageName(id) });

/** Ids in a text, with what is between them: every second piece is an id. */
export const splitIds = (text: string): readonly string[] =>
  text.split(/\b(msg_\d+-\d+|sum_[0-9a-f]{16}|file_[0-9a-f]{16})\b/);
