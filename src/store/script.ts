/**
 * Operations are written once, as scripts: generators that yield statements and receive rows. A runner decides how a
 * statement reaches a database (SQLite answers at once; another would await), and wraps the whole script in one
 * transaction. So an operation cannot leak a transaction, and reads like the prose of what it does.
 */

import type { Store } from "../core/model/store.ts";
import type { Timestamp } from "../core/base/time.ts";

export type Value = null | number | string | Uint8Array;
export type Row = Readonly<Record<string, Value>>;

export interface Statement {
  /** Identity of the statement: the same call site gives the same object, so runners cache by it. */
  readonly parts: readonly string[];
  readonly values: readonly Value[];
}

export type Script<T> = Generator<Statement, T, readonly Row[]>;

/** What scripts need from outside: the time, and fresh hexadecimal digits for an id. */
export interface ScriptDeps {
  readonly now: () => Timestamp;
  readonly hex16: () => string;
}

type ScriptOf<Method, Given extends readonly unknown[]> = Method extends (...args: infer Args) => Promise<infer Result>
  ? (...args: [...Given, ...Args]) => Script<Result>
  : never;

/** A method of the port as a script, with the port's own arguments and result. */
export type ReadScript<Name extends keyof Store> = ScriptOf<Store[Name], []>;
export type WriteScript<Name extends keyof Store> = ScriptOf<Store[Name], [deps: ScriptDeps]>;
export type ReadScripts = { readonly [Name in keyof Store]?: ReadScript<Name> };
export type WriteScripts = { readonly [Name in keyof Store]?: WriteScript<Name> };

/** A list goes over as JSON, to be read with `json_each`. */
type Given = Value | readonly (number | string)[];
const toValue = (given: Given): Value => (Array.isArray(given) ? JSON.stringify(given) : (given as Value));

export const sql = (parts: TemplateStringsArray, ...given: readonly Given[]): Statement => ({
  parts,
  values: given.map(toValue),
});

const known = new Map<string, readonly string[]>();

/**
 * A statement with names in it that are known only when it is made; the places of its values are question marks. The
 * same words are the same statement to whoever runs it.
 */
export function statement(words: string, given: readonly Given[] = []): Statement {
  const parts = known.get(words) ?? words.split("?");
  known.set(words, parts);
  return { parts, values: given.map(toValue) };
}

/** The rows of a statement, each decoded. */
export function* all<T>(statement: Statement, decode: (row: Row) => T): Script<readonly T[]> {
  const rows = yield statement;
  return rows.map(decode);
}

/** The first row of a statement, decoded; null when there is none. */
export function* first<T>(statement: Statement, decode: (row: Row) => T): Script<T | null> {
  const rows = yield statement;
  const row = rows[0];
  return row === undefined ? null : decode(row);
}

/** The row of a statement that always has one, such as a sum or what was just inserted, decoded. */
export function* one<T>(statement: Statement, decode: (row: Row) => T): Script<T> {
  const [row = {}] = yield statement;
  return decode(row);
}

/** The one number a statement answers with; 0 when it answers with nothing. */
export function* count(statement: Statement): Script<number> {
  const rows = yield statement;
  const row = rows[0];
  return row === undefined ? 0 : Number(Object.values(row)[0] ?? 0);
}

// ── Reading a row ────────────────────────────────────────────────────────────────────────────────────────────────────

export const text = (row: Row, column: string): string => {
  const value = row[column];
  if (typeof value !== "string") throw new TypeError(`column ${column} holds ${typeof value}, not text`);
  return value;
};

export const textOrNull = (row: Row, column: string): string | null => {
  const value = row[column];
  return value === null || value === undefined ? null : text(row, column);
};

export const int = (row: Row, column: string): number => {
  const value = row[column];
  if (typeof value !== "number") throw new TypeError(`column ${column} holds ${typeof value}, not a number`);
  return value;
};
