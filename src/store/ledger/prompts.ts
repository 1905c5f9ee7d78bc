/** Records prompts: a row each, and a head for all that share it. A head holds from its prompt on until the next one. */

import { msToTimestamp, timestampToMs, type Timestamp } from "../../core/base/time.ts";
import type { NewPrompt, PromptEnd, PromptRow } from "../../core/model/prompts.ts";
import { messageIdOf, type ConversationId } from "../../core/model/types.ts";
import { mustHave, rowsMax } from "../conversation/reads.ts";
import { asConversation, idsOf, time, wordOf } from "../rows.ts";
import { all, count, first, int, sql, statement, text, textOrNull } from "../script.ts";
import type { ReadScript, Row, Script, Value, WriteScript } from "../script.ts";

export const recordPrompt: WriteScript<"recordPrompt"> = function* (_, id, prompt) {
  const newest = yield* newestBefore(id, prompt);
  const number = 1 + (yield* count(sql`SELECT max(prompt_number) FROM prompts WHERE conversation_id = ${id}`));
  const { at, tail, tokens, budget, bytes, hash, live, liveTokens } = prompt;
  yield sql`INSERT INTO prompts (conversation_id, prompt_number, at, newest_seq, last_seq, tail, tokens, budget, bytes, hash,
                                 live, live_tokens)
            VALUES (${id}, ${number}, ${timestampToMs(at)}, ${newest}, ${prompt.lastSeq}, ${tail}, ${tokens}, ${budget},
                    ${bytes}, ${hash === "" ? null : Buffer.from(hash, "hex")}, ${live}, ${liveTokens})`;
  const before = yield* first(
    sql`SELECT head_json FROM prompt_heads WHERE conversation_id = ${id} ORDER BY since DESC LIMIT 1`,
    (row) => text(row, "head_json"),
  );
  if (before !== prompt.head)
    yield sql`INSERT INTO prompt_heads (conversation_id, since, head_json) VALUES (${id}, ${number}, ${prompt.head})`;
  if (prompt.keepSince !== null) yield* dropBefore(id, prompt.keepSince);
  return number;
};

/** What was stored since the prompt was built may be its answer. */
function* newestBefore(id: ConversationId, { stored, at }: NewPrompt): Script<number> {
  const { totals } = yield* mustHave(id);
  if (stored === null)
    return yield* count(
      sql`SELECT seq FROM messages WHERE message_id > ${idsOf(id).after} AND message_id < ${idsOf(id).before}
            AND stored_at <= ${timestampToMs(at)} ORDER BY message_id DESC LIMIT 1`,
    );
  const newest = yield* count(sql`SELECT next_seq - 1 FROM conversations WHERE conversation_id = ${id}`);
  return newest - Math.max(0, totals.messages - stored);
}

/** A few at a time, so that no turn pays for many. */
const droppedMax = 64;

function* dropBefore(id: ConversationId, since: Timestamp): Script<void> {
  const last = yield* count(
    sql`SELECT max(prompt_number) FROM (
          SELECT prompt_number, at FROM prompts WHERE conversation_id = ${id} ORDER BY prompt_number LIMIT ${droppedMax}
        ) AS oldest WHERE at < ${timestampToMs(since)}`,
  );
  if (last === 0) return;
  yield sql`DELETE FROM prompts WHERE conversation_id = ${id} AND prompt_number <= ${last}`;
  yield sql`DELETE FROM prompt_heads WHERE conversation_id = ${id} AND since < (
              SELECT max(since) FROM prompt_heads WHERE conversation_id = ${id} AND since <= ${last + 1})`;
}

export const endPrompt: WriteScript<"endPrompt"> = function* (_, id, number, { outcome, counted, cached, turn }) {
  yield sql`UPDATE prompts SET outcome = ${outcome}, counted = coalesce(${counted}, counted),
              cached = coalesce(${cached}, cached), turn_key = coalesce(${turn}, turn_key)
            WHERE conversation_id = ${id} AND prompt_number = ${number}`;
};

export const prompts: ReadScript<"prompts"> = function* (id, filter = {}) {
  yield* mustHave(id);
  const { from, to, until, since, beforeSeq, turn, keep = "oldest" } = filter;
  const bounds: readonly (readonly [condition: string, value: Value | undefined])[] = [
    ["prompt_number >= ?", from],
    ["prompt_number <= ?", to],
    ["at <= ?", until === undefined ? undefined : timestampToMs(until)],
    ["at >= ?", since === undefined ? undefined : timestampToMs(since)],
    ["newest_seq < ?", beforeSeq],
    ["turn_key = ?", turn],
  ];
  const given = bounds.flatMap(([condition, value]) => (value === undefined ? [] : [{ condition, value }]));
  const found = yield* all(
    statement(
      `SELECT * FROM prompts WHERE ${["conversation_id = ?", ...given.map(({ condition }) => condition)].join(" AND ")}
       ORDER BY prompt_number ${keep === "newest" ? "DESC" : "ASC"} LIMIT ?`,
      [id, ...given.map(({ value }) => value), rowsMax(filter.limit)],
    ),
    toPrompt,
  );
  const rows = keep === "newest" ? found.toReversed() : found;
  const heads = yield* all(
    sql`SELECT since, head_json FROM prompt_heads WHERE conversation_id = ${id} AND since <= ${rows.at(-1)?.number ?? 0}
          AND since >= coalesce((SELECT max(since) FROM prompt_heads
                                 WHERE conversation_id = ${id} AND since <= ${rows[0]?.number ?? 0}), 0)
        ORDER BY since`,
    (row) => ({ since: int(row, "since"), head: text(row, "head_json") }),
  );
  return { rows, heads };
};

const asOutcome = wordOf<PromptEnd["outcome"]>(["answered", "overflow"]);

const numberOrNull = (row: Row, column: string): number | null => (row[column] === null ? null : int(row, column));

function toPrompt(row: Row): PromptRow {
  const outcome = textOrNull(row, "outcome");
  const hash = row["hash"];
  return {
    conversation: asConversation(int(row, "conversation_id")),
    number: int(row, "prompt_number"),
    at: msToTimestamp(int(row, "at")),
    newestSeq: int(row, "newest_seq"),
    lastSeq: int(row, "last_seq"),
    tail: int(row, "tail"),
    tokens: int(row, "tokens"),
    budget: int(row, "budget"),
    bytes: int(row, "bytes"),
    hash: hash instanceof Uint8Array ? Buffer.from(hash).toString("hex") : "",
    live: int(row, "live"),
    liveTokens: int(row, "live_tokens"),
    outcome: outcome === null ? null : asOutcome(outcome),
    counted: numberOrNull(row, "counted"),
    cached: numberOrNull(row, "cached"),
    turn: textOrNull(row, "turn_key"),
  } satisfies PromptRow & Partial<NewPrompt>;
}

export const noteNumbers: ReadScript<"noteNumbers"> = (id, afterSeq, beforeSeq) =>
  all(
    sql`SELECT seq FROM messages WHERE message_id > ${messageIdOf(id, afterSeq)}
          AND message_id < ${messageIdOf(id, beforeSeq)} AND aside = 'note' ORDER BY message_id`,
    (row) => int(row, "seq"),
  );

export const summaryCalls: ReadScript<"summaryCalls"> = (id, since) =>
  all(
    sql`SELECT at, input_tokens, output_tokens FROM model_usage
        WHERE at >= ${since} AND conversation_id = ${id} AND purpose IN ('leaf', 'condensed', 'rewrite') ORDER BY at`,
    (row) => ({
      at: time(row, "at"),
      inputTokens: int(row, "input_tokens"),
      outputTokens: int(row, "output_tokens"),
    }),
  );
