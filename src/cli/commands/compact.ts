/** `lcm compact`: folds old messages into summaries. Without --apply it shows the plan and its cost. */

import type { CompactReport, CompactRequest } from "../../core/compaction/compact.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { PassReport } from "../../core/compaction/passes.ts";
import type { Conversation, ConversationId, Refusal } from "../../core/model/types.ts";
import { builtInTemplates, templateNameOf } from "../../core/prompts/summary.ts";
import type { Settings } from "../../core/model/settings.ts";
import { compactionLines, compactionPlanOf, foldedLines, isFolding, isMissed } from "../../format/compact.ts";
import type { ShownCompaction } from "../../format/compact.ts";
import { exitInterrupted } from "../failure.ts";
import { applyOptions, backUpFirst, endAtPlan, isApplying } from "./_applying.ts";
import { headline } from "../../format/conversations.ts";
import { budgetOption, providerOptions, seconds, tokensMax, wholeNumber } from "./_options.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import { chosenConversation, conversationArgument } from "./_reach.ts";
import { about, either, flag, list, maybe, object, oneOf, text, whole } from "./_json.ts";
import { dueFields, level, modelJson, planned } from "./_shapes.ts";
import { stoppedBy } from "./_stopping.ts";
import { attend, defineCommand, exitOk, indexAll, withLcm, type PromptFiles, type Session } from "./_session.ts";
import { demandModel, demandTemplates, endUnavailable, findWriter, noteInterruptible } from "./_writer.ts";
import type { SummaryWriter } from "./_writer.ts";
import { refusalHint } from "../../format/model.ts";
import { timestampToMs } from "../../core/base/time.ts";
import { formatCount } from "../../core/base/format.ts";
import { oneLine } from "../../format/safe-text.ts";

const flags = {
  mode: [
    "--mode <mode>",
    "fold only what is due, make one pass, or fold everything possible (default: sweep)",
    ["due", "incremental", "sweep"],
  ],
  until: ["--until <tokens>", "stop once a prompt has at most this many tokens", wholeNumber(1, tokensMax)],
  force: ["--force", "fold short runs too, and fewer summaries at a time than usual"],
  instructions: ["--instructions <text>", "tell the model what to pay attention to"],
  model: [
    ["--model <name>", "write summaries with this model, named as provider/model"],
    ["--no-model", "call no model: extract the key sentences locally"],
  ],
  budget: budgetOption,
  passes: ["--passes <n>", "make at most this many summaries", wholeNumber(1, 1_000_000)],
  concurrency: [
    "--concurrency <n>",
    "make this many model calls at a time (default: LCM_SUMMARY_CONCURRENCY, 4)",
    wholeNumber(1, 64),
  ],
  timeout: ["--timeout <seconds>", "stop after this long; summaries made so far are kept", seconds],
  backup: ["--no-backup", "skip the backup before --apply; compaction deletes no messages"],
  ...providerOptions,
  ...applyOptions,
} as const satisfies OptionTable;

type CompactOptions = OptionsOf<typeof flags>;

const passFields = { depth: whole, sources: whole, sourceTokens: whole };

const json = planned(
  object({
    conversation: whole,
    due: object(dueFields),
    tokensBefore: whole,
    tokensAfter: whole,
    passes: list(
      object({
        ...passFields,
        targetTokens: whole,
        "readTokens?": about(whole, "of the messages as a model reads them"),
      }),
    ),
    mode: text,
    targetTokens: maybe(whole),
    model: maybe(modelJson),
    cost: maybe(object({ calls: whole, inputTokens: whole, outputTokens: whole, "callsMax?": whole })),
  }),
  object({
    conversation: whole,
    mode: text,
    outcome: either(
      object({ kind: oneOf("idle", "settled") }),
      object({ kind: oneOf("under"), targetTokens: whole }),
      object({ kind: oneOf("bounded"), bound: oneOf("rounds", "passes", "deadline") }),
      object({ kind: oneOf("waiting"), refusal: text, message: text }),
      object({ kind: oneOf("failed"), message: text }),
    ),
    compacted: flag,
    tokensBefore: whole,
    tokensAfter: whole,
    passes: list(object({ ...passFields, tokens: whole, level, summary: text })),
    message: text,
  }),
);

export const compactCommand = defineCommand({
  name: "compact",
  json,
  summary: "fold old messages into summaries",
  description:
    "Fold old messages into summaries, and summaries into deeper ones, so that the context fits the model. Every message " +
    "stays stored and can be reached through its summary. Without --apply, only show the plan and its cost.",
  arguments: [conversationArgument],
  options: flags,
  exclusive: [["mode", "until"]],
  examples: [
    ["lcm compact 3", "show what would be folded, and the cost"],
    ["lcm compact 3 --apply", "fold it"],
    ["lcm compact 3 --no-model --apply", "fold it without a model"],
    ["lcm compact 3 --until 50000 --apply", "fold only as much as needed"],
    ["lcm compact 3 --mode due --apply", "fold only if it is due, as the host does"],
  ],
  notes:
    "The model comes from --model, else LCM_SUMMARY_MODEL, else OpenClaw's config. If none of them names one, summaries " +
    "are extracted locally. Exit status 6: the model refused or could not be called, nothing was folded before " +
    "--timeout, or the --until target was missed; 130: interrupted by Ctrl-C. Summaries made before that are kept.",
  run: compactOne,
});

interface Job {
  readonly session: Session;
  readonly options: CompactOptions;
  readonly settings: Settings;
  readonly writer: SummaryWriter;
  /** Null without a model. */
  readonly prompts: PromptFiles | null;
  readonly applying: boolean;
}

async function compactOne(session: Session, options: CompactOptions, name?: string): Promise<number | void> {
  const applying = isApplying(options);
  const { values } = await session.context.settings();
  const settings = { ...values, summaryConcurrency: options.concurrency ?? values.summaryConcurrency };
  const named = options.model === false ? null : { ...options, model: options.model };
  const writer = await findWriter(session, named, settings, applying);
  if (writer.summariser === null && options.instructions !== undefined) {
    throw new LcmError("invalid", "--instructions needs a model, and none is configured", {
      hint: "pass --model NAME; extracted summaries follow no instructions",
    });
  }
  const prompts = writer.summariser === null ? null : await session.context.prompts();
  const job: Job = { session, options, settings, writer, prompts, applying };
  return await withLcm(session, applying ? "write" : "read", async (lcm) => await planAndApply(job, lcm, name), {
    settings,
    model: writer.watched?.model ?? null,
    templates: prompts?.templates ?? builtInTemplates,
  });
}

async function planAndApply(job: Job, lcm: Lcm, name?: string): Promise<number | void> {
  const { session, options, writer, prompts, applying } = job;
  const conversation = await chosenConversation(lcm, name);
  const request = requestOf(conversation.id, options);
  const planned = await planWith(session, lcm, conversation, request);
  if (prompts !== null) {
    // On the way to a target, passes may reach any depth.
    const used = new Set(planned.passes.map(({ depth }) => templateNameOf(depth)));
    demandTemplates(prompts, (template) => request.mode === "until_under" || used.has(template));
  }
  const plan = compactionPlanOf(planned, request, writer.model, prompts?.templates ?? null);
  if (!session.json) {
    session.print(headline(session, conversation));
    const nothing = options.force === true ? "nothing to fold" : "nothing to fold; pass --force to fold short runs too";
    const spend = plan.cost && (await lcm.spend());
    for (const line of compactionLines(session, plan, spend, { nothing, isApplied: applying })) session.print(line);
  }
  if (!applying) return endAtPlan(session, applying, plan, isFolding(plan) ? undefined : null);
  if (isFolding(plan)) demandModel(writer, hintOf("no_credential", job));
  const backup = isFolding(plan) ? await backUpFirst(session, options) : null;
  noteInterruptible(session, "summaries made so far are kept");
  const { result, isInterrupted, tookMs } = await run(job, lcm, request, plan);
  await indexAll(session, lcm);
  if (session.json) session.printJson(json, { dryRun: false, applied: result.compacted, plan, result, backup });
  else for (const line of foldedLines(session, result, tookMs)) session.print(line);
  if (!isInterrupted) return end(job, plan, result);
  session.note(`interrupted: ${oneLine(result.message)}`);
  session.note("summaries made so far are kept; run it again to continue");
  return exitInterrupted;
}

/** Reads the whole context, which takes seconds for a long one. */
async function planWith(session: Session, lcm: Lcm, { totals }: Conversation, request: CompactRequest) {
  const progress = session.progress("planning");
  let done = 0;
  const show = (): void => progress.update({ done, of: totals.contextMessages, unit: "messages" });
  const onPass = ({ depth, sources }: PassReport): void => {
    done += depth === 0 ? sources : 0;
    show();
  };
  return await attend(progress, show, async () => lcm.planCompaction({ ...request, signal: session.signal, onPass }));
}

const requestOf = (conversation: ConversationId, options: CompactOptions): CompactRequest => ({
  conversation,
  mode: options.until === undefined ? (options.mode ?? "sweep") : "until_under",
  // A person decides what to do after a refusal.
  onRefusal: "wait",
  ...(options.until === undefined ? {} : { targetTokens: options.until }),
  ...(options.force === true ? { force: true } : {}),
  ...(options.instructions === undefined ? {} : { customInstructions: options.instructions }),
  ...(options.budget === undefined ? {} : { budget: options.budget }),
  ...(options.passes === undefined ? {} : { passesMax: options.passes }),
});

// ── Applying it ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** The line shortens the model's name to what the rest leaves. */
const nameColumnsMin = 14;
const columnsBesideName = 72;

async function run({ session, writer }: Job, lcm: Lcm, request: CompactRequest, plan: ShownCompaction) {
  const { clock, stderr } = session.context;
  const started = timestampToMs(clock.now());
  const progress = session.progress("compacting");
  const foldedIn = (passes: readonly Pick<PassReport, "depth" | "sources">[]): number =>
    passes.reduce((sum, { depth, sources }) => sum + (depth === 0 ? sources : 0), 0);
  const planned = foldedIn(plan.passes);
  const passes: PassReport[] = [];
  const show = (): void => {
    const done = foldedIn(passes);
    const wait = writer.watched?.wait(Math.max(nameColumnsMin, (stderr.columns ?? 0) - columnsBesideName)) ?? null;
    const saved = passes.reduce((sum, pass) => sum + pass.sourceTokens - pass.tokens, 0);
    const detail = wait ?? `d${passes.at(-1)?.depth ?? 0}, −${formatCount(saved)} tokens`;
    progress.update({ done, of: Math.max(done, planned), unit: "messages", detail });
  };
  return await attend(progress, show, async () => {
    const { signal } = session;
    const onPass = (pass: PassReport): void => {
      passes.push(pass);
      show();
    };
    const result = await lcm.compact({ ...request, signal, onPass });
    const isInterrupted = signal.aborted && stoppedBy(signal) === "interrupt" && result.outcome.kind === "bounded";
    return { result, isInterrupted, tookMs: timestampToMs(clock.now()) - started };
  });
}

/** Reports how it ended and returns the exit status. */
function end(job: Job, plan: ShownCompaction, result: CompactReport): number {
  const { session } = job;
  const hint = hintAfter(job, plan, result);
  if (hint === null) {
    if (!session.json) session.print(oneLine(result.message));
    if (session.signal.aborted) session.note("run it again to continue");
    return exitOk;
  }
  const isUnmentioned = result.outcome.kind === "bounded" && isMissed(plan, result.tokensAfter);
  return endUnavailable(session, `${result.message}${isUnmentioned ? "; the target was missed" : ""}`, hint);
}

/** What to do if the request was not met; null if it was. */
function hintAfter(job: Job, plan: ShownCompaction, { outcome, tokensAfter, passes }: CompactReport): string | null {
  const isTargetMissed = isMissed(plan, tokensAfter);
  switch (outcome.kind) {
    case "waiting":
      return hintOf(outcome.refusal, job);
    case "failed":
      return "earlier summaries are kept; check the database with `lcm doctor`";
    case "bounded":
      if (outcome.bound === "deadline" && (passes.length === 0 || isTargetMissed))
        return `raise --timeout${job.writer.summariser === null ? "" : `, ${orNoModel}`}`;
      return isTargetMissed ? "run it again, or raise --passes" : null;
    case "settled":
      return isTargetMissed
        ? `${formatCount(tokensAfter)} tokens is the minimum; lower LCM_LEAF_TARGET_TOKENS and ` +
            "LCM_CONDENSED_TARGET_TOKENS to make future summaries shorter"
        : null;
    case "idle":
    case "under":
      return null;
  }
}

const orNoModel = "or pass --no-model to extract summaries locally";

const hintOf = (refusal: Refusal, { writer, settings }: Job): string =>
  `${refusalHint(refusal, writer.summariser, "folded", settings.summaryConcurrency)}; ${orNoModel}`;
