/** Reads the messages that a search found, with those around them, and plans what is shown of them. */

import { cutPassage, showParts } from "../../base/cut-passage.ts";
import { quote, type TextRange } from "../../base/excerpt.ts";
import { estimateTokens } from "../../base/tokens.ts";
import { readableMessage } from "../../messages/codec.ts";
import { isFailedResult } from "../../messages/dialects.ts";
import { resultsOf } from "../../messages/tool-calls.ts";
import type { SearchHit, Store } from "../../model/store.ts";
import { messageIdOf, type Message, type MessageId, type Part } from "../../model/types.ts";
import { lookAhead, lookBack, passageRules, planPassages } from "./passages.ts";
import type { Passage, PassageBudget } from "./passages.ts";
import type { PassageHit, Turn } from "./views.ts";
import { readableText } from "../readable-text.ts";

type MessageHit = Extract<SearchHit, { readonly kind: "message" }>;
type SummaryHit = Extract<SearchHit, { readonly kind: "summary" }>;

/** Around so many of the best hits, calls and questions are looked for further away. */
const widelyRead = 8;
const nearby = 2;

/**
 * What to show of message hits, which are in order; see `planPassages`. `costOf` counts what a plan really takes: some
 * headings are longer than most, and the plan is then made again for less. Work depends on the budget alone.
 */
export async function readPassages(
  store: Store,
  hits: readonly SearchHit[],
  budget: PassageBudget,
  costOf?: (groups: readonly (readonly Passage[])[]) => number,
): Promise<readonly (readonly Passage[])[]> {
  const most = Math.ceil((2 * budget.tokens) / (budget.headingTokens + passageRules.least));
  const found = hits.filter((hit): hit is MessageHit => hit.kind === "message").slice(0, most);
  const read = new Map((await readAround(store, found)).map((each) => [each.turn.id, each]));
  const best = found[0]?.score ?? 0;
  const told = found.flatMap(({ id, score }) => {
    const hit = read.get(id);
    return hit === undefined ? [] : { ...hit, share: best > 0 ? score / best : 1 };
  });
  const around = [...read.values()].map(({ turn }) => turn);
  const plan = (tokens: number) => planPassages(told, around, { ...budget, tokens });
  let [tokens, groups] = [budget.tokens, plan(budget.tokens)];
  for (let cost = costOf?.(groups) ?? 0; cost > budget.tokens && tokens > 0; cost = costOf?.(groups) ?? 0) {
    tokens = Math.floor(Math.min(tokens - 8, lessShare * tokens * (budget.tokens / cost)));
    groups = plan(Math.max(0, tokens));
  }
  return groups;
}

/** A plan that takes too much is made again for a little less than the budget relates to it. */
const lessShare = 0.99;

async function readAround(store: Store, hits: readonly MessageHit[]): Promise<readonly PassageHit[]> {
  const ids = new Set<MessageId>();
  for (const [rank, { conversation, seq }] of hits.entries()) {
    const [back, ahead] = rank < widelyRead ? [lookBack, lookAhead] : [nearby, nearby];
    for (let at = Math.max(1, seq - back); at <= seq + ahead; at++) ids.add(messageIdOf(conversation, at));
  }
  const found = new Map(hits.map(({ id, focus }) => [id, focus]));
  const messages = ids.size === 0 ? [] : await store.messages({ ids: [...ids] });
  const ownCalls = new Set(
    messages.flatMap(({ parts }) => parts.filter(isOwnCall).map(({ toolCallId }) => toolCallId)),
  );
  const isRecalled = ({ answers }: Turn): boolean => answers.some((call) => ownCalls.has(call));
  // Notes, abandoned branches and earlier searches explain nothing, unless they are what was found.
  return messages
    .filter(({ id, aside, parts }) => found.has(id) || (aside === null && !parts.some(isOwnCall)))
    .map((message) => toTurn(message, found.get(message.id)))
    .filter(({ turn }) => found.has(turn.id) || !isRecalled(turn));
}

/** A call of one of our own tools, by whatever prefix a host gives it. */
const isOwnCall = ({ toolName }: Part): boolean => toolName !== null && /lcm_[a-z]/.test(toolName);

/** The part of each summary that matches, with room for at least the best one. */
export async function readSummaryParts(
  store: Store,
  hits: readonly SummaryHit[],
  { tokens, headingTokens }: PassageBudget,
): Promise<readonly { readonly hit: SummaryHit; readonly text: string }[]> {
  const count = Math.max(1, Math.min(hits.length, Math.floor(tokens / (headingTokens + summaryTokens))));
  const summaries = new Map(
    (await store.summaries({ ids: hits.slice(0, count).map(({ id }) => id) })).map((each) => [each.id, each]),
  );
  let left = tokens;
  return hits.slice(0, count).flatMap((hit, at) => {
    const text = summaries.get(hit.id)?.text ?? "";
    // Lines are quoted, which takes a little more.
    const room = 0.9 * (left / (count - at) - headingTokens - 1);
    const part = cutPassage(text, hit.focus, Math.floor(room));
    if (part === null) return [];
    const shown = showParts(text, [part]);
    left -= headingTokens + 1 + estimateTokens(quote(shown));
    return [{ hit, text: shown }];
  });
}

/** What is shown of a summary at least. */
const summaryTokens = 60;

const nowhere: TextRange = { from: 0, to: 0 };

function toTurn(message: Message, focus = nowhere): PassageHit {
  const { id, conversation, seq, role, at } = message;
  const { text, calls, locate } = readableText(message, { kind: "brief", focus });
  const results = role === "tool" || role === "user" ? resultsOf(readableMessage(message)) : [];
  const isFailed = results.some(({ holder }) => isFailedResult(holder));
  const answers = results.map((result) => result.id);
  const place = locate(focus);
  const isHidden = focus.to - focus.from > 1 && place.to - place.from <= 1;
  return { turn: { id, conversation, seq, role, at, text, calls, answers, isFailed }, focus: place, isHidden };
}
