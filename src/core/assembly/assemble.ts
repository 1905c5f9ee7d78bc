/**
 * The messages for one model call: as much of the context as the budget holds, newest first, read from the store
 * alone. No model is asked, nothing is written, and only what is shown is read.
 *
 * What is shown stays put. Between folds the output only grows at its end, so that a provider's cache holds. When the
 * context outgrows the budget, it is evicted from its oldest end in large steps (evict.ts), and a fixed note stands
 * first. Only a result that comes late changes what was shown before: it takes its place behind its call.
 *
 * The newest user message is always shown. If it is evicted, its words stand between the note and what is kept, whole
 * or, if they are a large part of the budget (an eighth to a quarter), shortened. So they stay as long as the cut does.
 *
 * The fresh tail is not evicted, unless it is itself more than the budget. Then this is the rule, in order, until what
 * is left fits:
 *
 * 1. the tail is evicted like the rest, up to the newest user message;
 * 2. results of tools are shortened, the largest first, to no less than 64 tokens;
 * 3. so is everything else but that message;
 * 4. calls with their results, and other messages after that message, are left out, oldest first;
 * 5. the newest user message is shortened;
 * 6. nothing is shown but the note. A budget that cannot hold one short message is no budget.
 *
 * The report says which of these came to pass.
 */

import type { HostMessage } from "../messages/codec.ts";
import { createDrafter, noteTokens } from "./build-prompt.ts";
import type { Draft, Drafter, Output } from "./build-prompt.ts";
import { cutsTo, frontMax } from "./eviction.ts";
import type { Sizes } from "./eviction.ts";
import type { ContextItem, ConversationId, Message, MessageId, SummaryId } from "../model/types.ts";
import { safeCuts } from "../messages/tool-calls.ts";
import type { Store } from "../model/store.ts";
import { costOf, findNewestUser, isMessage, isUserText, readShown, shorten, wordsOf } from "./prompt-items.ts";
import type { Shown } from "./prompt-items.ts";
import { sumTokens } from "../base/tokens.ts";
import { mustFind } from "../model/find-conversation.ts";
import { promptTokens } from "../model/prompt-cost.ts";
import { tailLookback, tailStart } from "../messages/fresh-tail.ts";

export interface AssembleRequest {
  readonly conversation: ConversationId;
  readonly budget: number;
  readonly freshTailCount: number;
}

export interface Assembly {
  readonly messages: readonly HostMessage[];
  readonly report: AssemblyReport;
}

export interface Share {
  readonly items: number;
  readonly tokens: number;
}

export interface AssemblyReport {
  readonly budget: number;
  /** Of the messages as returned: never more than the budget. */
  readonly tokens: number;
  /** The whole context; without its oldest part; with a part of the fresh tail only; with texts cut; nothing at all. */
  readonly outcome: "whole" | "evicted" | "tail_cut" | "shortened" | "starved";
  readonly summaries: Share;
  /** Raw messages outside the fresh tail, and in it. */
  readonly older: Share;
  readonly tail: Share;
  /** What was said that nobody said: the note on what is not shown, and stand-ins for results. */
  readonly notes: Share;
  /** Items of the context that are not shown for want of room. */
  readonly evicted: Share;
  /** Items that say nothing, or that the host keeps out of prompts. */
  readonly leftOut: Share;
  readonly standIns: number;
  /** Results shown as text because their call is not shown. */
  readonly loose: number;
  readonly shortened: number;
  readonly depths: readonly (Share & { readonly depth: number })[];
  /** Where each message comes from, in their order. */
  readonly origins: readonly Origin[];
}

export type Origin =
  | { readonly kind: "summary"; readonly id: SummaryId; readonly depth: number; readonly tokens: number }
  | {
      readonly kind: "message";
      readonly id: MessageId;
      readonly role: Message["role"];
      readonly part: "older" | "tail";
      readonly tokens: number;
    }
  | { readonly kind: "note"; readonly tokens: number };

export async function assemble(store: Store, request: AssembleRequest): Promise<Assembly> {
  const window = await readWindow(store, request);
  const { tail, tailCount } = window;
  const [planned = 0] = cutsTo(tail ?? window.items.length - 1, window).take(1);
  // Near the tail a little more is read: a call whose result is in the tail belongs to it.
  const from = tail === null || planned <= tail - tailLookback ? planned : Math.max(0, tail - tailLookback);
  const shown = await readShown(store, window.items, from);
  const draft = createDrafter(store, window);

  const wholeTail = tail === null ? null : startOfTail(shown, tailCount);
  const newestUser = shown.findLast(isUserText) ?? null;
  const userBefore = createUserBefore(store, newestUser, shown, window);
  const floors = [wholeTail, tail, newestUser?.position ?? null].filter((floor) => floor !== null);
  for (const floor of floors) {
    for (const cut of cutsTo(floor, window)) {
      if (cut < from) continue;
      const kept = itemsFrom(shown, cut, floor);
      const user = await userBefore(kept);
      const front = user === null ? [] : (shorten(user, frontMax(window.budget, window.before[cut] ?? 0)) ?? user);
      const fitting = await draft([front, kept].flat());
      if (fitting !== null) return toAssembly(fitting, window, wholeTail);
    }
  }
  const start = newestUser === null ? from : newestUser.position + 1;
  const after = itemsFrom(shown, start, window.items.length - 1);
  return toAssembly(await squeeze(await userBefore(after), after, window.budget, draft), window, wholeTail);
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The newest items of the context, more than the budget holds or all there are, with what they would cost. */
interface Window extends Sizes {
  readonly conversation: ConversationId;
  readonly items: readonly ContextItem[];
  readonly totalItems: number;
  readonly tailCount: number;
  /** Where the last `tailCount` raw messages begin, or all of them; null if that is before the window. */
  readonly tail: number | null;
}

async function readWindow(store: Store, request: AssembleRequest): Promise<Window> {
  const conversation = await mustFind(store, request.conversation);
  const { totals } = conversation;
  const budget = request.budget >= 0 ? Math.floor(request.budget) : 0;
  const tailCount = Math.max(1, request.freshTailCount);
  const held = Math.min(1, (1.1 * budget + 1) / (promptTokens(totals) + 1));
  let limit = Math.ceil(totals.contextItems * held) + tailLookback;
  for (;;) {
    // Each look is one read, not a page more: a fold between two pages would show its run twice.
    const items = await store.context(conversation.id, { limit, keep: "newest" });
    const isWhole = items.length < limit;
    const tokens = items.reduce((sum, item) => sum + costOf(item), 0);
    if (isWhole || tokens > budget) {
      const total = isWhole ? tokens : Math.max(tokens, promptTokens(totals));
      let older = total - tokens;
      const before = items.map((item) => {
        older += costOf(item);
        return older - costOf(item);
      });
      const raw = items.flatMap((item, position) => (item.kind === "message" ? [position] : []));
      const isAllRaw = isWhole || raw.length >= totals.contextMessages;
      return {
        conversation: conversation.id,
        budget,
        total,
        before,
        items,
        totalItems: isWhole ? items.length : Math.max(items.length, totals.contextItems),
        tailCount,
        tail: raw.at(-tailCount) ?? (isAllRaw ? (raw[0] ?? Math.max(0, items.length - 1)) : null),
      };
    }
    limit *= 2;
  }
}

/** Where the fresh tail begins, so that no result in it is without its call. */
function startOfTail(shown: readonly Shown[], tailCount: number): number {
  const newest = shown.filter(({ source }) => isMessage(source)).slice(-tailCount - tailLookback);
  const start = tailStart(
    newest.map(({ ties }) => ties),
    tailCount,
  );
  return newest[start]?.position ?? shown.at(-1)?.position ?? 0;
}

/** What a cut leaves. Results next to it, whose calls it has cut off, are cut off too, up to the floor; words stay. */
function itemsFrom(shown: readonly Shown[], cut: number, floor: number): readonly Shown[] {
  const isLeft = ({ position, ties }: Shown): boolean =>
    position >= cut && (cut === 0 || position >= floor || ties.answers.length === 0);
  const at = shown.findIndex(isLeft);
  const first = shown[at];
  if (first === undefined) return [];
  return [cut === 0 ? first : wordsOf(first), ...shown.slice(at + 1)];
}

// ── The newest user message ──────────────────────────────────────────────────────────────────────────────────────────

/** Gives the newest user message, if these items are without it: it lies before them, and they do not sum it up. */
function createUserBefore(
  store: Store,
  newestRead: Shown | null,
  shown: readonly Shown[],
  window: Window,
): (kept: readonly Shown[]) => Promise<Shown | null> {
  // What is stored meanwhile is newer than all that is shown, and must not stand before it.
  const newestSeq = shown.reduce((newest, { source }) => Math.max(newest, isMessage(source) ? source.seq : newest), -1);
  const wasStored = ({ id, seq }: Message, coveredBy: readonly SummaryId[]): boolean =>
    seq <= newestSeq || coveredBy.length > 0 || window.items.some((item) => item.id === id);
  let found: ReturnType<typeof findNewestUser> | null = null;
  return async (kept) => {
    if (newestRead !== null) return newestRead.position < (kept[0]?.position ?? Infinity) ? wordsOf(newestRead) : null;
    if (kept.length === window.totalItems) return null;
    const newest = await (found ??= findNewestUser(store, window.conversation, wasStored));
    if (newest === null) return null;
    const coveredBy: ReadonlySet<unknown> = new Set(newest.coveredBy);
    return kept.some(({ source }) => coveredBy.has(source.id)) ? null : wordsOf(newest.user);
  };
}

// ── When even the tail does not fit ──────────────────────────────────────────────────────────────────────────────────

/** Steps 2 to 6 of the rule above. */
async function squeeze(
  user: Shown | null,
  after: readonly Shown[],
  budget: number,
  draft: Drafter,
): Promise<Draft | null> {
  const first = user === null ? [] : [user];
  let rest = after;
  for (const isTouched of [isResult, () => true]) {
    const whole: readonly Shown[] = rest;
    for (let most = budget; most >= shortestTokens; most = Math.floor(most / 2)) {
      const tokensMax = most;
      rest = whole.flatMap((shown) => (isTouched(shown) ? (shorten(shown, tokensMax) ?? []) : shown));
      const fitting = await draft([...first, ...rest]);
      if (fitting !== null) return fitting;
    }
  }
  for (const cut of safeCuts(rest.map(({ ties }) => ties))) {
    const fitting = await draft([...first, ...rest.slice(cut)]);
    if (fitting !== null) return fitting;
  }
  for (const most of [budget - noteTokens, budget]) {
    const shorter = user === null ? null : shorten(user, most);
    const fitting = shorter === null ? null : await draft([shorter]);
    if (fitting !== null) return fitting;
  }
  return null;
}

const shortestTokens = 64;

const isResult = ({ ties }: Shown): boolean => ties.answers.length > 0;

// ── Reporting ────────────────────────────────────────────────────────────────────────────────────────────────────────

function toAssembly(draft: Draft | null, window: Window, wholeTail: number | null): Assembly {
  const { kept, outputs, hidden, tokens, standIns, loose } = draft ?? { ...emptyDraft, hidden: window.totalItems };
  const origins = outputs.map((output) => originOf(output, wholeTail ?? 0));
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
      older: shareOf(raw.filter(({ part }) => part === "older")),
      tail: shareOf(raw.filter(({ part }) => part === "tail")),
      notes: shareOf(origins.filter(({ kind }) => kind === "note")),
      evicted: { items: hidden, tokens: Math.max(0, window.total - keptCost) },
      leftOut: shareOf(kept.filter(({ message }) => message === null).map(({ cost }) => ({ tokens: cost }))),
      standIns,
      loose,
      shortened: kept.filter(({ isShortened }) => isShortened).length,
      depths: depths.map((depth) => ({ depth, ...shareOf(summaries.filter((origin) => origin.depth === depth)) })),
      origins,
    },
  };
}

const emptyDraft: Draft = { kept: [], outputs: [], tokens: 0, hidden: 0, standIns: 0, loose: 0 };

function originOf({ shown, tokens }: Output, tailFrom: number): Origin {
  if (shown === null) return { kind: "note", tokens };
  const { source, position } = shown;
  if (!isMessage(source)) return { kind: "summary", id: source.id, depth: source.depth, tokens };
  return { kind: "message", id: source.id, role: source.role, part: position >= tailFrom ? "tail" : "older", tokens };
}

function outcomeOf(kept: readonly Shown[], hidden: number, { items, tail }: Window): AssemblyReport["outcome"] {
  if (kept.some(({ isShortened }) => isShortened)) return "shortened";
  if (hidden === 0) return "whole";
  if (kept.length === 0) return "starved";
  const isTailWhole = tail !== null && kept.filter(({ position }) => position >= tail).length === items.length - tail;
  return isTailWhole ? "evicted" : "tail_cut";
}

const shareOf = (parts: readonly { readonly tokens: number }[]): Share => ({
  items: parts.length,
  tokens: sumTokens(parts),
});
