/** `lcm ask`: answers a question from stored conversations, with the ids of its sources. */

import type { AskProgress } from "../../core/recall/ask-types.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import { askWithin } from "../../agent-tools/expand-query.ts";
import { progressWords } from "../../agent-tools/text.ts";
import { answerLines, caveatWords, sourcesOf } from "../../format/answer.ts";
import { summaryIdsOf } from "./expand.ts";
import {
  collected,
  providerOptions,
  seconds,
  tokensMax,
  wholeNumber,
  type OptionsOf,
  type OptionTable,
} from "./_options.ts";
import { everywhere, reachFor, reachOptions } from "./_reach.ts";
import { about, flag, list, maybe, object, oneOf, text, whole } from "./_json.ts";
import { caveats } from "./_shapes.ts";
import { attend, defineCommand, withLcm, type Session, type Summariser } from "./_session.ts";
import { plural } from "../../core/base/format.ts";
import { facts } from "../../format/table.ts";
import { oneLine } from "../../format/safe-text.ts";

const flags = {
  query: ["--query <words>", "search for these words instead of those in the question"],
  summary: ["--summary <id>", "read below this summary instead of searching; repeatable", collected],
  also: ["--also <words>", "search for this wording too; repeatable, up to 5", collected],
  ...reachOptions,
  maxTokens: [
    "--max-tokens <n>",
    "limit the answer to this many tokens (default: 2,000; without a model 600)",
    wholeNumber(1, tokensMax),
  ],
  tokens: [
    "--tokens <n>",
    "read at most this many tokens (default: LCM_MAX_EXPAND_TOKENS, 4,000)",
    wholeNumber(1, tokensMax),
  ],
  model: [
    ["--model <name>", "answer with this model, named as provider/model"],
    ["--no-model", "call no model: show the passages that match"],
  ],
  ...providerOptions,
  timeout: ["--timeout <seconds>", "answer within this time (default: LCM_EXPAND_TIMEOUT_SECONDS, 120)", seconds],
} as const satisfies OptionTable;

type AskOptions = OptionsOf<typeof flags>;

const json = object({
  answer: text,
  citedIds: about(list(text), "summaries"),
  citedMessages: list(whole),
  expandedSummaryCount: whole,
  totalSourceTokens: whole,
  truncated: flag,
  by: oneOf("model", "delegate", "excerpts"),
  partial: about(maybe(text), "why the answer is incomplete"),
  caveats,
});

export const askCommand = defineCommand({
  name: "ask",
  json,
  summary: "ask a question about past conversations",
  description:
    "Ask a question about past conversations. Matching passages are given to the model, which can read further down, and " +
    "the answer cites the ids of its sources. Without a model, the passages themselves are shown.",
  arguments: [["<question...>", "the question; quotes are optional"]],
  options: flags,
  exclusive: [["conversation", "family"]],
  examples: [
    ["lcm ask why did we choose postgres", "answer with sources"],
    ["lcm ask 'what is left to do?' --conversation 3", "search one conversation"],
    ["lcm ask 'which port?' --query 'staging server'", "search for words other than those in the question"],
  ],
  notes:
    "The model comes from --model, else LCM_SUMMARY_MODEL, else OpenClaw's config. After Ctrl-C or --timeout, the answer " +
    "is what was found so far.",
  run: ask,
});

/** Of passages without an answer, a person reads less. */
const passageTokens = 600;

async function ask(session: Session, options: AskOptions, ...words: readonly string[]): Promise<void> {
  const question = words.join(" ");
  if (question.trim() === "") throw new LcmError("invalid", "the question is empty", { hint: "pass a question" });
  const { values } = await session.context.settings();
  const settings = { ...values, expandTimeoutSeconds: options.timeout ?? values.expandTimeoutSeconds };
  const summariser =
    options.model === false ? null : await session.context.summariser({ ...options, model: options.model });
  const model = summariser === null ? null : await summariser.create(settings);
  const work = async (lcm: Lcm): Promise<void> => {
    const maxTokens = options.maxTokens ?? (summariser === null ? passageTokens : undefined);
    const answered = await answerTo(session, lcm, question, { ...options, ...(maxTokens && { maxTokens }) });
    if (session.json) session.printJson(json, answered.answer);
    else print(session, answered, summariser);
  };
  return await withLcm(session, "search", work, { settings, model });
}

async function answerTo(session: Session, lcm: Lcm, prompt: string, options: AskOptions) {
  const { query, summary, also, maxTokens, tokens: tokenCap } = options;
  const question = {
    prompt,
    reach: async () =>
      summary !== undefined && isAnywhere(options) ? await everywhere(lcm) : await reachFor(lcm, options),
    ...(summary === undefined ? { query: query ?? prompt } : { summaryIds: summaryIdsOf(summary) }),
    ...(query === undefined ? {} : { query }),
    ...(also === undefined ? {} : { also }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(tokenCap === undefined ? {} : { tokenCap }),
  };
  const context = { lcm, reader: { conversation: null, policy: "all" }, zone: session.context.zone } as const;
  const lateMs = performance.now() + lcm.settings.expandTimeoutSeconds * 1_000 * lateShare;
  return await watch(session, async (signal, onProgress) => ({
    answer: await askWithin(question, { ...context, signal, onProgress }),
    isInterrupted: signal.aborted,
    /** Whether the timeout probably cut the answer short. */
    isLate: performance.now() > lateMs,
  }));
}

/** An answer after this share of its time was probably cut short. */
const lateShare = 0.9;

const isAnywhere = ({ conversation, family }: AskOptions): boolean =>
  conversation === undefined && family === undefined;

async function watch<T>(
  session: Session,
  work: (signal: AbortSignal, onProgress: (at: AskProgress) => void) => Promise<T>,
): Promise<T> {
  const progress = session.progress("lcm ask");
  const startedMs = performance.now();
  let words = "";
  const show = (): void => progress.say(`${Math.floor((performance.now() - startedMs) / 1_000)} s  ${oneLine(words)}`);
  const onProgress = (at: AskProgress): void => {
    words = progressWords(at);
    show();
  };
  return await attend(progress, show, async () => await work(session.signal, onProgress));
}

function print(
  session: Session,
  { answer, isInterrupted, isLate }: Awaited<ReturnType<typeof answerTo>>,
  summariser: Summariser | null,
): void {
  const { paint, note } = session;
  const caution = (words: string): void => note(`${paint.caution("note:")} ${oneLine(words)}`);
  for (const line of answerLines(session, answer)) session.print(line);
  const sources = sourcesOf(answer);
  if (sources.length > 0) session.print();
  for (const line of facts([["sources", ...lookupCommands(sources)]], paint, null)) session.print(line);
  for (const caveat of answer.caveats) caution(caveatWords(caveat));
  if (answer.truncated) caution("the answer was cut; raise --max-tokens for a longer one");
  if (isInterrupted) caution("interrupted: this is what was found so far");
  else if (answer.partial !== null && summariser !== null) {
    caution(answer.partial);
    note(`${paint.soft("hint:")} ${isLate ? "raise --timeout" : "check the model with `lcm status`"}`);
  }
  if (answer.totalSourceTokens === 0) return;
  const read = `${plural(answer.totalSourceTokens, "token")} read`;
  if (answer.by !== "excerpts") return note(paint.soft(`${read}; answered by ${summariser?.name ?? "a model"}`));
  note(paint.soft(`${read}; \`lcm describe ID\` shows the whole text of a passage`));
  if (summariser === null) note(paint.soft("to get an answer instead of passages, set --model or LCM_SUMMARY_MODEL"));
}

const sourcesMax = 8;

function lookupCommands(sources: readonly string[]): readonly string[] {
  const more = sources.length - sourcesMax;
  const commands = sources.slice(0, sourcesMax).map((id) => `lcm describe ${id}`);
  return more > 0 ? [...commands, `and ${more} more; --json lists them all`] : commands;
}
