/**
 * Undoing a fold by hand: what a summary was made from returns to its place in the context. The plan says what comes
 * back, what has to make room and what that costs a prompt, and refuses what cannot be, naming what to do instead.
 */

import type { Changed, DissolvePlan } from "../model/changes.ts";
import { LcmError } from "../base/errors.ts";
import type {
  ContextItem,
  Conversation,
  ConversationId,
  Message,
  Sources,
  Summary,
  SummaryId,
} from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { applyOrReplan } from "./apply-or-replan.ts";
import { firstLine } from "../base/excerpt.ts";
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
  /** Which item of the context it is, from 1, and of how many; null for one that is in no context. */
  readonly place: { readonly item: number; readonly of: number } | null;
  /** What comes back in its place, oldest first. */
  readonly run: readonly Returning[];
  /** Later items that get other ordinals to make room. */
  readonly shifted: number;
  /** Of the whole context, as a prompt. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** What was made from it, and what carries its text over: as long as these are there, it cannot be purged. */
  readonly derived: readonly SummaryId[];
  readonly carriedBy: readonly SummaryId[];
}

export interface SummaryInShort extends Pick<Summary, "id" | "depth" | "tokens" | "earliestAt" | "latestAt"> {
  /** How its text begins. */
  readonly opening: string;
}

interface MessageInShort extends Pick<Message, "id" | "role" | "tokens" | "at"> {
  readonly opening: string;
}

export type Returning =
  | ({ readonly kind: "summary" } & SummaryInShort)
  | ({ readonly kind: "message" } & MessageInShort);

const openingMax = 160;

export const summaryInShort = ({ id, depth, tokens, earliestAt, latestAt, text }: Summary): SummaryInShort => ({
  id,
  depth,
  tokens,
  earliestAt,
  latestAt,
  opening: firstLine(text, openingMax),
});

// ── Making room ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** An item of the context that gets another ordinal. */
export interface Move {
  readonly from: number;
  readonly to: number;
}

/** Which of the later items, oldest first, must move so that all before `free` is; each no further than it must. */
export function movesFor(later: readonly number[], free: number): readonly Move[] {
  const staying = later.findIndex((from, index) => from >= free + index);
  const crowded = staying === -1 ? later : later.slice(0, staying);
  return crowded.map((from, index) => ({ from, to: free + index }));
}

// ── Planning ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a plan is made from. */
export interface DissolveFacts {
  readonly conversation: Conversation;
  readonly context: readonly ContextItem[];
  readonly summary: Summary | undefined;
  readonly links: Sources;
  readonly messages: readonly Message[];
  readonly summaries: readonly Summary[];
  /** What was made from it, and from that, and so on. */
  readonly above: readonly SummaryId[];
  readonly derived: readonly SummaryId[];
  readonly carriedBy: readonly SummaryId[];
}

export async function readForDissolve(
  store: Store,
  { conversation, summary }: DissolveRequest,
): Promise<DissolveFacts> {
  const [found] = await store.summaries({ ids: [summary] });
  const links = (await store.sources([summary])).get(summary) ?? { messages: [], summaries: [] };
  const derived = (await store.derived([summary])).get(summary) ?? [];
  return {
    conversation: await mustFind(store, conversation),
    context: await store.context(conversation),
    summary: found,
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
      hint: `\`lcm dag ${conversation.id}\` lists those of the conversation`,
    });
  }
  if (summary.conversation !== conversation.id) {
    throw new LcmError("invalid", `${id} is of conversation ${summary.conversation}, not of ${conversation.id}`, {
      hint: `\`lcm dissolve ${summary.conversation} --summary ${id}\``,
    });
  }
  return summary;
}

/** It is not in the context: covered by another, or dissolved or left by the host, and then only its row can still go. */
function refuseUnlessPurging(id: SummaryId, purge: boolean, { conversation, context, above }: DissolveFacts): void {
  const cover = context.find((item) => item.kind === "summary" && above.includes(item.id));
  if (cover !== undefined) {
    throw new LcmError("conflict", `${id} is not in the context itself: ${cover.id} stands for it there`, {
      hint: `first \`lcm dissolve ${conversation.id} --summary ${cover.id} --apply\`, which brings back what it was made from`,
    });
  }
  if (purge) return;
  throw new LcmError("conflict", `${id} is in no context: there is no place for what it was made from`, {
    hint: "--purge removes its stored text",
  });
}

function refuseIfNeeded(id: SummaryId, { conversation, derived, carriedBy }: DissolveFacts): void {
  const [above] = derived;
  if (above !== undefined) {
    throw new LcmError("conflict", `${id} cannot be purged: ${derived.join(", ")} was made from it`, {
      hint: `leave --purge out, or first \`lcm dissolve ${conversation.id} --summary ${above} --purge --apply\``,
    });
  }
  if (carriedBy.length > 0) {
    throw new LcmError("conflict", `${id} cannot be purged: ${carriedBy.join(", ")} carries its text over`, {
      hint: "leave --purge out: its row stays, and with it what lies below can be read from there",
    });
  }
}

function runOf(summary: Summary, { conversation, links, messages, summaries }: DissolveFacts): readonly Returning[] {
  const { id, carriedFrom } = summary;
  if (links.messages.length + links.summaries.length === 0) {
    throw carriedFrom === null
      ? new LcmError("invalid", `${id} has no sources that could return`, {
          hint: `its links are damaged; \`lcm doctor ${conversation.id}\` tells more`,
        })
      : new LcmError("invalid", `${id} has no sources here: its text was carried over from ${carriedFrom}`, {
          hint: `\`lcm expand ${id}\` shows what that was made from, where it is still there`,
        });
  }
  const own = [...messages, ...summaries].filter((source) => source.conversation === conversation.id);
  const missing = links.messages.length + links.summaries.length - own.length;
  if (missing > 0) {
    throw new LcmError("corrupt", `${missing} of the sources of ${id} are not there, or not of this conversation`, {
      hint: `nothing was changed; \`lcm doctor ${conversation.id}\` tells more`,
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

// ── Doing it ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Dissolved extends Changed {
  /** What was applied: the plan given, or one made again because the conversation had changed. */
  readonly plan: Dissolution;
  readonly items: number;
  readonly shifted: number;
}

export async function dissolve(
  store: Store,
  planned: Dissolution,
  onReplan?: (plan: Dissolution) => void,
): Promise<Dissolved> {
  const { plan, done } = await applyOrReplan(planned, {
    apply: async ({ conversation, summary, ordinal, purge }) =>
      await store.dissolve({ conversation, summary, ordinal, purge }),
    replan: async () => planDissolve(planned, await readForDissolve(store, planned)),
    onReplan,
  });
  const { change, items, shifted } = done;
  return { plan, change, items, shifted };
}
