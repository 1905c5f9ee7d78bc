/** Items of a context read from the store and put as a prompt shows them, with what each of them costs there. */

import { messageFromStore } from "../messages/codec.ts";
import type { HostMessage } from "../messages/codec.ts";
import { messageForPrompt } from "../ingest/large-content.ts";
import type { ContextItem, Message, Sources, Summary, SummaryId } from "../model/types.ts";
import { callFieldOf, isReasoning, isResultBlock } from "../messages/dialects.ts";
import { tiesOf, untied } from "../messages/tool-calls.ts";
import type { Ties } from "../messages/tool-calls.ts";
import type { Store } from "../model/store.ts";
import { presentMessage, tokensOf } from "./present-message.ts";
import { renderSummary } from "./summary-xml.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { isObject } from "../base/json.ts";
import { summaryOverheadTokens } from "../model/prompt-cost.ts";
import { shortenMessage } from "./shorten-message.ts";

export interface Shown {
  /** Among the items that were asked for; -1 for one that was not. */
  readonly position: number;
  readonly source: Message | Summary;
  /** Null for what says nothing, or is not for a prompt. */
  readonly message: HostMessage | null;
  readonly tokens: number;
  /** What the item was taken to cost before it was read; 0 for what is no item of the context. */
  readonly cost: number;
  readonly ties: Ties;
  readonly isShortened: boolean;
}

/** What an item is taken to cost before it is read. */
export const costOf = ({ kind, tokens }: ContextItem): number =>
  tokens + (kind === "summary" ? summaryOverheadTokens : 0);

/** The items from a position on. What was forgotten since they were listed is left out. */
export async function readShown(store: Store, items: readonly ContextItem[], from: number): Promise<readonly Shown[]> {
  const wanted = items.slice(from);
  const messageIds = wanted.flatMap((item) => (item.kind === "message" ? [item.id] : []));
  const summaryIds = wanted.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
  const condensedIds = wanted.flatMap((item) => (item.kind === "summary" && item.depth > 0 ? [item.id] : []));
  const [messages, summaries, sources] = await Promise.all([
    messageIds.length === 0 ? [] : store.messages({ ids: messageIds }),
    summaryIds.length === 0 ? [] : store.summaries({ ids: summaryIds }),
    condensedIds.length === 0 ? new Map<SummaryId, Sources>() : store.sources(condensedIds),
  ]);
  const sourceOf = new Map([...messages, ...summaries].map((source) => [source.id, source]));
  const shown: Shown[] = [];
  for (const [index, item] of wanted.entries()) {
    const place = { position: from + index, cost: costOf(item) };
    const source = sourceOf.get(item.id);
    if (source === undefined) continue;
    if (isMessage(source)) shown.push(await showMessage(store, source, place));
    else shown.push(showSummary(source, sources.get(source.id), place));
  }
  return shown;
}

type Place = Pick<Shown, "position" | "cost">;

function showSummary(source: Summary, sources: Sources | undefined, place: Place): Shown {
  const message = renderSummary(source, sources?.summaries ?? []);
  return { ...place, source, message, tokens: tokensOf(message), ties: untied, isShortened: false };
}

async function showMessage(store: Store, source: Message, place: Place): Promise<Shown> {
  const raw = source.moved.length === 0 ? messageFromStore(source) : await messageForPrompt(store, source);
  const message = presentMessage(raw, source.text);
  if (message === null) return { ...place, source, message, tokens: 0, ties: untied, isShortened: false };
  // What is shown as it was stored, or with its one text in a block, costs what the store has counted.
  const isPlain = typeof raw["content"] === "string" && callFieldOf(raw) === undefined;
  const isCounted = message === raw || (isPlain && message["role"] === raw["role"]);
  const tokens = isCounted ? source.tokens : tokensOf(message);
  return { ...place, source, message, tokens, ties: tiesOf(message), isShortened: false };
}

export const isMessage = (source: Message | Summary): source is Message => "role" in source;

/** Something a user said, and not only results of tools. */
export function isUserText({ source, message }: Shown): boolean {
  if (!isMessage(source) || source.role !== "user" || message === null) return false;
  const { content } = message;
  return !Array.isArray(content) || content.some((block: Json) => !isObject(block) || !isUnsaid(block));
}

const isUnsaid = (block: JsonObject): boolean => isResultBlock(block) || isReasoning(block["type"]);

/** What a user said, without the results beside it: away from their calls, they would pass for those of others. */
export function wordsOf(shown: Shown): Shown {
  const content = shown.message?.["content"];
  if (shown.ties.answers.length === 0 || !Array.isArray(content) || !isUserText(shown)) return shown;
  const words = content.filter((block: Json) => !isResultBlock(block));
  const message = { ...shown.message, content: words };
  return { ...shown, message, tokens: tokensOf(message), ties: untied };
}

/** How many user messages are looked at at a time: in some dialects most of them are results of tools. */
const userMessagesAtFirst = 4;
const userMessagesMax = 1_024;

/** The newest thing a user said, of what was stored when a context was read, and the summaries that stand for it. */
export async function findNewestUser(
  store: Store,
  conversation: Message["conversation"],
  wasStored: (message: Message, coveredBy: readonly SummaryId[]) => boolean,
): Promise<{ readonly user: Shown; readonly coveredBy: readonly SummaryId[] } | null> {
  let before: { readonly beforeSeq?: number } = {};
  for (let limit = userMessagesAtFirst; ; limit = Math.min(4 * limit, userMessagesMax)) {
    const newest = await store.messages({ conversation, role: "user", keep: "newest", limit, ...before });
    for (const message of newest.toReversed()) {
      if (message.aside !== null) continue;
      const shown = await showMessage(store, message, { position: -1, cost: message.tokens });
      if (!isUserText(shown)) continue;
      const coveredBy = await store.coveredBy(message.id);
      if (!wasStored(message, coveredBy)) continue;
      return { user: coveredBy.length === 0 ? shown : { ...shown, cost: 0 }, coveredBy };
    }
    const [oldest] = newest;
    if (oldest === undefined || newest.length < limit) return null;
    before = { beforeSeq: oldest.seq };
  }
}

/** The same in fewer tokens, as near to these as can be; null if nothing would be left. A summary is short already. */
export function shorten(shown: Shown, tokensMax: number): Shown | null {
  const { source, message } = shown;
  if (message === null || !isMessage(source) || shown.tokens <= tokensMax) return shown;
  const shorter = shortenMessage(message, tokensMax, `message ${source.id}`);
  if (shorter === null) return null;
  const tokens = tokensOf(shorter);
  return tokens < shown.tokens ? { ...shown, message: shorter, tokens, isShortened: true } : shown;
}
