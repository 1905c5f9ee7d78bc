/**
 * An exam for an agent that has only the recall tools: `npm run exam:tools -- prepare | call | shell | score`.
 *
 * It stores a session among many other messages of the same agent, hands out the questions without their answers, runs
 * the tools as an agent would call them, and counts calls and characters read per question. The same questions can be
 * answered with grep over the transcripts, to compare. docs/exam.md says how.
 */

import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { tools } from "../src/agent-tools/all.ts";
import { errorText, LcmError } from "../src/core/base/errors.ts";
import { createLcm, type Lcm } from "../src/core/lcm.ts";
import { resolveSettings } from "../src/core/model/settings.ts";
import { importTranscriptFile } from "../src/cli/transcript-files.ts";
import { openSqlite, systemNow } from "../src/store/sqlite/store.ts";
import { corpusEntry } from "./corpus.ts";
import { countMarks, markColumns, readQuestions, scoreSheet, type Question } from "./exam-sheet.ts";
import { table } from "./table.ts";

const usage = `npm run exam:tools -- COMMAND --dir DIR [options]

  prepare --transcript FILE --questions FILE [--others N]
                      store the session and N other messages of the same agent (default: 100000)
  call --question ID TOOL '{"argument": …}'
                      run a tool, print what an agent would read, and count it
  shell --question ID 'COMMAND'
                      run a shell command in DIR/files, print and count it
  score [--answers FILE]
                      make the score sheet of the answers (default: DIR/answers.txt), count calls, characters and marks`;

const options = {
  dir: { type: "string" },
  transcript: { type: "string" },
  questions: { type: "string" },
  others: { type: "string", default: "100000" },
  question: { type: "string" },
  answers: { type: "string" },
} as const;

type Given = { readonly [name in keyof typeof options]?: string };

async function main(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  const [command = "", ...rest] = positionals;
  const run = { prepare, call, shell, score }[command];
  if (run === undefined) throw new LcmError("invalid", usage);
  await run(values, rest);
}

function needed(given: Given, name: keyof Given): string {
  const value = given[name];
  if (value === undefined) throw new LcmError("invalid", `--${name} is missing\n\n${usage}`);
  return value;
}

// ── Preparing ────────────────────────────────────────────────────────────────────────────────────────────────────────

const messagesPerSession = 2_000;

async function prepare(given: Given): Promise<void> {
  const dir = needed(given, "dir");
  const files = join(dir, "files");
  mkdirSync(files, { recursive: true });
  const transcript = needed(given, "transcript");
  const questions = readQuestions(readFileSync(needed(given, "questions"), "utf8"), needed(given, "questions"));
  copyFileSync(transcript, join(files, basename(transcript)));
  copyFileSync(needed(given, "questions"), join(dir, "questions.json"));
  const paths = [join(files, basename(transcript))];
  for (let from = 0; from < Number(given.others); from += messagesPerSession)
    paths.push(await writeSession(files, from));
  await withLcm(dir, async (lcm) => {
    for (const path of paths) {
      const file = { path, bytes: statSync(path).size, isFound: false };
      const fallbackSessionId = basename(path, ".jsonl");
      const target = { fallbackSessionId, sessionKey: `agent:main:${fallbackSessionId}`, agentId: "main" };
      await importTranscriptFile(file, { open: async () => lcm, target, onProgress: () => undefined });
    }
    while ((await lcm.store.index(8_000)) > 0);
  });
  writeFileSync(join(dir, "questions.txt"), questions.map(({ id, question }) => `${id}: ${question}\n`).join(""));
  writeFileSync(join(dir, "tools.txt"), toolsSheet());
  console.log(`${paths.length} sessions stored. Give ${dir}/questions.txt and ${dir}/tools.txt to the agent.`);
}

async function writeSession(folder: string, from: number): Promise<string> {
  const path = join(folder, `session-${String(from / messagesPerSession + 1).padStart(3, "0")}.jsonl`);
  const file = createWriteStream(path);
  for (let n = from; n < from + messagesPerSession; n++) file.write(`${JSON.stringify(corpusEntry(n))}\n`);
  file.end();
  await once(file, "finish");
  return path;
}

/** What a host tells the model about each tool, and nothing else. */
const toolsSheet = (): string =>
  tools
    .filter(({ audience }) => audience !== "delegate")
    .map(({ name, description, parameters }) => `${name}\n${description}\n${JSON.stringify(parameters, null, 1)}\n`)
    .join("\n");

async function withLcm<T>(dir: string, use: (lcm: Lcm) => Promise<T>): Promise<T> {
  const store = await openSqlite({ path: join(dir, "lcm.db") });
  const settings = resolveSettings({ env: process.env, config: {} }).values;
  const lcm = createLcm({ store, clock: { now: systemNow }, settings });
  try {
    return await use(lcm);
  } finally {
    await lcm.close();
  }
}

// ── Answering ────────────────────────────────────────────────────────────────────────────────────────────────────────

async function call(given: Given, [name = "", json = "{}"]: readonly string[]): Promise<void> {
  const tool = tools.find((each) => each.name === name && each.audience !== "delegate");
  if (tool === undefined) throw new LcmError("invalid", `there is no tool ${name}`);
  const text = await withLcm(needed(given, "dir"), async (lcm) => {
    // A reader outside the session, as over MCP: it names no conversation.
    const result = await tool.run(JSON.parse(json), { lcm, reader: { conversation: null, policy: "all" } });
    return result.text;
  });
  count(given, text, `${name} ${json}`);
}

const shellBytesMax = 64 * 1024 * 1024;

function shell(given: Given, [command = ""]: readonly string[]): void {
  const cwd = join(needed(given, "dir"), "files");
  const script = `{ ${command}\n} 2>&1 || true`;
  count(given, execFileSync("bash", ["-c", script], { cwd, encoding: "utf8", maxBuffer: shellBytesMax }), command);
}

function count(given: Given, text: string, asked: string): void {
  console.log(text);
  const line = { question: needed(given, "question"), asked, chars: text.length };
  appendFileSync(join(needed(given, "dir"), "calls.jsonl"), `${JSON.stringify(line)}\n`);
}

// ── Scoring ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function score(given: Given): void {
  const dir = needed(given, "dir");
  const questions = readQuestions(readFileSync(join(dir, "questions.json"), "utf8"), "questions.json");
  const sheet = join(dir, "sheet.md");
  const answers = given.answers ?? join(dir, "answers.txt");
  const earlier = existsSync(sheet) ? readFileSync(sheet, "utf8") : "";
  writeFileSync(sheet, scoreSheet(questions, readFileSync(answers, "utf8"), "", earlier));
  console.log(`${table(markColumns, countMarks(readFileSync(sheet, "utf8"), sheet))}\n\n${costs(dir, questions)}`);
}

function costs(dir: string, questions: readonly Question[]): string {
  const calls = readFileSync(join(dir, "calls.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line): { readonly question: string; readonly chars: number } => JSON.parse(line));
  const of = questions.map(({ id }) => calls.filter(({ question }) => question === id));
  const chars = of.flat().reduce((sum, each) => sum + each.chars, 0);
  const mean = (total: number): string => (total / questions.length).toFixed(1);
  const most = Math.max(...of.map((each) => each.length));
  return `${mean(of.flat().length)} calls and ${mean(chars)} characters per question; at most ${most} calls for one.`;
}

await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(errorText(error));
  process.exitCode = 1;
});
