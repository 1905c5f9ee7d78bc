/** Robot sessions on the search screen and the files screen. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import type { DeepConversation } from "../support/deep-conversation.ts";
import { portOver, startRobot } from "../support/robot.ts";
import type { Robot, RobotOptions } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";

const folder = makeScratch("tui-search");
const path = join(folder, "lcm.db");
let made: DeepConversation;
let port: ReturnType<typeof portOver>;

before(async () => {
  made = await makeDeepConversation(path);
  // Without an abort, this search would take ten minutes.
  port = portOver(path, { env: { LCM_SEARCH_TIMEOUT_SECONDS: "600" } });
});
after(async () => await port.close());

async function at(
  place: RobotOptions["place"],
  work: (robot: Robot) => Promise<void>,
  options: RobotOptions = {},
): Promise<void> {
  const robot = startRobot(port, { columns: 80, rows: 24, ...options, ...(place === undefined ? {} : { place }) });
  try {
    await robot.sees("lossless-claw");
    await work(robot);
  } finally {
    await robot.end();
  }
}

const screen = (robot: Robot): string => robot.screen().replaceAll(/ +$/gm, "");
/** The selected row. */
const marked = (robot: Robot): string => /^▸.*$/m.exec(screen(robot))?.[0] ?? "";

describe("searching", () => {
  it("finds while you type, and opens the message and comes back", async () => {
    await at({ kind: "search", conversation: made.deep }, async (robot) => {
      await robot.type("dogs upper deck");
      await robot.sees("May dogs travel on the upper deck?");
      assert.match(screen(robot), /words in messages and summaries of conversation 1/);
      await robot.press("enter");
      const chosen = /msg_\d+-\d+/.exec(marked(robot))?.[0] ?? "none";
      await robot.press("enter");
      await robot.sees(new RegExp(`^▸ .*${chosen} *$`, "m"));
      assert.match(screen(robot), /search › messages/);
      await robot.press("escape");
      await robot.sees("find dogs upper deck");
    });
  });

  it("opens a summary, too", async () => {
    await at({ kind: "search", conversation: made.deep }, async (robot) => {
      await robot.type("whole project");
      await robot.sees(/\d+ match/);
      await robot.press("escape", "v", "v");
      await robot.sees("words in summaries of");
      await robot.sees("d3 summary");
      await robot.sees(/▸ (?:leaf|d\d summary) /);
      await robot.press("enter");
      await robot.sees(/search › (?!messages)\w+/);
    });
  });

  it("searches all conversations, those of a session, and files", async () => {
    await at({ kind: "search", conversation: made.young }, async (robot) => {
      await robot.type("decide dogs");
      await robot.press("enter");
      await robot.sees("What did we decide about dogs?");
      assert.doesNotMatch(screen(robot), /upper deck/);
      await robot.press("w");
      await robot.sees(/all segments of conversation 3 +\d+ matches/);
      await robot.press("w");
      await robot.sees(/all conversations +\d+ matches/);
      await robot.press("/", "ctrl+u");
      await robot.type("leaves 21:30");
      await robot.press("enter", "v", "v", "v");
      await robot.sees("words in files of all conversations");
      await robot.sees(/▸ line \d+ of a file/);
      await robot.press("enter");
      await robot.sees(`▸ ${made.file}`);
    });
  });

  it("highlights matches", async () => {
    await at(
      { kind: "search", conversation: null },
      async (robot) => {
        await robot.type("bicycles");
        await robot.sees("twelve bicycles");
        assert.ok(robot.written().includes("\u001b[1m\u001b[31mbicycles"), "in bold and red");
      },
      { colour: true },
    );
  });

  it("accepts a regular expression, and explains what is wrong with one", async () => {
    await at({ kind: "search", conversation: null }, async (robot) => {
      await robot.press("tab");
      await robot.type("twel.e (");
      await robot.sees(/invalid regular expression .*: .*group/i);
      await robot.press("backspace", "backspace");
      await robot.sees("twelve bicycles");
      await robot.press("ctrl+u");
      await robot.type("no such thing");
      await robot.sees("no matches");
      await robot.press("escape");
      assert.equal(robot.isOver(), true, "there is no target, so it goes back");
    });
  });

  it("is aborted by the next letter", async () => {
    await at({ kind: "search", conversation: null }, async (robot) => {
      await robot.press("tab");
      await robot.type("(\\w+\\s?)*\\u0000");
      await robot.sees("searching …");
      await new Promise((resolve) => setTimeout(resolve, 150));
      await robot.press("ctrl+u");
      await robot.type("lower d.ck");
      await robot.sees("dogs stay on the lower deck");
    });
  });

  it("reports what it leaves out", async () => {
    await at({ kind: "search", conversation: null }, async (robot) => {
      await robot.type("point");
      await robot.sees("1 large text moved out to files; press v to search files");
      await robot.press("tab", "ctrl+u");
      await robot.type("e");
      await robot.sees("first 55 matches");
    });
  });
});

describe("the stored files", () => {
  it("are listed with description and content, and lead to their message", async () => {
    await at({ kind: "files", conversation: made.deep }, async (robot) => {
      await robot.sees("boat 3, pier 3, leaves 8:00");
      assert.match(marked(robot), new RegExp(`${made.file} .* 1\\.8 KB +61 +2025-11-04 10:04`));
      assert.match(screen(robot), /Description:\n Table \(commas\), 60 rows, 3 columns/);
      await robot.press("J", "J");
      assert.doesNotMatch(screen(robot), /What it is about/);
      await robot.press("enter", "G");
      await robot.sees("Decided: from the harbour office, every Monday.");
      await robot.press("escape", "m");
      await robot.sees("message 19 of 98");
      assert.match(marked(robot), /^▸ tool /);
    });
  });

  it("are beside their content if there is room", async () => {
    await at(
      { kind: "files", conversation: made.deep },
      async (robot) => await robot.sees(/▸ file_0.*│ Description:|│── file_0/),
      { columns: 140 },
    );
  });

  it("report that there are none", async () => {
    await at({ kind: "files", conversation: made.young }, async (robot) => {
      await robot.sees("no content was moved out of its messages");
      await robot.press("enter");
      await robot.sees("✗ ↵: no file is selected");
    });
  });

  it("show binary files by size, and report lost content", async () => {
    const store = await openSqlite({ path });
    const about = { conversation: made.older, mimeType: "image/png", exploration: null } as const;
    await store.saveFile({ ...about, name: "pier.png", content: "aGVsbG8=", encoding: "base64" });
    const lost = await store.saveFile({ ...about, name: "lost.txt", content: "gone", encoding: "utf8" });
    await store.close();
    rmSync(join(folder, "lcm-files", lost.storageUri));
    await at({ kind: "files", conversation: made.older, at: lost.id }, async (robot) => {
      await robot.sees(`The content is lost: the content of ${lost.id} cannot be read.`);
      await robot.press("j");
      await robot.sees("This is binary content, not text.");
      assert.match(marked(robot), /pier\.png +image\/png +5 B/);
    });
  });
});
