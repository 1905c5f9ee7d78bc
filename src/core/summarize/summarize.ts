/**
 * Drafting: source text becomes the text of a summary, by one of four levels. A model is asked for it; when its answer
 * is of no use it is asked once more, for less; when that is of no use either, the most telling sentences are taken,
 * which always works. Whatever comes out is shorter than its source, under its cap, free of reasoning, and says by
 * which level it was made.
 *
 * An answer can be bad because of the text or because of the provider. The first is met here, level by level; the
 * second is the caller's to decide: wait for the provider, or go on without it.
 */

import { readAnswer } from "../model-calls/read-answer.ts";
import { extract } from "./extractive.ts";
import type { Passage } from "./extractive.ts";
import type { CallPurpose, ConversationId, FileId, NewSummary, Refusal } from "../model/types.ts";
import type { Completion, Model } from "../model/store.ts";
import { expandFooter, renderPrompt } from "../prompts/summary.ts";
import type { Prompt, Templates } from "../prompts/summary.ts";
import type { Settings } from "../model/settings.ts";
import { sourceText } from "./source-text.ts";
import { completeWithin } from "../model-calls/metering.ts";
import { estimateTokens } from "../base/tokens.ts";
import { renderedTokens } from "../base/escape.ts";
import { closeWithFooter, isEcho } from "./check-summary.ts";

export interface SummarizeDeps {
  readonly model: Model | null;
  readonly settings: Settings;
  readonly templates: Templates;
}

export interface Source {
  readonly conversation: ConversationId;
  /** Of the summary to be made. */
  readonly depth: number;
  readonly passages: readonly Passage[];
  /** What the run takes in the context. The summary must be shorter than this, less what is put around a summary. */
  readonly tokens: number;
  readonly overheadTokens: number;
  /** How long the summary should be. */
  readonly targetTokens: number;
  readonly previousContext: string | null;
  readonly fileIds: readonly FileId[];
}

export type Drafted =
  | { readonly kind: "drafted"; readonly summary: NewSummary }
  /** Provider trouble: nothing was drafted. */
  | { readonly kind: "refused"; readonly refusal: Refusal; readonly message: string }
  /** No level is shorter than the source. */
  | { readonly kind: "incompressible" };

export interface SummarizeOptions {
  readonly signal?: AbortSignal;
  /** What comes with this one request; the setting holds besides. */
  readonly customInstructions?: string | null;
  /** What provider trouble leads to: wait (a refusal), or go on without the model. */
  readonly onRefusal: "wait" | "extract";
  readonly purpose?: CallPurpose;
}

/** Marks a text that was taken from its source because no model could shorten it. */
const truncationMarker = "[Truncated for context management]";
const truncatedTokensMax = 512;

/** Below this no sentence and its last line fit, so that asking a model would only cost. */
const askableTokensMin = 16;

export async function summarize(deps: SummarizeDeps, source: Source, options: SummarizeOptions): Promise<Drafted> {
  const target = source.targetTokens;
  const { model } = deps;
  if (model === null || unaskable(source) !== null) return extracted(source, "extractive", target);
  const outcome = await draftWithModel({ ...deps, model }, source, options);
  if (outcome.kind === "drafted") return outcome;
  if (outcome.kind === "unusable") return extracted(source, "truncated", Math.min(target, truncatedTokensMax));
  return options.onRefusal === "wait" ? outcome : extracted(source, "extractive", target);
}

/** Why no model is asked about a source; null if one may be. */
function unaskable(source: Source): string | null {
  if (capOf(source, source.targetTokens) < askableTokensMin) return "what it stands for is too short to be summarised";
  return saysAnything(source) ? null : "what it stands for has no words";
}

/** Tool results without a word, pictures: no model could say what they are about. */
const saysAnything = ({ passages }: Source): boolean =>
  passages.some(({ text }) => /[\p{L}\p{N}]/u.test(text.replaceAll(/\[[^\]]*\]/g, "")));

/** The most tokens a summary with this target may have. */
const capOf = (source: Source, target: number): number =>
  Math.min(Math.floor(1.5 * target), source.tokens - source.overheadTokens - 1);

// ── With a model ─────────────────────────────────────────────────────────────────────────────────────────────────────

type ModelLevel = "normal" | "aggressive";
type AskOptions = Omit<SummarizeOptions, "onRefusal">;

export type ModelDraft =
  | Exclude<Drafted, { readonly kind: "incompressible" }>
  /** No answer was of use, or none could be: why, as a clause about the last one. */
  | { readonly kind: "unusable"; readonly reason: string };

/** What the model writes, and nothing else: where its answers are of no use there is no draft, but a reason. */
export async function draftWithModel(
  deps: SummarizeDeps & { readonly model: Model },
  source: Source,
  options: AskOptions,
  levels: readonly ModelLevel[] = ["normal", "aggressive"],
): Promise<ModelDraft> {
  let reason = unaskable(source);
  for (const level of reason === null ? levels : []) {
    const outcome = await attempt(deps, source, options, level);
    if (outcome.kind !== "unusable") return outcome;
    reason = outcome.reason;
  }
  return { kind: "unusable", reason: reason ?? "no model was asked" };
}

const temperatures = { normal: 0.2, aggressive: 0.1 } as const;

async function attempt(
  deps: SummarizeDeps & { readonly model: Model },
  source: Source,
  options: AskOptions,
  level: ModelLevel,
): Promise<ModelDraft> {
  const { model } = deps;
  const { targetTokens, previousContext, ...words } = promptFor(deps, source, options, level);
  const completion = await completeWithin(model, {
    purpose: options.purpose ?? (source.depth === 0 ? "leaf" : "condensed"),
    conversation: source.conversation,
    ...words,
    temperature: temperatures[level],
    // Well above the target: an answer that ends there was cut off, and is not merely a little long.
    maxOutputTokens: Math.max(2 * targetTokens, outputTokensMin),
    ...(options.signal && { signal: options.signal }),
  });
  if (completion.kind === "refused") {
    const { refusal, message, ofStore } = completion;
    return isAboutTheText(refusal) && ofStore === undefined
      ? { kind: "unusable", reason: `the model refused it: ${message}` }
      : completion;
  }
  // The record in the midst of it would hide that an answer repeats what stands on both sides.
  const bare = promptFor(deps, { ...source, passages: [], previousContext: null }, options, level);
  const asked = { bare: asOne(bare), whole: asOne(words) };
  const read = readSummary(completion, source, targetTokens, asked);
  if ("reason" in read) return { kind: "unusable", ...read };
  return drafted(source, { ...read, level, model: nameOf(model), previousContext });
}

const asOne = ({ system, prompt }: Prompt): string => `${system}\n${prompt}`;

export const nameOf = ({ provider, name }: Model): string => `${provider}/${name}`;

/** The very words that a model is asked with. */
export function promptFor(
  { settings, templates }: Omit<SummarizeDeps, "model">,
  source: Source,
  options: Pick<AskOptions, "customInstructions">,
  level: ModelLevel,
): Prompt & Pick<Source, "targetTokens" | "previousContext"> {
  const targetTokens = level === "normal" ? source.targetTokens : Math.floor(source.targetTokens / 2);
  // Above depth 1 a summary stands alone, so that it can be carried to where nothing comes before it.
  const previousContext = source.depth <= 1 ? source.previousContext : null;
  const instructions = [settings.customInstructions, options.customInstructions].filter((each) => each?.trim());
  const words = renderPrompt(templates, {
    depth: source.depth,
    level,
    targetTokens,
    previousContext,
    segment: sourceText(source.passages),
    customInstructions: instructions.length === 0 ? null : instructions.join("\n"),
  });
  return { ...words, targetTokens, previousContext };
}

/** Some models think before they write, and what they think counts. */
const outputTokensMin = 256;

/** Refusals that another text would not have met; the others are the provider's trouble, whatever was asked. */
const isAboutTheText = (refusal: Refusal): boolean =>
  refusal === "filtered" || refusal === "too_long" || refusal === "rejected";

/** The summary in an answer, or why the answer is of no use. */
function readSummary(
  { text, finish }: Completion & { readonly kind: "text" },
  source: Source,
  targetTokens: number,
  asked: { readonly bare: string; readonly whole: string },
): { readonly text: string } | { readonly reason: string } {
  if (finish === "length") return { reason: "the answer was cut off before its end" };
  const said = readAnswer(text);
  if (said === "")
    return { reason: text.trim() === "" ? "the answer was empty" : "the answer was nothing but reasoning" };
  const saidTokens = estimateTokens(said);
  if (saidTokens < Math.min(saidTokensMin, targetTokens / 4))
    return { reason: `the answer was too thin, ${saidTokens} of about ${targetTokens} tokens` };
  if (isGarbled(said, source)) return { reason: "the answer is garbled: characters were lost, or it is hardly words" };
  const cap = capOf(source, targetTokens);
  const closed = closeWithFooter(said, source.passages, cap);
  const tokens = renderedTokens(closed ?? said);
  if (closed === null && tokens <= cap) return { reason: "the answer was nothing but its last line" };
  if (closed === null || tokens > cap)
    return { reason: `the answer was too long: ${tokens} tokens, and the cap is ${cap}` };
  if (isEcho(said, asked.bare)) return { reason: "the answer repeats what the model was asked" };
  return isEcho(said, asked.whole) ? { reason: "the answer repeats what it was to summarise" } : { text: closed };
}

/** What stands where a character was lost; a record may hold it, and then a summary may. */
const lostCharacter = "\uFFFD";

function isGarbled(said: string, { passages }: Source): boolean {
  const inWords = said.replace(/[^\p{L}\p{M}\p{N}]+/gu, "").length;
  // The rules of a table stand for nothing, and can be most of it.
  if (inWords <= wordShareMin * said.replace(/\s|[-=_\u2500-\u257f]{3,}/g, "").length) return true;
  return said.includes(lostCharacter) && !passages.some(({ text }) => text.includes(lostCharacter));
}

/** Of the characters of a text: prose has nine tenths, code and tables half. */
const wordShareMin = 0.25;

/** Fewer say nothing of a long source: "Done.", or three dots. */
const saidTokensMin = 12;

// ── Without a model ──────────────────────────────────────────────────────────────────────────────────────────────────

function extracted(source: Source, level: "extractive" | "truncated", target: number): Drafted {
  const cap = capOf(source, target);
  const marker = level === "truncated" ? `${truncationMarker}\n` : "";
  // Signs that are escaped in a prompt make a text longer there: then less of it is taken.
  for (let targetTokens = Math.min(target, cap) - estimateTokens(marker); targetTokens >= 1;) {
    const text = extract(source.passages, { targetTokens });
    // With room for nothing but the last line, the source says more in its own words.
    if (text.startsWith(expandFooter)) break;
    const tokens = renderedTokens(marker + text);
    if (tokens <= cap) return drafted(source, { text: marker + text, level, model: null, previousContext: null });
    targetTokens = Math.floor(targetTokens * Math.min(0.9, cap / tokens));
  }
  return { kind: "incompressible" };
}

const drafted = (
  { fileIds }: Source,
  made: Omit<NewSummary, "tokens" | "fileIds">,
): Extract<Drafted, { readonly kind: "drafted" }> => ({
  kind: "drafted",
  summary: { ...made, tokens: renderedTokens(made.text), fileIds },
});
