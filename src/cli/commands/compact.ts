/** `lcm compact`: folds what is old into summaries. Without --apply it says what that would fold, ask for and bring. */

import type { Command } from "commander";
import { Option } from "commander";
import type { CompactReport, CompactRequest, Due } from "../../core/compact.ts";
import { LcmError } from "../../core/errors.ts";
import type { CompactionPlan, PlannedPass } from "../../core/foresee.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { ConversationId, Level, Refusal } from "../../core/model.ts";
import type { Spend } from "../../core/spend.ts";
import { formatCount, timestampToMs } from "../../core/text.ts";
import { costOf } from "../cost.ts";
import type { Cost } from "../cost.ts";
import { exitInterrupted, exitUnavailable } from "../failure.ts";
import { comparison } from "../make-up.ts";
import { facts, listed, oneLine, padEnd, plural, table } from "../render.ts";
import { addApplying, isApplying } from "./applying.ts";
import { headline } from "./conversations.ts";
import { budgetOption, conversationWords, examples, seconds, tokensMax, wholeNumber } from "./options.ts";
import { act, exitOk, indexAll, withLcm } from "./session.ts";
import type { CommandContext, Session, Summariser } from "./session.ts";

interface CompactOptions {
  readonly mode?: "due" | "incremental" | "sweep";
  readonly until?: number;
  readonly force?: boolean;
  readonly instructions?: string;
  /** False for `--no-model`. */
  readonly model?: string | false;
  readonly budget?: number;
  readonly passes?: number;
  readonly concurrency?: number;
  readonly timeout?: number;
  /** False for `--no-backup`. */
  readonly backup: boolean;
}

export function addCompact(program: Command, context: CommandContext): void {
  const command = program
    .command("compact")
    .summary("fold old messages into summaries")
    .description(
      "Fold old messages into summaries, and summaries into deeper ones, so that the context fits the model. Every message " +
        "stays stored and can be reached through its summary. Without --apply it only shows what it would do and cost.",
    )
    .argument("<conversation>", conversationWords)
    .addOption(
      new Option("--mode <mode>", "only what is due, one pass, or all there is to fold (default: sweep)")
        .choices(["due", "incremental", "sweep"])
        .conflicts("until"),
    )
    .option("--until <tokens>", "only until the context takes no more than this", wholeNumber(1, tokensMax))
    .option("--force", "fold short runs too, and fewer summaries at a time than usual")
    .option("--instructions <text>", "what to look after in these summaries, for the model")
    .option("--model <name>", "which model writes them, as provider/model")
    .option("--no-model", "use none: take the most telling sentences, on this machine")
    .addOption(budgetOption())
    .option("--passes <n>", "how many summaries to make at most", wholeNumber(1, 1_000_000))
    .option("--concurrency <n>", "how many at the same time (default: LCM_SUMMARY_CONCURRENCY, 4)", wholeNumber(1, 64))
    .option("--timeout <seconds>", "stop after this long; what is folded stays", seconds)
    .option("--no-backup", "make no backup before --apply; a fold removes no row");
  addApplying(command)
    .addHelpText(
      "after",
      `${examples(
        ["lcm compact 3", "what would be folded, and what that costs"],
        ["lcm compact 3 --apply", "fold it"],
        ["lcm compact 3 --no-model --apply", "without any model"],
        ["lcm compact 3 --until 50000 --apply", "only as far as needed"],
        ["lcm compact 3 --mode due --apply", "only if it is due, as the host does it"],
      )}

The model is the one of --model, else of LCM_SUMMARY_MODEL, else of OpenClaw's config. Where none of them names one,
summaries are extracted on this machine. Exit status 6 means that the model refused, 130 that Ctrl-C was pressed; what
was folded before stays.`,
    )
    .action(act(context, compactOne));
}

async function compactOne(session: Session, command: Command, name: string): Promise<number> {
  const options = command.opts<CompactOptions>();
  const applying = isApplying(command);
  const { values } = await session.context.settings();
  const settings = { ...values, summaryConcurrency: options.concurrency ?? values.summaryConcurrency };
  const { templates } = await session.context.prompts();
  const summariser = options.model === false ? null : await session.context.summariser(options.model);
  if (summariser === null && options.instructions !== undefined) {
    throw new LcmError("invalid", "--instructions are for a model, and there is none", {
      hint: "--model names one; what is extracted on this machine follows no instructions",
    });
  }
  const model = await (summariser?.create(settings) ?? null);
  const work = async (lcm: Lcm): Promise<number> => {
    const conversation = await lcm.find(name);
    const request = requestOf(conversation.id, options);
    const planned = await lcm.planCompaction(request);
    const cost = summariser === null ? null : costOf(planned, templates, request.customInstructions ?? null);
    const plan = {
      ...planned,
      mode: request.mode,
      targetTokens: request.targetTokens ?? null,
      model: summariser && { name: summariser.name, from: summariser.from },
      cost,
    };
    if (!session.json) {
      session.print(headline(session, conversation));
      const spend = cost === null ? null : await lcm.spend();
      for (const line of planLines(session, plan, summariser, spend, applying)) session.print(line);
    }
    if (!applying) {
      if (session.json) session.printJson({ dryRun: true, applied: false, plan });
      else if (plan.passes.length > 0) session.note("nothing was changed; --apply does it");
      return exitOk;
    }
    const backup = plan.passes.length === 0 || !options.backup ? null : await session.database.backup(undefined);
    if (!session.json && backup !== null) session.print(`backup   ${backup.path}`);
    if (!session.json && session.context.stderr.isTerminal)
      session.note(session.paint.soft("Ctrl-C stops it; what is folded stays"));
    const { result, isInterrupted, tookMs } = await run(session, lcm, request, plan, options);
    await indexAll(session, lcm);
    if (session.json) {
      session.printJson({ dryRun: false, applied: result.compacted, plan, result, backup: backup?.path ?? null });
    } else for (const line of resultLines(session, result, tookMs)) session.print(line);
    return ending(session, result, isInterrupted);
  };
  return await withLcm(session, applying ? "write" : "read", work, { settings, model, templates });
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

// ── The plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Plan extends CompactionPlan {
  readonly mode: CompactRequest["mode"];
  readonly targetTokens: number | null;
  readonly model: { readonly name: string; readonly from: string } | null;
  /** What the model is asked for; null without one. */
  readonly cost: Cost | null;
}

function planLines(
  session: Session,
  plan: Plan,
  summariser: Summariser | null,
  spend: Spend | null,
  applying: boolean,
): readonly string[] {
  const { paint, columns } = session;
  const bars =
    applying || plan.passes.length === 0 ? [] : comparison(plan.tokensBefore, plan.tokensAfter, columns - 9, paint);
  return facts(
    [
      [padded("due"), dueWords(plan.due)],
      ["model", modelWords(session, summariser), ...callLines(session, plan.cost, spend)],
      [
        "plan",
        ...(plan.passes.length === 0 ? [nothingWords(plan)] : passTable(session, plan.passes)),
        ...thenLines(plan),
      ],
      ...(bars.length === 0 ? [] : [["context", ...bars] as const]),
    ],
    paint,
  );
}

export function dueWords({ kind, contextTokens, thresholdTokens, budget, rawTokens }: Due): string {
  const share = budget === 0 ? "" : ` (${Math.round((thresholdTokens / budget) * 100)}% of ${formatCount(budget)})`;
  const tokens = `${formatCount(contextTokens)} tokens in context`;
  switch (kind) {
    case "sweep":
      return `a sweep: ${tokens}, threshold ${formatCount(thresholdTokens)}${share}`;
    case "incremental":
      return `one pass: ${formatCount(rawTokens)} raw tokens outside the fresh tail`;
    case "nothing":
      return `nothing: ${tokens}, threshold ${formatCount(thresholdTokens)}${share}`;
  }
}

const modelWords = ({ paint }: Session, summariser: Summariser | null): string =>
  summariser === null
    ? `none: summaries are extracted on this machine`
    : `${summariser.name} ${paint.soft(`(${summariser.from})`)}`;

function callLines({ paint }: Session, cost: Cost | null, spend: Spend | null): readonly string[] {
  if (cost === null || spend === null || cost.calls === 0) return [];
  const tokens = `about ${formatCount(cost.inputTokens)} tokens in, ${formatCount(cost.outputTokens)} out`;
  const left = Math.max(0, spend.callsMax - spend.usage.calls);
  const warning =
    cost.calls <= left
      ? []
      : [
          paint.caution(
            `only ${plural(left, "call")} left of ${formatCount(spend.callsMax)} in ${spend.windowMinutes} minutes`,
          ),
        ];
  return [`${plural(cost.calls, "call")}, ${tokens}`, ...warning];
}

/** A target that usual passes do not reach is sought by others, which nobody can foresee. */
const thenLines = ({ targetTokens, tokensAfter }: Plan): readonly string[] =>
  targetTokens === null || tokensAfter <= targetTokens
    ? []
    : [`then ever stricter, into the fresh tail if need be, until ${formatCount(targetTokens)} tokens`];

const nothingWords = ({ mode, due }: Plan): string =>
  mode === "due" && due.kind === "nothing" ? "nothing to do" : "nothing to fold; --force takes short runs too";

function passTable({ paint }: Session, passes: readonly PlannedPass[]): readonly string[] {
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
      { title: "over", align: "right" },
      { title: "tokens in", align: "right" },
      { title: "out", align: "right" },
    ],
    rows,
    null,
    paint,
  );
}

// ── Doing it ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Ran {
  readonly result: CompactReport;
  readonly isInterrupted: boolean;
  readonly tookMs: number;
}

/** Plan and result stand below each other. */
const padded = (name: string): string => padEnd(name, "context".length);

/** A model may take a minute for its first answer; the line shows that somebody is waiting for it. */
const tickMs = 500;

async function run(
  session: Session,
  lcm: Lcm,
  request: CompactRequest,
  plan: Plan,
  options: CompactOptions,
): Promise<Ran> {
  const { context } = session;
  const { clock } = context;
  const started = timestampToMs(clock.now());
  const progress = session.progress("compacting");
  let done = 0;
  let saved = 0;
  let depth = 0;
  const show = (): void => {
    const of = Math.max(done, plan.passes.length);
    progress.update({ done, of, unit: "passes", detail: `d${depth}, ${formatCount(saved)} tokens saved` });
  };
  const ticker = setInterval(show, tickMs);
  try {
    return await context.interruptible(async (interruption) => {
      const deadline = options.timeout === undefined ? [] : [AbortSignal.timeout(options.timeout * 1_000)];
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
      return {
        result,
        isInterrupted: interruption.aborted && result.outcome.kind === "bounded",
        tookMs: timestampToMs(clock.now()) - started,
      };
    });
  } finally {
    clearInterval(ticker);
    progress.end();
  }
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
  );
}

function levelWords({ paint }: Session, level: Level, count: number): string {
  const words = `${formatCount(count)} ${level}`;
  switch (level) {
    case "normal":
      return words;
    case "aggressive":
      return `${words} ${paint.soft("(the model's first answer was of no use)")}`;
    case "extractive":
      return `${words} ${paint.soft("(made on this machine)")}`;
    case "truncated":
      return `${paint.caution(words)} ${paint.soft("(no answer of the model was of use; `lcm doctor` names them)")}`;
  }
}

/** Says how it ended where that is not plain, and answers the exit status. */
function ending(
  { paint, note, print, json }: Session,
  { outcome, message }: CompactReport,
  isInterrupted: boolean,
): number {
  // It may quote a provider, which is a stranger.
  const told = oneLine(message);
  const fail = (hint: string): number => {
    note(`${paint.bad("error:")} ${told}`);
    note(`${paint.soft("hint:")} ${hint}`);
    return exitUnavailable;
  };
  if (isInterrupted) {
    note(`interrupted: ${told}`);
    note("what is folded stays; run it again to go on");
    return exitInterrupted;
  }
  switch (outcome.kind) {
    case "waiting":
      return fail(hintOf(outcome.refusal));
    case "failed":
      return fail("what was folded before stays; `lcm doctor` checks the database");
    case "idle":
    case "under":
    case "settled":
    case "bounded":
      if (!json) print(told);
      return exitOk;
  }
}

const without = "--no-model does it without a model";

function hintOf(refusal: Refusal): string {
  switch (refusal) {
    case "auth":
    case "breaker":
      return `keys are looked for in OpenClaw's auth profiles, in the environment (such as ANTHROPIC_API_KEY), then in models.json; ${without}`;
    case "ceiling":
      return `LCM_SPEND_CEILING_CALLS allows more calls, and the window passes by itself; ${without}`;
    case "timeout":
      return `LCM_SUMMARY_TIMEOUT_SECONDS gives a call longer, --concurrency 1 asks for one at a time; ${without}`;
    case "unreachable":
      return `LCM_SUMMARY_BASE_URL says where the model is, if not where its provider usually is; ${without}`;
    case "rate_limit":
    case "overloaded":
    case "cancelled":
      return `run it again later, what is folded stays; ${without}`;
    case "unknown_model":
    case "rejected":
    case "filtered":
    case "too_long":
      return `--model names another model; ${without}`;
  }
}
