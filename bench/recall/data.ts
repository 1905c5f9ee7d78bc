/**
 * Reads the data sets that recall is measured on: conversations, questions about them, and the messages that answer.
 * Only the demo is part of the project. The others are read from a folder, `--data`, and skipped with a line if absent:
 * LoCoMo (two people chatting), BEAM (a person working with an assistant), and a real coding session of an agent.
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readDemoTranscript, readKeyFacts } from "../../src/cli/demo/five-weeks.ts";
import type { Json } from "../../src/core/base/json.ts";
import { field, list, parseJsonl, textOf } from "./fields.ts";

/** One conversation and the questions about it. */
export interface Sample {
  readonly name: string;
  /** Lines of a transcript. */
  readonly lines: readonly Json[];
  readonly questions: readonly Question[];
}

export interface Question {
  readonly question: string;
  readonly category: string;
  /** Keys of the messages that answer it: groups that are all needed, in each of which any message is enough. */
  readonly gold: readonly (readonly string[])[];
  /** The same question in other words; empty if nobody wrote any. */
  readonly also: readonly string[];
}

export interface DataSet {
  readonly name: string;
  readonly samples: readonly Sample[];
}

export interface Folders {
  readonly data: string;
  /** Where the rewordings of LoCoMo and BEAM are. */
  readonly also: string;
}

/** The data sets that are there; `warn` is called for what is not. */
export function readDataSets({ data, also }: Folders, warn: (line: string) => void): readonly DataSet[] {
  const jsonIn = (folder: string, name: string): unknown => {
    const path = join(folder, name);
    if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8"));
    warn(`${name} is not in ${folder}: what needs it is left out`);
    return undefined;
  };
  const read = (name: string, samples: readonly Sample[]): DataSet => ({ name, samples });
  const agent = readAgent(jsonIn(data, "agent-questions.json"), jsonIn(data, "agent-questions-also.json"), (file) =>
    readFileSync(join(data, file), "utf8"),
  );
  return [
    read("LoCoMo", readLocomo(jsonIn(data, "locomo-half.json"), jsonIn(also, "locomo-also.json"))),
    read("BEAM", readBeam(jsonIn(data, "beam-half.json"), jsonIn(also, "beam-also.json"))),
    read("Coding agent", agent),
    read("Demo", [readDemo(jsonIn(join(import.meta.dirname, "../../test/fixtures"), "key-facts-also.json"))]),
  ].filter(({ samples }) => samples.length > 0);
}

function readDemo(also: unknown): Sample {
  const questions = readKeyFacts().map(({ question, saidIn }) => ({
    question,
    category: "fact",
    gold: [[saidIn]],
    also: list(field(also, question)).map(String),
  }));
  return { name: "demo", lines: readDemoTranscript(), questions };
}

/** Lines of the session have no ids, so each message's key is the number of its line. */
function readAgent(data: unknown, also: unknown, readText: (file: string) => string): readonly Sample[] {
  if (data === undefined) return [];
  const questions = list(field(data, "questions")).map((each) => ({
    question: textOf(each, "question"),
    category: textOf(each, "type"),
    gold: list(field(each, "gold")).map((group) => list(group).map((line) => String(line).replace("L", "@"))),
    also: list(field(also, textOf(each, "id"))).map(String),
  }));
  return [{ name: "coding", lines: parseJsonl(readText(textOf(data, "file"))), questions }];
}

function readBeam(data: unknown, also: unknown): readonly Sample[] {
  return list(data).map((chat) => ({
    name: textOf(chat, "name"),
    lines: list(field(chat, "lines")).map((line) => {
      const message = { role: textOf(line, "role"), content: textOf(line, "content") };
      return { type: "message", id: textOf(line, "id"), timestamp: textOf(line, "timestamp"), message };
    }),
    questions: list(field(chat, "questions")).map((each) => ({
      question: textOf(each, "question"),
      category: textOf(each, "category").replaceAll("_", " "),
      gold: list(field(each, "evidence")).map((id) => [String(id)]),
      also: list(field(also, textOf(each, "question"))).map(String),
    })),
  }));
}

const locomoCategories: Readonly<Record<number, string>> = {
  1: "multi-hop",
  2: "temporal",
  3: "open",
  4: "single-hop",
  5: "adversarial",
};

function readLocomo(data: unknown, also: unknown): readonly Sample[] {
  return list(data).map((sample, index) => {
    const lines = readTurns(field(sample, "conversation"));
    const known = new Set(lines.map((line) => line.id));
    const questions = list(field(sample, "qa")).map((qa) => ({
      question: textOf(qa, "question"),
      category: locomoCategories[Number(field(qa, "category"))] ?? "other",
      // A few ids are malformed; a question without any valid one cannot be measured.
      gold: [...new Set(list(field(qa, "evidence")).map(String))].filter((id) => known.has(id)).map((id) => [id]),
      also: list(field(also, textOf(qa, "question"))).map(String),
    }));
    return { name: `locomo-${index + 1}`, lines, questions: questions.filter(({ gold }) => gold.length > 0) };
  });
}

function readTurns(conversation: unknown): readonly { readonly id: string; readonly [name: string]: Json }[] {
  const lines = [];
  for (let session = 1; field(conversation, `session_${session}_date_time`) !== undefined; session++) {
    const timestamp = toTimestamp(textOf(conversation, `session_${session}_date_time`));
    for (const turn of list(field(conversation, `session_${session}`))) {
      const caption = textOf(turn, "blip_caption");
      const image = caption === "" ? "" : ` [image: ${caption}]`;
      const content = `${textOf(turn, "speaker")}: ${textOf(turn, "text")}${image}`;
      lines.push({ type: "message", id: textOf(turn, "dia_id"), timestamp, message: { role: "user", content } });
    }
  }
  return lines;
}

/** "1:56 pm on 8 May, 2023" */
function toTimestamp(time: string): string {
  const [, clock = "", half = "", date = ""] = /^([\d:]+) (am|pm) on (.+)$/.exec(time) ?? [];
  return new Date(`${date} ${clock} ${half} UTC`).toISOString();
}
