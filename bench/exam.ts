/**
 * Measures what an agent still knows after compaction from its prompt alone, before it calls a tool: `npm run exam`.
 *
 * By itself it runs on the demo, without a model, and counts mechanically. With a transcript and questions of your own it
 * leaves prompts and questions for a reader in a folder, and makes score sheets of the answers. Any language model can
 * write the summaries, through files. docs/exam.md says how.
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Assembly } from "../src/core/assembly/assemble.ts";
import { errorText, LcmError } from "../src/core/base/errors.ts";
import { msToTimestamp } from "../src/core/base/time.ts";
import { createLcm, type Lcm } from "../src/core/lcm.ts";
import { envOf, isSettingKey, resolveSettings, type Settings } from "../src/core/model/settings.ts";
import type { ConversationId } from "../src/core/model/types.ts";
import { readKeyFacts } from "../src/cli/demo/five-weeks.ts";
import { isInPrompt } from "../src/cli/demo/recollect.ts";
import { importTranscriptFile } from "../src/cli/transcript-files.ts";
import { packageFolder } from "../src/package.ts";
import { openSqlite } from "../src/store/sqlite/store.ts";
import { makeScratch } from "../test/support/scratch.ts";
import {
  countMarks,
  markColumns,
  promptText,
  questionSheet,
  questionsOfKeyFacts,
  readQuestions,
  scoreSheet,
  type Question,
} from "./exam-sheet.ts";
import { compactDue, costOf, live, readTurns, type Lived, type Prices, type Turn } from "./exam-turns.ts";
import { answersOf, report, type Figures } from "./exam-report.ts";
import { createRandom } from "./corpus.ts";
import { createFileModel, type FileCall } from "./file-model.ts";
import { table } from "./table.ts";

const usage = `npm run exam -- [options]

  --transcript FILE   a transcript that \`lcm import\` reads (default: the demo)
  --questions FILE    {"questions": [{"id", "question", "answer", "type"}, …]} (default: the demo's key facts)
  --budget N[,N…]     prompt budgets in tokens (default: 32000,128000,200000; on the demo also 16000)
  --dir DIR           leave prompts and questions here; make score sheets of answers-N.txt
  --model NAME        extract (default), or files: ask through DIR/requests and DIR/answers
  --set KEY=VALUE     change a setting; may be repeated
  --turns             live through the transcript turn by turn instead of importing it whole
  --cached N          price of a cached token of input, of an uncached one (default: 0.1)
  --cache-write N     price of a token that is written to the cache (default: 1.25)
  --output N          price of a token of output (default: 5)
  --score             count the marks in DIR/sheet-N.md
  --json              print JSON`;

const options = {
  transcript: { type: "string" },
  questions: { type: "string" },
  budget: { type: "string" },
  dir: { type: "string" },
  model: { type: "string", default: "extract" },
  set: { type: "string", multiple: true, default: [] as string[] },
  turns: { type: "boolean", default: false },
  cached: { type: "string", default: "0.1" },
  "cache-write": { type: "string", default: "1.25" },
  output: { type: "string", default: "5" },
  score: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

type Given = ReturnType<typeof readArguments>;

interface Exam {
  readonly transcript: string;
  /** Of the transcript, if it is to be lived through. */
  readonly turns: readonly Turn[] | null;
  readonly questions: readonly Question[];
  readonly budgets: readonly number[];
  readonly dir: string | null;
  readonly asksFiles: boolean;
  readonly settings: Settings;
  readonly prices: Prices;
  readonly signal: AbortSignal;
}

async function main(words: readonly string[]): Promise<number> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort());
  try {
    const given = readArguments(words);
    if (given.help) return print(usage);
    if (given.score) return print(score(given));
    const exam = await readExam(given, stop.signal);
    const figures: Figures[] = [];
    const calls = new Map<number, readonly FileCall[]>();
    for (const budget of exam.budgets) figures.push(await sit(exam, budget, (made) => calls.set(budget, made)));
    if (exam.dir !== null) console.error(`prompts and questions are in ${exam.dir}; answers go to answers-N.txt there`);
    const answers = answersOf(calls);
    if (given.json) return print(JSON.stringify({ figures, answers }, null, 2));
    return print(report(figures, answers));
  } catch (error) {
    if (stop.signal.aborted) {
      console.error("stopped; run the same command again to continue");
      return 130;
    }
    if (!(error instanceof LcmError)) throw error;
    console.error(`exam: ${[error.message, error.hint].filter((each) => each !== undefined).join("; ")}`);
    return error.code === "invalid" || error.code === "not_found" ? 2 : 1;
  }
}

function print(text: string): number {
  console.log(text);
  return 0;
}

// ── Options ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const invalid = (message: string): LcmError => new LcmError("invalid", message);

function readArguments(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options }).values;
  } catch (error) {
    throw invalid(errorText(error));
  }
}

async function readExam(given: Given, signal: AbortSignal): Promise<Exam> {
  const { model, dir = null } = given;
  if (model !== "files" && model !== "extract") throw invalid(`--model is ${model}, but must be files or extract`);
  if (model === "files" && dir === null) throw invalid("--model files needs --dir, where requests and answers go");
  const isDemo = given.transcript === undefined;
  const transcript = given.transcript ?? join(packageFolder(), "demo", "five-weeks.jsonl");
  mustBeFile(transcript);
  const budgets = given.budget?.split(",").map((word) => numberOf("--budget", word));
  return {
    transcript,
    turns: given.turns ? await naming(transcript, readTurns(transcript)) : null,
    questions: questionsOf(given, isDemo),
    budgets: [...new Set(budgets ?? [...(isDemo ? [16_000] : []), 32_000, 128_000, 200_000])],
    dir,
    asksFiles: model === "files",
    settings: settingsOf(given.set, model),
    prices: {
      cached: numberOf("--cached", given.cached),
      cacheWrite: numberOf("--cache-write", given["cache-write"]),
      output: numberOf("--output", given.output),
    },
    signal,
  };
}

function questionsOf({ questions }: Given, isDemo: boolean): readonly Question[] {
  if (questions === undefined) return isDemo ? questionsOfKeyFacts(readKeyFacts()) : [];
  mustBeFile(questions);
  return readQuestions(readFileSync(questions, "utf8"), questions);
}

function mustBeFile(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) throw invalid(`there is no file ${path}`);
}

/** Errors of reading a transcript do not name the file. */
async function naming<T>(path: string, work: Promise<T>): Promise<T> {
  return await work.catch((error: unknown) => {
    throw error instanceof LcmError && error.code === "invalid" ? invalid(`${path}: ${error.message}`) : error;
  });
}

function numberOf(option: string, word: string): number {
  const value = Number(word);
  if (word.trim() !== "" && value >= 0 && (option !== "--budget" || (Number.isInteger(value) && value > 0)))
    return value;
  throw invalid(`${option} is ${word}, but must be a number${option === "--budget" ? " of tokens" : ""}`);
}

/** One call at a time, unless set otherwise: then every run makes the same requests, and finds the answers of the last. */
function settingsOf(given: readonly string[], model: "files" | "extract"): Settings {
  const env: Record<string, string> = {};
  for (const assignment of given) {
    const [key = "", ...value] = assignment.split("=");
    if (!isSettingKey(key)) throw invalid(`--set ${assignment}: there is no setting ${key}`);
    if (value.join("=").trim() === "") throw invalid(`--set ${assignment}: the value is missing, as in ${key}=1`);
    env[envOf(key)] = value.join("=");
  }
  const config = { spendCeilingCalls: 1_000_000_000, ...(model === "files" ? { summaryConcurrency: 1 } : {}) };
  return resolveSettings({ env, config }).values;
}

// ── One budget ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** The same times and ids in every run, so that requests are the same too, and their answers are found again. */
const clock = { now: () => msToTimestamp(Date.UTC(2026, 0, 1)) };

function createIds(): () => string {
  const random = createRandom(1);
  const half = (): string =>
    random
      .int(2 ** 32)
      .toString(16)
      .padStart(8, "0");
  return () => half() + half();
}

async function sit(exam: Exam, budget: number, onCalls: (calls: readonly FileCall[]) => void): Promise<Figures> {
  const folder = makeScratch("exam");
  const path = join(folder, "lcm.db");
  const repeatable = { now: clock.now, hex16: createIds() };
  const store = await openSqlite({ path, ...repeatable, housekeeping: false, durability: "normal" });
  const model = exam.asksFiles && exam.dir !== null ? createFileModel(exam.dir, (line) => console.error(line)) : null;
  const lcm = createLcm({ store, clock, settings: exam.settings, model });
  try {
    const { id, folds, lived } = await (exam.turns === null ? compactWhole : liveThrough)(lcm, exam, budget);
    const assembly = await lcm.assemble(id, { budget });
    if (exam.dir !== null) leaveFiles(exam.dir, exam.questions, assembly);
    const calls = model?.calls ?? [];
    onCalls(calls);
    const spent = {
      calls: calls.length,
      inputTokens: calls.reduce((sum, call) => sum + call.inputTokens, 0),
      outputTokens: calls.reduce((sum, call) => sum + call.outputTokens, 0),
    };
    const cost = lived === null ? null : { ...lived, costPer1000Turns: costOf(lived, spent, exam.prices) };
    return { budget, ...figuresOf(assembly, exam.questions), folds, ...spent, lived: cost };
  } finally {
    await lcm.close();
    rmSync(folder, { recursive: true });
  }
}

interface Sat {
  readonly id: ConversationId;
  readonly folds: number;
  readonly lived: Lived | null;
}

async function liveThrough(lcm: Lcm, { turns, signal }: Exam, budget: number): Promise<Sat> {
  const { id } = await lcm.store.open({ sessionId: "exam" });
  const lived = await live(lcm, id, turns ?? [], { budget, signal });
  return { id, folds: lived.folds, lived };
}

const roundsMax = 10_000;

/** Imports everything, then compacts as long as something is due and can be folded. */
async function compactWhole(lcm: Lcm, { transcript, signal }: Exam, budget: number): Promise<Sat> {
  const file = { path: transcript, bytes: statSync(transcript).size, isFound: false };
  const importing = { open: async () => lcm, target: { fallbackSessionId: "exam" }, onProgress: () => undefined };
  const { conversation } = await naming(transcript, importTranscriptFile(file, importing));
  if (conversation === null) throw invalid(`${transcript}: the transcript is empty`);
  const { id } = conversation;
  let folds = 0;
  for (let round = 0; round < roundsMax; round++) {
    const folded = await compactDue(lcm, { conversation: id, budget, signal });
    if (folded === 0) return { id, folds, lived: null };
    folds += folded;
  }
  throw new LcmError("unavailable", `something was still due after ${roundsMax} compactions`);
}

function figuresOf({ messages, report }: Assembly, questions: readonly Question[]) {
  const facts = questions.filter(({ values }) => values.length > 0);
  const summaries: number[] = [];
  for (const { depth, items } of report.depths) summaries[depth] = items;
  return {
    promptTokens: report.tokens,
    share: report.tokens / report.budget,
    factsInPrompt: facts.filter(({ values }) => isInPrompt(messages, { answer: values })).length,
    facts: facts.length,
    summaries: Array.from(summaries, (count) => count ?? 0),
    olderMessages: report.older.items,
    tailMessages: report.tail.items,
    evicted: report.evicted.items,
  };
}

function leaveFiles(dir: string, questions: readonly Question[], { messages, report: { budget } }: Assembly): void {
  mkdirSync(dir, { recursive: true });
  const prompt = promptText(messages);
  writeFileSync(join(dir, `prompt-${budget}.txt`), prompt);
  if (questions.length === 0) return;
  writeFileSync(join(dir, "questions.txt"), questionSheet(questions));
  const [given, sheet] = [join(dir, `answers-${budget}.txt`), join(dir, `sheet-${budget}.md`)];
  if (!existsSync(given)) return;
  const earlier = existsSync(sheet) ? readFileSync(sheet, "utf8") : "";
  writeFileSync(sheet, scoreSheet(questions, readFileSync(given, "utf8"), prompt, earlier));
}

// ── Marks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function score({ dir, json }: Given): string {
  if (dir === undefined) throw invalid("--score needs --dir, where the sheets are");
  const sheets = existsSync(dir) ? readdirSync(dir).filter((name) => /^sheet-\d+\.md$/.test(name)) : [];
  if (sheets.length === 0)
    throw invalid(`there is no sheet-N.md in ${dir}; write answers-N.txt and run the exam first`);
  const counted = sheets
    .toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }))
    .map((name) => ({ name, rows: countMarks(readFileSync(join(dir, name), "utf8"), join(dir, name)) }));
  if (!json) return counted.map(({ name, rows }) => `${name}\n\n${table(markColumns, rows)}`).join("\n\n");
  const named = (row: readonly string[]) => Object.fromEntries(markColumns.map((name, at) => [name, row[at]]));
  return JSON.stringify(Object.fromEntries(counted.map(({ name, rows }) => [name, rows.map(named)])), null, 2);
}

process.exitCode = await main(process.argv.slice(2));
