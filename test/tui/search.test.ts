/** Tests searching and going to a hit, and browsing the files that were moved out of messages. */

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
  // A search that is not cancelled would take ten minutes.
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
  it("finds as one types, and goes to the message and back", async () => {
    await at({ kind: "grep", conversation: made.deep }, async (robot) => {
      await robot.type("dogs upper deck");
      await robot.sees("May dogs travel on the upper deck?");
      assert.match(screen(robot), /words in messages and summaries of conversation 1/);
      await robot.press("enter");
      const chosen = /msg_\d+/.exec(marked(robot))?.[0] ?? "none";
      await robot.press("enter");
      await robot.sees(new RegExp(`^▸ .*${chosen} *$`, "m"));
      assert.match(screen(robot), /search › messages/);
      await robot.press("escape");
      await robot.sees("find dogs upper deck");
    });
  });

  it("goes to a summary, too", async () => {
    await at({ kind: "grep", conversation: made.deep }, async (robot) => {
      await robot.type("whole project");
      await robot.sees("d3 summary");
      await robot.press("escape", "v", "v");
      await robot.sees("words in summaries of");
      await robot.press("enter");
      await robot.sees(/search › (?!messages)\w+/);
    });
  });

  it("searches all conversations, those of a session, and inside files", async () => {
    await at({ kind: "grep", conversation: made.young }, async (robot) => {
      await robot.type("decide dogs");
      await robot.press("enter");
      await robot.sees("What did we decide about dogs?");
      assert.doesNotMatch(screen(robot), /upper deck/);
      await robot.press("w");
      await robot.sees(/all segments of conversation 3 +\d+ hits/);
      await robot.press("w");
      await robot.sees(/all conversations +\d+ hits/);
      await robot.press("/", "ctrl+u");
      await robot.type("leaves 21:30");
      await robot.press("enter", "v", "v", "v");
      await robot.sees("words in files of all conversations");
      await robot.sees(/▸ line \d+ of a file/);
      await robot.press("enter");
      await robot.sees(`▸ ${made.file}`);
    });
  });

  it("highlights the matches", async () => {
    await at(
      { kind: "grep", conversation: null },
      async (robot) => {
        await robot.type("bicycles");
        await robot.sees("twelve bicycles");
        assert.ok(robot.written().includes("\u001b[1m\u001b[31mbicycles"), "in bold and red");
      },
      { colour: true },
    );
  });

  it("takes a regular expression, and explains an invalid one in a sentence", async () => {
    await at({ kind: "grep", conversation: null }, async (robot) => {
      await robot.press("tab");
      await robot.type("twel.e (");
      await robot.sees(/regular expression: .*group/i);
      await robot.press("backspace", "backspace");
      await robot.sees("twelve bicycles");
      await robot.press("ctrl+u");
      await robot.type("no such thing");
      await robot.sees("no matches");
      await robot.press("escape");
      assert.equal(robot.isOver(), true, "there is no target, so it goes back");
    });
  });

  it("is cancelled by the next letter, however long it would take", async () => {
    await at({ kind: "grep", conversation: null }, async (robot) => {
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
    await at({ kind: "grep", conversation: null }, async (robot) => {
      await robot.type("point");
      await robot.sees("1 large text moved out to files; v searches inside them");
      await robot.press("tab", "ctrl+u");
      await robot.type("e");
      await robot.sees("the first 50 hits of more");
    });
  });
});

describe("the stored files", () => {
  it("are listed with their subject and content, and lead to their message", async () => {
    await at({ kind: "files", conversation: made.deep }, async (robot) => {
      await robot.sees("boat 3, pier 3, leaves 8:00");
      assert.match(marked(robot), new RegExp(`${made.file} .* 1\\.8 KB +61 +2025-11-04 10:04`));
      assert.match(screen(robot), /What it is about:\n Table \(commas\), 60 rows, 3 columns/);
      await robot.press("J", "J");
      assert.doesNotMatch(screen(robot), /What it is about/);
      await robot.press("enter", "G");
      await robot.sees("Decided: from the harbour office, every Monday.");
      await robot.press("escape", "m");
      await robot.sees("message 19 of 98");
      assert.match(marked(robot), /^▸ tool /);
    });
  });

  it("show their content beside the list on a wide screen", async () => {
    await at(
      { kind: "files", conversation: made.deep },
      async (robot) => await robot.sees(/▸ file_0.*│ What it is about:|│── file_0/),
      { columns: 140 },
    );
  });

  it("are reported as none where there are none", async () => {
    await at({ kind: "files", conversation: made.young }, async (robot) => {
      await robot.sees("no file was moved out of its messages");
      await robot.press("enter");
      await robot.sees("✗ ↵: there is no file");
    });
  });

  it("show a size where they are binary, and are reported as lost where they are", async () => {
    const store = await openSqlite({ path });
    const about = { conversation: made.older, mimeType: "image/png", exploration: null } as const;
    await store.saveFile({ ...about, name: "pier.png", content: "aGVsbG8=", encoding: "base64" });
    const lost = await store.saveFile({ ...about, name: "lost.txt", content: "gone", encoding: "utf8" });
    await store.close();
    rmSync(join(folder, "lcm-files", lost.storageUri));
    await at({ kind: "files", conversation: made.older, at: lost.id }, async (robot) => {
      await robot.sees(`Its content is lost: the content of ${lost.id} cannot be read.`);
      await robot.press("j");
      await robot.sees("Its content is bytes, not text.");
      assert.match(marked(robot), /pier\.png +image\/png +5 B/);
    });
  });
});
