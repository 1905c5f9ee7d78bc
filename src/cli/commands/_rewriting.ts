/**
 * What `lcm rewrite` and `lcm repair` do with the summaries they have chosen: say what it costs, have them written anew,
 * show old and new, and with --apply put the new in place of the old.
 */

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
import { watchModel } from "../../format/waiting.ts";
import type { Watched } from "../../format/waiting.ts";
import { applyOptions, backUpFirst, backupOption, isApplying, sayUndo } from "./_applying.ts";
import { headline } from "../../format/conversations.ts";
import { providerOptions, wholeNumber } from "./_options.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import { attend, exitFindings, exitOk, withLcm } from "./_session.ts";
import type { Session, Summariser } from "./_session.ts";
import { formatTimestamp } from "../../core/base/time.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { breakLines, widthOf } from "../../format/width.ts";
import { oneLine } from "../../format/safe-text.ts";

export const rewritingOptions = {
  diff: ["--diff", "show what changes as a unified diff, instead of both texts"],
  estimate: ["--estimate", "only say what would be asked for and cost; ask nothing"],
  fresh: ["--fresh", "ask for another text, also where a draft is kept or the model's own text stands"],
  model: ["--model <name>", "which model writes them, as provider/model"],
  ...providerOptions,
  promptDir: ["--prompt-dir <folder>", "the folder whose files replace the built-in prompts"],
  instructions: ["--instructions <text>", "what to look after in these summaries, for the model"],
  timestamps: [
    ["--timestamps", "tell the model when everything was said, which is the default"],
    ["--no-timestamps", "do not tell it"],
  ],
  tz: ["--tz <zone>", "the zone of these times (default: LCM_TIMEZONE, UTC)"],
  bottomUp: ["--bottom-up", "sources before what was made from them, which is always the order"],
  concurrency: ["--concurrency <n>", "how many of one depth at the same time (default: 1)", wholeNumber(1, 64)],
  ...backupOption,
  ...applyOptions,
} as const satisfies OptionTable;

type RewritingOptions = OptionsOf<typeof rewritingOptions>;

export const modelWords =
  "The model is the one of --model, else of LCM_SUMMARY_MODEL, else of OpenClaw's config; without one nothing is " +
  "rewritten. Drafts of a dry run are kept, and --apply uses them if nothing they were written from has changed. Exit " +
  "status 1 means that some answers were of no use, so that the old texts stay; 6 that the model could not be asked; " +
  "130 that Ctrl-C was pressed. What was applied before stays.";

/** What was chosen, and how a person is told. */
export interface Chosen {
  readonly plan: PlannedRewrites & { readonly [more: string]: unknown };
  readonly lines: readonly string[];
  /** Said where there is nothing to write anew. */
  readonly otherwise: string;
}

export async function rewriteChosen(
  session: Session,
  options: RewritingOptions,
  operation: "rewrite" | "repair",
  choose: (lcm: Lcm) => Promise<Chosen>,
): Promise<number> {
  const applying = isApplying(options);
  if (applying && options.estimate === true) {
    throw new LcmError("invalid", "--estimate and --apply contradict each other", { hint: "give one of them" });
  }
  const { values: settings } = await session.context.settings();
  const given = optionsOf(session, options, settings);
  const summariser = await session.context.summariser(options);
  const prompts = await session.context.prompts(options.promptDir);
  const watched =
    summariser === null ? null : watchModel(await summariser.create(settings), settings.summaryTimeoutSeconds);
  const problem = await (summariser?.check() ?? null);

  const work = async (lcm: Lcm): Promise<number> => {
    const { plan: planned, lines, otherwise } = await choose(lcm);
    const { targets } = planned;
    const [unfit] = [...prompts.problems].filter(([name]) => targets.some(({ template }) => template === name));
    if (unfit !== undefined) throw unfit[1];
    const kept = summariser === null ? nothingKept : keptOf(await lcm.rewriteAll(planned, { ...given, mode: "look" }));
    const cost = costOfRewrites(planned, kept, prompts.templates, options.instructions ?? null);
    const model = summariser && { name: summariser.name, from: summariser.from, problem };
    const plan = { ...planned, model, cost, ...kept };
    if (!session.json) {
      const told = planLines(session, plan, await lcm.spend(), "--fresh asks again");
      for (const line of [...lines, ...told]) session.print(line);
      for (const line of skippedLines(session, plan)) session.print(line);
    }
    if (targets.length === 0 || options.estimate === true) {
      if (session.json) session.printJson({ dryRun: !applying, applied: false, plan });
      else if (targets.length === 0) session.print(otherwise);
      else session.note("nothing was asked and nothing changed");
      return exitOk;
    }
    if (summariser === null) throw missingModel();
    if (problem !== null && cost.calls > 0)
      throw new LcmError("unavailable", problem, { hint: refusalHint("no_credential", summariser, "applied", 1) });
    let backup: string | null = null;
    const beforeApplying = async (): Promise<void> => {
      backup ??= await backUpFirst(session, options);
    };
    if (!session.json && session.context.stderr.isTerminal)
      session.note(session.paint.soft(`Ctrl-C stops it; what is ${applying ? "applied stays" : "drafted is kept"}`));
    const conversations = await conversationsOf(lcm, targets);
    const show = await createShow(session, plan, conversations, options.diff === true);
    const mode = applying ? "apply" : "draft";
    const ran = await run(session, lcm, plan, { ...given, operation, mode, beforeApplying }, watched, show);
    if (session.json) {
      const result = await resultOf(ran.report, options.diff === true);
      const { change, failed } = ran.report;
      const error = failed === null ? {} : { error: failureOf(failed, session.typed) };
      session.printJson({ dryRun: !applying, applied: change !== null, plan, result, backup, ...error });
    }
    const status = ending(session, ran, { ...given, operation, mode }, summariser);
    const isWhole = !ran.isInterrupted && ran.report.stopped === null; // Else it is said how to go on.
    if (!session.json && isWhole) sayAbove(session, await aboveOf(lcm, ran.report), applying);
    return status;
  };
  return await withLcm(session, options.estimate === true ? "read" : "write", work, {
    settings,
    model: watched?.model ?? null,
    templates: prompts.templates,
  });
}

type Given = Omit<RewriteOptions, "mode">;

function optionsOf({ context }: Session, options: RewritingOptions, settings: Settings): Given {
  const zone = options.tz ?? settings.timezone;
  formatTimestamp(context.clock.now(), zone); // Says so now if there is no such zone.
  return {
    zone: options.timestamps === false ? null : zone,
    customInstructions: options.instructions ?? null,
    concurrency: options.concurrency ?? 1,
    fresh: options.fresh === true,
  };
}

const nothingKept: Kept = { kept: [], current: [] };

async function conversationsOf(lcm: Lcm, targets: readonly PlannedRewrite[]): Promise<readonly Conversation[]> {
  const found = await Promise.all(
    [...new Set(targets.map(({ conversation }) => conversation))].map(async (id) => await lcm.store.conversation(id)),
  );
  return found.filter((conversation) => conversation !== null);
}

// ── Doing it ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const nameColumnsMax = 24;

async function run(
  session: Session,
  lcm: Lcm,
  plan: RewritesPlan,
  options: RewriteOptions,
  watched: Watched | null,
  show: (result: RewriteResult) => void,
) {
  const progress = session.progress(options.mode === "apply" ? "rewriting" : "drafting");
  let done = 0;
  const tick = (): void => {
    const next = plan.targets[done];
    const detail = watched?.wait(nameColumnsMax) ?? (next === undefined ? "" : `d${next.depth} ${next.summary}`);
    progress.update({ done, of: plan.targets.length, unit: "summaries", detail });
  };
  return await attend(session, progress, tick, async (signal) => {
    const report = await lcm.rewriteAll(plan, {
      ...options,
      signal,
      onResult(result) {
        done += 1;
        progress.end();
        show(result);
      },
      async beforeApplying() {
        progress.end();
        await options.beforeApplying?.();
      },
    });
    const isInterrupted = signal.aborted && report.results.some(({ status }) => status === "unreached");
    return { report, isInterrupted };
  });
}

/** Of many each is shown by its beginning. */
const previewLines = 8;

/** Shows each result as it comes, as old and new or as a diff. */
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
    if (more > 0) print(paint.soft(`  … ${plural(more, "more line")}; --diff shows all`));
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
    if (result.status === "unusable") return print(`${paint.caution("of no use:")} ${oneLine(result.reason)}`);
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

// ── How it ended ─────────────────────────────────────────────────────────────────────────────────────────────────────

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

/** Says how it ended, with a way on where it did not end well, and answers the exit status. */
function ending(
  session: Session,
  { report, isInterrupted }: Awaited<ReturnType<typeof run>>,
  { operation, mode, fresh = false, concurrency = 1 }: RewriteOptions,
  summariser: Summariser,
): number {
  const { print, note, paint, json } = session;
  const applying = mode === "apply";
  const totals = totalsOf(report);
  const written = totals.applied + totals.drafted;
  const unusable = withStatus(report, "unusable");
  if (!json) {
    print();
    if (applying ? written > 0 : written > 1) {
      const did = !applying ? "drafted" : operation === "repair" ? "repaired" : "rewrote";
      print(doneWords(did, written, totals.tokensBefore, totals.tokensAfter));
    }
    if (unusable.length > 0) {
      print(uselessWords(unusable.length));
      for (const { target, reason } of unusable)
        for (const line of aboutLines(session, target.summary, oneLine(reason))) print(line);
    }
    if (totals.unreached > 0) print(unreachedWords(totals.unreached));
    if (report.change !== null) sayUndo(session, report.change);
    else if (written > 0) {
      const others = unusable.length + totals.unreached;
      const them = others === 1 ? "it" : "them";
      const more =
        others === 0 ? "" : `, and asks again for the other ${formatCount(others)} and what stands on ${them}`;
      note(`nothing was changed; --apply${fresh ? " without --fresh" : ""} applies these drafts${more}`);
    } else note("nothing was changed");
  }
  if (report.failed !== null) {
    if (json) return statusFor(report.failed);
    throw report.failed;
  }
  if (isInterrupted) {
    const done = applying ? "what is applied stays" : "the drafts are kept";
    note(`interrupted: ${done}; run it again${fresh ? " without --fresh" : ""} to go on`);
    return exitInterrupted;
  }
  if (report.stopped !== null) {
    const { refusal, message } = report.stopped;
    note(`${paint.bad("error:")} ${oneLine(message)}`);
    note(`${paint.soft("hint:")} ${refusalHint(refusal, summariser, applying ? "applied" : "drafted", concurrency)}`);
    return exitUnavailable;
  }
  return unusable.length > 0 ? exitFindings : exitOk;
}

/** What was written from texts that are replaced, and is not itself. */
async function aboveOf(lcm: Lcm, report: RewriteReport): Promise<readonly Summary[]> {
  const written = withStatus(report, "drafted", "applied").map(({ target }) => target.summary);
  const derived = [...(await lcm.store.derived(written)).values()].flat();
  return await lcm.store.summaries({ ids: [...new Set(derived)].filter((id) => !written.includes(id)) });
}

function sayAbove({ note }: Session, above: readonly Summary[], applying: boolean): void {
  const [first] = above;
  if (first === undefined) return;
  const isOne = above.length === 1;
  const command = `lcm rewrite ${first.conversation} ${isOne ? `--summary ${first.id}` : "--all"}`;
  note(
    `${aboveWords(above.length)}: \`${command}\` writes ${isOne ? "it" : "them"} anew${applying ? "" : ", once these are applied"}`,
  );
}

/** For programs. */
async function resultOf(report: RewriteReport, isDiff: boolean): Promise<unknown> {
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
