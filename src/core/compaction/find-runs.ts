/**
 * Finding the next run of a stored context without reading the context: a window around a frontier, as many messages
 * as one pass takes. So a pass costs what it folds, however long the conversation is.
 */

import { messageFromStore } from "../messages/codec.ts";
import type { ContextItem, ConversationId, Message, MessageId } from "../model/types.ts";
import { tiesOf, untied } from "../messages/tool-calls.ts";
import type { Ties } from "../messages/tool-calls.ts";
import { leafRun } from "./choose-runs.ts";
import type { Rules, Stretch } from "./choose-runs.ts";
import type { Store } from "../model/store.ts";
import { sumTokens } from "../base/tokens.ts";
import { tailLookback, tailStart } from "../messages/fresh-tail.ts";

/** Raw messages to be folded into a leaf: their places in the context, and what they say. */
export interface LeafRun {
  readonly items: readonly ContextItem[];
  readonly messages: readonly Message[];
}

export interface LeafFinder {
  /** The next run, each given out once; null when there is none left. Runs do not overlap. */
  next(): Promise<LeafRun | null>;
}

/** How many items a window holds: the second number if the first were too few for a pass. */
const windowItems = [256, 1_024];
/** How many messages beyond a full chunk are looked at for results of its calls. */
const lookahead = 32;

/** From the oldest raw message on, or from the fresh tail back. */
export function createLeafFinder(
  store: Store,
  conversation: ConversationId,
  rules: Rules,
  from: Stretch["from"],
): LeafFinder {
  let after = Number.MIN_SAFE_INTEGER;
  let before: number | null = null;
  let turn: Promise<unknown> = Promise.resolve();

  const find = async (): Promise<LeafRun | null> => {
    before ??= await tailOrdinal(store, conversation, rules.freshTailCount);
    for (;;) {
      const keep = from;
      const [start] = await store.context(conversation, { after, before, kind: "message", limit: 1, keep });
      if (start === undefined) return null;
      const edge = start.ordinal;
      const bounds = from === "oldest" ? { after: edge - 1, before } : { after, before: edge + 1 };
      let seen = nothing;
      for (const limit of windowItems) {
        seen = stretchOf(await store.context(conversation, { ...bounds, limit, keep }), limit, rules, from);
        if (!seen.isCut) break;
      }
      const { stretch } = seen;
      const run = await pick(store, stretch, seen.isWhole, rules, from);
      // Whatever becomes of the run, it is not offered again; what is too short is passed over whole.
      const used = run?.items ?? stretch;
      if (from === "oldest") after = used.at(-1)?.ordinal ?? edge;
      else before = used[0]?.ordinal ?? edge;
      if (run !== null) return run;
    }
  };
  return {
    // One at a time: several workers ask, and the frontier is one.
    next() {
      const found = turn.then(find);
      turn = found.catch(() => undefined); // Its caller hears of it.
      return found;
    },
  };
}

/** The neighbouring raw messages at the near end of a window. */
interface Seen {
  /** As many of them as a pass can take, and a few more to see where results of its calls are. */
  readonly stretch: readonly ContextItem[];
  /** Whether it ends where its raw messages do; or else where reading stopped, though a pass can take more. */
  readonly isWhole: boolean;
  readonly isCut: boolean;
}

const nothing: Seen = { stretch: [], isWhole: true, isCut: false };

function stretchOf(window: readonly ContextItem[], limit: number, rules: Rules, from: Stretch["from"]): Seen {
  const nearFirst = from === "oldest" ? window : window.toReversed();
  const end = nearFirst.findIndex((item) => item.kind === "summary");
  const raw = end === -1 ? nearFirst : nearFirst.slice(0, end);
  let tokens = 0;
  const full = raw.findIndex((item) => (tokens += item.tokens) > rules.chunkTokens);
  const near = full === -1 ? raw : raw.slice(0, full + 1 + lookahead);
  const isWhole = near.length === raw.length && (end !== -1 || window.length < limit);
  const isCut = near.length === raw.length && !isWhole;
  return { stretch: from === "oldest" ? near : near.toReversed(), isWhole, isCut };
}

async function pick(
  store: Store,
  stretch: readonly ContextItem[],
  whole: boolean,
  rules: Rules,
  from: Stretch["from"],
): Promise<LeafRun | null> {
  if (whole && sumTokens(stretch) < rules.leafMinTokens) return null;
  const messages = await store.messages({ ids: stretch.map(messageId) });
  if (messages.length !== stretch.length) return null; // Gone since the window was read: the next look sees it.
  const candidates = messages.map((message, at) => ({ tokens: stretch[at]?.tokens ?? 0, ties: tiesOfStored(message) }));
  const range = leafRun(candidates, { from, isMore: !whole }, rules);
  return range === null ? null : { items: stretch.slice(...range), messages: messages.slice(...range) };
}

const messageId = (item: ContextItem): MessageId => item.id as MessageId;

/** Most messages neither call nor answer, which their parts tell without putting them together. */
function tiesOfStored(message: Message): Ties {
  const mayTie =
    message.role === "tool" || message.parts.some(({ type, toolCallId }) => type === "tool" || toolCallId !== null);
  return mayTie ? tiesOf(messageFromStore(message)) : untied;
}

/** The ordinal at which the fresh tail begins; beyond all when nothing is protected. */
export async function tailOrdinal(store: Store, conversation: ConversationId, freshTailCount: number): Promise<number> {
  if (freshTailCount === 0) return Number.MAX_SAFE_INTEGER;
  const limit = freshTailCount + tailLookback;
  const items = await store.context(conversation, { kind: "message", limit, keep: "newest" });
  const messages = await store.messages({ ids: items.map(messageId) });
  const start = tailStart(messages.map(tiesOfStored), freshTailCount);
  return items[start]?.ordinal ?? Number.MAX_SAFE_INTEGER;
}

/** How much of a context is looked at for runs of summaries: far more than any prompt shows. */
const condensingItems = 4_096;

/** The end of the context that leaves are being made at. */
export const condensingWindow = async (
  store: Store,
  conversation: ConversationId,
  keep: Stretch["from"],
): Promise<readonly ContextItem[]> => await store.context(conversation, { limit: condensingItems, keep });
