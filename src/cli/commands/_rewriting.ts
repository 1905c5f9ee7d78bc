/** Shared by `lcm rewrite` and `lcm repair`: plans, drafts, shows and applies new texts for the chosen summaries. */

import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation, Summary } from "../../core/model/types.ts";
import { missingModel } from "../../core/maintenance/rewrite.ts";
import type {
  PlannedRewrite,
  PlannedRewrites,
  RewriteOptions,
  RewriteReport,
  RewriteResult,
} from "../../core/maintenance/rewrite.ts";
import type { Settings } from "../../core/model/settings.ts";
import { exitInterrupted, exitUnavailable, failureOf, statusFor } from "../failure.ts";
import { orStopped, stoppedBy } from "./_stopping.ts";
import { textLines } from "../../format/passages.ts";
import {
  aboutLines,
  aboveWords,
  changeOf,
  costOfRewrites,
  doneWords,
  keptOf,
  kindWords,
  planLines,
  rangeWords,
  skippedLines,
  unreachedWords,
  uselessWords,
} from "../../format/rewrite.ts";
import type { Kept, RewritesPlan } from "../../format/rewrite.ts";
import { refusalHint } from "../../format/model.ts";
import { applyOptions, backUpFirst, backupOption, isApplying, noteUndo } from "./_applying.ts";
import { headline } from "../../format/conversations.ts";
import { providerOptions, wholeNumber, type OptionsOf, type OptionTable } from "./_options.ts";
import { flag, list, maybe, object, oneOf, text, time, whole } from "./_json.ts";
import { findings, level, modelJson, planned } from "./_shapes.ts";
import { attend, exitFindings, exitOk, withLcm, type PromptFiles, type Session } from "./_session.ts";
import { demandModel, demandTemplates, endUnavailable, findWriter, noteInterruptible } from "./_writer.ts";
import type { SummaryWriter } from "./_writer.ts";
import { formatTimestamp } from "../../core/base/time.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { oneLine } from "../../format/safe-text.ts";
import { breakLines, widthOf } from "../../format/width.ts";

export const rewritingOptions = {
  diff: ["--diff", "show a unified diff instead of both texts"],
  estimate: ["--estimate", "only estimate calls and tokens; do not call the model"],
  fresh: ["--fresh", "request new texts even where a draft is stored or the model's text is in place"],
  model: ["--model <name>", "write summaries with this model, named as provider/model"],
  ...providerOptions,
  promptDir: ["--prompt-dir <folder>", "use the prompt files in this folder"],
  instructions: ["--instructions <text>", "tell the model what to pay attention to"],
  timestamps: [
    ["--timestamps", "give the model the times of its sources (the default)"],
    ["--no-timestamps", "leave the times out"],
  ],
  tz: ["--tz <zone>", "write these times in this zone (default: LCM_TIMEZONE, UTC)"],
  bottomUp: ["--bottom-up", "rewrite sources before the summaries made from them (always the case)"],
  concurrency: ["--concurrency <n>", "rewrite this many of one depth at a time (default: 1)", wholeNumber(1, 64)],
  ...backupOption,
  ...applyOptions,
} as const satisfies OptionTable;

type RewritingOptions = OptionsOf<typeof rewritingOptions>;

export const modelWords =
  "The model comes from --model, else LCM_SUMMARY_MODEL, else OpenClaw's config; without one nothing is rewritten. A " +
  "dry run stores its drafts, and --apply uses them unless their sources have changed. Exit status 1: some answers " +
  "were unusable, so the old texts stay; 6: the model refused or could not be called; 130: interrupted by Ctrl-C. " +
  "Texts applied before that are kept.";

/** The chosen summaries, and how they are shown. */
export interface Chosen {
  readonly plan: PlannedRewrites & { readonly [more: string]: unknown };
  readonly lines: readonly string[];
  /** Shown if nothing was chosen. */
  readonly otherwise: string;
}

interface Job {
  readonly session: Session;
  readonly options: RewritingOptions;
  readonly rewriting: RewriteOptions;
  readonly writer: SummaryWriter;
  readonly prompts: PromptFiles;
  readonly applying: boolean;
}

export const rewritingJson = planned(
  object({
    "findings?": findings,
    targets: list(
      object({
        conversation: whole,
        summary: text,
        depth: whole,
        level,
        tokens: whole,
        earliestAt: maybe(time),
        latestAt: maybe(time),
        sources: whole,
        sourceTokens: whole,
        targetTokens: whole,
        template: text,
      }),
    ),
    skipped: list(object({ conversation: whole, summary: text, reason: text })),
    "outside?": list(text),
    "conversation?": maybe(whole),
    model: maybe(modelJson),
    cost: object({ calls: whole, inputTokens: whole, outputTokens: whole, "callsMax?": whole }),
    kept: list(text),
    current: list(text),
  }),
  object({
    drafts: list(
      object({
        summary: text,
        conversation: whole,
        depth: whole,
        status: oneOf("applied", "drafted", "current", "unusable", "unreached"),
        "reason?": text,
        "kept?": flag,
        "oldText?": text,
        "newText?": text,
        "tokensBefore?": whole,
        "tokensAfter?": whole,
        "levelBefore?": level,
        "level?": level,
        "model?": maybe(text),
        "diff?": text,
      }),
    ),
    change: maybe(whole),
    stopped: maybe(object({ refusal: text, message: text })),
    totals: object({
      applied: whole,
      drafted: whole,
      current: whole,
      unusable: whole,
      unreached: whole,
      tokensBefore: whole,
      tokensAfter: whole,
    }),
  }),
);

export async function rewriteChosen(
  session: Session,
  options: RewritingOptions,
  operation: "rewrite" | "repair",
  choose: (lcm: Lcm) => Promise<Chosen>,
): Promise<number> {
  const applying = isApplying(options);
  if (applying && options.estimate === true) {
    throw new LcmError("invalid", "--estimate and --apply exclude each other", { hint: "pass only one of them" });
  }
  const { values: settings } = await session.context.settings();
  const rewriting = {
    ...requestOf(session, options, settings),
    operation,
    mode: applying ? "apply" : "draft",
  } as const;
  const prompts = await session.context.prompts(options.promptDir);
  const writer = await findWriter(session, options, settings, true);
  const job: Job = { session, options, rewriting, writer, prompts, applying };
  const work = async (lcm: Lcm): Promise<number> =>
    await planAndRewrite(job, lcm, await orStopped(session.signal, choose(lcm)));
  return await withLcm(session, options.estimate === true ? "read" : "write", work, {
    settings,
    model: writer.watched?.model ?? null,
    templates: prompts.templates,
  });
}

async function planAndRewrite(job: Job, lcm: Lcm, { plan: planned, lines, otherwise }: Chosen): Promise<number> {
  const { session, options, rewriting, writer, prompts, applying } = job;
  const { summariser, model } = writer;
  const { targets } = planned;
  demandTemplates(prompts, (name) => targets.some(({ template }) => template === name));
  const kept = summariser === null ? noneKept : keptOf(await lcm.rewriteAll(planned, { ...rewriting, mode: "look" }));
  const cost = costOfRewrites(planned, kept, prompts.templates, options.instructions ?? null);
  const plan = { ...planned, model, cost, ...kept };
  if (!session.json) {
    const shown = planLines(session, plan, await lcm.spend(), "pass --fresh to request another");
    for (const line of [...lines, ...shown, ...skippedLines(session, plan)]) session.print(line);
  }
  if (targets.length === 0 || options.estimate === true) {
    if (session.json) session.printJson(rewritingJson, { dryRun: !applying, applied: false, plan });
    else if (targets.length === 0) session.print(otherwise);
    else session.note("the model was not called and nothing was changed");
    return exitOk;
  }
  if (summariser === null) throw missingModel();
  if (cost.calls > 0) demandModel(writer, refusalHint("no_credential", summariser, "applied", 1));
  let backup: string | null = null;
  const beforeApplying = async (): Promise<void> => {
    backup ??= await backUpFirst(session, options);
  };
  noteInterruptible(session, applying ? "texts applied so far are kept" : "drafts made so far are kept");
  const show = await createShow(session, plan, await conversationsOf(lcm, targets), options.diff === true);
  const ran = await run({ ...job, rewriting: { ...rewriting, beforeApplying } }, lcm, plan, show);
  if (session.json) {
    const result = await resultOf(ran.report, options.diff === true);
    const { change, failed } = ran.report;
    const error = failed === null ? {} : { error: failureOf(failed, session.typed) };
    session.printJson(rewritingJson, { dryRun: !applying, applied: change !== null, plan, result, backup, ...error });
  } else printEnd(job, ran.report);
  const isComplete = !ran.isStopped && ran.report.failed === null && ran.report.stopped === null;
  if (!session.json && isComplete) noteAbove(session, await aboveOf(lcm, ran.report), applying);
  return end(job, ran);
}

function requestOf({ context }: Session, options: RewritingOptions, settings: Settings): Omit<RewriteOptions, "mode"> {
  const zone = options.tz ?? settings.timezone;
  formatTimestamp(context.clock.now(), zone); // Throws now if the zone does not exist.
  return {
    zone: options.timestamps === false ? null : zone,
    customInstructions: options.instructions ?? null,
    concurrency: options.concurrency ?? 1,
    fresh: options.fresh === true,
  };
}

const noneKept: Kept = { kept: [], current: [] };

async function conversationsOf(lcm: Lcm, targets: readonly PlannedRewrite[]): Promise<readonly Conversation[]> {
  const found = await Promise.all(
    [...new Set(targets.map(({ conversation }) => conversation))].map(async (id) => await lcm.store.conversation(id)),
  );
  return found.filter((conversation) => conversation !== null);
}

// ── Rewriting ────────────────────────────────────────────────────────────────────────────────────────────────────────

const nameColumnsMax = 24;

async function run(
  { session, rewriting, writer, applying }: Job,
  lcm: Lcm,
  plan: RewritesPlan,
  show: (result: RewriteResult) => void,
) {
  const progress = session.progress(applying ? "rewriting" : "drafting");
  let done = 0;
  const tick = (): void => {
    const next = plan.targets[done];
    const detail = writer.watched?.wait(nameColumnsMax) ?? (next === undefined ? "" : `d${next.depth} ${next.summary}`);
    progress.update({ done, of: plan.targets.length, unit: "summaries", detail });
  };
  const { signal } = session;
  return await attend(progress, tick, async () => {
    const report = await lcm.rewriteAll(plan, {
      ...rewriting,
      signal,
      onResult(result) {
        done += 1;
        progress.end();
        show(result);
      },
      async beforeApplying() {
        progress.end();
        await rewriting.beforeApplying?.();
      },
    });
    const isStopped = signal.aborted && report.results.some(({ status }) => status === "unreached");
    return { report, isStopped };
  });
}

/** Of several texts, only the beginnings are shown. */
const previewLines = 8;

/** Shows each result as soon as it is ready: old and new text, or a diff. */
async function createShow(
  session: Session,
  { targets }: RewritesPlan,
  conversations: readonly Conversation[],
  isDiff: boolean,
): Promise<(result: RewriteResult) => void> {
  if (session.json) return () => undefined;
  const { print, paint, context } = session;
  const { columns } = context.stdout;
  const { diffColumns, diffLines, unifiedDiff } = await import("../../format/diff.ts");
  const shown = targets.length === 1 ? Infinity : previewLines;
  let current = conversations.length === 1 ? conversations[0] : undefined;

  const preview = (name: string, text: string, tokens: number): void => {
    const lines = textLines(session, text);
    print(`${paint.strong(name)} (${plural(tokens, "token")}):`);
    for (const line of lines.slice(0, shown)) print(line);
    const more = lines.length - shown;
    if (more > 0) print(paint.soft(`  … ${plural(more, "more line")}; pass --diff to see all`));
    print();
  };
  return (result) => {
    const { target } = result;
    if (result.status !== "unusable" && !("old" in result)) return;
    if (target.conversation !== current?.id) {
      current = conversations.find(({ id }) => id === target.conversation);
      print();
      if (current !== undefined) print(headline(session, current));
    }
    print();
    for (const line of breakLines(headOf(target, context.zone, columns ?? Infinity), columns ?? Infinity))
      print(paint.depth(target.depth, line));
    print();
    if (result.status === "unusable") return print(`${paint.caution("unusable:")} ${oneLine(result.reason)}`);
    const { old, summary } = result;
    if (isDiff) {
      for (const line of diffLines(paint, unifiedDiff(old.text, summary.text), diffColumns(context.stdout)))
        print(line);
      print();
    } else {
      preview("OLD", old.text, old.tokens);
      preview("NEW", summary.text, summary.tokens);
    }
    const level = old.level === summary.level ? "" : `, level ${old.level} → ${summary.level}`;
    print(`Δ tokens: ${changeOf(old.tokens, summary.tokens)}${level}`);
  };
}

/** `━━━ sum_f8ee4e7a5a7b7090 (d1, 36 children, 2026-02-17 15:37–21:14 UTC) ━━━` */
function headOf(target: PlannedRewrite, zone: string, columns: number): string {
  const range = rangeWords(target, zone);
  const head = `━━━ ${target.summary} (${kindWords(target)}${range === null ? "" : `, ${range}`})`;
  return widthOf(head) + 4 > columns ? head : `${head} ━━━`;
}

// ── Results ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const withStatus = <T extends RewriteResult["status"]>(
  { results }: RewriteReport,
  ...statuses: readonly T[]
): readonly Extract<RewriteResult, { readonly status: T }>[] =>
  results.filter((result): result is Extract<RewriteResult, { readonly status: T }> =>
    statuses.some((status) => status === result.status),
  );

function totalsOf(report: RewriteReport) {
  const written = withStatus(report, "drafted", "applied");
  return {
    applied: withStatus(report, "applied").length,
    drafted: withStatus(report, "drafted").length,
    current: withStatus(report, "current").length,
    unusable: withStatus(report, "unusable").length,
    unreached: withStatus(report, "unreached").length,
    tokensBefore: written.reduce((sum, { old }) => sum + old.tokens, 0),
    tokensAfter: written.reduce((sum, { summary }) => sum + summary.tokens, 0),
  };
}

function printEnd({ session, rewriting, applying }: Job, report: RewriteReport): void {
  const { print, note } = session;
  const { applied, drafted, unreached, tokensBefore, tokensAfter } = totalsOf(report);
  const written = applied + drafted;
  const unusable = withStatus(report, "unusable");
  print();
  if (applying ? written > 0 : written > 1) {
    const did = !applying ? "drafted" : rewriting.operation === "repair" ? "repaired" : "rewrote";
    print(doneWords(did, written, tokensBefore, tokensAfter));
  }
  if (unusable.length > 0) print(uselessWords(unusable.length));
  for (const { target, reason } of unusable)
    for (const line of aboutLines(session, target.summary, oneLine(reason))) print(line);
  if (unreached > 0) print(unreachedWords(unreached));
  if (report.change !== null) return noteUndo(session, report.change);
  if (written === 0) return note("nothing was changed");
  const others = unusable.length + unreached;
  const more =
    others === 0
      ? ""
      : `; it requests the other ${formatCount(others)} again, with the summaries above ${others === 1 ? "it" : "them"}`;
  note(`nothing was changed; pass --apply${without(rewriting)} to apply these drafts${more}`);
}

const without = ({ fresh }: RewriteOptions): string => (fresh === true ? " without --fresh" : "");

/** Reports why it stopped early, if it did, and returns the exit status. */
function end({ session, rewriting, writer, applying }: Job, { report, isStopped }: Awaited<ReturnType<typeof run>>) {
  if (report.failed !== null) {
    if (session.json) return statusFor(report.failed);
    throw report.failed;
  }
  if (isStopped) {
    const isInterrupted = stoppedBy(session.signal) === "interrupt";
    const kept = applying ? "applied texts are kept" : "the drafts are kept";
    const why = isInterrupted ? "interrupted" : "stopped at the time limit";
    session.note(`${why}: ${kept}; run it again${without(rewriting)} to continue`);
    return isInterrupted ? exitInterrupted : exitUnavailable;
  }
  if (report.stopped !== null) {
    const { refusal, message } = report.stopped;
    const done = applying ? "applied" : "drafted";
    const hint = refusalHint(refusal, writer.summariser, done, rewriting.concurrency ?? 1);
    return endUnavailable(session, message, hint);
  }
  return withStatus(report, "unusable").length > 0 ? exitFindings : exitOk;
}

/** Summaries made from rewritten ones that were not rewritten themselves. */
async function aboveOf(lcm: Lcm, report: RewriteReport): Promise<readonly Summary[]> {
  const written = withStatus(report, "drafted", "applied").map(({ target }) => target.summary);
  const derived = [...(await lcm.store.derived(written)).values()].flat();
  return await lcm.store.summaries({ ids: [...new Set(derived)].filter((id) => !written.includes(id)) });
}

function noteAbove({ note }: Session, above: readonly Summary[], applying: boolean): void {
  const [first] = above;
  if (first === undefined) return;
  const isOne = above.length === 1;
  const command = `lcm rewrite ${first.conversation} ${isOne ? `--summary ${first.id}` : "--all"}`;
  const then = applying ? "" : "after applying these, ";
  note(`${aboveWords(above.length)}: ${then}run \`${command}\` to rewrite ${isOne ? "it" : "them"}`);
}

async function resultOf(report: RewriteReport, isDiff: boolean) {
  const { unifiedDiff } = await import("../../format/diff.ts");
  const drafts = report.results.map((result) => {
    const { summary, conversation, depth } = result.target;
    const place = { summary, conversation, depth, status: result.status };
    if (result.status === "unusable") return { ...place, reason: result.reason };
    if (!("old" in result)) return place;
    const { old, summary: now, isKept } = result;
    return {
      ...place,
      kept: isKept,
      oldText: old.text,
      newText: now.text,
      tokensBefore: old.tokens,
      tokensAfter: now.tokens,
      levelBefore: old.level,
      level: now.level,
      model: now.model,
      ...(isDiff && { diff: unifiedDiff(old.text, now.text) }),
    };
  });
  const { change, stopped } = report;
  return { drafts, change, stopped, totals: totalsOf(report) };
}
