import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findRelativeTimes, formatDays, readRelativeTime, writeDays } from "./relative-time.ts";
import type { Timestamp } from "./time.ts";

/** A Wednesday. */
const at = "2026-11-18T09:00:00.000Z" as Timestamp;
const found = (text: string, zone = "UTC"): readonly string[] =>
  findRelativeTimes(text, at, zone).map((time) => `${time.words} = ${formatDays(time)}`);

describe("a relative time in a text is resolved against the time at which it was said", () => {
  const cases: Readonly<Record<string, readonly string[]>> = {
    "We fixed it yesterday, not the day before yesterday.": [
      "yesterday = 2026-11-17",
      "the day before yesterday = 2026-11-16",
    ],
    "Last Tuesday, and last Wednesday.": ["Last Tuesday = 2026-11-17", "last Wednesday = 2026-11-11"],
    "The exam is in two weeks; I signed up 3 days ago.": ["in two weeks = 2026-12-02", "3 days ago = 2026-11-15"],
    "I moved last May; my brother last December.": ["last May = 2026-05", "last December = 2025-12"],
    "last week, next month, last year, two years ago": [
      "last week = 2026-11-09 – 2026-11-15",
      "next month = 2026-12",
      "last year = 2025",
      "two years ago = 2024",
    ],
    "Vor drei Tagen, letzten Dienstag, morgen und nächste Woche.": [
      "Vor drei Tagen = 2026-11-15",
      "letzten Dienstag = 2026-11-17",
      "morgen = 2026-11-19",
      "nächste Woche = 2026-11-23 – 2026-11-29",
    ],
    "Il y a deux semaines, mardi dernier, après-demain, la semaine dernière": [
      "Il y a deux semaines = 2026-11-04",
      "mardi dernier = 2026-11-17",
      "après-demain = 2026-11-20",
      "semaine dernière = 2026-11-09 – 2026-11-15",
    ],
    "hace 3 días, el martes pasado, mañana por la mañana, pasado mañana": [
      "hace 3 días = 2026-11-15",
      "martes pasado = 2026-11-17",
      "mañana = 2026-11-19",
      "pasado mañana = 2026-11-20",
    ],
    "昨天说的，三天前，两周后": ["昨天 = 2026-11-17", "三天前 = 2026-11-15", "两周后 = 2026-12-02"],
    "昨日、2週間後、明後日": ["昨日 = 2026-11-17", "2週間後 = 2026-12-02", "明後日 = 2026-11-20"],
  };
  for (const [text, expected] of Object.entries(cases)) it(text, () => assert.deepEqual(found(text), expected));

  it("by the calendar of the zone", () => {
    const late = "2026-11-18T23:30:00.000Z" as Timestamp;
    assert.equal(findRelativeTimes("yesterday", late, "Asia/Tokyo")[0]?.from, "2026-11-18");
  });

  it("only if it has one meaning", () => {
    for (const text of [
      "next Friday",
      "Guten Morgen",
      "hier ist es",
      "I finished it in two days",
      "por la mañana",
      "the last day",
      "in 5 minutes",
      "in two days of work",
    ])
      assert.deepEqual(found(text), [], text);
  });

  it("and written in the language in which it was said", () => {
    const written = (text: string): string | undefined => findRelativeTimes(text, at).map(writeDays)[0];
    assert.deepEqual(["yesterday", "gestern", "ayer", "昨天", "last week", "last year"].map(written), [
      "November 17, 2026",
      "17. November 2026",
      "17 de noviembre de 2026",
      "2026年11月17日",
      "November 2026",
      "2025",
    ]);
  });

  it("as a whole text, for arguments", () => {
    assert.equal(readRelativeTime("last month", at, "UTC")?.from, "2026-10-01");
    assert.equal(readRelativeTime("since last month", at, "UTC"), null);
  });
});
