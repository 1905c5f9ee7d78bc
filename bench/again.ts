/**
 * Measures what comes after a large import, each in a separate process; prints JSON: the same file again, unchanged or a
 * little longer, and the first turn after a session was drained. See bench.ts.
 */

import { appendFileSync, statSync } from "node:fs";
import { createDatabase } from "../src/cli/open.ts";
import { importTranscriptFile } from "../src/cli/transcript-files.ts";
import type { JsonObject } from "../src/core/base/json.ts";
import type { Timestamp } from "../src/core/base/time.ts";
import { createLcm } from "../src/core/lcm.ts";
import type { Incoming } from "../src/core/messages/codec.ts";
import { openSqliteWorker } from "../src/store/sqlite/worker.ts";
import { corpusEntry } from "./corpus.ts";
import { cpuMs, timed } from "./measure.ts";

/** Of a file that was imported before: CPU ms, without starting the program. */
export interface Again {
  readonly unchangedCpuMs: number;
  /** With 100 messages more. */
  readonly grownCpuMs: number;
}

/** Through the store's thread, as in a host: elapsed ms of storing a turn and assembling. */
export interface Drained {
  readonly firstTurnMs: number;
  readonly laterTurnMs: number;
}

const [step, database = "", transcript = "", count = "0"] = process.argv.slice(2);
const n = Number(count);
const grownBy = 100;
const timesMeasured = 5;

async function measureAgain(): Promise<Again> {
  const lcm = await createDatabase(database).open("import");
  const importing = {
    open: async () => lcm,
    target: { fallbackSessionId: "again" },
    onProgress: () => undefined,
  };
  const read = async (): Promise<number> => {
    const before = process.cpuUsage();
    const file = { path: transcript, bytes: statSync(transcript).size, isFound: false };
    const { messages } = await importTranscriptFile(file, importing);
    took = cpuMs(before);
    return messages;
  };
  let took = 0;
  await read();
  const unchanged: number[] = [];
  const grown: number[] = [];
  for (let time = 0; time < timesMeasured; time++) {
    if ((await read()) !== 0) throw new Error("an unchanged file brought messages");
    unchanged.push(took);
    const from = n + time * grownBy;
    const lines = Array.from({ length: grownBy }, (_, at) => `${JSON.stringify(corpusEntry(from + at))}\n`);
    appendFileSync(transcript, lines.join(""));
    if ((await read()) !== grownBy) throw new Error(`a file that has grown by ${grownBy} messages brought others`);
    grown.push(took);
  }
  await lcm.close();
  return { unchangedCpuMs: median(unchanged), grownCpuMs: median(grown) };
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

const messagesPerPage = 256;
const budget = 200_000;
const pauseMs = 30;

async function measureDrained(): Promise<Drained> {
  const store = await openSqliteWorker({ path: database, durability: "normal" });
  const lcm = createLcm({ store, clock: { now: () => new Date().toISOString() as Timestamp } });
  const { id } = await store.open({ sessionId: "drained" });
  for (let from = 0; from < n; from += messagesPerPage)
    await lcm.ingest(id, itemsBetween(from, Math.min(n, from + messagesPerPage)));
  const turn = async (number: number): Promise<number> => {
    const items = itemsBetween(n + 4 * number, n + 4 * number + 4);
    const { p50 } = await timed(1, async () => {
      await lcm.ingest(id, items);
      await lcm.due(id);
      await lcm.assemble(id, { budget });
    });
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    return p50;
  };
  const firstTurnMs = await turn(0);
  const later: number[] = [];
  for (let number = 1; number < 40; number++) later.push(await turn(number));
  await store.close();
  return { firstTurnMs, laterTurnMs: median(later) };
}

type CorpusEntry = JsonObject & { readonly message: JsonObject; readonly timestamp: string };

const itemsBetween = (from: number, to: number): readonly Incoming[] =>
  Array.from({ length: to - from }, (_, at) => {
    const { message, timestamp } = corpusEntry(from + at) as CorpusEntry;
    return { kind: "message", message, key: `drained-${from + at}`, at: timestamp as Timestamp };
  });

console.log(JSON.stringify(step === "again" ? await measureAgain() : await measureDrained()));
