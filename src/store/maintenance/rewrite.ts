/**
 * Replaces the text of a summary, and stores drafts of new texts.
 * Its id, sources and place stay; the journal keeps the previous text.
 */

import { createHash } from "node:crypto";
import { checkAmount, LcmError } from "../../core/base/errors.ts";
import { tokensMax, type NewSummary, type Summary } from "../../core/model/types.ts";
import type { PartOf } from "../../core/model/changes.ts";
import { forgetBefore, replaceRows, type Image, type Step } from "../journal/record.ts";
import { insertPins } from "../conversation/pins.ts";
import { mustHave, reads } from "../conversation/reads.ts";
import { insertSearchWords } from "../conversation/search-words.ts";
import { first, sql, text, type ReadScript, type Script, type ScriptDeps, type WriteScript } from "../script.ts";

export const rewrite: WriteScript<"rewrite"> = function* (deps, plan, draft, partOf) {
  const [old] = yield* reads.summaries({ ids: [plan.summary] });
  if (old === undefined) {
    throw new LcmError("not_found", `there is no summary ${plan.summary}`, {
      hint: "`lcm dag CONVERSATION` lists them",
    });
  }
  checkAmount("the number of tokens of a summary", draft.tokens, tokensMax);
  if (old.revision !== plan.revision) return { kind: "stale", reason: `${plan.summary} was rewritten in the meantime` };
  const conversation = yield* mustHave(old.conversation);
  if (plan.forgets !== undefined && conversation.forgets !== plan.forgets) {
    return { kind: "stale", reason: `something was forgotten since the sources of ${plan.summary} were read` };
  }
  const sources = yield* reads.summaries({ ids: (plan.sources ?? []).map(({ summary }) => summary) });
  const changed = plan.sources?.find(({ summary, revision }) =>
    sources.every((each) => each.id !== summary || each.revision !== revision),
  );
  if (changed !== undefined) {
    return { kind: "stale", reason: `${changed.summary}, which it was written from, was rewritten in the meantime` };
  }
  const change = yield* replaceRows(deps, stepOf(old, partOf), [textImage(deps, old, draft)]);
  // Like a fold: what was found in the messages stays with them, also when the text is undone.
  if (draft.pins !== undefined) yield* insertPins({ ...conversation, now: deps.now() }, draft.pins);
  if (draft.searchWords !== undefined) yield* insertSearchWords(old.conversation, draft.searchWords);
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
 * The summary was marked for rewriting because it covered something forgotten, so its previous text must leave the
 * journal. Summaries that carry its text get the new one.
 */
function* afterForgetting(deps: ScriptDeps, old: Summary, draft: NewSummary, partOf: PartOf): Script<void> {
  yield* forgetBefore(old.id);
  for (const id of yield* reads.carriedBy(old.id)) {
    const [copy] = yield* reads.summaries({ ids: [id] });
    if (copy === undefined || copy.rewriteReason === null) continue;
    yield* replaceRows(deps, stepOf(copy, partOf), [textImage(deps, copy, { ...draft, previousContext: null })]);
    yield* forgetBefore(copy.id);
  }
}

/** Several drafts of one summary, to compare models or prompts. */
const keptMax = 5;

const digest = (basis: string): string => createHash("sha256").update(basis).digest("hex");

export const draft: ReadScript<"draft"> = (summary, basis) =>
  first(
    sql`SELECT draft_json FROM drafts WHERE summary_id = ${summary} AND basis = ${digest(basis)}`,
    (row) => JSON.parse(text(row, "draft_json")) as NewSummary,
  );

export const saveDraft: WriteScript<"saveDraft"> = function* (deps, summary, basis, { forgets, ...made }) {
  const [old] = yield* reads.summaries({ ids: [summary] });
  checkAmount("the number of tokens of a draft", made.tokens, tokensMax);
  if (old === undefined) return;
  if (forgets !== undefined && (yield* mustHave(old.conversation)).forgets !== forgets) return;
  yield sql`INSERT INTO drafts (conversation_id, summary_id, basis, draft_json, at)
            VALUES (${old.conversation}, ${summary}, ${digest(basis)}, ${JSON.stringify(made)}, ${deps.now()})
            ON CONFLICT (summary_id, basis, conversation_id)
              DO UPDATE SET draft_json = excluded.draft_json, at = excluded.at`;
  yield sql`DELETE FROM drafts WHERE summary_id = ${summary} AND basis NOT IN (
              SELECT basis FROM drafts WHERE summary_id = ${summary} ORDER BY at DESC, basis = ${digest(basis)} DESC
              LIMIT ${keptMax})`;
};
