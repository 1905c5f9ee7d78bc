/**
 * Keeps the vectors of messages: blocks of up to 1,024, by the numbers of the messages in their conversation. A block
 * that is short is continued where it ends, so nothing but the rows themselves says what is still to be made.
 */

import { LcmError } from "../../../core/base/errors.ts";
import { idIn } from "../../../core/model/types.ts";
import type { EmbedderRecord, NewVectors, PendingVectors, VectorTotals } from "../../../core/model/vectors.ts";
import { asConversation } from "../../rows.ts";
import { all, count, first, int, sql, text, textOrNull, type Row, type Script, type ScriptDeps } from "../../script.ts";
import { messageRange, toSearchedRow } from "../sources.ts";
import type { Timestamp } from "../../../core/base/time.ts";
import type { Written } from "../../../core/model/changes.ts";

export const perBlock = 1_024;

/** No model reads more of a text than this. */
const charactersMax = 2_000;

export const blockOf = (seq: number): number => Math.floor((seq - 1) / perBlock);
export const slotOf = (seq: number): number => (seq - 1) % perBlock;

/** The newest conversation first, and its newest block first. Null if every message is done. */
export function* pendingVectors(model: string, rowsMax: number): Script<PendingVectors | null> {
  const found = yield* first(
    sql`SELECT conversation_id, next_seq - 1 AS last, forgets FROM conversations AS c
        WHERE next_seq - 1 > (SELECT coalesce(sum(made), 0) FROM message_vectors AS v
                              WHERE v.conversation_id = c.conversation_id AND v.model = ${model})
        ORDER BY conversation_id DESC LIMIT 1`,
    (row) => ({ id: int(row, "conversation_id"), last: int(row, "last"), forgets: int(row, "forgets") }),
  );
  if (found === null) return null;
  const rows =
    yield sql`SELECT block, made FROM message_vectors WHERE conversation_id = ${found.id} AND model = ${model}`;
  const made = new Map(rows.map((row) => [int(row, "block"), int(row, "made")]));
  let block = blockOf(found.last);
  const endOf = (each: number): number => Math.min(found.last, (each + 1) * perBlock);
  while (block > 0 && block * perBlock + (made.get(block) ?? 0) >= endOf(block)) block--;
  const firstSeq = block * perBlock + (made.get(block) ?? 0) + 1;
  const lastSeq = Math.min(endOf(block), firstSeq + rowsMax - 1);
  const texts = new Map<number, string>();
  for (const row of yield messageRange(idIn(found.id, firstSeq), idIn(found.id, lastSeq))) {
    const { seq, text: words, isRecalled } = toSearchedRow(row);
    if (!isRecalled) texts.set(seq, words.slice(0, charactersMax).trim());
  }
  return {
    conversation: asConversation(found.id),
    firstSeq,
    texts: Array.from({ length: lastSeq - firstSeq + 1 }, (_, at) => texts.get(firstSeq + at) ?? ""),
    forgets: found.forgets,
  };
}

/** Stale if other vectors were stored since, or something was forgotten: the texts may contain it. */
export function* saveVectors(_: ScriptDeps, given: NewVectors): Script<Written<{ readonly made: number }>> {
  const { conversation, model, firstSeq, vectors } = given;
  const [bytes = 0, ...others] = new Set(vectors.map(({ length }) => length));
  const slot = slotOf(firstSeq);
  if (bytes === 0 || bytes % 4 !== 0 || others.length > 0 || slot + vectors.length > perBlock)
    throw new LcmError("invalid", "vectors must be of one length, a multiple of 4 bytes, and in one block");
  const forgets = yield* first(
    sql`SELECT forgets FROM conversations
        WHERE conversation_id = ${conversation} AND next_seq >= ${firstSeq + vectors.length}`,
    (row) => int(row, "forgets"),
  );
  if (forgets !== given.forgets)
    return { kind: "stale", reason: "something was forgotten or deleted since the messages were read" };
  const block = blockOf(firstSeq);
  const known = yield* first(
    sql`SELECT made, bytes, bits FROM message_vectors
        WHERE conversation_id = ${conversation} AND model = ${model} AND block = ${block}`,
    (row) => ({ made: int(row, "made"), bytes: int(row, "bytes"), bits: bitsOf(row) }),
  );
  if ((known?.made ?? 0) !== slot || (known?.bytes ?? bytes) !== bytes)
    return { kind: "stale", reason: "other vectors were stored since the messages were read" };
  const bits = new Uint8Array((slot + vectors.length) * bytes);
  bits.set(known?.bits ?? []);
  for (const [at, vector] of vectors.entries()) bits.set(vector, (slot + at) * bytes);
  const made = slot + vectors.length;
  yield sql`INSERT INTO message_vectors (conversation_id, model, block, made, bytes, bits)
            VALUES (${conversation}, ${model}, ${block}, ${made}, ${bytes}, ${bits})
            ON CONFLICT (conversation_id, model, block) DO UPDATE SET made = excluded.made, bits = excluded.bits`;
  return { kind: "written", made: vectors.length };
}

export const bitsOf = (row: Row): Uint8Array => {
  const value = row["bits"];
  if (!(value instanceof Uint8Array)) throw new TypeError("column bits holds no bytes");
  return value;
};

/** Removes the vectors of every model but this one; all, if it is null. Returns how many models had some. */
export function* dropVectors(_: ScriptDeps, except: string | null): Script<number> {
  const isOther = sql`SELECT count(DISTINCT model) FROM message_vectors WHERE ${except} IS NULL OR model <> ${except}`;
  const models = yield* count(isOther);
  if (models > 0) yield sql`DELETE FROM message_vectors WHERE ${except} IS NULL OR model <> ${except}`;
  return models;
}

/** Drops the vector of a message whose text has changed or is gone, and those after it in its block, to be made again. */
export function* forgetVector(conversation: number, seq: number): Script<void> {
  const slot = slotOf(seq);
  yield sql`UPDATE message_vectors SET made = ${slot}, bits = substr(bits, 1, ${slot} * bytes)
            WHERE conversation_id = ${conversation} AND block = ${blockOf(seq)} AND made > ${slot}`;
}

export function* recordEmbedder(
  { now }: ScriptDeps,
  { name, embedded, failure }: Omit<EmbedderRecord, "at">,
): Script<void> {
  yield sql`INSERT INTO embedders (name, embedded, failure, at) VALUES (${name}, ${embedded}, ${failure}, ${now()})
            ON CONFLICT (name) DO UPDATE SET embedded = embedders.embedded + excluded.embedded,
              failure = excluded.failure, at = excluded.at`;
}

/** The models that have vectors, the one with most first. */
export const vectorTotals = (): Script<readonly VectorTotals[]> =>
  all(
    sql`SELECT model, sum(made) AS made, sum(made * bytes) AS bytes,
          (SELECT coalesce(sum(next_seq - 1), 0) FROM conversations) - sum(made) AS pending
        FROM message_vectors GROUP BY model ORDER BY made DESC`,
    (row) => ({
      model: text(row, "model"),
      made: int(row, "made"),
      pending: int(row, "pending"),
      bytes: int(row, "bytes"),
    }),
  );

/** The newest last. */
export const embedderRecords = (): Script<readonly EmbedderRecord[]> =>
  all(sql`SELECT name, embedded, failure, at FROM embedders ORDER BY at`, (row) => ({
    name: text(row, "name"),
    embedded: int(row, "embedded"),
    failure: textOrNull(row, "failure"),
    at: text(row, "at") as Timestamp,
  }));
