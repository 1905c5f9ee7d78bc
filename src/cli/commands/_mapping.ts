/** Shared by `lcm map` and `lcm ask --thorough`: which messages to read, with which model, within which budget. */

import type { Lcm } from "../../core/lcm.ts";
import { LcmError } from "../../core/base/errors.ts";
import { parseSpan } from "../../core/base/parse-time.ts";
import type { Model } from "../../core/model/store.ts";
import type { AskProgress } from "../../core/recall/ask-types.ts";
import type { MapReport, MapRequest } from "../../core/recall/map/map.ts";
import type { MapPlan } from "../../core/recall/map/plan.ts";
import { unreadWords } from "../../core/recall/map/words.ts";
import type { Settings } from "../../core/model/settings.ts";
import { exitInterrupted } from "../failure.ts";
import { mapPlanLines } from "../../format/map.ts";
import { oneLine } from "../../format/safe-text.ts";
import { endAtPlan, isApplying, type applyOptions } from "./_applying.ts";
import { about, anything, list, maybe, object, oneOf, text, whole } from "./_json.ts";
import { tokensMax, wholeNumber, type OptionsOf, type OptionTable, type providerOptions } from "./_options.ts";
import { everywhere, reachFor, type reachOptions } from "./_reach.ts";
import { attend, exitOk, withLcm, type Session } from "./_session.ts";
import { caveats, modelJson, planned } from "./_shapes.ts";
import { stoppedBy } from "./_stopping.ts";
import { demandModel, endUnavailable, findWriter, noteInterruptible, type SummaryWriter } from "./_writer.ts";
import { summaryIdsOf } from "./expand.ts";

/** Options of `lcm map`, and of `lcm ask` with --thorough. */
export const mappingOptions = {
  since: ["--since <time>", "read from this time on: 2026-02-17, '2026-02-17 15:30', yesterday, 2h"],
  before: ["--before <time>", "read until this time"],
  budget: ["--budget <tokens>", "spend at most this many tokens", wholeNumber(1, tokensMax)],
  calls: ["--calls <n>", "make at most this many model calls", wholeNumber(1, 1_000_000)],
  concurrency: [
    "--concurrency <n>",
    "make this many model calls at a time (default: LCM_SUMMARY_CONCURRENCY, 4)",
    wholeNumber(1, 64),
  ],
  fresh: ["--fresh", "ask again what an earlier run was answered"],
} as const satisfies OptionTable;

export type MappingOptions = OptionsOf<typeof mappingOptions> &
  OptionsOf<typeof reachOptions> &
  OptionsOf<typeof providerOptions> & { readonly summary?: readonly string[]; readonly model?: string | false };

interface Mapping {
  readonly writer: SummaryWriter;
  readonly settings: Settings;
  readonly model: Model | null;
}

async function findMapping(session: Session, options: MappingOptions, isCalled: boolean): Promise<Mapping> {
  if (options.model === false)
    throw new LcmError("invalid", "reading every message needs a model", { hint: "leave out --no-model" });
  const { values } = await session.context.settings();
  const settings = { ...values, summaryConcurrency: options.concurrency ?? values.summaryConcurrency };
  const writer = await findWriter(session, { ...options, model: options.model }, settings, true);
  if (isCalled) demandModel(writer, "set its API key, or choose another model with --model");
  return { writer, settings, model: writer.watched?.model ?? null };
}

/** The part of a request that the options above decide. */
async function coverOf(
  session: Session,
  lcm: Lcm,
  options: MappingOptions,
): Promise<Omit<MapRequest, "prompt" | "schema">> {
  const { clock, zone } = session.context;
  const { summary, budget: tokens, calls, fresh } = options;
  const isAnywhere = options.conversation === undefined && options.family === undefined;
  const budget = { ...(tokens !== undefined && { tokens }), ...(calls !== undefined && { calls }) };
  return {
    reach: summary !== undefined && isAnywhere ? await everywhere(lcm) : await reachFor(lcm, options),
    ...(summary !== undefined && { summaryIds: summaryIdsOf(summary) }),
    ...parseSpan(options, zone, clock.now(), "--"),
    ...(tokens === undefined && calls === undefined ? {} : { budget }),
    ...(fresh === true && { fresh }),
    signal: session.signal,
  };
}

interface Steps<Request, Plan, Report> {
  /** From what the options select. The session ends when its time is over. */
  readonly request: (cover: Omit<MapRequest, "prompt" | "schema">) => Request;
  readonly plan: (lcm: Lcm, request: Request) => Promise<Plan>;
  readonly run: (lcm: Lcm, request: Request & { readonly onProgress: (at: AskProgress) => void }) => Promise<Report>;
  /** Prints what was found; returns the exit status. */
  readonly end: (session: Session, lcm: Lcm, report: Report, plan: Plan) => number | Promise<number>;
}

/** Shows the plan and its cost; with --apply, reads everything under a progress line. */
export async function planAndRead<Request, Plan extends MapPlan, Report>(
  session: Session,
  options: MappingOptions & OptionsOf<typeof applyOptions>,
  steps: Steps<Request, Plan, Report>,
): Promise<number | void> {
  const applying = isApplying(options);
  const mapping = await findMapping(session, options, applying);
  const work = async (lcm: Lcm): Promise<number | void> => {
    const request = steps.request(await coverOf(session, lcm, options));
    const { model } = mapping.writer;
    const found = await steps.plan(lcm, request);
    const plan = { ...found, model };
    if (!session.json) for (const line of mapPlanLines(session, found, model, await lcm.spend())) session.print(line);
    if (!applying) return endAtPlan(session, applying, plan, found.messages === 0 ? null : undefined);
    noteInterruptible(session, "what was read is kept");
    const read = async (onProgress: (at: AskProgress) => void) => steps.run(lcm, { ...request, onProgress });
    return await steps.end(session, lcm, await watchMapping(session, mapping, read), plan);
  };
  const { settings, model } = mapping;
  return await withLcm(session, applying ? "write" : "read", work, { settings, model });
}

/** What `--json` prints after a run, and the exit status. */
export function endJson(
  session: Session,
  applied: boolean,
  done: { readonly plan: unknown; readonly result: unknown },
  missing: string | null,
): number {
  session.printJson(planned(anything, anything), { dryRun: false, applied, ...done });
  return endMapping({ ...session, note: () => undefined }, missing);
}

async function watchMapping<T>(
  session: Session,
  { writer }: Mapping,
  work: (onProgress: (at: AskProgress) => void) => Promise<T>,
): Promise<T> {
  const progress = session.progress("reading");
  let at: Extract<AskProgress, { readonly kind: "mapping" }> | null = null;
  const show = (): void => {
    if (at === null) return progress.say(writer.watched?.wait(nameColumns) ?? "reading");
    const { done, of, calls } = at;
    progress.update({ done, of, unit: "messages", detail: writer.watched?.wait(nameColumns) ?? `${calls} calls` });
  };
  return await attend(progress, show, async () =>
    work((now) => {
      if (now.kind === "mapping") at = now;
      show();
    }),
  );
}

const nameColumns = 30;

/** Reports what was not read, as clauses; null if everything was. Returns the exit status. */
export function endMapping(session: Session, words: string | null): number {
  const { signal, note } = session;
  if (words === null) return exitOk;
  const again = "run the same command again to read on; what was read is kept";
  if (signal.aborted && stoppedBy(signal) === "interrupt") {
    note(oneLine(words));
    note(again);
    return exitInterrupted;
  }
  return endUnavailable(session, words, again);
}

export const missingWords = ({ unread, stopped }: Pick<MapReport, "unread" | "stopped">): string | null => {
  const words = unreadWords(unread);
  return words === null || stopped === null ? words : `${stopped}; ${words}`;
};

const spentFields = { calls: whole, inputTokens: whole, outputTokens: whole };
export const spentJson = object(spentFields);

export const planFields = {
  messages: about(whole, "to read"),
  kept: about(whole, "of these, answered by an earlier run"),
  ...spentFields,
  beyond: about(object({ messages: whole, calls: whole, tokens: whole }), "what the budget leaves out"),
  skipped: object({ empty: whole, own_tool: whole, aside: whole, copy: whole }),
  cut: about(whole, "messages of which the middle is not read"),
  files: about(whole, "large contents in files, which are not read"),
  caveats,
  model: maybe(modelJson),
};

export const unreadJson = list(object({ id: whole, reason: oneOf("budget", "stopped", "malformed", "refused") }));
export const fileIdsJson = list(text);
