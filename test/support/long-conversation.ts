/**
 * Builds a database as after a year of use: 100,000 messages, summaries of depth 0 to 3, and three small conversations.
 * The rows are the same each time, and written as fast as the store allows: tests look at the result, not at how it was
 * made.
 */

import { constants, copyFileSync, cpSync } from "node:fs";
import { join } from "node:path";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import { assert } from "../../src/core/base/errors.ts";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import type { ContextItem, ConversationId, FileId, Level } from "../../src/core/model/types.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { defaultFilesDir } from "../../src/store/sqlite/location.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { turnWithTool } from "./scripted-host.ts";
import { makeScratch } from "./scratch.ts";
import { makeShared } from "./shared.ts";
import { msToTimestamp, timestampToMs } from "../../src/core/base/time.ts";
import { renderedTokens } from "../../src/core/base/escape.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

const epochMs = timestampToMs("2025-02-03T06:00:00.000Z" as Timestamp);
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/**
 * 1 is the long conversation, 2 the young segment after it, 3 another agent's, with a d1 over its leaves, and 4 has
 * only one question.
 */
export async function makeLongDatabase(path: string, messages = 100_000): Promise<void> {
  let [seconds, ids] = [0, 0];
  const now = (): Timestamp => msToTimestamp(epochMs + 400 * dayMs + 100 * seconds++);
  const hex16 = (): string => (++ids).toString(16).padStart(16, "0");
  const store = await openSqlite({ path, housekeeping: false, now, hex16 });
  const settings = resolveSettings({ env: {}, config: { largeFileTokenThreshold: 500 } }).values;
  const lcm = createLcm({ store, clock: { now }, settings });
  const family = { sessionKey: "agent:main:telegram:harbour", agentId: "main" };
  const research = { sessionId: "c0ffee03", sessionKey: "agent:research:cli", agentId: "research" };
  try {
    const turns = messages / messagesPerTurn;
    const long = await grow(lcm, { ...family, sessionId: "c0ffee01" }, turns);
    const young = await grow(lcm, { ...family, sessionId: "c0ffee02" }, 2, turns + turnsPerDay);
    const other = await grow(lcm, research, 100, turns - 200);
    await store.setTitle(long, "A year at the harbour office");
    await store.setTitle(young, "The second year");
    await store.setTitle(other, "港口手册: the harbour's handbook, translated");
    await store.setPromptBudget(long, 12_000);
    const { id } = await store.openSegment({ sessionId: "c0ffee04", sessionKey: "agent:main:cli", agentId: "main" });
    await say(lcm, id, [{ key: "q", at: epochMs, raw: { role: "user", content: "Is anybody there?" } }]);
    while ((await store.index(8_000)) > 0);
  } finally {
    await lcm.close();
  }
}

// ── Growing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const turnsPerBatch = 1_000;
const turnsPerLeaf = 8;
const messagesPerTurn = 4;
/** At the end, not summarised yet. */
const tailTurns = 10;
/** How many summaries of each depth make one of the next. */
const fanouts = [10, 7, 6];

interface Growing {
  readonly lcm: Lcm;
  readonly id: ConversationId;
  /** Files by the turn they were moved out of. */
  readonly files: Map<number, FileId>;
  /** The summaries in the context by depth, oldest first. */
  readonly standing: readonly Standing[][];
}

interface Standing {
  readonly item: ContextItem;
  readonly text: string;
  readonly fileIds: readonly FileId[];
}

type Session = Parameters<Lcm["store"]["openSegment"]>[0];

/** Adds a segment of this many turns, starting at the given one. */
async function grow(lcm: Lcm, session: Session, turns: number, from = 0): Promise<ConversationId> {
  const { id } = await lcm.store.openSegment(session);
  const growing: Growing = { lcm, id, files: new Map(), standing: [[], [], [], []] };
  const end = from + turns;
  let folded = from;
  for (let first = from; first < end; first += turnsPerBatch) {
    const next = Math.min(end, first + turnsPerBatch);
    await say(lcm, id, Array.from({ length: next - first }, (_, at) => turnAt(first + at)).flat());
    for (const { messageKey, id: file } of await lcm.store.files(id)) growing.files.set(turnOfKey(messageKey), file);
    const raw = await lcm.store.context(id, { kind: "message" });
    for (let at = 0; folded + turnsPerLeaf <= next - tailTurns; folded += turnsPerLeaf)
      await foldLeaf(growing, raw.slice(at, (at += turnsPerLeaf * messagesPerTurn)), folded);
  }
  return id;
}

interface Said {
  readonly key: string;
  readonly at: number;
  readonly raw: HostMessage;
}

async function say(lcm: Lcm, id: ConversationId, said: readonly Said[]): Promise<void> {
  const items = said.map(
    ({ key, at, raw }) => ({ kind: "message", message: raw, key, at: msToTimestamp(at) }) as const,
  );
  await lcm.ingest(id, items);
}

async function foldLeaf(growing: Growing, run: readonly ContextItem[], turn: number): Promise<void> {
  const turns = Array.from({ length: turnsPerLeaf }, (_, at) => turn + at);
  const fileIds = turns.flatMap((turn) => growing.files.get(turn) ?? []);
  await fold(growing, run, leafText(turns), levelOf(turn), fileIds);
  for (const [depth, fanout] of fanouts.entries()) {
    const standing = growing.standing[depth] ?? [];
    if (standing.length <= fanout) return;
    // The newest summary of each depth stays unfolded: a real context ends in summaries of every depth.
    const sources = standing.splice(0, fanout);
    const text = condensedText(depth + 1, sources);
    const items = sources.map(({ item }) => item);
    const files = sources.flatMap((each) => each.fileIds).slice(0, filesNamed);
    await fold(growing, items, text, "normal", files);
  }
}

const filesNamed = 8;

async function fold(
  { lcm, id, standing }: Growing,
  run: readonly ContextItem[],
  text: string,
  level: Level,
  fileIds: readonly FileId[],
): Promise<void> {
  const [first] = run;
  assert(first !== undefined, "there is something to fold");
  const depth = first.depth + 1;
  const tokens = renderedTokens(text);
  const isModels = level === "normal";
  const previousContext = isModels && depth < 2 ? (standing[depth]?.at(-1)?.text ?? null) : null;
  const model = isModels ? "scripted/one" : null;
  const folded = await lcm.store.fold(id, run, { text, tokens, level, model, previousContext, fileIds });
  assert(folded.kind === "written", "no other process writes");
  const item: ContextItem = { kind: "summary", id: folded.summary, ordinal: first.ordinal, tokens, depth };
  standing[depth]?.push({ item, text, fileIds });
}

// ── The messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** The level of a leaf, by its first turn: now and then the model was unusable, or there was none. */
const levelOf = (turn: number): Level =>
  turn % 12_000 === 5_600 ? "truncated" : turn % 7_200 === 3_600 ? "extractive" : "normal";

const things = ["crane", "tug", "pilot boat", "buoy", "lock gate", "ice store", "customs shed", "slipway", "winch"];
const places = ["north pier", "old basin", "quay 4", "the roads", "fish market", "dry dock", "container yard"];
const troubles = [
  "is late again and nobody has called",
  "shows error E-4107 on its panel",
  "needs a new permit before Monday",
  "was booked twice for the same tide",
  "leaks oil, about a litre an hour",
];
const outcomes = [
  "moved to the evening tide; Ines told the crew",
  "the fuse was replaced, and the panel is quiet",
  "the permit is filed under permits/2025.md",
  "the second booking was cancelled and refunded",
  "a diver looks at it tomorrow at six",
];

const pick = (from: readonly string[], at: number): string => from[at % from.length] ?? "";
const subjectAt = (turn: number): string => `the ${pick(things, turn)} at ${pick(places, turn * 3 + (turn >> 3))}`;
const outcomeAt = (turn: number): string => pick(outcomes, turn * 7 + (turn >> 5));

const isWithFile = (turn: number): boolean => turn % 400 === 123;
const turnOfKey = (key: string | null): number => Number(key?.split("-")[1] ?? -1);

const turnsPerDay = 68;
/** From six in the morning to ten at night, every day of the year. */
const timeOf = (turn: number): number =>
  epochMs + Math.floor(turn / turnsPerDay) * dayMs + (turn % turnsPerDay) * 14 * minuteMs;

function turnAt(turn: number): readonly Said[] {
  const subject = subjectAt(turn);
  const question = turn % 50 === 7 ? `${cjk(turn)} (${subject})` : `#${turn}: ${subject} ${pick(troubles, turn * 5)}.`;
  const found = isWithFile(turn) ? logOf(turn) : `log/${turn}.txt: ${subject}, ${outcomeAt(turn)}.`;
  const tides = turn % 40 === 9 ? `\n\n| tide | metres |\n|---|---|\n| low | ${turn % 3} |` : "";
  const [asked, called, answered] = turnWithTool(`call_${turn}`, question, found);
  assert(asked !== undefined && called !== undefined && answered !== undefined, "a turn has them");
  const replied: HostMessage = {
    role: "assistant",
    content: [{ type: "text", text: `Done: ${outcomeAt(turn)}.${tides}` }],
  };
  const failing = turn % 90 === 30 ? { ...answered, isError: true } : answered;
  return [asked, called, failing, replied].map((raw, place) => ({
    key: `turn-${turn}-${place}`,
    at: timeOf(turn) + place * 20_000,
    raw,
  }));
}

const cjk = (turn: number): string =>
  pick(
    ["引航船什么时候到？", "クレーンの点検は終わりましたか 🏗️", "부두 4번이 비어 있나요? 🚢", "潮位が低いです 🌊⚓"],
    turn,
  );

/** Long enough to be moved to a file. */
const logOf = (turn: number): string =>
  Array.from({ length: 60 }, (_, line) => `${line} gate ${(line + turn) % 7} open ${line % 2 === 0}, ${turn} t`).join(
    "\n",
  );

const leafText = (turns: readonly number[]): string =>
  [
    ...(levelOf(turns[0] ?? 0) === "truncated" ? ["[Truncated for context management]"] : []),
    ...turns.map((turn) => `- #${turn}: ${subjectAt(turn)}: ${outcomeAt(turn)}.`),
    `Expand for details about: turns ${turns[0]} to ${turns.at(-1)}`,
  ].join("\n");

/** The first sentence of each source, and the range of times. */
function condensedText(depth: number, sources: readonly Standing[]): string {
  const kept = sources.flatMap(({ text }) => /^- .*$/m.exec(text)?.[0] ?? []);
  const turns = sources.flatMap(({ text }) => /turns (\d+) to (\d+)$/.exec(text)?.slice(1) ?? []);
  const heading = ["", "In these days:", "In these weeks:", "In these months:"][depth] ?? "";
  return [heading, ...kept, `Expand for details about: turns ${turns[0]} to ${turns.at(-1)}`].join("\n");
}

// ── For tests ────────────────────────────────────────────────────────────────────────────────────────────────────────

let made: Promise<string> | null = null;

/** The path of one database that is made once for all tests of a run. Read it only; a test that writes takes a copy. */
export const longDatabase = async (): Promise<string> => join(await (made ??= makeShared("long", makeIn)), "lcm.db");

const makeIn = async (folder: string): Promise<void> => await makeLongDatabase(join(folder, "lcm.db"));

/** A copy in its own folder. */
export async function copyLongDatabase(): Promise<string> {
  const from = await longDatabase();
  const to = join(makeScratch("long"), "lcm.db");
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  cpSync(defaultFilesDir(from), defaultFilesDir(to), { recursive: true });
  return to;
}
