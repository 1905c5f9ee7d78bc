/** Robot sessions on the transcripts screen: the list, and importing one, all or none. */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { portOver, startRobot } from "../support/robot.ts";
import type { Ground, Robot } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";

const line = (id: number, content: string): string =>
  `${JSON.stringify({ type: "message", id: `m${id}`, parentId: null, message: { role: "user", content } })}\n`;

/** Sessions of an agent, each longer than the last. */
function ground(sessions: readonly string[]): string {
  const folder = makeScratch("imports");
  const into = join(folder, "agents", "main", "sessions");
  mkdirSync(into, { recursive: true });
  for (const [at, name] of sessions.entries()) {
    const said = Array.from({ length: 3 + at }, (_, id) => line(id, `${name} says ${id}`));
    writeFileSync(join(into, `${name}.jsonl`), said.join(""));
  }
  return folder;
}

async function session(folder: string, use: (robot: Robot) => Promise<void>, given: Ground = {}): Promise<void> {
  const port = portOver(join(folder, "lcm.db"), { sessions: join(folder, "agents"), ...given });
  const robot = startRobot(port, { columns: 90, rows: 20 });
  try {
    await use(robot);
    await robot.end();
  } finally {
    await port.close();
  }
}

const isSelected = (robot: Robot, words: RegExp): boolean =>
  robot.lines().some((each) => each.startsWith("▸") && words.test(each));

describe("the host's transcripts", () => {
  it("are imported without a database, first one after a question, then all others", async () => {
    await session(ground(["ferry", "pier", "buoy"]), async (robot) => {
      await robot.sees("Press i to import");
      await robot.press("i");
      await robot.sees("3 transcripts · 3 not fully stored");
      while (!isSelected(robot, /ferry/)) await robot.press("j");
      await robot.press("enter");
      await robot.sees("Import ferry,");
      await robot.press("enter");
      await robot.sees("✓ ferry: 3 messages, 0 other entries, 0 already stored");
      await robot.sees("2 not fully stored");
      assert.ok(isSelected(robot, /yes +ferry/), robot.screen());
      await robot.press("A");
      await robot.sees("Import 2 transcripts,");
      await robot.press("y");
      await robot.sees("✓ 2 transcripts imported");
      await robot.sees("all stored");
      await robot.press("A");
      await robot.sees("all are fully stored");
      await robot.press("escape");
      await robot.sees("3 conversations");
      await robot.sees("buoy says 0");
    });
  });

  it("are not imported after a no, and nothing is created", async () => {
    const folder = ground(["ferry"]);
    await session(folder, async (robot) => {
      await robot.press("i");
      await robot.sees("1 not fully stored");
      for (const no of ["n", "escape"]) {
        await robot.press("i");
        await robot.sees("Import ferry,");
        await robot.press(no);
        await robot.misses("Import ferry,");
      }
      await robot.sees("1 not fully stored");
      await robot.press("escape");
      await robot.sees("There is no database yet");
    });
    assert.equal(existsSync(join(folder, "lcm.db")), false);
  });

  it("go on being imported after an invalid one, which is reported", async () => {
    const folder = ground(["ferry", "pier"]);
    writeFileSync(join(folder, "agents", "main", "sessions", "shopping.jsonl"), "milk\neggs\n");
    await session(folder, async (robot) => {
      await robot.press("i");
      await robot.sees("3 not fully stored");
      await robot.press("A", "y");
      await robot.sees(/✗ (1 could not be imported|.*not a transcript)/);
      await robot.sees("1 not fully stored");
      assert.match(robot.screen(), /no +shopping/);
    });
  });

  it("stop after the current one, or immediately with q; what is stored stays", async () => {
    await session(ground(["ferry", "pier", "buoy", "crane"]), async (robot) => {
      await robot.press("i");
      await robot.sees("4 not fully stored");
      await robot.press("A");
      // Before any of it is imported.
      await robot.type("y\u001b");
      await robot.sees(/✓ \w+: [3-6] messages, 0 other entries, 0 already stored/);
      await robot.sees("3 not fully stored");
      await robot.press("A");
      await robot.type("yq");
      await robot.sees("latest activity first");
      await robot.press("i");
      await robot.sees("3 not fully stored");
      await robot.press("A", "y");
      await robot.sees("all stored");
    });
  });

  it("report an empty folder by its name, and refuse an import on a read-only database", async () => {
    const folder = ground(["ferry"]);
    await session(
      folder,
      async (robot) => {
        await robot.press("i");
        await robot.sees("No transcripts");
        assert.ok(robot.screen().includes(join(folder, "elsewhere")), robot.screen());
      },
      { sessions: join(folder, "elsewhere") },
    );
    await session(
      folder,
      async (robot) => {
        await robot.press("i");
        await robot.sees("1 not fully stored");
        for (const key of ["i", "enter", "A"]) {
          await robot.press(key);
          await robot.sees("it was opened with --read-only");
          assert.doesNotMatch(robot.screen(), /Import ferry/);
        }
      },
      { readOnly: true },
    );
  });
});
