import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout } from "node:timers/promises";
import { differences } from "./stories-rows.ts";
import { original, long, young, goTo, longRow, onFile, acts, summariesOf, type Seat } from "./stories-ground.ts";

const sameAsBefore = (path: string, words: string): void =>
  assert.deepEqual(differences(path, original, "content"), [], words);

/** Confirms a question after cancelling it twice: at the question, and during the backup. */
async function onlyAtLast({ robot, path, hold }: Seat, ask: () => Promise<void>): Promise<void> {
  await ask();
  await robot.press("n");
  await robot.sees(/cancelled: nothing was changed|nothing was changed; the draft is kept/);
  const letGo = hold();
  await ask();
  await robot.press("y");
  await robot.sees("making a backup (once per session)");
  await robot.press("escape");
  await robot.sees("cancelled: nothing was changed");
  await letGo();
  await robot.misses("making a backup");
  sameAsBefore(path, "what was cancelled has changed nothing");
  await ask();
  await robot.press("y");
}

/** Undoes the newest change from the history. */
async function takeBack({ robot, path }: Seat, did: string | RegExp, key: "u" | "U" = "u"): Promise<void> {
  await robot.press(key);
  await robot.sees("› history");
  await robot.sees(did);
  await robot.press("u");
  await robot.sees("Undo it?");
  await robot.press("y");
  await robot.sees(/✓ undid change \d+/);
  await robot.sees(/▸ .* undone by \d+/);
  sameAsBefore(path, "what is taken back is as it was");
}

const changesIn = async (path: string): Promise<readonly string[]> =>
  await onFile(path, async (lcm) =>
    (await lcm.history()).map(({ change, operation, steps }) => `${change} ${operation} ${steps.length}`),
  );

/** Waits until the model was called this often; the screen shows it slightly earlier. */
async function asking({ calls }: Seat, times: number): Promise<void> {
  while (calls() < times) await setTimeout(5);
}

describe("story 5: changes", { concurrency: 3 }, () => {
  it("dissolve: opens up a year's first summary, and closes it again", async () => {
    await acts(async (seat) => {
      const { robot, path } = seat;
      await summariesOf(seat);
      await onlyAtLast(seat, async () => {
        await robot.press("d");
        await robot.sees(/returns +6 summaries of depth 2, 1,099 tokens/);
        await robot.sees("Dissolve it?");
      });
      await robot.sees("✓ dissolved: 6 summaries of depth 2 returned · u undoes change 1");
      await robot.sees("3,486 summaries; 85 items, 5,726 tokens in context");
      await robot.sees(/▸ \+ d2 condensed +174 {2}#0/);
      const items = await onFile(path, async ({ store }) => await store.context(long, { limit: 7 }));
      assert.deepEqual(
        items.map(({ depth }) => depth),
        [2, 2, 2, 2, 2, 2, 3],
      );
      await takeBack(seat, "dissolved into 6 items");
      await robot.press("escape");
      await robot.sees("80 items, 4,784 tokens in context");
    });
  });

  it("rewrite: previews, waits, compares and replaces one text", async () => {
    await acts(async (seat) => {
      const { robot, path, behave } = seat;
      await summariesOf(seat);
      const [first] = await onFile(path, async ({ store }) => await store.context(long, { kind: "summary" }));
      assert.ok(first?.kind === "summary");
      const { id } = first;
      await robot.press("w");
      await robot.sees("Send it to the model?");
      for (const words of [
        `Rewrite: ${id} (d3, 6 children)`,
        "Time range: 2025-02-03 06:00–2025-03-24 12:19 UTC",
        "source  6 summaries of d2, 1,099 tokens",
        "prompt  condensed-d3; 157 tokens now, about 549 wanted",
        "1 call, about 1,651 tokens in, 549 out",
      ])
        await robot.sees(words);
      await robot.press("escape");
      await robot.sees("cancelled: nothing was changed");
      behave("hangs");
      await robot.press("r");
      await robot.sees("Send it to the model?");
      await robot.press("enter");
      await robot.sees(`asking scripted/one for ${id} (d3 prompt)`);
      await asking(seat, 1);
      await robot.press("escape");
      await robot.sees("cancelled: nothing was changed");
      assert.deepEqual(await changesIn(path), []);

      behave("good");
      await onlyAtLast(seat, async () => {
        await robot.press("w");
        await robot.sees(/Send it to the model\?|Show the stored draft\?/);
        await robot.press("enter");
        await robot.sees("Replace the old text?");
        for (const words of ["OLD (157 tokens)", "In these months:", "NEW (32 tokens)", "Δ tokens: -125 (157 → 32)"])
          await robot.sees(words);
        await robot.press("d");
        await robot.sees(/--- old[^]+-In these months:[^]+\+.*Expand for details about: wording/);
        await robot.press("d");
        await robot.sees("OLD (157 tokens)");
      });
      await robot.sees(`✓ Rewrote ${id}: 157t → 32t (-125) · u undoes change 1`);
      assert.equal(seat.calls(), 2, "a draft that was not wanted is kept");
      const [summary] = await onFile(path, async ({ store }) => await store.summaries({ ids: [id] }));
      assert.match(summary?.text ?? "", /3994 characters, noted as/);
      await robot.sees(/▸ \+ d3 condensed +32 {2}2025-02-03 06:00: 3994/);
      await takeBack(seat, id);
    });
  });

  it("rewrite subtree: asks for each, then for none, and keeps what is applied when stopped", async () => {
    await acts(async (seat) => {
      const { robot, path, behave } = seat;
      await summariesOf(seat);
      await goTo(robot, /\+ d1 condensed/);
      const plan = async (): Promise<void> => {
        await robot.press("W");
        await robot.sees("Rewrite 11 summaries (10 leaves, 1 d1)?");
      };
      await plan();
      await robot.sees(/11 calls, about [\d,]+ tokens in, [\d,]+ out/);
      await robot.press("n");
      await robot.sees("nothing was changed");
      behave("hangs");
      await plan();
      await robot.press("y");
      await robot.sees(/1\/11 .*\(d0\)[^]+asking scripted\/one/);
      await asking(seat, 1);
      await robot.press("escape");
      await robot.sees("nothing was changed");
      sameAsBefore(path, "before the first one");

      behave("good");
      await plan();
      await robot.press("y");
      await robot.sees("1/11  Replace the old text?");
      await robot.press("y");
      await robot.sees("2/11  Replace the old text?");
      await robot.press("d");
      await robot.sees("+++ new");
      behave("hangs");
      await robot.press("A");
      await robot.sees(/3\/11 [^]+so far 2 summaries: 3\d\d → \d\d tokens/);
      await robot.press("escape");
      await robot.sees("9 summaries were not reached; run it again to continue there");
      await robot.press("enter");
      await robot.sees(/✓ Rewrote 2 summaries\. Total: 3\d\dt → \d\dt \(-\d+\) · u undoes change 1/);
      assert.deepEqual(await changesIn(path), ["1 rewrite 2"]);

      behave("good");
      await plan();
      await robot.sees("2 summaries already have the model's text");
      await robot.press("y");
      await robot.sees("3/11  Replace the old text?");
      await robot.press("A");
      await robot.sees(/✓ Rewrote 9 summaries\. Total: [\d,]+t → \d+t \(-[\d,]+\) · u undoes change 2/);
      assert.deepEqual(await changesIn(path), ["2 rewrite 9", "1 rewrite 2"]);
      await robot.sees(/▸ \+ d1 condensed +3\d {2}2026-01-31/);

      await robot.press("u");
      await robot.sees("history of con");
      for (const change of [2, 1]) {
        await goTo(robot, new RegExp(`▸ +${change} `));
        await robot.press("u");
        await robot.sees(`undo change ${change}`);
        await robot.sees("Undo it?");
        await robot.press("y");
        await robot.sees(`✓ undid change ${change}`);
      }
      sameAsBefore(path, "both are taken back");
    });
  });

  it("repair: rewrites the 2 truncated and 3 extractive leaves", async () => {
    await acts(async (seat) => {
      const { robot, path, behave } = seat;
      await goTo(robot, longRow);
      const plan = async (): Promise<void> => {
        await robot.press("R");
        await robot.sees("Repair 5 summaries (5 leaves)?");
      };
      await plan();
      await robot.sees(/sum_\w+ was extracted without a model; a rewrite would read better \(and 2 more/);
      await robot.sees(/sum_\w+ was cut short, because the model gave no usable answer \(and 1 more/);
      await robot.press("n");
      await robot.sees("nothing was changed");
      behave("hangs");
      await plan();
      await robot.press("y");
      await robot.sees("asking scripted/one");
      await asking(seat, 1);
      await robot.press("escape");
      await robot.sees("nothing was changed");
      sameAsBefore(path, "before the first one");

      behave("good");
      await plan();
      await robot.press("y");
      await robot.sees("1/5  Replace the old text?");
      await robot.sees(/Δ tokens: .*, level extractive → normal/);
      await robot.press("A");
      await robot.sees(/✓ Repaired 5 summaries\. Total: 996t → \d+t \(-\d+\) · u undoes change 1/);
      assert.deepEqual(await changesIn(path), ["1 repair 5"]);
      await takeBack(seat, /▸ +1 .* repair/);
    });
  });

  it("transplant: copies the handbook's summaries into the second year", async () => {
    await acts(async (seat) => {
      const { robot, path } = seat;
      await goTo(robot, /3 +港口手册/);
      const pick = async (): Promise<void> => {
        await robot.press("t");
        await robot.sees("Copy its summaries into which conversation?");
        await robot.sees(/│ ▸ +2 +The second year/);
      };
      await pick();
      await robot.press("escape");
      await robot.misses("into which conversation?");
      await onlyAtLast(seat, async () => {
        await pick();
        await robot.type("second");
        await robot.misses(/│ +4 +agent:main:cli/);
        await robot.press("enter");
        await robot.sees(/Full DAG to copy: 12 summaries \(2 context \+ 10 ancestors\)/);
        await robot.sees("Copy them?");
      });
      await robot.sees(
        "✓ Copied 12 summaries and 352 messages; 2 items prepended to conversation 2 · U undoes change 1",
      );
      await robot.sees(/2 +The second year +360 +12 /);
      const target = await onFile(path, async ({ store }) => await store.conversation(young));
      assert.deepEqual([target?.totals.summaries, target?.totals.contextItems], [12, 10]);
      await takeBack(seat, /transplant .* 3 → 2, 12 summaries, 352 messages/, "U");
    });
  });

  it("undo: undoes, redoes and undoes again", async () => {
    await acts(async (seat) => {
      const { robot, path } = seat;
      await onFile(path, async (lcm) => {
        const [item] = await lcm.store.context(long, { kind: "summary", limit: 1 });
        assert.ok(item?.kind === "summary");
        await lcm.dissolve(await lcm.planDissolve({ conversation: long, summary: item.id }));
      });
      const opened = differences(path, original, "content");
      assert.notDeepEqual(opened, []);
      await goTo(robot, longRow);
      await robot.press("u");
      await robot.sees("dissolved into 6 items");
      const undo = async (change: number): Promise<void> => {
        await robot.press("u");
        await robot.sees(`undo change ${change}`);
        await robot.sees("Undo it?");
      };
      await undo(1);
      await robot.press("n");
      await robot.sees("cancelled: nothing was changed");
      const letGo = seat.hold();
      await undo(1);
      await robot.press("y");
      await robot.sees("making a backup (once");
      await robot.press("escape");
      await robot.sees("cancelled: nothing was changed");
      await letGo();
      assert.deepEqual(await changesIn(path), ["1 dissolve 1"]);
      for (const [change, is] of [
        [1, []],
        [2, opened],
        [1, []],
      ] as const) {
        await undo(change);
        await robot.press("y");
        await robot.sees(`✓ undid change ${change}`);
        await robot.sees(is.length === 0 ? /▸ +1 .* dissolve +1 +undone by/ : /▸ +1 .* dissolve +1 +sum_/);
        assert.deepEqual(differences(path, original, "content"), is);
      }
      assert.deepEqual(await changesIn(path), ["4 undo 1", "3 undo 1", "2 undo 1", "1 dissolve 1"]);
    });
  });
});
