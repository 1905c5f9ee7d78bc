/**
 * Measures standing instructions found without a model: `npm run bench:pins [-- <folder with the data sets>] [--list]`.
 *
 * For each conversation: everything is folded, and a prompt is assembled. Of BEAM's questions about instructions and
 * preferences, it counts those whose source message is in the prompt, shown or pinned; of all conversations, how many
 * user messages are pinned, and how large the block is. `--list` prints every pin, to be read by a person: only a person
 * can tell which are false.
 */

import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readDemoTranscript } from "../src/cli/demo/five-weeks.ts";
import { parseTimestamp } from "../src/core/base/time.ts";
import { isObject, type Json, type JsonObject } from "../src/core/base/json.ts";
import { createLcm } from "../src/core/lcm.ts";
import { openSqlite, systemNow } from "../src/store/sqlite/store.ts";
import { makeScratch } from "../test/support/scratch.ts";
import { table } from "./table.ts";

interface Sample {
  readonly name: string;
  readonly lines: readonly Json[];
  /** Keys of the messages of which one must be in the prompt, per question. */
  readonly questions: readonly (readonly string[])[];
}

interface Figures {
  readonly name: string;
  readonly questions: number;
  readonly present: number;
  readonly userMessages: number;
  readonly pins: number;
  readonly shown: number;
  readonly tokens: number;
}

const budget = 128_000;

async function measure(sample: Sample, folder: string, isListed: boolean): Promise<Figures> {
  const store = await openSqlite({ path: join(folder, `${sample.name}.db`), housekeeping: false });
  const lcm = createLcm({ store, clock: { now: systemNow } });
  try {
    const { id } = await store.open({ sessionId: sample.name });
    const items = sample.lines.map((line, at) => toIncoming(line, at));
    await lcm.ingest(id, items);
    await lcm.compact({ conversation: id, mode: "sweep", force: true });
    const { report } = await lcm.assemble(id, { budget });
    const shown = report.origins.flatMap((origin) =>
      origin.kind === "message" ? [origin.id] : origin.kind === "note" ? (origin.standing ?? []) : [],
    );
    const keys = new Set((await store.messages({ ids: shown })).map(({ key }) => key));
    const pins = await store.pins(id);
    if (isListed) for (const { words, reason } of pins) console.log(`  ${sample.name} [${reason}] ${words}`);
    return {
      name: sample.name,
      questions: sample.questions.length,
      present: sample.questions.filter((sources) => sources.some((key) => keys.has(key))).length,
      userMessages: (await store.messages({ conversation: id, role: "user" })).length,
      pins: pins.length,
      shown: report.standing.items,
      tokens: report.standing.tokens,
    };
  } finally {
    await lcm.close();
  }
}

const fieldsOf = (line: Json): JsonObject => (isObject(line) ? line : {});

function toIncoming(line: Json, at: number) {
  const { id, key = id, timestamp, ...rest } = fieldsOf(line);
  const message = "message" in rest ? fieldsOf(rest["message"] ?? null) : rest;
  const time = typeof timestamp === "string" || typeof timestamp === "number" ? parseTimestamp(timestamp) : null;
  return {
    kind: "message",
    key: typeof key === "string" || typeof key === "number" ? String(key) : `@${at + 1}`,
    message: message as { readonly role: string },
    at: time ?? systemNow(),
  } as const;
}

function* samplesIn(folder: string): Generator<Sample> {
  for (const { name, lines, questions } of readJson(join(folder, "beam-half.json"))) {
    const asked = questions.filter(({ category }: { category: string }) => /instruction|preference/.test(category));
    yield {
      name,
      lines,
      questions: asked.map(({ evidence }: { evidence: readonly unknown[] }) => evidence.map(String)),
    };
  }
  for (const [at, { conversation }] of readJson(join(folder, "locomo-half.json")).entries()) {
    const turns: readonly { dia_id: string; text: string }[] = Object.values(conversation).filter(Array.isArray).flat();
    // Both people count as users: whatever is pinned here is most likely false.
    const lines = turns.map(({ dia_id: id, text }) => ({ id, role: "user", content: text }));
    yield { name: `locomo-${at + 1}`, lines, questions: [] };
  }
  const session = join(folder, "pi-session.jsonl");
  if (existsSync(session)) yield { name: "coding", lines: linesOf(readFileSync(session, "utf8")), questions: [] };
}

const linesOf = (text: string): readonly Json[] =>
  text.split("\n").flatMap((line): readonly Json[] => {
    const entry = line.trim() === "" ? null : (JSON.parse(line) as Json);
    return typeof fieldsOf(fieldsOf(entry)["message"] ?? null)["role"] === "string" ? [entry] : [];
  });

// oxlint-disable-next-line typescript/no-explicit-any -- foreign files, read as they are
function readJson(path: string): readonly any[] {
  if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8"));
  console.log(`${path} is missing: skipped`);
  return [];
}

const [given = join("..", "shared", "data")] = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const folder = makeScratch("bench-pins");
try {
  const demo = { name: "demo", lines: readDemoTranscript(), questions: [] };
  const figures: Figures[] = [];
  for (const sample of [...samplesIn(given), demo])
    figures.push(await measure(sample, folder, process.argv.includes("--list")));
  const rows = figures.map(({ name, questions, present, userMessages, pins, shown, tokens }) => [
    name,
    questions === 0 ? "" : `${present} of ${questions}`,
    String(userMessages),
    String(pins),
    ((100 * pins) / userMessages).toFixed(1),
    String(shown),
    String(tokens),
  ]);
  const heads = ["conversation", "source in prompt", "user messages", "pins", "per hundred", "at the front", "tokens"];
  console.log(table(heads, rows));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
