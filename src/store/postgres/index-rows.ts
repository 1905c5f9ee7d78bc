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

/** The key of what begins like this word, or of the words that begin with this. A single letter does not say all of it. */
export function sharedKey(word: string): string {
  const first = word.codePointAt(0) ?? 0;
  // Other scripts have many letters.
  if (first > 127) return String.fromCodePoint(first & ~63);
  return word.charCodeAt(1) < 128 ? word.slice(0, 2) : word.charAt(0);
}

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
  const found = new Map<string, { codes: string; last: number }>();
  const add = (word: string, id: number, code: string): void => {
    const known = found.get(word);
    if (known === undefined) found.set(word, { codes: code, last: id });
    else if (known.last !== id) {
      known.codes += code;
      known.last = id;
    }
  };
  for (const { id, terms } of entries) {
    const code = codeOf(id);
    const [, ...words] = terms.split(" ");
    for (const word of words) add(word, id, code);
    add("", id, code);
  }
  const keys = new Map<string, string>();
  const shared = new Map<string, string[]>();
  for (const [word, { codes }] of found) {
    if (word === "" || codes.length >= 2 * frequentMin) keys.set(ownKey(word), codes);
    else {
      const key = sharedKey(word);
      const lines = shared.get(key);
      if (lines === undefined) shared.set(key, [`\n${word} ${codes}`]);
      else lines.push(`\n${word} ${codes}`);
    }
  }
  for (const [key, lines] of shared) keys.set(key, lines.join(""));
  return keys;
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
