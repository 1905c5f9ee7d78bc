/** The tool `lcm_expand_query`: answers a question from stored conversations, with sources, before a deadline. */

import type { Answer, AskRequest, DelegateTool } from "../core/recall/ask-types.ts";
import { LcmError } from "../core/base/errors.ts";
import { messageName } from "../core/model/types.ts";
import { caveatSentence } from "../core/recall/grep.ts";
import { costWords } from "../core/recall/map/words.ts";
import { reachOf } from "../core/recall/scope.ts";
import { resolveTimes } from "../core/recall/span.ts";
import type { ThoroughAnswer, ThoroughRequest } from "../core/recall/map/thorough.ts";
import { quote } from "../core/base/excerpt.ts";
import { allConversations, also, before, conversationId, since, textOf, tokenCapOf } from "./arguments.ts";
import { describeTool } from "./describe.ts";
import { expandTool, summaryIds, summaryIdsOf } from "./expand.ts";
import { grepTool, isUnfinished } from "./grep.ts";
import { planDetails, reserveMs, tooMuch, within } from "./map.ts";
import { defineTool, type Tool, type ToolContext } from "./define.ts";
import type { JsonObject } from "../core/base/json.ts";
import { formatCount, plural } from "../core/base/format.ts";
import { withDeadline } from "../core/base/deadline.ts";

const maxTokensDefault = 2_000;

export const expandQueryTool = defineTool({
  name: "lcm_expand_query",
  label: "Ask about the conversation",
  description:
    "Ask a question about past conversations and get a short answer with the ids of its sources. Use it when a summary " +
    "omits a detail you need (exact commands, values, errors, reasons, quotes), or when the answer is spread over many " +
    "messages: a delegate reads them for you, which keeps your own context small. To count, list or compare, set " +
    "thorough: then every message is read, and the counts are exact. Takes up to two minutes; to look up a single word " +
    "or id, lcm_grep and lcm_describe are faster.",
  audience: "agent",
  example: { query: "OAuth login failure", prompt: "What was the cause, and which change fixed it?" },
  parameters: {
    type: "object",
    required: ["prompt"],
    properties: {
      prompt: textOf("The question to answer, as a full sentence."),
      query: textOf("Keywords to search for the relevant passages. Default: the words of the prompt."),
      also,
      summaryIds: {
        ...summaryIds,
        description: "The ids of summaries to read instead of searching, if you know which ones.",
      },
      maxTokens: {
        type: "integer",
        minimum: 1,
        default: maxTokensDefault,
        description: "Limit the answer to this many tokens.",
      },
      tokenCap: tokenCapOf(
        "Read at most this many tokens to find the answer. Default: the setting maxExpandTokens (4000).",
      ),
      thorough: {
        type: "boolean",
        default: false,
        description:
          "Set to true to read every message instead of searching, for questions that count, list or compare. It costs " +
          "about as many tokens as the messages have: narrow it with since, before, summaryIds or conversationId. If it " +
          "would cost too much, you get the plan instead.",
      },
      since: { ...since, description: `With thorough: ${since.description.replace(/^I/, "i")}` },
      before: { ...before, description: `With thorough: ${before.description.replace(/^I/, "i")}` },
      conversationId,
      allConversations,
    },
  },
  async run({ summaryIds: ids, conversationId: one, allConversations: all, query, ...args }, context) {
    const asked = { ...(one === undefined ? {} : { conversationId: one }), ...(all && { allConversations: all }) };
    const reach = async () => await reachOf(context.lcm.store, context.reader, asked);
    if (args.thorough === true) {
      const { since, before } = args;
      const times = { ...(since && { since }), ...(before && { before }) };
      const cover = await resolveTimes(context.lcm, times, { reach: await reach(), zone: "UTC", prefix: "" });
      const below = ids === undefined ? {} : { summaryIds: summaryIdsOf(ids) };
      const { prompt, maxTokens } = args;
      return await readAll({ prompt, ...cover, ...below, ...(maxTokens && { maxTokens }) }, context);
    }
    if (args.since !== undefined || args.before !== undefined)
      throw new LcmError("invalid", "since and before need thorough: true", { hint: "or leave them out" });
    const given = ids === undefined ? { query: query ?? args.prompt } : { summaryIds: summaryIdsOf(ids) };
    const answer = await askWithin({ ...args, ...given, ...(query && { query }), reach }, context);
    return {
      // Excerpts are already quoted; a model may repeat any stored text.
      text: `${answer.by === "excerpts" ? answer.answer : quote(answer.answer)}\n${sourcesLine(answer, args.maxTokens)}`,
      details: detailsOf(answer),
    };
  },
});

/** The answer to a question for which every message is read, or the plan if that is too much. */
async function readAll(question: ThoroughRequest, context: ToolContext) {
  const { lcm, model, reader } = context;
  const request = {
    ...question,
    ...(model !== undefined && { model }),
    budget: { tokens: lcm.settings.mapTokens },
    own: reader.conversation,
  };
  const plan = await lcm.planThorough(request);
  const refusal = await tooMuch(plan, context);
  if (refusal !== null) return { text: refusal, details: { ran: false, plan: planDetails(plan) } };
  const answer = await within(context, async (signal, onProgress) => lcm.thorough({ ...request, signal, onProgress }));
  const { reading } = answer;
  const { unread, spent, subjects, files, ...figures } = reading;
  const details = {
    ...detailsOf(answer),
    reading: {
      ...figures,
      subjects: subjects.map((each) => ({ ...each })),
      unread: unread.map(({ id, reason }) => ({ id: messageName(id), reason })),
      spent: { ...spent },
      files: [...files],
    },
  };
  return { text: `${quote(answer.answer)}\n${readingLine(answer, question.maxTokens)}`, details };
}

function readingLine(
  { reading, citedMessages, partial, truncated }: ThoroughAnswer,
  maxTokens = maxTokensDefault,
): string {
  const cited = citedMessages.map(messageName);
  const { messages, read, facts, matching, files, spent } = reading;
  return [
    `Sources: ${cited.length === 0 ? "none cited" : cited.join(", ")}.`,
    `Read ${formatCount(read)} of ${plural(messages, "message")} (${costWords(spent)}): ${plural(facts, "fact")} in ${plural(matching, "message")}.`,
    ...(files.length === 0 ? [] : [`All facts: ${files.join(", ")}, one line per message.`]),
    ...(partial === null ? [] : [`Partial: ${partial}. Call it again with the same arguments to read on.`]),
    ...(truncated ? [`Cut at maxTokens ${maxTokens}.`] : []),
  ].join(" ");
}

type Question = Pick<AskRequest, "prompt" | "query" | "also" | "summaryIds" | "maxTokens" | "tokenCap" | "reach">;

/** Answers within `expandTimeoutSeconds`, offering the delegate its tools. */
export async function askWithin(question: Question, context: Omit<ToolContext, "grant">): Promise<Answer> {
  const { lcm, delegate, model, onProgress, zone } = context;
  const wholeMs = lcm.settings.expandTimeoutSeconds * 1_000;
  const timeoutMs = wholeMs - reserveMs(wholeMs);
  return await withDeadline(timeoutMs, context.signal, async (signal) =>
    lcm.expandQuery({
      ...question,
      signal,
      timeoutMs,
      tools: [expandTool, describeTool, grepTool].map((tool) => forDelegate(tool, context)),
      ...(zone === undefined ? {} : { zone }),
      ...(delegate === undefined ? {} : { delegate }),
      ...(model === undefined ? {} : { model }),
      ...(onProgress === undefined ? {} : { onProgress }),
    }),
  );
}

const detailsOf = ({ citedMessages, caveats, ...answer }: Answer): JsonObject => ({
  ...answer,
  citedMessages: citedMessages.map(messageName),
  caveats: caveats.map((caveat) => caveatSentence(caveat, "arguments")),
});

function forDelegate(tool: Tool, { lcm, reader, zone }: ToolContext): DelegateTool {
  const { name, description, parameters } = tool;
  return {
    name,
    description,
    parameters,
    async run(args, held) {
      const result = await tool.run(args, { lcm, reader, ...(zone === undefined ? {} : { zone }), ...held });
      return { text: result.text, isError: result.isError, read: result.read ?? nothingRead };
    },
  };
}

const nothingRead = { summaries: [], messages: [], tokens: 0 } as const;

function sourcesLine(answer: Answer, maxTokens = maxTokensDefault): string {
  const { citedIds, citedMessages, expandedSummaryCount, totalSourceTokens, truncated, by, partial } = answer;
  const cited = [...citedIds, ...citedMessages.map(messageName)];
  const read = `${formatCount(totalSourceTokens)} tokens read, ${plural(expandedSummaryCount, "summary", "summaries")} expanded`;
  return [
    `Sources: ${cited.length === 0 ? "none cited" : cited.join(", ")} (${read}).`,
    ...(by === "excerpts" ? ["These are excerpts; no model has read them."] : []),
    ...(partial === null ? [] : [`Partial: ${partial}.`]),
    ...(truncated ? [`Cut at maxTokens ${maxTokens}.`] : []),
    ...answer.caveats
      .filter(isUnfinished)
      .map((caveat) => `Search note (arguments of lcm_grep): ${caveatSentence(caveat, "arguments")}.`),
  ].join(" ");
}
