/** The tool `lcm_map`: a model does the same task for every message of a search, a time, a role or a summary. */

import { quote } from "../core/base/excerpt.ts";
import { formatCount, plural } from "../core/base/format.ts";
import type { JsonObject } from "../core/base/json.ts";
import { withDeadline } from "../core/base/deadline.ts";
import { messageName, roles, type StoredFile } from "../core/model/types.ts";
import { caveatSentence } from "../core/recall/grep.ts";
import { mapLine } from "../core/recall/map/file.ts";
import type { MapPlan } from "../core/recall/map/plan.ts";
import { costWords, coverWords, leftOutWords, unreadWords } from "../core/recall/map/words.ts";
import type { MapReport, MapRequest } from "../core/recall/map/map.ts";
import { reachOf } from "../core/recall/scope.ts";
import { resolveTimes } from "../core/recall/span.ts";
import { allConversations, before, conversationId, since, textOf } from "./arguments.ts";
import { defineTool, type ToolContext } from "./define.ts";
import { summaryIds, summaryIdsOf } from "./expand.ts";

export const mapTool = defineTool({
  name: "lcm_map",
  label: "Do a task for every message",
  description:
    "Have a model do the same small task for every message of a search, a time range, a role or a summary: classify, " +
    "extract, mark. Use it to count, list or compare where a search would miss some. Each result fits your JSON Schema. " +
    "All of them are stored as a file, one line of JSON per message: read it with lcm_describe, or count in it with " +
    "lcm_grep (scope files). Costs about as many tokens as the messages have, so narrow it; if it would cost too much, " +
    "you get the plan instead. Run it again with the same arguments to continue after an interruption.",
  audience: "agent",
  example: {
    prompt: "Which test failed, if any, and with what error?",
    schema: { type: "object", properties: { test: { type: ["string", "null"] }, error: { type: ["string", "null"] } } },
    role: "tool",
    since: "7d",
  },
  parameters: {
    type: "object",
    required: ["prompt", "schema"],
    properties: {
      prompt: textOf("The task for each message, as a full sentence."),
      schema: {
        type: "object",
        description:
          "JSON Schema of one result. Keywords: type, properties, required, items, enum, const, anyOf, and limits.",
      },
      query: textOf("Read only messages that lcm_grep finds for this."),
      summaryIds: { ...summaryIds, description: "Read only the messages below these summaries." },
      role: { type: "string", enum: roles, description: "Read only messages of this role." },
      since,
      before,
      conversationId,
      allConversations,
    },
  },
  async run({ prompt, schema, query, summaryIds: ids, role, ...args }, context) {
    const { lcm, reader, model } = context;
    const request: MapRequest = {
      prompt,
      schema,
      ...(await resolveTimes(lcm, args, { reach: await reachOf(lcm.store, reader, args), zone: "UTC", prefix: "" })),
      ...(query !== undefined && { query }),
      ...(ids !== undefined && { summaryIds: summaryIdsOf(ids) }),
      ...(role !== undefined && { role }),
      ...(model !== undefined && { model }),
      budget: { tokens: lcm.settings.mapTokens },
    };
    const plan = await lcm.planMap(request);
    const refusal = await tooMuch(plan, context);
    if (refusal !== null) return { text: refusal, details: { ran: false, plan: planDetails(plan) } };
    const report = await within(context, async (signal, onProgress) => lcm.map({ ...request, signal, onProgress }));
    const files = await lcm.saveMap({ prompt, results: report.results, own: reader.conversation });
    return { text: textOfReport(report, files), details: { ran: true, ...detailsOf(report, files) } };
  },
});

/** Why a plan is not carried out, with the plan; null if it is. */
export async function tooMuch(plan: MapPlan, { lcm }: ToolContext): Promise<string | null> {
  const { callsMax, usage, windowMinutes } = await lcm.spend();
  const { mapTokens } = lcm.settings;
  const left = Math.max(0, callsMax - usage.calls);
  const why =
    plan.beyond.messages > 0
      ? `this takes more than the ${formatCount(mapTokens)} tokens allowed (setting mapTokens)`
      : plan.calls > left
        ? `this takes more than the ${plural(left, "model call")} left in the current ${windowMinutes} minutes (setting spendCeilingCalls)`
        : null;
  if (why === null) return null;
  const { calls, tokens } = plan.beyond;
  const whole = { calls: plan.calls + calls, tokens: plan.inputTokens + plan.outputTokens + tokens };
  return [
    `Not run: ${why}. The plan: ${coverWords(plan)}; ${plural(whole.calls, "call")}, ${formatCount(whole.tokens)} tokens.`,
    "Narrow it with since, before, role, query, summaryIds or conversationId, or take one part after the other.",
  ].join("\n");
}

/** Runs work until `expandTimeoutSeconds`, less what returning the result may take. */
export async function within<T>(
  { lcm, signal, onProgress = () => undefined }: ToolContext,
  work: (signal: AbortSignal, onProgress: NonNullable<ToolContext["onProgress"]>) => Promise<T>,
): Promise<T> {
  const wholeMs = lcm.settings.expandTimeoutSeconds * 1_000;
  return await withDeadline(wholeMs - reserveMs(wholeMs), signal, async (until) => await work(until, onProgress));
}

/** Time kept in reserve, so the result arrives before the caller times out. */
export const reserveMs = (timeoutMs: number): number => Math.min(2_000, timeoutMs / 20);

export const planDetails = ({ caveats, ...plan }: MapPlan): JsonObject => ({
  ...plan,
  caveats: caveats.map((caveat) => caveatSentence(caveat, "arguments")),
});

const detailsOf = ({ plan, results, unread, spent, stopped }: MapReport, files: readonly StoredFile[]): JsonObject => ({
  plan: planDetails(plan),
  results: results.length,
  unread: unread.map(({ id, reason }) => ({ id: messageName(id), reason })),
  spent: { ...spent },
  stopped,
  files: files.map(({ id, conversation, bytes }) => ({ id, conversationId: conversation, bytes })),
});

const linesShown = 5;
const charactersShown = 400;

function textOfReport({ plan, results, unread, spent, stopped }: MapReport, files: readonly StoredFile[]): string {
  const shown = results.slice(0, linesShown).map((each) => mapLine(each).slice(0, charactersShown).toWellFormed());
  const notes = [
    unreadWords(unread),
    stopped === null ? null : `stopped: ${stopped}; call it again with the same arguments to continue`,
    ...leftOutWords({ ...plan, beyond: { messages: 0, calls: 0, tokens: 0 } }),
    ...plan.caveats.map((caveat) => `search: ${caveatSentence(caveat, "arguments")}`),
  ].filter((note) => note !== null);
  return [
    `${plural(results.length, "result")} for ${plural(plan.messages, "message")} (${costWords(spent)}).`,
    ...files.map(({ id }) => `Stored as ${id}, one line per message: read it with lcm_describe.`),
    ...(shown.length === 0
      ? []
      : [`The first ${shown.length === 1 ? "line" : `${shown.length} lines`}:`, quote(shown.join("\n"))]),
    ...notes.map((note) => `${note.charAt(0).toUpperCase()}${note.slice(1)}.`),
  ].join("\n");
}
