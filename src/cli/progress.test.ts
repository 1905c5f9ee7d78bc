import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createProgress, createProgressLine } from "./progress.ts";
import { widthOf } from "../format/width.ts";

/** A terminal that remembers what was written to it, and a clock that is set by hand. */
function createTerminal(columns: number, isTerminal = true) {
  const stream = new PassThrough();
  const clock = { ms: 0 };
  const progress = createProgress(
    { stream, isTerminal, columns, colour: false },
    "importing a-session",
    () => clock.ms,
  );
  const written = (): string => String(stream.read() ?? "");
  return { progress, clock, written };
}

describe("progress", () => {
  it("shows nothing without a terminal", () => {
    const { progress, clock, written } = createTerminal(80, false);
    clock.ms = 5_000;
    progress.update({ done: 1, of: 2, unit: "rows" });
    progress.end();
    assert.equal(written(), "");
  });

  it("shows nothing for short work", () => {
    const { progress, clock, written } = createTerminal(80);
    for (clock.ms = 0; clock.ms < 200; clock.ms += 10) progress.update({ done: clock.ms, of: 200, unit: "rows" });
    progress.end();
    assert.equal(written(), "");
  });

  it("shows the progress and the time left on one line, and cleans up", () => {
    const { progress, clock, written } = createTerminal(90);
    clock.ms = 10_000;
    progress.update({ done: 250_000_000, of: 1_000_000_000, unit: "bytes" });
    const line = written();
    assert.match(line, /importing a-session {2}█{6}░{18} {3}25% {2}250 MB of 1\.\d* ?GB {2}30 s left$/);
    progress.end();
    assert.equal(written(), "\r\u001b[2K");
  });

  it("shortens the bar to make room for details", () => {
    const { progress, clock, written } = createTerminal(80);
    clock.ms = 10_000;
    progress.update({ done: 3, of: 12, unit: "messages", detail: "d0, −48,300 tokens" });
    assert.match(
      written(),
      /importing… {2}█{2,4}░{6,12} {3}25% {2}3 of 12 messages {2}d0, −48,300 tokens {2}30 s left$/,
    );
  });

  it("never fills a whole line, however narrow", () => {
    for (let columns = 20; columns < 100; columns++) {
      const { progress, clock, written } = createTerminal(columns);
      clock.ms = 10_000;
      progress.update({ done: 123_456, of: 999_999, unit: "rows" });
      assert.ok(widthOf(written().replace("\r\u001b[2K", "")) < columns, String(columns));
    }
  });

  it("describes work of unknown length, and cleans up", () => {
    const { progress, clock, written } = createTerminal(40);
    progress.say("searching");
    assert.equal(written(), "");
    clock.ms = 1_000;
    progress.say(`reading ${"sum_0123456789abcdef, ".repeat(9)}`);
    const line = written().replace("\r\u001b[2K", "");
    assert.match(line, /^importing a-session {2}reading sum_.*…$/);
    assert.ok(widthOf(line) < 40);
    progress.end();
    assert.equal(written(), "\r\u001b[2K");
  });

  it("redraws no more often than is visible", () => {
    const { progress, clock, written } = createTerminal(80);
    let draws = 0;
    for (clock.ms = 1_000; clock.ms < 2_000; clock.ms += 1) {
      progress.update({ done: clock.ms, of: 2_000, unit: "rows" });
      if (written() !== "") draws += 1;
    }
    assert.ok(draws <= 13, `${draws} times in a second`);
  });
});

describe("the progress line of a command", () => {
  it("leaves the terminal to a question", async () => {
    const stream = new PassThrough();
    const line = createProgressLine({ stream, isTerminal: true, columns: 80, colour: false }, "importing");
    await sleep(300); // Short work shows nothing.
    const answer = Promise.withResolvers<boolean>();
    const asking = line.pauseFor(answer.promise);
    line.tick();
    assert.equal(stream.read(), null);
    answer.resolve(true);
    assert.equal(await asking, true);
    line.tick();
    assert.match(String(stream.read()), /importing {2}0 s/);
  });
});
