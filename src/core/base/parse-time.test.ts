import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LcmError } from "./errors.ts";
import { parseWhen } from "./parse-time.ts";
import type { Timestamp } from "./time.ts";

const now = "2026-03-10T01:30:00.000Z" as Timestamp;
const read = (text: string, zone = "UTC"): string => parseWhen("--since", text, zone, now);

describe("guarantee 29: times are typed in the user's time zone", () => {
  it("reads a time without a zone in the user's zone", () => {
    assert.equal(read("2026-02-17"), "2026-02-17T00:00:00.000Z");
    assert.equal(read("2026-02-17", "Asia/Tokyo"), "2026-02-16T15:00:00.000Z");
    assert.equal(read("2026-02-17 15:30", "America/St_Johns"), "2026-02-17T19:00:00.000Z");
    assert.equal(read("2026-07-17T15:30:20.250", "America/St_Johns"), "2026-07-17T18:00:20.250Z");
  });

  it("respects a zone in the text", () => {
    assert.equal(read("2026-02-17T15:30:00Z", "Asia/Tokyo"), "2026-02-17T15:30:00.000Z");
    assert.equal(read("2026-02-17T15:30:00+02:00", "Asia/Tokyo"), "2026-02-17T13:30:00.000Z");
  });

  it("reads today and yesterday by the user's calendar", () => {
    assert.equal(read("today"), "2026-03-10T00:00:00.000Z");
    assert.equal(read("today", "America/St_Johns"), "2026-03-09T02:30:00.000Z");
    assert.equal(read("yesterday", "America/St_Johns"), "2026-03-08T03:30:00.000Z", "the night the clocks changed");
  });

  it("counts back from now", () => {
    assert.equal(read("90m"), "2026-03-10T00:00:00.000Z");
    assert.equal(read("2h"), "2026-03-09T23:30:00.000Z");
    assert.equal(read("7d"), "2026-03-03T01:30:00.000Z");
    assert.equal(read("1w"), "2026-03-03T01:30:00.000Z");
  });

  it("reads days as people name them, in six languages", () => {
    assert.equal(read("last tuesday"), "2026-03-03T00:00:00.000Z", "said on a Tuesday");
    assert.equal(read("two weeks ago", "Asia/Tokyo"), "2026-02-23T15:00:00.000Z");
    assert.equal(read("Last Month"), "2026-02-01T00:00:00.000Z");
    assert.equal(read("vor drei Tagen"), "2026-03-07T00:00:00.000Z");
    assert.equal(read("前天"), "2026-03-08T00:00:00.000Z");
  });

  it("rejects what is not a time, with examples", () => {
    for (const text of ["", "soon", "2026-02-30", "2026-13-01", "17.2.2026", "99999w"]) {
      assert.throws(
        () => read(text),
        (error) => error instanceof LcmError && error.code === "invalid" && error.hint !== undefined,
        text,
      );
    }
  });
});

describe("a time in the first years of the range", () => {
  it("is not taken for a number of seconds", () => {
    assert.equal(read("1971-01-01"), "1971-01-01T00:00:00.000Z");
    assert.equal(read("1971-01-01 09:00", "Asia/Tokyo"), "1971-01-01T00:00:00.000Z");
    assert.equal(read("55y"), "1971-03-24T01:30:00.000Z");
  });
});
