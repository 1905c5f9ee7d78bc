/** Writes what a reader of an exam gets, puts the answers beside the right ones, and counts a person's marks. */

import type { HostMessage } from "../src/core/messages/codec.ts";
import { messageToStore } from "../src/core/messages/codec.ts";
import { resultToolIn } from "../src/core/messages/dialects.ts";
import { LcmError } from "../src/core/base/errors.ts";
import { isObject, type Json } from "../src/core/base/json.ts";
import { msToTimestamp } from "../src/core/base/time.ts";
import type { Part } from "../src/core/model/types.ts";
import type { KeyFact } from "../src/cli/demo/five-weeks.ts";

export interface Question {
  readonly id: string;
  readonly question: string;
  /** For people. */
  readonly answer: string;
  readonly type: string;
  /** Names, numbers and identifiers of the answer; empty if it is all prose. */
  readonly values: readonly string[];
}

// ── Questions ────────────────────────────────────────────────────────────────────────────────────────────────────────

export const questionsOfKeyFacts = (facts: readonly KeyFact[]): readonly Question[] =>
  facts.map(({ question, answer }, at) => ({
    id: `f${String(at + 1).padStart(2, "0")}`,
    question,
    answer: answer.join("; "),
    type: "fact",
    values: answer,
  }));

/** Reads `{ questions: [{ id, question, answer, type }] }`; an answer is a sentence, or a list of exact values. */
export function readQuestions(text: string, path: string): readonly Question[] {
  const invalid = (what: string): LcmError => new LcmError("invalid", `${path}: ${what}`);
  let document: Json;
  try {
    document = JSON.parse(text);
  } catch (cause) {
    throw new LcmError("invalid", `${path} is not JSON`, { cause });
  }
  const list = isObject(document) ? document["questions"] : undefined;
  if (!Array.isArray(list) || list.length === 0) throw invalid('it has no "questions"');
  const questions = list.map((each: Json, at): Question => {
    const { id, question, answer, type } = isObject(each) ? each : {};
    const texts = [answer].flat().filter((text) => typeof text === "string");
    if (typeof id !== "string" || !/^\w[\w.-]*$/.test(id) || typeof question !== "string" || texts.length === 0)
      throw invalid(`question ${at + 1} needs an id (letters and digits), a question and an answer`);
    return {
      id,
      question,
      answer: texts.join("; "),
      type: typeof type === "string" ? type : "all",
      values: Array.isArray(answer) ? texts : texts.flatMap(valuesIn),
    };
  });
  const ids = questions.map(({ id }) => id);
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) throw invalid(`two questions have the id ${twice}`);
  return questions;
}

/** The words of an answer that a paraphrase must keep: with a digit, a capital inside, or a mark as in a path. */
function valuesIn(answer: string): readonly string[] {
  const words = answer.split(/\s+/).map((word) => word.replace(/^[([{"'`„“]+|[.,;:!?)\]}"'`”“]+$/gu, ""));
  return [...new Set(words.filter((word) => /\d|\p{Ll}\p{Lu}|\p{Lu}{2}|\w[._/=]\w|^[#@~/€$¥-]\S/u.test(word)))];
}

// ── What the reader gets ─────────────────────────────────────────────────────────────────────────────────────────────

export const questionSheet = (
  questions: readonly Question[],
): string => `Answer these questions from the prompt alone: no tools, no other files, no guessing.
Write one line for each id, in one of these forms:

ID: the answer, in a few words
ID: not in the prompt

${questions.map(({ id, question }) => `${id}: ${oneLine(question)}`).join("\n")}
`;

/** A prompt as text: a headed section for each message. */
export const promptText = (messages: readonly HostMessage[]): string =>
  messages.map((message, at) => `═══ ${at + 1} · ${titleOf(message)} ═══\n${bodyOf(message)}\n`).join("\n");

const titleOf = (message: HostMessage): string =>
  [message["role"], resultToolIn(message)].filter((word) => typeof word === "string").join(" · ");

const bodyOf = (message: HostMessage): string =>
  messageToStore(message, { key: "shown", at: msToTimestamp(0) })
    .parts.map(textOfPart)
    .join("\n");

function textOfPart({ type, text, kept, toolCallId, metadata }: Part): string {
  const words = text ?? kept ?? metadata ?? "";
  if (type === "tool") return `→ call: ${words}`;
  if (type === "reasoning") return `(thinking) ${words}`;
  if (type === "file") return "[a picture]";
  return toolCallId === null ? words : `← result: ${words}`;
}

// ── The score sheet ──────────────────────────────────────────────────────────────────────────────────────────────────

const marks = ["right", "part", "wrong"] as const;
const columns = [
  "id",
  "type",
  "mark",
  "question",
  "right answer",
  "answer given",
  "values in the answer",
  "values in the prompt",
];

/** Keeps the marks of an earlier sheet where the answer is the same. */
export function scoreSheet(questions: readonly Question[], given: string, prompt: string, earlier: string): string {
  const answers = readAnswers(given, questions);
  const marked = new Map(rowsOf(earlier).map(([id, , mark, , , answer]) => [`${id}: ${answer}`, mark ?? ""]));
  const rows = questions.map(({ id, type, question, answer, values }) => {
    const said = cell(answers.get(id) ?? "(no answer)");
    return [
      id,
      cell(type),
      marked.get(`${id}: ${said}`) ?? "",
      cell(question),
      cell(answer),
      said,
      found(values, said),
      found(values, prompt),
    ];
  });
  return `# Score sheet

Write right, part or wrong into the column "mark", then count with \`npm run exam -- --dir DIR --score\`. The last two columns
only help: they say which exact values of the right answer occur in the answer given, and anywhere in the prompt.

${[columns, columns.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")}
`;
}

/** `id: answer` for each line; what follows without an id belongs to the answer before it. */
function readAnswers(text: string, questions: readonly Question[]): ReadonlyMap<string, string> {
  const ids = new Set(questions.map(({ id }) => id));
  const answers = new Map<string, string>();
  let current = "";
  for (const line of text.split(/\r?\n/)) {
    const [, id = "", said = ""] = /^[\s*`-]*(\w[\w.-]*)[*`]*\s*:[*`]*\s*(.*)$/.exec(line) ?? [];
    if (ids.has(id)) current = id;
    if (current !== "") answers.set(current, `${answers.get(current) ?? ""} ${ids.has(id) ? said : line}`.trim());
  }
  return answers;
}

function found(values: readonly string[], text: string): string {
  if (values.length === 0) return "–";
  const missing = values.filter((value) => !hasValue(text, value));
  if (missing.length === 0) return "all";
  return missing.length === values.length ? "none" : cell(`all but ${missing.join(", ")}`);
}

/** As a word of its own: 44 is not in 1440. */
const hasValue = (text: string, value: string): boolean =>
  new RegExp(`(?<![a-z0-9])${RegExp.escape(value)}(?![a-z0-9])`, "i").test(text);

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();
const cell = (text: string): string => oneLine(text).replaceAll("\\", "\\\\").replaceAll("|", "\\|");

/** The cells of each row that begins with an id. */
const rowsOf = (sheet: string): readonly (readonly string[])[] =>
  sheet
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .split(/(?<!(?<!\\)(?:\\\\)*\\)\|/)
        .slice(1, -1)
        .map((each) => each.trim()),
    )
    .slice(2);

/** Rows of a table: marks by type of question, and of all. */
export function countMarks(sheet: string, path: string): readonly (readonly string[])[] {
  const rows = rowsOf(sheet).map(([id = "", type = "", mark = ""]) => ({ id, type, mark: mark.toLowerCase() }));
  if (rows.length === 0) throw new LcmError("invalid", `${path} is not a score sheet: it has no rows`);
  const odd = rows.find(({ mark }) => mark !== "" && !marks.some((known) => known === mark));
  if (odd !== undefined)
    throw new LcmError(
      "invalid",
      `${path}: the mark of ${odd.id} is "${odd.mark}", but must be ${marks.join(", ")} or empty`,
    );
  const types = [...new Set(rows.map(({ type }) => type)), "total"];
  return types.map((type) => {
    const of = rows.filter((row) => type === "total" || row.type === type);
    return [
      type,
      ...[...marks, ""].map((mark) => String(of.filter((row) => row.mark === mark).length)),
      String(of.length),
    ];
  });
}

export const markColumns = ["type", ...marks, "unmarked", "questions"];
