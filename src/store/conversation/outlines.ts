/** Reads overviews of a conversation: messages and summaries without texts, and how they lie in time. */

import { checkAmount } from "../../core/base/errors.ts";
import { messagesPerWeight, type NumberRange, type Outlines } from "../../core/model/outlines.ts";
import { forgottenMark, messageIdOf, numbersPerConversation } from "../../core/model/types.ts";
import type { Aside, ConversationId, MessageId, SummaryId } from "../../core/model/types.ts";
import { asLevel, asMessage, asRole, idsOf, time, timeOrNull, toSummaryId } from "../rows.ts";
import { all, first, int, sql, text, textOrNull } from "../script.ts";
import type { ReadScript, Row } from "../script.ts";
import { mustHave } from "./reads.ts";

export const outlines: { readonly [Name in keyof Outlines]: ReadScript<Name> } = {
  *pace(id, marks, range) {
    checkAmount("the number of marks", marks);
    yield* mustHave(id);
    const { after, before } = idsOf(id);
    const ends = yield* first(
      sql`SELECT (SELECT min(message_id) FROM messages WHERE message_id > ${after} AND message_id < ${before}) AS first_id,
                 (SELECT max(message_id) FROM messages WHERE message_id > ${after} AND message_id < ${before}) AS last_id`,
      (row) => (row["first_id"] === null ? null : ([int(row, "first_id"), int(row, "last_id")] as const)),
    );
    if (ends === null) return [];
    const from = Math.max(ends[0], range === undefined ? 0 : messageIdOf(id, range.from));
    const to = Math.min(ends[1], range === undefined ? Infinity : messageIdOf(id, range.to));
    const wanted = evenly(from, to, marks);
    // Where a number is missing, the message before it stands for it.
    return yield* all(
      sql`SELECT message_id, created_at FROM messages WHERE message_id IN (
            SELECT (SELECT m.message_id FROM messages m WHERE m.message_id <= wanted.value AND m.message_id >= ${ends[0]}
                    ORDER BY m.message_id DESC LIMIT 1)
            FROM numbers_in(${wanted}) AS wanted)
          ORDER BY message_id`,
      (row) => ({ id: asMessage(int(row, "message_id")), at: time(row, "created_at") }),
    );
  },

  *weights(id, range) {
    yield* mustHave(id);
    const [from, to] = bounds(id, range);
    return yield* all(
      sql`SELECT message_id >> 8 AS block, sum(token_count) AS tokens FROM messages
          WHERE message_id >= ${from} AND message_id <= ${to} GROUP BY message_id >> 8 ORDER BY message_id >> 8`,
      (row) => ({ block: int(row, "block") - id * blocksPerConversation, tokens: int(row, "tokens") }),
    );
  },

  *messageOutlines(id, range) {
    yield* mustHave(id);
    const [from, to] = bounds(id, range);
    return yield* all(
      sql`SELECT m.message_id, m.role, m.token_count, m.created_at, m.aside, instr(m.content, ${forgottenMark}) AS forgotten,
            (SELECT json_group_array(s.summary_id ORDER BY s.summary_id) FROM summary_messages s
             WHERE s.message_id = m.message_id) AS leaves
          FROM messages m WHERE m.message_id >= ${from} AND m.message_id <= ${to} ORDER BY m.message_id`,
      (row) => ({
        id: asMessage(int(row, "message_id")),
        role: asRole(text(row, "role"), perhapsDamaged),
        tokens: int(row, "token_count"),
        at: time(row, "created_at"),
        aside: textOrNull(row, "aside") as Aside | null,
        isForgotten: Number(row["forgotten"]) > 0,
        leaves: idsIn(row, "leaves"),
      }),
    );
  },

  *summaryOutlines(id) {
    yield* mustHave(id);
    const { after, before } = idsOf(id);
    return yield* all(
      sql`SELECT s.summary_id, s.depth, s.token_count, s.level, s.earliest_at, s.latest_at, s.created_at, s.carried_from,
            s.rewrite_reason,
            (SELECT m.message_id FROM summary_messages m WHERE m.summary_id = s.summary_id
             ORDER BY m.message_id LIMIT 1) AS first_id,
            (SELECT m.message_id FROM summary_messages m WHERE m.summary_id = s.summary_id
             ORDER BY m.message_id DESC LIMIT 1) AS last_id,
            (SELECT json_group_array(p.summary_id ORDER BY p.summary_id) FROM summary_parents p
             WHERE p.parent_summary_id = s.summary_id) AS derived
          FROM summaries s WHERE s.search_id > ${after} AND s.search_id < ${before} ORDER BY s.search_id`,
      toSummaryOutline,
    );
  },
};

const toSummaryOutline = (row: Row) => ({
  id: toSummaryId(row),
  depth: int(row, "depth"),
  tokens: int(row, "token_count"),
  level: asLevel(text(row, "level"), perhapsDamaged),
  earliestAt: timeOrNull(row, "earliest_at"),
  latestAt: timeOrNull(row, "latest_at"),
  createdAt: time(row, "created_at"),
  carriedFrom: textOrNull(row, "carried_from") as SummaryId | null,
  rewriteReason: textOrNull(row, "rewrite_reason"),
  messages:
    row["first_id"] === null ? null : ([asMessage(int(row, "first_id")), asMessage(int(row, "last_id"))] as const),
  derived: idsIn(row, "derived"),
});

/** Checksums are not compared here, so a row that makes no sense is read as far as possible. */
const perhapsDamaged = { isDamaged: true } as const;

const blocksPerConversation = numbersPerConversation / messagesPerWeight;

const idsIn = (row: Row, column: string): readonly SummaryId[] => JSON.parse(text(row, column)) as readonly SummaryId[];

const bounds = (id: ConversationId, { from, to }: NumberRange): readonly [MessageId, MessageId] => [
  messageIdOf(id, Math.max(1, from)),
  messageIdOf(id, Math.min(to, numbersPerConversation - 1)),
];

/** Whole numbers from one end to the other. */
function evenly(from: number, to: number, count: number): readonly number[] {
  if (to < from || count === 0) return [];
  const steps = Math.min(to - from, Math.max(1, count - 1));
  const all = Array.from({ length: steps + 1 }, (_, at) => from + Math.round((at * (to - from)) / Math.max(1, steps)));
  return count === 1 ? all.slice(0, 1) : all;
}
