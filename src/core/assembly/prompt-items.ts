/** Reads context items from the store as a prompt shows them, with their cost. */

import { readableMessage, type HostMessage } from "../messages/codec.ts";
import { messageForPrompt } from "../ingest/large-content.ts";
import { messageName } from "../model/types.ts";
import type { ContextItem, Message, Sources, Summary, SummaryId } from "../model/types.ts";
import { callFieldOf, isReasoning, isResultBlock } from "../messages/dialects.ts";
import { tiesOf, untied, type Ties } from "../messages/tool-calls.ts";
import type { Store } from "../model/store.ts";
import { presentMessage, tokensOf } from "./present-message.ts";
import { renderSummary } from "./summary-xml.ts";
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { summaryOverheadTokens } from "../model/prompt-cost.ts";
import { shortenMessage } from "./shorten-message.ts";

export interface PromptItem {
  /** Index in the requested items; -1 if it is not one of them. */
  readonly position: number;
  readonly source: Message | Summary;
  /** Null if it has no content, or the host excludes it from prompts. */
  readonly message: HostMessage | null;
  readonly tokens: number;
  /** Estimated cost before it was read; 0 if it is not a context item. */
  readonly cost: number;
  readonly ties: Ties;
  readonly isShortened: boolean;
}

/** Estimated prompt cost of an item, without reading it. */
export const costOf = ({ kind, tokens }: ContextItem): number =>
  tokens + (kind === "summary" ? summaryOverheadTokens : 0);

/** The items from a position on, without those deleted since they were listed. */
export async function readPromptItems(
  store: Store,
  items: readonly ContextItem[],
  from: number,
): Promise<readonly PromptItem[]> {
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
  const shown: PromptItem[] = [];
  for (const [index, item] of wanted.entries()) {
    const slot = { position: from + index, cost: costOf(item) };
    const source = sourceOf.get(item.id);
    if (source === undefined) continue;
    if (isMessage(source)) shown.push(await presentItem(store, source, slot));
    else shown.push(presentSummary(source, sources.get(source.id), slot));
  }
  return shown;
}

type Slot = Pick<PromptItem, "position" | "cost">;

function presentSummary(source: Summary, sources: Sources | undefined, slot: Slot): PromptItem {
  const message = renderSummary(source, sources?.summaries ?? []);
  return { ...slot, source, message, tokens: tokensOf(message), ties: untied, isShortened: false };
}

async function presentItem(store: Store, source: Message, slot: Slot): Promise<PromptItem> {
  const raw = source.moved.length === 0 ? readableMessage(source) : await messageForPrompt(store, source);
  const message = presentMessage(raw, source.text);
  if (message === null) return { ...slot, source, message, tokens: 0, ties: untied, isShortened: false };
  // Unchanged, or with its only text in a block, it costs what the store has counted.
  const isPlain = typeof raw["content"] === "string" && callFieldOf(raw) === undefined;
  const isCounted = message === raw || (isPlain && message["role"] === raw["role"]);
  const tokens = isCounted ? source.tokens : tokensOf(message);
  return { ...slot, source, message, tokens, ties: tiesOf(message), isShortened: false };
}

export const isMessage = (source: Message | Summary): source is Message => "role" in source;

/** Whether it is a user message with more than tool results. */
export function isUserText({ source, message }: PromptItem): boolean {
  if (!isMessage(source) || source.role !== "user" || message === null) return false;
  const { content } = message;
  return !Array.isArray(content) || content.some((block: Json) => !isObject(block) || !isNotUserText(block));
}

const isNotUserText = (block: JsonObject): boolean => isResultBlock(block) || isReasoning(block["type"]);

/** A user message without its tool results, which away from their calls could be taken for those of other calls. */
export function withoutResults(shown: PromptItem): PromptItem {
  const content = shown.message?.["content"];
  if (shown.ties.answers.length === 0 || !Array.isArray(content) || !isUserText(shown)) return shown;
  const words = content.filter((block: Json) => !isResultBlock(block));
  const message = { ...shown.message, content: words };
  return { ...shown, message, tokens: tokensOf(message), ties: untied };
}

/** How many user messages are read at a time: in some dialects most of them are tool results. */
const userMessagesAtFirst = 4;
const userMessagesMax = 1_024;

/** The newest user text stored when the context was read, and the summaries that cover it. */
export async function findNewestUser(
  store: Store,
  conversation: Message["conversation"],
  wasStored: (message: Message, coveredBy: readonly SummaryId[]) => boolean,
): Promise<{ readonly user: PromptItem; readonly coveredBy: readonly SummaryId[] } | null> {
  let before: { readonly beforeSeq?: number } = {};
  for (let limit = userMessagesAtFirst; ; limit = Math.min(4 * limit, userMessagesMax)) {
    const newest = await store.messages({ conversation, role: "user", keep: "newest", limit, ...before });
    for (const message of newest.toReversed()) {
      if (message.aside !== null) continue;
      const shown = await presentItem(store, message, { position: -1, cost: message.tokens });
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

/** The item shortened to about `tokensMax`; null if nothing would be left. Summaries are not shortened. */
export function shorten(shown: PromptItem, tokensMax: number): PromptItem | null {
  const { source, message } = shown;
  if (message === null || !isMessage(source) || shown.tokens <= tokensMax) return shown;
  const shorter = shortenMessage(message, tokensMax, messageName(source.id));
  if (shorter === null) return null;
  const tokens = tokensOf(shorter);
  return tokens < shown.tokens ? { ...shown, message: shorter, tokens, isShortened: true } : shown;
}
