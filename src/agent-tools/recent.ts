/** `lcm_recent`: what happened between two times, told by summaries. */

import { messageName } from "../core/model/types.ts";
import { lastSaidAt } from "../core/recall/grep.ts";
import type { Recent } from "../core/recall/recent.ts";
import { reachOf } from "../core/recall/scope.ts";
import { allConversations, before, conversationId, since, spanOf, shownTokenCap } from "./arguments.ts";
import { block, leftOutLine } from "./text.ts";
import { defineTool } from "./define.ts";
import { formatRange, formatTimestamp } from "../core/base/time.ts";

export const recentTool = defineTool({
  name: "lcm_recent",
  label: "What happened lately",
  description:
    "What happened between two times, oldest first: summaries, and messages where nothing is summarised yet. Use it to " +
    "catch up, or when a question names a day and no words to search for. lcm_describe reads any of its ids whole.",
  audience: "agent",
  example: { since: "2026-02-17", before: "2026-02-18" },
  parameters: {
    type: "object",
    required: [],
    properties: {
      since: { ...since, description: `${since.description} If left out: 24 hours before the end.` },
      before,
      conversationId,
      allConversations,
      tokenCap: shownTokenCap,
    },
  },
  async run(args, context) {
    const { lcm, zone } = context;
    const reach = await reachOf(lcm.store, context.reader, args);
    const tokenCap = args.tokenCap ?? lcm.settings.maxExpandTokens;
    const told = await lcm.recent({ ...spanOf(args, lcm), reach, tokenCap });
    const span =
      told.before === null ? `since ${formatTimestamp(told.since, zone)}` : formatRange(told.since, told.before, zone);
    const blocks = told.items.map((item) => block(context, item));
    const isNothing = told.items.length === 0 && told.leftOut.items === 0 && !told.isBounded;
    const last = isNothing ? await lastSaidAt(lcm.store, reach) : null;
    const newest = last === null ? "" : ` The newest message is of ${formatTimestamp(last, zone)}.`;
    const first = isNothing ? `Nothing was said ${span}.${newest}` : `What happened ${span}:`;
    return {
      text: [first, ...blocks, ...remarks(told)].join("\n"),
      details: {
        since: told.since,
        before: told.before,
        items: told.items.map(({ id, conversation, ...item }) => ({
          ...item,
          id: typeof id === "number" ? messageName(id) : id,
          conversationId: conversation,
        })),
        tokens: told.tokens,
        leftOut: told.leftOut,
        truncated: told.leftOut.items > 0 || told.isBounded,
      },
    };
  },
});

function remarks({ leftOut, isBounded }: Recent): readonly string[] {
  return [
    ...leftOutLine(leftOut, "raise tokenCap, or ask for less time with since and before"),
    ...(isBounded ? ["There is more in that time than was counted: ask for less of it with since and before."] : []),
  ];
}
