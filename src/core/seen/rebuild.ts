/**
 * Rebuilds a recorded prompt from stored rows, with the code that assembled it. Messages never change, unless they are
 * forgotten; summaries and pins that have changed since are read back from the journal, by the digest of what was shown.
 * The recorded hash decides whether the bytes are the same.
 */

import { toAssembly, type Assembly } from "../assembly/assemble.ts";
import { createPromptBuilder, type FindElsewhere } from "../assembly/build-prompt.ts";
import { isMessage, presentItem, presentSummary, shorten, withoutResults } from "../assembly/prompt-items.ts";
import type { Edits, PromptItem, Slot } from "../assembly/prompt-items.ts";
import { lineOf as pinLine, renderStanding, showNoStanding, type ShowStanding } from "../assembly/standing-block.ts";
import type { ShownItem } from "../assembly/zoom.ts";
import { sha256Start, shortDigest } from "../base/digest.ts";
import { plural } from "../base/format.ts";
import { renderingVersion, isHeadSummary } from "../model/prompts.ts";
import type { HeadRun, HeadSummary, PromptRecord } from "../model/prompts.ts";
import type { PastTexts, Store } from "../model/store.ts";
import { forgottenMark, messageIdOf, messageName } from "../model/types.ts";
import type { Message, Pin, Sources, Summary, SummaryId } from "../model/types.ts";
import { guidanceAbout, recallGuidance } from "../prompts/guidance.ts";
import { guidanceLine, lineOf } from "./prompt-text.ts";

export interface Rebuilt {
  readonly record: PromptRecord;
  /** What was sent, as far as it is known. */
  readonly assembly: Assembly;
  /** What was added to the system prompt; null if nothing was, or if it is not known. */
  readonly guidance: string | null;
  /** Our part of the prompt: a line of JSON per message, the guidance first. */
  readonly text: string;
  /** Whether the text has the recorded hash. */
  readonly isExact: boolean;
  /** Why not, a sentence each; empty if it is exact. */
  readonly reasons: readonly string[];
}

/** What is collected while a prompt is rebuilt. */
interface Work {
  readonly store: Store;
  readonly record: PromptRecord;
  readonly reasons: string[];
  /** Reads the journal, once. */
  readonly past: () => Promise<PastTexts>;
}

export async function rebuild(store: Store, record: PromptRecord): Promise<Rebuilt> {
  const { head, budget } = record;
  let past: Promise<PastTexts> | null = null;
  const work: Work = {
    store,
    record,
    reasons: [],
    past: async () => await (past ??= store.pastTexts(record.conversation)),
  };
  const { kept, items } = await readKept(work);
  const counted = kept.filter(({ cost }) => cost > 0).length;
  const totalItems = counted + (head.evicted?.items ?? 0);
  const showStanding = await readStanding(work);
  const elsewhere = asRecorded(head.unanswered ?? "");
  const within = async (tokens: number) =>
    await createPromptBuilder({ budget: tokens, totalItems }, showStanding, elsewhere)(kept);
  // Tokens may be counted differently now: then it is shown all the same.
  const built = (await within(budget)) ?? (await within(Infinity));
  const total = kept.reduce((sum, { cost }) => sum + cost, 0) + (head.evicted?.tokens ?? 0);
  const frame = {
    budget,
    items,
    total,
    totalItems,
    finer: head.finer ?? { items: 0, tokens: 0 },
    conversation: record.conversation,
    stored: record.newestSeq,
    edits: undefined,
  };
  const raw = kept.flatMap(({ source, position }) => (isMessage(source) ? [position] : []));
  const tail = raw.at(-Math.max(1, record.tail)) ?? items.length;
  const assembly = withoutLast(toAssembly(built, { ...frame, tail }, tail), head.dropped ?? 0);
  const guidance = guidanceOf(work);
  const text = [...(guidance === null ? [] : [guidanceLine(guidance)]), ...assembly.messages.map(lineOf)].join("");
  const isExact = record.hash !== "" && (await sha256Start(new TextEncoder().encode(text))) === record.hash;
  return { record, assembly, guidance, text, isExact, reasons: isExact ? [] : whyNot(work, kept) };
}

function whyNot(
  { record: { head, conversation, hash }, reasons }: Work,
  kept: readonly PromptItem[],
): readonly string[] {
  if (head.hosts !== undefined) return [`the host sent its own messages: ${head.hosts}`];
  const forgotten = kept.flatMap(({ source }) =>
    isMessage(source) && source.text.includes(forgottenMark) ? [messageName(source.id)] : [],
  );
  const known = [
    ...(head.version === renderingVersion
      ? []
      : [`another version of lossless-claw wrote it (rendering ${head.version})`]),
    ...(head.conversation === conversation ? [] : [`the conversation was number ${head.conversation} then`]),
    ...reasons,
    ...forgotten.map((name) => `${name} was forgotten, in whole or in part`),
    ...(head.edited ?? []).map(
      (seq) => `the host showed something else in the place of ${messageName(messageIdOf(conversation, seq))}`,
    ),
  ];
  return known.length > 0 ? known : [`its hash is not ${hash}: stored rows differ from then; run \`lcm doctor\``];
}

/** Results may have been stored since, so what was known of them then is recorded. */
const asRecorded =
  (flags: string): FindElsewhere =>
  async ({ unanswered }) => {
    const isElsewhere = new Set(unanswered.filter((_, at) => flags[at] === "1").map(({ at, id }) => `${at} ${id}`));
    return await Promise.resolve(({ at, id }) => isElsewhere.has(`${at} ${id}`));
  };

function withoutLast(assembly: Assembly, dropped: number): Assembly {
  const end = assembly.messages.length - dropped;
  const { report } = assembly;
  const origins = report.origins.slice(0, end);
  return { ...assembly, messages: assembly.messages.slice(0, end), report: { ...report, origins } };
}

function guidanceOf({ record: { head }, reasons }: Work): string | null {
  if (head.guidance === undefined) return null;
  const { digest } = head.guidance;
  const known = guidanceAbout.map(recallGuidance).find((text) => shortDigest(text) === digest);
  if (known === undefined) reasons.push("what was added to the system prompt then is not known");
  return known ?? null;
}

async function readStanding({ store, record, reasons, past }: Work): Promise<ShowStanding> {
  const { standing } = record.head;
  if (standing === undefined) return showNoStanding;
  const present = new Map((await store.pins(record.conversation)).map((pin) => [pin.message, pin]));
  const pins: Pin[] = [];
  for (const { message, digest } of standing.pins) {
    const now = present.get(message);
    const isThen = now !== undefined && shortDigest(pinLine(now)) === digest;
    const then = isThen ? now : (await past()).pins.find((pin) => shortDigest(pinLine(pin)) === digest);
    if (then === undefined) reasons.push(`what was pinned of ${messageName(message)} then is no longer known`);
    const shown = then ?? now;
    if (shown !== undefined) pins.push(shown);
  }
  return () => (pins.length === 0 ? null : renderStanding(pins, standing.left));
}

// ── Items ────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Kept {
  readonly kept: readonly PromptItem[];
  readonly items: readonly ShownItem[];
}

async function readKept(work: Work): Promise<Kept> {
  const { items } = work.record.head;
  const summaries = await readSummaries(work, items.filter(isHeadSummary));
  const kept: PromptItem[] = [];
  const shown: ShownItem[] = [];
  const add = (item: PromptItem, within: SummaryId | undefined): void => {
    kept.push(item);
    const { source, position: ordinal, cost: tokens } = item;
    const place = { ordinal, tokens, ...(within === undefined ? {} : { within }) };
    shown.push(
      isMessage(source)
        ? { kind: "message", id: source.id, depth: -1, ...place }
        : { kind: "summary", id: source.id, depth: source.depth, ...place },
    );
  };
  for (const item of items) {
    if (isHeadSummary(item)) {
      const summary = summaries.get(item.summary);
      if (summary !== undefined) add({ ...summary, position: kept.length }, item.within);
      continue;
    }
    for (const message of await readRun(work, item))
      add(await presentRun(work, item, message, kept.length), item.within);
  }
  return { kept, items: shown };
}

async function readSummaries(
  { store, reasons, past }: Work,
  items: readonly HeadSummary[],
): Promise<ReadonlyMap<SummaryId, PromptItem>> {
  const ids = items.map(({ summary }) => summary);
  const present = new Map((await store.summaries({ ids })).map((summary) => [summary.id, summary]));
  const sources = await store.sources(ids);
  const found = new Map<SummaryId, PromptItem>();
  for (const { summary: id, digest } of items) {
    const now = present.get(id);
    const shownNow = now === undefined ? null : presented(now, sources.get(id));
    if (shownNow !== null && isThat(shownNow, digest)) {
      found.set(id, shownNow);
      continue;
    }
    const then = (await past()).summaries
      .filter(({ summary }) => summary.id === id)
      .map(({ summary, sources: from }) => presented(summary, { messages: [], summaries: from }))
      .find((item) => isThat(item, digest));
    if (then === undefined) reasons.push(`the text of ${id} then is no longer known${whyUnknown(now)}`);
    const shown = then ?? shownNow;
    if (shown !== null) found.set(id, shown);
  }
  return found;
}

const whyUnknown = (now: Summary | undefined): string =>
  now === undefined ? ": it was deleted" : now.rewriteReason === null ? "" : `: ${now.rewriteReason}`;

const presented = (summary: Summary, sources: Sources | undefined): PromptItem =>
  presentSummary(summary, sources, { position: 0, cost: Math.max(1, summary.tokens) });

const isThat = ({ message }: PromptItem, digest: string): boolean =>
  message !== null && shortDigest(lineOf(message)) === digest;

async function readRun(
  { store, record, reasons }: Work,
  { from, to = record.lastSeq }: HeadRun,
): Promise<readonly Message[]> {
  const { conversation } = record;
  const range = { conversation, afterSeq: from - 1, beforeSeq: to + 1 };
  const found = await store.messages(range);
  const missing = to - from + 1 - found.length;
  if (missing > 0) reasons.push(`${plural(missing, "message")} of it no longer exist`);
  return found.filter(({ aside }) => aside !== "note");
}

async function presentRun(
  { store, record: { head } }: Work,
  { cuts = [], bare, again }: HeadRun,
  message: Message,
  position: number,
): Promise<PromptItem> {
  const slot: Slot = { position, cost: again === true ? 0 : Math.max(1, message.tokens) };
  const isHidden = head.hidden?.includes(message.seq) === true;
  const edits: Edits | undefined = isHidden ? new Map([[message.key, null]]) : undefined;
  const whole = await presentItem(store, message, slot, edits);
  const bared = bare === true ? withoutResults(whole) : whole;
  return cuts.reduce((item, most) => shorten(item, most) ?? item, bared);
}
