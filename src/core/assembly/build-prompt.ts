/**
 * Builds a prompt from chosen items if they fit: pairs calls with results, and adds the notes that providers need.
 * The notes are fixed text, so that the same items always give the same bytes.
 */

import { readableMessage, type HostMessage } from "../messages/codec.ts";
import type { ConversationId, Message } from "../model/types.ts";
import { tiesOf } from "../messages/tool-calls.ts";
import type { Store } from "../model/store.ts";
import { tokensOf } from "./present-message.ts";
import { isMessage, type PromptItem } from "./prompt-items.ts";
import { timestampToMs } from "../base/time.ts";
import { pair, type Paired } from "./pair-results.ts";
import type { ShowStanding, StandingBlock } from "./standing-block.ts";

/** A prompt within the budget. */
export interface BuiltPrompt {
  readonly kept: readonly PromptItem[];
  readonly outputs: readonly PromptMessage[];
  readonly tokens: number;
  /** How many context items are not in it. */
  readonly hidden: number;
  readonly standIns: number;
  /** For each stand-in, in order: whether the result is stored, but not shown. */
  readonly elsewhere: readonly boolean[];
  readonly loose: number;
  /** Null if there are no standing instructions to show. */
  readonly standing: StandingBlock | null;
}

export interface PromptMessage {
  readonly message: HostMessage;
  /** The item it shows; null for a note, a stand-in or standing instructions. */
  readonly item: PromptItem | null;
  readonly tokens: number;
}

/** Returns null if these items exceed the budget. */
export type BuildPrompt = (kept: readonly PromptItem[], showStanding?: ShowStanding) => Promise<BuiltPrompt | null>;

const evictionNote =
  "[Earlier parts of this conversation are not shown here. They are stored: lcm_grep finds them, and " +
  "lcm_expand_query answers questions about them.]";
/** Providers require a user message first. */
const beginningNote = "[The conversation begins here.]";

export const noteTokens = tokensOf({ role: "user", content: evictionNote });

export function createPromptBuilder(
  about: { readonly budget: number; readonly totalItems: number },
  showPinned: ShowStanding,
  findElsewhere: FindElsewhere,
): BuildPrompt {
  const { budget } = about;
  return async (kept, showStanding = showPinned) => {
    const visible = kept.flatMap((item) => (item.message === null ? [] : [{ item, message: item.message }]));
    if (visible.reduce((sum, { item }) => sum + item.tokens, 0) > budget) return null;
    const hidden = Math.max(0, about.totalItems - kept.filter(({ cost }) => cost > 0).length);
    const isAllShown = hidden === 0 && kept.every(({ source }) => isMessage(source));
    const messages = visible.map(({ message }) => message);
    const sources = visible.map(({ item }) => item.source);
    const atOnce = pair(messages);
    const isElsewhere: IsElsewhere =
      isAllShown || atOnce.unanswered.length === 0 ? () => false : await findElsewhere(atOnce, sources);
    const elsewhere = atOnce.unanswered.map(isElsewhere);
    const { messages: placed, loose } = elsewhere.includes(true) ? pair(messages, isElsewhere) : atOnce;
    const outputs = placed.map(({ message, from }): PromptMessage => {
      const given = from === null ? undefined : visible[from];
      const isAsGiven = message === given?.message;
      return { message, item: given?.item ?? null, tokens: isAsGiven ? given.item.tokens : tokensOf(message) };
    });
    const isNoted = hidden > 0 && budget >= 4 * noteTokens;
    const standing = showStanding(kept);
    const body = standing === null ? outputs : withStanding(outputs, { ...standing, item: null });
    const opening = openingOf(kept, body, isNoted);
    const all = opening === null ? body : [opening, ...body];
    const tokens = all.reduce((sum, output) => sum + output.tokens, 0);
    const standIns = atOnce.unanswered.length;
    return tokens > budget ? null : { kept, outputs: all, tokens, hidden, standIns, elsewhere, loose, standing };
  };
}

/**
 * Behind the summaries that a prompt begins with, whatever folded question is between them: a fold adds one there, so the
 * bytes before it stay the same.
 */
function withStanding(outputs: readonly PromptMessage[], block: PromptMessage): readonly PromptMessage[] {
  const end = outputs.findIndex(({ item }) => item === null || (isMessage(item.source) && item.cost > 0));
  const leading = end < 0 ? outputs : outputs.slice(0, end);
  const after = leading.findLastIndex(({ item }) => item !== null && !isMessage(item.source)) + 1;
  return outputs.toSpliced(after, 0, block);
}

function openingOf(
  kept: readonly PromptItem[],
  outputs: readonly PromptMessage[],
  isNoted: boolean,
): PromptMessage | null {
  const role = outputs[0]?.message["role"] ?? "user";
  if (!isNoted && role === "user") return null;
  const first = kept[0]?.source;
  // The host shows each message's time; the one of the next item stays the same as long as the cut does.
  const at = first === undefined ? null : isMessage(first) ? first.at : first.latestAt;
  const time = at === null ? {} : { timestamp: timestampToMs(at) };
  const message = { role: "user", content: isNoted ? evictionNote : beginningNote, ...time };
  return { message, item: null, tokens: tokensOf(message) };
}

/** How many messages with unanswered calls are looked up, and how far around them results are searched. */
const callersMax = 16;
const messagesBefore = 16;
const messagesAfter = 48;

type IsElsewhere = NonNullable<Parameters<typeof pair>[1]>;

/** Which unanswered calls have a result in the store. */
export type FindElsewhere = (paired: Paired, sources: readonly PromptItem["source"][]) => Promise<IsElsewhere>;

/** Looks each message up once. */
export function createLookup(store: Store, conversation: ConversationId): FindElsewhere {
  const answeredIn = new Map<PromptItem["source"]["id"], ReadonlySet<string>>();
  return async ({ unanswered }, sources) => {
    const callers = [...new Set(unanswered.map(({ at }) => sources[at]))];
    // Take the oldest: these stay the same while the conversation grows.
    for (const caller of callers.slice(0, callersMax)) {
      if (caller === undefined || !isMessage(caller) || answeredIn.has(caller.id)) continue;
      answeredIn.set(caller.id, await findAnswered(store, conversation, caller));
    }
    return ({ at, id }) => {
      const caller = sources[at];
      return caller !== undefined && answeredIn.get(caller.id)?.has(id) === true;
    };
  };
}

/** Ids of a message's calls that have a result nearby in the conversation, folded or not. */
async function findAnswered(store: Store, conversation: ConversationId, caller: Message): Promise<ReadonlySet<string>> {
  const afterSeq = caller.seq - messagesBefore - 1;
  const near = await store.messages({ conversation, afterSeq, beforeSeq: caller.seq + messagesAfter + 1 });
  const neighbours = near.filter(({ aside }) => aside === null);
  const raw = neighbours.map(readableMessage);
  const at = neighbours.findIndex(({ id }) => id === caller.id);
  const open = new Set(pair(raw).unanswered.flatMap((call) => (call.at === at ? [call.id] : [])));
  const { calls } = tiesOf(raw[at] ?? {});
  return new Set(calls.map(({ id }) => id).filter((id) => !open.has(id)));
}
