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
  /** The limits that it was shortened to, one after another; empty if it is whole. */
  readonly cuts: readonly number[];
  /** Whether it is shown without its tool results. */
  readonly isBare?: true;
}

/** Estimated prompt cost of an item, without reading it. */
export const costOf = ({ kind, tokens }: ContextItem): number =>
  tokens + (kind === "summary" ? summaryOverheadTokens : 0);

/** What the host shows in place of the content of messages, by key; null hides the message. What is stored stays. */
export type Edits = ReadonlyMap<string, Json>;

/** The items from a position on, without those deleted since they were listed. */
export async function readPromptItems(
  store: Store,
  items: readonly ContextItem[],
  from: number,
  edits?: Edits,
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
    if (isMessage(source)) shown.push(await presentItem(store, source, slot, edits));
    else shown.push(presentSummary(source, sources.get(source.id), slot));
  }
  return shown;
}

export type Slot = Pick<PromptItem, "position" | "cost">;

export function presentSummary(source: Summary, sources: Sources | undefined, slot: Slot): PromptItem {
  const { message, tokens } = rendered(source, sources?.summaries ?? []);
  // A copy: who gets a prompt may add to its messages.
  return { ...slot, source, message: { ...message }, tokens, ties: untied, cuts: [] };
}

interface Rendered {
  readonly summary: Summary;
  readonly sources: readonly SummaryId[];
  readonly message: HostMessage;
  readonly tokens: number;
}

/** Summaries are the same from one prompt to the next, and to escape and estimate their texts is most of their cost. */
const lately = new Map<SummaryId, Rendered>();
const latelyMax = 512;

function rendered(summary: Summary, sources: readonly SummaryId[]): Rendered {
  const before = lately.get(summary.id);
  if (before !== undefined && isSameSummary(before.summary, summary) && isSameList(before.sources, sources))
    return before;
  const message = renderSummary(summary, sources);
  const now = { summary, sources, message, tokens: tokensOf(message) };
  lately.delete(summary.id);
  const [oldest] = lately.keys();
  if (oldest !== undefined && lately.size >= latelyMax) lately.delete(oldest);
  lately.set(summary.id, now);
  return now;
}

/** In all that is rendered: another database may have a summary of this id. */
const isSameSummary = (one: Summary, other: Summary): boolean =>
  one.depth === other.depth &&
  one.descendants === other.descendants &&
  one.earliestAt === other.earliestAt &&
  one.latestAt === other.latestAt &&
  one.createdAt === other.createdAt &&
  one.carriedFrom === other.carriedFrom &&
  one.text === other.text;

const isSameList = (one: readonly SummaryId[], other: readonly SummaryId[]): boolean =>
  one.length === other.length && one.every((id, at) => id === other[at]);

export async function presentItem(store: Store, source: Message, slot: Slot, edits?: Edits): Promise<PromptItem> {
  const edited = edits?.get(source.key);
  if (edited === null) return { ...slot, source, message: null, tokens: 0, ties: untied, cuts: [] };
  const stored = source.moved.length === 0 ? readableMessage(source) : await messageForPrompt(store, source);
  const raw = edited === undefined ? stored : { ...stored, content: edited };
  const message = presentMessage(raw, source.text);
  if (message === null) return { ...slot, source, message, tokens: 0, ties: untied, cuts: [] };
  // Unchanged, or with its only text in a block, it costs what the store has counted.
  const isPlain = typeof raw["content"] === "string" && callFieldOf(raw) === undefined;
  const isCounted = edited === undefined && (message === raw || (isPlain && message["role"] === raw["role"]));
  const tokens = isCounted ? source.tokens : tokensOf(message);
  return { ...slot, source, message, tokens, ties: tiesOf(message), cuts: [] };
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
  return { ...shown, message, tokens: tokensOf(message), ties: untied, isBare: true };
}

/** The item shortened to about `tokensMax`; null if nothing would be left. Summaries are not shortened. */
export function shorten(shown: PromptItem, tokensMax: number): PromptItem | null {
  const { source, message } = shown;
  if (message === null || !isMessage(source) || shown.tokens <= tokensMax) return shown;
  const shorter = shortenMessage(message, tokensMax, messageName(source.id));
  if (shorter === null) return null;
  const tokens = tokensOf(shorter);
  return tokens < shown.tokens ? { ...shown, message: shorter, tokens, cuts: [...shown.cuts, tokensMax] } : shown;
}
