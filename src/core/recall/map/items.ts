/**
 * Reads the messages that a map covers, as a model reads them: those of a search, a time, a role, a summary or whole
 * conversations, within the reader's reach. What is left out is counted by its reason.
 */

import { LcmError } from "../../base/errors.ts";
import { lengthWithin } from "../../base/excerpt.ts";
import { compare, formatCount } from "../../base/format.ts";
import { isObject, type Json } from "../../base/json.ts";
import { timeAfter, type Timestamp } from "../../base/time.ts";
import { estimateTokens } from "../../base/tokens.ts";
import { resultIdIn, resultToolIn } from "../../messages/dialects.ts";
import type { SearchCaveat, Store } from "../../model/store.ts";
import { conversationIn } from "../../model/types.ts";
import type { ConversationId, Message, MessageId, Role, SummaryId } from "../../model/types.ts";
import { passagesByMessage, sourceText } from "../../summarize/source-text.ts";
import { namedSummaries } from "../expand.ts";
import { grep, timeBound } from "../grep.ts";
import { conversationsWithin, originOf, type Reach } from "../scope.ts";

/** Which messages to read: all within the reach that meet every condition given. */
export interface MapCover {
  readonly reach: Reach;
  /** Messages that a search finds. */
  readonly query?: string;
  /** Messages below these summaries. */
  readonly summaryIds?: readonly SummaryId[];
  /** Any time that `parseTimestamp` reads; `since` is inclusive, `before` exclusive. */
  readonly since?: string;
  readonly before?: string;
  readonly role?: Role;
}

export interface MapItem {
  readonly id: MessageId;
  readonly role: Role;
  readonly at: Timestamp;
  /** As a model reads it: with its time and speaker, without reasoning, busy output shortened. */
  readonly text: string;
  readonly tokens: number;
  /** Whether the middle was left out. */
  readonly isCut: boolean;
  /** Large contents that are in files and are not read. */
  readonly files: number;
  /** `forgets` of the conversation before it was read. */
  readonly forgets: number;
}

/** Why a message is not read. */
export type Skip =
  /** There is nothing to read in it. */
  | "empty"
  /** A call of one of our own tools, or its result, which repeats other messages. */
  | "own_tool"
  /** The host left it behind, or keeps it as a note. */
  | "aside"
  /** A transplanted copy of a message that is read, too. */
  | "copy";

export type Covered =
  | { readonly kind: "item"; readonly item: MapItem }
  | { readonly kind: "skipped"; readonly skip: Skip }
  /** Why the search that selects the messages may have missed some. */
  | { readonly kind: "caveat"; readonly caveat: SearchCaveat };

const pageRows = 200;
/** How many messages before a page are read with it, so that results know their calls. */
const lookback = 16;

/** Conversations in order of their last activity, newest first; the messages of each oldest first. */
export async function* readCovered(
  store: Store,
  cover: MapCover,
  itemTokensMax: number,
  signal?: AbortSignal,
): AsyncGenerator<readonly Covered[]> {
  const span = spanOf(cover);
  const conversations = await conversationsWithin(store, cover.reach);
  const { ids, caveats } = await selectedIds(store, cover, span, signal);
  if (caveats.length > 0) yield caveats.map((caveat) => ({ kind: "caveat", caveat }));
  const covers = ids === null ? new Set(conversations.map(({ id }) => id)) : null;
  const isCovered = (id: MessageId): boolean => (ids === null ? covers?.has(conversationIn(id)) === true : ids.has(id));
  const idsOf = Map.groupBy(ids ?? [], conversationIn);
  for (const { id, forgets } of conversations) {
    const named = ids === null ? null : (idsOf.get(id) ?? []).toSorted((one, other) => one - other);
    const ownCalls = new Set<string>();
    let before: readonly Message[] = [];
    for await (const page of pagesOf(store, id, named, span)) {
      if (signal?.aborted === true)
        throw new LcmError("unavailable", "stopped before it was known what to read", { cause: signal.reason });
      const passages = passagesByMessage([...before, ...page], "UTC").slice(before.length);
      yield page.flatMap((message, at): readonly Covered[] => {
        const skip = skipOf(message, ownCalls, isCovered);
        if (!isMeant(message, cover.role, span)) return [];
        if (skip !== null) return [{ kind: "skipped", skip }];
        const text = sourceText(passages[at] ?? []);
        if (text === "") return [{ kind: "skipped", skip: "empty" }];
        return [{ kind: "item", item: { ...toItem(message, text, itemTokensMax), forgets } }];
      });
      before = page.slice(-lookback);
    }
  }
}

async function* pagesOf(
  store: Store,
  conversation: ConversationId,
  ids: readonly MessageId[] | null,
  span: Span,
): AsyncGenerator<readonly Message[]> {
  if (ids !== null) {
    for (let from = 0; from < ids.length; from += pageRows)
      yield await store.messages({ ids: ids.slice(from, from + pageRows) });
    return;
  }
  for (let afterSeq = 0; ;) {
    const page = await store.messages({ conversation, afterSeq, limit: pageRows, ...span });
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    afterSeq = last.seq;
  }
}

interface Span {
  readonly since?: Timestamp;
  readonly before?: Timestamp;
}

function spanOf(cover: MapCover): Span {
  const [since, before] = [timeBound("since", cover.since), timeBound("before", cover.before)];
  return { ...(since !== null && { since }), ...(before !== null && { before }) };
}

const isMeant = (message: Message, role: Role | undefined, { since = message.at, before }: Span): boolean =>
  (role === undefined || message.role === role) && message.at >= since && (before === undefined || message.at < before);

interface Selected {
  /** Null for every message of the reach. */
  readonly ids: ReadonlySet<MessageId> | null;
  readonly caveats: readonly SearchCaveat[];
}

async function selectedIds(store: Store, cover: MapCover, span: Span, signal?: AbortSignal): Promise<Selected> {
  const { query, summaryIds, reach } = cover;
  const below = summaryIds === undefined ? null : await messagesBelow(store, summaryIds, reach);
  if (query === undefined) return { ids: below, caveats: [] };
  const { ids, caveats } = await matchesOf(store, { pattern: query, reach, span }, signal);
  return { ids: below === null ? ids : ids.intersection(below), caveats };
}

/** Every message below the summaries, or below what they were carried over from. */
async function messagesBelow(store: Store, ids: readonly SummaryId[], reach: Reach): Promise<ReadonlySet<MessageId>> {
  const roots: SummaryId[] = [];
  for (const named of await namedSummaries(store, ids, reach))
    roots.push((await originOf(store, reach, named))?.id ?? named.id);
  const sources = await store.sources(await store.closure(roots));
  return new Set([...sources.values()].flatMap(({ messages }) => messages));
}

const hitsPerSearch = 200;
const hitsMax = 20_000;

/** Every match, found newest first, page by page. */
async function matchesOf(
  store: Store,
  { pattern, reach, span }: { readonly pattern: string; readonly reach: Reach; readonly span: Span },
  signal?: AbortSignal,
): Promise<{ readonly ids: Set<MessageId>; readonly caveats: readonly SearchCaveat[] }> {
  const found = new Set<MessageId>();
  const caveats = new Map<SearchCaveat["kind"], SearchCaveat>();
  const wanted = { pattern, scope: "messages", sort: "recency", limit: hitsPerSearch, reach } as const;
  for (let within = span; ;) {
    const result = await grep(store, { ...wanted, ...within }, signal && { signal });
    const kinds = new Set(result.caveats.map(({ kind }) => kind));
    // Once no message has all of the words any more, the search returns those with some of them.
    if (found.size > 0 && (kinds.has("partial_match") || kinds.has("as_words"))) break;
    const fresh = result.hits.filter((hit) => hit.kind === "message" && !found.has(hit.id));
    for (const hit of fresh) if (hit.kind === "message") found.add(hit.id);
    for (const caveat of result.caveats) if (caveat.kind !== "limit") caveats.set(caveat.kind, caveat);
    if (!kinds.has("limit")) break;
    const oldest = fresh.map(({ at }) => at).toSorted(compare)[0];
    if (oldest === undefined || found.size >= hitsMax) {
      caveats.set("limit", { kind: "limit", limit: found.size });
      break;
    }
    // Other messages of the same millisecond are searched for again, so that none is missed.
    within = { ...span, before: timeAfter(oldest, 1) };
  }
  return { ids: found, caveats: [...caveats.values()] };
}

function toItem(message: Message, text: string, tokensMax: number): Omit<MapItem, "forgets"> {
  const { id, role, at, moved } = message;
  const whole = { id, role, at, files: new Set(moved.map(({ file }) => file)).size };
  const tokens = estimateTokens(text);
  if (tokens <= tokensMax) return { ...whole, text, tokens, isCut: false };
  const shown = withoutMiddle(text, tokensMax);
  return { ...whole, text: shown, tokens: estimateTokens(shown), isCut: true };
}

/** The end of a text often has the error or the result, so a third of the room is for it. */
function withoutMiddle(text: string, tokensMax: number): string {
  const within = (part: string, tokens: number): number =>
    lengthWithin(part, tokens, (begun) => estimateTokens(begun) > tokens).fitting;
  const head = text.slice(0, within(text, Math.floor((tokensMax * 2) / 3)));
  const tailLength = Math.floor((head.length * 9) / 20);
  const tail = text.slice(text.length - tailLength);
  const left = formatCount(text.length - head.length - tail.length);
  return `${head}\n[… ${left} characters left out …]\n${tail}`.toWellFormed();
}

/** Also notes calls of our own tools, so that their results are recognised. */
function skipOf(message: Message, ownCalls: Set<string>, isCovered: (id: MessageId) => boolean): Skip | null {
  const isOwn = isOfOwnTool(message, ownCalls);
  if (message.aside !== null) return "aside";
  const source = /^copy:[^:]*:(\d+)$/.exec(message.key)?.[1];
  if (source !== undefined && isCovered(Number(source) as MessageId)) return "copy";
  return isOwn ? "own_tool" : null;
}

/** Hosts put their own prefix before the names of our tools. */
const ownTool = /(?:^|[^a-z])lcm_[a-z]/i;

/** Whether a message consists of calls of our own tools, or of their results. */
function isOfOwnTool({ role, parts, envelope }: Message, ownCalls: Set<string>): boolean {
  const own = parts.filter(({ type, toolName }) => type === "tool" && ownTool.test(toolName ?? ""));
  for (const { toolCallId } of own) if (toolCallId !== null) ownCalls.add(toolCallId);
  if (role === "tool") {
    const raw: Json = JSON.parse(envelope ?? "{}");
    const fields = isObject(raw) ? raw : {};
    return ownTool.test(resultToolIn(fields) ?? "") || ownCalls.has(resultIdIn(fields) ?? "");
  }
  const said = parts.filter(({ type, text, toolCallId }) => {
    const isOwnResult = type === "text" && toolCallId !== null && ownCalls.has(toolCallId);
    return type !== "reasoning" && !isOwnResult && (text ?? "").trim() !== "";
  });
  const isSilent = said.every((part) => own.includes(part));
  return (
    isSilent && parts.some((part) => own.includes(part) || (part.toolCallId !== null && ownCalls.has(part.toolCallId)))
  );
}
