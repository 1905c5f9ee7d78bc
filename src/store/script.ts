/**
 * Scripts: store operations written once, as generators that yield statements and receive rows. A runner sends the
 * statements to a database and wraps each script in one transaction, so an operation cannot leave one open.
 */

import type { Timestamp } from "../core/base/time.ts";
import type { ForgetPlan, Store } from "../core/model/store.ts";
import type { ConversationId } from "../core/model/types.ts";

export type Value = null | number | string | Uint8Array;
export type Row = Readonly<Record<string, Value>>;

export interface Statement {
  /** Identifies the statement: a call site always yields the same object, so runners can cache by it. */
  readonly parts: readonly string[];
  readonly values: readonly Value[];
}

/** What a script asks in one step. */
export type Asked = Statement | readonly Statement[] | Apart;

/**
 * A list holds statements that do not need each other's rows, so a database behind a network runs it in one round trip.
 * They run in order; the script receives all their rows, concatenated.
 */
export type Script<T> = Generator<Asked, T, readonly Row[]>;

/** A list whose rows are not concatenated: the runner answers with a list of rows for each statement. See `atOnce`. */
export class Apart {
  readonly statements: readonly Statement[];
  constructor(statements: readonly Statement[]) {
    this.statements = statements;
  }
}

/** Answered with a row where a step costs nothing but itself, and so nothing is gained by asking side by side. */
export const whetherInTurn = new Apart([]);

/** Runs each script in a transaction of its own. A write may be retried, and then begins with a new script. */
export interface Transactions {
  readonly read: <T>(script: () => Script<T>) => Promise<T>;
  readonly write: <T>(script: () => Script<T>) => Promise<T>;
}

/** What scripts need from outside: the time, random hexadecimal digits for ids, and tables that are not ours. */
export interface ScriptDeps {
  readonly now: () => Timestamp;
  readonly hex16: () => string;
  readonly leftovers: Leftovers;
}

/** What another program left in the database beside our tables. */
export interface Leftovers {
  /** How many of its rows contain a secret. */
  count(secret: string): Script<number>;
  /** Removes what was kept of a message, or a secret wherever it is. */
  forget(target: ForgetPlan["target"]): Script<void>;
  /** Removes what was kept of these conversations. Their own rows must still exist. */
  remove(conversations: readonly ConversationId[]): Script<void>;
}

function* nothing<T>(value: T): Script<T> {
  yield* [];
  return value;
}

/** For a database that has only our tables. */
export const noLeftovers: Leftovers = {
  count: () => nothing(0),
  forget: () => nothing(undefined),
  remove: () => nothing(undefined),
};

type ScriptOf<Method, Given extends readonly unknown[]> = Method extends (...args: infer Args) => Promise<infer Result>
  ? (...args: [...Given, ...Args]) => Script<Result>
  : never;

/** The methods of the port, without its optional capabilities. */
export type StoreMethod = Exclude<keyof Store, "databaseFile">;

/** A method of the port as a script, with the port's own arguments and result. */
export type ReadScript<Name extends StoreMethod> = ScriptOf<Store[Name], []>;
export type WriteScript<Name extends StoreMethod> = ScriptOf<Store[Name], [deps: ScriptDeps]>;
export type ReadScripts = { readonly [Name in StoreMethod]?: ReadScript<Name> };
export type WriteScripts = { readonly [Name in StoreMethod]?: WriteScript<Name> };

/** A list is passed as JSON and read with `numbers_in` or `texts_in`. */
type Given = Value | readonly (number | string)[];
const toValue = (given: Given): Value => (Array.isArray(given) ? JSON.stringify(given) : (given as Value));

export const sql = (parts: TemplateStringsArray, ...given: readonly Given[]): Statement => ({
  parts,
  values: given.map(toValue),
});

const known = new Map<string, readonly string[]>();

/** A statement whose table or column names are known only at run time, with `?` for each value. */
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

/** The first row of a statement, decoded; null if there is none. */
export function* first<T>(statement: Statement, decode: (row: Row) => T): Script<T | null> {
  const [row] = yield statement;
  return row === undefined ? null : decode(row);
}

/** The row of a statement that always returns one, such as a sum or an INSERT … RETURNING, decoded. */
export function* one<T>(statement: Statement, decode: (row: Row) => T): Script<T> {
  const [row = {}] = yield statement;
  return decode(row);
}

/** The number that a statement returns; 0 if it returns nothing. */
export function* count(statement: Statement): Script<number> {
  const [row = {}] = yield statement;
  return Number(Object.values(row)[0] ?? 0);
}

/** The same of several statements that always return a row. */
export function* counts(statements: readonly Statement[]): Script<number[]> {
  const rows = yield statements;
  return rows.map((row) => Number(Object.values(row)[0] ?? 0));
}

type Results<Scripts extends readonly Script<unknown>[]> = {
  -readonly [At in keyof Scripts]: Scripts[At] extends Script<infer Result> ? Result : never;
};

/** Runs scripts side by side: what they ask at the same time is one step, so they take as many as the longest. */
export function* atOnce<const Scripts extends readonly Script<unknown>[]>(scripts: Scripts): Script<Results<Scripts>> {
  const results: unknown[] = [];
  if ((yield whetherInTurn).length > 0) {
    for (const script of scripts) results.push(yield* script);
    return results as Results<Scripts>;
  }
  let steps = scripts.map((script, at) => ({ script, at, step: stepOf(script) }));
  for (;;) {
    const asking = steps.flatMap(({ script, at, step }) => {
      if (step.done !== true) return [{ script, at, asked: step.value }];
      results[at] = step.value;
      return [];
    });
    const [only] = asking;
    if (only === undefined) return results as Results<Scripts>;
    if (asking.length === 1) steps = [{ ...only, step: stepOf(only.script, yield only.asked) }];
    else steps = answered(asking, apart(yield new Apart(asking.flatMap(({ asked }) => statementsOf(asked)))));
  }
}

interface Asking {
  readonly script: Script<unknown>;
  readonly at: number;
  readonly asked: Asked;
}

/** Gives each script the rows of its own statements. */
function answered(asking: readonly Asking[], lists: readonly (readonly Row[])[]) {
  let from = 0;
  return asking.map(({ script, at, asked }) => {
    const own = lists.slice(from, (from += statementsOf(asked).length));
    return { script, at, step: stepOf(script, asked instanceof Apart ? together(own) : own.flat()) };
  });
}

/** The next step that asks for something: a script that asks for nothing does not wait for the others. */
function stepOf<T>(script: Script<T>, rows: readonly Row[] = []) {
  let step = script.next(rows);
  while (step.done !== true && statementsOf(step.value).length === 0) step = script.next([]);
  return step;
}

export const statementsOf = (asked: Asked): readonly Statement[] =>
  asked instanceof Apart ? asked.statements : "parts" in asked ? [asked] : asked;

/** The answer to a list whose rows are apart has another form than the type of scripts says. */
const apart = (answer: readonly unknown[]): readonly (readonly Row[])[] => answer as readonly (readonly Row[])[];
export const together = (lists: readonly unknown[]): readonly Row[] => lists as readonly Row[];

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
