/**
 * `lcm demo`: what this is for, in a few seconds and without a server, a key or an account. Five weeks of a made-up
 * conversation are stored, folded, shown, searched and opened up again, in a folder that is gone afterwards.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Assembly } from "../../core/assembly/assemble.ts";
import type { SourceLine } from "../../core/ingest/import-transcript.ts";
import { isSound } from "../../core/maintenance/inspect.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation } from "../../core/model/types.ts";
import type { SearchHit } from "../../core/model/store.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import { excerpt } from "../../core/base/excerpt.ts";
import { demoSession, readDemoTranscript, readKeyFacts } from "../demo/five-weeks.ts";
import type { KeyFact } from "../demo/five-weeks.ts";
import { bar, comparison, legend, makeUp } from "../../format/bars.ts";
import { holds, recollect } from "../demo/recollect.ts";
import type { Recollection } from "../demo/recollect.ts";
import { readTree } from "../context-tree.ts";
import { treeOf } from "./dag.ts";
import { defineCommand, exitFindings, exitOk, indexAll } from "./_session.ts";
import type { Session } from "./_session.ts";
import type { JsonObject } from "../../core/base/json.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { cut } from "../../format/width.ts";
import { harmless, oneLine } from "../../format/safe-text.ts";

export const demoCommand = defineCommand({
  name: "demo",
  summary: "see it work on a made-up conversation, in a few seconds",
  description:
    "See it work on a made-up conversation of five weeks: stored, folded into summaries, shown, searched and opened up again. " +
    "No server, key or account is needed. It happens in a folder of its own, which is gone afterwards.",
  options: {
    keep: ["--keep", "keep that folder, to look around in"],
  },
  examples: [
    ["lcm demo", "watch it"],
    ["lcm demo --keep", "then try the other commands on it"],
  ],
  async run(session, { keep }) {
    const folder = mkdtempSync(join(tmpdir(), "lcm-demo-"));
    const stage = createStage(session);
    try {
      stage.title(`five weeks of a tea shop, in ${keep === true ? folder : "a folder that is gone afterwards"}`);
      const figures = await perform(stage, folder);
      if (session.json) session.printJson({ ...figures, kept: keep === true ? folder : null });
      for (const line of nextSteps(session, keep === true ? folder : null)) stage.session.print(line);
      return stage.isGood() ? exitOk : exitFindings;
    } finally {
      if (keep !== true) rmSync(folder, { recursive: true, force: true });
    }
  },
});

/** What a small model on one's own machine takes. */
const smallBudget = 16_000;

/** Everything at its default, whatever this machine is set to: it is the same show everywhere. */
async function perform(stage: Stage, folder: string): Promise<object> {
  const { session } = stage;
  const transcript = readDemoTranscript();
  const database = await session.context.database(join(folder, "lcm.db"));
  const lcm = await database.open("import", { settings: resolveSettings({ env: {}, config: {} }).values });
  try {
    await store(stage, lcm, transcript, demoSession);
    const conversation = await lcm.find(demoSession);
    const tokens = await fold(stage, lcm, conversation);
    await showTree(stage, lcm, conversation);
    const assembly = await lcm.assemble(conversation.id, { budget: smallBudget });
    showMakeUp(stage, assembly);
    await readBack(stage, lcm, conversation, transcript);
    await search(stage, lcm, conversation);
    const facts = await remember(stage, lcm, conversation, assembly, readKeyFacts());
    return { messages: transcript.length, ...tokens, promptTokens: assembly.report.tokens, facts };
  } finally {
    await lcm.close();
  }
}

// ── What it shows ────────────────────────────────────────────────────────────────────────────────────────────────────

async function store(stage: Stage, lcm: Lcm, transcript: readonly JsonObject[], sessionId: string): Promise<void> {
  stage.headline("Every message is stored");
  const { messages } = await lcm.import(linesOf(transcript), { fallbackSessionId: sessionId });
  await indexAll(stage.session, lcm);
  const { totals } = await lcm.find(sessionId);
  stage.say(
    `${plural(messages, "message")}, ${formatCount(totals.messageTokens)} tokens, indexed for search: ${stage.took()}`,
  );
}

async function fold(stage: Stage, lcm: Lcm, { id }: Conversation): Promise<object> {
  stage.headline("What is old becomes summaries, here without any model");
  const { passes, tokensBefore, tokensAfter } = await lcm.compact({ conversation: id, mode: "sweep" });
  await indexAll(stage.session, lcm);
  const { columns, paint } = stage.session;
  for (const line of comparison(tokensBefore, tokensAfter, columns, paint)) stage.say(line);
  stage.say(`${plural(passes.length, "summary", "summaries")} written: ${stage.took()}`);
  return { tokensBefore, tokensAfter, summaries: passes.length };
}

async function showTree(stage: Stage, lcm: Lcm, { id }: Conversation): Promise<void> {
  stage.headline("They stand for what they were made from, down to the messages");
  const tree = await readTree(lcm, await lcm.find(String(id)), null, { limit: 100 });
  for (const line of treeOf(stage.session, tree.nodes).lines) stage.say(line);
}

function showMakeUp(stage: Stage, { report }: Assembly): void {
  stage.headline(`The model sees this: five weeks in a window of ${formatCount(report.budget)} tokens`);
  const { columns, paint } = stage.session;
  const segments = makeUp(report, paint);
  stage.say(bar(segments, columns));
  for (const line of legend(segments, columns)) stage.say(line);
}

async function readBack(
  stage: Stage,
  lcm: Lcm,
  { id }: Conversation,
  transcript: readonly JsonObject[],
): Promise<void> {
  stage.headline("Nothing is lost by it");
  let [equal, read] = [0, 0];
  for await (const line of lcm.export(id)) equal += isDeepStrictEqual(JSON.parse(line), transcript[read++]) ? 1 : 0;
  const all = equal === transcript.length && read === transcript.length;
  stage.verdict(
    all,
    `${formatCount(equal)} of ${formatCount(transcript.length)} messages read back as they came, block by block`,
  );
  const findings = await lcm.inspect(null);
  stage.verdict(isSound(findings), "`lcm doctor`: each of them is reached through the context exactly once");
}

const searches = ["how often does the payment worker retry", "ERR_WEBHOOK_CLOCK_SKEW", "紅葉の間"];

async function search(stage: Stage, lcm: Lcm, { id }: Conversation): Promise<void> {
  stage.headline("Anything is found again");
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

/** Of the facts that were written down beside the conversation, how many the model can still tell. */
const shareMin = 0.8;

async function remember(
  stage: Stage,
  lcm: Lcm,
  { id }: Conversation,
  assembly: Assembly,
  facts: readonly KeyFact[],
): Promise<object> {
  stage.headline("A summary opens up when the model needs what is below it");
  const found: Recollection[] = [];
  for (const fact of facts) found.push(await recollect(lcm, id, assembly, fact));
  const at = found.findIndex(({ kind }) => kind === "expand");
  const [fact, shown] = [facts[at], found[at]];
  if (fact !== undefined && shown?.kind === "expand") showExpand(stage, fact, shown);
  const count = (kind: Recollection["kind"]): number => found.filter((each) => each.kind === kind).length;
  const kept = { facts: facts.length, inContext: count("context"), byExpand: count("expand"), lost: count("lost") };
  const share = 1 - kept.lost / facts.length;
  stage.verdict(
    share >= shareMin,
    `${Math.round(share * 100)}% of ${kept.facts} key facts at hand: ${kept.inContext} in the prompt, ${kept.byExpand} one expand away`,
  );
  return kept;
}

function showExpand(stage: Stage, fact: KeyFact, { summary, expansion }: Recollection & { kind: "expand" }): void {
  const { columns, paint } = stage.session;
  const { items, tokens } = expansion;
  stage.say(paint.strong(cut(fact.question, columns)));
  stage.arrow(`${summary} opens into ${plural(items.length, "piece")} of its sources, ${formatCount(tokens)} tokens`);
  const { text } = items.find((item) => holds(item.text, fact)) ?? { text: "" };
  const [words = ""] = fact.answer;
  const from = text.indexOf(words);
  stage.arrow(harmless(excerpt(text, { from, to: from + words.length }, columns - 4)));
}

function nextSteps({ paint }: Session, kept: string | null): readonly string[] {
  const [heading, ...commands] =
    kept === null
      ? [
          "Now you:",
          "npx lcm demo --keep             # to look around in it",
          "npx lcm import SESSION.jsonl    # to bring in your own",
        ]
      : [
          "Look around in it:",
          `export LCM_DATABASE_PATH=${join(kept, "lcm.db")}`,
          ...["context 1", "dag 1 --messages", "grep passport", "ask how often does the payment worker retry"].map(
            (words) => `npx lcm ${words}`,
          ),
        ];
  return ["", heading ?? "", ...commands.map((command) => `  ${paint.strong(command)}`)];
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
    /** With lines as wide as there is room beside the numbers. */
    session: { ...given, print, columns },
    title: (text: string) => print(`${paint.strong("lossless-claw")} ${paint.soft(`· ${text}`)}`),
    headline(text: string) {
      print();
      print(paint.strong(`${++headlines}  ${text}`));
      restart();
    },
    say,
    /** What came of the line above. */
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
