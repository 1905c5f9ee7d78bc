/** Previews of JSON and tables: their keys and columns, with the range of their values. */

import { countLines, cutLine, eachLine, endsOf, firstLines, headOf, list, quote } from "./file-preview-lines.ts";
import { isObject, type Json } from "../base/json.ts";
import { formatCount, plural } from "../base/format.ts";

const recordsMax = 400;
const columnsShown = 12;
const namesShown = 20;
const distinctShown = 5;
const keysShown = 5;

export function describeJson(content: string): readonly string[] | null {
  if (!/^\s*[[{]/.test(content.slice(0, 1_000))) return null;
  const size = `${plural(countLines(content), "line")}, ${formatCount(content.length)} characters`;
  const whole = parse(content);
  if (whole !== undefined) return [`JSON, ${size}.`, ...describeValue(whole)];

  const lines = firstLines(content, recordsMax);
  const records = lines.map(parse).filter((record) => record !== undefined);
  if (records.length > 1 && records.length >= 0.9 * lines.length) {
    return [`JSON lines, ${size}; seen from the first ${formatCount(records.length)}.`, ...describeRecords(records)];
  }
  const repaired = parse(repairJson(headOf(content)));
  if (repaired === undefined) return null;
  return [`JSON, cut short or not valid, ${size}; seen from the beginning.`, ...describeValue(repaired)];
}

function parse(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text);
    return value;
  } catch {
    return undefined; // It is not JSON, which is what the caller wants to know.
  }
}

const nestingMax = 16;

/** Cuts a JSON text after its last complete value, and closes what is open. */
function repairJson(head: string): string {
  const open: string[] = [];
  let end = 0;
  let closing: readonly string[] = [];
  for (const token of head.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},]/g)) {
    const [mark] = token;
    if (mark === "{" || mark === "[") open.push(mark === "{" ? "}" : "]");
    else if (mark === "}" || mark === "]") open.pop();
    if (mark.startsWith('"') || mark === "{" || mark === "[" || open.length > nestingMax) continue;
    end = token.index + (mark === "," ? 0 : 1);
    closing = open.toReversed();
  }
  return head.slice(0, end) + closing.join("");
}

function describeValue(value: Json): readonly string[] {
  if (Array.isArray(value)) {
    const sample = [...value.slice(0, recordsMax / 2), ...value.slice(recordsMax / 2).slice(-recordsMax / 2)];
    return [`An array of ${plural(value.length, "item")}.`, ...describeRecords(sample)];
  }
  if (!isObject(value)) return [`A single value: ${shape(value)}.`];
  const entries = Object.entries(value);
  const rest = entries.slice(columnsShown).map(([key]) => name(key));
  return [
    `An object with ${plural(entries.length, "key")}.`,
    ...entries.slice(0, columnsShown).map(([key, inner = null]) => `- ${name(key)}: ${shape(inner)}`),
    ...(rest.length > 0 ? [list("- more keys", rest, namesShown)] : []),
  ];
}

function describeRecords(records: readonly Json[]): readonly string[] {
  const objects = records.filter(isObject);
  if (objects.length < records.length / 2) return describeColumns([["values", records.map(cell)]]);
  const keys = [...new Set(objects.flatMap((record) => Object.keys(record)))];
  return describeColumns(keys.map((key) => [name(key), objects.map((record) => cell(record[key] ?? null))]));
}

const name = (key: string): string => (/^[\w.$ -]{1,40}$/.test(key) ? key : quote(key));

function shape(value: Json): string {
  if (Array.isArray(value)) {
    const first = value.map(cell).find((item) => item !== "");
    return `array of ${formatCount(value.length)}${first === undefined ? "" : `, such as ${shown(first)}`}`;
  }
  if (typeof value === "string") return `string ${quote(value)}`;
  return isObject(value) ? `object ${cell(value)}` : value === null ? "null" : `${typeof value} ${cell(value)}`;
}

/** A value in short. */
function cell(value: Json): string {
  if (value === null) return "";
  if (Array.isArray(value)) return `[${value.length}]`;
  if (typeof value !== "object") return String(value);
  const keys = Object.keys(value);
  return `{${keys.slice(0, keysShown).map(name).join(", ")}${keys.length > keysShown ? `, … ${keys.length} keys` : ""}}`;
}

const shown = (text: string): string =>
  /^[[{]/.test(text) ? cutLine(text, 80, 24) : /^-?[\d.]{1,20}$|^true$|^false$/.test(text) ? text : quote(text);

const delimiterNames = { ",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars" } as const;
type Delimiter = keyof typeof delimiterNames;
const delimiters: readonly Delimiter[] = [",", "\t", ";", "|"];

export function describeTable(content: string, hint: string | null): readonly string[] | null {
  const lines = firstLines(content, 24);
  let [delimiter, width]: [Delimiter, number] = [",", 0];
  for (const each of hint === "tsv" ? (["\t"] as const) : delimiters) {
    const fields = evenWidth(lines, each, hint !== null);
    if (fields > width) [delimiter, width] = [each, fields];
  }
  if (width < 2) return null;

  const ends = endsOf(content);
  const rows = rowsOf(ends ?? content, delimiter).filter((row) => row.length >= width - 1);
  const [first = []] = rows;
  const isHeader = first.every((field) => field !== "" && Number.isNaN(Number(field)));
  const values = isHeader ? rows.slice(1) : rows;
  const count = plural(countRows(content) - (isHeader ? 1 : 0), "row");
  const blankLines = content.slice(0, content.search(/\S/)).split("\n").length - 1;
  const header = isHeader ? `header in L${blankLines + 1}` : "no header";
  const part = ends === null ? "" : `; ranges from ${formatCount(values.length)} rows at both ends`;
  return [
    `Table (${delimiterNames[delimiter]}), ${count}, ${plural(width, "column")}, ${header}${part}.`,
    ...describeColumns(
      first.map((field, at) => [isHeader ? name(field) : `column ${at + 1}`, values.map((row) => row[at] ?? "")]),
    ),
  ];
}

/** How many fields the lines have; 0 if that differs, or if the text looks like prose. */
function evenWidth(lines: readonly string[], delimiter: Delimiter, isHinted: boolean): number {
  const rows = rowsOf(lines.join("\n"), delimiter);
  // The last row may be incomplete.
  const widths = (rows.length > 4 ? rows.slice(0, -1) : rows).map((row) => row.length);
  const width = widths[0] ?? 0;
  const even = widths.filter((each) => each === width).length;
  if (isHinted) return even >= widths.length / 2 ? width : 0;
  const isProse = delimiter !== "\t" && (width < 3 || lines.some((line) => /[.!?]\s*$/.test(line)));
  return widths.length >= 3 && even === widths.length && !isProse ? width : 0;
}

/** The fields of the rows; a quoted field may contain delimiters, doubled quotes and line breaks. */
function rowsOf(text: string, delimiter: Delimiter): readonly (readonly string[])[] {
  const field = new RegExp(String.raw`("[^"]*(?:""[^"]*)*"|[^\n${delimiter}]*)([${delimiter}]|\n|$)`, "g");
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, value = "", end = ""] of text.matchAll(field)) {
    // A quote that is never closed is a character like any other.
    const isQuoted = value.length > 1 && value.startsWith('"') && value.endsWith('"');
    row.push(isQuoted ? value.slice(1, -1).replaceAll('""', '"') : value.trim());
    if (end === delimiter) continue;
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  }
  return rows;
}

/** Counts lines that are not blank and do not end inside quotes; all of them if a quote is never closed. */
function countRows(content: string): number {
  let [lines, rows] = [0, 0];
  let isQuoted = false;
  const visit = (line: string): void => {
    for (let at = line.indexOf('"'); at >= 0; at = line.indexOf('"', at + 1)) isQuoted = !isQuoted;
    if (line.trim() === "") return;
    lines++;
    if (!isQuoted) rows++;
  };
  eachLine(content, visit, Infinity);
  return isQuoted ? lines : rows;
}

function describeColumns(columns: readonly (readonly [string, readonly string[]])[]): readonly string[] {
  const rest = columns.slice(columnsShown).map(([column]) => column);
  return [
    ...columns.slice(0, columnsShown).map(([column, values]) => `- ${column}: ${describeRange(values)}`),
    ...(rest.length > 0 ? [list("- more columns", rest, namesShown)] : []),
  ];
}

function describeRange(values: readonly string[]): string {
  const filled = values.filter((value) => value !== "");
  if (filled.length === 0) return "empty";
  const emptyShare = Math.ceil((100 * (values.length - filled.length)) / values.length);
  const gaps = emptyShare > 0 ? `, ${emptyShare}% empty` : "";
  const numbers = filled.map((value) => Number(value.replace(/^[$€£]|%$|(?<=\d),(?=\d{3})/g, "")));
  if (!numbers.some(Number.isNaN)) {
    const [least, most] = numbers.reduce(
      ([low, high], number) => [Math.min(low, number), Math.max(high, number)],
      [Infinity, -Infinity],
    );
    return `${least === most ? `always ${least}` : `${least} … ${most}`}${gaps}`;
  }
  const distinct = [...new Set(filled)];
  if (distinct.length > 1 && filled.every((value) => /^\d{4}-\d\d(?:-\d\d|$)/.test(value))) {
    distinct.sort();
    return `${cutLine(distinct[0] ?? "", 24)} … ${cutLine(distinct.at(-1) ?? "", 24)}${gaps}`;
  }
  if (distinct.length <= distinctShown) return `${distinct.map(shown).join(", ")}${gaps}`;
  return `${formatCount(distinct.length)} values, such as ${distinct.slice(0, 2).map(shown).join(", ")}${gaps}`;
}
