/**
 * Answers a question by reading every message: a map lists the facts in each, with a quote that is checked against the
 * message; code counts them; a model answers from the facts and the counts, and its citations are checked. What was not
 * read is part of the answer.
 */

import { readAnswer } from "../../model-calls/read-answer.ts";
import { completeWithin } from "../../model-calls/metering.ts";
import { plural } from "../../base/format.ts";
import { checkWhole, LcmError } from "../../base/errors.ts";
import { estimateTokens, sumTokens } from "../../base/tokens.ts";
import type { Model } from "../../model/store.ts";
import type { ConversationId, FileId, MessageId } from "../../model/types.ts";
import { answerFromFactsPrompt, condenseFactsPrompt, factsSchema, factsTask } from "../../prompts/map.ts";
import type { Prompt } from "../../prompts/summary.ts";
import type { Answer } from "../ask-types.ts";
import { cutToTokens, readCitations } from "../citations.ts";
import { countFacts, countLines, factLine, factsIn, verifyFacts, type Fact, type FactCounts } from "./facts.ts";
import { map, planMap, type MapDeps, type MapReport, type MapRequest } from "./map.ts";
import { saveMap } from "./file.ts";
import type { MapPlan } from "./plan.ts";
import { leftOutWords, unreadWords } from "./words.ts";
import { Purse, type MapSpent, type UnreadReason } from "./run.ts";

/** The messages to read, and the question as `prompt`. */
export interface ThoroughRequest extends Omit<MapRequest, "schema" | "query"> {
  /** Limit of the answer. */
  readonly maxTokens?: number;
  /** Where the facts are stored as a file; null for the conversations of the messages. */
  readonly own?: ConversationId | null;
}

export interface ThoroughPlan extends MapPlan {
  readonly model: string | null;
  /** Answering from the facts, if they are as many as usual. Included in the figures above. */
  readonly answering: MapSpent;
}

export interface ThoroughAnswer extends Answer {
  readonly reading: FactCounts & {
    readonly messages: number;
    readonly read: number;
    readonly unread: readonly { readonly id: MessageId; readonly reason: UnreadReason }[];
    /** Facts without a true quote, which are not used. */
    readonly dropped: number;
    readonly spent: MapSpent;
    /** Files with all facts, a line per message that has some. */
    readonly files: readonly FileId[];
  };
}

const maxTokensDefault = 2_000;
/** Facts that one call reads, and what it condenses them to if there are more. */
const readTokens = 12_000;
const condensedTokens = 2_000;
const roundsMax = 6;

/** Expected: most messages have no fact, a twentieth has one. */
const internals = { resultTokens: 9, refine: verifyFacts } as const;
const factsShare = 0.05;
const factTokens = 60;

export async function planThorough(deps: MapDeps, request: ThoroughRequest): Promise<ThoroughPlan> {
  check(request);
  const plan = await planMap(deps, mapRequestOf(request), internals);
  const answering = answeringCost(plan.messages);
  return {
    ...plan,
    calls: plan.calls + answering.calls,
    inputTokens: plan.inputTokens + answering.inputTokens,
    outputTokens: plan.outputTokens + answering.outputTokens,
    answering,
  };
}

function check({ prompt, maxTokens }: ThoroughRequest): void {
  if (prompt.trim() === "") throw new LcmError("invalid", "prompt is empty", { hint: "pass a question" });
  checkWhole("maxTokens", maxTokens);
}

/** The budget covers the answer, too. */
function mapRequestOf(request: ThoroughRequest): MapRequest {
  const { prompt, budget = {}, ...rest } = request;
  const { calls, inputTokens, outputTokens } = answeringCost(0);
  const left = {
    ...(budget.tokens !== undefined && { tokens: Math.max(1, budget.tokens - inputTokens - outputTokens) }),
    ...(budget.calls !== undefined && { calls: Math.max(1, budget.calls - calls) }),
  };
  const isBounded = budget.tokens !== undefined || budget.calls !== undefined;
  return { ...rest, ...(isBounded && { budget: left }), prompt: factsTask(prompt.trim()), schema: factsSchema };
}

function answeringCost(messages: number): MapSpent {
  const facts = Math.ceil(messages * factsShare) * factTokens;
  const condensing = facts > readTokens ? Math.ceil(facts / readTokens) : 0;
  const read = condensing === 0 ? facts : facts + condensing * condensedTokens;
  return {
    calls: 1 + condensing,
    inputTokens: read + 600 * (1 + condensing),
    outputTokens: Math.ceil(condensedTokens * 0.75) * condensing + 400,
  };
}

/** Throws `unavailable` without a model. Trouble of the model, and the signal, lead to a partial answer. */
export async function thorough(deps: MapDeps, request: ThoroughRequest): Promise<ThoroughAnswer> {
  check(request);
  const model = request.model ?? deps.model;
  const report = await map(deps, mapRequestOf(request), internals);
  const { facts, dropped } = factsIn(report.results);
  const counts = countFacts(facts);
  const purse = new Purse(leftOf(request, report.spent));
  const said =
    facts.length === 0 || model === null ? null : await answerFrom({ facts, counts, report, model }, request, purse);
  const withFacts = new Set(facts.map(({ id }) => id));
  const { prompt, own = null } = request;
  const results = report.results.filter(({ id }) => withFacts.has(id));
  const files = await saveMap(deps.store, { prompt: `Facts for: ${prompt}`, results, own });
  const shown = said ?? { ...listed(facts, report, request), by: "excerpts" as const };
  return {
    ...shown,
    citedIds: [],
    expandedSummaryCount: 0,
    totalSourceTokens: sumTokens(report.results),
    partial: partialOf(report, facts.length > 0 && said === null),
    caveats: report.plan.caveats,
    reading: {
      ...counts,
      messages: report.plan.messages,
      read: report.results.length,
      unread: report.unread,
      dropped,
      spent: sumOf(report.spent, purse.spent),
      files: files.map(({ id }) => id),
    },
  };
}

function leftOf({ budget = {} }: ThoroughRequest, { calls, inputTokens, outputTokens }: MapSpent) {
  return {
    ...(budget.tokens !== undefined && { tokens: budget.tokens - inputTokens - outputTokens }),
    ...(budget.calls !== undefined && { calls: budget.calls - calls }),
  };
}

const sumOf = (one: MapSpent, other: MapSpent): MapSpent => ({
  calls: one.calls + other.calls,
  inputTokens: one.inputTokens + other.inputTokens,
  outputTokens: one.outputTokens + other.outputTokens,
});

type Said = Pick<Answer, "answer" | "citedMessages" | "truncated" | "by">;

interface Found {
  readonly facts: readonly Fact[];
  readonly counts: FactCounts;
  readonly report: MapReport;
  readonly model: Model;
}

/** Null if the model gave no usable answer. */
async function answerFrom(found: Found, request: ThoroughRequest, purse: Purse): Promise<Said | null> {
  const { facts, counts, report, model } = found;
  const { maxTokens = maxTokensDefault, prompt: question, signal } = request;
  const ask = async (prompt: Prompt, most: number): Promise<{ text: string; isCut: boolean } | null> => {
    const inputTokens = estimateTokens(prompt.system) + estimateTokens(prompt.prompt);
    const granted = purse.reserve({ inputTokens, outputTokens: Math.min(most, 256) }, Math.max(1_024, 2 * most));
    if (granted === null) return null;
    const asked = { purpose: "map", conversation: null, temperature: 0.2, maxOutputTokens: granted } as const;
    const completion = await completeWithin(model, { ...asked, ...prompt, ...(signal && { signal }) });
    purse.settle({ inputTokens }, granted, completion);
    if (completion.kind === "refused") return null;
    const text = readAnswer(completion.text);
    return text === "" ? null : { text, isCut: completion.finish === "length" };
  };
  const notes = await condense(facts, { question, ask, concurrency: request.concurrency ?? 1 });
  if (notes === null) return null;
  const about = { question, facts: notes, counts: countLines(counts, report), maxTokens };
  const final = await ask(answerFromFactsPrompt(about), maxTokens);
  if (final === null) return null;
  const citable = citableOf(facts);
  const { text, isCut } = cutToTokens(readCitations(final.text, citable).text, maxTokens);
  if (!/[\p{L}\p{N}]/u.test(text)) return null;
  const { messages } = readCitations(text, citable);
  return { answer: text, citedMessages: messages, truncated: isCut || final.isCut, by: "model" };
}

const citableOf = (facts: readonly Fact[]) => ({
  summaries: new Set<never>(),
  messages: new Set(facts.map(({ id }) => id)),
  texts: facts.map(({ statement }) => statement),
});

interface Condensing {
  readonly question: string;
  readonly ask: (prompt: Prompt, maxTokens: number) => Promise<{ readonly text: string } | null>;
  readonly concurrency: number;
}

/** The facts as text that fits into one call: all of them, or condensed part by part. Null if the model fails. */
async function condense(facts: readonly Fact[], { question, ask, concurrency }: Condensing): Promise<string | null> {
  const citable = citableOf(facts);
  let notes = facts.map(factLine);
  for (let round = 0; round < roundsMax && tokensOf(notes) > readTokens; round++) {
    const parts = partsWithin(notes, readTokens);
    const condensed: string[] = [];
    for (let from = 0; from < parts.length; from += concurrency) {
      const said = await Promise.all(
        parts.slice(from, from + concurrency).map(async (part) => {
          const about = { question, facts: part.join("\n"), maxTokens: condensedTokens };
          return await ask(condenseFactsPrompt(about), condensedTokens);
        }),
      );
      for (const each of said) {
        if (each === null) return null;
        condensed.push(cutToTokens(readCitations(each.text, citable).text, 2 * condensedTokens).text);
      }
    }
    notes = condensed;
  }
  return notes.join("\n");
}

const tokensOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + estimateTokens(text), 0);

function partsWithin(texts: readonly string[], tokensMax: number): readonly (readonly string[])[] {
  const parts: string[][] = [[]];
  let tokens = 0;
  for (const text of texts) {
    const more = estimateTokens(text);
    if (tokens + more > tokensMax && tokens > 0) {
      parts.push([]);
      tokens = 0;
    }
    parts.at(-1)?.push(text);
    tokens += more;
  }
  return parts;
}

/** The facts themselves, for when no model answers from them. */
function listed(facts: readonly Fact[], report: MapReport, request: ThoroughRequest) {
  const { maxTokens = maxTokensDefault } = request;
  const none = `None of ${plural(report.results.length, "message")} that were read says anything about it.`;
  const lines = facts.length === 0 ? [none] : [countLines(countFacts(facts), report), ...facts.map(factLine)];
  const { text, isCut } = cutToTokens(lines.join("\n"), maxTokens);
  return { answer: text, citedMessages: readCitations(text, citableOf(facts)).messages, truncated: isCut };
}

/** What is missing, as clauses; null if nothing is. */
function partialOf({ plan, unread, stopped }: MapReport, isUnanswered: boolean): string | null {
  const clauses = [
    unreadWords(unread),
    stopped,
    ...leftOutWords({ ...plan, skipped: nothingSkipped, beyond: nothingBeyond }),
    isUnanswered ? "the model gave no answer from the facts, so they are listed" : null,
  ].filter((clause) => clause !== null);
  return clauses.length === 0 ? null : clauses.join("; ");
}

/** What is skipped bears on nothing, and what is beyond the budget is unread. */
const nothingSkipped = { empty: 0, own_tool: 0, aside: 0, copy: 0 };
const nothingBeyond = { messages: 0, calls: 0, tokens: 0 };
