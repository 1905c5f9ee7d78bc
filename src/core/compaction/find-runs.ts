/**
 * Finds the next leaf run in a stored context by reading a small window, never the whole context. So the cost of a pass
 * depends on what it folds, not on the length of the conversation.
 */

import { readableMessage } from "../messages/codec.ts";
import type { ContextItem, ConversationId, Message, MessageId } from "../model/types.ts";
import { tiesOf, untied, type Ties } from "../messages/tool-calls.ts";
import { leafRun, type End, type Rules } from "./choose-runs.ts";
import type { Store } from "../model/store.ts";
import { sumTokens } from "../base/tokens.ts";
import { tailLookback, tailStart } from "../messages/fresh-tail.ts";

/** Raw messages to fold into a leaf: their context items, and the messages themselves. */
export interface LeafRun {
  readonly items: readonly ContextItem[];
  readonly messages: readonly Message[];
}

type Contexts = Pick<Store, "context" | "messages">;

/** Items in a window; the second size is used when the first is too small for a pass. */
const windowItems = [256, 1_024];
/** Most messages that are kept for their tokens. */
const keptMax = 1_024;
/** How many messages beyond a full chunk are searched for results of its calls. */
const lookahead = 32;

/** `keptTokens`: how much of the newest raw messages is left alone beside the fresh tail. */
type FinderRules = Rules & { readonly keptTokens?: number };

/**
 * Goes forward from the oldest raw message, or backward from what is kept. The finder returns null if there is no run
 * left. Runs do not overlap, so it must be called for one at a time.
 */
export function createLeafFinder(store: Contexts, conversation: ConversationId, given: FinderRules, from: End) {
  let after = Number.MIN_SAFE_INTEGER;
  let before: number | null = null;
  return async (chunkTokens: number): Promise<LeafRun | null> => {
    const rules = { ...given, chunkTokens };
    before ??= await tailOrdinal(store, conversation, rules.freshTailCount, rules.keptTokens);
    for (;;) {
      const keep = from;
      const [start] = await store.context(conversation, { after, before, kind: "message", limit: 1, keep });
      if (start === undefined) return null;
      const edge = start.ordinal;
      const bounds = from === "oldest" ? { after: edge - 1, before } : { after, before: edge + 1 };
      let adjacent = none;
      for (const limit of windowItems) {
        adjacent = adjacentRaw(await store.context(conversation, { ...bounds, limit, keep }), limit, rules, from);
        if (!adjacent.isCut) break;
      }
      const run = await pickRun(store, adjacent, rules, from);
      // The run is not offered again even if it is not folded; messages too short for a run are skipped.
      const used = run?.items ?? adjacent.items;
      if (from === "oldest") after = used.at(-1)?.ordinal ?? edge;
      else before = used[0]?.ordinal ?? edge;
      if (run !== null) return run;
    }
  };
}

/** Adjacent raw messages at the near end of a window. */
interface AdjacentRaw {
  /** As many as a pass can take, plus a few that may contain results of its calls. */
  readonly items: readonly ContextItem[];
  /** A summary or the end of the context follows: there are no further adjacent raw messages. */
  readonly isWhole: boolean;
  /** The window ended although a pass can take more. */
  readonly isCut: boolean;
}

const none: AdjacentRaw = { items: [], isWhole: true, isCut: false };

function adjacentRaw(window: readonly ContextItem[], limit: number, rules: Rules, from: End): AdjacentRaw {
  const nearFirst = from === "oldest" ? window : window.toReversed();
  const end = nearFirst.findIndex((item) => item.kind === "summary");
  const raw = end === -1 ? nearFirst : nearFirst.slice(0, end);
  let tokens = 0;
  const full = raw.findIndex((item) => (tokens += item.tokens) > rules.chunkTokens);
  const near = full === -1 ? raw : raw.slice(0, full + 1 + lookahead);
  const isWhole = near.length === raw.length && (end !== -1 || window.length < limit);
  const isCut = near.length === raw.length && !isWhole;
  return { items: from === "oldest" ? near : near.toReversed(), isWhole, isCut };
}

async function pickRun(
  store: Contexts,
  { items, isWhole }: AdjacentRaw,
  rules: Rules,
  from: End,
): Promise<LeafRun | null> {
  if (isWhole && sumTokens(items) < rules.leafMinTokens) return null;
  const messages = await store.messages({ ids: items.map(messageId) });
  if (messages.length !== items.length) return null; // One was deleted after the window was read; read again.
  const candidates = messages.map((message, at) => ({ tokens: items[at]?.tokens ?? 0, ties: tiesOfStored(message) }));
  const range = leafRun(candidates, { from, isMore: !isWhole }, rules);
  return range === null ? null : { items: items.slice(...range), messages: messages.slice(...range) };
}

const messageId = (item: ContextItem): MessageId => item.id as MessageId;

/** The parts of most messages show that there is no call or result, so the message need not be rebuilt. */
function tiesOfStored(message: Message): Ties {
  const mayTie =
    message.role === "tool" || message.parts.some(({ type, toolCallId }) => type === "tool" || toolCallId !== null);
  return mayTie ? tiesOf(readableMessage(message)) : untied;
}

/**
 * The ordinal at which the fresh tail begins, or earlier so that about `keptTokens` are after it; past every ordinal if
 * there is no tail.
 */
export async function tailOrdinal(
  store: Contexts,
  conversation: ConversationId,
  freshTailCount: number,
  keptTokens = 0,
): Promise<number> {
  if (freshTailCount === 0 && keptTokens === 0) return Number.MAX_SAFE_INTEGER;
  const limit = Math.max(freshTailCount, keptTokens > 0 ? keptMax : 0) + tailLookback;
  const newest = await store.context(conversation, { kind: "message", limit, keep: "newest" });
  let tokens = 0;
  const within = newest.length - 1 - newest.findLastIndex((item) => (tokens += item.tokens) > keptTokens);
  const count = Math.max(freshTailCount, Math.min(within, limit - tailLookback));
  const items = newest.slice(-count - tailLookback);
  const messages = await store.messages({ ids: items.map(messageId) });
  const start = tailStart(messages.map(tiesOfStored), count);
  return items[start]?.ordinal ?? Number.MAX_SAFE_INTEGER;
}
