import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Timestamp } from "../core/base/time.ts";
import { createPaint } from "./paint.ts";
import { proxyLines } from "./proxy.ts";

const at = "2026-11-18T12:00:00.000Z" as Timestamp;
const counts = { turns: 1, requests: 1, replaced: 0, refused: 0, tokensInput: 0, tokensCached: 0, tokensSaved: 0 };

describe("what a proxy has done", () => {
  it("is lines of text, whatever ids programs send and whatever fails", () => {
    const hostile = "a\u001b[2J\u0007\nb\u202e";
    const session = { ...counts, bytesAsked: 9, bytesSent: 9, bytesKept: 0, lastAt: at };
    const report = { program: hostile, pid: 1, port: 2, startedAt: at, endedAt: null, isRunning: true };
    const lines = proxyLines(
      { paint: createPaint(false), zone: "UTC" },
      {
        ...report,
        sessions: [{ ...session, host: hostile, session: hostile, whyUnchanged: hostile }],
        problems: [{ at, doing: `recording a prompt of ${hostile}`, message: hostile }],
      },
    );
    assert.equal(lines.length, 6);
    assert.doesNotMatch(lines.join(""), /[\u0000-\u001f\u202e]/);
  });

  it("expects no more requests of one that has ended", () => {
    const report = { program: "claude", pid: 1, port: 2, startedAt: at, sessions: [], problems: [] };
    const page = { paint: createPaint(false), zone: "UTC" };
    assert.match(proxyLines(page, { ...report, endedAt: null, isRunning: true }).join("\n"), /no requests yet$/);
    assert.match(proxyLines(page, { ...report, endedAt: at, isRunning: false }).join("\n"), /no requests$/);
    assert.match(proxyLines(page, { ...report, endedAt: null, isRunning: false }).join("\n"), /was killed\n/);
  });
});
