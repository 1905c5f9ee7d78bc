/** Robot sessions on the context screen: the prompt, trial budgets, the whole text. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { messageToStore } from "../../src/core/messages/codec.ts";
import { createLcm } from "../../src/core/lcm.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import type { DeepConversation } from "../support/deep-conversation.ts";
import { portOver, startRobot } from "../support/robot.ts";
import type { Robot, RobotOptions } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

const folder = makeScratch("tui-context");
const path = join(folder, "made.db");
const talkative = 700;
let made: DeepConversation;
let long: ConversationId;
before(async () => {
  made = await makeDeepConversation(path);
  const store = await openSqlite({ path });
  ({ id: long } = await store.open({ sessionId: "long", sessionKey: "agent:main:long", agentId: "main" }));
  const at = "2025-11-10T08:00:00.000Z" as Timestamp;
  await store.append(
    long,
    Array.from({ length: talkative }, (_, n) => {
      const raw = { role: n % 2 === 0 ? "user" : "assistant", content: `word number ${n} of a long talk` };
      return { kind: "message", message: messageToStore(raw, { key: `k${n}`, at }) } as const;
    }),
  );
  await store.close();
});

/** Shows summaries as they are in the context, unless a target is given. */
async function sitting(
  conversation: () => ConversationId,
  work: (robot: Robot) => Promise<void>,
  { contextTarget = "0", ...options }: RobotOptions & { readonly contextTarget?: string } = {},
): Promise<void> {
  const port = portOver(path, { env: { LCM_CONTEXT_TARGET: contextTarget } });
  const place = { kind: "context", conversation: conversation() } as const;
  const robot = startRobot(port, { columns: 80, rows: 24, place, ...options });
  try {
    await work(robot);
  } finally {
    await robot.end();
    await port.close();
  }
}

const deep = (): ConversationId => made.deep;

describe("the context screen", () => {
  it("marks what is shown in place of summaries because there is room", async () => {
    await sitting(
      deep,
      async (robot) => {
        await robot.sees("prompt: 8,055 tokens, 6% of a budget of 128,000 (the default)");
        await robot.sees("+ in place of 5 summaries, because there is room: adds 7,059 tokens");
        await robot.sees(/▸ user\+ +13 .*Do we draw a map/);
        await robot.press("b", "8", "k", "enter");
        await robot.sees(/d0\+ /);
        await robot.press("b", "1", "k", "enter");
        await robot.misses("in place of");
      },
      { contextTarget: "0.5" },
    );
  });

  it("shows the prompt in order, with the tokens of each item", async () => {
    await sitting(deep, async (robot) => {
      await robot.sees("prompt: 948 tokens, 1% of a budget of 128,000 (the default)");
      await robot.sees("a sweep is due above 96,000 ↑");
      await robot.sees(/▸ d3 +202 .* 202 .*Settled so far/);
      const kinds = robot.lines().flatMap((line) => /^[ ▸] (d\d|user|assistant|tool) /.exec(line)?.[1] ?? []);
      assert.deepEqual(kinds, [
        "d3",
        "d2",
        "d1",
        "d0",
        "d0",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
      ]);
      const tail = robot.lines().findIndex((line) => line.includes("── fresh tail"));
      assert.match(robot.lines()[tail + 1] ?? "", /^ {2}user .*Is the desk open tomorrow\?/);
    });
  });

  it("shows what a smaller budget would leave out, and goes back to the host's", async () => {
    await sitting(deep, async (robot) => {
      await robot.sees("fresh tail");
      await robot.press("b");
      await robot.sees("budget in tokens");
      await robot.type("0.7k");
      await robot.press("enter");
      await robot.sees("── ↑ left out at 700 tokens: 3 items, 534 tokens");
      await robot.sees("of a budget of 700 (trial; B: host's budget)");
      await robot.sees("[Earlier parts");
      await robot.press("B");
      await robot.sees("of a budget of 128,000");
      await robot.misses("left out");
    });
  });

  it("previews exactly what the model gets", async () => {
    const lcm = createLcm({
      store: await openSqlite({ path }),
      clock: { now: () => "2026-01-01T00:00:00.000Z" as Timestamp },
      settings: resolveSettings({ env: {}, config: { contextTarget: 0 } }).values,
    });
    const { messages } = await lcm.assemble(made.deep);
    await lcm.close();
    await sitting(
      deep,
      async (robot) => {
        await robot.sees("d3 sum_");
        const content = messages[0]?.["content"];
        assert.ok(typeof content === "string");
        await robot.sees(content.slice(0, 50));
        await robot.press("J", "J");
        await robot.misses("<summary id=");
        await robot.press("G");
        await robot.sees("── assistant msg_1-98, as assistant, 12 tokens");
        await robot.press("V");
        await robot.sees("prompt of conversation 1 at 128,000 tokens");
        await robot.sees('<summary id="sum_');
      },
      { columns: 150, rows: 20 },
    );
  });

  it("opens the selected item, shows its previous context, and refuses to dissolve a message", async () => {
    await sitting(deep, async (robot) => {
      await robot.sees("fresh tail");
      await robot.press("j", "j", "j", "p");
      await robot.sees("previous context of sum_");
      await robot.press("escape", "G", "d");
      await robot.sees("d: the selected item is not a summary");
      await robot.press("g", "enter");
      await robot.sees("context of 1 › summ");
      await robot.press("escape");
      await robot.sees(/▸ d3/);
    });
  });

  it("scrolls through all items left out, to the oldest and back", async () => {
    await sitting(
      () => long,
      async (robot) => {
        await robot.sees("fresh tail");
        await robot.press("b");
        await robot.type("600");
        await robot.press("enter");
        await robot.sees(/left out at 600 tokens: \d+ items/);
        await robot.press("g");
        await robot.sees(/▸ user .*word number 0 of/);
        for (let page = 0; page < 16; page++) await robot.press("pageDown");
        await robot.sees(new RegExp(`▸ assistant .*word number ${talkative - 1} of`));
        for (let page = 0; page < 3; page++) await robot.press("pageUp");
        await robot.sees(/▸ (user|assistant) .*word number \d+ of/);
      },
      { rows: 60 },
    );
  });

  it("reports that a conversation no longer exists", async () => {
    await sitting(
      () => 999 as ConversationId,
      async (robot) => {
        await robot.sees("no conversation 999");
        await robot.press("j", "enter", "v", "b");
        assert.equal(robot.isOver(), false);
      },
    );
  });
});
