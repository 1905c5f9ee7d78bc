/**
 * User stories at the terminal, each from the first screen to its end, on a database with a year of use: four
 * conversations, one with 100,000 messages and summaries of depth 0 to 3. Edge cases of each screen are tested beside it.
 */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout } from "node:timers/promises";
import { messageToStore } from "../../src/core/messages/codec.ts";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { copyLongDatabase, longDatabase } from "../support/long-conversation.ts";
import { portOver, startRobot } from "../support/robot.ts";
import type { Robot, RobotOptions } from "../support/robot.ts";
import { createScriptedModel } from "../support/scripted-model.ts";
import type { Behaviour } from "../support/scripted-model.ts";
import type { Port } from "../../src/tui/port.ts";
import { cellsOf } from "./stories-cells.ts";
import { differences } from "./stories-rows.ts";
import { formatCount } from "../../src/core/base/format.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

/** Never written to. */
let original: string;
/** A copy shared by stories that only read. */
let looked: string;
let port: ReturnType<typeof portOver>;

before(async () => {
  original = await longDatabase();
  looked = await copyLongDatabase();
  port = portOver(looked);
});
after(async () => {
  await port.close();
  assert.deepEqual(differences(looked, original, "everything"), [], "reading changes nothing");
});

/** In the order of creation; between them is one of another agent. */
const long = 1 as ConversationId;
const young = 2 as ConversationId;
const asked = 4 as ConversationId;

const sits = async (over: Port, act: (robot: Robot) => Promise<void>, options: RobotOptions = {}): Promise<void> => {
  const robot = startRobot(over, { columns: 100, rows: 30, now: "2026-02-07T09:00:00.000Z", ...options });
  try {
    await robot.sees(/\d conversations/);
    await act(robot);
  } finally {
    if (!robot.isOver()) await robot.end();
  }
};

const looks = async (act: (robot: Robot) => Promise<void>, options: RobotOptions = {}): Promise<void> =>
  await sits(port, act, options);

/** The selected row of the open dialog or the screen. */
const marked = (robot: Robot): string => /^.*▸.*$/m.exec(robot.screen())?.[0]?.trimEnd() ?? "";

/** Moves down a list to a row. */
async function goTo(robot: Robot, words: RegExp): Promise<void> {
  await robot.sees("▸");
  for (let steps = 0; !words.test(marked(robot)); steps++) {
    assert.ok(steps < 40, `${String(words)} is not below:\n${robot.screen()}`);
    await robot.press("j");
  }
}

const longRow = /1 {2}(?:└ )?A year at the harbour/;

/** How the first row of each depth begins, below its parent. */
const below = [/^ {4}\+ d2 condensed/m, /^ {6}\+ d1 condensed/m, /^ {8}\+ d0 leaf/m, /^ {12}user/m] as const;

async function openInto(robot: Robot, row: RegExp): Promise<void> {
  await robot.press("enter");
  await robot.sees(row);
  await robot.press("j");
}

async function type(robot: Robot, key: string, words: string): Promise<void> {
  await robot.press(key);
  await robot.type(words);
  await robot.press("enter");
}

/** Works on the file like another process. */
async function onFile<T>(path: string, work: (lcm: Lcm) => Promise<T>): Promise<T> {
  const lcm = createLcm({ store: await openSqlite({ path, housekeeping: false }), clock: { now: systemNow } });
  try {
    return await work(lcm);
  } finally {
    await lcm.close();
  }
}

// ── Looking ──────────────────────────────────────────────────────────────────────────────────────────────────────────

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

// ── Changing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Seat {
  readonly robot: Robot;
  readonly path: string;
  /** Sets how the model answers. */
  readonly behave: (next: Behaviour) => void;
  readonly calls: () => number;
  /** Holds the next write at its backup; call the result to release it and wait for its end. */
  readonly hold: () => () => Promise<void>;
}

/** Opens the first screen on a fresh copy, with a model. */
async function acts(act: (seat: Seat) => Promise<void>): Promise<void> {
  const path = await copyLongDatabase();
  let behaviour: Behaviour = "good";
  const model = createScriptedModel({ behaviour: () => behaviour });
  const real = portOver(path, { model });
  let gate: { readonly opened: Promise<void>; readonly passed: Promise<unknown>[] } | null = null;
  const held: Port = {
    ...real,
    writing: async (work) => {
      const written = real.writing(
        async (lcm, backUp) => await work(lcm, async () => (await gate?.opened, await backUp())),
      );
      gate?.passed.push(written.catch(() => undefined));
      return await written;
    },
  };
  const hold = () => {
    const { promise: opened, resolve } = Promise.withResolvers<void>();
    const holding: NonNullable<typeof gate> = { opened, passed: [] };
    gate = holding;
    return async () => {
      gate = null;
      resolve();
      await Promise.all(holding.passed);
    };
  };
  const calls = (): number => model.calls.length;
  await sits(held, async (robot) => await act({ robot, path, behave: (next) => (behaviour = next), calls, hold }));
  await real.close();
}

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

async function summariesOf({ robot }: Pick<Seat, "robot">): Promise<void> {
  await goTo(robot, longRow);
  await robot.press("s");
  await robot.sees("the fresh tail");
  await robot.sees(/▸ \+ d3 condensed .*\d/);
  await robot.sees(/│ sum_\w+ {2}d3 condensed/);
}

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

// ── Searching ────────────────────────────────────────────────────────────────────────────────────────────────────────

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

// ── At the keys ──────────────────────────────────────────────────────────────────────────────────────────────────────

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
