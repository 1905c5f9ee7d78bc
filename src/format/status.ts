/** Describes the status of a database: its size, compaction, model, prompts and settings. */

import type { CompactionRecord, Conversation } from "../core/model/types.ts";
import type { StoreStatus, UsageTotals } from "../core/model/store.ts";
import { misplacedWords, type ChangedSetting, type MisplacedSettings } from "../core/model/settings.ts";
import type { Spend } from "../core/model-calls/metering.ts";
import type { DatabaseStatus, Pressure } from "../core/status.ts";
import { modelLines, type NamedModel } from "./model.ts";
import { formatTimestamp, type Timestamp } from "../core/base/time.ts";
import { formatBytes, formatCount, plural } from "../core/base/format.ts";
import type { Due } from "../core/compaction/due.ts";
import { oneLine } from "./safe-text.ts";
import { vectorProblem, vectorRemedy } from "./vectors.ts";
import type { Page } from "./page.ts";

export interface Status extends DatabaseStatus {
  readonly model: ConfiguredModel | null;
  readonly prompts: Prompts;
  readonly settings: readonly ChangedSetting[];
  readonly misplaced: readonly MisplacedSettings[];
  readonly backups: readonly Backup[];
}

/** The configured model; `name` is null if the configuration is wrong. */
export type ConfiguredModel = NamedModel | { readonly name: null; readonly problem: string };

/** The source of each prompt, `built-in` or a path, and why a file cannot be used. */
export interface Prompts {
  readonly sources: Readonly<Record<string, string>>;
  readonly problems: ReadonlyMap<string, { readonly message: string }>;
}

export interface Backup {
  readonly path: string;
  readonly bytes: number;
}

export type Fact = readonly [name: string, ...values: readonly string[]];

export function statusFacts(page: Page, status: Status): readonly Fact[] {
  const { paint } = page;
  const { store, totals, newest, spend } = status;
  const hidden = totals.hidden === 0 ? "" : paint.soft(` (${totals.hidden} hidden)`);
  return [
    ["database", store.path, paint.soft(`${formatBytes(store.bytes)}, schema ${store.schemaVersion}`)],
    ["conversations", formatCount(store.conversations) + hidden],
    ["messages", formatCount(store.messages)],
    ["summaries", summariesLine(page, store)],
    ["files", formatCount(store.files)],
    [
      "tokens",
      `${formatCount(totals.tokens)} stored, ${formatCount(totals.contextTokens)} in context${shareOf(totals)}`,
    ],
    ["newest", newestLine(page, newest)],
    ["due", ...dueLines(page, status.pressures)],
    ["compaction", ...compactionLines(page, status.compactions[0] ?? null)],
    ["search", searchLine(page, store)],
    ...meaningFacts(page, status),
    ["model", ...configuredLines(page, status.model)],
    ["prompts", ...promptLines(page, status.prompts)],
    ["model calls", ...callLines(page, status.usage, spend)],
    ["backups", ...backupLines(page, status.backups)],
    ["settings", ...settingLines(page, status.settings), ...misplacedLines(page, status.misplaced)],
  ];
}

const shareOf = ({ tokens, contextTokens }: Status["totals"]): string =>
  tokens === 0 ? "" : ` (${Math.round((contextTokens / tokens) * 100)}%)`;

function newestLine({ zone }: Page, newest: Conversation | null): string {
  const at = newest?.lastMessageAt ?? null;
  if (newest === null || at === null) return "no messages yet";
  return `${formatTimestamp(at, zone)}, in conversation ${newest.id}`;
}

/** Extracted summaries are normal without a model; fallbacks are highlighted. */
function summariesLine({ paint }: Page, { summaries, belowNormal }: StoreStatus): string {
  const { extractive, ...fallen } = belowNormal;
  const words = Object.entries(fallen).flatMap(([level, count]) =>
    count === 0 ? [] : [`${formatCount(count)} ${level}`],
  );
  const extracted = extractive === 0 ? [] : [paint.soft(`${formatCount(extractive)} extracted`)];
  return [formatCount(summaries), ...extracted, ...words.map((each) => paint.caution(each))].join(", ");
}

export function dueWords({ kind, promptTokens, thresholdTokens, budget, rawTokens }: Due): string {
  const share = budget === 0 ? "" : ` (${Math.round((thresholdTokens / budget) * 100)}% of ${formatCount(budget)})`;
  const prompt = `a prompt of about ${formatCount(promptTokens)} tokens`;
  switch (kind) {
    case "sweep":
      return `a sweep: ${prompt}, above ${formatCount(thresholdTokens)}${share}`;
    case "incremental":
      return `one pass: ${formatCount(rawTokens)} raw tokens outside the fresh tail`;
    case "nothing":
      return `nothing: ${prompt}, within ${formatCount(thresholdTokens)}${share}`;
  }
}

const dueShown = 10;

function dueLines({ paint }: Page, pressures: readonly Pressure[]): readonly string[] {
  const due = pressures.filter(({ kind }) => kind !== "nothing");
  const [first, ...others] = pressures;
  const isPressing = due.some(({ kind }) => kind === "sweep");
  const painted = isPressing ? paint.caution : (text: string): string => text;
  if (first === undefined) return ["nothing"];
  if (others.length === 0) return [painted(dueWords(first))];
  if (due.length === 0) return ["nothing"];
  const shown = due.slice(0, dueShown).map(({ conversation, kind, promptTokens }, at) => {
    const unit = at === 0 ? " tokens" : "";
    return `${conversation} (${kind === "sweep" ? kind : "one pass"}, ${formatCount(promptTokens)}${unit})`;
  });
  const more = due.length > dueShown ? [paint.soft(`and ${due.length - dueShown} more; --json lists all`)] : [];
  return [painted(`${plural(due.length, "conversation")}: ${shown.join(", ")}`), ...more];
}

function compactionLines({ paint, zone }: Page, last: CompactionRecord | null): readonly string[] {
  if (last === null) return ["none yet"];
  const { at, conversation, outcome } = last;
  const message = oneLine(last.message);
  return [
    `${formatTimestamp(at, zone)}, conversation ${conversation}`,
    outcome === "failed" || outcome === "waiting" ? paint.bad(message) : message,
  ];
}

const configuredLines = (page: Page, model: ConfiguredModel | null): readonly string[] =>
  model?.name === null ? [page.paint.bad(model.problem)] : modelLines(page, model);

function promptLines({ paint }: Page, { sources, problems }: Status["prompts"]): readonly string[] {
  const own = Object.values(sources).filter((source) => source !== "built-in");
  return [
    own.length === 0 ? "built-in" : `${plural(own.length, "custom file")}; \`lcm prompts\` lists them`,
    ...[...problems.values()].map(({ message }) => paint.bad(message)),
  ];
}

const searchLine = ({ paint }: Page, { unindexed }: StoreStatus): string =>
  unindexed === 0
    ? paint.good("up to date")
    : `${plural(unindexed, "row")} not indexed yet; each search reads up to 2,000 of them`;

/** Nothing is said where no embedding model was ever used. */
function meaningFacts({ paint, typed, zone }: Page, { embedder, store }: Status): readonly Fact[] {
  const { vectors, embedders } = store;
  if (embedder === null && vectors.length === 0) return [];
  const made = vectors.map(({ model, made, pending, bytes }) => {
    const left = pending === 0 ? paint.good("complete") : `${formatCount(pending)} to do`;
    return `${oneLine(model)}: ${plural(made, "message")}, ${left} ${paint.soft(`(${formatBytes(bytes)})`)}`;
  });
  const problem = vectorProblem(embedder, store);
  const failure = embedders.findLast(({ name }) => embedder !== null && name === embedder)?.failure ?? null;
  const at = embedders.findLast(({ name }) => name === embedder)?.at;
  return [
    [
      "meaning",
      embedder === null ? `off; remove its vectors with \`${typed("lcm index --drop-vectors")}\`` : oneLine(embedder),
      ...(made.length > 0 ? made : [`no vectors yet; make them with \`${typed("lcm index")}\``]),
      ...(problem === null || embedder === null || made.length === 0
        ? []
        : [paint.caution(`${problem}; \`${typed(vectorRemedy(embedder))}\` makes them`)]),
      ...(failure === null || at === undefined
        ? []
        : [paint.bad(`failed at ${formatTimestamp(at, zone)}: ${oneLine(failure)}`)]),
    ],
  ];
}

function callLines(page: Page, usage: UsageTotals, spend: Spend): readonly string[] {
  const { paint, zone } = page;
  const window = spend.windowMinutes === 60 ? "the last hour" : `the last ${plural(spend.windowMinutes, "minute")}`;
  const used = `${formatCount(spend.usage.calls)} of ${formatCount(spend.callsMax)} in ${window}`;
  const isUsedUp = spend.usage.calls >= spend.callsMax;
  return [
    isUsedUp ? paint.bad(`${used}: passes wait, or run without a model`) : used,
    ...(usage.calls === 0 ? [] : [usageWords(page, usage)]),
    ...(usage.embedCalls === 0 ? [] : [embeddingWords(usage)]),
    ...spend.breakers.map(({ provider, at, until }) => {
      const [refused, again] = [at, until].map((time) => formatTimestamp(time, zone));
      return paint.bad(`${provider} rejected the credential at ${refused}; the host retries after ${again}`);
    }),
  ];
}

function usageWords({ paint }: Page, usage: UsageTotals): string {
  const failed = usage.failures === 0 ? "" : `, ${paint.bad(`${formatCount(usage.failures)} refused`)}`;
  const open = usage.open === 0 ? "" : `, ${formatCount(usage.open)} unfinished`;
  const tokens = `${formatCount(usage.inputTokens)} tokens in, ${formatCount(usage.outputTokens)} out`;
  return `${formatCount(usage.calls)} in the last 24 hours, ${tokens}${failed}${open}`;
}

const embeddingWords = ({ embedCalls, embedTokens }: UsageTotals): string =>
  `${formatCount(embedCalls)} of the embedding model in the last 24 hours, ${formatCount(embedTokens)} tokens in`;

const backupLines = ({ paint }: Page, backups: readonly Backup[]): readonly string[] =>
  backups.length === 0
    ? ["none"]
    : backups.map(({ path, bytes }) => `${oneLine(path)} ${paint.soft(`(${formatBytes(bytes)})`)}`);

const settingLines = ({ paint }: Page, settings: readonly ChangedSetting[]): readonly string[] =>
  settings.length === 0
    ? ["all defaults"]
    : settings.map(({ key, env, value, source }) => {
        const from = source === "environment" ? `environment, ${env}` : source;
        return `${key} = ${typeof value === "string" ? value : JSON.stringify(value)} ${paint.soft(`(${from})`)}`;
      });

const misplacedLines = ({ paint }: Page, misplaced: readonly MisplacedSettings[]): readonly string[] =>
  misplaced.map((each) => paint.caution(oneLine(misplacedWords(each))));

/** What the hooks of coding agents could not do; they themselves must stay silent. */
export function companionFacts(
  { paint, zone }: Page,
  problems: readonly {
    readonly at: Timestamp;
    readonly host: string;
    readonly doing: string;
    readonly message: string;
  }[],
  log: string,
): readonly Fact[] {
  const newest = problems.at(-1);
  if (newest === undefined) return [];
  const { at, host, doing, message } = newest;
  return [
    [
      "hooks",
      `${plural(problems.length, "problem")} in ${oneLine(log)}`,
      paint.caution(`${formatTimestamp(at, zone)}, ${oneLine(host)}, while ${oneLine(doing)}: ${oneLine(message)}`),
    ],
  ];
}
