/**
 * What a large text is, in about 200 tokens and without a model: enough to decide whether to read on, and which lines.
 * Its kind is told from name, type and content, and each kind is told in its own way: the shape of JSON, columns and
 * ranges of a table, the outline of code, levels and errors of a log, headings, changed files, beginning and end.
 *
 * Counts are over the whole; what costs more looks at the beginning and the end only, and says so. In the end anything
 * is text, so this cannot fail.
 */

import { isObject } from "./content.ts";
import type { Json, JsonObject } from "./model.ts";
import { estimateTokens, firstLine, formatCount } from "./text.ts";

/** About 200 tokens on what a large text is, with line numbers (`L12`) where they help a reader to ask for more. */
export function explore(
  content: string,
  about: { readonly name: string | null; readonly mimeType: string | null },
): string {
  const hint = hintOf(about);
  const order = Object.entries(tellers).sort(([one], [other]) => Number(other === hint.kind) - Number(one === hint.kind));
  for (const [kind, tell] of order) {
    const told = tell(content, kind === hint.kind ? hint.extension : null);
    if (told !== null) return fit(told);
  }
  return fit(tellText(content));
}

type Kind = "binary" | "json" | "diff" | "markup" | "log" | "code" | "markdown" | "table";

/** Lines about a content, the most important first, or null if it is of another kind. The hint is its extension. */
type Teller = (content: string, hint: string | null) => readonly string[] | null;

const tellers: Readonly<Record<Kind, Teller>> = {
  binary: tellBinary,
  json: tellJson,
  diff: tellDiff,
  markup: tellMarkup,
  log: tellLog,
  code: tellCode,
  markdown: tellMarkdown,
  table: tellTable,
};

const extensionsOf: Readonly<Record<Exclude<Kind, "binary" | "code">, string>> = {
  json: "json jsonl ndjson geojson ipynb webmanifest",
  diff: "diff patch",
  markup: "xml html htm xhtml svg rss atom plist",
  log: "log",
  markdown: "md markdown mdx",
  table: "csv tsv psv",
};

function hintOf(about: { readonly name: string | null; readonly mimeType: string | null }): {
  readonly kind: Kind | null;
  readonly extension: string | null;
} {
  const names = [/\.(\w{1,12})$/.exec(about.name ?? "")?.[1], /\/(?:x-)?(?:[\w.-]+\+)?([\w-]+)/.exec(about.mimeType ?? "")?.[1]];
  for (const extension of names.map((name) => name?.toLowerCase())) {
    if (extension === undefined) continue;
    const has = ([, words]: readonly [string, string]): boolean => words.split(" ").includes(extension);
    const kind = Object.entries(extensionsOf).find(has)?.[0];
    if (kind !== undefined) return { kind: kind as Kind, extension };
    if (languages.some((language) => has(["", language.extensions]))) return { kind: "code", extension };
  }
  return { kind: null, extension: null };
}

// ── Fitting ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const tokensMax = 220;
const lineTokensMax = 70;
const lineCharsMax = 280;

function fit(lines: readonly string[]): string {
  let text = "";
  for (const line of lines) {
    const longer = text === "" ? cutLine(line) : `${text}\n${cutLine(line)}`;
    if (estimateTokens(longer) > tokensMax) break;
    text = longer;
  }
  return text;
}

function cutLine(line: string, charsMax = lineCharsMax, tokens = lineTokensMax): string {
  let cut = firstLine(line, charsMax);
  for (let width = charsMax; width > 1 && estimateTokens(cut) > tokens; ) {
    width = Math.floor(width / 2);
    cut = firstLine(line, width);
  }
  return cut;
}

const quote = (text: string): string => `"${cutLine(text, 40, 16)}"`;
const plural = (count: number, noun: string): string => `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;

/** `what: a, b, c`, with a word on how many more there are. */
function list(what: string, items: readonly string[], shown: number): string {
  const more = items.length > shown ? `, and ${items.length - shown} more` : "";
  return `${what}: ${items.slice(0, shown).join(", ")}${more}`;
}

// ── Lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** How much of the beginning, and of the end, is looked at where looking at all would take long. */
const sampleChars = 200_000;

const headOf = (content: string): string => content.slice(0, sampleChars);

/** Every line with its number from 1, cut where it is of no further interest. */
function eachLine(content: string, visit: (line: string, number: number) => void, charsMax = 400): number {
  let number = 0;
  for (let from = 0; from < content.length; ) {
    const end = content.indexOf("\n", from);
    const to = end < 0 ? content.length : end;
    visit(content.slice(from, Math.min(to, from + charsMax)), ++number);
    from = to + 1;
  }
  return number;
}

function firstLines(content: string, count: number): readonly string[] {
  return headOf(content).split("\n", count * 4).filter((line) => line.trim() !== "").slice(0, count);
}

const countLines = (content: string): number => eachLine(content, () => undefined, 0);

/** Those that fit, spread evenly from the first to the last. */
function thin<T>(items: readonly T[], most: number): readonly T[] {
  if (items.length <= most) return items;
  return Array.from({ length: most }, (_, at) => items[Math.floor((at * items.length) / most)]).filter((item) => item !== undefined);
}

// ── Bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const openings: readonly (readonly [string, string])[] = [
  ["iVBORw0KGgo", "a PNG picture"],
  ["/9j/", "a JPEG picture"],
  ["R0lGOD", "a GIF picture"],
  ["UklGR", "a WebP picture or a WAV sound"],
  ["JVBERi0", "a PDF document"],
  ["UEsDB", "a ZIP archive or an Office document"],
  ["H4sI", "gzip"],
];

function tellBinary(content: string): readonly string[] | null {
  const head = content.slice(0, 4_000);
  const dataUrl = /^data:([\w/+.-]*)[\w=;-]*;base64,/.exec(head);
  const encoded = head.slice(dataUrl?.[0].length ?? 0).replace(/[\r\n]/g, "");
  if (encoded.length >= 256 && /^[A-Za-z0-9+/_-]+={0,2}$/.test(encoded) && /\d/.test(encoded) && /[A-Z]/.test(encoded)) {
    const what = openings.find(([opening]) => encoded.startsWith(opening))?.[1] ?? dataUrl?.[1] ?? "unknown content";
    return [`Base64, about ${formatCount((content.length * 3) / 4)} bytes of ${what}. Not readable as text.`];
  }
  const odd = head.match(/[\u0000-\u0008\u000e-\u001a\ufffd]/g)?.length ?? 0;
  if (odd <= head.length / 20) return null;
  return [`Binary data, ${formatCount(content.length)} characters. Not readable as text.`];
}

// ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

const recordsMax = 400;

function tellJson(content: string): readonly string[] | null {
  if (!/^\s*[[{]/.test(content.slice(0, 1_000))) return null;
  const size = `${plural(countLines(content), "line")}, ${formatCount(content.length)} characters`;
  const whole = parse(content);
  if (whole !== undefined) return [`JSON, ${size}.`, ...tellValue(whole)];

  const lines = headOf(content).split("\n").filter((line) => line.trim() !== "");
  const records = lines.slice(0, recordsMax).map(parse).filter((record) => record !== undefined);
  if (records.length > 1 && records.length >= 0.9 * Math.min(lines.length, recordsMax)) {
    return [`JSON lines, ${size}; seen from the first ${formatCount(records.length)}.`, ...tellRecords(records)];
  }
  const mended = parse(mend(headOf(content)));
  if (mended === undefined) return null;
  return [`JSON, cut short or not valid, ${size}; seen from the beginning.`, ...tellValue(mended)];
}

function parse(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text);
    return value;
  } catch {
    // Not being JSON is the answer.
    return undefined;
  }
}

/** The beginning of a JSON text up to the last value that is complete, with what is open closed. */
function mend(head: string): string {
  const open: string[] = [];
  let mended = "";
  for (const token of head.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},]/g)) {
    const [mark] = token;
    if (mark === "{" || mark === "[") open.push(mark === "{" ? "}" : "]");
    else if (mark === "}" || mark === "]") open.pop();
    if (mark === "}" || mark === "]" || mark === ",") {
      const end = mark === "," ? token.index : token.index + 1;
      if (open.length <= 2 || mended === "") mended = head.slice(0, end) + open.toReversed().join("");
    }
  }
  return mended;
}

function tellValue(value: Json): readonly string[] {
  if (Array.isArray(value)) return [`An array of ${plural(value.length, "item")}.`, ...tellRecords(sampled(value))];
  if (!isObject(value)) return [`A single value: ${cell(value)}.`];
  const entries = Object.entries(value);
  return [
    `An object with ${plural(entries.length, "key")}.`,
    ...entries.slice(0, columnsTold).map(([key, inner = null]) => `- ${quoteKey(key)}: ${shape(inner)}`),
    ...(entries.length > columnsTold ? [list("- more keys", entries.slice(columnsTold).map(([key]) => quoteKey(key)), 20)] : []),
  ];
}

const sampled = (items: readonly Json[]): readonly Json[] =>
  items.length <= recordsMax ? items : [...items.slice(0, recordsMax / 2), ...items.slice(-recordsMax / 2)];

function tellRecords(records: readonly Json[]): readonly string[] {
  const objects = records.filter(isObject);
  if (objects.length < records.length / 2) return records.length === 0 ? [] : [`First: ${records.slice(0, 3).map(shape).join(", ")}`];
  const keys = [...new Set(objects.flatMap((record: JsonObject) => Object.keys(record)))];
  return tellColumns(keys.map((key) => [quoteKey(key), objects.map((record) => cell(record[key] ?? null))]));
}

const quoteKey = (key: string): string => (/^[\w.$ -]{1,40}$/.test(key) ? key : quote(key));

function shape(value: Json): string {
  if (Array.isArray(value)) {
    const first: Json | undefined = value[0];
    const of = first === undefined ? "" : isObject(first) || Array.isArray(first) ? ` of ${cell(first)}` : ` of ${typeof first}s`;
    return `array of ${formatCount(value.length)}${of}`.replace(/ of (\d\S*) of/, " of $1,");
  }
  if (isObject(value)) return `object ${cell(value)}`;
  return typeof value === "string" ? `string ${quote(value)}` : `${value === null ? "" : `${typeof value} `}${String(value)}`;
}

/** A value as a table would show it. */
function cell(value: Json): string {
  if (value === null) return "";
  if (Array.isArray(value)) return `[${value.length}]`;
  if (!isObject(value)) return String(value);
  const keys = Object.keys(value);
  return `{${keys.slice(0, 6).map(quoteKey).join(", ")}${keys.length > 6 ? ", …" : ""}}`;
}

// ── Tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const columnsTold = 12;
const distinctTold = 5;

function tellTable(content: string, hint: string | null): readonly string[] | null {
  const lines = firstLines(content, 12);
  const delimiters = hint === "tsv" ? ["\t"] : [",", "\t", ";", "|"];
  const widths = delimiters.map((delimiter) => evenWidth(lines, delimiter, hint !== null));
  const width = Math.max(...widths);
  const delimiter = delimiters[widths.indexOf(width)];
  if (width < 2 || delimiter === undefined) return null;

  const rows = rowsOf(headOf(content), delimiter);
  const tail = content.length > 2 * sampleChars ? content.slice(-sampleChars) : content.slice(sampleChars);
  const tailRows = rowsOf(tail.slice(content.length > 2 * sampleChars ? tail.indexOf("\n") + 1 : 0), delimiter);
  const [names = [], ...first] = rows;
  const isHeader = names.every((name) => name !== "" && Number.isNaN(Number(name)));
  const seen = [...(isHeader ? first : rows), ...tailRows].filter((row) => row.length >= width - 1);
  const count = countRows(content) - (isHeader ? 1 : 0);
  const columns = names.map((name, at): readonly [string, readonly string[]] => [
    isHeader ? cutLine(name, 40, 16) : `column ${at + 1}`,
    seen.map((row) => row[at] ?? ""),
  ]);
  const part = content.length > 2 * sampleChars ? `, ranges from ${formatCount(seen.length)} rows at both ends` : "";
  const naming = isHeader ? "a header in L1" : "no header";
  const mark = { ",": "commas", "\t": "tabs", ";": "semicolons" }[delimiter] ?? "bars";
  return [`Table (${mark}), ${plural(count, "row")}, ${plural(width, "column")}, ${naming}${part}.`, ...tellColumns(columns)];
}

/** How many fields every line has; 0 if they differ, or if it may well be prose. */
function evenWidth(lines: readonly string[], delimiter: string, isHinted: boolean): number {
  const widths = lines.map((line) => (rowsOf(line, delimiter)[0] ?? []).length);
  const width = widths[0] ?? 0;
  const even = widths.filter((each) => each === width).length;
  if (isHinted) return even >= widths.length / 2 ? width : 0;
  const isProse = delimiter !== "\t" && (width < 3 || lines.some((line) => /[.!?]\s*$/.test(line)));
  return lines.length >= 3 && even === widths.length && !isProse ? width : 0;
}

/** The fields of the rows; a quoted field may hold delimiters, doubled quotes and line breaks. */
function rowsOf(text: string, delimiter: string): readonly (readonly string[])[] {
  const field = new RegExp(String.raw`("(?:[^"]|"")*"|[^\n${delimiter === "|" ? String.raw`\|` : delimiter}]*)(${delimiter === "|" ? String.raw`\|` : delimiter}|\r?\n|$)`, "g");
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [whole, value = "", end = ""] of text.matchAll(field)) {
    if (whole === "" && row.length === 0) break;
    row.push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value.trim());
    if (end === delimiter) continue;
    rows.push(row);
    row = [];
  }
  return rows.filter((each) => each.length > 1 || each[0] !== "");
}

function countRows(content: string): number {
  let rows = 0;
  let isQuoted = false;
  eachLine(
    content,
    (line) => {
      for (let at = line.indexOf('"'); at >= 0; at = line.indexOf('"', at + 1)) isQuoted = !isQuoted;
      if (!isQuoted && line.trim() !== "") rows++;
    },
    Infinity,
  );
  return rows;
}

function tellColumns(columns: readonly (readonly [string, readonly string[]])[]): readonly string[] {
  const rest = columns.slice(columnsTold).map(([name]) => name);
  return [
    ...columns.slice(0, columnsTold).map(([name, values]) => `- ${name}: ${tellRange(values)}`),
    ...(rest.length > 0 ? [list("- more columns", rest, 20)] : []),
  ];
}

function tellRange(values: readonly string[]): string {
  const filled = values.filter((value) => value !== "");
  if (filled.length === 0) return "empty";
  const gaps = filled.length < values.length ? `, ${Math.ceil((100 * (values.length - filled.length)) / values.length)}% empty` : "";
  const numbers = filled.map((value) => Number(value.replace(/^[$€£]|%$|(?<=\d),(?=\d{3})/g, "")));
  if (numbers.every((number) => !Number.isNaN(number))) {
    const [least, most] = [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))];
    return `${least === most ? `always ${least}` : `${least} … ${most}`}${gaps}`;
  }
  if (filled.every((value) => /^\d{4}-\d\d(?:-\d\d|$)/.test(value))) {
    const days = filled.toSorted();
    return `${cutLine(days[0] ?? "", 24)} … ${cutLine(days.at(-1) ?? "", 24)}${gaps}`;
  }
  const distinct = [...new Set(filled)];
  const samples = distinct.slice(0, distinct.length <= distinctTold ? distinctTold : 2).map((value) => (value.startsWith("{") ? cutLine(value, 60) : quote(value)));
  return `${distinct.length <= distinctTold ? "" : `${formatCount(distinct.length)} values, such as `}${samples.join(", ")}${gaps}`;
}
