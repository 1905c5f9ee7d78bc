/** `lcm ask`: a question, answered from what was said, with the ids of what the answer is taken from. */

import type { Answer, AskProgress } from "../../core/recall/ask-types.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import { messageName } from "../../core/model/types.ts";
import type { SearchCaveat } from "../../core/model/store.ts";
import { caveatSentence } from "../../core/recall/grep.ts";
import { askWithin } from "../../agent-tools/expand-query.ts";
import { progressWords } from "../../agent-tools/text.ts";
import { textLines } from "../../format/passages.ts";
import { summaryIdsOf } from "./expand.ts";
import { seconds, tokensMax, wholeNumber } from "./_options.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import { everywhere, reachFor, reachOptions } from "./_reach.ts";
import { attend, defineCommand, withLcm } from "./_session.ts";
import type { Session, Summariser } from "./_session.ts";
import { plural } from "../../core/base/format.ts";
import { facts } from "../../format/table.ts";
import { oneLine } from "../../format/safe-text.ts";

const collect = (id: string, before?: unknown): readonly string[] => [...(Array.isArray(before) ? before : []), id];

const flags = {
  query: ["--query <words>", "find passages by these words instead of the question's own"],
  summary: ["--summary <id>", "read below this summary instead of searching; may be said several times", collect],
  ...reachOptions,
  maxTokens: [
    "--max-tokens <n>",
    "how long the answer may be (default: 2,000; without a model 600)",
    wholeNumber(1, tokensMax),
  ],
  tokens: ["--tokens <n>", "how much may be read (default: LCM_MAX_EXPAND_TOKENS, 4,000)", wholeNumber(1, tokensMax)],
  model: [
    ["--model <name>", "which model answers, as provider/model"],
    ["--no-model", "use none: show the passages that speak of it"],
  ],
  timeout: ["--timeout <seconds>", "answer after this long (default: LCM_EXPAND_TIMEOUT_SECONDS, 120)", seconds],
} as const satisfies OptionTable;

type AskOptions = OptionsOf<typeof flags>;

export const askCommand = defineCommand({
  name: "ask",
  summary: "ask a question about what was said",
  description:
    "Ask a question about what was said. What speaks of it is found and given to the model, which may read further " +
    "down, and the answer names the ids it is taken from. Without a model you get the passages themselves.",
  arguments: [["<question...>", "what you want to know; several words need no quotes"]],
  options: flags,
  exclusive: [["conversation", "family"]],
  examples: [
    ["lcm ask why did we choose postgres", "an answer with its sources"],
    ["lcm ask 'what is left to do?' --conversation 3", "of one conversation"],
    ["lcm ask 'which port?' --query 'staging server'", "found by other words than the question's"],
  ],
  notes:
    "The model is the one of --model, else of LCM_SUMMARY_MODEL, else of OpenClaw's config. Ctrl-C and --timeout end " +
    "it with what has been found until then.",
  run: ask,
});

/** As many passages as one cares to read; a model's answer is as long as it needs to be. */
const passageTokens = 600;

async function ask(session: Session, options: AskOptions, ...words: readonly string[]): Promise<void> {
  const question = words.join(" ");
  if (question.trim() === "") throw new LcmError("invalid", "the question is empty", { hint: "name what to look for" });
  const { values } = await session.context.settings();
  const settings = { ...values, expandTimeoutSeconds: options.timeout ?? values.expandTimeoutSeconds };
  const summariser = options.model === false ? null : await session.context.summariser({ model: options.model });
  const model = summariser === null ? null : await summariser.create(settings);
  const work = async (lcm: Lcm): Promise<void> => {
    const maxTokens = options.maxTokens ?? (summariser === null ? passageTokens : undefined);
    const answered = await answerTo(session, lcm, question, { ...options, ...(maxTokens && { maxTokens }) });
    if (session.json) session.printJson(answered.answer);
    else print(session, answered, summariser);
  };
  return await withLcm(session, "search", work, { settings, model });
}

async function answerTo(session: Session, lcm: Lcm, prompt: string, options: AskOptions) {
  const { query, summary, maxTokens, tokens: tokenCap } = options;
  const question = {
    prompt,
    reach: async () =>
      summary !== undefined && isAnywhere(options) ? await everywhere(lcm) : await reachFor(lcm, options),
    ...(summary === undefined ? { query: query ?? prompt } : { summaryIds: summaryIdsOf(summary) }),
    ...(query === undefined ? {} : { query }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(tokenCap === undefined ? {} : { tokenCap }),
  };
  const context = { lcm, reader: { conversation: null, policy: "all" }, zone: session.context.zone } as const;
  const lateMs = performance.now() + lcm.settings.expandTimeoutSeconds * 1_000 * lateShare;
  return await watch(session, async (signal, onProgress) => ({
    answer: await askWithin(question, { ...context, signal, onProgress }),
    isInterrupted: signal.aborted,
    /** Whether more time might have helped. */
    isLate: performance.now() > lateMs,
  }));
}

/** An answer that comes when this much of its time is gone came because of that. */
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
  return await attend(session, progress, show, async (signal) => await work(signal, onProgress));
}

// ── Showing it ───────────────────────────────────────────────────────────────────────────────────────────────────────

function print(
  session: Session,
  { answer, isInterrupted, isLate }: Awaited<ReturnType<typeof answerTo>>,
  summariser: Summariser | null,
): void {
  const { paint, note } = session;
  const caution = (words: string): void => note(`${paint.caution("note:")} ${oneLine(words)}`);
  for (const line of answerLines(session, answer)) session.print(line);
  // Passages have their ids beside them.
  const sources = answer.by === "excerpts" ? [] : [...answer.citedIds, ...answer.citedMessages.map(messageName)];
  if (sources.length > 0) session.print();
  for (const line of facts([["taken from", ...lookedUpBy(sources)]], paint, null)) session.print(line);
  for (const caveat of answer.caveats) caution(caveatWords(caveat));
  if (answer.truncated) caution("there was more to tell; --max-tokens allows a longer answer");
  if (isInterrupted) caution("interrupted: this is what had been found until then");
  else if (answer.partial !== null && summariser !== null) {
    caution(answer.partial);
    note(`${paint.soft("hint:")} ${isLate ? "--timeout gives it longer" : "`lcm status` tells about the model"}`);
  }
  if (answer.totalSourceTokens === 0) return;
  const read = `${plural(answer.totalSourceTokens, "token")} read`;
  if (answer.by !== "excerpts") return note(paint.soft(`${read}; answered by ${summariser?.name ?? "a model"}`));
  note(paint.soft(`${read}; \`lcm describe ID\` shows any of these whole`));
  if (summariser === null)
    note(paint.soft("these are passages: --model or LCM_SUMMARY_MODEL names a model that answers"));
}

/** A passage is quoted for a model; to a person it is shown as all stored text is. */
const answerLines = (session: Session, { answer, by }: Answer): readonly string[] =>
  answer
    .split("\n")
    .flatMap((line) =>
      by === "excerpts" && line.startsWith(">")
        ? textLines(session, line.replace(/^> ?/, ""))
        : textLines(session, line, ""),
    );

const sourcesMax = 8;

function lookedUpBy(sources: readonly string[]): readonly string[] {
  const more = sources.length - sourcesMax;
  const commands = sources.slice(0, sourcesMax).map((id) => `lcm describe ${id}`);
  return more > 0 ? [...commands, `and ${more} more, which --json lists`] : commands;
}

/** Files are searched by another command than this. */
const caveatWords = (caveat: SearchCaveat): string =>
  caveat.kind === "files"
    ? `${plural(caveat.files, "large text")} in files not searched; \`lcm grep --scope files\` does that`
    : caveatSentence(caveat, "flags");
