/**
 * A prompt made of chosen items, if they fit: calls and results paired, and whatever nobody said but a provider or the
 * model needs. All of that is fixed text, so that the same items always give the same bytes.
 */

import { messageFromStore } from "../messages/codec.ts";
import type { HostMessage } from "../messages/codec.ts";
import type { ConversationId, Message } from "../model/types.ts";
import { tiesOf } from "../messages/tool-calls.ts";
import type { Store } from "../model/store.ts";
import { tokensOf } from "./present-message.ts";
import { isMessage } from "./prompt-items.ts";
import type { Shown } from "./prompt-items.ts";
import { timestampToMs } from "../base/time.ts";
import { pair } from "./pair-results.ts";
import type { Paired } from "./pair-results.ts";

/** A prompt within the budget. */
export interface Draft {
  readonly kept: readonly Shown[];
  readonly outputs: readonly Output[];
  readonly tokens: number;
  /** How many items of the context are not in it. */
  readonly hidden: number;
  readonly standIns: number;
  readonly loose: number;
}

export interface Output {
  readonly message: HostMessage;
  /** What it shows; null for what we say ourselves. */
  readonly shown: Shown | null;
  readonly tokens: number;
}

/** Null when these items make more than the budget. */
export type Drafter = (kept: readonly Shown[]) => Promise<Draft | null>;

const evictionNote =
  "[Earlier parts of this conversation are not shown here. They are stored: lcm_grep finds them, and " +
  "lcm_expand_query answers questions about them.]";
/** Providers want a user to speak first. */
const beginningNote = "[The conversation begins here.]";

export const noteTokens = tokensOf({ role: "user", content: evictionNote });

/** For prompts of one conversation whose context has so many items. */
export function createDrafter(
  store: Store,
  about: { readonly conversation: ConversationId; readonly budget: number; readonly totalItems: number },
): Drafter {
  const { budget } = about;
  const isElsewhere = createLookup(store, about.conversation);
  return async (kept) => {
    const visible = kept.flatMap((shown) => (shown.message === null ? [] : [{ shown, message: shown.message }]));
    if (visible.reduce((sum, { shown }) => sum + shown.tokens, 0) > budget) return null;
    const hidden = Math.max(0, about.totalItems - kept.filter(({ cost }) => cost > 0).length);
    const isAllShown = hidden === 0 && kept.every(({ source }) => isMessage(source));
    const messages = visible.map(({ message }) => message);
    const sources = visible.map(({ shown }) => shown.source);
    const atOnce = pair(messages);
    const { messages: placed, loose } =
      isAllShown || atOnce.unanswered.length === 0 ? atOnce : pair(messages, await isElsewhere(atOnce, sources));
    const outputs = placed.map(({ message, from }): Output => {
      const given = from === null ? undefined : visible[from];
      const isAsGiven = message === given?.message;
      return { message, shown: given?.shown ?? null, tokens: isAsGiven ? given.shown.tokens : tokensOf(message) };
    });
    const isNoted = hidden > 0 && budget >= 4 * noteTokens;
    const opening = openingOf(kept, outputs, isNoted);
    const all = opening === null ? outputs : [opening, ...outputs];
    const tokens = all.reduce((sum, output) => sum + output.tokens, 0);
    const standIns = atOnce.unanswered.length;
    return tokens > budget ? null : { kept, outputs: all, tokens, hidden, standIns, loose };
  };
}

function openingOf(kept: readonly Shown[], outputs: readonly Output[], isNoted: boolean): Output | null {
  const role = outputs[0]?.message["role"] ?? "user";
  if (!isNoted && role === "user") return null;
  const first = kept[0]?.source;
  // The host writes a message's time in front of it: that of what follows, which stays as long as that does.
  const at = first === undefined ? null : isMessage(first) ? first.at : first.latestAt;
  const time = at === null ? {} : { timestamp: timestampToMs(at) };
  const message = { role: "user", content: isNoted ? evictionNote : beginningNote, ...time };
  return { message, shown: null, tokens: tokensOf(message) };
}

// ── Results that are kept and not shown ──────────────────────────────────────────────────────────────────────────────

/** How many messages with unanswered calls are looked into, and how far around them results are sought. */
const callersMax = 16;
const messagesBefore = 16;
const messagesAfter = 48;

type IsElsewhere = Parameters<typeof pair>[1];

/** Tells of unanswered calls whether their results are in the store all the same. Each message is looked up once. */
function createLookup(
  store: Store,
  conversation: ConversationId,
): (paired: Paired, sources: readonly Shown["source"][]) => Promise<IsElsewhere> {
  const answeredIn = new Map<Shown["source"]["id"], ReadonlySet<string>>();
  return async ({ unanswered }, sources) => {
    const callers = [...new Set(unanswered.map(({ at }) => sources[at]))];
    // The oldest, because these stay the same while the conversation grows.
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

/** Ids of a message's calls that are answered near it, wherever in the context the answers are now. */
async function findAnswered(store: Store, conversation: ConversationId, caller: Message): Promise<ReadonlySet<string>> {
  const afterSeq = caller.seq - messagesBefore - 1;
  const near = await store.messages({ conversation, afterSeq, beforeSeq: caller.seq + messagesAfter + 1 });
  const neighbours = near.filter(({ aside }) => aside === null);
  const raw = neighbours.map(messageFromStore);
  const at = neighbours.findIndex(({ id }) => id === caller.id);
  const open = new Set(pair(raw).unanswered.flatMap((call) => (call.at === at ? [call.id] : [])));
  const { calls } = tiesOf(raw[at] ?? {});
  return new Set(calls.map(({ id }) => id).filter((id) => !open.has(id)));
}
