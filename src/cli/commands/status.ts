/** `lcm status`: shows what is stored, what is in context, the model and its usage, and changed settings. */

import { LcmError } from "../../core/base/errors.ts";
import { changedSettings } from "../../core/model/settings.ts";
import { readStatus } from "../../core/status.ts";
import { companionFacts, statusFacts, type ConfiguredModel, type Fact, type Status } from "../../format/status.ts";
import { problemLogOf, readProblems, type Problem } from "../../hosts/shared/problem-log.ts";
import { anything, flag, list, maybe, object, type TypeOf, record, text, time, whole, either, oneOf } from "./_json.ts";
import { backupFields, dueFields, misplacedJson, modelJson, usageJson } from "./_shapes.ts";
import { defineCommand, withLcm, type PromptFiles, type Session } from "./_session.ts";
import { facts } from "../../format/table.ts";

const json = object({
  path: text,
  schemaVersion: whole,
  bytes: whole,
  conversations: whole,
  messages: whole,
  summaries: whole,
  files: whole,
  belowNormal: record(whole),
  unindexed: whole,
  embedder: maybe(text),
  vectors: list(object({ model: text, made: whole, pending: whole, bytes: whole })),
  embedders: list(object({ name: text, embedded: whole, failure: maybe(text), at: time })),
  hiddenConversations: whole,
  tokens: whole,
  contextTokens: whole,
  newestActivity: maybe(object({ conversation: whole, at: maybe(time) })),
  due: list(object({ conversation: whole, ...dueFields })),
  lastCompaction: maybe(
    object({
      conversation: whole,
      at: time,
      mode: text,
      asked: flag,
      outcome: text,
      message: text,
      tokensBefore: whole,
      tokensAfter: whole,
      passes: whole,
      durationMs: whole,
    }),
  ),
  model: maybe(either(modelJson, object({ name: maybe(text), problem: text }))),
  prompts: object({
    dir: text,
    sources: record(text),
    problems: list(object({ template: text, problem: text })),
  }),
  usageLast24h: usageJson,
  spend: object({
    windowMinutes: whole,
    callsMax: whole,
    usage: usageJson,
    breakers: list(object({ provider: text, at: time, until: time })),
  }),
  settings: list(object({ key: text, env: text, value: anything, source: text })),
  misplacedSettings: misplacedJson,
  backups: list(object({ "kind?": oneOf("backup", "set-aside"), ...backupFields })),
  companionProblems: list(object({ at: time, host: text, doing: text, message: text })),
});

export const statusCommand = defineCommand({
  name: "status",
  json,
  summary: "show what is stored, what is in context, and which settings apply",
  description:
    "Show what is stored, how much of it is in context, whether compaction is due and what the last one saved, which model " +
    "writes summaries and how much it was used, and which settings differ from their defaults.",
  examples: [
    ["lcm status", "your own database"],
    ["lcm status --db old.db --json", "another database, as JSON"],
  ],
  async run(session) {
    const resolved = await session.context.settings();
    const settings = changedSettings(resolved);
    return await withLcm(session, "read", async (lcm) => {
      const status = {
        ...(await readStatus(lcm)),
        model: await modelOf(session),
        prompts: await session.context.prompts(),
        settings,
        misplaced: resolved.misplaced,
        backups: session.database.backups(),
        companionProblems: readProblems(problemLogOf(session.database.place.nearby)),
      };
      if (session.json) session.printJson(json, toJson(status));
      else
        for (const line of facts(factsOf(session, status), session.paint, session.context.stdout.columns))
          session.print(line);
    });
  },
});

type CommandStatus = Status & {
  readonly prompts: PromptFiles;
  readonly companionProblems: readonly Problem[];
};

const factsOf = (session: Session, status: CommandStatus): readonly Fact[] => [
  ...statusFacts(session, status),
  ...companionFacts(session, status.companionProblems, problemLogOf(session.database.place.nearby)),
];

async function modelOf({ context }: Session): Promise<ConfiguredModel | null> {
  try {
    const found = await context.summariser();
    return found === null ? null : { name: found.name, from: found.from, problem: await found.check() };
  } catch (error) {
    if (!(error instanceof LcmError)) throw error;
    return { name: null, problem: error.message };
  }
}

function toJson(status: CommandStatus): TypeOf<typeof json> {
  const { store, newest, usage, spend, prompts } = status;
  const { hidden, ...tokens } = status.totals;
  return {
    ...store,
    hiddenConversations: hidden,
    ...tokens,
    newestActivity: newest && { conversation: newest.id, at: newest.lastMessageAt },
    due: status.pressures,
    lastCompaction: status.compactions[0] ?? null,
    model: status.model,
    embedder: status.embedder,
    prompts: {
      dir: prompts.dir,
      sources: prompts.sources,
      problems: [...prompts.problems].map(([template, { message }]) => ({ template, problem: message })),
    },
    usageLast24h: usage,
    spend,
    settings: status.settings,
    misplacedSettings: status.misplaced,
    backups: status.backups,
    companionProblems: status.companionProblems,
  };
}
