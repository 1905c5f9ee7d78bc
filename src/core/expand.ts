/**
 * Walking down from summaries to what they were made from, within a number of tokens. Asked for something, it takes what
 * speaks of it first; asked for nothing, it takes everything in order until the tokens are used up. Either way it says
 * what it left out.
 */

import { LcmError } from "./errors.ts";
import type { Message, MessageId, Role, Summary, SummaryId, Timestamp } from "./model.ts";
import type { Store } from "./ports.ts";
import { estimateTokens, excerpt } from "./text.ts";

export interface ExpandRequest {
  readonly summaryIds: readonly SummaryId[];
  /** What is looked for. */
  readonly query?: string;
  /** How many levels of summaries below the named ones are read; messages lie below the leaves. */
  readonly maxDepth?: number;
  readonly includeMessages?: boolean;
  readonly tokenCap: number;
}

export type Expanded = { readonly text: string; readonly tokens: number; readonly at: Timestamp } & (
  | { readonly kind: "summary"; readonly id: SummaryId; readonly depth: number }
  | { readonly kind: "message"; readonly id: MessageId; readonly role: Role; readonly isWhole: boolean }
);

export interface Expansion {
  /** In the order of the conversation. */
  readonly items: readonly Expanded[];
  readonly tokens: number;
  /** What was read and did not fit. */
  readonly leftOut: { readonly items: number; readonly tokens: number };
  /** Whether there was more below than one expansion reads. */
  readonly isBounded: boolean;
}

/** Rows that one expansion reads at most. */
const rowsMax = 5_000;
/** A message longer than what is left is shown in part, if at least this much of it is. */
const partTokensMin = 120;

export async function expand(store: Store, request: ExpandRequest): Promise<Expansion> {
  const { tokenCap, query = "" } = request;
  const named = await store.summaries({ ids: request.summaryIds });
  const missing = request.summaryIds.filter((id) => !named.some((summary) => summary.id === id));
  if (missing.length > 0) throw new LcmError("not_found", `there is no summary ${missing.join(", ")}`);
  const below = await walkDown(store, named, request.maxDepth ?? 1, request.includeMessages === true);
  const inOrder = [...below.summaries.map(toItem), ...below.messages.map(messageToItem)];
  const wanted = query.trim() === "" ? inOrder : byRelevance(inOrder, await scoresOf(store, below.messages, query));
  const taken = new Map<Expanded, Expanded>();
  let tokens = 0;
  for (const item of wanted) {
    const left = tokenCap - tokens;
    const shown = item.tokens <= left ? item : partOf(item, left, query);
    if (shown === null) continue;
    taken.set(item, shown);
    tokens += shown.tokens;
  }
  const leftOut = inOrder.filter((item) => !taken.has(item));
  return {
    items: inOrder.flatMap((item) => taken.get(item) ?? []),
    tokens,
    leftOut: { items: leftOut.length, tokens: leftOut.reduce((sum, item) => sum + item.tokens, 0) },
    isBounded: below.isBounded,
  };
}

interface Below {
  readonly summaries: readonly Summary[];
  readonly messages: readonly Message[];
  readonly isBounded: boolean;
}

async function walkDown(
  store: Store,
  named: readonly Summary[],
  maxDepth: number,
  includeMessages: boolean,
): Promise<Below> {
  const summaries: Summary[] = [];
  const messageIds: MessageId[] = [];
  let level = named.map(({ id }) => id);
  for (let depth = 0; level.length > 0 && depth <= maxDepth; depth++) {
    const sources = await store.sources(level);
    const found = level.map((id) => sources.get(id));
    if (includeMessages) messageIds.push(...found.flatMap((each) => each?.messages ?? []));
    level = [...new Set(found.flatMap((each) => each?.summaries ?? []))].slice(0, rowsMax);
    if (depth < maxDepth) summaries.push(...(await store.summaries({ ids: level })));
  }
  const ids = [...new Set(messageIds)];
  const messages = await store.messages({ ids: ids.slice(0, rowsMax) });
  return { summaries, messages, isBounded: ids.length > rowsMax };
}

const toItem = ({ id, depth, text, tokens, earliestAt, createdAt }: Summary): Expanded => ({
  kind: "summary",
  id,
  depth,
  text,
  tokens,
  at: earliestAt ?? createdAt,
});

const messageToItem = ({ id, role, text, tokens, at }: Message): Expanded => ({
  kind: "message",
  id,
  role,
  text,
  tokens,
  at,
  isWhole: true,
});

function partOf(item: Expanded, tokensLeft: number, query: string): Expanded | null {
  if (item.kind !== "message" || tokensLeft < partTokensMin) return null;
  const lower = item.text.toLowerCase();
  const place = Math.max(
    0,
    Math.min(
      ...wordsOf(query)
        .map((word) => lower.indexOf(word))
        .filter((at) => at >= 0),
      lower.length,
    ),
  );
  const from = place === lower.length ? 0 : place;
  const width = Math.floor((item.text.length * tokensLeft) / item.tokens / 2);
  const text = excerpt(item.text, { from, to: from }, width);
  const tokens = estimateTokens(text);
  return tokens > tokensLeft ? null : { ...item, text, tokens, isWhole: false };
}

/** How well each message answers, by the store's own ranking. */
async function scoresOf(
  store: Store,
  messages: readonly Message[],
  query: string,
): Promise<ReadonlyMap<MessageId, number>> {
  if (messages.length === 0) return new Map();
  const conversations = [...new Set(messages.map(({ conversation }) => conversation))];
  const { hits } = await store.search({
    pattern: query,
    mode: "full_text",
    scope: "messages",
    sort: "relevance",
    limit: 200,
    conversations,
  });
  return new Map(hits.flatMap((hit) => (hit.kind === "message" ? [[hit.id, hit.score]] : [])));
}

/** Best first; what says nothing of the query comes last, in order. */
function byRelevance(items: readonly Expanded[], scores: ReadonlyMap<MessageId, number>): readonly Expanded[] {
  const own = items.map((item) => (item.kind === "message" ? (scores.get(item.id) ?? 0) : 0));
  // An answer often shares no word with its question, but stands right behind what does.
  const withNeighbour = own.map((score, at) => score + 0.4 * (own[at - 1] ?? 0));
  const order = items.map((_, at) => at).toSorted((a, b) => (withNeighbour[b] ?? 0) - (withNeighbour[a] ?? 0) || a - b);
  return order.flatMap((at) => items[at] ?? []);
}

/** Words as they are matched: beginnings of longer ones, so that forms of a word meet; pairs of characters in CJK. */
function wordsOf(text: string): readonly string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  return words.flatMap((word) => {
    if (!/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(word))
      return word.length < 3 ? [] : [word.length > 6 ? word.slice(0, 6) : word];
    const letters = [...word];
    return letters.length === 1 ? letters : letters.slice(1).map((letter, at) => `${letters[at] ?? ""}${letter}`);
  });
}
