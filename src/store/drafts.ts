/**
 * Drafts of rewrites, kept between a look at them and their use: one for each summary. A draft is of use only for the
 * very question it answers and the very text it was to replace, its basis, of which a digest is kept.
 */

import { createHash } from "node:crypto";
import type { NewSummary, SummaryId } from "../core/model.ts";
import { mustHave, summaries } from "./read.ts";
import { first, sql, text } from "./script.ts";
import type { Script } from "./script.ts";
import type { ScriptDeps } from "./totals.ts";

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
}
