/** `lcm demo`: stores, folds, shows, searches and expands a made-up conversation in a temporary folder. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Assembly } from "../../core/assembly/assemble.ts";
import type { SourceLine } from "../../core/ingest/import-transcript.ts";
import { isSound } from "../../core/maintenance/inspect.ts";
import type { Lcm } from "../../core/lcm.ts";
import { messageName, type Conversation, type SummaryId } from "../../core/model/types.ts";
import type { SearchHit } from "../../core/model/store.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import { excerpt } from "../../core/base/excerpt.ts";
import {
  demoModel,
  demoSession,
  largeBudget,
  readDemoTranscript,
  readKeyFacts,
  smallBudget,
  type KeyFact,
} from "../demo/five-weeks.ts";
import { bar, comparison, legend, promptBar } from "../../format/bars.ts";
import { holds, recollect, type Recollection } from "../demo/recollect.ts";
import { readTree } from "../context-tree.ts";
import { treeOf } from "./dag.ts";
import { list, maybe, object, text, whole, type TypeOf } from "./_json.ts";
import { defineCommand, exitFindings, exitOk, indexAll, type Session } from "./_session.ts";
import type { JsonObject } from "../../core/base/json.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { cut } from "../../format/width.ts";
import { harmless, oneLine } from "../../format/safe-text.ts";

const json = object({
  messages: whole,
  tokensBefore: whole,
  tokensAfter: whole,
  summaries: whole,
  promptTokens: whole,
  facts: object({ facts: whole, inContext: whole, byExpand: whole, inMessages: list(text) }),
  kept: maybe(text),
});

export const demoCommand = defineCommand({
  name: "demo",
  json,
  summary: "watch it work on a made-up conversation, in a few seconds",
  description:
    "Watch it work on a made-up conversation of five weeks, which is stored, folded into summaries, shown, searched and " +
    "expanded again. It needs no server, key or account, and runs in a temporary folder.",
  options: {
    keep: ["--keep", "keep the folder, to explore it"],
  },
  examples: [
    ["lcm demo", "watch it"],
    ["lcm demo --keep", "keep it, to try the other commands on it"],
  ],
  async run(session, { keep }) {
    const folder = mkdtempSync(join(tmpdir(), "lcm-demo-"));
    const stage = createStage(session);
    try {
      stage.title(`five weeks of a tea shop, in ${keep === true ? folder : "a temporary folder"}`);
      const { figures, summary } = await perform(stage, folder);
      if (session.json) session.printJson(json, { ...figures, kept: keep === true ? folder : null });
      for (const line of nextSteps(session, keep === true ? folder : null, summary)) stage.session.print(line);
      return stage.isGood() ? exitOk : exitFindings;
    } finally {
      if (keep !== true) rmSync(folder, { recursive: true, force: true });
    }
  },
});

type Figures = Omit<TypeOf<typeof json>, "kept">;

/** With default settings, so that it is the same on every machine. */
async function perform(stage: Stage, folder: string): Promise<{ figures: Figures; summary: SummaryId | undefined }> {
  const { session } = stage;
  const transcript = readDemoTranscript();
  const database = await session.context.database(join(folder, "lcm.db"));
  const lcm = await database.open("import", { settings: resolveSettings({ env: {}, config: {} }).values });
  try {
    await store(stage, lcm, transcript, demoSession);
    const conversation = await lcm.find(demoSession);
    await lcm.recordPrompt(await lcm.assemble(conversation.id, { budget: largeBudget }), demoModel);
    const tokens = await fold(stage, lcm, conversation);
    await showTree(stage, lcm, conversation);
    const assembly = await lcm.assemble(conversation.id, { budget: smallBudget });
    await lcm.recordPrompt(assembly, demoModel);
    showPrompt(stage, assembly);
    await readBack(stage, lcm, conversation, transcript);
    await search(stage, lcm, conversation);
    const facts = await remember(stage, lcm, conversation, assembly);
    const [shown] = await lcm.store.context(conversation.id, { kind: "summary" });
    const figures = { messages: transcript.length, ...tokens, promptTokens: assembly.report.tokens, facts };
    return { figures, summary: shown?.kind === "summary" ? shown.id : undefined };
  } finally {
    await lcm.close();
  }
}

// ── The steps ────────────────────────────────────────────────────────────────────────────────────────────────────────

async function store(stage: Stage, lcm: Lcm, transcript: readonly JsonObject[], sessionId: string): Promise<void> {
  stage.headline("Every message is stored");
  const { messages } = await lcm.import(linesOf(transcript), { fallbackSessionId: sessionId });
  await indexAll(stage.session, lcm);
  const { totals } = await lcm.find(sessionId);
  stage.say(
    `${plural(messages, "message")}, ${formatCount(totals.messageTokens)} tokens, indexed for search: ${stage.took()}`,
  );
}

async function fold(
  stage: Stage,
  lcm: Lcm,
  { id, totals }: Conversation,
): Promise<Pick<Figures, "tokensBefore" | "tokensAfter" | "summaries">> {
  stage.headline("Old messages become summaries, here without a model");
  const { passes } = await lcm.compact({ conversation: id, mode: "sweep" });
  const tokensBefore = totals.contextTokens;
  const tokensAfter = (await lcm.find(String(id))).totals.contextTokens;
  await indexAll(stage.session, lcm);
  const { columns, paint } = stage.session;
  for (const line of comparison(tokensBefore, tokensAfter, columns, paint)) stage.say(line);
  stage.say(`${plural(passes.length, "summary", "summaries")} written: ${stage.took()}`);
  return { tokensBefore, tokensAfter, summaries: passes.length };
}

async function showTree(stage: Stage, lcm: Lcm, { id }: Conversation): Promise<void> {
  stage.headline("Each summary links to its sources, down to the messages");
  const tree = await readTree(lcm, await lcm.find(String(id)), null, { limit: 100 });
  for (const line of treeOf(stage.session, tree.nodes).lines) stage.say(line);
}

function showPrompt(stage: Stage, { report }: Assembly): void {
  stage.headline(`The model sees five weeks in a window of ${formatCount(report.budget)} tokens`);
  const { columns, paint } = stage.session;
  const segments = promptBar(report, paint);
  stage.say(bar(segments, columns));
  for (const line of legend(segments, columns)) stage.say(line);
}

async function readBack(
  stage: Stage,
  lcm: Lcm,
  { id }: Conversation,
  transcript: readonly JsonObject[],
): Promise<void> {
  stage.headline("Nothing is lost");
  let [equal, read] = [0, 0];
  for await (const line of lcm.export(id)) equal += isDeepStrictEqual(JSON.parse(line), transcript[read++]) ? 1 : 0;
  const all = equal === transcript.length && read === transcript.length;
  stage.verdict(
    all,
    `${formatCount(equal)} of ${formatCount(transcript.length)} messages read back identically, block by block`,
  );
  const findings = await lcm.inspect(null);
  stage.verdict(isSound(findings), "`lcm doctor`: the context reaches each of them exactly once");
}

const searches = ["how often does the payment worker retry", "ERR_WEBHOOK_CLOCK_SKEW", "紅葉の間"];

async function search(stage: Stage, lcm: Lcm, { id }: Conversation): Promise<void> {
  stage.headline("Search finds any detail");
  const { columns, paint } = stage.session;
  const find = async (pattern: string): Promise<readonly SearchHit[]> => {
    const reach = { kind: "conversation", conversations: [id] } as const;
    return (await lcm.grep({ pattern, mode: "full_text", scope: "messages", reach, limit: 1 })).hits;
  };
  await find("warm");
  for (const pattern of searches) {
    stage.restart();
    const [hit] = await find(pattern);
    stage.say(`${paint.strong(`lcm grep ${pattern}`)}  ${paint.soft(stage.took())}`);
    stage.arrow(hit === undefined ? paint.bad("nothing found") : cut(oneLine(hit.snippet), columns - 4));
  }
}

/** The share of the key facts that must still be at hand. */
const shareMin = 0.8;

async function remember(stage: Stage, lcm: Lcm, { id }: Conversation, assembly: Assembly): Promise<Figures["facts"]> {
  stage.headline("The model expands a summary when it needs the details");
  const facts = readKeyFacts();
  const found: Recollection[] = [];
  for (const fact of facts) found.push(await recollect(lcm, id, assembly, fact));
  const at = found.findIndex(({ kind }) => kind === "expand");
  const [fact, shown] = [facts[at], found[at]];
  if (fact !== undefined && shown?.kind === "expand") showExpand(stage, fact, shown);
  const count = (kind: Recollection["kind"]): number => found.filter((each) => each.kind === kind).length;
  const inMessages = found.flatMap((each) => (each.kind === "message" ? [messageName(each.message)] : []));
  const kept = { facts: facts.length, inContext: count("context"), byExpand: count("expand"), inMessages };
  const share = (kept.inContext + kept.byExpand) / facts.length;
  stage.verdict(
    share >= shareMin && count("missing") === 0,
    `${Math.round(share * 100)}% of ${kept.facts} key facts at hand: ${kept.inContext} in the prompt, ${kept.byExpand} one expand away`,
  );
  if (inMessages.length > 0) stage.say(`  the others by id, with lcm describe: ${inMessages.join(", ")}`);
  return kept;
}

function showExpand(stage: Stage, fact: KeyFact, { summary, expansion }: Recollection & { kind: "expand" }): void {
  const { columns, paint } = stage.session;
  const { items, tokens } = expansion;
  stage.say(paint.strong(cut(fact.question, columns)));
  stage.arrow(`${summary} expands into ${plural(items.length, "source")}, ${formatCount(tokens)} tokens`);
  const { text } = items.find((item) => holds(item.text, fact)) ?? { text: "" };
  const [words = ""] = fact.answer;
  const from = text.indexOf(words);
  stage.arrow(harmless(excerpt(text, { from, to: from + words.length }, columns - 4)));
}

function nextSteps({ paint }: Session, kept: string | null, summary = "SUMMARY"): readonly string[] {
  const lines =
    kept === null
      ? ["Next:", "npx lcm demo --keep             # explore it", "npx lcm import SESSION.jsonl    # import your own"]
      : [
          "Explore it:",
          `export LCM_DATABASE_PATH=${join(kept, "lcm.db")}`,
          "npx lcm                                  # the terminal UI",
          "npx lcm context 1                        # what the model sees",
          "npx lcm dag 1 --messages                 # the summaries and their sources",
          `npx lcm describe ${summary}    # one of them`,
          `npx lcm expand ${summary}      # what it was made from`,
          "npx lcm grep passport",
          "npx lcm ask how often does the payment worker retry",
        ];
  const [heading = "", ...commands] = lines;
  return ["", heading, ...commands.map((command) => `  ${paint.strong(command)}`)];
}

// ── The stage ────────────────────────────────────────────────────────────────────────────────────────────────────────

type Stage = ReturnType<typeof createStage>;

const indent = "   ";
const columnsMax = 110;

function createStage(given: Session) {
  const { paint } = given;
  const print = given.json ? (): void => undefined : given.print;
  const columns = Math.min(given.columns, columnsMax) - indent.length;
  let headlines = 0;
  let startedMs = 0;
  let isGood = true;
  const say = (line: string): void => print(`${indent}${line}`);
  const restart = (): void => void (startedMs = performance.now());
  return {
    /** Narrower by the indent. */
    session: { ...given, print, columns },
    title: (text: string) => print(`${paint.strong("lossless-claw")} ${paint.soft(`· ${text}`)}`),
    headline(text: string) {
      print();
      print(paint.strong(`${++headlines}  ${text}`));
      restart();
    },
    say,
    /** The result of the line above. */
    arrow: (line: string) => say(`  ${paint.soft("→")} ${line}`),
    verdict(good: boolean, text: string) {
      isGood &&= good;
      say(`${good ? paint.good("✓") : paint.bad("✗")} ${text}`);
    },
    isGood: () => isGood,
    /** Since the last headline or restart. */
    took() {
      const ms = performance.now() - startedMs;
      return ms < 1_000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
    },
    restart,
  };
}

async function* linesOf(transcript: readonly JsonObject[]): AsyncGenerator<SourceLine> {
  for (const [index, value] of transcript.entries()) yield { position: index + 1, value };
}
