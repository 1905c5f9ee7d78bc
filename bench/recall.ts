/**
 * Measures how well search finds the answers to questions: `npm run bench:recall [-- <locomo.json>] [--tune] [--doc]`.
 * It compares with plain BM25 over the same texts with the same words left out. Each question is asked in its own
 * conversation, in natural language, as an agent would. `--tune` shows what other ranking constants would give; with
 * `--doc` the figures of this run become docs/retrieval.md.
 *
 * LoCoMo is a set of long conversations between two people, with questions whose evidence is known turns; it may be
 * used for measuring only and is not part of the project. The demo is a session full of tool calls, with questions on
 * its facts. Everything takes the real path: imported, compacted without a model, searched through the store.
 */

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { readDemoTranscript, readKeyFacts } from "../src/cli/demo/five-weeks.ts";
import { createLcm } from "../src/core/lcm.ts";
import type { Lcm } from "../src/core/lcm.ts";
import type { Conversation, Message, SummaryId } from "../src/core/model/types.ts";
import type { SearchHit } from "../src/core/model/store.ts";
import { resolveSettings } from "../src/core/model/settings.ts";
import { createReader, scoreTurns, turnRules, weightOf } from "../src/store/search/rank.ts";
import type { TurnRules } from "../src/store/search/rank.ts";
import { expressionOf } from "../src/store/sqlite/search-index.ts";
import { openSqlite, systemNow } from "../src/store/sqlite/store.ts";
import { parseQuery } from "../src/store/search/query.ts";
import { tokenize } from "../src/store/search/tokenize.ts";
import { table } from "./table.ts";
import { makeScratch } from "../test/support/scratch.ts";
import type { Json } from "../src/core/base/json.ts";

/** One conversation and the questions about it. */
interface Sample {
  readonly name: string;
  /** Lines of a transcript, each with an id. */
  readonly lines: readonly Json[];
  readonly questions: readonly Question[];
}

interface Question {
  readonly question: string;
  readonly category: string;
  /** Ids of the lines that answer it. */
  readonly evidence: readonly string[];
}

/** The result of one search method for one question: the lines that each hit represents, best hit first. */
interface Outcome extends Question {
  readonly found: readonly Lines[];
}

type Lines = ReadonlySet<string>;

const cutoffs = [5, 10, 20] as const;
const hitsMax = 50;
const scopes = ["messages", "both"] as const;
const ways = ["plain BM25", "relevance", "hybrid"] as const;
type Scope = (typeof scopes)[number];
type Way = (typeof ways)[number];

/** Leaves small enough that a conversation of some 20,000 tokens has many, and nothing left unfolded. */
const settings = { leafChunkTokens: 2_000, leafTargetTokens: 400, freshTailCount: 0 };

async function main(args: readonly string[]): Promise<void> {
  const path =
    args.find((given) => !given.startsWith("--")) ?? join(import.meta.dirname, "../../shared/data/locomo-half.json");
  const isThere = existsSync(path);
  const locomo = isThere ? readLocomo(JSON.parse(readFileSync(path, "utf8"))) : [];
  if (!isThere) console.log(`LoCoMo is skipped: ${path} does not exist. Pass another path to include it.\n`);
  if (args.includes("--tune")) return isThere ? tune(locomo) : undefined;
  const parts = [
    ...(isThere ? report(`LoCoMo (${locomo.length} conversations)`, await measure(locomo)) : []),
    ...report("The demo (one conversation full of tool calls)", await measure([demoSample()])),
  ];
  console.log(parts.join("\n\n"));
  if (args.includes("--doc") && isThere) writeFileSync(join(import.meta.dirname, "../docs/retrieval.md"), page(parts));
}

// ── Measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Measured {
  readonly outcomes: ReadonlyMap<Scope, ReadonlyMap<Way, readonly Outcome[]>>;
  readonly leaves: number;
  readonly covered: number;
}

async function measure(samples: readonly Sample[]): Promise<Measured> {
  const folder = makeScratch("recall");
  const store = await openSqlite({ path: join(folder, "lcm.db") });
  const lcm = createLcm({
    store,
    clock: { now: systemNow },
    settings: resolveSettings({ env: {}, config: settings }).values,
  });
  const outcomes = new Map(scopes.map((scope) => [scope, new Map(ways.map((way): [Way, Outcome[]] => [way, []]))]));
  let [leaves, covered] = [0, 0];
  try {
    for (const sample of samples) {
      const stored = await storeSample(lcm, sample);
      leaves += stored.leaves.size;
      for (const below of stored.leaves.values()) covered += below.size;
      for (const scope of scopes) {
        const searches = { "plain BM25": createPlainSearch(stored, scope), ...searchesOf(lcm, stored, scope) };
        const trials = ways.flatMap((way) => sample.questions.map((question) => ({ way, question })));
        for (const { way, question } of trials) {
          const found = await searches[way](question.question);
          outcomes
            .get(scope)
            ?.get(way)
            ?.push({ ...question, found });
        }
      }
    }
  } finally {
    await lcm.close();
    rmSync(folder, { recursive: true });
  }
  return { outcomes, leaves, covered };
}

interface Stored {
  readonly conversation: Conversation;
  readonly messages: readonly Message[];
  readonly summaries: readonly { readonly id: SummaryId; readonly text: string }[];
  /** The lines below each leaf. */
  readonly leaves: ReadonlyMap<SummaryId, Lines>;
}

async function storeSample(lcm: Lcm, { name, lines }: Sample): Promise<Stored> {
  async function* source(): AsyncGenerator<{ readonly position: number; readonly value: Json }> {
    for (const [index, value] of lines.entries()) yield { position: index + 1, value };
  }
  const { conversation } = await lcm.import(source(), { fallbackSessionId: name });
  if (conversation === null) throw new Error(`nothing to import in ${name}`);
  await lcm.compact({ conversation: conversation.id, mode: "sweep" });
  while ((await lcm.store.index(1_000)) > 0);
  const messages = await lcm.store.messages({ conversation: conversation.id });
  const keys = new Map(messages.map(({ id, key }) => [id, key]));
  const summaries = await lcm.store.summaries({ conversation: conversation.id });
  const sources = await lcm.store.sources(summaries.filter(({ depth }) => depth === 0).map(({ id }) => id));
  const leaves = new Map(
    [...sources].map(([id, below]) => [id, new Set(below.messages.map((each) => keys.get(each) ?? ""))]),
  );
  return { conversation, messages, summaries, leaves };
}

type Search = (question: string) => Promise<Outcome["found"]>;

function searchesOf(lcm: Lcm, stored: Stored, scope: Scope): Record<"relevance" | "hybrid", Search> {
  const keys = new Map(stored.messages.map(({ id, key }) => [id, new Set([key])]));
  const linesOf = (hit: SearchHit): Lines =>
    (hit.kind === "message" ? keys.get(hit.id) : hit.kind === "summary" ? stored.leaves.get(hit.id) : null) ?? nothing;
  const searchBy = (sort: "relevance" | "hybrid"): Search => {
    const request = {
      mode: "full_text",
      scope,
      conversations: [stored.conversation.id],
      sort,
      limit: hitsMax,
    } as const;
    return async (pattern) => (await lcm.store.search({ ...request, pattern })).hits.map(linesOf);
  };
  return { relevance: searchBy("relevance"), hybrid: searchBy("hybrid") };
}

/** A summary above the leaves takes a rank among the hits and represents no line. */
const nothing: Lines = new Set();

/** FTS5's own ranking of the words that our search looks for, over the same texts. */
function createPlainSearch({ messages, summaries, leaves }: Stored, scope: Scope): Search {
  const db = new DatabaseSync(":memory:");
  db.exec("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'unicode61')");
  const insert = db.prepare("INSERT INTO texts (rowid, text) VALUES (?, ?)");
  const lines: Lines[] = [];
  const add = (text: string, of: Lines): void => {
    insert.run(lines.push(of), tokenize(text).join(" "));
  };
  for (const { text, key } of messages) add(text, new Set([key]));
  if (scope === "both") for (const { id, text } of summaries) add(text, leaves.get(id) ?? nothing);
  const best = db.prepare(`SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ${hitsMax}`);
  return async (question) => {
    const { phrases, words, pieces } = parseQuery(question);
    const match = expressionOf({ conversations: [], all: [], any: [...phrases, ...words, ...pieces] });
    return best.all(match).map((row) => lines[Number(row["rowid"]) - 1] ?? nothing);
  };
}

// ── Reporting ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A table for each scope, and a paragraph on what it shows. */
function report(title: string, { outcomes, leaves, covered }: Measured): readonly string[] {
  return [...outcomes].flatMap(([scope, byWay]) => {
    const groups = new Set((byWay.get("plain BM25") ?? []).flatMap(({ category }) => ["all", category]));
    const of = (way: Way, group: string): readonly Outcome[] =>
      (byWay.get(way) ?? []).filter(({ category }) => group === "all" || group === category);
    const rows = [...groups].map((group) => [
      group,
      String(of("plain BM25", group).length),
      ...ways.map((way) => figuresOf(of(way, group)).map(shown).join(" / ")),
    ]);
    const compared = ways.slice(1).map((way) => {
      const gain = (recallAt(10, of(way, "all")) - recallAt(10, of("plain BM25", "all"))) * 100;
      const worse = [...groups].filter((group) => {
        const plain = figuresOf(of("plain BM25", group));
        return figuresOf(of(way, group)).some((figure, at) => figure < (plain[at] ?? 0));
      });
      const where = worse.length === 0 ? "no category worse" : `worse in ${worse.join(", ")}`;
      return `\`${way}\` ${gain < 0 ? "" : "+"}${gain.toFixed(1)} points (${where})`;
    });
    const isDirect = scope === "messages";
    const alone = (way: Way): string =>
      shown(
        recallAt(
          10,
          of(way, "all").map((each) => ({ ...each, found: each.found.map(messageOnly) })),
        ),
      );
    const notes = isDirect
      ? []
      : [
          `There are ${leaves} leaves, of ${(covered / leaves).toFixed(1)} messages on average. Counting only hits on the message itself,`,
          `recall@10 is ${ways.map((way) => `${alone(way)}% (${way})`).join(", ")}.`,
        ];
    return [
      `## ${title}: recall over ${isDirect ? "messages" : "messages and summaries"}`,
      table(["category", "questions", ...ways.map((way) => `${way}: @5 / @10 / @20 / MRR`)], rows),
      [`Recall@10 relative to plain BM25: ${compared.join(", ")}.`, ...notes].join(" "),
    ];
  });
}

/** A hit on one line is a message: a leaf covers several. */
const messageOnly = (lines: Lines): Lines => (lines.size === 1 ? lines : nothing);

const shown = (share: number): string => (share * 100).toFixed(1);

function page(parts: readonly string[]): string {
  const { leafChunkTokens, leafTargetTokens } = settings;
  return `# Retrieval

How well search finds the messages that answer a question. Written by \`npm run bench:recall -- --doc\`. Each cell has four
percentages: recall@5, recall@10 and recall@20 (the share of the answering messages among the first 5, 10 and 20 hits), and the mean
reciprocal rank (MRR) of the first such hit. Questions are searched verbatim, each in its own conversation. *Plain BM25* is FTS5's
own ranking of the same words over the same texts; *relevance* and *hybrid* are the sort orders of our search.

Where summaries are searched too, a hit on a leaf counts for every message it covers, and a hit on a deeper summary for none. The
summaries were made without a model: each leaf has about ${leafTargetTokens} tokens and covers up to ${leafChunkTokens} tokens of messages. LoCoMo is a published set of
long conversations between two people, with questions whose answers are in known messages. The ranking rules are in
[src/store/search/rank.ts](../src/store/search/rank.ts).

${parts.join("\n\n")}
`;
}

/** Recall at each cutoff, and the mean reciprocal rank. */
function figuresOf(outcomes: readonly Outcome[]): readonly number[] {
  const reciprocalRank = ({ found, evidence }: Outcome): number => {
    const rank = found.findIndex((lines) => evidence.some((id) => lines.has(id)));
    return rank < 0 ? 0 : 1 / (rank + 1);
  };
  return [...cutoffs.map((k) => recallAt(k, outcomes)), mean(outcomes.map(reciprocalRank))];
}

function recallAt(k: number, outcomes: readonly Outcome[]): number {
  const recall = ({ found, evidence }: Outcome): number =>
    evidence.filter((id) => found.slice(0, k).some((lines) => lines.has(id))).length / evidence.length;
  return mean(outcomes.map(recall));
}

const mean = (figures: readonly number[]): number => figures.reduce((sum, each) => sum + each, 0) / figures.length;

// ── Tuning ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Values to try for each rule, one after the other, starting from the current rules. */
const choices: Readonly<Record<keyof TurnRules, readonly number[]>> = {
  replyShare: [0.25, 0.5, 0.75, 1],
  neighbourShare: [0.1, 0.25, 0.4],
  speakerFactor: [1, 1.2, 1.3, 1.5, 2],
  timeFactor: [1, 1.2, 1.3, 1.5],
  askingFactor: [0.7, 0.8, 0.9, 1],
};

/** Leaves out each conversation in turn: the rules that find most in the others, and their recall in it. */
function tune(samples: readonly Sample[]): void {
  const outcomes = samples.map(createScorer);
  const recall = (at: readonly number[], rules: TurnRules): number =>
    recallAt(
      10,
      at.flatMap((index) => outcomes[index]?.(rules) ?? []),
    );
  const rows = samples.map(({ name }, left) => {
    const others = [...samples.keys()].filter((index) => index !== left);
    let best = { rules: turnRules, recall: recall(others, turnRules) };
    for (const rule of Object.keys(choices) as (keyof TurnRules)[]) {
      for (const value of choices[rule]) {
        const rules = { ...best.rules, [rule]: value };
        const found = recall(others, rules);
        if (found > best.recall) best = { rules, recall: found };
      }
    }
    return {
      name,
      n: samples[left]?.questions.length ?? 0,
      asIs: recall([left], turnRules),
      tuned: recall([left], best.rules),
      rules: best.rules,
    };
  });
  const all = rows.reduce((sum, { n }) => sum + n, 0);
  const total = (of: "asIs" | "tuned"): number => rows.reduce((sum, row) => sum + row[of] * row.n, 0) / all;
  const cells = rows.map(({ name, n, asIs, tuned, rules }) => [
    name,
    String(n),
    shown(asIs),
    shown(tuned),
    Object.values(rules).join(" "),
  ]);
  console.log(
    `Recall@10 over messages, every message of a conversation scored, rules tuned on the other conversations. Rules: ${Object.keys(turnRules).join(", ")}\n`,
  );
  console.log(
    table(
      ["conversation", "questions", "current rules", "rules tuned on the others", "tuned rules"],
      [...cells, ["all", String(all), shown(total("asIs")), shown(total("tuned")), ""]],
    ),
  );
}

/** Scores every turn of a conversation for every question, by the given rules. */
function createScorer({ lines, questions }: Sample): (rules: TurnRules) => readonly Outcome[] {
  const said = lines.map((line, index) => ({
    conversation: 1,
    seq: index + 1,
    id: textOf(line, "id"),
    text: textOf(field(line, "message"), "content"),
    at: textOf(line, "timestamp"),
    name: null,
  }));
  const asked = questions.map((question) => {
    const query = parseQuery(question.question);
    const terms = [...query.phrases, ...query.words, ...query.pieces];
    const read = createReader(terms);
    const turns = said.map((turn) => ({ ...turn, reading: read(turn.text) }));
    const holding = (term: number): number => turns.filter(({ reading }) => (reading.counts[term] ?? 0) > 0).length;
    const weights = terms.map((_, term) => weightOf(holding(term), turns.length));
    return { question, query, turns, weights, meanLength: mean(turns.map(({ reading }) => reading.length)) };
  });
  return (rules) =>
    asked.map(({ question, query, turns, weights, meanLength }) => {
      const scores = scoreTurns(turns, query, { weights, meanLength }, rules);
      const best = [...scores.keys()].sort((one, other) => (scores[other] ?? 0) - (scores[one] ?? 0));
      return { ...question, found: best.slice(0, hitsMax).map((at) => new Set([turns[at]?.id ?? ""])) };
    });
}

// ── Reading the data ─────────────────────────────────────────────────────────────────────────────────────────────────

function demoSample(): Sample {
  const questions = readKeyFacts().map(({ question, saidIn }) => ({ question, category: "all", evidence: [saidIn] }));
  return { name: "demo", lines: readDemoTranscript(), questions };
}

const categories: Readonly<Record<number, string>> = {
  1: "multi-hop",
  2: "temporal",
  3: "open",
  4: "single-hop",
  5: "adversarial",
};

function readLocomo(data: unknown): readonly Sample[] {
  return list(data).map((sample, index) => {
    const lines = readTurns(field(sample, "conversation"));
    const known = new Set(lines.map((line) => line.id));
    const questions = list(field(sample, "qa")).map((qa) => ({
      question: textOf(qa, "question"),
      category: categories[Number(field(qa, "category"))] ?? "other",
      // A few ids are malformed; a question without any valid one cannot be measured.
      evidence: [...new Set(list(field(qa, "evidence")).map(String))].filter((id) => known.has(id)),
    }));
    return { name: `locomo-${index + 1}`, lines, questions: questions.filter(({ evidence }) => evidence.length > 0) };
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

await main(process.argv.slice(2));
