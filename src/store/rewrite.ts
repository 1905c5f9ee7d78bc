/** New text for a summary. Its id, its sources and its place stay; what was there before goes to the journal. */

import { LcmError } from "../core/errors.ts";
import type { NewSummary } from "../core/model.ts";
import type { Changed, PartOf, RewritePlan, Written } from "../core/changes.ts";
import { replaced } from "./change.ts";
import { mustHave, summaries } from "./read.ts";
import { sql } from "./script.ts";
import type { Script } from "./script.ts";
import type { ScriptDeps } from "./totals.ts";

export function* rewrite(
  deps: ScriptDeps,
  plan: RewritePlan,
  draft: NewSummary,
  partOf?: PartOf,
): Script<Written<Changed & { readonly revision: number }>> {
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
  const step = { operation: "rewrite", conversation: old.conversation, subject: plan.summary, partOf } as const;
  const row = { table: "summaries", key: { summary_id: plan.summary } } as const;
  const change = yield* replaced(deps, step, [
    {
      ...row,
      columns: {
        content: draft.text,
        token_count: draft.tokens,
        level: draft.level,
        model: draft.model,
        previous_context: draft.previousContext,
        file_ids: JSON.stringify(draft.fileIds),
        revision: old.revision + 1,
        rewrite_reason: null,
        updated_at: deps.now(),
      },
    },
  ]);
  yield sql`DELETE FROM drafts WHERE summary_id = ${plan.summary}`;
  return { kind: "written", change, revision: old.revision + 1 };
}
