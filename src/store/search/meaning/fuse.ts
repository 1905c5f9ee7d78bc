/** Ranks messages by words and by meaning together: adds those that are closest in meaning, and scores all of them. */

import type { SearchCaveat } from "../../../core/model/store.ts";
import type { Scored, WordSearch } from "../read-candidates.ts";
import { compareMeaning, type Meaning } from "./compare.ts";
import { messages } from "../sources.ts";
import type { Script } from "../../script.ts";

/** How many messages are added because they are close. */
const closestMax = 200;

interface Fused {
  readonly scored: readonly Scored[];
  readonly caveats: readonly SearchCaveat[];
}

/** `scored` are the rows that words found. Without a question as vectors, it is returned as it is. */
export function* fuseMeaning(wanted: WordSearch, scored: readonly Scored[]): Script<Fused> {
  const { request, query, scope, deadline, read } = wanted;
  if (request.meaning === undefined || !scope.corpora.includes(messages)) return { scored, caveats: [] };
  const meaning = yield* compareMeaning(request.meaning, scope.filter, deadline);
  const known = new Set(scored.flatMap(({ row }) => (row.corpus === "messages" ? [row.id] : [])));
  // A message without a phrase that was asked for is no match, however close it is.
  const added = query.phrases.length > 0 ? [] : meaning.closest(closestMax).filter((id) => !known.has(id));
  const rows = yield* messages.rows(added.filter(scope.isNear.messages), scope.filter);
  const close = rows
    .filter(({ text }) => text.trim() !== "")
    .map((row): Scored => ({ row, reading: read(row.text), score: 0 }));
  const isFew = meaning.missing <= fewMissing && meaning.missing * 10 <= meaning.rows;
  return {
    scored: fuse([...scored, ...close], meaning),
    caveats: isFew ? [] : [{ kind: "unembedded", messages: meaning.missing, of: meaning.rows }],
  };
}

/** The newest messages are embedded a little later; the agent that asks mostly sees them anyway. */
const fewMissing = 100;

/** Chosen on all data sets together, leaving one conversation out at a time. */
const fusionRules = {
  /** How much a standard deviation of closeness counts, where the best match by words counts 1. */
  meaningShare: 0.15,
  /** How much the closer of the two messages beside a message counts for it. */
  besideShare: 0.5,
  /** How much longer texts lose: they are close to everything. */
  lengthShare: 0.25,
  lengthWords: 100,
};

/** Scores messages by words and by meaning. Summaries keep their scores, and are ranked apart. */
function fuse(rows: readonly Scored[], meaning: Pick<Meaning, "closeness">): readonly Scored[] {
  const { meaningShare, besideShare, lengthShare, lengthWords } = fusionRules;
  const best =
    rows.reduce((most, { row, score }) => (row.corpus === "messages" ? Math.max(most, score) : most), 0) || 1;
  return rows.map((each) => {
    const { corpus, conversation, seq } = each.row;
    if (corpus !== "messages") return each;
    const byWords = each.score / best;
    const own = meaning.closeness(conversation, seq);
    if (own === null) return { ...each, score: byWords };
    const beside = [seq - 1, seq + 1].flatMap((at) => meaning.closeness(conversation, at) ?? []);
    const excess = Math.log(Math.max(1, each.reading.length / lengthWords));
    // Being far from a question says little: its answer may be a bare value.
    const close =
      Math.max(0, own) + (beside.length === 0 ? 0 : besideShare * Math.max(...beside)) - lengthShare * excess;
    return { ...each, score: byWords + meaningShare * close };
  });
}
