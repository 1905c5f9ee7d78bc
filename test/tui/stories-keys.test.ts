import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { copyLongDatabase } from "../support/long-conversation.ts";
import { portOver } from "../support/robot.ts";
import { createScriptedModel } from "../support/scripted-model.ts";
import { cellsOf } from "./stories-cells.ts";
import {
  young,
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
  acts,
  summariesOf,
  looked,
} from "./stories-ground.ts";

describe("story 6: files, search and status", { concurrency: 3 }, () => {
  it("lists the files moved out of messages, with their content", async () => {
    await looks(async (robot) => {
      await goTo(robot, longRow);
      await robot.press("F");
      await robot.sees("63 files");
      assert.match(marked(robot), /▸ file_\w+ +– +1\.8 KB +60 +2026-02-04 14:10/);
      await robot.sees("Text, 60 lines, 420 words, 1,759 characters.");
      await robot.press("j");
      await robot.sees("0 gate 2 open true, 24523 t");
      await robot.press("enter", "G");
      await robot.sees(/59 gate \d open false, 24523 t/);
      await robot.press("escape", "m");
      await robot.sees(/message 98,095 of 100,000/);
      assert.match(marked(robot), /▸ tool /);
    });
  });

  it("finds while you type, by words and by regular expression, and opens the hit", async () => {
    await looks(async (robot) => {
      await robot.press("S");
      await robot.sees("Type words in any form");
      await robot.type("lock ga");
      await robot.sees(/words in messages and summaries of all conversations +first 55 matches/);
      await robot.type("te 12801");
      await robot.sees(/find lock gate 12801[^]+▸ .*\n.*12801/);
      await robot.press("ctrl+u", "tab");
      await robot.type("#1280[13]: the .{4,9} (at|on) ");
      await robot.sees(/regular expression in messages and summaries of all conversations +\d+ matches/);
      await robot.press("enter");
      await robot.press("v");
      await robot.sees(/regular expression in messages of all conversations +2 matches/);
      await goTo(robot, /user .*msg_1-51205/);
      await robot.sees("#12801: the buoy at dry dock is late again");
      await robot.press("enter");
      await robot.sees("message 51,205 of 100,000");
      await robot.press("escape");
      await robot.sees("find #1280[13]: the .{4,9} (at|on)");
    });
  });

  it("shows the status of the database, and the model calls", async () => {
    await acts(async (seat) => {
      const { robot } = seat;
      await robot.press("!");
      await robot.sees("── stored ──");
      await robot.sees(/messages +100,409/);
      await robot.sees(/summaries +3,498, 3 extracted, 2 truncated/);
      await robot.sees(/model calls +0 of 120 in the last hour/);
      await robot.sees("nothing is due");
      await robot.press("escape");
      await summariesOf(seat);
      await robot.press("w");
      await robot.sees("Send it to the model?");
      await robot.press("enter");
      await robot.sees("Replace the old text?");
      await robot.press("n");
      await robot.sees("the draft is kept");
      await robot.press("escape", "!");
      await robot.sees(/model calls +1 of 120 in the last hour/);
      await robot.press("escape", "c");
      await robot.sees("prompt: ");
      await robot.press("!");
      await robot.sees("status of 1");
      await robot.sees(/── A year at the harbour office[^]+prompt +━+─+┼─+ 57% of 12,000 tokens/);
    });
  });
});

describe("story 7: keys, sizes and colours", { concurrency: 3 }, () => {
  it("every key does its job, and escape and q go back", async () => {
    await sits(portOver(looked, { model: createScriptedModel({ behaviour: () => "good" }) }), async (robot) => {
      const leadTo = async (home: string, ways: readonly (readonly [string, string | RegExp])[]): Promise<void> => {
        for (const [at, [key, words]] of ways.entries()) {
          await robot.press(key);
          await robot.sees(words);
          // In the list of targets, letters filter.
          await robot.press(at % 2 === 0 || key === "t" ? "escape" : "q");
          await robot.misses(words);
          await robot.sees(home);
        }
      };
      const help = ["?", /╭─ keys ─[^]+│ {3}↓ j .* move down a line/] as const;
      await goTo(robot, longRow);
      await leadTo("4 conversations", [
        ["enter", "› messages"],
        ["s", "› summaries of 1"],
        ["c", "› context of 1"],
        ["R", "repair conversation 1"],
        ["t", "into which conversation?"],
        ["C", "╭─ compact conversation 1 ─"],
        ["D", "╭─ delete or archive conversation 1 ─"],
        ["F", "› files"],
        ["S", "› search"],
        ["!", "› status"],
        ["u", "› history of"],
        ["U", "› history "],
        help,
      ]);
      await robot.press("enter");
      await robot.sees("message 100,000 of");
      await leadTo("message 100,000 of", [
        ["enter", / assistant {2}2026-02-05 16:03 {2}15 tokens {2}msg_1-100000 *\n/],
        ["s", "› summaries of 1"],
        ["c", "› context of 1"],
        ["f", "› files"],
        ["/", "› search"],
        help,
      ]);
      await robot.press("q", "s");
      await robot.sees("the fresh tail");
      await leadTo("the fresh tail", [
        ["d", "╭─ dissolve sum_"],
        ["r", "╭─ rewrite ─"],
        ["w", "╭─ rewrite ─"],
        ["W", "and everything below it ─"],
        ["R", "╭─ repair conversation 1 ─"],
        ["p", "╭─ previous context of sum_"],
        ["c", "› context of 1"],
        ["m", "› messages"],
        ["u", "› history"],
        help,
      ]);
      await robot.press("enter");
      await robot.sees("▸ - d3");
      await robot.press("q", "c");
      await robot.sees("prompt: ");
      await leadTo("prompt: ", [
        ["enter", "› summaries of 1"],
        ["d", "╭─ dissolve sum_"],
        ["r", "╭─ rewrite ─"],
        ["w", "╭─ rewrite ─"],
        ["p", "╭─ previous context of sum_"],
        ["s", "› summaries of 1"],
        ["V", "╭─ prompt of conversation 1"],
        help,
      ]);
      await robot.press("q");
      await robot.sees("4 conversations");
      await robot.press("q");
      assert.ok(robot.isOver(), "q quits the first screen");
    });
  });

  it("j, k, g, G, PgUp and PgDn move in every list", async () => {
    await looks(async (robot) => {
      const move = async (): Promise<void> => {
        // The pane beside a list may lag behind.
        const row = (): string => marked(robot).replace(/│.*/, "");
        const first = row();
        assert.notEqual(first, "");
        const seen: string[] = [];
        for (const [there, back] of [
          ["j", "k"],
          ["G", "g"],
          ["pageDown", "pageUp"],
        ] as const) {
          await robot.press(there);
          seen.push(row());
          await robot.press(back);
          assert.equal(row(), first, `${back} undoes ${there}`);
        }
        assert.ok(!seen.includes(first), seen.join("\n"));
      };
      await robot.press("g");
      await move();
      await goTo(robot, longRow);
      for (const [key, words] of [
        ["s", /▸ \+ d3 condensed .*\d/],
        ["c", "prompt: "],
        ["F", "Content:"],
      ] as const) {
        await robot.press(key);
        await robot.sees(words);
        await move();
        await robot.press("escape");
        await robot.sees("4 conversations");
      }
      // Enough that the last ones have to be read first.
      await robot.press("enter");
      await robot.sees("message 100,000 of");
      await robot.press("g");
      await robot.sees("message 1 of");
      await robot.press("j", "j", "k");
      await robot.sees("message 2 of");
      await robot.press("pageDown", "pageDown", "pageUp");
      await robot.sees(/message [89] of/);
      await robot.press("G");
      await robot.sees("message 100,000 of");
    });
  });

  it("fits a terminal of any size, also when it changes", async () => {
    await looks(async (robot) => {
      const sizes = [
        [80, 24],
        [160, 50],
        [40, 10],
        [100, 30],
      ] as const;
      const resize = async (mark: string | RegExp): Promise<void> => {
        for (const [columns, rows] of sizes) {
          await robot.resize(columns, rows);
          await robot.sees(mark);
          const lines = robot.lines();
          assert.equal(lines.length, rows);
          assert.match(lines[0] ?? "", /^ \S (lossless-claw|…) › /);
          assert.match(lines.at(-1) ?? "", /\? help/, robot.screen());
          assert.match(lines.at(-1) ?? "", /esc (back|cancel)|q quit/, robot.screen());
        }
      };
      await goTo(robot, longRow);
      await resize(/▸ +1 {2}A year at/);
      await robot.press("enter");
      await robot.sees("message 100,000 of");
      await type(robot, "#", "#16429");
      await robot.sees("message 16,429 of");
      await resize(/▸ user {2}2025-04-04 12:18[^]+┃ {3}潮位が低いです/);
      await robot.press("s");
      await robot.sees("the fresh tail");
      await robot.press("j", "j");
      await resize(/▸ \+ d3 condensed/);
      await robot.press("d");
      await robot.sees("Dissolve it?");
      await resize(/Dissolve it\?/);
      await robot.press("escape", "c");
      await robot.sees("prompt: ");
      await resize(/▸ d3 /);
    });
  });

  it("shows the same with and without colours", async () => {
    const colours = /\u001b\[[\d;]*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[\d;]*)?m/;
    const walk = async (colour: boolean): Promise<readonly string[]> => {
      const screens: string[] = [];
      await looks(
        async (robot) => {
          for (const [key, ...words] of [
            ["j", /▸ +1 /],
            ["enter", "message 100,000 of"],
            ["s", "the fresh tail", /▸ \+ d3 condensed .*\d/, /│ sum_\w+ {2}d3/],
            ["d", "Dissolve it?"],
            ["escape", "cancelled"],
            ["c", "prompt: "],
            ["!", "search         up to date"],
          ] as const) {
            await robot.press(key);
            // And no spinner turns.
            for (const each of [...words, /^ ◆/]) await robot.sees(each);
            await robot.settled();
            screens.push(robot.screen());
          }
          assert.equal(colours.test(robot.written()), colour);
        },
        { colour },
      );
      return screens;
    };
    assert.deepEqual(await walk(true), await walk(false));
  });

  it("aligns columns beside Chinese, Japanese, Korean and emoji", async () => {
    const path = await copyLongDatabase();
    await onFile(path, async ({ store }) => {
      await store.setTitle(young, "潮位が低いです 🌊⚓ 부두 4번이 비어 있나요? 🚢 引航船");
      await store.setTitle(asked, "🚢🌊");
    });
    const own = portOver(path);
    await sits(own, async (robot) => {
      const [health, use] = [await cellsOf(robot, "unchecked"), await cellsOf(robot, "┼")];
      assert.deepEqual([health.length, new Set(health).size], [4, 1], robot.screen());
      assert.deepEqual([use.length, new Set(use).size], [4, 1], robot.screen());
      await goTo(robot, longRow);
      await robot.press("s");
      await robot.sees("the fresh tail");
      for (const row of below) await openInto(robot, row);
      await robot.press("pageDown", "pageDown");
      await robot.sees("潮位が");
      const pane = await cellsOf(robot, "│");
      assert.deepEqual([pane.length, new Set(pane).size], [21, 1], robot.screen());
    });
    await own.close();
  });
});

// Runs alone: the time between two clicks decides whether they are a double click.
describe("story 7: the mouse", () => {
  it("a click selects, a double click opens, the wheel scrolls, and bar keys can be clicked", async () => {
    await looks(async (robot) => {
      const rowOf = (words: string | RegExp): number =>
        robot.lines().findIndex((line) => (typeof words === "string" ? line.includes(words) : words.test(line)));
      const inBar = async (words: string): Promise<void> => {
        const bar = robot.lines().length - 1;
        await robot.click(robot.lines()[bar]?.indexOf(words) ?? 0, bar);
      };
      await robot.click(12, rowOf(longRow));
      assert.match(marked(robot), longRow);
      await robot.click(12, rowOf(longRow));
      await robot.sees("message 100,000 of");
      await robot.wheel(-5);
      await robot.sees(/message 99,99\d of/);
      await robot.click(8, rowOf("msg_1-99994"));
      await robot.sees("message 99,994 of");
      await robot.wheel(5);
      await inBar("s summaries");
      await robot.sees(/▸ \+ d3 condensed .*\d/);
      await robot.click(4, rowOf("+ d1"));
      assert.match(marked(robot), /▸ \+ d1/);
      await robot.click(4, rowOf("+ d1"));
      await robot.sees(/▸ - d1[^]+ \+ d0 leaf/);
      await robot.wheel(3);
      assert.doesNotMatch(robot.screen(), /- #0: the crane/);
      await inBar("esc back");
      await robot.sees("message 99,994 of");
    });
  });
});
