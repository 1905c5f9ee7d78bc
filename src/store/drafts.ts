/**
 * Drafts of rewrites, kept from a look at them to their use and beyond: the newest few of each summary. A draft answers
 * one question, its basis, of which a digest is kept; whoever asks the same again is told the same.
 */

import { createHash } from "node:crypto";
import type { NewSummary, SummaryId } from "../core/model.ts";
import { mustHave, summaries } from "./read.ts";
import { first, sql, text } from "./script.ts";
import type { Script } from "./script.ts";
import type { ScriptDeps } from "./totals.ts";

/** Of one summary: for several models or prompts that are compared. */
const keptMax = 5;

const digest = (basis: string): string => createHash("sha256").update(basis).digest("hex");

export function* draft(summary: SummaryId, basis: string): Script<NewSummary | null> {
  return yield* first(
    sql`SELECT draft_json FROM drafts WHERE summary_id = ${summary} AND basis = ${digest(basis)}`,
    (row) => JSON.parse(text(row, "draft_json")) as NewSummary,
  );
}

export function* saveDraft(
  deps: ScriptDeps,
  summary: SummaryId,
  basis: string,
  made: NewSummary,
  forgets?: number,
): Script<void> {
  if (forgets !== undefined) {
    const [old] = yield* summaries({ ids: [summary] });
    if (old === undefined || (yield* mustHave(old.conversation)).forgets !== forgets) return;
  }
  yield sql`INSERT OR REPLACE INTO drafts (summary_id, basis, draft_json, at)
            VALUES (${summary}, ${digest(basis)}, ${JSON.stringify(made)}, ${deps.now()})`;
  yield sql`DELETE FROM drafts WHERE summary_id = ${summary} AND basis NOT IN (
              SELECT basis FROM drafts WHERE summary_id = ${summary} ORDER BY at DESC, basis = ${digest(basis)} DESC
              LIMIT ${keptMax})`;
}
