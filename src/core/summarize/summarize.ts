/**
 * Drafts a summary, trying one level after the other until a draft is shorter than its source and under its cap.
 * If the model's answer is unusable, it is asked once more, for half the length; then sentences are extracted, which
 * always works. When the provider fails, the caller decides: wait for it, or continue without it.
 */

import { readAnswer } from "../model-calls/read-answer.ts";
import { extract, type Passage } from "./extractive.ts";
import type { CallPurpose, ConversationId, FileId, Message, NewSummary, Refusal, SearchWords } from "../model/types.ts";
import type { Completion, Model } from "../model/store.ts";
import { joinWords } from "./date-words.ts";
import { applyNotes, splitNotes, type LeafNotes } from "./leaf-notes.ts";
import { expandFooter, notesTokens, renderPrompt, type Prompt, type Templates } from "../prompts/summary.ts";
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
  /** Depth of the summary to make. */
  readonly depth: number;
  /** Of a leaf; the passages have their numbers, from 1. */
  readonly messages?: readonly Message[];
  /** Of a leaf: dates that its messages mean by relative times. */
  readonly dateWords?: readonly SearchWords[];
  readonly passages: readonly Passage[];
  /** Tokens of the run in the context. The summary plus its overhead must be shorter. */
  readonly tokens: number;
  readonly overheadTokens: number;
  /** Target length of the summary. */
  readonly targetTokens: number;
  readonly previousContext: string | null;
  readonly fileIds: readonly FileId[];
}

export type Drafted =
  | { readonly kind: "drafted"; readonly summary: NewSummary }
  /** The provider failed; nothing was drafted. */
  | { readonly kind: "refused"; readonly refusal: Refusal; readonly message: string }
  /** No level is shorter than the source. */
  | { readonly kind: "incompressible" };

export interface SummarizeOptions {
  readonly signal?: AbortSignal;
  /** Added to the instructions in the settings. */
  readonly customInstructions?: string | null;
  /** When the provider fails: return the refusal, or continue without the model. */
  readonly onRefusal: "wait" | "extract";
  readonly purpose?: CallPurpose;
}

/** Marks a text that was extracted because no answer of the model was usable. */
const truncationMarker = "[Truncated for context management]";
const truncatedTokensMax = 512;

/** Below this no sentence fits together with the footer, so a model call would be wasted. */
export const askableTokensMin = 16;

export async function summarize(deps: SummarizeDeps, source: Source, options: SummarizeOptions): Promise<Drafted> {
  const target = source.targetTokens;
  const { model } = deps;
  if (model === null || reasonNotToAsk(source) !== null) return extracted(source, "extractive", target);
  const outcome = await draftWithModel({ ...deps, model }, source, options);
  if (outcome.kind === "drafted") return outcome;
  if (outcome.kind === "unusable") return extracted(source, "truncated", Math.min(target, truncatedTokensMax));
  return options.onRefusal === "wait" ? outcome : extracted(source, "extractive", target);
}

/** Why no model is asked about a source; null if one is. */
function reasonNotToAsk(source: Source): string | null {
  if (capOf(source, source.targetTokens) < askableTokensMin) return "its source is too short to summarise";
  return hasWords(source) ? null : "its source has no words";
}

/** False for pictures and empty tool results: a model could only guess. */
const hasWords = ({ passages }: Source): boolean =>
  passages.some(({ text }) => /[\p{L}\p{N}]/u.test(text.replaceAll(/\[[^\]]*\]/g, "")));

/** Most tokens that a summary with this target may have. */
const capOf = (source: Source, target: number): number =>
  Math.min(Math.floor(1.5 * target), source.tokens - source.overheadTokens - 1);

type ModelLevel = "normal" | "aggressive";
type AskOptions = Omit<SummarizeOptions, "onRefusal">;

export type ModelDraft =
  | Exclude<Drafted, { readonly kind: "incompressible" }>
  /** No answer was usable, or none could be; `reason` is a clause about the last one. */
  | { readonly kind: "unusable"; readonly reason: string };

/** Drafts with the model only: if no answer is usable, returns the reason instead of extracting. */
export async function draftWithModel(
  deps: SummarizeDeps & { readonly model: Model },
  source: Source,
  options: AskOptions,
  levels: readonly ModelLevel[] = ["normal", "aggressive"],
): Promise<ModelDraft> {
  let reason = reasonNotToAsk(source);
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
    // Well above the target: an answer that reaches it was cut off rather than a little too long.
    maxOutputTokens: Math.max(2 * targetTokens, outputTokensMin) + (source.depth === 0 ? 2 * notesTokens : 0),
    ...(options.signal && { signal: options.signal }),
  });
  if (completion.kind === "refused") {
    const { refusal, message, ofStore } = completion;
    return isAboutTheText(refusal) && ofStore === undefined
      ? { kind: "unusable", reason: `the model refused it: ${message}` }
      : completion;
  }
  // Without the source, so that an answer that repeats the text before and after it is recognised.
  const bare = promptFor(deps, { ...source, passages: [], previousContext: null }, options, level);
  const asked = { bare: joined(bare), whole: joined(words) };
  const read = readSummary(completion, source, targetTokens, asked);
  completion.onRead?.({ level, reason: "reason" in read ? read.reason : null });
  if ("reason" in read) return { kind: "unusable", ...read };
  const { text, notes } = read;
  const found = notes === null || source.messages === undefined ? {} : applyNotes(notes, source.messages);
  return drafted(source, { text, level, model: modelName(model), previousContext, ...found });
}

const joined = ({ system, prompt }: Prompt): string => `${system}\n${prompt}`;

export const modelName = ({ provider, name }: Model): string => `${provider}/${name}`;

/** The exact prompt sent to the model. */
export function promptFor(
  { settings, templates }: Omit<SummarizeDeps, "model">,
  source: Source,
  options: Pick<AskOptions, "customInstructions">,
  level: ModelLevel,
): Prompt & Pick<Source, "targetTokens" | "previousContext"> {
  const targetTokens = level === "normal" ? source.targetTokens : Math.floor(source.targetTokens / 2);
  // Deeper summaries must be self-contained: they may be carried over to a segment where nothing precedes them.
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

/** Reasoning counts as output. */
const outputTokensMin = 256;

/** Refusals that another text might not meet; the others mean that the provider itself has trouble. */
const isAboutTheText = (refusal: Refusal): boolean =>
  refusal === "filtered" || refusal === "too_long" || refusal === "rejected";

/** The summary in an answer, or why the answer is unusable. */
function readSummary(
  { text, finish }: Completion & { readonly kind: "text" },
  source: Source,
  targetTokens: number,
  asked: { readonly bare: string; readonly whole: string },
): { readonly text: string; readonly notes: LeafNotes | null } | { readonly reason: string } {
  const whole = readAnswer(text);
  const { summary: answer, notes } = source.depth === 0 ? splitNotes(whole) : { summary: whole, notes: null };
  // Cut off among the notes, the summary above them is whole.
  if (finish === "length" && notes === null) return { reason: "the answer was cut off before its end" };
  if (answer === "") return { reason: text.trim() === "" ? "the answer was empty" : "the answer was only reasoning" };
  const answerTokens = estimateTokens(answer);
  if (answerTokens < Math.min(answerTokensMin, targetTokens / 4))
    return { reason: `the answer was too short: ${answerTokens} of about ${targetTokens} tokens` };
  if (isGarbled(answer, source))
    return { reason: "the answer is garbled: it lost characters, or has hardly any words" };
  const cap = capOf(source, targetTokens);
  const closed = closeWithFooter(answer, source.passages, cap);
  const tokens = renderedTokens(closed ?? answer);
  if (closed === null && tokens <= cap) return { reason: "the answer was only its footer" };
  if (closed === null || tokens > cap)
    return { reason: `the answer was too long: ${tokens} tokens, the cap is ${cap}` };
  if (isEcho(answer, asked.bare)) return { reason: "the answer repeats the prompt" };
  return isEcho(answer, asked.whole) ? { reason: "the answer repeats its source" } : { text: closed, notes };
}

/** Replaces a lost character; allowed in a summary if its source contains it. */
const lostCharacter = "\uFFFD";

function isGarbled(answer: string, { passages }: Source): boolean {
  const inWords = answer.replace(/[^\p{L}\p{M}\p{N}]+/gu, "").length;
  // Ruled lines can be most of a table, so they do not count.
  if (inWords <= wordShareMin * answer.replace(/\s|[-=_\u2500-\u257f]{3,}/g, "").length) return true;
  return answer.includes(lostCharacter) && !passages.some(({ text }) => text.includes(lostCharacter));
}

/** Share of letters and digits in a text: about 0.9 in prose, 0.5 in code and tables. */
const wordShareMin = 0.25;

/** Rejects "Done." and "…" as a summary of a long source. */
const answerTokensMin = 12;

function extracted(source: Source, level: "extractive" | "truncated", target: number): Drafted {
  const cap = capOf(source, target);
  const marker = level === "truncated" ? `${truncationMarker}\n` : "";
  // Escaping makes a text longer in a prompt; then extract less.
  for (let targetTokens = Math.min(target, cap) - estimateTokens(marker); targetTokens >= 1;) {
    const text = extract(source.passages, { targetTokens });
    // If only the footer fits, the source itself is more useful.
    if (text.startsWith(expandFooter)) break;
    const tokens = renderedTokens(marker + text);
    if (tokens <= cap) return drafted(source, { text: marker + text, level, model: null, previousContext: null });
    targetTokens = Math.floor(targetTokens * Math.min(0.9, cap / tokens));
  }
  return { kind: "incompressible" };
}

function drafted(
  { fileIds, dateWords = [] }: Source,
  made: Omit<NewSummary, "tokens" | "fileIds">,
): Extract<Drafted, { readonly kind: "drafted" }> {
  const searchWords = joinWords(made.searchWords ?? [], dateWords);
  const found = searchWords.length === 0 ? {} : { searchWords };
  return { kind: "drafted", summary: { ...made, ...found, tokens: renderedTokens(made.text), fileIds } };
}
