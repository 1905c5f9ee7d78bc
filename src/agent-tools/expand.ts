/** `lcm_expand`: the walk down, for the delegate that answers a question. It reads under a grant and pays for it. */

import type { Expansion } from "../core/recall/expand.ts";
import { chargesOf, readGranted } from "../core/recall/grants.ts";
import { LcmError } from "../core/base/errors.ts";
import { isSummaryId, messageName } from "../core/model/types.ts";
import type { SummaryId } from "../core/model/types.ts";
import { conversationId, textOf, tokenCapOf } from "./arguments.ts";
import { block, count, leftOutLine } from "./text.ts";
import { defineTool, withinGrant } from "./define.ts";
import type { JsonObject } from "../core/base/json.ts";

export const summaryIds = {
  type: "array",
  items: { type: "string" },
  minItems: 1,
  description: "Ids of summaries, as lcm_grep, lcm_describe and the summaries in the context name them.",
} as const;

export const expandTool = defineTool({
  name: "lcm_expand",
  label: "Walk down a summary",
  description:
    "Read what summaries were made from: finer summaries one level below, or with includeMessages the messages " +
    "themselves. With a query, what speaks of it comes first when not all of it fits. What is read is paid from the " +
    "grant under which you answer, so ask for what you need.",
  audience: "delegate",
  example: { summaryIds: ["sum_0123456789abcdef"], query: "why the rollback", includeMessages: true },
  parameters: {
    type: "object",
    required: ["summaryIds"],
    properties: {
      summaryIds,
      query: textOf("What you look for: it is preferred when not all of it fits."),
      maxDepth: {
        type: "integer",
        minimum: 0,
        default: 1,
        description: "How many levels of summaries below the named ones to read.",
      },
      includeMessages: {
        type: "boolean",
        default: false,
        description: "Also the messages below the leaves that are reached.",
      },
      tokenCap: tokenCapOf(
        "How many tokens of stored text to read at most; all that is left of the grant if left out.",
      ),
      conversationId,
    },
  },
  async run({ tokenCap, ...args }, context) {
    const { lcm, grant } = context;
    if (grant === undefined) throw new LcmError("denied", "there is no grant");
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

/** Throws `invalid` for what is no id of a summary, naming it. */
export function summaryIdsOf(given: readonly string[]): readonly SummaryId[] {
  const wrong = given.find((id) => !isSummaryId(id));
  if (wrong === undefined) return given.filter(isSummaryId);
  throw new LcmError("invalid", `summaryIds holds ${JSON.stringify(wrong)}, which is no id of a summary`, {
    hint: "they look like sum_0123456789abcdef; lcm_describe reads messages and files",
  });
}

function remarks({ items, leftOut, isBounded, messagesBelow }: Expansion, maxDepth: number): readonly string[] {
  return [
    ...(items.length === 0 && leftOut.items === 0 ? [`Nothing lies within maxDepth ${maxDepth}.`] : []),
    ...leftOutLine(leftOut, "name fewer summaries or a query"),
    ...(messagesBelow > 0
      ? [`${count(messagesBelow, "message")} below were not asked for: includeMessages reads them.`]
      : []),
    ...(isBounded ? ["There is more below than one call reads: expand a summary further down."] : []),
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
