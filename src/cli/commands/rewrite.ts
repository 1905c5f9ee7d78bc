/** `lcm rewrite`: new texts for summaries, written by a model from what they stand for. */

import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation, SummaryId } from "../../core/model/types.ts";
import type { RewriteRequest } from "../../core/maintenance/rewrite.ts";
import { findSummary, givenSummary } from "./dag.ts";
import { headline } from "../../format/conversations.ts";
import { conversationWords, wholeNumber } from "./_options.ts";
import { modelWords, rewriteChosen, rewritingOptions } from "./_rewriting.ts";
import { defineCommand } from "./_session.ts";

export const rewriteCommand = defineCommand({
  name: "rewrite",
  summary: "have summaries written anew by a model",
  description:
    "Have summaries written anew by a model, from the messages or summaries they stand for as these are now. Their ids, " +
    "sources and places stay. A dry run asks the model too, after saying what that costs, and shows old and new; " +
    "--apply puts the new texts in place, and `lcm undo` takes them back.",
  arguments: [["<conversation>", conversationWords]],
  options: {
    summary: ["--summary <id>", "this one"],
    summaryId: ["--summary-id <id>", null],
    depth: ["--depth <n>", "all of this depth, 0 for leaves", wholeNumber(0, 1_000)],
    all: ["--all", "all, sources before what was made from them"],
    ...rewritingOptions,
  },
  examples: [
    ["lcm rewrite 3 --all --estimate", "what it would cost"],
    ["lcm rewrite 3 --summary sum_0123456789abcdef", "old and new of one"],
    ["lcm rewrite 3 --summary sum_0123456789abcdef --apply", "put that draft in place"],
    ["lcm rewrite 3 --depth 1 --diff", "all of depth 1, as diffs"],
    ["lcm rewrite 3 --all --model anthropic/claude-sonnet-4-5 --apply", "all, by this model"],
  ],
  notes: modelWords,
  async run(session, options, name) {
    const id = givenSummary(options);
    const given = [id, options.depth, options.all].filter((each) => each !== undefined);
    if (given.length !== 1) {
      throw new LcmError(
        "invalid",
        given.length === 0 ? "it is not said which summaries" : "more than one choice is made",
        {
          hint: "give one of --summary ID, --depth N and --all",
        },
      );
    }
    return await rewriteChosen(session, options, "rewrite", async (lcm) => {
      const conversation = await lcm.find(name);
      const select: RewriteRequest["select"] =
        id !== undefined
          ? { summary: await ownSummary(lcm, conversation, id) }
          : options.depth === undefined
            ? { all: true }
            : { depth: options.depth };
      const depth = options.depth === undefined ? "" : ` of depth ${options.depth}`;
      return {
        plan: { ...(await lcm.planRewrite({ conversation: conversation.id, select })), conversation: conversation.id },
        lines: [headline(session, conversation)],
        otherwise: `nothing to rewrite${id === undefined ? `: the context has no summary${depth}` : ""}`,
      };
    });
  },
});

async function ownSummary(lcm: Lcm, { id: own }: Conversation, given: string): Promise<SummaryId> {
  const { id, conversation } = await findSummary(lcm, given);
  if (conversation === own) return id;
  throw new LcmError("invalid", `${id} is of conversation ${conversation}, not of ${own}`, {
    hint: `\`lcm rewrite ${conversation} --summary ${id}\``,
  });
}
