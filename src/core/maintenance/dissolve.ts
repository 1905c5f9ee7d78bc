/**
 * Plans and applies a dissolve: puts the sources of a summary back into its place in the context.
 * The plan lists what returns, what must move and what a prompt will cost.
 */

import type { DissolvePlan } from "../model/changes.ts";
import { LcmError } from "../base/errors.ts";
import type { ConversationId, Message, Summary, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { applyOrReplan } from "./apply-or-replan.ts";
import { belowHeadings, firstLine } from "../base/excerpt.ts";
import { sumTokens } from "../base/tokens.ts";
import { mustFind } from "../model/find-conversation.ts";
import { promptTokens } from "../model/prompt-cost.ts";

export interface DissolveRequest {
  readonly conversation: ConversationId;
  readonly summary: SummaryId;
  readonly purge?: boolean;
}

export interface Dissolution extends DissolvePlan {
  readonly purge: boolean;
  readonly dissolved: SummaryInShort;
  /** Its position in the context, from 1; null if it is not in the context. */
  readonly place: { readonly item: number; readonly of: number } | null;
  /** The sources that return, oldest first. */
  readonly run: readonly Returning[];
  /** Later items that move to make room. */
  readonly shifted: number;
  /** Of the whole context as a prompt. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** Summaries made from it or carrying its text: while they exist, it cannot be purged. */
  readonly derived: readonly SummaryId[];
  readonly carriedBy: readonly SummaryId[];
}

export interface SummaryInShort extends Pick<Summary, "id" | "depth" | "tokens" | "earliestAt" | "latestAt"> {
  readonly opening: string;
}

export type Returning =
  | ({ readonly kind: "summary" } & SummaryInShort)
  | ({ readonly kind: "message"; readonly opening: string } & Pick<Message, "id" | "role" | "tokens" | "at">);

const openingMax = 160;

export function summaryInShort({ id, depth, tokens, earliestAt, latestAt, text }: Summary): SummaryInShort {
  return { id, depth, tokens, earliestAt, latestAt, opening: firstLine(belowHeadings(text), openingMax) };
}

/** A context item that gets another ordinal. */
export interface Move {
  readonly from: number;
  readonly to: number;
}

/** Moves later items, oldest first, so that all ordinals before `free` are free; each no further than needed. */
export function movesFor(later: readonly number[], free: number): readonly Move[] {
  const staying = later.findIndex((from, index) => from >= free + index);
  const crowded = staying === -1 ? later : later.slice(0, staying);
  return crowded.map((from, index) => ({ from, to: free + index }));
}

type DissolveFacts = Awaited<ReturnType<typeof readForDissolve>>;

export async function readForDissolve(store: Store, { conversation, summary }: DissolveRequest) {
  const [stored] = await store.summaries({ ids: [summary] });
  const links = (await store.sources([summary])).get(summary) ?? { messages: [], summaries: [] };
  const derived = (await store.derived([summary])).get(summary) ?? [];
  return {
    conversation: await mustFind(store, conversation),
    context: await store.context(conversation),
    summary: stored,
    links,
    messages: await store.messages({ ids: links.messages }),
    summaries: await store.summaries({ ids: links.summaries }),
    above: await allAbove(store, derived),
    derived,
    carriedBy: await store.carriedBy(summary),
  };
}

async function allAbove(store: Store, derived: readonly SummaryId[]): Promise<readonly SummaryId[]> {
  const above = new Set<SummaryId>();
  for (let level = derived; level.length > 0;) {
    for (const id of level) above.add(id);
    const next = [...(await store.derived(level)).values()].flat();
    level = next.filter((id) => !above.has(id));
  }
  return [...above];
}

export function planDissolve({ summary: id, purge = false }: DissolveRequest, facts: DissolveFacts): Dissolution {
  const { conversation, context, derived, carriedBy } = facts;
  const summary = ownSummary(id, facts);
  const at = context.findIndex((item) => item.id === id);
  const item = context[at];
  if (item === undefined) refuseUnlessPurging(id, purge, facts);
  if (purge) refuseIfNeeded(id, facts);
  const { totals } = conversation;
  const { ordinal = null, tokens = 0 } = item ?? {};
  const run = ordinal === null ? [] : runOf(summary, facts);
  const later = context.slice(at + 1).map((each) => each.ordinal);
  return {
    conversation: conversation.id,
    summary: id,
    ordinal,
    purge,
    dissolved: summaryInShort(summary),
    place: ordinal === null ? null : { item: at + 1, of: context.length },
    run,
    shifted: ordinal === null ? 0 : movesFor(later, ordinal + run.length).length,
    tokensBefore: promptTokens(totals),
    tokensAfter: promptTokens({
      ...totals,
      contextTokens: totals.contextTokens + sumTokens(run) - tokens,
      contextItems: totals.contextItems + run.length - (ordinal === null ? 0 : 1),
      contextMessages: totals.contextMessages + run.filter(({ kind }) => kind === "message").length,
    }),
    derived,
    carriedBy,
  };
}

function ownSummary(id: SummaryId, { conversation, summary }: DissolveFacts): Summary {
  if (summary === undefined) {
    throw new LcmError("not_found", `there is no summary ${id}`, {
      hint: `run \`lcm dag ${conversation.id}\` to list the summaries of the conversation`,
    });
  }
  if (summary.conversation !== conversation.id) {
    throw new LcmError("invalid", `${id} belongs to conversation ${summary.conversation}, not ${conversation.id}`, {
      hint: `run \`lcm dissolve ${summary.conversation} --summary ${id}\``,
    });
  }
  return summary;
}

/** For a summary that is not in the context: it can only be purged, unless another one covers it. */
function refuseUnlessPurging(id: SummaryId, purge: boolean, { conversation, context, above }: DissolveFacts): void {
  const cover = context.find((item) => item.kind === "summary" && above.includes(item.id));
  if (cover !== undefined) {
    throw new LcmError("conflict", `${id} is not in the context: ${cover.id} covers it`, {
      hint: `first run \`lcm dissolve ${conversation.id} --summary ${cover.id} --apply\` to put its sources back`,
    });
  }
  if (purge) return;
  throw new LcmError("conflict", `${id} is not in the context, so its sources have no place to return to`, {
    hint: "pass --purge to delete its stored text",
  });
}

function refuseIfNeeded(id: SummaryId, { conversation, derived, carriedBy }: DissolveFacts): void {
  const [above] = derived;
  if (above !== undefined) {
    throw new LcmError("conflict", `${id} cannot be purged: it is a source of ${derived.join(", ")}`, {
      hint: `leave out --purge, or first run \`lcm dissolve ${conversation.id} --summary ${above} --purge --apply\``,
    });
  }
  if (carriedBy.length > 0) {
    throw new LcmError("conflict", `${id} cannot be purged: its text is carried by ${carriedBy.join(", ")}`, {
      hint: "leave out --purge to keep its row",
    });
  }
}

function runOf(summary: Summary, { conversation, links, messages, summaries }: DissolveFacts): readonly Returning[] {
  const { id, carriedFrom } = summary;
  if (links.messages.length + links.summaries.length === 0) {
    throw carriedFrom === null
      ? new LcmError("invalid", `${id} has no sources to put back`, {
          hint: `its links are damaged; run \`lcm doctor ${conversation.id}\` for details`,
        })
      : new LcmError("invalid", `${id} has no sources here: its text was carried over from ${carriedFrom}`, {
          hint: `run \`lcm expand ${id}\` to read the sources of the original, if it still exists`,
        });
  }
  const own = [...messages, ...summaries].filter((source) => source.conversation === conversation.id);
  const missing = links.messages.length + links.summaries.length - own.length;
  if (missing > 0) {
    throw new LcmError("corrupt", `${missing} of the sources of ${id} are missing or belong to another conversation`, {
      hint: `nothing was changed; run \`lcm doctor ${conversation.id}\` for details`,
    });
  }
  return [
    ...messages.map(messageInShort),
    ...summaries.map((source) => ({ kind: "summary" as const, ...summaryInShort(source) })),
  ];
}

function messageInShort({ id, role, tokens, at, text }: Message): Returning {
  return { kind: "message", id, role, tokens, at, opening: firstLine(text, openingMax) };
}

/** Returns the plan that was applied, made again if the conversation had changed, with what it changed. */
export async function dissolve(store: Store, planned: Dissolution, onReplan?: (plan: Dissolution) => void) {
  const { plan, done } = await applyOrReplan(planned, {
    apply: async ({ conversation, summary, ordinal, purge }) =>
      await store.dissolve({ conversation, summary, ordinal, purge }),
    replan: async () => planDissolve(planned, await readForDissolve(store, planned)),
    onReplan,
  });
  const { change, items, shifted } = done;
  return { plan, change, items, shifted };
}
