/**
 * User stories at the terminal, each from the first screen to its end, on a database with a year of use: four
 * conversations, one with 100,000 messages and summaries of depth 0 to 3. Edge cases of each screen are tested beside it.
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { messageToStore } from "../../src/core/messages/codec.ts";
import { copyLongDatabase } from "../support/long-conversation.ts";
import { portOver } from "../support/robot.ts";
import { formatCount } from "../../src/core/base/format.ts";
import type { Timestamp } from "../../src/core/base/time.ts";
import {
  original,
  long,
  asked,
  sits,
  looks,
  marked,
  goTo,
  longRow,
  below,
  openInto,
  type,
  onFile,
  summariesOf,
} from "./stories-ground.ts";

describe("stories 1 to 4: looking", { concurrency: 4 }, () => {
  it("story 1: finds, sorts, groups and filters the conversations while the host writes", async () => {
    const path = await copyLongDatabase();
    const own = portOver(path);
    await onFile(path, async ({ store }) => await store.setHidden(asked, true));
    await sits(own, async (robot) => {
      await robot.sees("3 of 4 conversations · latest activity first · 1 hidden");
      assert.match(robot.screen(), /1 +A year at the harbour.* 100,000 +3,486 +━+─┼─ +57% +1 d ago +unchecked/);
      assert.match(robot.screen(), /▸ +2 +The second year .* 16 h ago/);
      assert.doesNotMatch(robot.screen(), /agent:main:cli/);
      await robot.press(".");
      await robot.sees(/4 +agent:main:cli \(hidden\) +1 /);

      await robot.press("/");
      await robot.type("har");
      await robot.sees("3 of 4 conversations");
      await robot.type("bour 港");
      await robot.sees("1 of 4 conversations");
      assert.match(marked(robot), /3 +港口手册/);
      await robot.press("enter", "enter");
      await robot.sees("message 400 of 400");
      await robot.press("escape");
      await robot.sees('matching "harbour 港"');
      await robot.press("escape");
      await robot.sees("4 conversations · latest activity first");

      const order = (): readonly string[] =>
        robot.lines().flatMap((line) => /^[ ▸] +([1-4]) {2}(?:└|\S)/.exec(line)?.[1] ?? []);
      assert.deepEqual(order(), ["2", "1", "3", "4"]);
      await robot.press("o");
      await robot.sees("most messages first");
      assert.deepEqual(order(), ["1", "3", "2", "4"]);
      await robot.press("f");
      await robot.sees("grouped by session");
      assert.deepEqual(order(), ["2", "1", "3", "4"]);
      await robot.sees("1  └ A year at the harbour office");
      await robot.press("a");
      await robot.sees("agent main");
      assert.deepEqual(order(), ["2", "1", "4"]);
      await robot.press("a");
      await robot.sees("agent research");
      assert.deepEqual(order(), ["3"]);
      await robot.press("a", "f");
      await robot.sees("4 conversations · most messages first");
      assert.deepEqual(order(), ["1", "3", "2", "4"]);
      assert.match(marked(robot), /3 +港口手册/);

      const said = (key: string) =>
        messageToStore({ role: "user", content: "Anybody?" }, { key, at: "2026-02-07T08:57:00.000Z" as Timestamp });
      const many = Array.from({ length: 500 }, (_, at) => ({ kind: "message", message: said(`more-${at}`) }) as const);
      await onFile(path, async ({ store }) => await store.append(asked, many));
      await robot.sees(/4 +agent:main:cli \(hidden\) +501 .*3 min ago/);
      assert.deepEqual(order(), ["1", "4", "3", "2"]);
      assert.match(marked(robot), /3 +港口手册/, "the cursor stays on its conversation");
    });
    await own.close();
  });

  it("story 2: reads 100,000 messages from the end and from anywhere, and follows their links", async () => {
    await looks(async (robot) => {
      await goTo(robot, longRow);
      await robot.press("enter");
      await robot.sees("message 100,000 of 100,000 · 100%");
      assert.match(marked(robot), /▸ assistant {2}2026-02-05 16:03 .* msg_1-100000/);
      await robot.press("pageUp", "pageUp", "pageUp");
      const upwards = Number(/message 99,(\d+) of/.exec(robot.screen())?.[1]);
      assert.ok(upwards > 960 && upwards < 985, `three pages up is message 99,${upwards}`);
      await robot.press("pageDown", "k", "k");
      await robot.press("g");
      await robot.sees("message 1 of 100,000 · 0%");
      assert.match(marked(robot), /▸ user {2}2025-02-03 06:00/);
      await robot.press("G");
      await robot.sees("message 100,000 of 100,000");

      await type(robot, "#", "2025-06-01 12:00");
      await robot.sees("message 32,201 of 100,000 · 32%");
      assert.match(marked(robot), /▸ user {2}2025-06-01 12:04/);
      await type(robot, "#", "msg_1-60003");
      await robot.sees("message 60,003 of");
      await type(robot, "#", "#51204");
      await robot.sees("message 51,204 of 100,000 · 51%");

      await robot.press("k", "k");
      assert.match(marked(robot), /▸ assistant .* msg_1-51202/);
      await robot.sees(
        'thinking  what is behind "#12800: the pilot boat at quay 4 is late again and nobody has called.…',
      );
      await robot.press("space");
      await robot.sees(/┃ {3}thinking *\n┃ {3}what is behind "#12800: .* nobody has called\."\?/);
      await robot.sees('→ read {"path":"notes/call_12800.md"}');
      await robot.press("space");
      await robot.sees("thinking  what is behind");

      await type(robot, "#", "#495");
      await robot.sees(/← read {2}\[file_\w+ · 1\.6 KB · 60 lines; f opens it\] +5 lines/);
      const [, file = "none"] = /┃ .*(file_\w+)/.exec(robot.screen()) ?? [];
      await robot.press("space");
      await robot.sees(`[End of ${file}]`);
      await robot.press("f");
      await robot.sees(new RegExp(`▸ ${file} +– +1\\.6 KB +60 +2025-02-04 18:50`));
      await robot.sees("0 gate 4 open true, 123 t");
      await robot.press("escape");
      await robot.sees("message 495 of");

      await robot.press("/");
      await robot.type("12800 pilot");
      await robot.sees(/find 12800 pilot[^]+▸ .*\n.*12800/);
      await robot.press("escape");
      await goTo(robot, /user .*msg_1-51201/);
      await robot.press("enter");
      await robot.sees("message 51,201 of");
      assert.match(marked(robot), /▸ user .* msg_1-51201/);
      await robot.press("escape");
      await robot.sees("find 12800 pilot");
      assert.match(marked(robot), /msg_1-51201/);
      await robot.press("escape");
      await robot.sees("message 495 of");
      await robot.press("escape");
      await robot.sees("4 conversations");
      assert.match(marked(robot), longRow);
    });
  });

  it("story 3: opens a year's summary down to the messages, and finds it from there", async () => {
    await looks(async (robot) => {
      await summariesOf({ robot });
      await robot.sees("100,000 messages, 3,486 summaries; 80 items, 4,784 tokens in context");
      const strip = robot.lines().slice(2, 7);
      for (const [row, shape] of [/^ d3 ▓+█/, /^ d2 ░+█+/, /^ d1 ░+█/, /^ d0 ░+━/].entries())
        assert.match(strip[row] ?? "", shape);
      assert.match(strip[4] ?? "", /── 2025-02-03 ─+ █ in context .* 2026-02-05 ──/);

      const idNow = (): string => /│ (sum_\w+)/.exec(robot.screen())?.[1] ?? "none";
      const ids: string[] = [];
      for (const [at, [what, count]] of [
        ["d3 condensed", "6 summaries"],
        ["d2 condensed", "7 summaries"],
        ["d1 condensed", "10 summaries"],
        ["d0 leaf", "32 messages"],
      ].entries()) {
        await robot.sees(new RegExp(`│ sum_\\w+ {2}${what}`));
        await robot.sees(new RegExp(`▸ +\\+ ${what}`));
        await robot.sees(new RegExp(`│ made from +${count}: `));
        // Its parent is the row it was opened from.
        if (ids.length > 0) await robot.sees(new RegExp(`│ used in +${ids.at(-1)}`));
        ids.push(idNow());
        await openInto(robot, below[at] ?? /none/);
      }
      assert.equal(new Set(ids).size, 4);
      assert.match(robot.lines()[5] ?? "", /^ d0 ▓░/);
      await robot.press("enter");
      await robot.sees("message 1 of 100,000");
      await robot.press("escape");
      await robot.sees("│ msg_1-1  user");
      assert.match(marked(robot), /▸ +user +20 /);

      // Back up to the d1, whose text is longer than the room.
      await robot.press("P", "P");
      await robot.sees(`│ ${ids[2]}  d1 condensed`);
      assert.doesNotMatch(robot.screen(), /turns 0 to 79/);
      for (let lines = 0; lines < 24; lines++) await robot.press("J");
      await robot.sees("│ Expand for details about: turns 0 to 79");
      await robot.misses(`│ ${ids[2]}`);
      for (let lines = 0; lines < 24; lines++) await robot.press("K");
      await robot.sees(`│ ${ids[2]}`);
      await robot.press("p");
      await robot.sees(`previous context of ${ids[2]}`);
      await robot.sees("None is recorded: nothing came before it");
      await robot.press("escape", "m");

      // From a message to the summary that covers it.
      await robot.sees("message 100,000 of");
      await type(robot, "#", "#32201");
      await robot.sees("message 32,201 of");
      await robot.press("S");
      await robot.sees(/│ made from +32 messages: *\n.*│ +msg_1-32193…msg_1-32224/);
      await robot.sees(/▸ +\+ d0 leaf +197 {2}- #8048: /);
      await robot.press("p");
      await robot.sees("previous context of sum_");
      await robot.sees("- #8047: the tug at quay 4: moved to the evening tide; Ines told the crew.");
      await robot.press("escape", "escape");
      await robot.sees("message 32,201 of");
    });
  });

  it("story 4: shows the prompt, what a budget leaves out, and the whole text", async () => {
    const budget = 5_000;
    const { messages, report } = await onFile(original, async (lcm) => await lcm.assemble(long, { budget }));
    await looks(async (robot) => {
      await goTo(robot, longRow);
      await robot.press("c");
      await robot.sees("prompt: 8,083 tokens, 67% of a budget of 12,000 (from the host)");
      await robot.sees("a sweep is due above 9,000 ↑");
      await robot.sees("█ d3 2,563 (7)   ▓ d2 831 (2)   ▒ d1 2,111 (4)   ░ leaves 868 (3)");
      const kinds = robot.lines().flatMap((line) => /^[ ▸] (d\d) /.exec(line)?.[1] ?? []);
      assert.equal(kinds.join(" "), "d3 d3 d3 d3 d3 d3 d3 d2 d2 d1 d1 d1 d1 d0 d0 d0");
      assert.match(marked(robot), /▸ d3 +358 {2}█+ +358 {2}02-03…03-24 {2}#0: /);
      await robot.press("pageDown", "pageDown", "pageDown");
      await robot.sees(/── fresh tail.*\n {2}user .* 02-05 14:24 /);
      await robot.press("G");
      assert.match(marked(robot), /▸ assistant +15 .* 8,083 {2}02-05 16:03/);

      await type(robot, "b", "5k");
      await robot.sees(`prompt: ${formatCount(report.tokens)} tokens, 73% of a budget of 5,000 (trial; B:`);
      await robot.sees("a sweep is due above 3,750 ↑");
      await robot.press("g");
      await robot.sees("── ↑ left out at 5,000 tokens: 11 items, 3,420 tokens ──");
      assert.match(marked(robot), /▸ d3 +287 +02-03…03-24/);
      await robot.press("v");
      await robot.sees("not in the prompt at 5,000 tokens");
      await robot.press("v");

      await robot.press("V");
      await robot.sees("prompt of conversation 1 at 5,000 tokens");
      const [note, summary] = messages.map(({ content }) => content);
      assert.ok(typeof note === "string" && typeof summary === "string");
      const unwrapped = robot.screen().replaceAll(/ *│.*\n.*?│ /g, " ");
      assert.ok(unwrapped.includes(note), `the note in\n${robot.screen()}`);
      for (const line of summary
        .split("\n")
        .filter((each) => each.length < 90)
        .slice(0, 14))
        assert.ok(robot.screen().includes(`│ ${line} `), `${line}\n${robot.screen()}`);
      await robot.press("G");
      const last = messages.at(-1)?.content;
      assert.ok(Array.isArray(last));
      await robot.sees("│ Done: a diver looks at it tomorrow at six. ");
      assert.match(JSON.stringify(last), /"Done: a diver looks at it tomorrow at six\."/);
      await robot.press("escape", "B");
      await robot.sees("of a budget of 12,000");
    });
  });
});
