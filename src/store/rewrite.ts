/** New text for a summary. Its id, its sources and its place stay; what was there before goes to the journal. */

import { LcmError } from "../core/errors.ts";
import type { NewSummary } from "../core/model.ts";
import type { RewritePlan, Written } from "../core/ports.ts";
import { writeJournal } from "./ledger.ts";
import { mustHave, summaries } from "./read.ts";
import { count, sql } from "./script.ts";
import type { Script } from "./script.ts";
import { reindexRow } from "./indexing.ts";
import { adjustTotals } from "./totals.ts";
import type { ScriptDeps } from "./totals.ts";

export function* rewrite(
  deps: ScriptDeps,
  plan: RewritePlan,
  draft: NewSummary,
): Script<Written<{ readonly revision: number }>> {
  const [old] = yield* summaries({ ids: [plan.summary] });
  if (old === undefined) {
    throw new LcmError("not_found", `there is no summary ${plan.summary}`, { hint: "`lcm doctor` lists them" });
  }
  if (old.revision !== plan.revision) {
    return { kind: "stale", reason: `${plan.summary} was rewritten in the meantime` };
  }
  if (plan.forgets !== undefined && (yield* mustHave(old.conversation)).forgets !== plan.forgets) {
    return { kind: "stale", reason: `something was forgotten since the sources of ${plan.summary} were read` };
  }
  const revision = old.revision + 1;
  yield sql`UPDATE summaries SET content = ${draft.text}, token_count = ${draft.tokens}, level = ${draft.level},
              model = ${draft.model}, previous_context = ${draft.previousContext},
              file_ids = ${JSON.stringify(draft.fileIds)}, revision = ${revision}, rewrite_reason = NULL,
              updated_at = ${deps.now()}
            WHERE summary_id = ${plan.summary}`;
  yield* reindexSummary(plan.summary);
  const shown = yield* count(sql`SELECT count(*) FROM context_items WHERE summary_id = ${plan.summary}`);
  yield* adjustTotals(deps, old.conversation, { contextTokens: shown * (draft.tokens - old.tokens) });
  yield* writeJournal(deps, {
    operation: "rewrite",
    conversation: old.conversation,
    subject: plan.summary,
    before: {
      text: old.text,
      tokens: old.tokens,
      level: old.level,
      model: old.model,
      previousContext: old.previousContext,
      fileIds: old.fileIds,
      rewriteReason: old.rewriteReason,
      revision: old.revision,
    },
    after: {
      text: draft.text,
      tokens: draft.tokens,
      level: draft.level,
      model: draft.model,
      previousContext: draft.previousContext,
      fileIds: draft.fileIds,
      revision,
    },
  });
  return { kind: "written", revision };
}

/** Brings the search entry of a summary up to its present text. */
export function* reindexSummary(id: string): Script<void> {
  const [row] = yield sql`SELECT search_id, content, conversation_id FROM summaries WHERE summary_id = ${id}`;
  if (row !== undefined) {
    yield* reindexRow("summaries", Number(row["search_id"]), String(row["content"]), Number(row["conversation_id"]));
  }
}
