/** Finds the prompt behind an answer, and in which prompts a message or summary was in view. */

import { LcmError } from "../base/errors.ts";
import type { Timestamp } from "../base/time.ts";
import { isHeadSummary } from "../model/prompts.ts";
import type { HeadRun, PromptHead, PromptRecord } from "../model/prompts.ts";
import type { Store } from "../model/store.ts";
import { conversationIn, messageIdOf, messageName, seqOf } from "../model/types.ts";
import type { ConversationId, MessageId, SummaryId } from "../model/types.ts";
import { shownAbove } from "./compare.ts";
import { readPrompts } from "./read-prompts.ts";

/** Which prompt: the one behind a message, or of a conversation by number, turn or time; by default its newest. */
export type PromptChoice =
  | { readonly message: MessageId }
  | {
      readonly conversation: ConversationId;
      readonly number?: number;
      readonly turn?: string;
      readonly at?: Timestamp;
    };

export interface Seen {
  readonly record: PromptRecord;
  /** The answer that it is behind, if a message was asked for. */
  readonly answer: MessageId | null;
}

export async function findPrompt(store: Store, choice: PromptChoice): Promise<Seen> {
  return "message" in choice ? await promptBehind(store, choice.message) : await promptOf(store, choice);
}

/** Behind a message that is not an answer is the prompt of the next answer. */
async function promptBehind(store: Store, id: MessageId): Promise<Seen> {
  const [message] = await store.messages({ ids: [id] });
  if (message === undefined)
    throw new LcmError("not_found", `there is no ${messageName(id)}`, { hint: "list messages with `lcm messages`" });
  const { conversation, seq } = message;
  const [answer] =
    message.role === "assistant"
      ? [message]
      : await store.messages({ conversation, afterSeq: seq, role: "assistant", limit: 1 });
  if (answer === undefined) throw new LcmError("not_found", `nothing answers ${messageName(id)} yet`);
  const before = { beforeSeq: answer.seq, limit: 1, keep: "newest" } as const;
  const [record] = await readPrompts(store, conversation, before);
  if (record === undefined) throw notRecorded(`no prompt behind ${messageName(answer.id)} is recorded`);
  return { record, answer: answer.id };
}

async function promptOf(
  store: Store,
  { conversation, number, turn, at }: Extract<PromptChoice, { readonly conversation: ConversationId }>,
): Promise<Seen> {
  const [record] = await readPrompts(store, conversation, {
    ...(number === undefined ? {} : { from: number, to: number }),
    ...(turn === undefined ? {} : { turn }),
    ...(at === undefined ? {} : { until: at }),
    limit: 1,
    keep: "newest",
  });
  if (record !== undefined) return { record, answer: null };
  const which =
    number === undefined
      ? turn === undefined
        ? at === undefined
          ? "prompt"
          : "prompt up to then"
        : `prompt of turn ${turn}`
      : `prompt ${number}`;
  throw notRecorded(`no ${which} of conversation ${conversation} is recorded`);
}

const notRecorded = (message: string): LcmError =>
  new LcmError("not_found", message, {
    hint: "prompts that lossless-claw builds are recorded, by our plugin or the proxy; not those that a host builds itself, or of before an import. `lcm stats CONVERSATION` lists them",
  });

// ── In view ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** How prompts show something: itself, only its beginning and end, repeated as a pin, or by a summary of it. */
export type ViewKind = "whole" | "shortened" | "pinned" | "summary" | "no";

/** Prompts that follow each other and show it in the same way. */
export interface ViewSpan {
  readonly view: ViewKind;
  /** The summary that represents it there. */
  readonly by: SummaryId | null;
  readonly from: Pick<PromptRecord, "number" | "at">;
  readonly to: Pick<PromptRecord, "number" | "at">;
  readonly prompts: number;
}

/** In which of the recorded prompts since it was stored something was in view. */
export async function findInPrompts(
  store: Store,
  conversation: ConversationId,
  id: MessageId | SummaryId,
): Promise<readonly ViewSpan[]> {
  const records = await readPrompts(store, conversation);
  const spans: ViewSpan[] = [];
  type Views = Map<PromptHead, Awaited<ReturnType<typeof viewIn>>>;
  const [outside, inside]: [Views, Views] = [new Map(), new Map()];
  for (const record of records) {
    if (record.head.hosts !== undefined || !isStored(id, record)) continue;
    // Only the end of the last run differs among prompts of one head.
    const known = typeof id === "number" && isInLastRun(record, seqOf(id)) ? inside : outside;
    const found = known.get(record.head) ?? (await viewIn(store, record, id));
    known.set(record.head, found);
    const { view, by } = found;
    const last = spans.at(-1);
    const place = { number: record.number, at: record.at };
    if (last !== undefined && last.view === view && last.by === by)
      spans[spans.length - 1] = { ...last, to: place, prompts: last.prompts + 1 };
    else spans.push({ view, by, from: place, to: place, prompts: 1 });
  }
  const [first, ...rest] = spans;
  // Before a summary was made, there was nothing to show.
  return typeof id !== "number" && first?.view === "no" && rest.length > 0 ? rest : spans;
}

const isStored = (id: MessageId | SummaryId, { newestSeq, conversation }: PromptRecord): boolean =>
  typeof id !== "number" || conversationIn(id) !== conversation || seqOf(id) <= newestSeq;

const endOf = ({ to }: HeadRun, { lastSeq }: PromptRecord): number => to ?? lastSeq;

function isInLastRun(record: PromptRecord, seq: number): boolean {
  const last = record.head.items.at(-1);
  return last !== undefined && !isHeadSummary(last) && last.from <= seq && seq <= endOf(last, record);
}

async function viewIn(
  store: Store,
  record: PromptRecord,
  id: MessageId | SummaryId,
): Promise<Pick<ViewSpan, "view" | "by">> {
  const { items, standing } = record.head;
  for (const item of items) {
    if (isHeadSummary(item) ? item.summary === id : isIn(item, record, id))
      return { view: !isHeadSummary(item) && item.cuts !== undefined ? "shortened" : "whole", by: null };
  }
  if (standing?.pins.some(({ message }) => message === id) === true) return { view: "pinned", by: null };
  const shown = new Set(items.flatMap((item) => (isHeadSummary(item) ? [item.summary] : [])));
  const by = await shownAbove(store, id, (summary) => shown.has(summary));
  return { view: by === null ? "no" : "summary", by };
}

const isIn = (run: HeadRun, record: PromptRecord, id: MessageId | SummaryId): boolean =>
  typeof id === "number" &&
  id >= messageIdOf(record.conversation, run.from) &&
  id <= messageIdOf(record.conversation, endOf(run, record));
