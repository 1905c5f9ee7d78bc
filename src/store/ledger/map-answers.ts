/** Keeps what a model answered about single messages, so that an interrupted map continues and pays nothing twice. */

import { createHash } from "node:crypto";
import type { Json } from "../../core/base/json.ts";
import type { MapAnswer } from "../../core/model/store.ts";
import { conversationIn, type MessageId } from "../../core/model/types.ts";
import { asMessage } from "../rows.ts";
import { all, int, sql, text, type ReadScript, type Script, type WriteScript } from "../script.ts";

/** Answers to different questions about one message. */
const keptMax = 5;

const digest = (basis: string): string => createHash("sha256").update(basis).digest("hex");

export const mapAnswers: ReadScript<"mapAnswers"> = function* (basis, messages) {
  // The number of the conversation is part of a message's id.
  const found = yield* all(
    sql`SELECT a.message_id, a.answer_json FROM numbers_in(${messages}) m JOIN map_answers a
          ON a.conversation_id = m.value >> 24 AND a.message_id = m.value AND a.basis = ${digest(basis)}`,
    (row): readonly [MessageId, Json] => [asMessage(int(row, "message_id")), JSON.parse(text(row, "answer_json"))],
  );
  return new Map(found);
};

export const saveMapAnswers: WriteScript<"saveMapAnswers"> = function* (deps, basis, answers) {
  const key = digest(basis);
  for (const { message, answer } of yield* current(answers)) {
    const conversation = conversationIn(message);
    yield [
      sql`INSERT INTO map_answers (conversation_id, message_id, basis, answer_json, at)
          VALUES (${conversation}, ${message}, ${key}, ${JSON.stringify(answer)}, ${deps.now()})
          ON CONFLICT (conversation_id, message_id, basis)
            DO UPDATE SET answer_json = excluded.answer_json, at = excluded.at`,
      sql`DELETE FROM map_answers WHERE conversation_id = ${conversation} AND message_id = ${message} AND basis NOT IN (
            SELECT basis FROM map_answers WHERE conversation_id = ${conversation} AND message_id = ${message}
            ORDER BY at DESC, basis = ${key} DESC LIMIT ${keptMax})`,
    ];
  }
};

/** Those whose message exists, in conversations where nothing was forgotten since it was read. */
function* current(answers: readonly MapAnswer[]): Script<readonly MapAnswer[]> {
  const rows = yield* all(
    sql`SELECT m.message_id, c.forgets FROM messages m JOIN conversations c ON c.conversation_id = m.conversation_id
        WHERE m.message_id IN (SELECT value FROM numbers_in(${answers.map(({ message }) => message)}))`,
    (row) => [int(row, "message_id"), int(row, "forgets")] as const,
  );
  const forgets = new Map<number, number>(rows);
  return answers.filter((answer) => forgets.get(answer.message) === answer.forgets);
}

/** What was answered about a message that is removed. */
export function* forgetAnswers(message: MessageId): Script<void> {
  yield sql`DELETE FROM map_answers WHERE conversation_id = ${conversationIn(message)} AND message_id = ${message}`;
}
