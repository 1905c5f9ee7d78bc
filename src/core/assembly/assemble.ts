/**
 * Assembles the messages for one model call: as much of the context as fits the budget, newest first.
 *
 * No model is called, nothing is written, and only what is shown is read. Between folds the prompt only grows at its
 * end, so that provider caches stay valid. When the context exceeds the budget, its oldest part is evicted in large
 * steps (eviction.ts), and a fixed note comes first. When it is smaller than it need be, stretches are shown by finer
 * texts (zoom.ts). Only a late result changes earlier output: it moves to its call.
 *
 * What users said for good comes after the summaries at the front if its message is not shown (standing-block.ts).
 *
 * The newest user message is always shown, word for word unless it is a large part of the budget (an eighth to a
 * quarter). If it is folded, it comes behind its summary; if it is evicted, between the note and the rest. The same goes
 * for an older one in whose turn the raw messages begin (turn-question.ts).
 *
 * The fresh tail is evicted only if it exceeds the budget by itself. Then these steps follow until the rest fits:
 *
 * 1. evict the tail up to the newest user message;
 * 2. shorten tool results, the largest first, to no less than 64 tokens;
 * 3. shorten everything else but that message;
 * 4. drop standing instructions, then what follows that message, oldest first, each call together with its results;
 * 5. shorten the newest user message;
 * 6. show nothing: no useful prompt is that small.
 */

import type { HostMessage } from "../messages/codec.ts";
import { createLookup, createPromptBuilder, noteTokens } from "./build-prompt.ts";
import type { BuildPrompt, BuiltPrompt, PromptMessage } from "./build-prompt.ts";
import { cutsTo, type Sizes } from "./eviction.ts";
import type { ContextItem, Conversation, ConversationId, Message, MessageId, SummaryId } from "../model/types.ts";
import { safeCuts } from "../messages/tool-calls.ts";
import type { Store } from "../model/store.ts";
import { costOf, isMessage, isUserText, readPromptItems, shorten, withoutResults } from "./prompt-items.ts";
import type { Edits, PromptItem } from "./prompt-items.ts";
import { createShowStanding, pinsRead, showNoStanding, type ShowStanding } from "./standing-block.ts";
import { createFindQuestion, withQuestion } from "./turn-question.ts";
import { isKeptSmall, roomFor, zoomIn, type ShownItem } from "./zoom.ts";
import { sumTokens } from "../base/tokens.ts";
import { mustFind } from "../model/find-conversation.ts";
import { isSameBudget, promptTokens } from "../model/prompt-cost.ts";
import { tailLookback, tailStart } from "../messages/fresh-tail.ts";

export interface AssembleRequest {
  readonly conversation: ConversationId;
  readonly budget: number;
  readonly freshTailCount: number;
  /** A smaller context is shown by finer texts up to this share of the budget. */
  readonly targetShare?: number;
  /** Standing instructions may take this share of the budget. */
  readonly pinsShare?: number;
  readonly edits?: Edits;
}

export interface Assembly {
  readonly messages: readonly HostMessage[];
  readonly report: AssemblyReport;
  /** What it was built from, for the record of the prompt (seen/record.ts). */
  readonly made: Made;
}

export interface Made extends BuiltPrompt {
  readonly conversation: ConversationId;
  /** What a kept item was shown from; those of finer texts name the summary in whose place they are. */
  readonly items: readonly ShownItem[];
  /** How many messages the conversation had. */
  readonly stored: number;
  readonly edits: Edits | null;
}

export interface Share {
  readonly items: number;
  readonly tokens: number;
}

export interface AssemblyReport {
  readonly budget: number;
  /** Tokens of the returned messages: never more than the budget. */
  readonly tokens: number;
  /** `tail_cut`: only part of the fresh tail fits. `shortened`: texts were cut. `starved`: nothing fits. */
  readonly outcome: "whole" | "evicted" | "tail_cut" | "shortened" | "starved";
  readonly summaries: Share;
  /** Summaries of the context that are shown by what they were made from, and the tokens that this adds. */
  readonly finer: Share;
  /** Raw messages outside the fresh tail. */
  readonly older: Share;
  readonly tail: Share;
  /** Messages that are not in the conversation: the eviction note, and stand-ins for results. */
  readonly notes: Share;
  /** Standing instructions whose messages are not shown, and how many more do not fit. */
  readonly standing: Share & { readonly left: number };
  /** Context items that do not fit. */
  readonly evicted: Share;
  /** Items without content, or that the host excludes from prompts. */
  readonly leftOut: Share;
  readonly standIns: number;
  /** Results shown as text because their call is not shown. */
  readonly loose: number;
  readonly shortened: number;
  readonly depths: readonly (Share & { readonly depth: number })[];
  /** The origin of each message, in order. */
  readonly origins: readonly Origin[];
}

export type Origin = {
  readonly tokens: number;
  /** The summary of the context that it is shown in place of. */
  readonly within?: SummaryId;
} & (
  | { readonly kind: "summary"; readonly id: SummaryId; readonly depth: number }
  | {
      readonly kind: "message";
      readonly id: MessageId;
      readonly role: Message["role"];
      readonly part: "older" | "tail";
    }
  /** `standing`: the messages whose words it repeats. */
  | { readonly kind: "note"; readonly standing?: readonly MessageId[] }
);

export async function assemble(store: Store, request: AssembleRequest): Promise<Assembly> {
  const window = await readWindow(store, request);
  const { tail, tailCount } = window;
  const [planned = 0] = cutsTo(tail ?? window.items.length - 1, window).take(1);
  // Near the tail, read a little more: a call whose result is in the tail belongs to the tail.
  const from = tail === null || planned <= tail - tailLookback ? planned : Math.max(0, tail - tailLookback);
  const [shown, showStanding] = await Promise.all([
    readPromptItems(store, window.items, from, request.edits),
    readStanding(store, request, window),
  ]);
  const build = createPromptBuilder(window, showStanding, createLookup(store, window.conversation));

  const wholeTail = tail === null ? null : startOfTail(shown, tailCount);
  const newestUser = shown.findLast(isUserText) ?? null;
  const findQuestion = createFindQuestion(store, { ...window, shown });
  const floors = [wholeTail, tail, newestUser?.position ?? null].filter((floor) => floor !== null);
  for (const floor of floors) {
    for (const cut of cutsTo(floor, window)) {
      if (cut < from) continue;
      const kept = itemsFrom(shown, cut, floor);
      const fitting = await build(withQuestion(kept, await findQuestion(kept), window.budget));
      if (fitting !== null) return toAssembly(fitting, window, wholeTail);
    }
  }
  const start = newestUser === null ? from : newestUser.position + 1;
  const after = itemsFrom(shown, start, window.items.length - 1);
  const user = (await findQuestion(after))?.item ?? null;
  return toAssembly(await squeeze(user, after, window.budget, build), window, wholeTail);
}

/** Read after the context: what is missing from it by then is shown here, or its message is. */
async function readStanding(
  store: Store,
  { conversation, pinsShare = 0 }: AssembleRequest,
  { budgetToFill: budget }: Window,
): Promise<ShowStanding> {
  const tokensMax = Math.floor(pinsShare * budget);
  if (tokensMax === 0) return showNoStanding;
  return createShowStanding(await store.pins(conversation, { inForce: true, limit: pinsRead }), tokensMax);
}

/** The newest context items, enough to exceed the budget or all there are, with their estimated cost. */
interface Window extends Sizes {
  readonly conversation: ConversationId;
  readonly stored: number;
  readonly edits: Edits | undefined;
  readonly budgetToFill: number;
  readonly items: readonly ShownItem[];
  readonly totalItems: number;
  readonly finer: Share;
  readonly tailCount: number;
  /** Where the last `tailCount` raw messages begin; null if that is before the window. */
  readonly tail: number | null;
}

async function readWindow(store: Store, request: AssembleRequest): Promise<Window> {
  const conversation = await mustFind(store, request.conversation);
  const { totals } = conversation;
  const budget = request.budget >= 0 ? Math.floor(request.budget) : 0;
  const tailCount = Math.max(1, request.freshTailCount);
  const share = Math.min(1, (1.1 * budget + 1) / (promptTokens(totals) + 1));
  let limit = Math.ceil(totals.contextItems * share) + tailLookback;
  for (;;) {
    // Read everything at once: a fold between two pages would show its run twice.
    const context = await store.context(conversation.id, { limit, keep: "newest" });
    const isWhole = context.length < limit;
    const contextCost = context.reduce((sum, item) => sum + costOf(item), 0);
    if (isWhole || contextCost > budget) {
      const items: readonly ShownItem[] = isWhole
        ? await zoomed(store, request, context, budgetToFill(conversation, budget))
        : context;
      const tokens = items.reduce((sum, item) => sum + costOf(item), 0);
      const total = isWhole ? tokens : Math.max(tokens, promptTokens(totals));
      let older = total - tokens;
      const before = items.map((item) => {
        older += costOf(item);
        return older - costOf(item);
      });
      const raw = items.flatMap((item, position) =>
        item.kind === "message" && item.within === undefined ? [position] : [],
      );
      const isAllRaw = isWhole || raw.length >= totals.contextMessages;
      return {
        conversation: conversation.id,
        stored: totals.messages,
        edits: request.edits,
        budget,
        budgetToFill: budgetToFill(conversation, budget),
        total,
        before,
        items,
        totalItems: isWhole ? items.length : Math.max(items.length, totals.contextItems),
        finer: { items: new Set(items.flatMap(({ within }) => within ?? [])).size, tokens: tokens - contextCost },
        tailCount,
        tail: raw.at(-tailCount) ?? (isAllRaw ? (raw[0] ?? Math.max(0, items.length - 1)) : null),
      };
    }
    limit *= 2;
  }
}

/** A host's budget varies from turn to turn, and what is shown must not follow it: the one that was stored stays. */
const budgetToFill = ({ promptBudget }: Conversation, budget: number): number =>
  promptBudget !== null && isSameBudget(promptBudget, budget, 0.2) ? promptBudget : budget;

async function zoomed(
  store: Store,
  { conversation, targetShare = 0 }: AssembleRequest,
  context: readonly ContextItem[],
  budget: number,
): Promise<readonly ShownItem[]> {
  const contextCost = context.reduce((sum, item) => sum + costOf(item), 0);
  const room = roomFor(contextCost, targetShare * budget, budget);
  return room === 0 || (await isKeptSmall(store, conversation)) ? context : await zoomIn(store, context, room);
}

/** Where the fresh tail begins, with the calls of all its results. */
function startOfTail(shown: readonly PromptItem[], tailCount: number): number {
  const newest = shown.filter(({ source }) => isMessage(source)).slice(-tailCount - tailLookback);
  const ties = newest.map((item) => item.ties);
  return newest[tailStart(ties, tailCount)]?.position ?? shown.at(-1)?.position ?? 0;
}

/** What a cut keeps. Results next to it that lost their calls are dropped too, up to the floor. */
function itemsFrom(shown: readonly PromptItem[], cut: number, floor: number): readonly PromptItem[] {
  const isLeft = ({ position, ties }: PromptItem): boolean =>
    position >= cut && (cut === 0 || position >= floor || ties.answers.length === 0);
  const at = shown.findIndex(isLeft);
  const first = shown[at];
  if (first === undefined) return [];
  return [cut === 0 ? first : withoutResults(first), ...shown.slice(at + 1)];
}

/** Steps 2 to 6 of the list above. */
async function squeeze(
  user: PromptItem | null,
  after: readonly PromptItem[],
  budget: number,
  build: BuildPrompt,
): Promise<BuiltPrompt | null> {
  const first = user === null ? [] : [user];
  let rest = after;
  for (const isTouched of [isResult, () => true]) {
    const whole: readonly PromptItem[] = rest;
    for (let most = budget; most >= shortestTokens; most = Math.floor(most / 2)) {
      const tokensMax = most;
      rest = whole.flatMap((shown) => (isTouched(shown) ? (shorten(shown, tokensMax) ?? []) : shown));
      const fitting = await build([...first, ...rest]);
      if (fitting !== null) return fitting;
    }
  }
  for (const cut of safeCuts(rest.map(({ ties }) => ties))) {
    const fitting = await build([...first, ...rest.slice(cut)], showNoStanding);
    if (fitting !== null) return fitting;
  }
  for (const most of [budget - noteTokens, budget]) {
    const shorter = user === null ? null : shorten(user, most);
    const fitting = shorter === null ? null : await build([shorter], showNoStanding);
    if (fitting !== null) return fitting;
  }
  return null;
}

const shortestTokens = 64;

const isResult = ({ ties }: PromptItem): boolean => ties.answers.length > 0;

/** What a report says of a prompt besides what it was built from. */
export type Frame = Pick<
  Window,
  "budget" | "items" | "total" | "totalItems" | "finer" | "tail" | "conversation" | "stored" | "edits"
>;

export function toAssembly(prompt: BuiltPrompt | null, window: Frame, wholeTail: number | null): Assembly {
  const built = prompt ?? { ...emptyPrompt, hidden: window.totalItems };
  const { kept, outputs, hidden, tokens, standIns, loose, standing } = built;
  const origins = outputs.map((output): Origin => {
    if (standing !== null && output.message === standing.message)
      return { kind: "note", standing: standing.pins.map((pin) => pin.message), tokens: output.tokens };
    return originOf(output, wholeTail ?? 0, window.items);
  });
  const summaries = origins.filter((origin) => origin.kind === "summary");
  const raw = origins.filter((origin) => origin.kind === "message");
  const keptCost = kept.reduce((sum, { cost }) => sum + cost, 0);
  const depths = [...new Set(summaries.map(({ depth }) => depth))].toSorted((a, b) => a - b);
  return {
    messages: outputs.map(({ message }) => message),
    report: {
      budget: window.budget,
      tokens,
      outcome: outcomeOf(kept, hidden, window),
      summaries: shareOf(summaries),
      finer: window.finer,
      older: shareOf(raw.filter(({ part }) => part === "older")),
      tail: shareOf(raw.filter(({ part }) => part === "tail")),
      notes: shareOf(origins.filter((origin) => origin.kind === "note" && origin.standing === undefined)),
      standing: {
        items: standing?.pins.length ?? 0,
        tokens: standing?.tokens ?? 0,
        left: standing?.left ?? 0,
      },
      evicted: { items: hidden, tokens: Math.max(0, window.total - keptCost) },
      leftOut: shareOf(kept.filter(({ message }) => message === null).map(({ cost }) => ({ tokens: cost }))),
      standIns,
      loose,
      shortened: kept.filter(({ cuts }) => cuts.length > 0).length,
      depths: depths.map((depth) => ({ depth, ...shareOf(summaries.filter((origin) => origin.depth === depth)) })),
      origins,
    },
    made: {
      ...built,
      conversation: window.conversation,
      items: window.items,
      stored: window.stored,
      edits: window.edits ?? null,
    },
  };
}

const emptyPrompt: BuiltPrompt = {
  kept: [],
  outputs: [],
  tokens: 0,
  hidden: 0,
  standIns: 0,
  elsewhere: [],
  loose: 0,
  standing: null,
};

function originOf({ item, tokens }: PromptMessage, tailFrom: number, items: readonly ShownItem[]): Origin {
  if (item === null) return { kind: "note", tokens };
  const { source, position } = item;
  const within = items[position]?.within;
  const about = { tokens, ...(within === undefined ? {} : { within }) };
  if (!isMessage(source)) return { kind: "summary", id: source.id, depth: source.depth, ...about };
  return { kind: "message", id: source.id, role: source.role, part: position >= tailFrom ? "tail" : "older", ...about };
}

function outcomeOf(kept: readonly PromptItem[], hidden: number, { items, tail }: Frame): AssemblyReport["outcome"] {
  if (kept.some(({ cuts }) => cuts.length > 0)) return "shortened";
  if (hidden === 0) return "whole";
  if (kept.length === 0) return "starved";
  const isTailWhole = tail !== null && kept.filter(({ position }) => position >= tail).length === items.length - tail;
  return isTailWhole ? "evicted" : "tail_cut";
}

const shareOf = (parts: readonly { readonly tokens: number }[]): Share => ({
  items: parts.length,
  tokens: sumTokens(parts),
});
