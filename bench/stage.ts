/** Runs one step of the benchmark in a separate process; prints JSON. See bench.ts. */

import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { messageToStore } from "../src/core/messages/codec.ts";
import { openTranscript } from "../src/cli/transcript-files.ts";
import { createDatabase } from "../src/cli/open.ts";
import type { SourceLine } from "../src/core/ingest/import-transcript.ts";
import type { ConversationId } from "../src/core/model/types.ts";
import type { SearchRequest, Store } from "../src/core/model/store.ts";
import { openSqliteWorker } from "../src/store/sqlite/worker.ts";
import { openSqlite } from "../src/store/sqlite/store.ts";
import { corpusEntry, markers, question, searched } from "./corpus.ts";
import { cpuMs, spread, timed } from "./measure.ts";
import type { Spread } from "./measure.ts";
import type { JsonObject } from "../src/core/base/json.ts";
import type { Timestamp } from "../src/core/base/time.ts";

export interface Imported {
  readonly cpuS: number;
  readonly wallS: number;
  readonly peakRssMb: number;
  readonly sizeRatio: number;
  readonly rareAfterImportMs: number;
}

export interface Measured {
  readonly append: {
    readonly cpuUs: number;
    readonly cpuWithIndexUs: number;
    /** One message instead of a turn of four. */
    readonly oneCpuUs: number;
    readonly wallMs: Spread;
  };
  readonly openMs: number;
  readonly rare: Spread;
  readonly mid: Spread;
  readonly common: Spread;
  readonly question: Spread;
  readonly questionInShort: Spread;
  readonly questionInLong: Spread;
  readonly regexNoMatchMs: number;
  readonly regexNoLiteralMs: number;
  readonly regexOldestMs: number;
  readonly runawayMs: number;
}

const clock = { now: (): Timestamp => new Date().toISOString() as Timestamp };
const [step, database = "", transcript = "", count = "0"] = process.argv.slice(2);
const n = Number(count);

// ── Import ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Most of the corpus is one long conversation; a fifth is spread over twenty others. */
async function measureImport(): Promise<Imported> {
  const lcm = await createDatabase(database).open("import");
  const { store } = lcm;
  const cpu = process.cpuUsage();
  const start = performance.now();
  const long = Math.floor(n * 0.8);
  const { lines: source } = await openTranscript({
    path: transcript,
    bytes: statSync(transcript).size,
    isFound: false,
  });
  const lines = source[Symbol.asyncIterator]();
  await lcm.import(take(lines, long), { fallbackSessionId: "long" });
  const share = Math.ceil((n - long) / 20);
  for (let other = 1; other <= 20; other++)
    await lcm.import(take(lines, share), { fallbackSessionId: `other-${other}` });
  const cpuS = cpuMs(cpu) / 1_000;
  const wallS = (performance.now() - start) / 1_000;
  const rareAfterImportMs = (await timed(9, async () => await store.search(fullText(`${markers.rare}0`)))).p50;
  await store.close();
  return {
    cpuS,
    wallS,
    peakRssMb: process.resourceUsage().maxRSS / 1_024,
    sizeRatio: statSync(database).size / rawTextBytes(),
    rareAfterImportMs,
  };
}

async function* take(lines: AsyncIterator<SourceLine>, limit: number): AsyncGenerator<SourceLine> {
  for (let taken = 0; taken < limit; taken++) {
    const next = await lines.next();
    if (next.done === true) return;
    yield next.value;
  }
}

const rawTextBytes = (): number => {
  const db = new DatabaseSync(database, { readOnly: true });
  const bytes = Number(db.prepare("SELECT sum(octet_length(content)) AS bytes FROM messages").get()?.["bytes"]);
  db.close();
  return bytes;
};

// ── Measuring ───────────────────────────────────────────────────────────────────────────────────────────────────────

async function measure(): Promise<Measured> {
  const append = await measureAppend();
  const openMs = await measureOpen();
  const store = await openSqliteWorker({ path: database, durability: "normal" });
  await store.search(fullText("warm"));
  const named = async (sessionId: string): Promise<readonly ConversationId[]> =>
    (await store.conversations({ sessionId })).map(({ id }) => id);
  const short = await named("other-1");
  const long = await named("long");
  const searching = async (times: number, request: (i: number) => SearchRequest): Promise<Spread> =>
    await timed(times, async (i) => await store.search(request(i), { timeoutMs: 120_000 }));
  const measured = {
    append,
    openMs,
    rare: await searching(25, (i) => fullText(searched.rare(i, n))),
    mid: await searching(25, (i) => fullText(searched.mid(i))),
    common: await searching(15, (i) => fullText(searched.common(i))),
    question: await searching(40, (i) => fullText(question(i))),
    questionInShort: await searching(40, (i) => ({ ...fullText(question(i)), conversations: short })),
    questionInLong: await searching(40, (i) => ({ ...fullText(question(i)), conversations: long })),
    regexNoMatchMs: (await searching(1, () => regex(searched.nowhere.source))).p50,
    regexNoLiteralMs: (await searching(1, () => regex(searched.nowhereWithoutLiteral.source))).p50,
    regexOldestMs: (await searching(1, () => regex(`${markers.oldest} \\w+`))).p50,
    runawayMs: await measureRunaway(store),
  };
  await store.close();
  return measured;
}

const fullText = (pattern: string): SearchRequest => ({
  pattern,
  mode: "full_text",
  scope: "both",
  sort: "relevance",
  limit: 20,
});
const regex = (pattern: string): SearchRequest => ({
  pattern,
  mode: "regex",
  scope: "both",
  sort: "recency",
  limit: 20,
});

const turnsMeasured = 1_000;
const warmUp = 1_000;

type CorpusEntry = JsonObject & { readonly message: JsonObject; readonly timestamp: string };
const entryAt = (at: number): CorpusEntry => corpusEntry(at) as CorpusEntry;

async function measureAppend(): Promise<Measured["append"]> {
  const store = await openSqlite({ path: database, housekeeping: false, durability: "normal" });
  const [conversation] = await store.conversations({ sessionId: "long" });
  const id = conversation?.id as ConversationId;
  const raws = Array.from({ length: turnsMeasured + warmUp }, (_, index) =>
    [0, 1, 2, 3].map((offset) => entryAt(n + 4 * index + offset)),
  );
  const singles = Array.from({ length: turnsMeasured }, (_, index) => [entryAt(n + 4 * raws.length + index)]);
  const took: number[] = [];
  const append = async (first: number, entries: readonly CorpusEntry[]): Promise<void> => {
    await store.append(
      id,
      entries.map((entry, offset) => ({
        kind: "message",
        message: messageToStore(entry.message, {
          key: `live-${first + offset}`,
          at: entry.timestamp as Timestamp,
          entry,
        }),
      })),
    );
  };
  let cpu = process.cpuUsage();
  for (const [index, entries] of raws.entries()) {
    if (index === warmUp) {
      while ((await store.index(256)) > 0);
      cpu = process.cpuUsage();
    }
    const start = performance.now();
    await append(n + 4 * index, entries);
    if (index >= warmUp) took.push(performance.now() - start);
  }
  const cpuUs = (cpuMs(cpu) * 1_000) / turnsMeasured;
  cpu = process.cpuUsage();
  while ((await store.index(256)) > 0);
  const cpuWithIndexUs = cpuUs + (cpuMs(cpu) * 1_000) / turnsMeasured;
  cpu = process.cpuUsage();
  for (const [index, entries] of singles.entries()) await append(n + 4 * raws.length + index, entries);
  const oneCpuUs = (cpuMs(cpu) * 1_000) / turnsMeasured;
  while ((await store.index(256)) > 0);
  await store.close();
  return { cpuUs, cpuWithIndexUs, oneCpuUs, wallMs: spread(took) };
}

/** Warm: the second opening. */
async function measureOpen(): Promise<number> {
  let took = 0;
  for (let time = 0; time < 3; time++) {
    const start = performance.now();
    const store = await openSqliteWorker({ path: database, durability: "normal" });
    took = performance.now() - start;
    await store.close();
  }
  return took;
}

/** From the time limit of an endless search to the first answer of the reader that replaces it. */
async function measureRunaway(store: Store): Promise<number> {
  const conversation = await store.open({ sessionId: "runaway" });
  const message = messageToStore({ role: "user", content: `${"a".repeat(64)}!` }, { key: "runaway", at: clock.now() });
  await store.append(conversation.id, [{ kind: "message", message }]);
  const timeoutMs = 300;
  const start = performance.now();
  await store.search({ ...regex("^(a+)+$"), conversations: [conversation.id] }, { timeoutMs });
  await store.search({ ...fullText(markers.oldest), conversations: [conversation.id] });
  return performance.now() - start - timeoutMs;
}

const figures = step === "import" ? await measureImport() : await measure();
console.log(JSON.stringify(figures));
