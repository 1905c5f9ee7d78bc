/**
 * Splits source text of any script into statements: sentences, list items, lines of logs and code, tool calls.
 * Each is one line short enough to quote, with its time, its speaker and a base value for its form.
 */

import { errorLine, frame, outputCues } from "./extractive-cues.ts";
import { expandFooter } from "../prompts/summary.ts";
import { estimateTokens } from "../base/tokens.ts";

/** One source of a summary: a message, or a summary one depth below. */
export interface Passage {
  /** Time and speaker, `[2026-02-17 15:37 UTC] [user]`, or the time range of a summary. */
  readonly label: string;
  readonly text: string;
  readonly kind: "user" | "assistant" | "tool" | "system" | "summary";
  /** By which a model refers to the message, where it may. */
  readonly number?: number;
}

/** A parsed label. `who` is the whole label if that has no time. */
export interface Stamp {
  readonly day: string;
  readonly clock: string;
  /** The end of a range, ` – 21:14`, or empty. */
  readonly until: string;
  readonly zone: string;
  readonly who: string;
}

export interface Statement {
  readonly text: string;
  readonly tokens: number;
  /** Statements said together: of one passage, or of one line of a summary. */
  readonly turn: number;
  readonly stamp: Stamp;
  readonly form: "prose" | "output" | "code" | "call";
  readonly worth: number;
  /** Typed by the user, as far as can be told: the first paragraph of a message, or one of a single line. */
  readonly typed: boolean;
}

const kindWorth = { user: 1.5, assistant: 1.35, summary: 1, system: 0.5, tool: 0.35 } as const;
const openingWorth = 1.2;
const codeWorth = 0.02;
const callWorth = 0.3;
/** Worth of the lines of a tool's output. */
const outputWorth = { frame: 0.1, failing: 1.3, exit: 1.3, count: 1.3, last: 0.5 } as const;

/** A longer sentence is cut into pieces. */
export function statementsOf(passage: Passage, place: number, sentenceTokensMax: number) {
  const isSummary = passage.kind === "summary";
  /** Those in a summary's footer. */
  const topics: string[] = [];
  const collected = createCollector(sentenceTokensMax);
  const lines = passage.text.replace(blanks, " ").split("\n");
  const lastLine = lines.findLastIndex((line) => line.trim() !== "");
  const isListing = passage.kind === "tool" && isMostlyCode(lines);
  let stamp = readLabel(passage.label);
  let turn = place * turnsMax;
  let opening: number | undefined;
  let isInCall = false;
  for (const [at, line] of lines.entries()) {
    let text = line.trim();
    if (text === "" && passage.kind === "user") turn++;
    if (isFence(line) || !hasWords.test(text) || empty.test(text)) continue;
    if (isSummary) {
      if (text.startsWith(expandFooter)) {
        topics.push(...topicsIn(text));
        continue;
      }
      const labelled = readLine(line, stamp);
      stamp = labelled.stamp;
      text = labelled.text.trim();
      turn = place * turnsMax + Math.min(at, turnsMax - 1);
    }
    isInCall = passage.kind === "assistant" && (callMark.test(line) || (isInCall && line.startsWith(" ")));
    const [form, worth, texts] = classify(text, {
      kind: isSummary ? kindOfSpeaker(stamp.who) : passage.kind,
      announces: callMark.test(lines[at + 1]?.trim() ?? ""),
      isCodeBlock: isListing || isInCall,
      isFirst: collected.statements.length === 0,
      isLast: at === lastLine,
    });
    opening ??= turn;
    const isAlone = isBlank(lines[at - 1]) && isBlank(lines[at + 1]);
    const typed = stamp.who.startsWith("user") && form === "prose" && (isSummary || turn === opening || isAlone);
    for (const each of texts) collected.add(each, { turn, stamp, form, worth, typed });
  }
  return { statements: collected.statements, topics };
}

type Traits = Omit<Statement, "text" | "tokens">;

/** Lines of output that differ only in numbers are merged: the last of them is kept, with a count. */
function createCollector(sentenceTokensMax: number) {
  const statements: Statement[] = [];
  const outputs = new Map<string, { at: number; times: number }>();
  const add = (text: string, traits: Traits): void => {
    const shape = text.replace(/\d+|\b[0-9a-f]{8,}\b/gi, "#");
    const known = traits.form === "output" && text.length <= repeatCharsMax ? outputs.get(shape) : undefined;
    const before = statements[known?.at ?? -1];
    if (known !== undefined && before !== undefined) {
      known.times++;
      const counted = `${text} (×${known.times})`;
      statements[known.at] = { ...before, text: counted, tokens: estimateTokens(counted) };
      return;
    }
    if (traits.form === "output") outputs.set(shape, { at: statements.length, times: 1 });
    for (const piece of piecesOf(text.replace(forgedLabel, "\\$&"), sentenceTokensMax))
      statements.push({ ...traits, text: piece, tokens: estimateTokens(piece) });
  };
  return { statements, add };
}

interface LineFacts {
  readonly kind: Passage["kind"];
  /** A call follows. */
  readonly announces: boolean;
  readonly isCodeBlock: boolean;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** The form of a line, what its statements are worth, and these. */
function classify(text: string, line: LineFacts): readonly [Statement["form"], number, readonly string[]] {
  const { kind } = line;
  if (kind === "assistant" && callMark.test(text)) return ["call", callWorth, [callText(text)]];
  if (line.isCodeBlock || isCode(text)) return ["code", kindWorth[kind] * codeWorth, [text]];
  if (kind === "tool" || logLine.test(text) || frame.test(text))
    return ["output", worthOfOutput(text, line.isLast), [text.replace(lineTime, "")]];
  const worth = kindWorth[kind] * (line.isFirst ? openingWorth : 1);
  const sentences = sentencesOf(plain(text));
  // What is announced by a colon is the call itself.
  return ["prose", worth, line.announces && /[:：]$/u.test(text) ? sentences.slice(0, -1) : sentences];
}

const turnsMax = 1 << 20;

const isFence = (line: string): boolean => /^ ?(?:```|~~~)/.test(line);
const blanks = /(?:(?!\n)[\s\p{Cc}])+/gu;
/** Nothing said, a note on what was left out, a command to the host, or the path of an attachment. */
const empty = new RegExp(
  String.raw`^(?:\[(?:no text|(?:Truncated|LCM fallback)[^\]]*)\]|… [\d,]+ lines? left out|/\w*` +
    String.raw`|['"]?(?:[/~]|[A-Z]:\\|file:).*\.(?:png|jpe?g|gif|webp|heic|svg|pdf|mov|mp4)['"]?)$`,
  "i",
);
const isBlank = (line: string | undefined): boolean => line === undefined || line.trim() === "";
const hasWords = /[\p{L}\p{N}\p{Extended_Pictographic}]/u;
const repeatCharsMax = 400;

function kindOfSpeaker(who: string): Passage["kind"] {
  return (["user", "assistant", "tool", "system"] as const).find((role) => who.startsWith(role)) ?? "summary";
}

const labelCharsMax = 60;
const day = String.raw`\d{4}-\d\d-\d\d`;
const until = String.raw` – (?:${day} )?\d\d:\d\d`;
const time = String.raw`\[(?=\d)(${day})? ?(\d\d:\d\d)?(${until})? ?([^\]\s\d][^\]\s]{0,39})?\]`;
const passageLabel = new RegExp(String.raw`^${time}(?: \[([^\]\n]{1,${labelCharsMax}})\])?$`);
/** Labels inside an extractive summary, which omit what has not changed since the previous line. */
const lineLabel = new RegExp(
  String.raw`^(?=\[)(?:${time} ?)?(?:\[((?:user|assistant|tool|system)\b[^\]]{0,${labelCharsMax}})\])?`,
);

/** Text that looks like a label. */
const forgedLabel = /^\[(?:\d{4}-\d\d-\d\d|\d\d:\d\d|user|assistant|tool|system)\b/;

function readLabel(label: string): Stamp {
  const match = passageLabel.exec(label);
  if (match?.[1] === undefined) {
    const who = label.replace(/[\s\p{Cc}[\]]+/gu, " ").trim();
    return { day: "", clock: "", until: "", zone: "", who: who.slice(0, cutAt(who, labelCharsMax)) };
  }
  const [, day, clock = "", until = "", zone = "", who = ""] = match;
  return { day, clock, until, zone, who: who.replace(/ #\d+(?= |$)/, "") };
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

const level = "TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL";
const clock = String.raw`\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?`;
const lineTime = new RegExp(String.raw`^(?:\[?(?:${day}[T ])?${clock}\]?|[A-Z][a-z]{2} +\d{1,2} ${clock})\s+`);
const logLine = new RegExp(String.raw`${lineTime.source}|^\W{0,2}(?:${level})\b\W`);

function worthOfOutput(line: string, isLast: boolean): number {
  const [cue] = outputCues.find(([, pattern]) => pattern.test(line)) ?? [];
  if (cue !== undefined && (errorLine.test(line) || !(sixWords.test(line) || line.startsWith("|"))))
    return outputWorth[cue];
  return isLast ? outputWorth.last : kindWorth.tool;
}

/** A call is `→ name subject`, then indented lines, or `name {arguments}`. Its number is not quoted. */
const callMark = /^(?:→ (?:#\d+ )?(?=\S)|(?=[A-Za-z][\w.:-]{0,60} \{"))/;
const callCharsMax = 110;

function callText(text: string): string {
  const call = text.replace(callMark, "→ ");
  return call.slice(0, cutAt(call, callCharsMax)).trim();
}

/** Keywords at the start of a line of code. */
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
    // JSON fields.
    String.raw`":\s?["\d\{\[tfn]`,
  ].join("|"),
);
const sixWords = /(?:[\p{L}'’]{2,40}[ ,]{1,3}){6}/u;
const isCode = (text: string): boolean => codeLine.test(text) && !sixWords.test(text);

const listingShare = 0.3;

/** Whether a tool's output is a listing of code or data: then no line of it reports an outcome. */
function isMostlyCode(lines: readonly string[]): boolean {
  const filled = lines.filter((line) => hasWords.test(line));
  return filled.length > 3 && filled.filter((line) => isCode(line.trim())).length > listingShare * filled.length;
}

const listMark = /^(?:[-*+•·▪◦]|\d{1,3}[.)]|[a-z]\))\s+/;

/** Strips Markdown formatting. */
function plain(text: string): string {
  if (text.startsWith("|")) return text.replace(/^\|\s*|\s*\|$/g, "").replace(/\s*\|\s*/g, " | ");
  return text
    .replace(/^(?:>\s*)+|^#{1,6}\s+/, "")
    .replace(listMark, "")
    .replace(/!\[[^\]]{0,80}\]\([^)\s]{0,300}\)/g, "")
    .replace(/\*\*|__(?=\S)|(?<=\S)__|\[\]\([^)\s]{0,300}\)/g, "")
    .trim();
}

/** Repetition is bounded, so that a line of dots takes no longer than any other. */
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
    // A sentence may begin in lower case, but rarely after a short word: that is an abbreviation.
    if (/^ \p{Ll}/u.test(after) && match[0].startsWith(".") && !/\p{L}{4}\.$/u.test(before)) continue;
    if (/^ [^\p{L}\p{N}"'“‘([`@/~#]/u.test(after)) continue;
    sentences.push(text.slice(from, to));
    from = to;
  }
  sentences.push(text.slice(from));
  return sentences.map((sentence) => sentence.trim()).filter((sentence) => hasWords.test(sentence));
}

/** Longest piece of a sentence that is too long to quote whole. */
const pieceTokens = 44;

/** The sentence, or its clauses if it is too long to quote, with `…` at each cut. */
function piecesOf(sentence: string, sentenceTokensMax: number): readonly string[] {
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

/** Where to cut to at most `charsMax`: after a clause, else after a word, else between characters. */
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
