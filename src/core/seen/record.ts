/** Records an assembled prompt that was sent: what it was made of, and a hash of its bytes. */

import type { Assembly, Made } from "../assembly/assemble.ts";
import { isMessage, type PromptItem } from "../assembly/prompt-items.ts";
import { lineOf as pinLine } from "../assembly/standing-block.ts";
import { sha256Start, shortDigest } from "../base/digest.ts";
import { dayMs, timeAfter, type Timestamp } from "../base/time.ts";
import { renderingVersion } from "../model/prompts.ts";
import type { HeadItem, HeadRun, NewPrompt, PromptEnd, PromptHead } from "../model/prompts.ts";
import type { Settings } from "../model/settings.ts";
import type { Clock, Store } from "../model/store.ts";
import type { ConversationId, Message } from "../model/types.ts";
import { guidanceLine, lineOf } from "./prompt-text.ts";

/** What a surface knows of a prompt besides our part of it. */
export interface Sent {
  /** When it was sent, if that is not now. */
  readonly at?: Timestamp;
  /** What was added to the system prompt. */
  readonly guidance?: string | null;
  readonly model?: string | null;
  /** How many of our messages were sent, from the first; all by default. */
  readonly messages?: number;
  /** Messages of the running turn that the host added, and their tokens. */
  readonly live?: number;
  readonly liveTokens?: number;
}

export interface RecordDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: Settings;
}

/** Returns the number of the prompt; null if the settings keep none. Call it once the prompt is on its way. */
export async function recordPrompt(deps: RecordDeps, assembly: Assembly, sent: Sent = {}): Promise<number | null> {
  if (deps.settings.promptDays === 0) return null;
  const { at = deps.clock.now() } = sent;
  return await write(deps, assembly.made.conversation, { ...(await promptOf(deps.store, assembly, sent)), at });
}

/** Records that the prompt before the next answer was not ours. */
export async function recordHostsPrompt(
  deps: RecordDeps,
  conversation: ConversationId,
  why: string,
  { model = null, at = deps.clock.now() }: Pick<Sent, "model" | "at"> = {},
): Promise<number | null> {
  if (deps.settings.promptDays === 0) return null;
  const head = headWith(conversation, { hosts: why, ...(model === null ? {} : { model }), items: [] });
  const nothing = { lastSeq: 0, tail: 0, tokens: 0, budget: 0, bytes: 0, hash: "", live: 0, liveTokens: 0 };
  return await write(deps, conversation, { ...nothing, at, head, stored: null });
}

export async function endPrompt(
  { store }: RecordDeps,
  prompt: { readonly conversation: ConversationId; readonly number: number },
  end: Partial<PromptEnd> & Pick<PromptEnd, "outcome">,
): Promise<void> {
  await store.endPrompt(prompt.conversation, prompt.number, { counted: null, cached: null, turn: null, ...end });
}

async function write(
  { store, clock, settings: { promptDays } }: RecordDeps,
  conversation: ConversationId,
  prompt: Omit<NewPrompt, "keepSince">,
): Promise<number> {
  const keepSince = promptDays === -1 ? null : timeAfter(clock.now(), -promptDays * dayMs);
  return await store.recordPrompt(conversation, { ...prompt, keepSince });
}

async function promptOf(store: Store, assembly: Assembly, sent: Sent): Promise<Omit<NewPrompt, "at" | "keepSince">> {
  const { report, made } = assembly;
  const { guidance = null, model = null, live = 0, liveTokens = 0, messages = made.outputs.length } = sent;
  const outputs = made.outputs.slice(0, messages);
  const encoder = new TextEncoder();
  const preface = guidance === null ? "" : guidanceLine(guidance);
  const lines = outputs.map(({ message }) => encoder.encode(lineOf(message)));
  const bytes = joined([encoder.encode(preface), ...lines]);
  const sizes = sizesOf(made, lines);
  const { items, lastSeq } = await itemsOf(store, made, sizes.items);
  const { evicted, finer } = report;
  const unanswered = made.elsewhere.map(Number).join("");
  const head = headWith(made.conversation, {
    ...(model === null ? {} : { model }),
    items,
    ...(guidance === null ? {} : { guidance: { digest: shortDigest(guidance), bytes: bytes.length - sumOf(lines) } }),
    ...(sizes.note === 0 ? {} : { note: sizes.note }),
    ...(made.standing === null
      ? {}
      : {
          standing: {
            pins: made.standing.pins.map((pin) => ({ message: pin.message, digest: shortDigest(pinLine(pin)) })),
            left: made.standing.left,
            bytes: sizes.standing,
          },
        }),
    ...(evicted.items === 0 ? {} : { evicted }),
    ...(finer.items === 0 ? {} : { finer }),
    ...(unanswered === "" ? {} : { unanswered }),
    ...(outputs.length === made.outputs.length ? {} : { dropped: made.outputs.length - outputs.length }),
    ...editsIn(made),
  });
  return {
    head,
    stored: made.stored,
    lastSeq,
    tail: report.tail.items,
    tokens: report.tokens,
    budget: report.budget,
    bytes: bytes.length,
    hash: await sha256Start(bytes),
    live,
    liveTokens,
  };
}

const headWith = (conversation: ConversationId, rest: Omit<PromptHead, "version" | "conversation">): string =>
  JSON.stringify({ version: renderingVersion, conversation, ...rest } satisfies PromptHead);

function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(sumOf(pieces));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

const sumOf = (pieces: readonly Uint8Array[]): number => pieces.reduce((sum, { length }) => sum + length, 0);

interface PartSizes {
  readonly items: ReadonlyMap<PromptItem, number>;
  readonly note: number;
  readonly standing: number;
}

/** Bytes by item. A stand-in counts to the item before it. */
function sizesOf({ outputs, standing }: Made, lines: readonly Uint8Array[]): PartSizes {
  const items = new Map<PromptItem, number>();
  let [note, ofStanding] = [0, 0];
  let last: PromptItem | null = null;
  lines.forEach(({ length }, at) => {
    const { item = null, message } = outputs[at] ?? {};
    if (standing !== null && message === standing.message) ofStanding += length;
    else if (item === null && last === null) note += length;
    else {
      const owner: PromptItem | null = item ?? last;
      if (owner !== null) items.set(owner, (items.get(owner) ?? 0) + length);
      last = owner;
    }
  });
  return { items, note, standing: ofStanding };
}

/** The kept items as a head lists them: neighbouring messages as runs. */
async function itemsOf(
  store: Store,
  { conversation, kept, items, outputs }: Made,
  sizes: PartSizes["items"],
): Promise<{ readonly items: readonly HeadItem[]; readonly lastSeq: number }> {
  const lineOfItem = new Map(outputs.map(({ item, message }) => [item, message]));
  const isSkipped = await readNotes(store, conversation, kept);
  const listed: (HeadItem & { bytes: number })[] = [];
  let lastSeq = 0;
  for (const item of kept) {
    const { source, position, cuts, isBare, cost } = item;
    const within = items[position]?.within;
    const bytes = sizes.get(item) ?? 0;
    const place = within === undefined ? {} : { within };
    if (!isMessage(source)) {
      const digest = shortDigest(lineOf(lineOfItem.get(item) ?? {}));
      listed.push({ summary: source.id, digest, bytes, ...place });
      continue;
    }
    const { seq } = source;
    lastSeq = seq;
    const changes = {
      ...(cost === 0 ? { again: true as const } : {}),
      ...(cuts.length === 0 ? {} : { cuts }),
      ...(isBare === true ? { bare: isBare } : {}),
    };
    const last = listed.at(-1);
    const isPlain = Object.keys(changes).length === 0;
    if (isPlain && last !== undefined && continues(last, { seq, within }, isSkipped))
      listed[listed.length - 1] = { ...last, to: seq, bytes: last.bytes + bytes };
    else listed.push({ from: seq, to: seq, bytes, ...place, ...changes });
  }
  return { items: withOpenEnd(listed), lastSeq };
}

function continues(
  last: HeadItem,
  { seq, within }: { readonly seq: number; readonly within: HeadItem["within"] | undefined },
  isSkipped: (seq: number) => boolean,
): last is HeadRun & { bytes: number } {
  if ("summary" in last || isChanged(last) || last.within !== within) return false;
  const { to = last.from } = last;
  for (let between = to + 1; between < seq; between++) if (!isSkipped(between)) return false;
  return seq > to;
}

const isChanged = ({ again, cuts, bare }: HeadRun): boolean => again === true || cuts !== undefined || bare === true;

/** The last run grows with the conversation, so its end is stored with each prompt. */
function withOpenEnd(listed: readonly HeadItem[]): readonly HeadItem[] {
  const last = listed.at(-1);
  if (last === undefined || "summary" in last || isChanged(last)) return listed;
  const { to: _to, bytes: _bytes, ...open } = last;
  return [...listed.slice(0, -1), open];
}

/** Notes have numbers, and are in no prompt. They are read only if numbers are missing between two messages. */
async function readNotes(
  store: Store,
  conversation: ConversationId,
  kept: readonly PromptItem[],
): Promise<(seq: number) => boolean> {
  const seqs = kept.flatMap(({ source }) => (isMessage(source) ? [source.seq] : []));
  const gaps = seqs.flatMap((seq, at) => {
    const before = seqs[at - 1] ?? seq;
    return seq - before > 1 && seq - before <= gapMax ? [[before, seq] as const] : [];
  });
  const [first] = gaps;
  const last = gaps.at(-1);
  if (first === undefined || last === undefined) return () => false;
  const notes = new Set(
    await store.noteNumbers(conversation, Math.min(first[0], last[0]), Math.max(first[1], last[1])),
  );
  return (seq) => notes.has(seq);
}

/** More than this many notes in a row are not looked for. */
const gapMax = 64;

/** The edits of the host that concern messages of this prompt. */
function editsIn({ kept, edits }: Made): Pick<PromptHead, "hidden" | "edited"> {
  if (edits === null || edits.size === 0) return {};
  const messages = kept.flatMap(({ source }): readonly Message[] => (isMessage(source) ? [source] : []));
  const seqs = (isHidden: boolean): readonly number[] =>
    messages.flatMap(({ key, seq }) => (edits.has(key) && (edits.get(key) === null) === isHidden ? [seq] : []));
  const [hidden, edited] = [seqs(true), seqs(false)];
  return { ...(hidden.length === 0 ? {} : { hidden }), ...(edited.length === 0 ? {} : { edited }) };
}
