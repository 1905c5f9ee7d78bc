import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { withoutSignals } from "./support/platform.ts";
import { makeScratch } from "./support/scratch.ts";

const folder = makeScratch("exam-test");
after(() => rmSync(folder, { recursive: true, force: true }));

const turns = 20;
const transcript = join(folder, "chat.jsonl");
const lines = Array.from({ length: turns }, (_, at) => [
  {
    role: "user",
    content: `Please measure the water level at station ${at} for the yearly report of the river board.`,
  },
  {
    role: "assistant",
    content: [
      { type: "text", text: `The gauge of station ${at} was read twice, and both readings agree.` },
      { type: "toolCall", id: `call-${at}`, name: "gauge", arguments: { station: at } },
    ],
  },
  {
    role: "toolResult",
    toolCallId: `call-${at}`,
    toolName: "gauge",
    content: [{ type: "text", text: `level ${at} cm` }],
  },
]).flat();
writeFileSync(transcript, lines.map((line) => JSON.stringify(line)).join("\n") + "\n");

const questions = join(folder, "questions.json");
writeFileSync(
  questions,
  JSON.stringify({
    questions: [
      { id: "q1", question: "Which station | was last?", answer: "station 19", type: "exact" },
      { id: "q2", question: "Who reads the report?", answer: "the river board", type: "exact", tags: [], gold: [] },
      { id: "q3", question: "How were levels read?", answer: "twice", type: "how" },
    ],
  }),
);

const settings = ["leafChunkTokens=500", "leafTargetTokens=120", "freshTailCount=6"].flatMap((each) => ["--set", each]);
const subject = ["--transcript", transcript, "--questions", questions, "--budget", "1000", ...settings];
const exam = [...subject, "--dir", folder, "--model", "files"];

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the exam, and meanwhile does `during` over and over. */
async function run(args: readonly string[], during: (stop: () => void) => void = () => undefined): Promise<Ended> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "..", "bench", "exam.ts"), ...args]);
  const said = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => (said.stdout += String(chunk)));
  child.stderr.on("data", (chunk) => (said.stderr += String(chunk)));
  const ended = Promise.withResolvers<number | null>();
  child.on("close", ended.resolve);
  const isOver = ended.promise.then(() => true);
  while (!(await Promise.race([isOver, sleep(50, false)]))) during(() => child.kill("SIGINT"));
  return { status: await ended.promise, ...said };
}

const filesIn = (name: string): readonly string[] =>
  existsSync(join(folder, name)) ? readdirSync(join(folder, name)).toSorted() : [];

/** The first request gets an answer that no summary may be, the others get good ones. */
function answerAll(): void {
  for (const name of filesIn("requests").filter((request) => !filesIn("answers").includes(request))) {
    const count = filesIn("answers").length;
    const good = `Stations were measured for the board, stretch ${count}: all levels were noted and nothing is open.\nExpand for details about: the levels`;
    writeFileSync(join(folder, "answers", name), count === 0 ? "ok" : good);
  }
}

describe("the exam of a transcript, with a model that is asked through files", () => {
  it("stops at once when interrupted, and leaves the request", { skip: withoutSignals }, async () => {
    let isStopped = false;
    const { status, stderr } = await run(exam, (stop) => {
      if (isStopped || filesIn("requests").length === 0) return;
      isStopped = true;
      stop();
    });
    assert.equal(status, 130, stderr);
    assert.match(stderr, /waiting for .*answers[/\\]\w{16}\.txt/);
    assert.match(stderr, /run the same command again/);
    const [request = ""] = filesIn("requests");
    const asked = readFileSync(join(folder, "requests", request), "utf8");
    for (const part of ["[system]", "[prompt]", "[limits]", "for the yearly report"])
      assert.ok(asked.includes(part), part);
  });

  it("continues with the same request, and lists every answer with its verdict", async () => {
    const [first] = filesIn("requests");
    const { status, stdout, stderr } = await run(exam, answerAll);
    assert.equal(status, 0, stderr);
    assert.deepEqual(filesIn("answers"), filesIn("requests"));
    assert.ok(first === undefined || filesIn("answers").includes(first));
    assert.match(stdout, /refused: the answer was too short: \d+ of about \d+ tokens/);
    assert.match(stdout, /accepted \(aggressive\)/);
    assert.match(stdout, /accepted \(normal\)/);
    assert.match(stdout, new RegExp(`${filesIn("answers").length} answers, ${filesIn("answers").length - 1} accepted`));
  });

  it("asks nothing twice: the next run finds all answers", async () => {
    const asked = filesIn("requests");
    const { status, stdout, stderr } = await run([...exam, "--json"]);
    assert.equal(status, 0, stderr);
    assert.doesNotMatch(stderr, /waiting/);
    assert.deepEqual(filesIn("requests"), asked);
    const { figures, answers } = JSON.parse(stdout);
    assert.equal(answers.length, asked.length);
    assert.equal(figures[0].calls, asked.length);
    assert.equal(figures[0].outputTokens, sum(answers.map((answer: Figure) => answer["outputTokens"] ?? 0)));
  });

  it("leaves the prompt and the questions, without the answers, for a reader", () => {
    const prompt = readFileSync(join(folder, "prompt-1000.txt"), "utf8");
    assert.match(prompt, /· user ═══\n<summary /);
    assert.match(prompt, /→ call: gauge \{"station":19\}/);
    assert.match(prompt, /· toolResult · gauge ═══\nlevel 19 cm/);
    const asked = readFileSync(join(folder, "questions.txt"), "utf8");
    assert.match(asked, /^q1: Which station \| was last\?$/m);
    assert.doesNotMatch(asked, /station 19|river board/);
  });

  it("makes a score sheet of the reader's answers, keeps its marks, and counts them", async () => {
    const path = join(folder, "sheet-1000.md");
    writeFileSync(join(folder, "answers-1000.txt"), "Here:\n- q1: number 19 | I think\n**q2**: not in\nthe prompt\n");
    assert.equal((await run(exam)).status, 0);
    const sheet = readFileSync(path, "utf8");
    assert.ok(
      sheet.includes(
        "| q1 | exact |  | Which station \\| was last? | station 19 | number 19 \\| I think | all | all |",
      ),
    );
    assert.ok(
      sheet.includes("| q2 | exact |  | Who reads the report? | the river board | not in the prompt | – | – |"),
    );
    assert.ok(sheet.includes("| (no answer) |"));

    writeFileSync(
      path,
      sheet
        .replace("| q1 | exact |  |", "| q1 | exact | right |")
        .replace("| q2 | exact |  |", "| q2 | exact | Wrong |"),
    );
    assert.equal((await run(exam)).status, 0);
    const { status, stdout } = await run(["--dir", folder, "--score"]);
    assert.equal(status, 0);
    assert.deepEqual(rowsOf(stdout), [
      ["exact", "1", "0", "1", "0", "2"],
      ["how", "0", "0", "0", "1", "1"],
      ["total", "1", "0", "1", "1", "3"],
    ]);
    writeFileSync(path, sheet.replace("| q1 | exact |  |", "| q1 | exact | fine |"));
    const odd = await run(["--dir", folder, "--score"]);
    assert.equal(odd.status, 2);
    assert.match(odd.stderr, /the mark of q1 is "fine"/);
  });
});

describe("the exam on the demo", () => {
  it("needs no options, and prints a row for each budget whose figures agree", async () => {
    const [{ status, stdout }, { stdout: json }] = [await run([]), await run(["--budget", "16000,128000", "--json"])];
    assert.equal(status, 0);
    const { figures }: { figures: readonly Figure[] } = JSON.parse(json);
    const rows = rowsOf(stdout);
    assert.deepEqual(
      rows.map(([budget]) => budget),
      ["16,000", "32,000", "128,000", "200,000"],
    );
    assert.deepEqual(
      [rows[0], rows[2]].map((row) => row?.filter((_, at) => at !== 2).slice(0, 3)),
      figures.map(({ budget, promptTokens, factsInPrompt, facts }) => [
        count(budget),
        count(promptTokens),
        `${factsInPrompt} of ${facts}`,
      ]),
    );
    for (const { budget = 0, promptTokens = 0, share, factsInPrompt = 0, facts, calls } of figures) {
      assert.ok(promptTokens > 0 && promptTokens <= budget);
      assert.equal(share, promptTokens / budget);
      assert.ok(factsInPrompt > 0 && factsInPrompt <= 48);
      assert.deepEqual([facts, calls], [48, 0]);
    }
  });
});

describe("the exam, turn by turn", () => {
  it("measures one prompt for each turn, and what a cache saves", async () => {
    const { status, stdout, stderr } = await run([...subject, "--turns", "--json"]);
    assert.equal(status, 0, stderr);
    const [{ lived, folds }] = JSON.parse(stdout).figures;
    assert.equal(lived.turns, turns);
    assert.ok(lived.meanPromptTokens <= lived.largestPromptTokens && lived.largestPromptTokens <= 1_000);
    assert.ok(lived.prefixKept > 0 && lived.prefixKept < 1);
    assert.ok(lived.compactions > 0 && lived.compactions <= folds && lived.compactions <= lived.prefixChanges);
    assert.equal(lived.costPer1000Turns.uncached, Math.round((1_000 * lived.promptTokens) / turns));
    assert.ok(lived.costPer1000Turns.cached < lived.costPer1000Turns.uncached);
  });
});

describe("a mistake in the options", () => {
  it("is one line, with exit status 2", async () => {
    for (const args of [
      ["--model", "files"],
      ["--set", "leafChunkTokens"],
    ]) {
      const { status, stderr } = await run(args);
      assert.equal(status, 2);
      assert.match(stderr, /^exam: .+\n$/);
    }
  });
});

type Figure = Readonly<Record<string, number>>;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
const count = (value: number | undefined): string => (value ?? 0).toLocaleString("en-US");

/** The cells of a table's rows, below its head. */
const rowsOf = (text: string): readonly (readonly string[])[] =>
  text
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2)
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim()),
    );
