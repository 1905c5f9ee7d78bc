/** Compares two recorded prompts: how many bytes they share from the beginning, what changed, and why. */

import { isHeadSummary } from "../model/prompts.ts";
import type { HeadRun, PromptRecord } from "../model/prompts.ts";
import { messageIdOf, seqOf } from "../model/types.ts";
import type { ConversationId, MessageId, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";

// ── Shared bytes ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** A piece of a prompt in its order. Pieces with the same key begin with the same bytes. */
interface Piece {
  readonly key: string;
  /** Of a run, its last message; else 0. */
  readonly to: number;
  readonly bytes: number;
}

/** The bytes that a prompt has in common with the one before it, from its beginning: what a provider may have cached. */
export function sharedBytes(before: PromptRecord, after: PromptRecord): number {
  if (before.hash === "" || after.hash === "") return 0;
  if (before.hash === after.hash) return after.bytes;
  const [older, newer] = [piecesOf(before), piecesOf(after)];
  let shared = 0;
  for (const [at, piece] of newer.entries()) {
    const other = older[at];
    if (other === undefined || other.key !== piece.key) break;
    // A run that is longer in one of them begins with all of the other.
    shared += Math.min(piece.bytes, other.bytes);
    if (piece.to !== other.to || piece.bytes !== other.bytes) break;
  }
  return shared;
}

function piecesOf({ head, bytes, lastSeq }: PromptRecord): readonly Piece[] {
  const { guidance, note, standing, items, unanswered, hidden, edited, dropped } = head;
  // These change what is shown of messages, and are not in every prompt.
  const special = JSON.stringify([unanswered, hidden, edited, dropped]);
  // Standing instructions come behind the last summary before the first messages; hidden ones have no bytes.
  const raw = items.findIndex((item) => !isHeadSummary(item) && item.again !== true && item.bytes !== 0);
  const at = (raw < 0 ? items : items.slice(0, raw)).findLastIndex(isHeadSummary) + 1;
  const block =
    standing === undefined ? [] : [{ key: `standing ${JSON.stringify(standing)}`, to: 0, bytes: standing.bytes }];
  const fixed = [
    ...(guidance === undefined ? [] : [{ key: `guidance ${guidance.digest}`, to: 0, bytes: guidance.bytes }]),
    // The note has the time of the item after it.
    ...(note === undefined ? [] : [{ key: `note ${JSON.stringify(items[0])}`, to: 0, bytes: note }]),
  ];
  const known = [...fixed, ...block].reduce((sum, piece) => sum + piece.bytes, 0);
  const rest = bytes - known - items.reduce((sum, item) => sum + (item.bytes ?? 0), 0);
  const pieces = items.map((item): Piece => {
    if (isHeadSummary(item)) return { key: `${item.summary} ${item.digest}`, to: 0, bytes: item.bytes };
    const { from, to = lastSeq, bytes: own = rest, cuts = [], bare = false, again = false } = item;
    return { key: `${from} ${cuts.join()} ${bare} ${again} ${special}`, to, bytes: own };
  });
  return [...fixed, ...pieces.slice(0, at), ...block, ...pieces.slice(at)];
}

// ── What changed ─────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Comparison {
  readonly before: PromptRecord;
  readonly after: PromptRecord;
  readonly sharedBytes: number;
  readonly changes: readonly PromptChange[];
}

export const changeKinds = [
  "arrived",
  "folded",
  "evicted",
  /** The host went back to an earlier message. */
  "left",
  /** Shown by what it was made from. */
  "unfolded",
  /** Shown in full beside the summary that represents it, or no longer. */
  "repeated",
  "not repeated",
  /** It was evicted, or on another branch, and is shown again. */
  "returned",
  "rewritten",
  "shortened",
  "whole again",
  "pinned",
  "unpinned",
] as const;

/** Of items that are in one of two prompts, or differently in the other. */
export interface PromptChange {
  readonly kind: (typeof changeKinds)[number];
  readonly items: readonly ItemId[];
  /** The summary that they are folded into, or unfolded from. */
  readonly of: SummaryId | null;
}

type ItemId = MessageId | SummaryId;

interface ItemChange {
  readonly kind: PromptChange["kind"];
  readonly id: ItemId;
  readonly of: SummaryId | null;
}

/** What a prompt shows: how much of a message, or the digest of a summary's text. */
type View = ReadonlyMap<ItemId, string>;

export async function comparePrompts(store: Store, before: PromptRecord, after: PromptRecord): Promise<Comparison> {
  const [older, newer] = [await viewOf(store, before), await viewOf(store, after)];
  const gone: ItemChange[] = [];
  for (const id of older.keys()) if (!newer.has(id)) gone.push(await whyGone(store, id, older, newer));
  const come: ItemChange[] = [];
  for (const id of newer.keys()) if (!older.has(id)) come.push(await whyCome(store, id, { older, newer, before }));
  const told = new Set([...gone, ...come].map(({ of }) => of));
  const changed = [...newer].flatMap(([id, text]): readonly ItemChange[] =>
    older.has(id) && older.get(id) !== text ? [{ kind: howChanged(id, text), id, of: null }] : [],
  );
  // A summary that others were folded into, or unfolded from, is told with these.
  const rest = [...gone, ...come].filter(({ id, of }) => of !== null || typeof id === "number" || !told.has(id));
  const groups = Map.groupBy([...rest, ...changed, ...pinChanges(before, after)], ({ kind, of }) => `${kind} ${of}`);
  const changes = [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first === undefined ? [] : [{ kind: first.kind, of: first.of, items: group.map(({ id }) => id) }];
  });
  const order = (change: PromptChange): number => changeKinds.indexOf(change.kind);
  const sorted = changes.toSorted((a, b) => order(a) - order(b));
  return { before, after, sharedBytes: sharedBytes(before, after), changes: sorted };
}

const whole = "";

async function viewOf(store: Store, { conversation, head, lastSeq }: PromptRecord): Promise<View> {
  const view = new Map<ItemId, string>();
  for (const item of head.items) {
    if (isHeadSummary(item)) view.set(item.summary, item.digest);
    else
      for (const seq of await numbersIn(store, conversation, item, lastSeq)) {
        const { cuts = [], bare = false } = item;
        const text = cuts.length === 0 && !bare ? whole : `${cuts.join()} ${bare}`;
        view.set(messageIdOf(conversation, seq), text);
      }
  }
  return view;
}

async function numbersIn(
  store: Store,
  conversation: ConversationId,
  { from, to }: HeadRun,
  lastSeq: number,
): Promise<readonly number[]> {
  const end = to ?? lastSeq;
  const notes = from === end ? [] : await store.noteNumbers(conversation, from, end);
  const skipped = new Set(notes);
  return Array.from({ length: end - from + 1 }, (_, at) => from + at).filter((seq) => !skipped.has(seq));
}

/** The first summary above an item that a prompt shows; null if there is none. */
export async function shownAbove(
  store: Pick<Store, "coveredBy" | "derived">,
  id: ItemId,
  isShown: (summary: SummaryId) => boolean,
): Promise<SummaryId | null> {
  if (typeof id === "number") return (await store.coveredBy(id)).find(isShown) ?? null;
  let level: readonly SummaryId[] = [id];
  const seen = new Set<SummaryId>(level);
  while (level.length > 0) {
    const above = [...(await store.derived(level)).values()].flat().filter((each) => !seen.has(each));
    const shown = above.find(isShown);
    if (shown !== undefined) return shown;
    for (const each of above) seen.add(each);
    level = above;
  }
  return null;
}

async function whyGone(store: Store, id: ItemId, older: View, newer: View): Promise<ItemChange> {
  const of = await shownAbove(store, id, (summary) => newer.has(summary));
  if (of !== null) return { kind: older.has(of) ? "not repeated" : "folded", id, of };
  const [message] = typeof id === "number" ? await store.messages({ ids: [id] }) : [];
  return { kind: message?.aside === "branch" ? "left" : "evicted", id, of: null };
}

interface Coming {
  readonly older: View;
  readonly newer: View;
  readonly before: PromptRecord;
}

async function whyCome(store: Store, id: ItemId, { older, newer, before }: Coming): Promise<ItemChange> {
  const of = await shownAbove(store, id, (summary) => older.has(summary));
  if (of !== null) return { kind: newer.has(of) ? "repeated" : "unfolded", id, of };
  const isNew = typeof id === "number" && seqOf(id) > before.newestSeq;
  return { kind: isNew ? "arrived" : "returned", id, of: null };
}

function howChanged(id: ItemId, text: string): PromptChange["kind"] {
  if (typeof id !== "number") return "rewritten";
  return text === whole ? "whole again" : "shortened";
}

function pinChanges({ head: before }: PromptRecord, { head: after }: PromptRecord): readonly ItemChange[] {
  const idsOf = ({ standing }: typeof before) => new Set(standing?.pins.map(({ message }) => message));
  const [older, newer] = [idsOf(before), idsOf(after)];
  return [
    ...[...newer.difference(older)].map((id) => ({ kind: "pinned" as const, id, of: null })),
    ...[...older.difference(newer)].map((id) => ({ kind: "unpinned" as const, id, of: null })),
  ];
}
