/** Robot sessions on the prompts screen: from a message to the prompt behind it, turn by turn, and the whole prompt. */

import { join } from "node:path";
import { before, describe, it } from "node:test";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import { makeRecordedTalk, type RecordedTalk } from "../support/recorded-prompts.ts";
import { portOver, startRobot, type Robot, type RobotOptions } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";

const folder = makeScratch("tui-prompts");
const path = join(folder, "talk.db");
let talk: RecordedTalk;
before(async () => {
  talk = await makeRecordedTalk(path);
});

async function sitting(
  place: RobotOptions["place"],
  work: (robot: Robot) => Promise<void>,
  of = path,
  size: RobotOptions = {},
): Promise<void> {
  const port = portOver(of);
  const robot = startRobot(port, { columns: 100, rows: 60, place, ...size });
  try {
    await work(robot);
  } finally {
    await robot.end();
    await port.close();
  }
}

describe("guarantee 35: the prompts screen", () => {
  it("goes from a message to the prompt behind it, and says what changed from the one before", async () => {
    await sitting({ kind: "messages", conversation: talk.conversation }, async (robot) => {
      await robot.sees("Pile 20: 24 metres.");
      await robot.press("#");
      await robot.type("#18");
      await robot.press("enter");
      await robot.sees("Pile 9: 13 metres.");
      await robot.press("w");
      await robot.sees("prompts of 1");
      await robot.sees(/▸ +9 +\S+ \S+ .*changed before its end/);
      await robot.sees(/prompt 1#9 of 2026-03-01 08:09/);
      await robot.sees(/msg_1-1 to msg_1-8 folded into sum_/);
      await robot.sees("rebuilt to the byte");
    });
  });

  it("steps through turns, and shows the whole prompt", async () => {
    await sitting({ kind: "prompts", conversation: talk.conversation }, async (robot) => {
      await robot.sees(/^tokens [▁-█]{20}/m);
      await robot.sees(/▸ +20 /);
      await robot.press("j");
      await robot.sees(/prompt 1#19 of /);
      await robot.sees("scripted/one");
      await robot.press("enter");
      await robot.sees("<summary id=");
      await robot.press("escape");
      await robot.press("G");
      await robot.sees(/prompt 1#1 of /);
    });
  });

  it("says so if nothing is recorded", async () => {
    const other = join(folder, "deep.db");
    const { deep } = await makeDeepConversation(other);
    await sitting(
      { kind: "prompts", conversation: deep },
      async (robot) => {
        await robot.sees("no prompts are recorded");
      },
      other,
    );
  });

  it("fits a small window", async () => {
    await sitting(
      { kind: "prompts", conversation: talk.conversation },
      async (robot) => {
        await robot.sees(/▸ +20 /);
        await robot.press("j", "j", "pageDown");
        await robot.sees(/▸/);
      },
      path,
      { columns: 40, rows: 10 },
    );
  });
});
