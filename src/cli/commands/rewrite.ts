/** `lcm rewrite`: rewrites summaries with a model, from their sources. */

import { LcmError } from "../../core/base/errors.ts";
import type { RewriteRequest } from "../../core/maintenance/rewrite.ts";
import { findSummary, givenSummary } from "./dag.ts";
import { headline } from "../../format/conversations.ts";
import { wholeNumber } from "./_options.ts";
import { chosenConversation, conversationArgument } from "./_reach.ts";
import { modelWords, rewriteChosen, rewritingJson, rewritingOptions } from "./_rewriting.ts";
import { defineCommand } from "./_session.ts";

export const rewriteCommand = defineCommand({
  name: "rewrite",
  json: rewritingJson,
  summary: "rewrite summaries with a model",
  description:
    "Rewrite summaries with a model, from the current text of their sources. Ids, sources and positions stay the same. A dry " +
    "run shows the cost, calls the model and shows the old and new texts; --apply replaces them, and `lcm undo` undoes it.",
  arguments: [conversationArgument],
  options: {
    summary: ["--summary <id>", "rewrite this summary"],
    summaryId: ["--summary-id <id>", null],
    depth: ["--depth <n>", "rewrite all of this depth, 0 for leaves", wholeNumber(0, 1_000)],
    all: ["--all", "rewrite all, sources before the summaries made from them"],
    ...rewritingOptions,
  },
  examples: [
    ["lcm rewrite 3 --all --estimate", "estimate the cost"],
    ["lcm rewrite 3 --summary sum_0123456789abcdef", "draft one and compare"],
    ["lcm rewrite 3 --summary sum_0123456789abcdef --apply", "apply that draft"],
    ["lcm rewrite 3 --depth 1 --diff", "draft all of depth 1, as diffs"],
    ["lcm rewrite 3 --all --model anthropic/claude-sonnet-4-5 --apply", "rewrite all with this model"],
  ],
  notes: modelWords,
  async run(session, options, name?: string) {
    const id = givenSummary(options);
    const given = [id, options.depth, options.all].filter((each) => each !== undefined);
    if (given.length !== 1) {
      throw new LcmError(
        "invalid",
        given.length === 0 ? "missing: which summaries" : "--summary, --depth and --all exclude each other",
        {
          hint: "pass one of --summary ID, --depth N or --all",
        },
      );
    }
    return await rewriteChosen(session, options, "rewrite", async (lcm) => {
      const summary = id === undefined ? null : await findSummary(lcm, id);
      const conversation = await chosenConversation(lcm, name, summary);
      const select: RewriteRequest["select"] =
        summary !== null
          ? { summary: summary.id }
          : options.depth === undefined
            ? { all: true }
            : { depth: options.depth };
      const depth = options.depth === undefined ? "" : ` of depth ${options.depth}`;
      return {
        plan: { ...(await lcm.planRewrite({ conversation: conversation.id, select })), conversation: conversation.id },
        lines: [headline(session, conversation)],
        otherwise: `nothing to rewrite${id === undefined ? `: there is no summary${depth} in or below the context` : ""}`,
      };
    });
  },
});
