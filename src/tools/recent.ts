/** `lcm_recent`: what happened between two times, told by summaries. */

import { messageName } from "../core/model.ts";
import { lastSaidAt } from "../core/recall.ts";
import type { Recent, RecentItem } from "../core/recent.ts";
import { reachOf } from "../core/scope.ts";
import { formatCount, formatRange, formatTimestamp, quote } from "../core/text.ts";
import { allConversations, before, conversationId, since, spanOf, tokenCapMax } from "./arguments.ts";
import { count, heading } from "./show.ts";
import { defineTool } from "./tool.ts";

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
      tokenCap: {
        type: "integer",
        minimum: 1,
        maximum: tokenCapMax,
        description: "How many tokens of stored text to show at most; the setting maxExpandTokens (4000) if left out.",
      },
    },
  },
  async run(args, context) {
    const { lcm, zone } = context;
    const reach = await reachOf(lcm.store, context.reader, args);
    const tokenCap = args.tokenCap ?? lcm.settings.maxExpandTokens;
    const told = await lcm.recent({ ...spanOf(args, lcm), reach, tokenCap });
    const span =
      told.before === null ? `since ${formatTimestamp(told.since, zone)}` : formatRange(told.since, told.before, zone);
    const blocks = told.items.map((item) => `${heading(context, headOf(item))}\n${quote(item.text)}`);
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

function headOf(item: RecentItem) {
  const { conversation, earliestAt: from, latestAt: to, isWhole } = item;
  const part = isWhole ? [] : ["in part"];
  return item.kind === "message"
    ? { id: messageName(item.id), what: [item.role, ...part], from, conversation }
    : { id: item.id, what: [`summary, depth ${item.depth}`, ...part], from, to, conversation };
}

function remarks({ leftOut, isBounded }: Recent): readonly string[] {
  return [
    ...(leftOut.items > 0
      ? [
          `Left out: ${count(leftOut.items, "item")} of ${formatCount(leftOut.tokens)} tokens; raise tokenCap, or ask for less time with since and before.`,
        ]
      : []),
    ...(isBounded ? ["There is more in that time than was counted: ask for less of it with since and before."] : []),
  ];
}
