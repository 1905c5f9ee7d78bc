/**
 * Looks words up in the search index (index-rows.ts). It has no positions, so words in a row are found as words together;
 * the text decides.
 */

import { one, sql, statement, text, type Row, type Script } from "../script.ts";
import { pendingConversations, type Match, type Probed, type SearchIndex } from "../search/indexing.ts";
import type { Term } from "../search/query.ts";
import { countEverything, type CorpusName, type Everything } from "../search/sources.ts";
import { termsVersion } from "../search/tokenize.ts";
import { hasManyKeys, rowsPerBlock } from "./index-rows.ts";
import { tryLock } from "./locks.ts";
import {
  createWordRows,
  everything,
  lookUpBeginning,
  sampleBlocks,
  sorted,
  inOrder,
  type Ids,
  type WordRows,
} from "./word-rows.ts";

const highest = Number.MAX_SAFE_INTEGER;

const fewConversations = 1_000;
const figuresAgeMs = 10_000;

/** Many conversations are not counted again for every search: how many rows they have only says how rare a word is. */
export function rememberEverything(nowMs: () => number): () => Script<Everything> {
  let counted: { readonly figures: Everything; readonly atMs: number } | null = null;
  return function* () {
    if (counted !== null && nowMs() - counted.atMs < figuresAgeMs) {
      const hidden = sql`SELECT json_group_array(conversation_id) AS ids FROM conversations WHERE hidden = 1`;
      return { ...counted.figures, hidden: yield* one(hidden, (row) => text(row, "ids")) };
    }
    const figures = yield* countEverything();
    counted = figures.conversations < fewConversations ? null : { figures, atMs: nowMs() };
    return figures;
  };
}

/** For one search, of which it remembers what it has read; or for indexing. */
export function createSearchIndex(schema: string, countAll = countEverything): SearchIndex {
  const words = createWordRows();
  let conversations = 0;
  const index: SearchIndex = {
    *everything() {
      const counted = yield* countAll();
      ({ conversations } = counted);
      return counted;
    },
    expect: (corpora, terms, among) => expectAll(words, corpora, terms, among),
    holding: (corpus, match) => idsOf(words, corpus, match),
    *newest(corpus, match, most, below = highest) {
      const [term, ...others] = match.all;
      if (term === undefined || !isOfWords(term) || others.length + match.any.length > 0)
        return (yield* idsOf(words, corpus, match)).filter((id) => id < below).slice(0, most);
      const found: Ids[] = [];
      for (const word of wholeWords(term))
        found.push(yield* words.newest({ corpus, word, among: match.conversations }, most, below));
      return anyOf(found).slice(0, most);
    },
    *probe(corpus, terms, most, isSample) {
      if (isSample && conversations > sampleBlocks) {
        const sampled = yield* words.sample(corpus, terms.flatMap(wholeWords));
        const inRow = (row: readonly string[]): Ids => together(row.map((word) => sampled.get(word) ?? []));
        return terms.map((term) => ({ ids: anyOf(term.alternatives.map(inRow)).slice(0, most), isCut: true }));
      }
      yield* expectAll(words, [corpus], terms, []);
      const found: Probed[] = [];
      for (const term of terms) {
        const ids = yield* index.newest(corpus, { conversations: [], all: [term], any: [] }, most);
        found.push({ ids, isCut: ids.length === most });
      }
      return found;
    },
    *vocabulary(prefix, most) {
      const limit = sampleBlocks * (hasManyKeys(prefix) ? keysPerBeginning : 1);
      const rows = yield lookUpBeginning("messages", prefix, { ...everything, limit });
      const begun = new Set(rows.flatMap((row) => wordsIn(row, prefix).map(({ word }) => word)));
      return [...begun].sort().slice(0, most);
    },
    pending: statement(`${pendingConversations} AND ${tryLock(schema)} LIMIT 1`),
    rowsPerPage: rowsPerBlock,
    reset: [
      "DELETE FROM search_blocks",
      "DELETE FROM search_progress",
      "UPDATE conversations SET indexed_seq = 0, indexed_summary = 0, unindexed = 1",
      `INSERT INTO search_progress (version) VALUES (${termsVersion})`,
    ].map((each) => statement(each)),
  };
  return index;
}

/** How many keys of a block begin with the same letters, if these are too few for a key. */
const keysPerBeginning = 24;

function* expectAll(
  words: WordRows,
  corpora: readonly CorpusName[],
  terms: readonly Term[],
  among: readonly number[],
): Script<void> {
  for (const corpus of corpora) yield* words.expect(corpus, terms.flatMap(wholeWords), among);
}

/** Only the last word of a row may be a beginning. */
const wholeWords = ({ alternatives, prefix }: Term): readonly string[] =>
  alternatives.flatMap((row) => (prefix ? row.slice(0, -1) : row));

/** Whether each alternative is one whole word, so that its newest rows are found without reading all of them. */
const isOfWords = ({ alternatives, prefix }: Term): boolean => !prefix && alternatives.every((row) => row.length === 1);

/** Rows that match, highest id first. */
function* idsOf(words: WordRows, corpus: CorpusName, { conversations, all: required, any }: Match): Script<Ids> {
  const terms = [...required, ...any];
  const ids = yield* words.all(corpus, terms.flatMap(wholeWords), conversations);
  const found: Ids[] = [];
  for (const term of terms) {
    const alternatives: Ids[] = [];
    for (const row of term.alternatives) {
      const whole = wholeWords({ ...term, alternatives: [row] }).map((word) => ids.get(word) ?? []);
      const [beginning = ""] = term.prefix ? row.slice(-1) : [];
      alternatives.push(
        together(term.prefix ? [...whole, yield* idsOfBeginning(corpus, beginning, conversations)] : whole),
      );
    }
    found.push(anyOf(alternatives));
  }
  const needed = found.slice(0, required.length);
  return together(any.length === 0 ? needed : [...needed, anyOf(found.slice(required.length))]);
}

function* idsOfBeginning(corpus: CorpusName, beginning: string, among: readonly number[]): Script<Ids> {
  const rows = yield lookUpBeginning(corpus, beginning, { ...everything, among });
  return inOrder(rows, (row) =>
    wordsIn(row, beginning)
      .map(({ codes }) => codes)
      .join(""),
  );
}

/** The words of a table row that begin with this, each with the places of its rows; some are there several times. */
function wordsIn(row: Row, prefix: string): readonly { readonly word: string; readonly codes: string }[] {
  const codes = text(row, "codes");
  if (row["part"] === 0) return [{ word: text(row, "key").slice(1), codes }];
  return codes.split("\n").flatMap((line) => {
    const [word = "", found = ""] = line.split(" ");
    return word.startsWith(prefix) ? [{ word, codes: found }] : [];
  });
}

/** What all of these have; nothing, if there are none. */
function together(lists: readonly Ids[]): Ids {
  const [shortest = [], ...others] = lists.toSorted((one, other) => one.length - other.length);
  return others.reduce((found, other) => {
    const held = new Set(other);
    return found.filter((id) => held.has(id));
  }, shortest);
}

const anyOf = (lists: readonly Ids[]): Ids => (lists.length === 1 ? (lists[0] ?? []) : sorted(lists.flat()));
