/** What the context screen asks: the prompt at a given budget, and windows of the items it leaves out. */

import type { AssemblyReport, Origin } from "../../core/assembly/assemble.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import { LcmError } from "../../core/base/errors.ts";
import { pinsRead } from "../../core/assembly/standing-block.ts";
import { messageName } from "../../core/model/types.ts";
import type { ContextItem, Conversation, ConversationId, Role } from "../../core/model/types.ts";
import type { Store } from "../../core/model/store.ts";
import { idsOf, itemsOf, rangeOf, itemText } from "../../format/context.ts";
import { inShort, openingOf } from "../../format/messages.ts";
import { whyPinned } from "../../format/pins.ts";
import { reads, type OfConversation } from "../../operator/port.ts";
import type { Timestamp } from "../../core/base/time.ts";

export interface Prompt {
  readonly conversation: Conversation;
  readonly report: AssemblyReport;
  /** A sweep is due above this. */
  readonly thresholdTokens: number;
  readonly entries: readonly PromptEntry[];
  readonly left: Left;
  /** Tokens of the smallest message, if nothing fits the budget. */
  readonly smallest: number | null;
}

export interface PromptEntry {
  readonly origin: Origin;
  readonly shown: HostMessage;
  readonly range: Range | null;
  /** Its opening words. */
  readonly words: string;
  /** Tokens of the prompt up to and including this entry. */
  readonly sum: number;
  /** Of standing instructions: why each is pinned. */
  readonly why: readonly string[];
}

export type Range = readonly [earliest: Timestamp, latest: Timestamp];

/** The oldest items, which do not fit. There may be a million, so only a window of them is loaded. */
export interface Left extends LeftWindow {
  readonly count: number;
  /** The ordinal at which the prompt begins. */
  readonly boundary: number;
}

export interface LeftWindow {
  /** The position of the first row, counted from the oldest item. */
  readonly from: number;
  readonly rows: readonly LeftRow[];
}

export interface LeftRow {
  readonly item: ContextItem;
  readonly role: Role | null;
  readonly range: Range | null;
  readonly words: string;
}

/** The item that a window adjoins. */
export interface Anchor {
  readonly side: "before" | "after";
  readonly ordinal: number;
  readonly position: number;
}

interface Budgeted extends OfConversation {
  /** Null: the conversation's own. */
  readonly budget: number | null;
}

interface LeftOut extends OfConversation, Pick<Left, "boundary"> {
  readonly anchor: Anchor;
}

const windowItems = 300;
const wordsMax = 240;
/** How many messages are searched for the smallest. */
const lookedAt = 1_000;

export const contextAsks = {
  prompt: reads(async (lcm, { conversation: id, budget }: Budgeted): Promise<Prompt> => {
    const { store } = lcm;
    const assembly = await lcm.assemble(id, budget === null ? {} : { budget });
    const { report } = assembly;
    const conversation = await store.conversation(id);
    if (conversation === null) throw new LcmError("not_found", `conversation ${id} no longer exists`);
    const ids = idsOf(report);
    const items = itemsOf(assembly, {
      summaries: await store.summaries({ ids: ids.summaries }),
      messages: await store.messages({ ids: ids.messages }),
    });
    const why = await readReasons(store, conversation, report);
    let sum = 0;
    const entries = items.map((item) => {
      sum += item.origin.tokens;
      const words = itemText(item).slice(0, wordsMax);
      return { origin: item.origin, shown: item.shown, range: rangeOf(item), words, sum, why: why(item.origin) };
    });
    return {
      conversation,
      report,
      thresholdTokens: Math.floor(lcm.settings.contextThreshold * report.budget),
      entries,
      left: await findLeft(store, conversation, report),
      smallest: report.outcome === "starved" ? await smallestOf(store, id) : null,
    };
  }),
  leftOut: reads(async ({ store }, { conversation, boundary, anchor }: LeftOut): Promise<LeftWindow> => {
    const { side, ordinal, position } = anchor;
    const items = await store.context(
      conversation,
      side === "before"
        ? { before: ordinal, limit: windowItems, keep: "newest" }
        : { after: ordinal, before: boundary, limit: windowItems, keep: "oldest" },
    );
    return { from: side === "before" ? position - items.length : position + 1, rows: await readRows(store, items) };
  }),
};

/** Why each standing instruction of the prompt is pinned. */
async function readReasons(
  store: Store,
  { id }: Conversation,
  { standing }: AssemblyReport,
): Promise<(origin: Origin) => readonly string[]> {
  const pins = standing.items === 0 ? [] : await store.pins(id, { inForce: true, limit: pinsRead });
  return (origin) => {
    const shown = new Set(origin.kind === "note" ? origin.standing : []);
    return pins.flatMap((pin) => (shown.has(pin.message) ? [`${messageName(pin.message)}: ${whyPinned(pin)}`] : []));
  };
}

/** How far the boundary may lie beyond the shown items: empty ones, and results whose calls are cut off. */
const slack = 64;

async function findLeft(store: Store, { id, totals }: Conversation, report: AssemblyReport): Promise<Left> {
  if (report.evicted.items === 0) return { count: 0, boundary: 0, from: 0, rows: [] };
  const shown: ReadonlySet<unknown> = new Set(
    report.origins.flatMap((each) => (each.kind === "note" ? [] : [each.id])),
  );
  const limit = shown.size + report.leftOut.items + slack;
  const newest = await store.context(id, { limit, keep: "newest" });
  const older = Math.max(0, totals.contextItems - newest.length);
  const [first = newest.length, second = newest.length] = newest.flatMap((item, at) =>
    shown.has(item.id) ? [at] : [],
  );
  // The newest user message may be moved before the items left out; then the prompt begins at the next one.
  const at = older + first >= report.evicted.items ? first : second;
  const boundary = newest[at]?.ordinal ?? (newest.at(-1)?.ordinal ?? 0) + 1;
  const items = await store.context(id, { before: boundary, limit: windowItems, keep: "newest" });
  return { count: older + at, boundary, from: older + at - items.length, rows: await readRows(store, items) };
}

async function readRows(store: Store, items: readonly ContextItem[]): Promise<readonly LeftRow[]> {
  const found = await store.summaries({ ids: items.flatMap((each) => (each.kind === "summary" ? [each.id] : [])) });
  const said = await store.messages({ ids: items.flatMap((each) => (each.kind === "message" ? [each.id] : [])) });
  const summaries = new Map(found.map((each) => [each.id, each]));
  const messages = new Map(said.map((each) => [each.id, each]));
  return items.map((item) => {
    const summary = item.kind === "summary" ? summaries.get(item.id) : undefined;
    const message = item.kind === "message" ? messages.get(item.id) : undefined;
    const words = message !== undefined ? inShort(message) : summary !== undefined ? openingOf(summary) : "";
    return { item, role: message?.role ?? null, range: rangeOf({ summary, message }), words: words.slice(0, wordsMax) };
  });
}

async function smallestOf(store: Store, id: ConversationId): Promise<number | null> {
  const newest = await store.context(id, { kind: "message", limit: lookedAt, keep: "newest" });
  return newest.reduce<number | null>((least, { tokens }) => Math.min(least ?? tokens, tokens), null);
}
