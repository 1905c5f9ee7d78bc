/**
 * How a text falls apart into statements: sentences, list items, lines of logs, lines of code, calls of tools. Each is
 * one line short enough to quote, knows when and by whom it was said, and what such a thing is worth before anybody
 * looks at its words. Any script, with or without blanks and marks.
 */

import { outputCues } from "./extractive-cues.ts";
import { expandFooter } from "../prompts/summary.ts";
import { estimateTokens } from "../base/tokens.ts";

/** One piece of what is to be summarised: a message, or a summary below. */
export interface Passage {
  /** When and who, `[2026-02-17 15:37 UTC] [user]`, or the range of a summary. */
  readonly label: string;
  readonly text: string;
  readonly kind: "user" | "assistant" | "tool" | "system" | "summary";
}

/** When something was said, and by whom; `who` is the whole label if it tells nothing of the sort. */
export interface Stamp {
  readonly day: string;
  readonly clock: string;
  /** The end of a range, ` – 21:14`, or nothing. */
  readonly until: string;
  readonly zone: string;
  readonly who: string;
}

export interface Statement {
  readonly text: string;
  readonly tokens: number;
  /** What was said at a time: the passage, or a line of a summary. */
  readonly turn: number;
  readonly stamp: Stamp;
  readonly form: "said" | "output" | "code" | "call";
  readonly worth: number;
  /** A point of a list. */
  readonly listed: boolean;
  /** Goes on with the sentence of the statement before it. */
  readonly continues: boolean;
}

export interface Split {
  readonly statements: readonly Statement[];
  /** What a summary's own last line names. */
  readonly topics: readonly string[];
}

const kindWorth: Readonly<Record<Passage["kind"], number>> = {
  user: 1.5,
  assistant: 1.35,
  summary: 1,
  system: 0.5,
  tool: 0.35,
};
const openingWorth = 1.2;
const headingWorth = 0.5;
const signatureWorth = 0.35;
const codeWorth = 0.06;
const callWorth = 0.3;
/** Of the lines of a tool's output. */
const outputWorth = { frame: 0.1, failing: 1.6, exit: 1.6, count: 1.3, warning: 0.7, last: 0.5 } as const;

export function statementsOf(passage: Passage, place: number): Split {
  const statements: Statement[] = [];
  const topics: string[] = [];
  const outputs = new Map<string, { at: number; times: number }>();
  let stamp = readLabel(passage.label);
  let turn = place * turnsMax;

  const add = (text: string, form: Statement["form"], worth: number, listed = false): void => {
    for (const [at, piece] of piecesOf(text.replace(forgedLabel, "\\$&")).entries()) {
      const tokens = estimateTokens(piece);
      statements.push({ text: piece, tokens, turn, stamp, form, worth, listed, continues: at > 0 });
    }
  };
  /** Lines that differ only in their figures are one line, told as it was last, with their number. */
  const addOutput = (line: string, worth: number): void => {
    const text = line.replace(lineTime, "");
    const shape = text.replace(/\d+|\b[0-9a-f]{8,}\b/gi, "#");
    const known = outputs.get(shape);
    const before = statements[known?.at ?? -1];
    if (known === undefined || before === undefined || text.length > repeatCharsMax) {
      outputs.set(shape, { at: statements.length, times: 1 });
      return add(text, "output", worth);
    }
    known.times++;
    const counted = `${text} (×${known.times})`;
    const isTrouble = before.worth >= outputWorth.failing;
    const worthNow = isTrouble ? before.worth : Math.min(before.worth, kindWorth.tool);
    statements[known.at] = { ...before, text: counted, tokens: estimateTokens(counted), worth: worthNow };
  };

  const lines = passage.text.replace(blanks, " ").split("\n");
  const lastLine = lines.findLastIndex((line) => line.trim() !== "");
  const isListing = passage.kind === "tool" && isMostlyCode(lines);
  const fences = lines.filter(isFence).length;
  let fencesMet = 0;
  for (const [at, line] of lines.entries()) {
    let text = line.trim();
    if (isFence(line)) fencesMet++;
    if (isFence(line) || !somethingSaid.test(text) || text === "[no text]") continue;
    if (passage.kind === "summary") {
      if (text.startsWith(expandFooter)) topics.push(...topicsIn(text));
      if (text.startsWith(expandFooter) || truncationMarker.test(text)) continue;
      const labelled = readLine(line, stamp);
      stamp = labelled.stamp;
      text = labelled.text.trim();
      turn = place * turnsMax + Math.min(at, turnsMax - 1);
    }
    const kind = passage.kind === "summary" ? kindOfSpeaker(stamp.who) : passage.kind;
    const worth = kindWorth[kind] * (statements.length === 0 ? openingWorth : 1);
    const call = kind === "assistant" ? toolCall.exec(text) : null;
    // A fence that is never closed does not make code of all that follows.
    const isFenced = fencesMet % 2 === 1 && fencesMet < fences && !sixWords.test(text);
    if (call !== null) add(toldCall(call), "call", callWorth);
    else if (passage.kind === "summary" && toldCallMark.test(text)) add(text, "call", callWorth);
    else if (isFenced || isListing || isCode(text))
      add(text, "code", kindWorth[kind] * (signature.test(text) ? signatureWorth : codeWorth));
    else if (kind === "tool" || logLine.test(text)) addOutput(text, worthOfOutput(text, at === lastLine));
    else {
      const listed = listMark.test(text);
      const isHeading = /^#{1,6} /.test(text);
      for (const sentence of sentencesOf(plain(text)))
        add(sentence, "said", isHeading ? worth * headingWorth : worth, listed);
    }
  }
  return { statements, topics };
}

const turnsMax = 1 << 20;

const isFence = (line: string): boolean => /^ ?(?:```|~~~)/.test(line);
const blanks = /(?:(?!\n)[\s\p{Cc}])+/gu;
const somethingSaid = /[\p{L}\p{N}\p{Extended_Pictographic}]/u;
const truncationMarker = /^\[(?:Truncated|LCM fallback)[^\]]*\]$/;
const repeatCharsMax = 400;

function kindOfSpeaker(who: string): Passage["kind"] {
  return (["user", "assistant", "tool", "system"] as const).find((role) => who.startsWith(role)) ?? "summary";
}

// ── Labels ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const labelCharsMax = 60;
const day = String.raw`\d{4}-\d\d-\d\d`;
const until = String.raw` – (?:${day} )?\d\d:\d\d`;
const time = String.raw`\[(?=\d)(${day})? ?(\d\d:\d\d)?(${until})? ?([^\]\s\d][^\]\s]{0,39})?\]`;
const passageLabel = new RegExp(String.raw`^${time}(?: \[([^\]\n]{1,${labelCharsMax}})\])?$`);
/** As extract.ts writes them: what is not said is as in the line before. */
const lineLabel = new RegExp(
  String.raw`^(?=\[)(?:${time} ?)?(?:\[((?:user|assistant|tool|system)\b[^\]]{0,${labelCharsMax}})\])?`,
);

/** Words that begin as labels do. */
const forgedLabel = /^\[(?:\d{4}-\d\d-\d\d|\d\d:\d\d|user|assistant|tool|system)\b/;

function readLabel(label: string): Stamp {
  const match = passageLabel.exec(label);
  if (match?.[1] === undefined) {
    const who = label.replace(/[\s\p{Cc}[\]]+/gu, " ").trim();
    return { day: "", clock: "", until: "", zone: "", who: who.slice(0, cutAt(who, labelCharsMax)) };
  }
  const [, day, clock = "", until = "", zone = "", who = ""] = match;
  return { day, clock, until, zone, who };
}

function readLine(line: string, before: Stamp): { readonly stamp: Stamp; readonly text: string } {
  const match = lineLabel.exec(line);
  if (match === null || match[0] === "") return { stamp: before, text: line };
  const [label, day, clock, until = "", zone = before.zone, who = before.who] = match;
  const isTimed = day !== undefined || clock !== undefined;
  const when = isTimed ? { day: day ?? before.day, clock: clock ?? "", until, zone } : before;
  return { stamp: { ...when, who }, text: line.slice(label.length) };
}

const topicsIn = (footer: string): readonly string[] =>
  footer
    .slice(expandFooter.length)
    .split(/[,;]/)
    .map((topic) => topic.trim())
    .filter((topic) => topic !== "" && topic.length <= 40);

// ── Lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const level = "TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL";
const clock = String.raw`\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?`;
const lineTime = new RegExp(String.raw`^(?:\[?(?:${day}[T ])?${clock}\]?|[A-Z][a-z]{2} +\d{1,2} ${clock})\s+`);
const logLine = new RegExp(String.raw`${lineTime.source}|^\W{0,2}(?:${level})\b\W`);

function worthOfOutput(line: string, isLast: boolean): number {
  const [cue] = outputCues.find(([, pattern]) => pattern.test(line)) ?? [];
  if (cue !== undefined) return outputWorth[cue];
  return isLast ? outputWorth.last : kindWorth.tool;
}

/** A call reads `name {arguments}`; told are its name and what it was about, marked so that it is known again. */
const toolCall = /^([A-Za-z][\w.:-]{0,60}) (\{".*)$/;
const subject = /"(?:\w*path|file\w*|command|cmd|url|query|pattern|name|target|title|to|id)":"((?:[^"\\]|\\.){1,90})/i;

const toldCallMark = /^→ \S/;

function toldCall([, name = "", input = ""]: RegExpExecArray): string {
  const about = subject.exec(input)?.[1] ?? input.slice(0, cutAt(input, 90));
  return `→ ${name} ${about
    .replaceAll(/\\[nt]/g, " ")
    .replaceAll('\\"', '"')
    .trim()}`;
}

/** Words that a line of code may begin with. */
const keyword = [
  "import|export|const|let|var|def|class|fn|func|function|return|raise|throw|public|private|static|async|await|struct",
  "enum|impl|interface|type|package|using|namespace|elif|else|except|if|for|while|try|with",
  "SELECT|INSERT|CREATE|UPDATE|ALTER|DROP|WHERE|FROM|JOIN",
].join("|");
const codeLine = new RegExp(
  [
    String.raw`[{;]$|^[)}\]]+[;,]*$`,
    String.raw`^(?:${keyword})\b.*(?:[={};]|[):]$)`,
    String.raw`^(?:#include|\/\/|\/\*|\* )|^(?:diff --git|[+-]{3} |@@ )|^</?[a-zA-Z][^>]*>`,
    String.raw`^[\w.]+\(.*\)[;,]?$|=>\s?\S{0,40}$|\bAS \w{1,40},?$`,
    // The fields of JSON.
    String.raw`":\s?["\d\{\[tfn]`,
  ].join("|"),
);
const sixWords = /(?:[\p{L}'’]{2,40}[ ,]{1,3}){6}/u;
const signature = new RegExp(
  [
    String.raw`^(?:(?:export|pub|default|abstract|async) )*(?:function|def|class|fn|func|interface|type|struct|enum)\b`,
    String.raw`^(?:CREATE|ALTER|diff --git|\+\+\+|\$) `,
  ].join("|"),
);

const isCode = (text: string): boolean => codeLine.test(text) && !sixWords.test(text);

const listingShare = 0.3;

/** Whether a tool's output shows a file of source text or data: then no line of it tells how a call went. */
function isMostlyCode(lines: readonly string[]): boolean {
  const filled = lines.filter((line) => somethingSaid.test(line));
  return filled.length > 3 && filled.filter((line) => isCode(line.trim())).length > listingShare * filled.length;
}

const listMark = /^(?:[-*+•·▪◦]|\d{1,3}[.)]|[a-z]\))\s+/;

/** Without the marks of Markdown that only shape it. */
function plain(text: string): string {
  if (text.startsWith("|")) return text.replace(/^\|\s*|\s*\|$/g, "").replace(/\s*\|\s*/g, " | ");
  return text
    .replace(/^(?:>\s*)+|^#{1,6}\s+/, "")
    .replace(listMark, "")
    .replace(/!\[[^\]]{0,80}\]\([^)\s]{0,300}\)/g, "")
    .replace(/\*\*|__(?=\S)|(?<=\S)__|\[\]\([^)\s]{0,300}\)/g, "")
    .trim();
}

// ── Sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Bounded, so that a line of nothing but dots takes no longer than another. */
const ending =
  /[。！？।۔؟]+[」』”’"'）)\]]*|[.!?…]{1,6}["'”’)\]*]{0,4}(?=\s)|[!?]{1,6}(?=[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}])/gu;
const abbreviation = new RegExp(
  String.raw`(?:^|[\s(])(?:\p{L}|e\.g|i\.e|etc|vs|mrs?|ms|dr|prof|st|nos?|nr|approx|fig|vol|inc|ltd|jr|sr|pp?|al` +
    String.raw`|z\.\s?b|d\.\s?h|ca|bzw)\.$`,
  "iu",
);

function sentencesOf(text: string): readonly string[] {
  const sentences: string[] = [];
  let from = 0;
  for (const match of text.matchAll(ending)) {
    const to = match.index + match[0].length;
    const [before, after] = [text.slice(Math.max(from, to - 12), to), text.slice(to, to + 3)];
    if (match[0].startsWith(".") && abbreviation.test(before)) continue;
    // Not every sentence begins with a capital, but few of those that do not follow a short word.
    if (/^ \p{Ll}/u.test(after) && match[0].startsWith(".") && !/\p{L}{4}\.$/u.test(before)) continue;
    if (/^ [^\p{L}\p{N}"'“‘([`@/~#]/u.test(after)) continue;
    sentences.push(text.slice(from, to));
    from = to;
  }
  sentences.push(text.slice(from));
  return sentences.map((sentence) => sentence.trim()).filter((sentence) => somethingSaid.test(sentence));
}

/** The longest that is quoted in one piece, and the longest piece of a longer one. */
const sentenceTokensMax = 64;
const pieceTokens = 44;

/** The sentence, or its clauses when it is too long to quote, with `…` where they were torn. */
function piecesOf(sentence: string): readonly string[] {
  const tokens = estimateTokens(sentence);
  if (tokens <= sentenceTokensMax) return [sentence];
  const charsMax = Math.max(16, Math.floor((sentence.length * pieceTokens) / tokens));
  const pieces: string[] = [];
  for (let rest = sentence; rest !== "";) {
    const at = cutAt(rest, charsMax);
    const piece = rest.slice(0, at).trim();
    rest = rest.slice(at).trimStart();
    pieces.push(`${pieces.length > 0 ? "…" : ""}${rest === "" ? piece : `${piece.replace(/[,;:，、；：]$/u, "")}…`}`);
  }
  return pieces;
}

/** Where to cut for at most so many units: behind a clause, else behind a word, else not inside a character. */
export function cutAt(text: string, charsMax: number): number {
  if (text.length <= charsMax) return text.length;
  const window = text.slice(0, charsMax);
  for (const boundary of [/[,;:—–，、；：）」』](?=[^,;:—–，、；：）」』]*$)/u, /\s(?=\S*$)/u]) {
    const at = (boundary.exec(window)?.index ?? -1) + 1;
    if (at > charsMax / 2) return at;
  }
  let at = Math.max(1, charsMax);
  for (let steps = 0; steps < 16 && at > 1 && isInsideCharacter(text, at); steps++) at--;
  return isInsidePair(text, at) ? at + 1 : at;
}

const isInsidePair = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xdc00;
const isInsideCharacter = (text: string, at: number): boolean =>
  isInsidePair(text, at) || text[at - 1] === "\u200d" || /^[\p{M}\u200d]/u.test(text.slice(at, at + 2));
