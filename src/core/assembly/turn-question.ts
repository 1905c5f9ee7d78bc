/**
 * Finds the question of a turn that a prompt shows from its middle on. The newest raw messages often begin there: what
 * came before is folded or evicted, and the question with it. It is shown word for word, behind the summary that covers
 * it, or first if it was evicted.
 *
 * What it is depends on where the raw messages begin, and on nothing newer. So it changes only when that does.
 */

import type { ContextItem, ConversationId, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { frontMax } from "./eviction.ts";
import {
  isMessage,
  isUserText,
  presentItem,
  shorten,
  withoutResults,
  type Edits,
  type PromptItem,
} from "./prompt-items.ts";

export interface Question {
  readonly item: PromptItem;
  /** The summary behind which it is shown; null if it comes first. */
  readonly after: SummaryId | null;
  /** Where the raw messages of its turn begin. */
  readonly seq: number;
}

/** Null if the kept items show it, or begin with a question of their own. */
export type FindQuestion = (kept: readonly PromptItem[]) => Promise<Question | null>;

interface About {
  readonly conversation: ConversationId;
  /** What was listed of the context, and which of it was read. */
  readonly items: readonly Pick<ContextItem, "id">[];
  readonly shown: readonly PromptItem[];
  readonly edits: Edits | undefined;
}

export function createFindQuestion(store: Store, about: About): FindQuestion {
  const lookups = new Map<number, ReturnType<typeof findUserText>>();
  return async (kept) => {
    const lastSummary = kept.findLastIndex(({ source }) => !isMessage(source));
    const first = kept.slice(lastSummary + 1).find(({ message }) => message !== null);
    if (first !== undefined && isUserText(first)) return null;
    const isOutdated = kept.some(isUserText);
    if (isOutdated && lastSummary < 0) return null;
    const seq = first !== undefined && isMessage(first.source) ? first.source.seq : unknownSeq;
    const before = lastSummary < 0 && first !== undefined ? rawBefore(about.shown, first) : [];
    const read = before.findLast(isUserText);
    if (read !== undefined) return { item: withoutResults(read), after: null, seq };
    if (lastSummary < 0 && (before[0] ?? first)?.position === 0) return null; // Nothing is older.
    if (!lookups.has(seq)) lookups.set(seq, findUserText(store, about, seq));
    const found = (await lookups.get(seq)) ?? null;
    if (found === null || kept.some(({ source }) => source.id === found.item.source.id)) return null;
    const coveredBy: ReadonlySet<unknown> = new Set(found.coveredBy);
    const after = kept.map(({ source }) => source.id as SummaryId).find((id) => coveredBy.has(id)) ?? null;
    return after === null && isOutdated ? null : { item: withoutResults(found.item), after, seq };
  };
}

/** The raw messages directly before an item that were read. */
function rawBefore(shown: readonly PromptItem[], { position }: PromptItem): readonly PromptItem[] {
  const before = shown.filter((item) => item.position < position);
  return before.slice(before.findLastIndex(({ source }) => !isMessage(source)) + 1);
}

/** Shortened if it would take more than an eighth to a quarter of the budget: above it, a sweep is due at three quarters. */
export function withQuestion(
  kept: readonly PromptItem[],
  question: Question | null,
  budget: number,
): readonly PromptItem[] {
  if (question === null) return kept;
  const { item, after, seq } = question;
  const at = after === null ? 0 : kept.findIndex(({ source }) => source.id === after) + 1;
  return kept.toSpliced(at, 0, shorten(item, frontMax(budget, seq)) ?? item);
}

/** No raw messages are kept behind the summaries. */
const unknownSeq = Number.MAX_SAFE_INTEGER;
/** How many user messages are read at a time: in some dialects most of them are tool results. */
const userMessagesMax = 1_024;
/** How far back a question is looked for: every prompt of its turn waits for this. */
const lookbackMax = 16_384;

/** The newest user text before a message, and the summaries that cover it. */
async function findUserText(
  store: Store,
  { conversation, items, edits }: About,
  seq: number,
): Promise<{ readonly item: PromptItem; readonly coveredBy: readonly SummaryId[] } | null> {
  const within = {
    conversation,
    role: "user",
    keep: "newest",
    ...(seq === unknownSeq ? {} : { afterSeq: seq - lookbackMax - 1 }),
  } as const;
  let beforeSeq = seq;
  for (let limit = 1; ; limit = Math.min(4 * limit, userMessagesMax)) {
    const newest = await store.messages({ ...within, limit, beforeSeq });
    for (const message of newest.toReversed()) {
      if (message.aside !== null) continue;
      const item = await presentItem(store, message, { position: -1, cost: message.tokens }, edits);
      if (!isUserText(item)) continue;
      const coveredBy = await store.coveredBy(message.id);
      if (coveredBy.length > 0) return { item: { ...item, cost: 0 }, coveredBy };
      // A message stored after the context was read is newer than everything in it.
      if (seq !== unknownSeq || items.some(({ id }) => id === message.id)) return { item, coveredBy };
    }
    const [oldest] = newest;
    if (oldest === undefined || newest.length < limit) return null;
    beforeSeq = oldest.seq;
  }
}
