/** The tool `lcm_recent`: shows what happened between two times, mostly through summaries. */

import { messageName } from "../core/model/types.ts";
import { lastSaidAt } from "../core/recall/grep.ts";
import { marksAfter, type Recent } from "../core/recall/recent.ts";
import { reachOf } from "../core/recall/scope.ts";
import { resolveTimes } from "../core/recall/span.ts";
import { allConversations, before, conversationId, role, since, shownTokenCap } from "./arguments.ts";
import { block, leftOutLine, markLine } from "./text.ts";
import { defineTool } from "./define.ts";
import { formatRange, formatTimestamp } from "../core/base/time.ts";

export const recentTool = defineTool({
  name: "lcm_recent",
  label: "Show recent activity",
  description:
    "Show what happened between two times, oldest first: messages, or summaries where messages do not fit; the newest " +
    'in most detail. Use it to catch up, or when a question names a day rather than words. With role: "user", only ' +
    "what the user said. Pass any id to lcm_describe to read more.",
  audience: "agent",
  example: { since: "2026-02-17", before: "2026-02-18" },
  parameters: {
    type: "object",
    required: [],
    properties: {
      since: { ...since, description: `${since.description} Default: 24 hours before the end.` },
      before,
      role,
      conversationId,
      allConversations,
      tokenCap: shownTokenCap,
    },
  },
  async run(args, context) {
    const { lcm, zone } = context;
    const reach = await reachOf(lcm.store, context.reader, args);
    const tokenCap = args.tokenCap ?? lcm.settings.maxExpandTokens;
    const times = await resolveTimes(lcm, args, { reach, zone: "UTC", prefix: "" });
    const recent = await lcm.recent({ ...times, tokenCap });
    const span =
      recent.before === null
        ? `since ${formatTimestamp(recent.since, zone)}`
        : formatRange(recent.since, recent.before, zone);
    const blocks = recent.items.flatMap((item, at) => [
      block(context, item),
      ...marksAfter(recent, at).map((mark) => markLine(mark, context)),
    ]);
    const isNothing = recent.items.length === 0 && recent.leftOut.items === 0 && !recent.isBounded;
    const last = isNothing ? await lastSaidAt(lcm.store, reach) : null;
    const newest = last === null ? "" : ` The newest message was at ${formatTimestamp(last, zone)}.`;
    const first = isNothing ? `No messages ${span}.${newest}` : `What happened ${span}:`;
    return {
      text: [first, ...blocks, ...remarks(recent)].join("\n"),
      details: {
        since: recent.since,
        before: recent.before,
        items: recent.items.map(({ id, conversation, ...item }) => ({
          ...item,
          id: typeof id === "number" ? messageName(id) : id,
          conversationId: conversation,
        })),
        marks: recent.marks.map((mark) => ({ ...mark })),
        tokens: recent.tokens,
        leftOut: recent.leftOut,
        truncated: recent.leftOut.items > 0 || recent.isBounded,
      },
    };
  },
});

function remarks({ leftOut, isBounded }: Recent): readonly string[] {
  return [
    ...leftOutLine(leftOut, "Raise tokenCap, or narrow the range with since and before"),
    ...(isBounded ? ["There is more in this range than was counted: narrow it with since and before."] : []),
  ];
}
