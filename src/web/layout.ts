/** Lays out the summaries of a conversation on its messages, and decides which state everything is in. Pure but for reads. */

import { isHeadSummary, type PromptRecord } from "../core/model/prompts.ts";
import type { SummaryOutline } from "../core/model/outlines.ts";
import type { AssemblyReport } from "../core/assembly/assemble.ts";
import type { Store } from "../core/model/store.ts";
import { seqOf } from "../core/model/types.ts";
import type { Sources, SummaryId } from "../core/model/types.ts";
import type { NodeState } from "./contract.ts";

interface Span {
  readonly from: number;
  readonly to: number;
}

/** What a prompt shows. */
export interface View {
  readonly summaries: ReadonlySet<SummaryId>;
  /** Numbers of messages, and ranges of them in order. */
  readonly messages: readonly Span[];
  /** Summaries in whose place something finer is shown. */
  readonly within: ReadonlySet<SummaryId>;
  /** Of a recorded prompt: later messages and summaries were not there. */
  readonly newest: { readonly seq: number; readonly at: string } | null;
}

export interface Laid {
  readonly outline: SummaryOutline;
  readonly span: Span;
  readonly state: NodeState;
  readonly above: SummaryId | null;
}

export interface Layout {
  /** By depth, then place. */
  readonly summaries: readonly Laid[];
  readonly byId: ReadonlyMap<SummaryId, Laid>;
  /** What leaves in view of the context represent, in order, without overlaps. */
  readonly covered: readonly Span[];
  readonly view: View;
}

/** What a prompt that would be sent now shows. */
export function viewOfReport({ origins }: AssemblyReport): View {
  const shown = origins.flatMap((origin) => (origin.kind === "note" ? [] : [origin]));
  return {
    summaries: new Set(shown.flatMap(({ id }) => (typeof id === "string" ? [id] : []))),
    messages: spansOf(shown.flatMap(({ id }) => (typeof id === "number" ? [{ from: seqOf(id), to: seqOf(id) }] : []))),
    within: new Set(shown.flatMap(({ within }) => within ?? [])),
    newest: null,
  };
}

export function viewOfRecord({ head, lastSeq, newestSeq, at }: PromptRecord): View {
  const runs = head.items.flatMap((item) => (isHeadSummary(item) ? [] : [{ from: item.from, to: item.to ?? lastSeq }]));
  return {
    summaries: new Set(head.items.flatMap((item) => (isHeadSummary(item) ? [item.summary] : []))),
    messages: spansOf(runs),
    within: new Set(head.items.flatMap(({ within }) => within ?? [])),
    newest: { seq: newestSeq, at },
  };
}

/** In order, neighbours joined. */
export function spansOf(spans: readonly Span[]): readonly Span[] {
  const joined: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last !== undefined && span.from <= last.to + 1)
      joined[joined.length - 1] = { from: last.from, to: Math.max(last.to, span.to) };
    else joined.push(span);
  }
  return joined;
}

/** How many of the numbers from `from` to `to` are in these, which are in order and do not overlap. */
export function countIn(spans: readonly Span[], from: number, to: number): number {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle]?.to ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  let count = 0;
  for (let at = low; at < spans.length; at++) {
    const span = spans[at];
    if (span === undefined || span.from > to) break;
    count += Math.min(to, span.to) - Math.max(from, span.from) + 1;
  }
  return count;
}

/** `context`: the summaries that are items of the context. */
export function layOut(outlines: readonly SummaryOutline[], context: ReadonlySet<SummaryId>, view: View): Layout {
  const below = Map.groupBy(
    outlines.flatMap((outline) => outline.derived.map((above) => ({ above, outline }))),
    ({ above }) => above,
  );
  const spans = new Map<SummaryId, Span>();
  const states = new Map<SummaryId, NodeState>();
  const sources = (id: SummaryId): readonly SummaryOutline[] => (below.get(id) ?? []).map(({ outline }) => outline);
  // Shallow ones first, so that every summary finds its sources laid out.
  for (const outline of outlines.toSorted((a, b) => a.depth - b.depth))
    spans.set(outline.id, spanOf(outline, sources(outline.id), spans));
  const roots = view.newest === null ? context : new Set([...view.summaries, ...view.within]);
  const reach = reachedFrom(roots, sources);
  for (const outline of outlines) states.set(outline.id, stateOf(outline, { view, context, reach }));
  const summaries = outlines
    .map((outline): Laid => {
      const { id, derived } = outline;
      const above = derived.find((each) => reach.has(each)) ?? derived.at(-1) ?? null;
      return { outline, above, span: spans.get(id) ?? nowhere, state: states.get(id) ?? "outside" };
    })
    .toSorted((a, b) => a.outline.depth - b.outline.depth || a.span.from - b.span.from);
  const leaves = summaries.filter(
    ({ outline }) => outline.messages !== null && (reach.has(outline.id) || roots.has(outline.id)),
  );
  return {
    summaries,
    byId: new Map(summaries.map((laid) => [laid.outline.id, laid])),
    covered: spansOf(leaves.map(({ span }) => span)),
    view,
  };
}

/** What an earlier segment carried over lies before the first message. */
const nowhere: Span = { from: 0, to: 0 };

function spanOf(
  { messages }: SummaryOutline,
  sources: readonly SummaryOutline[],
  spans: ReadonlyMap<SummaryId, Span>,
): Span {
  if (messages !== null) return { from: seqOf(messages[0]), to: seqOf(messages[1]) };
  const inside = sources.flatMap(({ id }) => spans.get(id) ?? []).filter(({ to }) => to > 0);
  if (inside.length === 0) return nowhere;
  return { from: Math.min(...inside.map(({ from }) => from)), to: Math.max(...inside.map(({ to }) => to)) };
}

/** Everything below these, without them. */
function reachedFrom(
  roots: ReadonlySet<SummaryId>,
  sources: (id: SummaryId) => readonly SummaryOutline[],
): ReadonlySet<SummaryId> {
  const reached = new Set<SummaryId>();
  const waiting = [...roots];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop())
    for (const { id: source } of sources(id)) {
      if (reached.has(source)) continue;
      reached.add(source);
      waiting.push(source);
    }
  return reached;
}

interface Standing {
  readonly view: View;
  readonly context: ReadonlySet<SummaryId>;
  readonly reach: ReadonlySet<SummaryId>;
}

function stateOf({ id, createdAt }: SummaryOutline, { view, context, reach }: Standing): NodeState {
  if (view.summaries.has(id)) return "prompt";
  if (view.within.has(id)) return "context";
  if (reach.has(id)) return "below";
  // Of a recorded prompt it is only known what it showed, and what was not made yet.
  const isThere = view.newest === null ? context.has(id) : createdAt <= view.newest.at;
  return isThere ? "evicted" : "outside";
}

/** Of a message that is not outside and was not forgotten. */
export function messageState({ view, covered }: Layout, seq: number): NodeState {
  if (view.newest !== null && seq > view.newest.seq) return "outside";
  if (countIn(view.messages, seq, seq) > 0) return "prompt";
  return countIn(covered, seq, seq) > 0 ? "below" : "evicted";
}

/** The same for messages in a row; those with none are left out. */
export function statesIn({ view, covered }: Layout, from: number, to: number): Partial<Record<NodeState, number>> {
  const end = view.newest === null ? to : Math.min(to, view.newest.seq);
  const outside = to - Math.max(from - 1, end);
  const prompt = end < from ? 0 : countIn(view.messages, from, end);
  const all = Math.max(0, end - from + 1);
  const below = Math.min(end < from ? 0 : countIn(covered, from, end), all - prompt);
  const states: Partial<Record<NodeState, number>> = {};
  for (const [state, count] of [
    ["prompt", prompt],
    ["below", below],
    ["evicted", all - prompt - below],
    ["outside", outside],
  ] as const)
    if (count > 0) states[state] = count;
  return states;
}

/** The messages below summaries, by their ids; without those that have none, or no longer exist. */
export async function placesOf(
  store: Store,
  ids: readonly SummaryId[],
): Promise<readonly (readonly [SummaryId, Span])[]> {
  const places: (readonly [SummaryId, Span])[] = [];
  for (const id of ids) {
    const [from, to] = [await edgeOf(store, id, "first"), await edgeOf(store, id, "last")];
    if (from !== null && to !== null) places.push([id, { from, to }]);
  }
  return places;
}

/** Walks down one side. A damaged graph may have a cycle. */
async function edgeOf(store: Store, id: SummaryId, side: "first" | "last"): Promise<number | null> {
  const end = <T>(of: readonly T[]): T | undefined => (side === "first" ? of[0] : of.at(-1));
  const seen = new Set<SummaryId>();
  for (let at: SummaryId | undefined = id; at !== undefined && !seen.has(at);) {
    seen.add(at);
    const found: Sources | undefined = (await store.sources([at])).get(at);
    const message = end(found?.messages ?? []);
    if (message !== undefined) return seqOf(message);
    at = end(found?.summaries ?? []);
  }
  return null;
}
