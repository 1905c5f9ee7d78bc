/**
 * Builds a small database with a past: summaries of depth 0 to 3, tool calls, a file, an adopted conversation. Every
 * row is byte-identical each time. The shape is fixed here and not chosen by the planner, so what a test expects of it
 * changes only with this file.
 */

import type { HostMessage } from "../../src/core/messages/codec.ts";
import { assert } from "../../src/core/base/errors.ts";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import { fileIdsOf } from "../../src/core/ingest/large-content.ts";
import type { ContextItem, ConversationId, FileId, Level, SummaryId } from "../../src/core/model/types.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { turnWithTool } from "./scripted-host.ts";
import { msToTimestamp, timestampToMs } from "../../src/core/base/time.ts";
import { renderedTokens } from "../../src/core/base/escape.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

export interface DeepConversation {
  /** 98 messages and 34 summaries; its context is d3, d2, d1, d0, d0 and six messages. */
  readonly deep: ConversationId;
  /** Ten messages: four under an extracted leaf, four under one of the older program, and two that are not summarised yet. */
  readonly older: ConversationId;
  /** Four messages, in the segment after `deep`. */
  readonly young: ConversationId;
  /** A leaf of `deep`, below the d1 of its context: no answer of the model was usable. */
  readonly truncated: SummaryId;
  /** Leaves of `older`: made without a model, and marked by the older program because the model did not answer. */
  readonly extractive: SummaryId;
  readonly marked: SummaryId;
  readonly file: FileId;
}

const epochMs = timestampToMs("2025-11-03T08:00:00.000Z" as Timestamp);
const minuteMs = 60_000;

/** Builds it at a path where no file exists yet. */
export async function makeDeepConversation(path: string): Promise<DeepConversation> {
  // Each reading of the clock is a second later, and each id is the next number.
  let [seconds, ids] = [0, 0];
  const now = (): Timestamp => msToTimestamp(epochMs + 14 * 24 * 60 * minuteMs + 1_000 * seconds++);
  const hex16 = (): string => (++ids).toString(16).padStart(16, "0");
  const store = await openSqlite({ path, housekeeping: false, now, hex16 });
  const settings = resolveSettings({ env: {}, config: { largeFileTokenThreshold: 500 } }).values;
  const lcm = createLcm({ store, clock: { now }, settings });
  try {
    const made = { ...(await makeDeep(lcm)), ...(await makeOlder(lcm)), ...(await makeYoung(lcm)) };
    while ((await store.index(1_000)) > 0);
    return made;
  } finally {
    await lcm.close();
  }
}

// ── The conversations ────────────────────────────────────────────────────────────────────────────────────────────────

const session = { sessionId: "a1b2c3", sessionKey: "agent:main:telegram:ferry", agentId: "main" };

async function makeDeep(lcm: Lcm): Promise<Pick<DeepConversation, "deep" | "truncated" | "file">> {
  const { id } = await lcm.store.openSegment(session);
  await lcm.store.setTitle(id, "The ferry's new booking desk");
  const leaves = new Map<number, SummaryId>();
  for (const [turn, subject] of subjects.entries()) {
    await say(lcm, id, turn, turnAbout(turn, subject));
    const isTruncated = turn === truncatedTurn;
    const text = isTruncated ? truncatedText(subject) : leafText(turn, subject);
    leaves.set(turn, await foldTurn(lcm, id, text, isTruncated ? "truncated" : "normal"));
    await condense(lcm, id);
  }
  await say(lcm, id, subjects.length, [
    ...turnWithTool("call-last", "Is the desk open tomorrow?", "desk.md: opens at six, closes after the last boat."),
    { role: "user", content: "Good. Tell the crew." },
    { role: "assistant", content: [{ type: "text", text: "The crew knows; Ines has confirmed." }] },
  ]);
  const [file] = await lcm.store.files(id);
  const truncated = leaves.get(truncatedTurn);
  assert(file !== undefined && truncated !== undefined, "the timetable is stored, and a leaf is truncated");
  return { deep: id, truncated, file: file.id };
}

async function makeOlder(lcm: Lcm): Promise<Pick<DeepConversation, "older" | "extractive" | "marked">> {
  const { id } = await lcm.store.openSegment({ sessionId: "d4e5f6", sessionKey: "agent:main:cli", agentId: "main" });
  for (const [turn, subject] of subjects.slice(0, 2).entries()) await say(lcm, id, turn, turnAbout(turn, subject));
  await say(lcm, id, 2, [
    { role: "user", content: "That is all for today." },
    { role: "assistant", content: [{ type: "text", text: "Good night." }] },
  ]);
  const [first, second] = subjects;
  assert(first !== undefined && second !== undefined, "there are subjects");
  const extractive = await foldTurn(lcm, id, `${first.question}\n${first.outcome}\n${footer(first)}`, "extractive");
  const marked = await foldTurn(
    lcm,
    id,
    `[LCM fallback summary; the model did not answer]\nuser: ${second.question}`,
    "truncated",
  );
  return { older: id, extractive, marked };
}

async function makeYoung(lcm: Lcm): Promise<Pick<DeepConversation, "young">> {
  const { id } = await lcm.store.openSegment({ ...session, sessionId: "a1b2c4" });
  await say(lcm, id, 0, turnWithTool("call-young", "What did we decide about dogs?", "Nothing is noted here."));
  return { young: id };
}

async function say(lcm: Lcm, id: ConversationId, turn: number, said: readonly HostMessage[]): Promise<void> {
  const items = said.map((message, place) => {
    const at = msToTimestamp(epochMs + turn * 390 * minuteMs + place * 2 * minuteMs);
    return { kind: "message", message, key: `turn-${turn}-${place}`, at } as const;
  });
  await lcm.ingest(id, items);
}

// ── Its summaries ────────────────────────────────────────────────────────────────────────────────────────────────────

/** A leaf over the oldest raw messages: those of one turn. */
const foldTurn = async (lcm: Lcm, id: ConversationId, text: string, level: Level): Promise<SummaryId> =>
  await fold(lcm, id, await lcm.store.context(id, { kind: "message", limit: 4 }), text, level);

async function fold(
  { store }: Lcm,
  id: ConversationId,
  run: readonly ContextItem[],
  text: string,
  level: Level,
): Promise<SummaryId> {
  const depth = (run[0]?.depth ?? -1) + 1;
  const messages = await store.messages({ ids: run.flatMap((item) => (item.kind === "message" ? [item.id] : [])) });
  const below = await store.summaries({ ids: run.flatMap((item) => (item.kind === "summary" ? [item.id] : [])) });
  const [before] = await store.context(id, { before: run[0]?.ordinal ?? 0, kind: "summary", limit: 1, keep: "newest" });
  const [previous] = before?.kind === "summary" && depth < 2 ? await store.summaries({ ids: [before.id] }) : [];
  const isModels = level === "normal";
  const outcome = await store.fold(id, run, {
    text,
    tokens: renderedTokens(text),
    level,
    model: isModels ? "scripted/one" : null,
    previousContext: isModels ? (previous?.text ?? null) : null,
    fileIds: [...new Set([...fileIdsOf(messages), ...below.flatMap(({ fileIds }) => fileIds)])],
  });
  assert(outcome.kind === "written", "no other process writes");
  return outcome.summary;
}

const fanoutOf = (depth: number): number => (depth === 0 ? 3 : 2);

/** Folds the last summaries as long as there are enough of one depth. */
async function condense(lcm: Lcm, id: ConversationId): Promise<void> {
  for (;;) {
    const shown = await lcm.store.context(id, { kind: "summary", keep: "newest", limit: 3 });
    const depth = shown.at(-1)?.depth ?? 0;
    const run = shown.slice(-fanoutOf(depth));
    if (run.length < fanoutOf(depth) || run.some((item) => item.depth !== depth)) return;
    const ids = run.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
    const texts = (await lcm.store.summaries({ ids })).map((summary) => summary.text);
    await fold(lcm, id, run, condensedText(depth + 1, texts), "normal");
  }
}

const footer = ({ name }: Subject): string => `Expand for details about: ${name}`;

const leafText = (turn: number, subject: Subject): string =>
  [
    `Asked: ${subject.question}`,
    `Decided: ${subject.outcome}`,
    `Noted in notes/call-${turn}.md, which lists ${subject.name} first; nobody objected, and the crew was told.`,
    footer(subject),
  ].join("\n");

const truncatedText = ({ question, name }: Subject): string =>
  `[Truncated for context management]\n${question}\nnotes: ${name}: see the whole list\nExpand for details about: ${name}`;

/** The deeper, the shorter: two decisions in a leaf's own words, then only their subjects. */
function condensedText(depth: number, texts: readonly string[]): string {
  const topics = texts.flatMap((text) => /^Expand for details about: (.*)$/m.exec(text)?.[1]?.split(", ") ?? []);
  const decided = texts.flatMap((text) => /^Decided: (.*)$/m.exec(text)?.[1] ?? []);
  const lines = depth === 1 ? decided.map((each) => `- ${each}`) : [`Settled so far: ${topics.join("; ")}.`];
  const heading = ["", "This day:", "These days:", "The whole project:"][depth] ?? "";
  return [heading, ...lines, `Expand for details about: ${topics.join(", ")}`].join("\n");
}

// ── The messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

interface Subject {
  readonly name: string;
  readonly question: string;
  readonly outcome: string;
}

const subject = (name: string, question: string, outcome: string): Subject => ({ name, question, outcome });

const subjects: readonly Subject[] = [
  subject("seat maps", "Do we draw a map of the seats?", "a plain list of decks is enough, no map."),
  subject("dogs", "May dogs travel on the upper deck?", "dogs stay on the lower deck, on a lead."),
  subject("bicycles", "How many bicycles fit on one boat?", "twelve bicycles, booked with the ticket."),
  subject("night boats", "Do we sell the night boats too?", "night boats are sold at the pier only."),
  subject("timetable", "Where does the winter timetable come from?", "from the harbour office, every Monday."),
  subject("refunds", "Who pays when a storm stops the boat?", "the whole fare goes back within three days."),
  subject("children", "Up to what age do children ride free?", "free up to six, half fare up to fourteen."),
  subject("receipts", "Are receipts printed or mailed?", "mailed; printed only when somebody asks."),
  subject("languages", "Which languages does the desk speak?", "Portuguese and English, Spanish in summer."),
  subject("payments", "Which cards do we take?", "all but the club's own card, which nobody has."),
  subject("queue", "How is the queue kept when two boats leave?", "one queue, two gates, crew at the front."),
  subject("lost things", "Where do lost things go?", "to the pier office for thirty days."),
  subject("wheelchairs", "Is the ramp safe at low tide?", "below one metre the crew carries the ramp."),
  subject("groups", "From how many people on is it a group?", "from fifteen; the tenth part is taken off."),
  subject("deposits", "Do groups pay ahead?", "a third at booking, the rest at the pier."),
  subject("weather line", "Who answers the weather line?", "a recording that Ines renews at five."),
  subject("freight", "Do we take parcels?", "up to ten kilos, without dangerous goods."),
  subject("crew rota", "Who writes the rota for December?", "Tomas, before the twentieth."),
  subject("fuel", "Is the fuel surcharge shown?", "it is part of the fare and not shown."),
  subject("signs", "Which signs are still missing?", "gate two and the stairs; ordered."),
  subject("season tickets", "Do season tickets carry a photo?", "yes, taken at the desk for nothing."),
  subject("music", "May the crew play music?", "not before ten, and never at the pier."),
  subject("lifeboats", "When are the lifeboats looked at?", "on the first of every month, by the harbour."),
];

const truncatedTurn = 20;
const timetableTurn = 4;

const turnAbout = (turn: number, { name, question, outcome }: Subject): readonly HostMessage[] => {
  const notes = Array.from(
    { length: 12 },
    (_, line) => `${line + 1}. ${name}: point ${line + 1} of the list, weighed on day ${turn + 1} and kept as it is.`,
  );
  const found = turn === timetableTurn ? timetable() : notes.join("\n");
  const asked = turnWithTool(`call-${turn}`, question, `${found}\nDecided: ${outcome}`).slice(0, 3);
  return [...asked, { role: "assistant", content: [{ type: "text", text: `The notes say: ${outcome}` }] }];
};

/** Long enough to be moved to a file. */
const timetable = (): string =>
  Array.from(
    { length: 60 },
    (_, boat) => `boat ${boat + 1}, pier ${(boat % 3) + 1}, leaves ${6 + (boat % 16)}:${boat % 2 === 0 ? "00" : "30"}`,
  ).join("\n");
