/**
 * Finds standing instructions in what a user wrote: the sentences that hold a cue (standing-cues.ts), verbatim. Pure.
 *
 * Only a user's own words count. Code, quotations, pasted mails, logs, markup and what the host or another agent wrote
 * in the user's name are blanked first, at the same length, so that places in the text stay valid.
 */

import type { Message, NewPin, Part, Role, Standing } from "../model/types.ts";
import { isObject, parseObject } from "../base/json.ts";
import { isWrittenText } from "./dialects.ts";
import { cues, mayHoldCue, mayStand } from "./standing-cues.ts";

/** Most sentences and characters of one message that are pinned. */
const sentencesMax = 3;
export const wordsMax = 480;
const sentenceCharsMax = 240;

/** In a longer text only its two ends are read: people paste in the middle. */
const readMax = 4_000;
const endChars = 1_200;

/** What a message says to remember, or null. */
export function findStanding(message: { readonly role: Role; readonly parts: readonly Part[] }): Standing | null {
  const text = ownText(message);
  if (text === null || !mayHoldCue(text)) return null;
  const own = blankOthers(text);
  const found: string[] = [];
  const reasons: string[] = [];
  for (const { from, to } of sentencesOf(own)) {
    const words = own.slice(from, to);
    const at = mayHoldCue(words) ? findCue(words) : null;
    if (at === null) continue;
    found.push(cutAround(text.slice(from, to), at));
    reasons.push(at.words);
    if (found.length === sentencesMax) break;
  }
  if (found.length === 0) return null;
  return { words: joinWords(found), reason: [...new Set(reasons)].join(", ") };
}

/** Whether it is text and nothing else. A tool result in a user's message has text too, and is kept whole beside it. */
function isPlainText({ type, metadata, toolCallId }: Part): boolean {
  if (type !== "text" || toolCallId !== null) return false;
  const rest = metadata === null ? { type } : parseObject(metadata)["rest"];
  return isObject(rest) && isWrittenText(rest);
}

/** What cues find in these messages. Those that were stored before there were pins get theirs when they are folded. */
export const pinsIn = (messages: readonly Message[]): readonly NewPin[] =>
  messages.flatMap((message) => {
    const standing = findStanding(message);
    if (standing === null) return [];
    return [{ ...standing, message: message.id, saidAt: message.at, origin: "cue" as const, state: "pinned" as const }];
  });

/** The text of a user's message without results, files and other blocks; null if a program wrote it. */
export function ownText({ role, parts }: { readonly role: Role; readonly parts: readonly Part[] }): string | null {
  if (role !== "user") return null;
  // A tool result or an unknown block beside the words: whose words they are is not certain.
  if (!parts.every((part) => part.type === "file" || isPlainText(part))) return null;
  const text = parts.flatMap(({ type, text: own }) => (type === "text" && own !== null ? [own] : [])).join("\n");
  return text.trim() === "" || byProgram.test(text) ? null : text;
}

/**
 * The place in a message that says this, as it stands there; null if there is none. `own`: only in the user's own words,
 * not in what is quoted or pasted, and in whole sentences: "push to main" is not what "never push to main" says.
 */
export function findWords(message: Message, wanted: string, where: "own" | "all"): string | null {
  const text = ownText(message);
  const words = wanted
    .trim()
    .split(/\s+/)
    .map((word) => RegExp.escape(word));
  // What is blanked must not be found by blanks.
  if (text === null || wanted.trim() === "" || wanted.includes("\0")) return null;
  const searched = where === "own" ? blankOthers(text) : text;
  const match = new RegExp(words.join("\\s+"), "u").exec(searched);
  if (match === null) return null;
  const found = { from: match.index, to: match.index + match[0].length };
  const { from, to } = where === "own" ? inSentences(searched, found) : found;
  return text.slice(from, to);
}

/** A place with the rest of the sentences that it begins and ends in, unless that is too much to pin. */
function inSentences(own: string, place: Span): Span {
  const spans = sentencesOf(own).filter(({ from, to }) => from < place.to && to > place.from);
  const from = Math.min(place.from, ...spans.map((span) => span.from));
  const to = Math.max(place.to, ...spans.map((span) => span.to));
  return to - from > wordsMax ? place : { from, to };
}

/** The beginning of what a user wrote, up to what others wrote or the end of a sentence; null if there are no words. */
export function firstSentences(message: Message): string | null {
  const text = ownText(message);
  if (text === null) return null;
  const own = blankOthers(text);
  let last: Span | null = null;
  let from = 0;
  for (const span of sentencesOf(own)) {
    if (last === null) from = span.from;
    if (last !== null && (span.to - from > wordsMax || own.slice(last.to, span.from).includes("\0"))) break;
    last = span;
  }
  return last === null ? null : text.slice(from, Math.min(last.to, from + wordsMax)).toWellFormed();
}

/** Sentences of one message that a model can have pinned. */
const namedSentencesMax = 2;

/**
 * What a model that names a message can have pinned of it: what cues find, else sentences that may be a rule or say
 * something about the user. Questions and mere news are neither, whatever a text in the conversation made the model say.
 */
export function findNamed(message: Message): string | null {
  const text = ownText(message);
  if (text === null) return null;
  const own = blankOthers(text);
  const kept = sentencesOf(own)
    .filter(({ from, to }) => mayStand.test(own.slice(from, to)) && !isQuestion.test(own.slice(from, to)))
    .slice(0, namedSentencesMax)
    .map(({ from, to }) => cutAround(text.slice(from, to), { from: 0, to: 1 }));
  return findStanding(message)?.words ?? (kept.length === 0 ? null : joinWords(kept));
}

const isQuestion = /[?？]\W*$/;

/** Heartbeats, scheduled prompts, notices of the host, compactions, commands and messages of other agents. */
const byProgram =
  /^\s*(?:\/\w|!|\[(?:cron|heartbeat|system|subagent|inter-session|agent)\b|System:|<(?:summary|command-|system|local-command|task-notification|environment_context|user_instructions)|# AGENTS\.md|This session is being continued|Read HEARTBEAT\.md)|\bHEARTBEAT_OK\b/i;

const joinWords = (sentences: readonly string[]): string => {
  const [first = "", ...rest] = sentences;
  return rest.reduce(
    (words, next) => (words.length + next.length + 3 > wordsMax ? words : `${words} … ${next}`),
    first,
  );
};

// ── Blanking what others wrote ───────────────────────────────────────────────────────────────────────────────────────

const blank = (text: string): string => text.replaceAll(/[^\n]/g, "\0");

/** Whoever announces the words of others. What users say themselves is their own. */
const announced = String.raw`(?<!\p{L}|\bI |\bI've |\bI have )(?:says?|said|wrote|writes|reads?|sagt|schreibt|schrieb|lautet|dit|écrit|dice|escribió)(?!\p{L})`;
const announcedInChinese = "(?<!我)(?:写道|说)";
const pasted = String.raw`\b(?:log|logs|output|error|errors|trace|e?mail|article|readme|docs?|paste|pasted|text|prompt|transcript|message from \w+)\b`;

/**
 * Longest first: what an earlier pattern blanks no longer matches a later one. None looks for an end that may be missing
 * from every beginning: an open quotation ends with the text, or the time would grow with the square of its length.
 */
const others = [
  /```[^]*?(?:```|$)|~~~[^]*?(?:~~~|$)/g,
  /<\/?[a-z][^<>\n]{0,200}>/gi,
  // A forwarded or pasted mail, and everything that a line announces ("the README says:").
  /^[ \t]*(?:(?:From|Von|De|Subject|Betreff|Objet|Asunto|Date|To|Sent): .+\n|-{2,} ?(?:Original|Forwarded|Weitergeleitete)|Begin forwarded message)[^]*/im,
  new RegExp(`^.*(?:${announced}|${announcedInChinese}|${pasted})[^\\n]{0,40}[:：][ \\t]*\\n[^]*`, "imu"),
  new RegExp(`(?:${announced}[^\\n:]{0,40}|${announcedInChinese})[:：].*$`, "gimu"),
  /^[ \t]*>.*$/gm,
  // Lines of a shell, a log, a diff, a stack trace, JSON or code.
  /^[ \t]*(?:[$#%➜❯+@{}[\]|]|-{2,}|\/\/|at .+:\d+|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|(?:INFO|WARN|ERROR|DEBUG|TRACE)\b|import |export |const |let |def |class |function |return |if \(|SELECT |npm |git ).*$/gm,
  /^.*[;{}]\s*$/gm,
  // Longer quotations, and code in a line.
  /`[^`\n]+`/g,
  /"[^"\n]{12,}"|(?<![^\s([])"(?=\S)[^"]{12,}"|“[^”"]{12,}[”"]?|„[^“”"]{12,}[“”"]?|«[^»\n]{12,}»?|「[^」]{6,}」?/g,
  // What the host puts before a message: channel, sender, time.
  /^[ \t]*\[[^\]\n]{3,120}\]/gm,
];

/** Blanks elements with their content, up to the last end of that name: the content may contain others. */
function blankElements(text: string): string {
  const ends = new Map<string, number>();
  for (const { 0: tag, 1: name = "", index } of text.matchAll(/<\/([a-z][\w-]{0,40})\s*>/gi))
    ends.set(name.toLowerCase(), index + tag.length);
  let own = "";
  for (const { 1: name = "", index } of text.matchAll(/<([a-z][\w-]{0,40})(?![\w-])/gi)) {
    const end = ends.get(name.toLowerCase()) ?? 0;
    if (index >= own.length && end > index) own += text.slice(own.length, index) + blank(text.slice(index, end));
  }
  return own + text.slice(own.length);
}

function blankOthers(text: string): string {
  const own = others.reduce((left, pattern) => left.replace(pattern, blank), blankElements(text));
  if (own.length <= readMax) return own;
  return own.slice(0, endChars) + blank(own.slice(endChars, -endChars)) + own.slice(-endChars);
}

// ── Sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Span {
  readonly from: number;
  readonly to: number;
}

/** A sentence ends at a mark that a blank follows, at a CJK mark or at the end of a line. */
const sentence = /[^\n\0。！？!?.]+(?:[.!?]+(?![\s\0"')\]]|$)[^\n\0。！？!?.]*)*[。！？!?.]*["”')\]]*/g;
const lead = /^(?:[\s\0]|[-*•–]\s|\d{1,2}[.)]\s)*/;

function sentencesOf(own: string): readonly Span[] {
  return [...own.matchAll(sentence)].flatMap(({ 0: words, index }) => {
    const skipped = lead.exec(words)?.[0].length ?? 0;
    const to = index + words.trimEnd().length;
    return to - index - skipped < 4 ? [] : [{ from: index + skipped, to }];
  });
}

interface Found extends Span {
  /** The words of the cue, as people are shown them. */
  readonly words: string;
}

function findCue(own: string): Found | null {
  const isAsked = isQuestion.test(own);
  const plain = own.replaceAll("’", "'");
  for (const { pattern, asked } of cues()) {
    if (isAsked && !asked) continue;
    const match = pattern.exec(plain);
    if (match === null) continue;
    const words = match[0].replace(/^[\s,;:–—-]+/, "").trim();
    return {
      from: match.index,
      to: match.index + match[0].length,
      words: words.length > 40 ? `${words.slice(0, 39)}…` : words,
    };
  }
  return null;
}

const clauseEnd = /[,;:，；、—–]\s*|\s(?=(?:so|and|but|because|und|aber|et|mais|y|pero)\s)/g;

/** A long sentence is cut to the clauses around its cue. */
function cutAround(text: string, { from, to }: Span): string {
  if (text.length <= sentenceCharsMax) return text.trim();
  const bounds = [0, ...[...text.matchAll(clauseEnd)].map(({ 0: mark, index }) => index + mark.length), text.length];
  const start = bounds.findLast((bound) => bound <= from && bound >= from - sentenceCharsMax / 3) ?? from;
  const end =
    bounds.findLast((bound) => bound >= to && bound <= start + sentenceCharsMax) ??
    Math.min(text.length, Math.max(to, start + sentenceCharsMax));
  const words = text
    .slice(start, end)
    .replace(/[\s,;:，；、—–]+$/, "")
    .trimStart()
    .toWellFormed();
  return `${start > 0 ? "… " : ""}${words}${end < text.length ? " …" : ""}`;
}
