/** Robot sessions on the messages screen: from the end, from a time, full screen, and while the host writes. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { messageToStore } from "../../src/core/messages/codec.ts";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import type { ConversationId, MessageId, NewMessage } from "../../src/core/model/types.ts";
import { messageIdOf } from "../../src/core/model/types.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import type { DeepConversation } from "../support/deep-conversation.ts";
import { portOver, startRobot } from "../support/robot.ts";
import type { Robot, RobotOptions } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

const path = join(makeScratch("tui-messages"), "lcm.db");
let made: DeepConversation;
let port: ReturnType<typeof portOver>;

before(async () => {
  made = await makeDeepConversation(path);
  port = portOver(path);
});
after(async () => await port.close());

async function reading(
  work: (robot: Robot) => Promise<void>,
  { conversation = made.deep, at, ...options }: RobotOptions & { conversation?: ConversationId; at?: MessageId } = {},
): Promise<void> {
  const place = { kind: "messages", conversation, ...(at === undefined ? {} : { at }) } as const;
  const robot = startRobot(port, { columns: 80, rows: 24, ...options, place });
  try {
    await robot.sees(/message [\d,]+ of|no messages yet|no longer exists/);
    await work(robot);
  } finally {
    await robot.end();
  }
}

const screen = (robot: Robot): string => robot.screen().replaceAll(/ +$/gm, "");
/** The selected row. */
const marked = (robot: Robot): string => /^▸.*$/m.exec(screen(robot))?.[0] ?? "";

/** Writes while the UI reads, as the host does. */
async function say(conversation: ConversationId, ...messages: readonly NewMessage[]): Promise<void> {
  const store = await openSqlite({ path });
  await store.append(
    conversation,
    messages.map((message) => ({ kind: "message", message })),
  );
  await store.close();
}

const saying = (key: string, content: HostMessage["content"] = key): NewMessage =>
  messageToStore({ role: "user", content }, { key, at: "2026-01-01T00:00:00.000Z" as Timestamp });

describe("reading the messages", () => {
  it("starts at the newest, with tool calls and results in a line each", async () => {
    await reading(async (robot) => {
      assert.match(screen(robot), /The ferry's new booking desk +message 98 of 98 · 100%/);
      assert.match(marked(robot), /^▸ assistant {2}2025-11-09 13:40 +12 tokens {2}msg_1-98$/);
      assert.match(
        screen(robot),
        /→ read \{"path":"notes\/call-last\.md"\}\n\n {2}tool .*\n {4}← read {2}desk\.md: opens at six/,
      );
      assert.match(screen(robot), /thinking {2}what is behind/);
    });
  });

  it("moves by messages and by pages, to the first and back to the last", async () => {
    await reading(async (robot) => {
      await robot.press("k", "k");
      assert.match(marked(robot), /msg_1-96$/);
      await robot.press("pageUp", "pageUp");
      assert.match(marked(robot), /msg_1-8\d$/);
      await robot.press("g");
      await robot.sees("message 1 of 98");
      assert.match(robot.lines()[3] ?? "", /^▸ user {2}2025-11-03 08:00/);
      await robot.press("j", "j");
      assert.match(marked(robot), /msg_1-3$/);
      await robot.press("G");
      await robot.sees("message 98 of 98");
    });
  });

  it("expands a message in place, and shows it full screen", async () => {
    const at = messageIdOf(made.deep, 91);
    await reading(
      async (robot) => {
        assert.match(screen(robot), /▸ tool .*msg_1-91\n┃ {3}← read {2}1\. lifeboats: point 1 .*… 13 lines/);
        await robot.press("space");
        assert.match(screen(robot), /9\. lifeboats: point 9/);
        await robot.press("space");
        assert.doesNotMatch(screen(robot), /9\. lifeboats/);
        await robot.press("enter");
        await robot.sees("Decided: on the first of every month, by the harbour.");
        assert.match(robot.lines()[1] ?? "", /^ tool {2}2025-11-09 07:04 .*msg_1-91/);
        await robot.press("escape");
        await robot.sees("message 91 of 98");
      },
      { at },
    );
  });

  it("goes to a number, an id and a time, and reports if there is none", async () => {
    await reading(async (robot) => {
      const goTo = async (words: string): Promise<void> => {
        await robot.press("#");
        await robot.type(words);
        await robot.press("enter");
      };
      await goTo("#19");
      await robot.sees("message 19 of 98");
      await goTo("msg_1-42");
      await robot.sees("message 42 of 98");
      await goTo("2025-11-08 00:00");
      await robot.sees("message 73 of 98");
      assert.match(marked(robot), /2025-11-08 05:00/);
      await goTo("2025-11-08 05:02");
      await robot.sees("message 74 of 98");
      await goTo("2026-01-01");
      await robot.sees("✗ there are no messages after 2026-01-01 00:00 UTC");
      await goTo("#4000");
      await robot.sees("✗ there is no message 4,000 · the last one is 98");
      await goTo("msg_2-1");
      await robot.sees("✗ msg_2-1 is not in this conversation · it is in conversation 2");
      await goTo("the day before the flood");
      await robot.sees("which is not a time");
      await robot.press(":", "x", "escape");
      assert.match(screen(robot), /message 74 of 98/);
    });
  });

  it("opens the stored file of a message, and the summary that covers it", async () => {
    await reading(
      async (robot) => {
        assert.match(screen(robot), new RegExp(`← read {2}\\[${made.file} · 1\\.8 KB · 61 lines; f opens it\\]`));
        await robot.press("f");
        await robot.sees(`▸ ${made.file}`);
        await robot.press("escape", "S");
        await robot.sees(/messages › \w/);
        await robot.press("escape");
        await robot.sees("message 19 of 98");
        await robot.press("G");
        await robot.sees("message 98 of 98");
        await robot.press("S");
        await robot.sees("no summary covers this message yet");
      },
      { at: messageIdOf(made.deep, 19) },
    );
  });

  it("opens at the newest, with a notice, if the requested message no longer exists", async () => {
    await reading(
      async (robot) => {
        await robot.sees("✗ msg_1-4000 is not in this conversation");
        await robot.sees("message 98 of 98");
      },
      { at: messageIdOf(made.deep, 4_000) },
    );
  });

  it("reports a missing conversation", async () => {
    await reading(async (robot) => await robot.sees("conversation 77 no longer exists"), {
      conversation: 77 as ConversationId,
    });
  });

  it("follows new messages if the cursor is at the end", async () => {
    await reading(
      async (robot) => {
        const late = saying("late", "\u001b[2JThe boat\u0007 is late.");
        await say(made.older, late, { ...saying("left", "It is here."), aside: "branch" });
        await robot.sees("message 12 of 12");
        assert.match(screen(robot), / {4}␛\[2JThe boat␇ is late\.\n\n▸ user \(on an abandoned branch\) /);
      },
      { conversation: made.older, rows: 30 },
    );
  });

  it("shows a message of several megabytes like any other", async () => {
    const long = Array.from({ length: 60_000 }, (_, line) => `row ${line + 1}: 船は六時に出ます and leaves the pier`);
    await say(made.young, saying("long", `${"x".repeat(500_000)}\n${long.join("\n")}`));
    await reading(
      async (robot) => {
        await robot.sees("60,001 lines in all; press space to expand");
        await robot.press("space");
        await robot.press("enter");
        await robot.sees(/ user .* 0%/);
        await robot.press("pageDown", "G");
        await robot.sees("row 60000: 船は六時に出ます");
        await robot.press("k", "g");
        await robot.sees(/^ x{78} $/m);
      },
      { conversation: made.young },
    );
  });

  it("can be read in narrow and wide terminals", async () => {
    await reading(async (robot) => {
      await robot.resize(40, 10);
      assert.ok(robot.lines().every((line) => line.length <= 40));
      assert.match(marked(robot), /^▸ assistant {2}2025-11-09 13:40$/);
      await robot.resize(160, 50);
      assert.match(screen(robot), /times in UTC/);
      assert.match(marked(robot), /msg_1-98$/);
    });
  });
});
