/**
 * How well search finds the turns that answer a question: LoCoMo, five long conversations with questions whose evidence
 * is known turns. Each question is asked in its own conversation, as an agent would. Prints recall at 5, 10, 25 and 50.
 *
 * The data may be used for measuring only and is not part of the project: LCM_DATA_DIR, or ../shared/data.
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { StatementSync } from "node:sqlite";
import { asConversation } from "../src/store/rows.ts";
import { indexes, searchTables, tables } from "../src/store/schema.ts";
import type { Row, Script, Value } from "../src/store/script.ts";
import { indexBatch } from "../src/store/indexing.ts";
import { search } from "../src/store/search.ts";

const cutoffs = [5, 10, 25, 50] as const;
const categories: Readonly<Record<number, string>> = {
  1: "multi-hop",
  2: "temporal",
  3: "open",
  4: "single-hop",
  5: "adversarial",
};

interface Turn {
  readonly id: string;
  readonly text: string;
  readonly at: string;
}
interface Question {
  readonly question: string;
  readonly category: number;
  readonly evidence: readonly string[];
}
interface Sample {
  readonly turns: readonly Turn[];
  readonly questions: readonly Question[];
}

const path = join(process.env["LCM_DATA_DIR"] ?? join(import.meta.dirname, "../../shared/data"), "locomo-half.json");
if (existsSync(path)) measure(readSamples(JSON.parse(readFileSync(path, "utf8"))));
else console.log(`locomo: skipped, there is no ${path}; set LCM_DATA_DIR to the folder that holds it`);

function measure(samples: readonly Sample[]): void {
  const db = new DatabaseSync(":memory:");
  for (const statement of [...Object.values(tables), ...searchTables, ...indexes]) db.exec(statement);
  const run = createRunner(db);
  const results: { readonly category: number; readonly recall: readonly number[]; readonly ms: number }[] = [];
  for (const [index, sample] of samples.entries()) {
    const conversation = asConversation(index + 1);
    store(db, conversation, sample.turns);
    while (run(indexBatch(1_000)) > 0);
    for (const { question, category, evidence } of sample.questions) {
      const startedMs = performance.now();
      const found = run(
        search(
          {
            pattern: question,
            mode: "full_text",
            scope: "messages",
            conversations: [conversation],
            sort: "relevance",
            limit: 50,
          },
          { deadlineMs: Infinity, nowMs: () => performance.now() },
        ),
      );
      const ms = performance.now() - startedMs;
      const ranked = found.hits.map((hit) => (hit.kind === "message" ? (sample.turns[hit.seq - 1]?.id ?? "") : ""));
      const recall = cutoffs.map(
        (k) => evidence.filter((id) => ranked.slice(0, k).includes(id)).length / evidence.length,
      );
      results.push({ category, recall, ms });
    }
  }
  const report = (name: string, of: typeof results): void => {
    const recall = cutoffs.map(
      (k, at) => `@${k} ${((of.reduce((sum, { recall }) => sum + (recall[at] ?? 0), 0) / of.length) * 100).toFixed(1)}`,
    );
    console.log(`${name.padEnd(12)} ${String(of.length).padStart(5)} questions  recall ${recall.join("  ")}`);
  };
  report("all", results);
  for (const [category, name] of Object.entries(categories))
    report(
      name,
      results.filter((result) => result.category === Number(category)),
    );
  const times = results.map(({ ms }) => ms).sort((one, other) => one - other);
  const quantile = (share: number): string => `${times[Math.floor(times.length * share)]?.toFixed(1)} ms`;
  console.log(`time         median ${quantile(0.5)}, p95 ${quantile(0.95)}`);
}

function store(db: DatabaseSync, conversation: number, turns: readonly Turn[]): void {
  db.prepare(
    `INSERT INTO conversations (conversation_id, session_id, created_at, updated_at, message_count)
     VALUES (?, ?, '', '', ?)`,
  ).run(conversation, `locomo-${conversation}`, turns.length);
  const insert = db.prepare(
    `INSERT INTO messages (conversation_id, seq, role, content, token_count, created_at, stored_at, message_key)
     VALUES (?, ?, 'user', ?, 0, ?, ?, ?)`,
  );
  for (const [index, turn] of turns.entries())
    insert.run(conversation, index + 1, turn.text, turn.at, turn.at, turn.id);
}

/** Runs scripts on an open database, with each statement prepared once. */
function createRunner(db: DatabaseSync): <T>(script: Script<T>) => T {
  const prepared = new Map<string, StatementSync>();
  return (script) => {
    let step = script.next();
    while (!step.done) {
      const words = step.value.parts.join("?");
      const statement = prepared.get(words) ?? db.prepare(words);
      prepared.set(words, statement);
      const rows = statement
        .all(...step.value.values)
        .map((row): Row => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toValue(value)])));
      step = script.next(rows);
    }
    return step.value;
  };
}

function toValue(value: unknown): Value {
  return typeof value === "number" || typeof value === "string" ? value : null;
}

// ── Reading the data ─────────────────────────────────────────────────────────────────────────────────────────────────

function readSamples(data: unknown): readonly Sample[] {
  return list(data).map((sample) => {
    const turns = readTurns(field(sample, "conversation"));
    const known = new Set(turns.map((turn) => turn.id));
    const questions = list(field(sample, "qa")).map((qa) => ({
      question: textOf(qa, "question"),
      category: Number(field(qa, "category")),
      // A few ids are malformed; a question without any valid one cannot be measured.
      evidence: list(field(qa, "evidence"))
        .map(String)
        .filter((id) => known.has(id)),
    }));
    return { turns, questions: questions.filter(({ evidence }) => evidence.length > 0) };
  });
}

function readTurns(conversation: unknown): readonly Turn[] {
  const turns: Turn[] = [];
  for (let session = 1; field(conversation, `session_${session}_date_time`) !== undefined; session++) {
    const at = toTimestamp(textOf(conversation, `session_${session}_date_time`));
    for (const turn of list(field(conversation, `session_${session}`) ?? [])) {
      const caption = textOf(turn, "blip_caption");
      const image = caption === "" ? "" : ` [image: ${caption}]`;
      turns.push({
        id: textOf(turn, "dia_id"),
        text: `${textOf(turn, "speaker")}: ${textOf(turn, "text")}${image}`,
        at,
      });
    }
  }
  return turns;
}

/** "1:56 pm on 8 May, 2023" */
function toTimestamp(time: string): string {
  const [, clock = "", half = "", date = ""] = /^([\d:]+) (am|pm) on (.+)$/.exec(time) ?? [];
  return new Date(`${date} ${clock} ${half} UTC`).toISOString();
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}

function textOf(value: unknown, name: string): string {
  const found = field(value, name);
  return typeof found === "string" ? found : "";
}
