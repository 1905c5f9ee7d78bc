/** Folds a run of context items into a summary that takes their place. */

import { checkAmount, LcmError } from "../../core/base/errors.ts";
import { tokensMax, type ContextItem } from "../../core/model/types.ts";
import { atOnce, sql, type WriteScript } from "../script.ts";
import { adjustTotals } from "../totals.ts";
import { itemsBetween, mustHave } from "./reads.ts";
import { insertPins } from "./pins.ts";
import { insertSearchWords } from "./search-words.ts";
import { groundOf, insertSummary } from "./summary-rows.ts";

export const fold: WriteScript<"fold"> = function* (deps, id, run, summary) {
  const head = run[0];
  const tail = run.at(-1);
  if (head === undefined || tail === undefined) throw new LcmError("invalid", "a run to fold needs at least one item");
  checkAmount("the number of tokens of a summary", summary.tokens, tokensMax);
  const [conversation, shown, ground] = yield* atOnce([
    mustHave(id),
    itemsBetween(id, head.ordinal - 1, tail.ordinal + 1),
    groundOf(deps, id, run),
  ]);
  if (summary.forgets !== undefined && conversation.forgets !== summary.forgets)
    return { kind: "stale", reason: "something was forgotten since the run was read" };
  if (!isSameRun(shown, run)) return { kind: "stale", reason: "the context has changed where the run was" };
  const depth = head.depth;
  if (shown.some((item) => item.depth !== depth)) {
    throw new LcmError("invalid", "a run to fold must be all messages, or all summaries of one depth");
  }
  const tokens = shown.reduce((sum, item) => sum + item.tokens, 0);
  if (summary.tokens >= tokens) {
    throw new LcmError("invalid", `a summary of ${summary.tokens} tokens does not shorten a run of ${tokens}`);
  }
  yield* insertSummary(deps, { id, run, summary }, ground);
  yield sql`DELETE FROM context_items
            WHERE conversation_id = ${id} AND ordinal BETWEEN ${head.ordinal} AND ${tail.ordinal}`;
  yield sql`INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id)
            VALUES (${id}, ${head.ordinal}, 'summary', ${ground.summaryId})`;
  const isLeaf = depth === -1;
  if (summary.searchWords !== undefined) yield* insertSearchWords(id, summary.searchWords);
  if (summary.pins !== undefined) yield* insertPins({ ...conversation, now: deps.now() }, summary.pins);
  yield* adjustTotals(
    deps,
    id,
    {
      summaries: 1,
      contextItems: 1 - shown.length,
      contextTokens: summary.tokens - tokens,
      contextMessages: isLeaf ? -shown.length : 0,
      contextMessageTokens: isLeaf ? -tokens : 0,
    },
    { last_summary: ground.searchNumber, unindexed: 1 },
  );
  return { kind: "written", summary: ground.summaryId };
};

/** An item whose tokens differ from when the run was read has been rewritten, or forgotten in part. */
const isSameRun = (shown: readonly ContextItem[], run: readonly ContextItem[]): boolean =>
  shown.length === run.length && shown.every((item, at) => item.id === run[at]?.id && item.tokens === run[at].tokens);
