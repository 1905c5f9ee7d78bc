/** Robot sessions on the summaries screen: its strip, opening down to messages, details. */

import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, describe, it } from "node:test";
import { createLcm } from "../../src/core/lcm.ts";
import type { SummaryId } from "../../src/core/model/types.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import { portOver, startRobot } from "../support/robot.ts";
import type { Robot, RobotOptions } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import type { Destination } from "../../src/tui/contract.ts";

const folder = makeScratch("tui-summaries");
const database = join(folder, "lcm.db");
const made = await makeDeepConversation(database);
const shared = portOver(database);
const ports = [shared];
const robots: Robot[] = [];
afterEach(async () => {
  for (const robot of robots.splice(0)) await robot.end();
});
after(async () => {
  for (const port of ports) await port.close();
});

type At = Omit<Extract<Destination, { readonly kind: "summaries" }>, "kind">;
function look(place: At = { conversation: made.deep }, options: RobotOptions = {}, port = shared): Robot {
  const robot = startRobot(port, { columns: 80, rows: 24, ...options, place: { kind: "summaries", ...place } });
  robots.push(robot);
  return robot;
}

const selectedLine = (robot: Robot): string => robot.lines().find((line) => line.startsWith("▸")) ?? "";

describe("the summaries of a conversation, in the terminal UI", () => {
  it("show the context as a tree, and its shape over time", async () => {
    const robot = look();
    await robot.sees("▸ + d3 condensed");
    const [, head, ...lines] = robot.lines();
    assert.match(head ?? "", /98 messages, 34 summaries; 11 items, [\d,]+ tokens in context +times in 2025, UTC/);
    assert.deepEqual(
      lines.slice(0, 4).map((line) => line.slice(0, 4).trim()),
      ["d3", "d2", "d1", "d0"],
    );
    // Deeper summaries are earlier, and each has sources.
    assert.match(lines[0] ?? "", /^ d3 ▓+█* +$/);
    assert.match(lines[3] ?? "", /^ d0 ░+█+▐?█*━ ?$/);
    assert.match(robot.screen(), /▸ \+ d3 condensed +2 +69 +11-03…11-06 +Settled so far/);
    assert.match(robot.screen(), / {4}6 messages +98 +11-09 13:30…13:40 +the fresh tail/);
    assert.doesNotMatch(robot.screen(), /not in the context/);
  });

  it("open down to the messages, and lead to them", async () => {
    const robot = look();
    await robot.sees("the fresh tail");
    for (const below of ["+ d2", "+ d1", "+ d0", "user"]) {
      await robot.press("enter");
      await robot.sees(below);
      await robot.press("l");
    }
    assert.match(selectedLine(robot), /^▸ +user +\d+ +11-03 08:00 +Do we draw a map of the/);
    // Back up to the leaf, which closes, and on to its parent.
    await robot.press("h");
    assert.match(selectedLine(robot), /- d0 leaf/);
    await robot.press("space", "P");
    assert.match(selectedLine(robot), /- d1 condensed/);
    assert.doesNotMatch(robot.screen(), /^ +user /m);
    await robot.press("j", "enter");
    await robot.sees(/^ +user /m);
    await robot.press("j", "enter");
    await robot.sees("message 1 of 98");
    await robot.press("escape");
    await robot.sees("d3 condensed");
    assert.match(selectedLine(robot), /user/);
  });

  it("open at a given summary, and mark one whose text is poor", async () => {
    const robot = look({ conversation: made.deep, at: made.truncated }, { columns: 120, rows: 30 });
    await robot.sees(`▸   + d0 leaf`);
    await robot.sees("msg_1-81…msg_1-84");
    assert.match(selectedLine(robot), /truncated/);
    for (const words of [
      /│ sum_\w+ +d0 leaf/,
      /│ when +2025-11-08 18:00 – 18:06 UTC/,
      /│ level +truncated: cut short, no usable answer/,
      /│ used in +sum_/,
      /│ Do season tickets carry a photo\?/,
    ])
      assert.match(robot.screen(), words);
  });

  it("show the whole text of one, scrolling, beside the list or instead of it", async () => {
    const robot = look({ conversation: made.deep }, { rows: 20 });
    await robot.sees("the fresh tail");
    await robot.press("tab");
    await robot.sees("made from  2 summaries");
    assert.doesNotMatch(robot.screen(), /the fresh tail$|▸/m);
    assert.doesNotMatch(robot.screen(), /Settled so far/);
    await robot.press("J", "J", "J", "J");
    await robot.sees("Settled so far: seat maps; dogs");
    await robot.press("j");
    await robot.sees("These days:");
    await robot.press("tab");
    await robot.sees("the fresh tail");
    await robot.resize(120, 30);
    await robot.sees("│ made from  2 summaries");
    await robot.press("tab");
    await robot.misses("│ made from");
  });

  it("show the previous context of a summary's prompt, or why there is none", async () => {
    const robot = look({ conversation: made.deep, at: made.truncated });
    await robot.sees("▸   + d0 leaf");
    await robot.press("p");
    await robot.sees("None: its text was made without a model.");
    await robot.sees("A rewrite would get this, recomputed");
    await robot.press("escape", "k", "p");
    await robot.sees(/previous context of sum_[^]*Asked: Is the fuel surcharge shown\?/);
    await robot.press("escape", "g", "p");
    await robot.sees("only leaves and summaries of depth 1");
  });

  it("can be used with the mouse", async () => {
    const robot = look();
    await robot.sees("+ d1 condensed");
    const row = (words: string): number => robot.lines().findIndex((line) => line.includes(words));
    await robot.click(10, row("+ d1"));
    assert.match(selectedLine(robot), /d1 condensed/);
    // Between words: a double click on a word would select it.
    await robot.click(3, row("+ d1"));
    await robot.click(3, row("+ d1"));
    await robot.sees("truncated");
  });

  it("stay open and selected when another process dissolves one, which then leaves the context", async () => {
    const path = join(folder, "dissolved.db");
    copyFileSync(database, path);
    const port = portOver(path);
    ports.push(port);
    const robot = look({ conversation: made.deep, at: made.truncated }, {}, port);
    await robot.sees("▸   + d0 leaf");
    const store = await openSqlite({ path });
    const lcm = createLcm({ store, clock: { now: systemNow } });
    const [deepest] = await store.context(made.deep, { kind: "summary", limit: 1 });
    assert.ok(deepest?.kind === "summary");
    const summary: SummaryId = deepest.id;
    await lcm.dissolve(await lcm.planDissolve({ conversation: made.deep, summary }));
    await lcm.close();
    await robot.sees("+ not in the context");
    assert.match(selectedLine(robot), /d0 leaf +4 +30 .*truncated/);
    assert.doesNotMatch(robot.screen(), /d3/);
    await robot.press("G", "enter");
    await robot.sees("+ d3 condensed");
    // It can still be opened.
    const again = look({ conversation: made.deep, at: summary }, {}, port);
    await again.sees("▸   + d3 condensed");
  });

  it("refuse unavailable keys with the reason", async () => {
    const robot = look();
    await robot.sees("the fresh tail");
    await robot.press("G", "d");
    await robot.sees("d: these are messages, not a summary");
    const port = portOver(database, { readOnly: true });
    ports.push(port);
    const reader = look({ conversation: made.deep }, {}, port);
    await reader.sees("the fresh tail");
    for (const key of ["d", "w", "r", "W", "R"]) {
      await reader.press(key);
      await reader.sees(`${key}: it was opened with --read-only`);
    }
  });
});
