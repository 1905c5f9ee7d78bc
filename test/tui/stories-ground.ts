/** The database of the stories, and how somebody sits before it. */

import assert from "node:assert/strict";
import { after } from "node:test";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { copyLongDatabase, longDatabase } from "../support/long-conversation.ts";
import { portOver, startRobot } from "../support/robot.ts";
import type { Robot, RobotOptions } from "../support/robot.ts";
import { createScriptedModel } from "../support/scripted-model.ts";
import type { Behaviour } from "../support/scripted-model.ts";
import type { Port } from "../../src/operator/port.ts";
import { differences } from "./stories-rows.ts";

/** Never written to. */
export const original = await longDatabase();
/** A copy shared by stories that only read. */
export const looked = await copyLongDatabase();
const port = portOver(looked);

after(async () => {
  await port.close();
  assert.deepEqual(differences(looked, original, "everything"), [], "reading changes nothing");
});

/** In the order of creation; between them is one of another agent. */
export const long = 1 as ConversationId;
export const young = 2 as ConversationId;
export const asked = 4 as ConversationId;

export const sits = async (
  over: Port,
  act: (robot: Robot) => Promise<void>,
  options: RobotOptions = {},
): Promise<void> => {
  const robot = startRobot(over, { columns: 100, rows: 30, now: "2026-02-07T09:00:00.000Z", ...options });
  try {
    await robot.sees(/\d conversations/);
    await act(robot);
  } finally {
    if (!robot.isOver()) await robot.end();
  }
};

export const looks = async (act: (robot: Robot) => Promise<void>, options: RobotOptions = {}): Promise<void> =>
  await sits(port, act, options);

/** The selected row of the open dialog or the screen. */
export const marked = (robot: Robot): string => /^.*▸.*$/m.exec(robot.screen())?.[0]?.trimEnd() ?? "";

/** Moves down a list to a row. */
export async function goTo(robot: Robot, words: RegExp): Promise<void> {
  await robot.sees("▸");
  for (let steps = 0; !words.test(marked(robot)); steps++) {
    assert.ok(steps < 40, `${String(words)} is not below:\n${robot.screen()}`);
    await robot.press("j");
  }
}

export const longRow = /1 {2}(?:└ )?A year at the harbour/;

/** How the first row of each depth begins, below its parent. */
export const below = [/^ {4}\+ d2 condensed/m, /^ {6}\+ d1 condensed/m, /^ {8}\+ d0 leaf/m, /^ {12}user/m] as const;

export async function openInto(robot: Robot, row: RegExp): Promise<void> {
  await robot.press("enter");
  await robot.sees(row);
  await robot.press("j");
}

export async function type(robot: Robot, key: string, words: string): Promise<void> {
  await robot.press(key);
  await robot.type(words);
  await robot.press("enter");
}

/** Works on the file like another process. */
export async function onFile<T>(path: string, work: (lcm: Lcm) => Promise<T>): Promise<T> {
  const lcm = createLcm({ store: await openSqlite({ path, housekeeping: false }), clock: { now: systemNow } });
  try {
    return await work(lcm);
  } finally {
    await lcm.close();
  }
}

export interface Seat {
  readonly robot: Robot;
  readonly path: string;
  /** Sets how the model answers. */
  readonly behave: (next: Behaviour) => void;
  readonly calls: () => number;
  /** Holds the next write at its backup; call the result to release it and wait for its end. */
  readonly hold: () => () => Promise<void>;
}

/** Opens the first screen on a fresh copy, with a model. */
export async function acts(act: (seat: Seat) => Promise<void>): Promise<void> {
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

export async function summariesOf({ robot }: Pick<Seat, "robot">): Promise<void> {
  await goTo(robot, longRow);
  await robot.press("s");
  await robot.sees("the fresh tail");
  await robot.sees(/▸ \+ d3 condensed .*\d/);
  await robot.sees(/│ sum_\w+ {2}d3 condensed/);
}
