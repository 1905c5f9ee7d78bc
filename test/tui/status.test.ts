/** A robot session at the status screen. */

import { join } from "node:path";
import { describe, it } from "node:test";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import { portOver, startRobot } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";

describe("the status screen", () => {
  it("shows the database, then one conversation, and follows what is written", async () => {
    const path = join(makeScratch("tui-status"), "lcm.db");
    const { deep } = await makeDeepConversation(path);
    const port = portOver(path, { env: { LCM_FRESH_TAIL_COUNT: "8" } });
    const robot = startRobot(port, { columns: 100, rows: 24, now: "2025-11-10T09:00:00.000Z" });
    try {
      await robot.sees("3 conversations");
      await robot.press("!");
      await robot.sees(/summaries +36, 1 extracted, 2 truncated/);
      await robot.sees("nothing is due");
      await robot.press("G");
      await robot.sees("freshTailCount = 8 (environment, LCM_FRESH_TAIL_COUNT)");
      await robot.press("b");
      await robot.sees(/✓ backed up to .*lcm\.db\.backup-\w+ \(\d/);
      await robot.sees(/backups +\S*lcm\.db\.backup-/);
      const store = await openSqlite({ path });
      await store.setPromptBudget(deep, 1_000);
      await store.recordCompaction({
        conversation: deep,
        at: (await store.conversations())[0]!.createdAt,
        mode: "sweep",
        asked: false,
        outcome: "waiting",
        message: "the model was not asked: no credential",
        passes: 2,
        tokensBefore: 996,
        tokensAfter: 900,
        durationMs: 5,
      });
      await store.close();
      await robot.press("g");
      await robot.sees("the model was not asked: no credential");
      await robot.press("escape");
      await robot.sees("stalled");
      await robot.press("c", "!");
      await robot.sees("status of 1");
      await robot.sees(/due +a sweep: a prompt of about 996 tokens, above 750/);
    } finally {
      await robot.end();
      await port.close();
    }
  });
});
