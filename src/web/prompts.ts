/** What the model saw: prompts item by item, and what they cost over time. */

import type { Assembly } from "../core/assembly/assemble.ts";
import { LcmError } from "../core/base/errors.ts";
import type { Timestamp } from "../core/base/time.ts";
import type { Lcm } from "../core/lcm.ts";
import { isSummaryId, parseMessageId, type ConversationId, type SummaryId } from "../core/model/types.ts";
import type { PromptChoice } from "../core/seen/find-seen.ts";
import { idsOf, itemName, itemsOf, itemText, rangeOf, reservations } from "../format/context.ts";
import { viewSentence } from "../format/seen.ts";
import { changesTo } from "../operator/prompts.ts";
import { blocksIn } from "./blocks.ts";
import type { InView, ItemText, PromptItem, PromptReading, Reads, Stats } from "./contract.ts";
import type { Layout } from "./layout.ts";
import { findId, opened } from "./reading.ts";
import { paceOf, readLayout } from "./timeline.ts";

async function readItems({ store }: Lcm, assembly: Assembly): Promise<readonly PromptItem[]> {
  const ids = idsOf(assembly.report);
  const items = itemsOf(assembly, {
    summaries: await store.summaries({ ids: ids.summaries }),
    messages: await store.messages({ ids: ids.messages }),
  });
  return items.map((item) => ({
    origin: item.origin,
    name: itemName(item.origin),
    at: rangeOf(item)?.[0] ?? null,
    opening: opened(itemText(item)),
  }));
}

const reportOf = ({ report: { origins: _, ...report } }: Assembly): PromptReading["report"] => report;

/** The one that would be sent now. */
export async function readPromptNow(
  lcm: Lcm,
  conversation: ConversationId,
  budget: number | undefined,
): Promise<PromptReading> {
  const assembly = await lcm.assemble(conversation, budget === undefined ? {} : { budget });
  return {
    conversation,
    record: null,
    answer: null,
    report: reportOf(assembly),
    guidance: null,
    items: await readItems(lcm, assembly),
    isExact: true,
    reasons: [],
    changes: null,
    notes: reservations(assembly.report),
    leftOut: await leftOutOf(lcm, conversation, assembly.report),
  };
}

export async function readPrompt(lcm: Lcm, choice: PromptChoice): Promise<PromptReading> {
  const seen = await lcm.findPrompt(choice);
  const { record, answer } = seen;
  const { assembly, guidance, isExact, reasons } = await lcm.rebuild(record);
  return {
    conversation: record.conversation,
    record,
    answer,
    report: reportOf(assembly),
    guidance,
    items: await readItems(lcm, assembly),
    isExact,
    reasons,
    changes: await changesTo(lcm, record.conversation, seen),
    notes: reservations(assembly.report),
    leftOut: leftOutThen(await readLayout(lcm, record.conversation, record.number), assembly.report.evicted.items),
  };
}

async function leftOutOf({ store }: Lcm, id: ConversationId, { evicted, origins }: Assembly["report"]) {
  if (evicted.items === 0) return [];
  const shown = new Set(origins.flatMap((origin) => (origin.kind === "note" ? [] : [origin.id, origin.within])));
  return (await store.context(id)).flatMap((item) => (shown.has(item.id) ? [] : [item.id]));
}

/** The summaries that there were then, and that it neither showed nor had below others; if they are as many as it left. */
function leftOutThen({ summaries, byId }: Layout, count: number): readonly SummaryId[] {
  const isOut = (id: SummaryId | null): boolean => id !== null && byId.get(id)?.state === "evicted";
  const left = summaries.flatMap(({ outline: { id }, above }) => (isOut(id) && !isOut(above) ? [id] : []));
  return left.length === count ? left : [];
}

interface ItemAsked {
  readonly conversation: ConversationId;
  readonly number: number | undefined;
  readonly budget: number | undefined;
  readonly item: number;
}

export async function readItem(lcm: Lcm, { conversation, number, budget, item }: ItemAsked): Promise<ItemText> {
  const { messages } =
    number === undefined
      ? await lcm.assemble(conversation, budget === undefined ? {} : { budget })
      : (await lcm.rebuild((await lcm.findPrompt({ conversation, number })).record)).assembly;
  const raw = messages[item];
  if (raw === undefined) throw new LcmError("not_found", `the prompt has no item ${item}`);
  return { role: typeof raw["role"] === "string" ? raw["role"] : "message", blocks: blocksIn(raw, new Set()) };
}

export async function readPromptNumbers(
  { store }: Lcm,
  conversation: ConversationId,
): Promise<Reads["prompts"]["answer"]> {
  const [first] = (await store.prompts(conversation, { limit: 1 })).rows;
  const [last] = (await store.prompts(conversation, { limit: 1, keep: "newest" })).rows;
  return { first: first?.number ?? null, last: last?.number ?? null };
}

export async function readInView(lcm: Lcm, asked: string, zone: string): Promise<InView> {
  const id = parseMessageId(asked) ?? (isSummaryId(asked) ? asked : null);
  if (id === null)
    throw new LcmError("invalid", `${JSON.stringify(asked.slice(0, 80))} is neither a message nor a summary`, {
      hint: "ids look like msg_1-42 and sum_0123456789abcdef",
    });
  const { conversation } = await findId(lcm, asked);
  const spans = await lcm.findInPrompts(conversation, id);
  return { conversation, id, spans, words: viewSentence(spans, zone) };
}

const compactionsMax = 500;
const paceMarks = 257;

export async function readStats(
  lcm: Lcm,
  { conversation, since, limit }: { conversation: ConversationId; since: Timestamp | undefined; limit: number },
): Promise<Stats> {
  const { store } = lcm;
  const stats = await lcm.promptStats({ conversation, limit, ...(since === undefined ? {} : { since }) });
  const from = since ?? stats.prompts[0]?.at ?? null;
  return {
    stats,
    compactions: (await store.compactions(conversation, compactionsMax)).filter(
      ({ at }) => from === null || at >= from,
    ),
    calls: from === null ? [] : await store.summaryCalls(conversation, from),
    pace: paceOf(await store.pace(conversation, paceMarks)),
  };
}
