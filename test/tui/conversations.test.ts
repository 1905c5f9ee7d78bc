/** Robot sessions on the conversations screen: filter, sort, check, and open other screens. */

import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { messageToStore } from "../../src/core/messages/codec.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import { portOver, startRobot } from "../support/robot.ts";
import type { Ground, Robot, RobotOptions } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

const folder = makeScratch("tui-conversations");
const made = join(folder, "made.db");
before(async () => void (await makeDeepConversation(made)));

async function sitting(
  name: string,
  work: (robot: Robot, path: string) => Promise<void>,
  options: RobotOptions & Ground = {},
): Promise<void> {
  const path = name === "made" ? made : join(folder, `${name}.db`);
  if (name === "copy") copyFileSync(made, path);
  const port = portOver(path, options);
  const robot = startRobot(port, { columns: 80, rows: 24, now: "2025-11-10T09:00:00.000Z", ...options });
  try {
    await work(robot, path);
  } finally {
    await robot.end();
    await port.close();
  }
}

describe("the conversations screen", () => {
  it("lists all conversations, latest activity first, with facts of the selected one below", async () => {
    await sitting("made", async (robot) => {
      await robot.sees("3 conversations · latest activity first");
      await robot.sees(/▸ +1 {2}The ferry's new booking.* 98 .*<1% {2}19 h ago +unchecked/);
      await robot.sees(/agent:main:telegram:ferry · agent main · segment 1 of 2, earlier/);
      await robot.press("j");
      await robot.sees(/▸ +2 {2}agent:main:cli .* 10 /);
      await robot.sees("735 tokens in 10 messages · 2 summaries");
    });
  });

  it("filters while you type, and clears the filter", async () => {
    await sitting("made", async (robot) => {
      await robot.sees("3 conversations");
      await robot.press("/");
      await robot.type("cli");
      await robot.sees("1 of 3 conversations");
      await robot.misses("The ferry");
      await robot.press("enter");
      await robot.sees('matching "cli"');
      await robot.press("escape");
      await robot.sees("3 conversations");
      assert.equal(robot.isOver(), false);
    });
  });

  it("sorts, and groups families", async () => {
    await sitting("made", async (robot) => {
      await robot.sees("3 conversations");
      await robot.press("f");
      await robot.sees("grouped by session");
      const lines = robot.lines();
      const young = lines.findIndex((line) => /^ +3 {2}agent:main:telegram:ferry/.test(line));
      assert.match(lines[young + 1] ?? "", /1 {2}└ The ferry's new/);
      await robot.press("o", "o");
      await robot.sees("most tokens first");
    });
  });

  it("follows what the host writes, and stays on its conversation", async () => {
    await sitting("copy", async (robot, path) => {
      await robot.sees("3 conversations");
      await robot.press("j");
      await robot.sees(/▸ +2 /);
      const store = await openSqlite({ path });
      const found = await store.open({ sessionId: "new", sessionKey: "agent:main:news", agentId: "main" });
      const message = messageToStore(
        { role: "user", content: "Good morning." },
        { key: "a", at: "2025-11-10T08:57:00.000Z" as Timestamp },
      );
      await store.append(found.id, [{ kind: "message", message }]);
      await store.close();
      await robot.sees(/agent:main:news .* 1 .*3 min ago/);
      assert.match(robot.screen(), /▸ +2 {2}agent:main:cli/);
    });
  });

  it("breaks a sentence about its health once", async () => {
    await sitting(
      "made",
      async (robot) => {
        await robot.sees(/health +not checked yet; press h *\n[^\n]*│ +to check it *\n/);
      },
      { columns: 120, rows: 36 },
    );
  });

  it("checks one on request, and shows the findings", async () => {
    await sitting("made", async (robot) => {
      await robot.sees("unchecked");
      await robot.press("h");
      await robot.sees(/1 finding; press h to see it/);
      await robot.sees(/19 h ago +1 finding/);
      await robot.press("h");
      await robot.sees("nothing lost or broken, but 1 warning: 98 messages, 34 summaries checked");
      await robot.press("escape", "G", "h");
      await robot.sees("conversation 3 is healthy: 4 messages and 0 summaries checked");
    });
  });

  it("names the missing database, and offers an import", async () => {
    await sitting("none", async (robot) => {
      await robot.sees("There is no database yet");
      await robot.sees(/there is no database at .*none\.db/);
      await robot.sees("Press i to import");
      await robot.press("j", "enter", "h");
      assert.equal(robot.isOver(), false);
    });
  });

  it("refuses changes to a read-only database", async () => {
    await sitting(
      "made",
      async (robot) => {
        await robot.sees("3 conversations");
        await robot.press("t");
        await robot.sees("t: it was opened with --read-only");
        await robot.press("R");
        await robot.sees("R: it was opened with --read-only");
      },
      { readOnly: true },
    );
  });

  it("shows facts beside the list if there is room, and a short list if not", async () => {
    await sitting(
      "made",
      async (robot) => {
        await robot.sees(/│ prompt +about 996 of 128,000/);
        await robot.sees(/│ family +segment 1 of 2, earlier/);
        await robot.resize(40, 10);
        await robot.misses("│");
        await robot.sees(/▸ +1 {2}The ferry's/);
      },
      { columns: 120, rows: 36 },
    );
  });

  it("opens the context and comes back to the same row", async () => {
    await sitting("made", async (robot) => {
      await robot.sees("3 conversations");
      await robot.press("j", "c");
      await robot.sees(/prompt: 735 tokens/);
      await robot.press("escape", "!");
      await robot.sees("── stored ──");
      await robot.press("q");
      await robot.sees(/▸ +2 /);
    });
  });
});
