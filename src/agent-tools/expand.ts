/** The tool `lcm_expand`: lets a delegate read the sources of summaries, charged to its grant. */

import type { Expansion } from "../core/recall/expand.ts";
import { chargesOf, readGranted } from "../core/recall/grants.ts";
import { LcmError } from "../core/base/errors.ts";
import { isSummaryId, messageName, type SummaryId } from "../core/model/types.ts";
import { conversationId, textOf, tokenCapOf } from "./arguments.ts";
import { block, leftOutLine } from "./text.ts";
import { defineTool, withinGrant } from "./define.ts";
import type { JsonObject } from "../core/base/json.ts";
import { plural } from "../core/base/format.ts";

export const summaryIds = {
  type: "array",
  items: { type: "string" },
  minItems: 1,
  description: "The ids of the summaries to expand, from lcm_grep, lcm_describe or the summaries in the context.",
} as const;

export const expandTool = defineTool({
  name: "lcm_expand",
  label: "Expand summaries",
  description:
    "Read what summaries were made from: the more detailed summaries one level below, and with includeMessages the " +
    "original messages. If not everything fits, a query selects the most relevant items. Everything you read is " +
    "charged to your grant, so request only what you need.",
  audience: "delegate",
  example: { summaryIds: ["sum_0123456789abcdef"], query: "why the rollback", includeMessages: true },
  parameters: {
    type: "object",
    required: ["summaryIds"],
    properties: {
      summaryIds,
      query: textOf("What you are looking for. The most relevant items are returned if not everything fits."),
      maxDepth: {
        type: "integer",
        minimum: 0,
        default: 1,
        description: "Read this many levels of summaries below the given ones.",
      },
      includeMessages: {
        type: "boolean",
        default: false,
        description: "Set to true to also read the messages below the leaves that are reached.",
      },
      tokenCap: tokenCapOf("Read at most this many tokens of stored text. Default: all that remain in the grant."),
      conversationId,
    },
  },
  async run({ tokenCap, ...args }, context) {
    const { lcm, grant } = context;
    if (grant === undefined) throw new LcmError("denied", "lcm_expand needs a grant");
    const asked = { ...args, summaryIds: summaryIdsOf(args.summaryIds) };
    const expansion = await readGranted(lcm.store, grant, tokenCap, async (reach, tokensMax) => {
      const value = await lcm.expand({ ...asked, reach: withinGrant(reach, args), tokenCap: tokensMax });
      return { value, charges: chargesOf(value.items) };
    });
    const { items, tokens, expanded } = expansion;
    return {
      text: [...items.map((item) => block(context, item)), ...remarks(expansion, args.maxDepth ?? 1)].join("\n"),
      details: detailsOf(expansion),
      read: {
        summaries: [...new Set([...expanded, ...items.flatMap((item) => (item.kind === "summary" ? [item.id] : []))])],
        messages: items.flatMap((item) => (item.kind === "message" ? [item.id] : [])),
        tokens,
      },
    };
  },
});

export function summaryIdsOf(given: readonly string[]): readonly SummaryId[] {
  const wrong = given.find((id) => !isSummaryId(id));
  if (wrong === undefined) return given.filter(isSummaryId);
  throw new LcmError("invalid", `summaryIds contains ${JSON.stringify(wrong)}, which is not a summary id`, {
    hint: "pass ids like sum_0123456789abcdef; to read messages and files, call lcm_describe",
  });
}

function remarks({ items, leftOut, isBounded, messagesBelow }: Expansion, maxDepth: number): readonly string[] {
  return [
    ...(items.length === 0 && leftOut.items === 0 ? [`There is nothing below within maxDepth ${maxDepth}.`] : []),
    ...leftOutLine(leftOut, "Pass fewer summaryIds or a query"),
    ...(messagesBelow > 0
      ? [`${plural(messagesBelow, "message")} below not included: set includeMessages to true to read them.`]
      : []),
    ...(isBounded ? ["There is more below than one call can read: expand a summary further down."] : []),
  ];
}

const detailsOf = ({ items, tokens, leftOut, isBounded, messagesBelow, expanded }: Expansion): JsonObject => ({
  items: items.map(({ id, at, conversation, ...rest }) => ({
    ...rest,
    id: typeof id === "number" ? messageName(id) : id,
    createdAt: at,
    conversationId: conversation,
  })),
  tokens,
  expandedSummaryIds: expanded,
  leftOut,
  messagesBelow,
  truncated: leftOut.items > 0 || isBounded,
});
