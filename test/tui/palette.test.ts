/** The palette of the terminal UI: every key and command by its words, with the reason why one is unavailable. */

import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import type { Lcm } from "../../src/core/lcm.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import { commands } from "../../src/tui/commands.ts";
import type { Destination } from "../../src/tui/contract.ts";
import type { Port } from "../../src/operator/port.ts";
import { makeDeepConversation, type DeepConversation } from "../support/deep-conversation.ts";
import { portOver, startRobot, type Ground, type Robot, type RobotOptions } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import { createScriptedModel } from "../support/scripted-model.ts";

const folder = makeScratch("tui-palette");
const template = join(folder, "template.db");
let made: DeepConversation;

before(async () => {
  made = await makeDeepConversation(template);
});

let copies = 0;
function copyOfIt(): string {
  const path = join(folder, `copy-${++copies}.db`);
  copyFileSync(template, path);
  return path;
}

interface Sitting extends Ground, RobotOptions {
  readonly around?: (port: Port) => Port;
}

async function sit({ around, ...given }: Sitting, act: (robot: Robot) => Promise<void>): Promise<void> {
  const port = portOver(copyOfIt(), given);
  const robot = startRobot(around?.(port) ?? port, { columns: 100, rows: 40, ...given });
  try {
    await act(robot);
  } finally {
    if (!robot.isOver()) await robot.end();
    await port.close();
  }
}

const summaries = (): Destination => ({ kind: "summaries", conversation: made.deep });

async function choose(robot: Robot, words: string): Promise<void> {
  await robot.press(":");
  await robot.sees("╭─ commands ─");
  await robot.type(words);
  await robot.press("enter");
}

describe("the palette", () => {
  it("opens with : and ctrl+p on every screen, also while a text is typed, and closes with esc", async () => {
    await sit({}, async (robot) => {
      await robot.sees("3 conversations");
      for (const key of [":", "ctrl+p"]) {
        await robot.press(key);
        await robot.sees("╭─ commands ─");
        await robot.press("escape");
        await robot.misses("╭─ commands ─");
      }
      await robot.press("S");
      await robot.sees("› search");
      await robot.type("ferry");
      await robot.press("ctrl+p");
      await robot.sees("╭─ commands ─");
      await robot.press("escape");
      await robot.misses("╭─ commands ─");
      await robot.sees("ferry");
      await robot.press("escape", "escape", "enter");
      await robot.sees("› messages");
      await robot.press(":");
      await robot.sees("╭─ commands ─");
    });
  });

  it("does what its key does, and opens what has no key here", async () => {
    await sit({ place: summaries() }, async (robot) => {
      await robot.sees("▸");
      await choose(robot, "messages conversation's");
      await robot.sees("› messages");
      await robot.press("escape");
      await choose(robot, "cmpct");
      await robot.sees("╭─ compact conversation 1 ─");
      await robot.press("escape");
      await choose(robot, "forget secret");
      await robot.sees("Which text is to be removed everywhere?");
      await robot.press("escape");
      await choose(robot, "status database");
      await robot.sees("› status");
    });
  });

  it("lists every command on every screen, and says what is unavailable and why", async () => {
    await sit({ rows: 60 }, async (robot) => {
      await robot.sees("3 conversations");
      await robot.press(":");
      for (const { help } of Object.values(commands)) {
        await robot.press("ctrl+u");
        await robot.type(help.slice(0, 40));
        await robot.sees(new RegExp(`▸ .*${help.slice(0, 30).replace(/[^\w ]/g, ".")}`));
      }
      await robot.press("ctrl+u");
      await robot.type("repair");
      await robot.sees("unavailable: no model is configured; set LCM_SUMMARY_MODEL");
      await robot.press("enter");
      await robot.sees("✗ no model is configured");
      assert.match(robot.screen(), /╭─ commands ─/, "it stays open");
      await robot.press("ctrl+u");
      await robot.type("forget selected");
      await robot.sees("unavailable: no message is selected");
    });
  });

  it("refuses changes of a database that was opened read-only, and still exports", async () => {
    await sit({ readOnly: true }, async (robot) => {
      await robot.sees("3 conversations");
      for (const words of ["compact", "prune", "restore", "forget secret"]) {
        await robot.press(":");
        await robot.type(words);
        await robot.sees("unavailable: it was opened with --read-only");
        await robot.press("escape");
      }
      await choose(robot, "export");
      await robot.sees("Write it to which file?");
    });
  });

  it("knows a model as soon as one is found", async () => {
    const model = createScriptedModel({ behaviour: () => "good" });
    await sit({ model, place: summaries() }, async (robot) => {
      await robot.sees("▸");
      await choose(robot, "repair");
      await robot.sees("╭─ repair conversation 1 ─");
    });
  });

  it("and the help work while something is read, and the palette then lists what has become available", async () => {
    const gate = Promise.withResolvers<void>();
    const around = (port: Port): Port => ({
      ...port,
      reading: async () => {
        await gate.promise;
        return await port.reading();
      },
    });
    await sit({ around }, async (robot) => {
      await robot.sees("reading …");
      await robot.press("s");
      await robot.sees("waiting for the data");
      await robot.press("?");
      await robot.sees("╭─ keys ─");
      await robot.press("escape", ":");
      await robot.type("export");
      await robot.sees("unavailable: still reading");
      gate.resolve();
      await robot.misses("unavailable");
      await robot.press("enter");
      await robot.sees("╭─ export conversation");
    });
  });
});

/** The same database as if it held only one conversation. */
const alone = (lcm: Lcm): Lcm => ({
  ...lcm,
  store: { ...lcm.store, conversations: async (asked) => (await lcm.store.conversations(asked)).slice(0, 1) },
});

describe("t on the summaries screen", () => {
  it("copies the summaries into another conversation", async () => {
    await sit({ place: summaries() }, async (robot) => {
      await robot.sees("▸");
      await robot.press("t");
      await robot.sees("into which conversation?");
    });
  });

  it("says why it cannot", async () => {
    const unfolded = 3 as ConversationId;
    await sit({ place: { kind: "summaries", conversation: unfolded } }, async (robot) => {
      await robot.sees("▸");
      await robot.press("t");
      await robot.sees("✗ t: it has no summaries to copy");
    });
    const around = (port: Port): Port => ({ ...port, reading: async () => alone(await port.reading()) });
    await sit({ around, place: summaries() }, async (robot) => {
      await robot.sees("▸");
      await robot.press("t");
      await robot.sees("✗ t: there is no other conversation to copy into");
    });
  });
});
