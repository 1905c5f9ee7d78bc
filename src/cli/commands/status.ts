/** `lcm status`: what there is, how much of it the model sees, and what is set. */

import type { Command } from "commander";
import type { Conversation, Timestamp } from "../../core/model.ts";
import type { StoreStatus, UsageTotals } from "../../core/ports.ts";
import { settings as settingTable } from "../../core/settings.ts";
import type { ResolvedSettings } from "../../core/settings.ts";
import { formatBytes, formatCount, formatTimestamp, msToTimestamp, timestampToMs } from "../../core/text.ts";
import { facts, plural } from "../render.ts";
import { act, exitOk, withLcm } from "./context.ts";
import type { Backup, CommandContext, Session } from "./context.ts";
import { examples } from "./options.ts";

export function addStatus(program: Command, context: CommandContext): void {
  program
    .command("status")
    .summary("what is stored, how much of it is in context, what is set")
    .description("Show what is stored, how much of it is in context, and which settings are not the default.")
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
    const store = await lcm.store.status();
    const conversations = await lcm.store.conversations({ includeHidden: true });
    const usage = await lcm.store.usageSince(dayBefore(session.context.clock.now()));
    const backups = session.database.backups();
    const status = {
      store,
      totals: totalsOf(conversations),
      newest: newestOf(conversations),
      usage,
      settings,
      backups,
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
  readonly usage: UsageTotals;
  readonly settings: readonly ChangedSetting[];
  readonly backups: readonly Backup[];
}

const dayBefore = (now: Timestamp): Timestamp => msToTimestamp(timestampToMs(now) - dayMs);

function totalsOf(conversations: readonly Conversation[]): { tokens: number; contextTokens: number; hidden: number } {
  const sum = (of: (conversation: Conversation) => number): number =>
    conversations.reduce((total, conversation) => total + of(conversation), 0);
  return {
    tokens: sum(({ totals }) => totals.messageTokens),
    contextTokens: sum(({ totals }) => totals.contextTokens),
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

function changedSettings({ values, sources }: ResolvedSettings): readonly ChangedSetting[] {
  const keys = Object.keys(settingTable) as readonly (keyof typeof settingTable)[];
  return keys
    .filter((key) => sources[key] !== "default")
    .map((key) => ({ key, env: settingTable[key].env, value: values[key], source: sources[key] }));
}

function toJson({ store, totals, newest, usage, settings, backups }: Status): unknown {
  const { hidden, ...tokens } = totals;
  return {
    ...store,
    hiddenConversations: hidden,
    ...tokens,
    newestActivity: newest === null ? null : { conversation: newest.id, at: newest.lastMessageAt },
    usageLast24h: usage,
    settings,
    backups,
  };
}

function toLines(session: Session, { store, totals, newest, usage, settings, backups }: Status): readonly string[] {
  const { paint, context } = session;
  const hidden = totals.hidden === 0 ? "" : paint.soft(` (${totals.hidden} hidden)`);
  return facts(
    [
      ["database", store.path, paint.soft(`${formatBytes(store.bytes)}, schema ${store.schemaVersion}`)],
      ["conversations", formatCount(store.conversations) + hidden],
      ["messages", formatCount(store.messages)],
      ["summaries", formatCount(store.summaries)],
      ["files", formatCount(store.files)],
      [
        "tokens",
        `${formatCount(totals.tokens)} stored, ${formatCount(totals.contextTokens)} in context${shareOf(totals)}`,
      ],
      ["newest", newestLine(newest, context.zone)],
      ["search", searchLine(session, store)],
      ["model calls", usageLine(session, usage)],
      ["backups", ...backupLines(session, backups)],
      ["settings", ...settingLines(session, settings)],
    ],
    paint,
  );
}

const shareOf = ({ tokens, contextTokens }: Status["totals"]): string =>
  tokens === 0 ? "" : ` (${Math.round((contextTokens / tokens) * 100)}%)`;

const newestLine = (newest: Conversation | null, zone: string): string =>
  newest === null || newest.lastMessageAt === null
    ? "no message yet"
    : `${formatTimestamp(newest.lastMessageAt, zone)}, in conversation ${newest.id}`;

const searchLine = ({ paint }: Session, { unindexed }: StoreStatus): string =>
  unindexed === 0 ? paint.good("up to date") : `${plural(unindexed, "row")} not indexed yet, found all the same`;

function usageLine({ paint }: Session, usage: UsageTotals): string {
  if (usage.calls === 0) return "none in the last 24 hours";
  const failed = usage.failures === 0 ? "" : `, ${paint.bad(`${usage.failures} failed`)}`;
  const tokens = `${formatCount(usage.inputTokens)} tokens in, ${formatCount(usage.outputTokens)} out`;
  return `${formatCount(usage.calls)} in the last 24 hours, ${tokens}${failed}`;
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
