/** `lcm compact`: folds what is old into summaries. Without --apply it says what that would fold, ask for and bring. */

import type { CompactReport, CompactRequest } from "../../core/compaction/compact.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { CompactionPlan, PlannedPass } from "../../core/compaction/plan-compaction.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { ConversationId, Level, Refusal } from "../../core/model/types.ts";
import { builtInTemplates, templateNameOf } from "../../core/prompts/summary.ts";
import type { Settings } from "../../core/model/settings.ts";
import type { Spend } from "../../core/model-calls/metering.ts";
import { costOf } from "../../format/cost.ts";
import type { Cost } from "../../format/cost.ts";
import { exitInterrupted, exitUnavailable } from "../failure.ts";
import { comparison } from "../../format/bars.ts";
import { watchModel } from "../../format/waiting.ts";
import type { Watched } from "../../format/waiting.ts";
import { applyOptions, endAtPlan, isApplying } from "./_applying.ts";
import { headline } from "../../format/conversations.ts";
import { dueWords } from "../../format/status.ts";
import { budgetOption, conversationWords, providerOptions, seconds, tokensMax, wholeNumber } from "./_options.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import { attend, defineCommand, exitOk, indexAll, withLcm } from "./_session.ts";
import type { PromptFiles, Session, Summariser } from "./_session.ts";
import { callLines, modelLines, refusalHint } from "../../format/model.ts";
import type { NamedModel } from "../../format/model.ts";
import { timestampToMs } from "../../core/base/time.ts";
import { formatCount, listed, plural } from "../../core/base/format.ts";
import { padEnd } from "../../format/width.ts";
import { facts, table } from "../../format/table.ts";
import { oneLine } from "../../format/safe-text.ts";

const flags = {
  mode: [
    "--mode <mode>",
    "only what is due, one pass, or all there is to fold (default: sweep)",
    ["due", "incremental", "sweep"],
  ],
  until: ["--until <tokens>", "only until the context takes no more than this", wholeNumber(1, tokensMax)],
  force: ["--force", "fold short runs too, and fewer summaries at a time than usual"],
  instructions: ["--instructions <text>", "what to look after in these summaries, for the model"],
  model: [
    ["--model <name>", "which model writes them, as provider/model"],
    ["--no-model", "use none: take the most telling sentences, on this machine"],
  ],
  budget: budgetOption,
  passes: ["--passes <n>", "how many summaries to make at most", wholeNumber(1, 1_000_000)],
  concurrency: [
    "--concurrency <n>",
    "how many at the same time (default: LCM_SUMMARY_CONCURRENCY, 4)",
    wholeNumber(1, 64),
  ],
  timeout: ["--timeout <seconds>", "stop after this long; what is folded stays", seconds],
  backup: ["--no-backup", "make no backup before --apply; a fold removes no row"],
  ...providerOptions,
  ...applyOptions,
} as const satisfies OptionTable;

type CompactOptions = OptionsOf<typeof flags>;

export const compactCommand = defineCommand({
  name: "compact",
  summary: "fold old messages into summaries",
  description:
    "Fold old messages into summaries, and summaries into deeper ones, so that the context fits the model. Every message " +
    "stays stored and can be reached through its summary. Without --apply it only shows what it would do and cost.",
  arguments: [["<conversation>", conversationWords]],
  options: flags,
  exclusive: [["mode", "until"]],
  examples: [
    ["lcm compact 3", "what would be folded, and what that costs"],
    ["lcm compact 3 --apply", "fold it"],
    ["lcm compact 3 --no-model --apply", "without any model"],
    ["lcm compact 3 --until 50000 --apply", "only as far as needed"],
    ["lcm compact 3 --mode due --apply", "only if it is due, as the host does it"],
  ],
  notes:
    "The model is the one of --model, else of LCM_SUMMARY_MODEL, else of OpenClaw's config. Where none of them " +
    "names one, summaries are extracted on this machine. Exit status 6 means that the model could not be asked " +
    "or refused, that nothing was folded before --timeout, or that --until was missed; 130 means that Ctrl-C " +
    "was pressed. What was folded before stays.",
  run: compactOne,
});

async function compactOne(session: Session, options: CompactOptions, name: string): Promise<number | void> {
  const applying = isApplying(options);
  const { values } = await session.context.settings();
  const settings = { ...values, summaryConcurrency: options.concurrency ?? values.summaryConcurrency };
  const summariser =
    options.model === false ? null : await session.context.summariser({ ...options, model: options.model });
  const prompts = summariser === null ? null : await session.context.prompts();
  const templates = prompts?.templates ?? builtInTemplates;
  if (summariser === null && options.instructions !== undefined) {
    throw new LcmError("invalid", "--instructions are for a model, and there is none", {
      hint: "--model names one; what is extracted on this machine follows no instructions",
    });
  }
  const watched =
    summariser === null || !applying
      ? null
      : watchModel(await summariser.create(settings), settings.summaryTimeoutSeconds);
  const problem = await (summariser?.check() ?? null);
  const work = async (lcm: Lcm): Promise<number | void> => {
    const conversation = await lcm.find(name);
    const request = requestOf(conversation.id, options);
    const planned = await lcm.planCompaction(request);
    if (prompts !== null) demandTemplates(prompts, planned, request);
    const cost = summariser === null ? null : costOf(planned, templates, request.customInstructions ?? null);
    const plan = {
      ...planned,
      mode: request.mode,
      targetTokens: request.targetTokens ?? null,
      model: summariser && { name: summariser.name, from: summariser.from, problem },
      cost,
    };
    if (!session.json) {
      session.print(headline(session, conversation));
      const spend = cost === null ? null : await lcm.spend();
      for (const line of planLines(session, plan, spend, options.force === true, applying)) session.print(line);
    }
    if (!applying) return endAtPlan(session, applying, plan, isFolding(plan) ? undefined : null);
    if (summariser !== null && problem !== null && isFolding(plan)) {
      throw new LcmError("unavailable", problem, { hint: hintOf("no_credential", summariser, settings) });
    }
    const backup = !isFolding(plan) || options.backup === false ? null : await session.database.backup(undefined);
    if (!session.json && backup !== null) session.print(`backup   ${backup.path}`);
    if (!session.json && session.context.stderr.isTerminal)
      session.note(session.paint.soft("Ctrl-C stops it; what is folded stays"));
    const { result, isInterrupted, tookMs } = await run(session, lcm, request, plan, options, watched);
    await indexAll(session, lcm);
    if (session.json) {
      session.printJson({ dryRun: false, applied: result.compacted, plan, result, backup: backup?.path ?? null });
    } else for (const line of resultLines(session, result, tookMs)) session.print(line);
    if (!isInterrupted) return ending(session, result, plan, summariser, settings);
    session.note(`interrupted: ${oneLine(result.message)}`);
    session.note("what is folded stays; run it again to go on");
    return exitInterrupted;
  };
  return await withLcm(session, applying ? "write" : "read", work, {
    settings,
    model: watched?.model ?? null,
    templates,
  });
}

const requestOf = (conversation: ConversationId, options: CompactOptions): CompactRequest => ({
  conversation,
  mode: options.until === undefined ? (options.mode ?? "sweep") : "until_under",
  // A person is there to decide what a refusal leads to.
  onRefusal: "wait",
  ...(options.until === undefined ? {} : { targetTokens: options.until }),
  ...(options.force === true ? { force: true } : {}),
  ...(options.instructions === undefined ? {} : { customInstructions: options.instructions }),
  ...(options.budget === undefined ? {} : { budget: options.budget }),
  ...(options.passes === undefined ? {} : { passesMax: options.passes }),
});

/** Passes of a depth are asked for by its template; on the way to a target they may come to any. */
function demandTemplates({ problems }: PromptFiles, { passes }: CompactionPlan, { mode }: CompactRequest): void {
  const planned = new Set(passes.map(({ depth }) => templateNameOf(depth)));
  const [problem] = [...problems].filter(([name]) => mode === "until_under" || planned.has(name));
  if (problem !== undefined) throw problem[1];
}

// ── The plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Plan extends CompactionPlan {
  readonly mode: CompactRequest["mode"];
  readonly targetTokens: number | null;
  readonly model: NamedModel | null;
  /** What the model is asked for; null without one. */
  readonly cost: Cost | null;
}

const isMissed = ({ targetTokens }: Plan, tokens: number): boolean => targetTokens !== null && tokens > targetTokens;

/** Whether anything would be folded, planned or on the way to a target. */
const isFolding = (plan: Plan): boolean => plan.passes.length > 0 || isMissed(plan, plan.tokensAfter);

function planLines(
  session: Session,
  plan: Plan,
  spend: Spend | null,
  isForced: boolean,
  applying: boolean,
): readonly string[] {
  const { paint, columns } = session;
  const bars =
    applying || plan.passes.length === 0 ? [] : comparison(plan.tokensBefore, plan.tokensAfter, columns - 9, paint);
  return facts(
    [
      [padded("due"), dueWords(plan.due)],
      [
        "model",
        ...modelLines(session, applying && plan.model ? { ...plan.model, problem: null } : plan.model),
        ...callLines(session, plan.cost, spend),
      ],
      [
        "plan",
        ...(plan.passes.length === 0 ? [nothingWords(plan, isForced)] : passTable(session, plan.passes)),
        ...thenLines(plan),
      ],
      ...(bars.length === 0 ? [] : [["context", ...bars] as const]),
    ],
    paint,
    session.context.stdout.columns,
  );
}

/** A target that usual passes do not reach is sought by others, which nobody can foresee. */
const thenLines = (plan: Plan): readonly string[] =>
  isMissed(plan, plan.tokensAfter)
    ? [`then ever stricter, into the fresh tail if need be, until ${formatCount(plan.targetTokens ?? 0)} tokens`]
    : [];

function nothingWords({ mode, due, targetTokens }: Plan, isForced: boolean): string {
  if (mode === "due" && due.kind === "nothing") return "nothing to do";
  if (targetTokens !== null) {
    const isThere = due.contextTokens <= targetTokens;
    return isThere ? `nothing to do: at or below ${formatCount(targetTokens)} already` : "no usual pass is left";
  }
  return isForced ? "nothing to fold" : "nothing to fold; --force takes short runs too";
}

function passTable({ paint, context }: Session, passes: readonly PlannedPass[]): readonly string[] {
  const byDepth = Map.groupBy(passes, ({ depth }) => depth);
  const rows = [...byDepth]
    .toSorted(([a], [b]) => a - b)
    .map(([depth, of]) => {
      const sum = (value: (pass: PlannedPass) => number): number => of.reduce((total, pass) => total + value(pass), 0);
      const sources = sum((pass) => pass.sources);
      return [
        `d${depth}`,
        formatCount(of.length),
        depth === 0 ? plural(sources, "message") : `${formatCount(sources)} × d${depth - 1}`,
        formatCount(sum((pass) => pass.sourceTokens)),
        `→ ${formatCount(sum((pass) => pass.targetTokens))}`,
      ];
    });
  return table(
    [
      { title: "depth" },
      { title: "passes", align: "right" },
      { title: "over", align: "right", spare: true },
      { title: "tokens in", align: "right", spare: true },
      { title: "out", align: "right" },
    ],
    rows,
    context.stdout.columns && context.stdout.columns - padded("").length - 2,
    paint,
  );
}

// ── Doing it ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Plan and result stand below each other. */
const padded = (name: string): string => padEnd(name, "context".length);

/** The model's name may be as long as the line leaves it room. */
const nameColumnsMin = 14;
const columnsBesideName = 72;

async function run(
  session: Session,
  lcm: Lcm,
  request: CompactRequest,
  plan: Plan,
  options: CompactOptions,
  watched: Watched | null,
) {
  const { clock, stderr } = session.context;
  const started = timestampToMs(clock.now());
  const progress = session.progress("compacting");
  let done = 0;
  let saved = 0;
  let depth = 0;
  const show = (): void => {
    const of = Math.max(done, plan.passes.length);
    const wait = watched?.wait(Math.max(nameColumnsMin, (stderr.columns ?? 0) - columnsBesideName)) ?? null;
    const detail = wait ?? `d${depth}, ${formatCount(saved)} tokens saved`;
    progress.update({ done, of, unit: "passes", detail });
  };
  return await attend(session, progress, show, async (interruption) => {
    const deadline = options.timeout === undefined ? [] : [AbortSignal.timeout(Math.ceil(options.timeout * 1_000))];
    const result = await lcm.compact({
      ...request,
      signal: AbortSignal.any([interruption, ...deadline]),
      onPass(pass) {
        done += 1;
        saved += pass.sourceTokens - pass.tokens;
        depth = pass.depth;
        show();
      },
    });
    const isInterrupted = interruption.aborted && result.outcome.kind === "bounded";
    return { result, isInterrupted, tookMs: timestampToMs(clock.now()) - started };
  });
}

function resultLines(
  session: Session,
  { passes, tokensBefore, tokensAfter }: CompactReport,
  tookMs: number,
): readonly string[] {
  if (passes.length === 0) return [];
  const { paint, columns } = session;
  const depths = [...Map.groupBy(passes, ({ depth }) => depth)].toSorted(([a], [b]) => a - b);
  const made = depths.map(([depth, of]) => `${formatCount(of.length)} × d${depth}`);
  const levels = [...Map.groupBy(passes, ({ level }) => level)].map(([level, of]) =>
    levelWords(session, level, of.length),
  );
  return facts(
    [
      [padded("folded"), `${listed(made)} in ${(tookMs / 1_000).toFixed(1)} s`],
      ["levels", ...levels],
      ["context", ...comparison(tokensBefore, tokensAfter, columns - 9, paint)],
    ],
    paint,
    session.context.stdout.columns,
  );
}

function levelWords({ paint }: Session, level: Level, count: number): string {
  const words = `${formatCount(count)} ${level}`;
  const why = levelReasons[level];
  return why === null ? words : `${level === "truncated" ? paint.caution(words) : words} ${paint.soft(why)}`;
}

const levelReasons: Readonly<Record<Level, string | null>> = {
  normal: null,
  aggressive: "(the model's first answer was of no use)",
  extractive: "(made on this machine)",
  truncated: "(no answer of the model was of use; `lcm doctor` names them)",
};

/** Says how it ended, with a way on where it did not end well, and answers the exit status. */
function ending(
  session: Session,
  result: CompactReport,
  plan: Plan,
  summariser: Summariser | null,
  settings: Settings,
): number {
  const { paint, note, print, json } = session;
  // It may quote a provider, which is a stranger.
  const told = oneLine(result.message);
  const hint = wayOn(result, plan, summariser, settings);
  if (hint === null) {
    if (!json) print(told);
    return exitOk;
  }
  const isUnsaid = result.outcome.kind === "bounded" && isMissed(plan, result.tokensAfter);
  note(`${paint.bad("error:")} ${told}${isUnsaid ? "; the target was missed" : ""}`);
  note(`${paint.soft("hint:")} ${hint}`);
  return exitUnavailable;
}

/** What to do where not everything asked for was done; null where it was. */
function wayOn(
  { outcome, tokensAfter, passes }: CompactReport,
  plan: Plan,
  summariser: Summariser | null,
  settings: Settings,
): string | null {
  switch (outcome.kind) {
    case "waiting":
      return hintOf(outcome.refusal, summariser, settings);
    case "failed":
      return "what was folded before stays; `lcm doctor` checks the database";
    case "bounded":
      if (outcome.bound === "deadline" && (passes.length === 0 || isMissed(plan, tokensAfter)))
        return `--timeout gives it longer${summariser === null ? "" : `; ${without}`}`;
      return isMissed(plan, tokensAfter) ? "run it again, or allow more --passes" : null;
    case "settled":
      return isMissed(plan, tokensAfter)
        ? `${formatCount(tokensAfter)} tokens is as small as it gets; LCM_LEAF_TARGET_TOKENS and ` +
            "LCM_CONDENSED_TARGET_TOKENS make summaries shorter from the start"
        : null;
    case "idle":
    case "under":
      return null;
  }
}

const without = "--no-model does it without a model";

const hintOf = (refusal: Refusal, summariser: Summariser | null, { summaryConcurrency }: Settings): string =>
  `${refusalHint(refusal, summariser, "folded", summaryConcurrency)}; ${without}`;
