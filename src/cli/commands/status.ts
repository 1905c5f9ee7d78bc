/** `lcm status`: what there is, how much of it the model sees, who writes summaries and what that cost, what is set. */

import type { Command } from "commander";
import type { Due } from "../../core/compact.ts";
import { LcmError } from "../../core/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { CompactionRecord, Conversation, ConversationId, Timestamp } from "../../core/model.ts";
import type { StoreStatus, UsageTotals } from "../../core/ports.ts";
import { promptTokens } from "../../core/render-summary.ts";
import { settings as settingTable } from "../../core/settings.ts";
import type { ResolvedSettings } from "../../core/settings.ts";
import type { Spend } from "../../core/spend.ts";
import { formatBytes, formatCount, formatTimestamp, msToTimestamp, timestampToMs } from "../../core/text.ts";
import { facts, oneLine, plural } from "../../show/render.ts";
import { dueWords } from "./compact.ts";
import { act, exitOk, withLcm } from "./session.ts";
import type { Backup, CommandContext, PromptFiles, Session } from "./session.ts";
import { examples } from "./options.ts";
import { modelLines } from "./summariser.ts";

export function addStatus(program: Command, context: CommandContext): void {
  program
    .command("status")
    .summary("what is stored, how much of it is in context, what is set")
    .description(
      "Show what is stored, how much of it is in context, whether compaction is due and what the last one saved, which model " +
        "writes summaries and what it was asked for, and which settings are not the default.",
    )
    .addHelpText(
      "after",
      examples(["lcm status", "the database of this user"], ["lcm status --db old.db --json", "another one, as JSON"]),
    )
    .action(act(context, showStatus));
}

const dayMs = 86_400_000;

async function showStatus(session: Session): Promise<number> {
  const settings = changedSettings(await session.context.settings());
  return await withLcm(session, "read", async (lcm) => {
    const conversations = await lcm.store.conversations({ includeHidden: true });
    const status: Status = {
      store: await lcm.store.status(),
      totals: totalsOf(conversations),
      newest: newestOf(conversations),
      pressures: await pressuresOf(lcm),
      lastCompaction: (await lcm.store.compactions(null, 1))[0] ?? null,
      model: await modelOf(session),
      prompts: await session.context.prompts(),
      usage: await lcm.store.usageSince(dayBefore(session.context.clock.now())),
      spend: await lcm.spend(),
      settings,
      backups: session.database.backups(),
    };
    if (session.json) session.printJson(toJson(status));
    else for (const line of toLines(session, status)) session.print(line);
    return exitOk;
  });
}

interface Status {
  readonly store: StoreStatus;
  readonly totals: ReturnType<typeof totalsOf>;
  readonly newest: Conversation | null;
  readonly pressures: readonly Pressure[];
  readonly lastCompaction: CompactionRecord | null;
  readonly model: ConfiguredModel | null;
  readonly prompts: PromptFiles;
  readonly usage: UsageTotals;
  readonly spend: Spend;
  readonly settings: readonly ChangedSetting[];
  readonly backups: readonly Backup[];
}

/** How a conversation stands that a host may be writing to. */
interface Pressure extends Due {
  readonly conversation: ConversationId;
}

/** Who keeps more than these active has a host that looks after the rest. */
const pressuresMax = 200;

async function pressuresOf(lcm: Lcm): Promise<readonly Pressure[]> {
  const pressures: Pressure[] = [];
  for (const { id, lastMessageAt } of await lcm.store.conversations({ active: true, limit: pressuresMax }))
    if (lastMessageAt !== null) pressures.push({ conversation: id, ...(await lcm.due(id)) });
  return pressures;
}

/** What is configured, and what keeps it from being used: a status is shown in either case. */
type ConfiguredModel =
  | { readonly name: string; readonly from: string; readonly problem: string | null }
  | { readonly name: null; readonly problem: string };

async function modelOf({ context }: Session): Promise<ConfiguredModel | null> {
  try {
    const found = await context.summariser();
    return found === null ? null : { name: found.name, from: found.from, problem: await found.check() };
  } catch (error) {
    if (!(error instanceof LcmError)) throw error;
    return { name: null, problem: error.message };
  }
}

const dayBefore = (now: Timestamp): Timestamp => msToTimestamp(timestampToMs(now) - dayMs);

function totalsOf(conversations: readonly Conversation[]): { tokens: number; contextTokens: number; hidden: number } {
  const sum = (of: (conversation: Conversation) => number): number =>
    conversations.reduce((total, conversation) => total + of(conversation), 0);
  return {
    tokens: sum(({ totals }) => totals.messageTokens),
    contextTokens: sum(({ totals }) => promptTokens(totals)),
    hidden: sum(({ hidden }) => Number(hidden)),
  };
}

const newestOf = (conversations: readonly Conversation[]): Conversation | null =>
  conversations.find(({ lastMessageAt }) => lastMessageAt !== null) ?? null;

interface ChangedSetting {
  readonly key: string;
  readonly env: string;
  readonly value: unknown;
  readonly source: string;
}

export function changedSettings({ values, sources }: ResolvedSettings): readonly ChangedSetting[] {
  const keys = Object.keys(settingTable) as readonly (keyof typeof settingTable)[];
  return keys
    .filter((key) => sources[key] !== "default")
    .map((key) => ({ key, env: settingTable[key].env, value: values[key], source: sources[key] }));
}

function toJson(status: Status): unknown {
  const { store, newest, usage, spend, prompts } = status;
  const { hidden, ...tokens } = status.totals;
  return {
    ...store,
    hiddenConversations: hidden,
    ...tokens,
    newestActivity: newest && { conversation: newest.id, at: newest.lastMessageAt },
    due: status.pressures,
    lastCompaction: status.lastCompaction,
    model: status.model,
    prompts: {
      dir: prompts.dir,
      sources: prompts.sources,
      problems: [...prompts.problems].map(([template, { message }]) => ({ template, problem: message })),
    },
    usageLast24h: usage,
    spend,
    settings: status.settings,
    backups: status.backups,
  };
}

function toLines(session: Session, status: Status): readonly string[] {
  const { paint } = session;
  const { store, totals, newest, spend } = status;
  const hidden = totals.hidden === 0 ? "" : paint.soft(` (${totals.hidden} hidden)`);
  return facts(
    [
      ["database", store.path, paint.soft(`${formatBytes(store.bytes)}, schema ${store.schemaVersion}`)],
      ["conversations", formatCount(store.conversations) + hidden],
      ["messages", formatCount(store.messages)],
      ["summaries", summariesLine(session, store)],
      ["files", formatCount(store.files)],
      [
        "tokens",
        `${formatCount(totals.tokens)} stored, ${formatCount(totals.contextTokens)} in context${shareOf(totals)}`,
      ],
      ["newest", newestLine(session, newest)],
      ["due", ...dueLines(session, status.pressures)],
      ["compaction", ...compactionLines(session, status.lastCompaction)],
      ["search", searchLine(session, store)],
      ["model", ...configuredLines(session, status.model)],
      ["prompts", ...promptLines(session, status.prompts)],
      ["model calls", ...callLines(session, status.usage, spend)],
      ["backups", ...backupLines(session, status.backups)],
      ["settings", ...settingLines(session, status.settings)],
    ],
    paint,
    session.context.stdout.columns,
  );
}

const shareOf = ({ tokens, contextTokens }: Status["totals"]): string =>
  tokens === 0 ? "" : ` (${Math.round((contextTokens / tokens) * 100)}%)`;

function newestLine({ context }: Session, newest: Conversation | null): string {
  const at = newest?.lastMessageAt ?? null;
  if (newest === null || at === null) return "no message yet";
  return `${formatTimestamp(at, context.zone)}, in conversation ${newest.id}`;
}

/** What was made without a model is as it should be where there is none; what fell back is said. */
function summariesLine({ paint }: Session, { summaries, belowNormal }: StoreStatus): string {
  const { extractive, ...fallen } = belowNormal;
  const words = Object.entries(fallen).flatMap(([level, count]) =>
    count === 0 ? [] : [`${formatCount(count)} ${level}`],
  );
  const extracted = extractive === 0 ? [] : [paint.soft(`${formatCount(extractive)} extracted`)];
  return [formatCount(summaries), ...extracted, ...words.map((each) => paint.caution(each))].join(", ");
}

const dueShown = 10;

function dueLines({ paint }: Session, pressures: readonly Pressure[]): readonly string[] {
  const due = pressures.filter(({ kind }) => kind !== "nothing");
  const [first, ...others] = pressures;
  const isPressing = due.some(({ kind }) => kind === "sweep");
  const painted = isPressing ? paint.caution : (text: string): string => text;
  if (first === undefined) return ["nothing"];
  if (others.length === 0) return [painted(dueWords(first))];
  if (due.length === 0) return ["nothing"];
  const shown = due.slice(0, dueShown).map(({ conversation, kind, contextTokens }, at) => {
    const unit = at === 0 ? " tokens" : "";
    return `${conversation} (${kind === "sweep" ? kind : "one pass"}, ${formatCount(contextTokens)}${unit})`;
  });
  const more = due.length > dueShown ? [paint.soft(`and ${due.length - dueShown} more; --json lists all`)] : [];
  return [painted(`${plural(due.length, "conversation")}: ${shown.join(", ")}`), ...more];
}

function compactionLines({ paint, context }: Session, last: CompactionRecord | null): readonly string[] {
  if (last === null) return ["none so far"];
  const { at, conversation, outcome } = last;
  const message = oneLine(last.message);
  return [
    `${formatTimestamp(at, context.zone)}, conversation ${conversation}`,
    outcome === "failed" || outcome === "waiting" ? paint.bad(message) : message,
  ];
}

const configuredLines = (session: Session, model: ConfiguredModel | null): readonly string[] =>
  model?.name === null ? [session.paint.bad(model.problem)] : modelLines(session, model);

function promptLines({ paint }: Session, { sources, problems }: PromptFiles): readonly string[] {
  const own = Object.values(sources).filter((source) => source !== "built-in");
  return [
    own.length === 0 ? "built-in" : `${plural(own.length, "file")} of your own; \`lcm prompts\` lists them`,
    ...[...problems.values()].map(({ message }) => paint.bad(message)),
  ];
}

const searchLine = ({ paint }: Session, { unindexed }: StoreStatus): string =>
  unindexed === 0 ? paint.good("up to date") : `${plural(unindexed, "row")} not indexed yet, found all the same`;

function callLines(session: Session, usage: UsageTotals, spend: Spend): readonly string[] {
  const { paint, context } = session;
  const window = spend.windowMinutes === 60 ? "the last hour" : `the last ${plural(spend.windowMinutes, "minute")}`;
  const used = `${formatCount(spend.usage.calls)} of ${formatCount(spend.callsMax)} in ${window}`;
  const isUsedUp = spend.usage.calls >= spend.callsMax;
  return [
    isUsedUp ? paint.bad(`${used}: passes wait, or go on without a model`) : used,
    ...(usage.calls === 0 ? [] : [usageWords(session, usage)]),
    ...spend.breakers.map(({ provider, at, until }) => {
      const [refused, again] = [at, until].map((time) => formatTimestamp(time, context.zone));
      return paint.bad(`${provider} refused the credential at ${refused}; a host asks again from ${again} on`);
    }),
  ];
}

function usageWords({ paint }: Session, usage: UsageTotals): string {
  const failed = usage.failures === 0 ? "" : `, ${paint.bad(`${formatCount(usage.failures)} refused`)}`;
  const open = usage.open === 0 ? "" : `, ${formatCount(usage.open)} without an end`;
  const tokens = `${formatCount(usage.inputTokens)} tokens in, ${formatCount(usage.outputTokens)} out`;
  return `${formatCount(usage.calls)} in the last 24 hours, ${tokens}${failed}${open}`;
}

const backupLines = ({ paint }: Session, backups: readonly Backup[]): readonly string[] =>
  backups.length === 0
    ? ["none"]
    : backups.map(({ path, bytes }) => `${path} ${paint.soft(`(${formatBytes(bytes)})`)}`);

const settingLines = ({ paint }: Session, settings: readonly ChangedSetting[]): readonly string[] =>
  settings.length === 0
    ? ["all default"]
    : settings.map(({ key, env, value, source }) => {
        const from = source === "environment" ? `environment, ${env}` : source;
        return `${key} = ${typeof value === "string" ? value : JSON.stringify(value)} ${paint.soft(`(${from})`)}`;
      });
