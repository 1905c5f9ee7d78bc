/**
 * Writes a tool call for a summariser: the tool, the argument that matters, then the others as far as they inform. An edit
 * is a short diff; a long argument, such as the content of a file, is shown by its head and tail.
 */

import { isObject, jsonText, type Json, type JsonObject } from "../base/json.ts";
import { plural } from "../base/format.ts";
import { longestIncreasing } from "../base/increasing.ts";
import { cutLine, cutLines, withoutBlobs, withoutIndent, type LineLimits } from "./output-text.ts";

/** `→ name subject (further arguments)`, then indented lines. `number` distinguishes calls that were made together. */
export function callText(name: string, input: Json, number: number | null): string {
  const args = isObject(input) ? input : { input };
  const subject = subjectOf(args);
  const edits = editsIn(args);
  const head = [`→${number === null ? "" : ` #${number}`}`, name];
  const asides: string[] = [];
  const body: string[] = [];
  for (const [field, value] of Object.entries(args)) {
    if (isEmpty(value) || noise.test(field) || (edits.length > 0 && editField.test(field))) continue;
    const text = field === subject ? subjectText(value) : argumentText(value);
    const lines = text.split("\n");
    if (field === subject) head.push(cutLine(lines[0] ?? "", limits.words.width));
    if (isPatch(text)) body.push(...cutBody(lines.filter(isPatchLine), limits.edit));
    else if (field === subject) body.push(...cutBody(lines.slice(1), limits.words));
    else if (lines.length === 1 && text.length <= asideCharsMax) asides.push(`${field} ${text}`);
    else {
      asides.push(`${field}: ${lines.length === 1 ? "see below" : plural(lines.length, "line")}`);
      body.push(...cutBody(lines, /content|file_text/i.test(field) ? limits.content : limits.words));
    }
  }
  for (const edit of edits) body.push(...cutBody(diffLines(edit), limits.edit));
  if (asides.length > 0) head.push(`(${asides.join(", ")})`);
  return [head.filter((word) => word !== "").join(" "), ...body].join("\n");
}

/** A file that is written is long and known by its path; commands, mails and instructions are what a model had to say. */
const limits = {
  words: { head: 24, tail: 8, errors: 0, width: 2_000 },
  edit: { head: 16, tail: 8, errors: 0, width: 320 },
  content: { head: 10, tail: 4, errors: 0, width: 240 },
} as const satisfies Record<string, LineLimits & { readonly width: number }>;

const cutBody = (lines: readonly string[], limit: (typeof limits)[keyof typeof limits]): readonly string[] =>
  cutLines(withoutIndent(lines), limit)
    .filter((line) => line.trim() !== "")
    .map((line) => `  ${cutLine(line, limit.width)}`);

const asideCharsMax = 100;

/** Fields that say what a call is about, the most telling first. */
const subjects: readonly RegExp[] = [
  /^(?:command|cmd|script)$/i,
  /^(?:pattern|query|q|url|regex)$/i,
  /^(?:\w*path|file|filename|\w+_file)$/i,
  /^(?:name|title|target|to|id)$/i,
];
/** Fields that say how a call runs, not what it does. */
const noise = /timeout|_ms$|^max_?(?:output|tokens|bytes|chars)|signature/i;

function subjectOf(args: JsonObject): string | null {
  const fields = Object.keys(args).filter((field) => !isEmpty(args[field]) && !noise.test(field));
  for (const pattern of subjects) {
    const found = fields.find((field) => pattern.test(field) && /^(?:string|number|object)$/.test(typeof args[field]));
    if (found !== undefined) return found;
  }
  return fields.length === 1 ? (fields[0] ?? null) : null;
}

/** What a call does to files, so that its result needs no more than a failure. */
export type CallEffect = "changes a file" | "reads a file" | "other";

export function effectOf(input: Json): CallEffect {
  if (!isObject(input)) return "other";
  const fields = Object.keys(input);
  const isOfFile = subjects[2]?.test(subjectOf(input) ?? "") === true;
  if (editsIn(input).length > 0 || fields.some((field) => isPatch(input[field]))) return "changes a file";
  if (isOfFile && fields.some((field) => /^(?:content|contents|file_text|insert_text|new_str)$/i.test(field)))
    return "changes a file";
  return isOfFile ? "reads a file" : "other";
}

const isEmpty = (value: Json | undefined): boolean =>
  value === undefined || value === null || value === false || value === "" || value === 0;

/** A command given as a list, without the shell that runs it. */
function subjectText(value: Json | undefined): string {
  if (!Array.isArray(value) || value.some((word) => typeof word !== "string")) return argumentText(value);
  const isShell = /^(?:\/\w+){0,3}\/?(?:ba|z|da)?sh$/.test(String(value[0])) && /^-\w{0,3}c$/.test(String(value[1]));
  return argumentText(value.slice(isShell ? 2 : 0).join(" "));
}

function argumentText(value: Json | undefined): string {
  const text = typeof value === "string" ? value : jsonText(value ?? null);
  return withoutBlobs(text).replaceAll("\r\n", "\n").trim();
}

const isPatch = (text: Json | undefined): boolean =>
  typeof text === "string" && /^(?:\*\*\* Begin Patch|diff --git |--- \S|@@ )/.test(text);

/** Files and changed lines, without the context. */
const isPatchLine = (line: string): boolean => /^(?:[-+]|@@|diff |\*\*\* (?:Add|Update|Delete|Move))/.test(line);

interface Edit {
  readonly before: string;
  readonly after: string;
}

const beforeField = /^(?:old|search)_?(?:text|string|str)?$/i;
const afterField = /^(?:new|replace|replacement)_?(?:text|string|str)?$/i;
const editField = /^(?:old|search|new|replace|replacement)_?(?:text|string|str)?$|^edits$/i;

/** The replacements that a call makes, in the usual shapes. */
function editsIn(args: JsonObject): readonly Edit[] {
  const { edits } = args;
  return [args, ...(Array.isArray(edits) ? edits : [])].flatMap((each: Json) => {
    if (!isObject(each)) return [];
    const [before, after] = [beforeField, afterField].map((wanted) => {
      const field = Object.keys(each).find((name) => wanted.test(name));
      const value = field === undefined ? undefined : each[field];
      return typeof value === "string" ? withoutBlobs(value) : null;
    });
    return typeof before === "string" && typeof after === "string" ? [{ before, after }] : [];
  });
}

type Change = readonly [sign: "-" | "+" | " ", line: string];

/** Changed lines with `-` and `+`. What was only inserted follows the line before it. */
function diffLines({ before, after }: Edit): readonly string[] {
  const [old, now] = [before.split(/\r?\n/), after.split(/\r?\n/)];
  const changes = changesOf(old, now, diffRounds);
  const worded = changes.filter(([, line]) => /[\p{L}\p{N}]/u.test(line));
  const shown: Change[] = worded.length > 0 ? worded : [...changes];
  const context = old.slice(0, sharedStart(old, now)).findLast((line) => line.trim() !== "");
  if (context !== undefined && changes.every(([sign]) => sign === "+")) shown.unshift([" ", context]);
  return withoutIndent(shown.map(([, line]) => line)).map((line, at) => `${shown[at]?.[0] ?? " "} ${line}`);
}

/** How often a stretch between two shared lines is compared again by itself. */
const diffRounds = 4;

/** Shared lines at both ends are skipped, then those that occur once on each side divide the rest into stretches. */
function changesOf(old: readonly string[], now: readonly string[], rounds: number): readonly Change[] {
  const start = sharedStart(old, now);
  const end = sharedStart(old.slice(start).reverse(), now.slice(start).reverse());
  const [gone, come] = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  const places = rounds === 0 ? [] : placesOfShared(gone, come);
  const shared = [...longestIncreasing(places)].reverse();
  if (shared.length === 0)
    return [...gone.map((line): Change => ["-", line]), ...come.map((line): Change => ["+", line])];
  let [from, to] = [0, 0];
  return [...shared, gone.length].flatMap((at) => {
    const place = places[at] ?? come.length;
    const between = changesOf(gone.slice(from, at), come.slice(to, place), rounds - 1);
    [from, to] = [at + 1, place + 1];
    return between;
  });
}

function sharedStart(lines: readonly string[], others: readonly string[]): number {
  const end = Math.min(lines.length, others.length);
  for (let at = 0; at < end; at++) if (lines[at] !== others[at]) return at;
  return end;
}

/** For each line, its place in the other list if it occurs once in both; null otherwise. */
function placesOfShared(lines: readonly string[], others: readonly string[]): readonly (number | null)[] {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  const places = new Map<string, number | null>();
  for (const [at, line] of others.entries()) places.set(line, places.has(line) ? null : at);
  return lines.map((line) => (counts.get(line) === 1 ? (places.get(line) ?? null) : null));
}
