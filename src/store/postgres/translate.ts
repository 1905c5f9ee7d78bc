/** Turns the statements of scripts into those of PostgreSQL: numbered values with their types, and our search index. */

import type { Statement, Value } from "../script.ts";
import type { CorpusName } from "../search/sources.ts";
import { addEntries, codeOf } from "./index-rows.ts";
import { asArray, encode, encodeList } from "./values.ts";

export interface Query {
  readonly text: string;
  /** Of a statement that has been used before; it may be kept under this name where the connection stays the same. */
  readonly name?: string;
  readonly values: readonly unknown[];
  /** Whether the script needs its rows. Other statements are sent without waiting. */
  readonly answers: boolean;
}

/** What is said differently and is not a function of the schema. `§0`, `§1` are the values. */
const phrases: readonly (readonly [RegExp, string])[] = [
  // Whatever else is asked of the rows is asked of those in the spans: otherwise the planner may well read the whole table.
  [
    /FROM pairs_in\((§\d+)\) AS span CROSS JOIN (\w+) ON (\w+) BETWEEN span\.one AND span\.other/,
    "FROM pairs_in($1) AS span CROSS JOIN LATERAL (SELECT * FROM $2 WHERE $3 BETWEEN span.one AND span.other OFFSET 0) AS $2",
  ],
  [/CROSS JOIN (?=\w+(?:\s+AS)?(?:\s+\w+)?(?:\s+INDEXED BY \w+)?\s+ON\b)/g, "JOIN "],
  [/ INDEXED BY \w+/g, ""],
  // An index finds each of an array; of a list as rows, the planner does not know how many there are.
  [/\bNOT IN \(SELECT value FROM ((?:numbers|texts)_in\(§\d+)\)\)/g, "<> ALL (all_$1)"],
  [/\bIN \(SELECT value FROM ((?:numbers|texts)_in\(§\d+)\)\)/g, "= ANY (all_$1)"],
  // As quick as LIKE is in a file is only this; ILIKE takes longer, and finds more.
  [/\bmay_match\((\w+), §\d+, (§\d+)\)/g, "($2 = '' OR strpos(lower($1), $2) > 0)"],
  [/\bmain\./g, ""],
  [/\bsource\.(?=\w)/g, "source_"],
  [
    /^DELETE FROM (\w)\w+_fts WHERE rowid IN \(\s*SELECT \w+ FROM \w+ WHERE (.*)\)$/s,
    "DELETE FROM search_blocks WHERE corpus = '$1' AND $2",
  ],
];

const types = { number: "bigint", string: "lcm_text", object: "bytea" } as const;

/** Null is written as NULL, which needs no type. */
function typeOf(values: readonly Value[]): string | null {
  const [value] = values.filter((each) => each !== null);
  if (value === undefined) return null;
  if (values.some((each) => typeof each === "number" && !Number.isInteger(each))) return "float8";
  return types[typeof value as keyof typeof types];
}

type Encoding = (value: Value) => Value | readonly Value[];

interface Translated {
  readonly text: string;
  /** For each value of the text, its place in a statement and how it is written. */
  readonly places: readonly { readonly at: number; readonly encode: Encoding }[];
  readonly answers: boolean;
  readonly name: string;
  uses: number;
}

/** A statement is worth a name once it was used so often. */
const usesMin = 3;
let namesGiven = 0;

const known = new Map<readonly string[], Map<string, Translated>>();

/** One query for statements that differ only in their values: rows of one INSERT, or a single statement. */
export function toQuery(statements: readonly Statement[]): Query {
  const parts = statements[0]?.parts ?? [];
  const kinds = Array.from({ length: parts.length - 1 }, (_, at) =>
    typeOf(statements.map(({ values }) => values[at] ?? null)),
  );
  const variants = known.get(parts) ?? new Map<string, Translated>();
  known.set(parts, variants);
  const isMany = statements.length > 1;
  const key = `${isMany} ${kinds.join()}`;
  const translated = variants.get(key) ?? translate(parts, kinds, isMany);
  variants.set(key, translated);
  const valueOf = ({ values }: Statement, { at, encode: written }: Translated["places"][number]) =>
    written(values[at] ?? null);
  translated.uses += 1;
  return {
    text: translated.text,
    ...(translated.uses < usesMin ? {} : { name: translated.name }),
    values: translated.places.map((place) =>
      isMany ? statements.map((each) => valueOf(each, place)) : valueOf(statements[0] as Statement, place),
    ),
    answers: translated.answers,
  };
}

const oneRow = /^(INSERT INTO \w+ \([^()]*\)\s*)VALUES \(([^()]*)\)((?:\s+ON CONFLICT[^§]*DO NOTHING)?)$/;
const oneRowKnown = new Map<readonly string[], boolean>();

function isOneRow(parts: readonly string[]): boolean {
  const is = oneRowKnown.get(parts) ?? oneRow.test(parts.join("§").trim());
  oneRowKnown.set(parts, is);
  return is;
}

function translate(parts: readonly string[], kinds: readonly (string | null)[], isMany: boolean): Translated {
  let text = parts
    .map((part, at) => (at === 0 ? part : `§${at - 1}${part}`))
    .join("")
    .trim();
  for (const [phrase, meaning] of phrases) text = text.replace(phrase, meaning);
  if (isMany) return translateRows(text, kinds);
  const places: Translated["places"][number][] = [];
  const numbers = new Map<number, number>();
  text = text.replace(
    /(\b(?:all_numbers_in|all_texts_in|texts_in)\()?§(\d+)/g,
    (_, list: string | undefined, digits: string) => {
      const at = Number(digits);
      const [opening, type, written] = asList(list, kinds[at] ?? null);
      if (kinds[at] === null) return `${opening}NULL${type === null ? "" : `::${type}`}`;
      const place = numbers.get(at) ?? places.push({ at, encode: written });
      numbers.set(at, place);
      return `${opening}$${place}::${type}`;
    },
  );
  const isWrite = /^(INSERT|UPDATE|DELETE)\b/.test(text) && !/\bRETURNING\b/.test(text);
  return { text, places, answers: !isWrite, name: `lcm${++namesGiven}`, uses: 0 };
}

/** How a value is written in a list, or alone: what comes before it, its type, and how it is encoded. */
function asList(list: string | undefined, type: string | null): readonly [string, string | null, Encoding] {
  if (list === "all_numbers_in(") return ["", "bigint[]", asArray];
  if (list === "all_texts_in(") return ["", "text[]", asArray];
  return list === undefined ? ["", type, encode] : [list, type, encodeList];
}

/** One array for each column, so that the text, and with it the plan, is the same for any number of rows. */
function translateRows(text: string, kinds: readonly (string | null)[]): Translated {
  const [, insert = "", row = "", rest = ""] = oneRow.exec(text) ?? [];
  const given = kinds.flatMap((type, at) => (type === null ? [] : [{ type, at }]));
  const columns = row.replace(/§(\d+)/g, (_, at: string) => (kinds[Number(at)] === null ? "NULL" : `c${at}`));
  const arrays = given.map(({ type }, at) => `$${at + 1}::${type}[]`).join(", ");
  const names = given.map(({ at }) => `c${at}`).join(", ");
  return {
    text: `${insert}SELECT ${columns} FROM unnest(${arrays}) AS given (${names})${rest}`,
    places: given.map(({ at }) => ({ at, encode })),
    answers: false,
    name: `lcm${++namesGiven}`,
    uses: 0,
  };
}

/** How many rows one INSERT takes. */
const rowsMax = 1_000;

/** A list of statements as queries, in order: rows that follow each other into the same table are inserted at once. */
export function toQueries(asked: Statement | readonly Statement[]): readonly Query[] {
  if ("parts" in asked) return [toIndexQuery([asked]) ?? toQuery([asked])];
  const queries: Query[] = [];
  for (let from = 0; from < asked.length;) {
    const first = asked[from];
    if (first === undefined) break;
    let to = from + 1;
    const isEntry = entryInsert.test(first.parts[0] ?? "");
    const most = isEntry ? asked.length : isOneRow(first.parts) ? rowsMax : 1;
    while (to - from < most && asked[to]?.parts === first.parts) to += 1;
    const alike = asked.slice(from, to);
    queries.push(toIndexQuery(alike) ?? toQuery(alike));
    from = to;
  }
  return queries;
}

const entryInsert = /^INSERT INTO (messages|summaries)_fts \(/;
const entryDelete = /^DELETE FROM (messages|summaries)_fts WHERE rowid = $/;

/** Statements that add entries to the search index, or remove one; null for others. */
function toIndexQuery(statements: readonly Statement[]): Query | null {
  const [words = ""] = statements[0]?.parts ?? [];
  const added = entryInsert.exec(words)?.[1] as CorpusName | undefined;
  if (added !== undefined)
    return addEntries(
      added,
      statements.map(({ values: [id, terms] }) => ({ id: Number(id), terms: String(terms) })),
    );
  const dropped = entryDelete.exec(words)?.[1];
  if (dropped === undefined) return null;
  const id = Number(statements[0]?.values[0]);
  return {
    text: "SELECT drop_entry($1, $2::bigint, $3)",
    values: [dropped.charAt(0), id, codeOf(id)],
    answers: false,
  };
}
