/**
 * The rows of the search index, as blocks of 4,096 rows of one conversation. A row of the table has what a block knows of
 * all words that begin alike, one line for each word: the word and the places of the rows that contain it, in two digits
 * each. A word that is frequent in what is added has a table row of its own, so that looking up its neighbours stays cheap.
 * A row for every word would take five times the space, and to add to it as much longer.
 */

import type { Row } from "../script.ts";
import { int, text } from "../script.ts";
import type { CorpusName } from "../search/sources.ts";
import { idIn, numbersPerConversation } from "../../core/model/types.ts";
import { encode } from "./values.ts";

export const memberDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** As many as two digits tell apart. */
export const rowsPerBlock = memberDigits.length ** 2;

export const blockOf = (id: number): number => Math.floor((id % numbersPerConversation) / rowsPerBlock);

/** The place of a row in its block. */
export function codeOf(id: number): string {
  const member = id % rowsPerBlock;
  return memberDigits.charAt(member >> 6) + memberDigits.charAt(member & 63);
}

/** The key of the table row that a word has for itself. */
export const ownKey = (word: string): string => `=${word}`;

const sharedLetters = 3;

/** The key of what begins like this word, or of the words that begin with this, unless it is too short to say all of it. */
export function sharedKey(word: string): string {
  const first = word.codePointAt(0) ?? 0;
  // Other scripts have many letters.
  if (first > 127) return String.fromCodePoint(first & ~63);
  let length = 1;
  while (length < sharedLetters && word.charCodeAt(length) < 128) length += 1;
  return word.slice(0, length);
}

/** Whether words with this beginning have several keys, which all begin with it. */
export const hasManyKeys = (beginning: string): boolean =>
  beginning.length < sharedLetters && sharedKey(beginning) === beginning;

/** From this many rows on, a word has a table row of its own. */
const frequentMin = 64;

interface Entry {
  readonly id: number;
  /** The term of its conversation, and its own. */
  readonly terms: string;
}

/** A query that adds rows of one conversation. */
export function addEntries(corpus: CorpusName, entries: readonly Entry[]) {
  const blocks = Map.groupBy(entries, ({ id }) => blockOf(id));
  const added = [...blocks].flatMap(([block, members]) =>
    [...keysOf(members)].map(([key, found]) => ({ block, key, entries: found })),
  );
  added.sort((one, other) => (one.key < other.key ? -1 : Number(one.key > other.key)));
  const columnOf = (name: "key" | "block" | "entries"): string =>
    encode(added.map((row) => row[name]).join("\t")) as string;
  return {
    text: `INSERT INTO search_blocks AS known (conversation_id, block, corpus, key, entries)
      SELECT $1::bigint, block::int, '${corpus.charAt(0)}', key, entries
      FROM ROWS FROM (string_to_table($2, E'\t'), string_to_table($3, E'\t'), string_to_table($4, E'\t'))
        AS added (key, block, entries)
      ON CONFLICT (key, corpus, conversation_id, block) DO UPDATE SET entries = known.entries || excluded.entries`,
    values: [
      Math.floor((entries[0]?.id ?? 0) / numbersPerConversation),
      columnOf("key"),
      columnOf("block"),
      columnOf("entries"),
    ],
    answers: false,
  } as const;
}

/** What the rows of one block add to each key. */
function keysOf(entries: readonly Entry[]): ReadonlyMap<string, string> {
  const keys = new Map<string, string>([[ownKey(""), entries.map(({ id }) => codeOf(id)).join("")]]);
  const shared = new Map<string, string>();
  for (const [word, codes] of codesOf(entries)) {
    if (codes.length >= 2 * frequentMin) keys.set(ownKey(word), codes);
    else {
      const key = sharedKey(word);
      shared.set(key, `${shared.get(key) ?? ""}\n${word} ${codes}`);
    }
  }
  for (const [key, lines] of shared) keys.set(key, lines);
  return keys;
}

/**
 * Each word with the places of the rows that have it. A row has a hundred words, so this is most of the work of adding
 * one: places are lists in one array, in which each points to the one before it of the same word.
 */
function* codesOf(entries: readonly Entry[]): Generator<readonly [string, string]> {
  const numbers = new Map<string, number>();
  const newest: number[] = [];
  const rows: number[] = [];
  const before: number[] = [];
  for (const [row, { terms }] of entries.entries()) {
    // The first term is that of the conversation.
    for (let from = terms.indexOf(" ") + 1; from > 0;) {
      const to = terms.indexOf(" ", from);
      const word = to === -1 ? terms.slice(from) : terms.slice(from, to);
      from = to + 1;
      if (word === "") continue;
      let number = numbers.get(word);
      if (number === undefined) {
        number = newest.push(-1) - 1;
        numbers.set(word, number);
      }
      const last = newest[number] ?? -1;
      if (last >= 0 && rows[last] === row) continue;
      newest[number] = rows.push(row) - 1;
      before.push(last);
    }
  }
  const codes = entries.map(({ id }) => codeOf(id));
  for (const [word, number] of numbers) {
    let found = "";
    for (let at = newest[number] ?? -1; at >= 0; at = before[at] ?? -1) found = `${codes[rows[at] ?? 0]}${found}`;
    yield [word, found];
  }
}

const valueOf = new Map(memberDigits.split("").map((digit, value) => [digit.charCodeAt(0), value]));

/** The ids of a block's rows, from their places. */
export function idsIn(row: Row, codes = text(row, "codes")): readonly number[] {
  const first = idIn(int(row, "conversation_id"), int(row, "block") * rowsPerBlock);
  const ids: number[] = [];
  for (let at = 0; at < codes.length; at += 2)
    ids.push(first + (valueOf.get(codes.charCodeAt(at)) ?? 0) * 64 + (valueOf.get(codes.charCodeAt(at + 1)) ?? 0));
  return ids;
}
