/**
 * New text for a summary. Its id, its sources and its place stay; what was there before goes to the journal. And drafts
 * of such texts, kept from a look at them to their use and beyond.
 */

import { createHash } from "node:crypto";
import { LcmError } from "../../core/base/errors.ts";
import type { NewSummary, Summary } from "../../core/model/types.ts";
import type { PartOf } from "../../core/model/changes.ts";
import { forgetBefore, replaced } from "../journal/record.ts";
import type { Image, Step } from "../journal/record.ts";
import { mustHave, reads } from "../conversation/reads.ts";
import { first, sql, text } from "../script.ts";
import type { ReadScript, Script, ScriptDeps, WriteScript } from "../script.ts";

export const rewrite: WriteScript<"rewrite"> = function* (deps, plan, draft, partOf) {
  const [old] = yield* reads.summaries({ ids: [plan.summary] });
  if (old === undefined) {
    throw new LcmError("not_found", `there is no summary ${plan.summary}`, { hint: "`lcm doctor` lists them" });
  }
  if (old.revision !== plan.revision) {
    return { kind: "stale", reason: `${plan.summary} was rewritten in the meantime` };
  }
  if (plan.forgets !== undefined && (yield* mustHave(old.conversation)).forgets !== plan.forgets) {
    return { kind: "stale", reason: `something was forgotten since the sources of ${plan.summary} were read` };
  }
  const sources = yield* reads.summaries({ ids: (plan.sources ?? []).map(({ summary }) => summary) });
  const changed = plan.sources?.find(({ summary, revision }) =>
    sources.every((each) => each.id !== summary || each.revision !== revision),
  );
  if (changed !== undefined) {
    return { kind: "stale", reason: `${changed.summary}, which it was written from, was rewritten in the meantime` };
  }
  const made = textImage(deps, old, draft);
  const change = yield* replaced(deps, stepOf(old, partOf), [made]);
  if (old.rewriteReason !== null) yield* afterForgetting(deps, old, draft, { ...partOf, change });
  return { kind: "written", change, revision: old.revision + 1 };
};

const stepOf = (summary: Summary, partOf?: PartOf): Step => ({
  operation: "rewrite",
  conversation: summary.conversation,
  subject: summary.id,
  partOf,
});

const textImage = (deps: ScriptDeps, old: Summary, draft: NewSummary): Image => ({
  table: "summaries",
  key: { summary_id: old.id },
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
});

/**
 * It was marked because it stood for what was forgotten: what it said must not stay in the journal, nor come back. Where
 * its text was carried over, the new one takes its place.
 */
function* afterForgetting(deps: ScriptDeps, old: Summary, draft: NewSummary, partOf: PartOf): Script<void> {
  yield* forgetBefore(old.id);
  for (const id of yield* reads.carriedBy(old.id)) {
    const [copy] = yield* reads.summaries({ ids: [id] });
    if (copy === undefined || copy.rewriteReason === null) continue;
    yield* replaced(deps, stepOf(copy, partOf), [textImage(deps, copy, { ...draft, previousContext: null })]);
    yield* forgetBefore(copy.id);
  }
}

// ── Drafts ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The newest few of one summary: for several models or prompts that are compared. */
const keptMax = 5;

/** A draft answers one question, its basis; whoever asks the same again is told the same. */
const digest = (basis: string): string => createHash("sha256").update(basis).digest("hex");

export const draft: ReadScript<"draft"> = (summary, basis) =>
  first(
    sql`SELECT draft_json FROM drafts WHERE summary_id = ${summary} AND basis = ${digest(basis)}`,
    (row) => JSON.parse(text(row, "draft_json")) as NewSummary,
  );

export const saveDraft: WriteScript<"saveDraft"> = function* (deps, summary, basis, made, forgets) {
  const [old] = yield* reads.summaries({ ids: [summary] });
  if (old === undefined) return;
  if (forgets !== undefined && (yield* mustHave(old.conversation)).forgets !== forgets) return;
  yield sql`INSERT OR REPLACE INTO drafts (conversation_id, summary_id, basis, draft_json, at)
            VALUES (${old.conversation}, ${summary}, ${digest(basis)}, ${JSON.stringify(made)}, ${deps.now()})`;
  yield sql`DELETE FROM drafts WHERE summary_id = ${summary} AND basis NOT IN (
              SELECT basis FROM drafts WHERE summary_id = ${summary} ORDER BY at DESC, basis = ${digest(basis)} DESC
              LIMIT ${keptMax})`;
};
