/**
 * Forgets a message or a secret in all rows: plans what to change, then redacts it in one transaction.
 * The search index is updated in the same transaction; sqlite/scrub.ts then overwrites the old pages.
 */

import { LcmError } from "../../core/base/errors.ts";
import {
  forgetMessage,
  escapedForms,
  containsSecret,
  isOwnWord,
  isTitleFrom,
  redactJson,
  redactLine,
  redactMessage,
  redactText,
  redactTitle,
  secretLengthMin,
} from "../../core/maintenance/redact.ts";
import type { Redacted } from "../../core/maintenance/redact.ts";
import type { ConversationId, Message, MessageId, StoredFile, SummaryId } from "../../core/model/types.ts";
import type { ForgetPlan } from "../../core/model/store.ts";
import { renewChecksum } from "../checksums.ts";
import { journalStep } from "../journal/record.ts";
import { reads } from "../conversation/reads.ts";
import { asConversation, asMessage, toStoredFile, toSummaryId } from "../rows.ts";
import { all, count, int, sql, statement, text } from "../script.ts";
import type { Script, ScriptDeps, Statement, WriteScript } from "../script.ts";
import { reindex, reindexRow, reindexWords } from "../search/indexing.ts";
import { adjustTotals } from "../totals.ts";
import { movedToText, partRows } from "../conversation/append.ts";
import { setTitle } from "../conversation/open.ts";
import { renderedTokens } from "../../core/base/escape.ts";
import { forgottenMark, mapMimeType, messageName } from "../../core/model/types.ts";

/** Covers rows only; stored-files.ts searches the content of files. */
export const planForget: WriteScript<"planForget"> = function* (deps, scope, target) {
  return target.kind === "message" ? yield* planMessage(scope, target.id) : yield* planSecret(deps, scope, target.text);
};

function* planMessage(scope: ConversationId | null, id: MessageId): Script<ForgetPlan> {
  const [message] = yield* reads.messages({ ids: [id] });
  if (message === undefined || (scope !== null && message.conversation !== scope)) {
    const where = scope === null ? "" : ` in conversation ${scope}`;
    throw new LcmError("not_found", `there is no ${messageName(id)}${where}`, {
      hint: "list messages with `lcm messages CONVERSATION`",
    });
  }
  const ids = yield* withCopies(id);
  const above = new Set<SummaryId>();
  for (const each of ids) for (const summary of yield* reads.coveredBy(each)) above.add(summary);
  // Also summaries that carry one of these texts, and those made from them. The set grows while it is walked.
  for (const summary of above) {
    for (const carrier of yield* reads.carriedBy(summary)) above.add(carrier);
    for (const made of (yield* reads.derived([summary])).get(summary) ?? []) above.add(made);
  }
  // The text of a purged summary is only in the journal, and no link shows any more what it was made from.
  const steps = yield* all(
    sql`SELECT journal_id FROM journal WHERE subject IN (SELECT value FROM texts_in(${[...above]}))
          OR subject IN (SELECT value FROM texts_in(${ids.map(messageName)})) AND operation <> 'forget'
          OR ((operation IN ('dissolve', 'undo') OR subject NOT IN (SELECT summary_id FROM summaries))
              AND instr(before_json || after_json, '"content"')
              AND conversation_id IN (
                SELECT conversation_id FROM messages WHERE message_id IN (SELECT value FROM numbers_in(${ids}))
                UNION
                SELECT conversation_id FROM summaries WHERE summary_id IN (SELECT value FROM texts_in(${[...above]}))))
        ORDER BY journal_id`,
    (row) => int(row, "journal_id"),
  );
  return {
    target: { kind: "message", id },
    messages: ids,
    summaries: [...above],
    files: [],
    journal: steps,
    entries: (yield* titlesFrom(ids)).length + (yield* count(derivedFrom(ids))),
  };
}

/** Files with answers of a model about messages, of any conversation. */
export const mapFiles = (): Script<readonly StoredFile[]> =>
  all(sql`SELECT * FROM large_files WHERE mime_type = ${mapMimeType} ORDER BY file_id`, toStoredFile);

/** Pins and words for search. */
const derivedFrom = (ids: readonly MessageId[]): Statement =>
  sql`SELECT (SELECT count(*) FROM pins WHERE message_id IN (SELECT value FROM numbers_in(${ids})))
           + (SELECT count(*) FROM search_words WHERE message_id IN (SELECT value FROM numbers_in(${ids})))`;

/** Files whose content comes only from this message and its copies. */
export function* filesOnlyOf(id: MessageId): Script<readonly StoredFile[]> {
  const ids = yield* withCopies(id);
  return yield* all(
    sql`SELECT * FROM large_files WHERE file_id IN (
          SELECT f.value ->> 'file' FROM messages m, objects_in(m.moved) f
          WHERE m.moved IS NOT NULL AND m.message_id IN (SELECT value FROM numbers_in(${ids}))
          EXCEPT
          SELECT f.value ->> 'file' FROM messages m, objects_in(m.moved) f
          WHERE m.moved IS NOT NULL AND m.message_id NOT IN (SELECT value FROM numbers_in(${ids})))
        ORDER BY file_id`,
    toStoredFile,
  );
}

export const filesIn = (scope: ConversationId | null): Script<readonly StoredFile[]> =>
  all(
    sql`SELECT * FROM large_files WHERE ${scope} IS NULL OR conversation_id = ${scope} ORDER BY file_id`,
    toStoredFile,
  );

/** The message, the original it was transplanted from, and every copy of that. */
export const withCopies = (id: MessageId): Script<readonly MessageId[]> =>
  all(
    sql`WITH RECURSIVE origin(message_id) AS (
          VALUES (${id})
          UNION SELECT m.copied_from FROM messages m JOIN origin o USING (message_id) WHERE m.copied_from IS NOT NULL
        ), same(message_id) AS (
          SELECT message_id FROM origin
          UNION SELECT m.message_id FROM messages m JOIN same s ON m.copied_from = s.message_id
        )
        SELECT message_id FROM same JOIN messages USING (message_id) ORDER BY message_id`,
    (row) => asMessage(int(row, "message_id")),
  );

/** Conversations whose title was taken from one of these messages, as an import does with the first. */
function* titlesFrom(ids: readonly MessageId[]): Script<readonly ConversationId[]> {
  const messages = yield* reads.messages({ ids });
  return (yield* titles(null))
    .filter(({ id, title }) => messages.some((message) => message.conversation === id && isTitleFrom(title, message)))
    .map(({ id }) => id);
}

interface Titled {
  readonly id: ConversationId;
  readonly title: string;
}

const titles = (scope: ConversationId | null): Script<readonly Titled[]> =>
  all(
    sql`SELECT conversation_id, title FROM conversations
        WHERE title IS NOT NULL AND (${scope} IS NULL OR conversation_id = ${scope}) ORDER BY conversation_id`,
    (row) => ({ id: asConversation(int(row, "conversation_id")), title: text(row, "title") }),
  );

function* planSecret(deps: ScriptDeps, scope: ConversationId | null, secret: string): Script<ForgetPlan> {
  if (secret.length < secretLengthMin) {
    throw new LcmError("invalid", `a secret to forget needs at least ${secretLengthMin} characters`, {
      hint: "pass a longer one; this one would redact parts of unrelated words",
    });
  }
  if (isOwnWord(secret)) {
    throw new LcmError("invalid", "this word is part of the format of every stored message and cannot be forgotten", {
      hint: "include more of the surrounding text, or forget single messages",
    });
  }
  const forms = escapedForms(secret);
  const messageIds = yield* all(
    sql`SELECT DISTINCT m.message_id FROM messages m, texts_in(${forms}) f
        WHERE (${scope} IS NULL OR m.conversation_id = ${scope}) AND (
          instr(m.content, f.value) OR instr(coalesce(m.envelope, ''), f.value)
          OR (m.entry LIKE '{%' AND instr(m.entry, f.value))
          OR EXISTS (SELECT 1 FROM message_parts p WHERE p.message_id = m.message_id AND (
               instr(coalesce(p.text_content, ''), f.value) OR instr(coalesce(p.metadata, ''), f.value)
               OR instr(coalesce(p.tool_call_id, ''), f.value) OR instr(coalesce(p.tool_name, ''), f.value))))
        ORDER BY m.message_id`,
    (row) => asMessage(int(row, "message_id")),
  );
  const summaryIds = yield* all(
    sql`SELECT DISTINCT s.summary_id, s.search_id FROM summaries s, texts_in(${forms}) f
        WHERE (${scope} IS NULL OR s.conversation_id = ${scope})
          AND (instr(s.content, f.value) OR instr(coalesce(s.previous_context, ''), f.value)) ORDER BY s.search_id`,
    toSummaryId,
  );
  const steps = yield* all(
    sql`SELECT DISTINCT j.journal_id FROM journal j, texts_in(${forms}) f
        WHERE (${scope} IS NULL OR j.conversation_id = ${scope})
          AND (instr(j.before_json, f.value) OR instr(j.after_json, f.value)) ORDER BY j.journal_id`,
    (row) => int(row, "journal_id"),
  );
  const titled = (yield* titles(scope)).filter(({ title }) => redactTitle(title, secret) !== title).length;
  let entries = titled + (yield* deps.leftovers.count(secret)) + (yield* pinsContaining(scope, secret)).length;
  entries += (yield* searchWordsContaining(scope, secret)).length;
  for (const column of otherColumns) entries += (yield* rowsContaining(column, scope, secret)).length;
  return {
    target: { kind: "secret", text: secret },
    messages: messageIds,
    summaries: summaryIds,
    files: [],
    journal: steps,
    entries,
  };
}

export const forget: WriteScript<"forget"> = function* (deps, scope, plan) {
  const present = yield* planForget(deps, scope, plan.target);
  if (!isSamePlan(present, plan)) return { kind: "stale", reason: "other rows contain it now than in the plan" };
  const { target } = plan;
  if (target.kind === "secret") yield* forgetInTitles(deps, scope, target.text);
  else for (const id of yield* titlesFrom(plan.messages)) yield* setTitle(deps, id, null);
  if (target.kind === "message")
    yield sql`DELETE FROM search_words WHERE message_id IN (SELECT value FROM numbers_in(${plan.messages}))`;
  else yield* forgetInSearchWords(scope, target.text);
  for (const id of plan.messages) {
    const [message] = yield* reads.messages({ ids: [id] });
    if (message === undefined) continue;
    const left = target.kind === "message" ? forgetMessage(message) : redactMessage(message, target.text);
    yield* replaceMessage(deps, message, left);
    if (target.kind === "message") yield* reassignOrigin(message);
  }
  for (const id of plan.summaries) yield* forgetInSummary(deps, id, target);
  for (const id of plan.journal) yield* forgetInJournal(id, target);
  if (target.kind === "secret") {
    yield* forgetInOtherColumns(scope, target.text);
    yield* forgetInPins(scope, target.text);
    yield* deps.leftovers.forget(target);
  } else {
    yield sql`DELETE FROM pins WHERE message_id IN (SELECT value FROM numbers_in(${plan.messages}))`;
    for (const id of plan.messages) yield* deps.leftovers.forget({ kind: "message", id });
  }
  // A draft or an answer made before this may contain it: they are deleted, and what is based on earlier reads is stale.
  yield sql`UPDATE conversations SET forgets = forgets + 1`;
  yield sql`DELETE FROM drafts`;
  yield sql`DELETE FROM map_answers`;
  const { messages, summaries, files, journal } = plan;
  const subject = target.kind === "message" ? messageName(target.id) : "a secret";
  const step = { operation: "forget", conversation: scope, subject } as const;
  yield* journalStep(deps, step, notScrubbed, { messages, summaries, files, journal });
  return { kind: "written", removed: messages.length + summaries.length + journal.length + plan.entries };
};

/** Recorded until the pages are scrubbed, so that an interrupted scrub is resumed. */
const notScrubbed = { scrubbed: false } as const;

export function* isScrubPending(): Script<boolean> {
  return (
    (yield* count(
      sql`SELECT count(*) FROM journal WHERE operation = 'forget' AND before_json = ${JSON.stringify(notScrubbed)}`,
    )) > 0
  );
}

/** Files of forgotten messages whose content has not been replaced yet. */
export const filesToForget = (): Script<readonly StoredFile[]> =>
  all(
    sql`SELECT f.* FROM journal j, texts_at(j.after_json, '$.files') named JOIN large_files f ON f.file_id = named.value
        WHERE j.operation = 'forget' AND j.before_json = ${JSON.stringify(notScrubbed)} AND substr(j.subject, 1, 4) = 'msg_'`,
    toStoredFile,
  );

/** Clears the hash: if the original content is stored again, it is a new file. */
export function* replaceFileRow(left: StoredFile, redact: (text: string) => string): Script<void> {
  const redacted = (value: string | null): string | null => (value === null ? null : redact(value));
  yield sql`UPDATE large_files SET exploration_summary = ${redacted(left.exploration)}, file_name = ${redacted(left.name)},
              byte_size = ${left.bytes}, line_count = ${left.lines}, encoding = ${left.encoding}, content_hash = NULL
            WHERE file_id = ${left.id}`;
}

export function* recordScrub(): Script<void> {
  yield sql`UPDATE journal SET before_json = '{}'
            WHERE operation = 'forget' AND before_json = ${JSON.stringify(notScrubbed)}`;
}

const isSamePlan = (a: ForgetPlan, b: ForgetPlan): boolean =>
  (["entries", "messages", "summaries", "journal"] as const).every((name) => String(a[name]) === String(b[name]));

function* replaceMessage(deps: ScriptDeps, old: Message, left: Redacted): Script<void> {
  yield sql`UPDATE messages SET content = ${left.text}, token_count = ${left.tokens}, envelope = ${left.envelope},
              entry = ${left.entry}, moved = ${movedToText(left.moved)} WHERE message_id = ${old.id}`;
  yield sql`DELETE FROM message_parts WHERE message_id = ${old.id}`;
  yield partRows(old.id, old.conversation, left.parts);
  yield* renewChecksum("messages", old.id);
  yield* reindexRow("messages", old.id, left.text);
  const change = left.tokens - old.tokens;
  const shown = yield* count(
    sql`SELECT count(*) FROM context_items WHERE conversation_id = ${old.conversation} AND message_id = ${old.id}`,
  );
  yield* adjustTotals(deps, old.conversation, {
    messageTokens: change,
    contextTokens: shown * change,
    contextMessageTokens: shown * change,
  });
}

/** A file's origin would reveal what a forgotten message contained; the next message with the file becomes its origin. */
function* reassignOrigin({ conversation, key }: Message): Script<void> {
  yield sql`UPDATE large_files SET message_key = (
              SELECT m.message_key FROM messages m, objects_in(m.moved) f
              WHERE m.conversation_id = large_files.conversation_id AND f.value ->> 'file' = large_files.file_id
              ORDER BY m.message_id LIMIT 1)
            WHERE conversation_id = ${conversation} AND message_key = ${key}`;
}

function* forgetInSummary(deps: ScriptDeps, id: SummaryId, target: ForgetPlan["target"]): Script<void> {
  const [summary] = yield* reads.summaries({ ids: [id] });
  if (summary === undefined) return;
  const redact = (value: string): string => (target.kind === "secret" ? redactText(value, target.text) : value);
  const content = redact(summary.text);
  const tokens = content === summary.text ? summary.tokens : renderedTokens(content);
  const previous = summary.previousContext === null ? null : redact(summary.previousContext);
  const reason = target.kind === "message" ? `${messageName(target.id)} was forgotten` : "a secret was forgotten";
  yield sql`UPDATE summaries SET content = ${content}, token_count = ${tokens}, previous_context = ${previous},
              rewrite_reason = ${reason}, revision = revision + 1
            WHERE summary_id = ${id}`;
  yield* renewChecksum("summaries", id);
  yield* reindex("summaries", id);
  const shown = yield* count(sql`SELECT count(*) FROM context_items WHERE summary_id = ${id}`);
  yield* adjustTotals(deps, summary.conversation, { contextTokens: shown * (tokens - summary.tokens) });
}

function* forgetInJournal(id: number, target: ForgetPlan["target"]): Script<void> {
  const [row] = yield sql`SELECT before_json, after_json FROM journal WHERE journal_id = ${id}`;
  if (row === undefined) return;
  const redact = (json: string): string => {
    const nothing = JSON.stringify({ text: forgottenMark });
    if (target.kind === "message") return nothing;
    const left = redactJson(json, target.text);
    // An undo must never write a redacted number, time or id back into a row.
    return containsSecret(left, target.text) || withoutTexts(left) !== withoutTexts(json) ? nothing : left;
  };
  yield sql`UPDATE journal SET before_json = ${redact(text(row, "before_json"))},
              after_json = ${redact(text(row, "after_json"))} WHERE journal_id = ${id}`;
}

/** A journal step without texts of summaries and without rows that an undo does not restore. */
const withoutTexts = (json: string): string =>
  JSON.stringify(JSON.parse(json), (name, value: unknown) =>
    ["content", "previous_context", "words", "reason", "gone"].includes(name) ? null : value,
  );

/** Other columns that may contain a secret: transcript lines that are not messages, and errors that quote a request. */
const otherColumns = [
  { table: "transcript_entries", id: "entry_id", column: "raw", redact: redactLine },
  { table: "compactions", id: "compaction_id", column: "message", redact: redactText },
] as const;

const rowsContaining = (
  { table, id, column }: (typeof otherColumns)[number],
  scope: ConversationId | null,
  secret: string,
) =>
  all(
    statement(
      `SELECT DISTINCT ${id} AS id, ${column} AS value FROM ${table}, texts_in(?) f
       WHERE (? IS NULL OR conversation_id = ?) AND instr(${column}, f.value)`,
      [escapedForms(secret), scope, scope],
    ),
    (row) => ({ id: int(row, "id"), value: text(row, "value") }),
  );

function* forgetInOtherColumns(scope: ConversationId | null, secret: string): Script<void> {
  for (const each of otherColumns) {
    const update = `UPDATE ${each.table} SET ${each.column} = ? WHERE ${each.id} = ?`;
    for (const { id, value } of yield* rowsContaining(each, scope, secret)) {
      yield statement(update, [each.redact(value, secret), id]);
      if (each.table === "transcript_entries") yield* renewChecksum(each.table, id);
    }
  }
}

const searchWordsContaining = (scope: ConversationId | null, secret: string) =>
  all(
    sql`SELECT DISTINCT w.message_id, w.words FROM search_words w, texts_in(${escapedForms(secret)}) f
        WHERE (${scope} IS NULL OR w.conversation_id = ${scope}) AND instr(w.words, f.value)`,
    (row) => ({ id: asMessage(int(row, "message_id")), words: text(row, "words") }),
  );

function* forgetInSearchWords(scope: ConversationId | null, secret: string): Script<void> {
  for (const { id, words } of yield* searchWordsContaining(scope, secret)) {
    yield sql`UPDATE search_words SET words = ${redactText(words, secret)} WHERE message_id = ${id}`;
    yield* reindexWords(id);
  }
}

const pinsContaining = (scope: ConversationId | null, secret: string) =>
  all(
    sql`SELECT DISTINCT p.conversation_id, p.message_id, p.words, p.reason FROM pins p, texts_in(${escapedForms(secret)}) f
        WHERE (${scope} IS NULL OR p.conversation_id = ${scope}) AND instr(p.words || '\n' || p.reason, f.value)`,
    (row) => row,
  );

function* forgetInPins(scope: ConversationId | null, secret: string): Script<void> {
  for (const { conversation_id: id = null, message_id: message = null, ...row } of yield* pinsContaining(scope, secret))
    yield sql`UPDATE pins SET words = ${redactText(text(row, "words"), secret)},
                reason = ${redactText(text(row, "reason"), secret)}
              WHERE conversation_id = ${id} AND message_id = ${message}`;
}

function* forgetInTitles(deps: ScriptDeps, scope: ConversationId | null, secret: string): Script<void> {
  for (const { id, title } of yield* titles(scope)) {
    const left = redactTitle(title, secret);
    if (left !== title) yield* setTitle(deps, id, left);
  }
}
