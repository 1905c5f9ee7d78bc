/** Finds what prevents undoing a change: rows that changed since, or that others depend on now. */

import type { Obstacle } from "../../core/model/changes.ts";
import { plural } from "../../core/base/format.ts";
import { messageName, parseMessageId } from "../../core/model/types.ts";
import type { ConversationId, JournalEntry, MessageId, SummaryId } from "../../core/model/types.ts";
import { rowAt, type Columns, type Image, type Table, type Trace } from "./record.ts";
import type { StoredStep } from "./read.ts";
import { reads } from "../conversation/reads.ts";
import { asSummary, toSummaryId } from "../rows.ts";
import { all, count, first, int, sql, text, type Script, type Value } from "../script.ts";

/** `remedy`: the change to undo first, or the summary to dissolve. */
const obstacle = (subject: string, message: string, remedy: Partial<Obstacle> = {}): Obstacle => ({
  subject,
  change: null,
  cover: null,
  ...remedy,
  message,
});

export const undoneAlready = ({ change, undoneBy }: JournalEntry): Obstacle =>
  obstacle(`change ${change}`, `it was already undone, by change ${undoneBy}`, { change: undoneBy });

export const final = ({ change, operation }: JournalEntry, because: string): Obstacle =>
  obstacle(`change ${change}`, `this ${operation} cannot be undone: ${because}`);

/** Finding one reads everything journalled since. */
const obstaclesMax = 20;

/** Newest step first: an earlier step is checked as if the later steps of the change were undone. */
export function* obstaclesTo(taken: readonly StoredStep[]): Script<readonly Obstacle[]> {
  const found: Obstacle[] = [];
  const expected = new Map<string, Left>();
  const reverted = new Set<string>();
  for (const { entry, before, after } of taken) {
    if (found.length >= obstaclesMax) break;
    const because = whyFinal(entry);
    if (because !== null) {
      found.push(final(entry, because));
      continue;
    }
    if (before === null || after === null) {
      found.push(final(entry, "the previous text has been forgotten"));
      continue;
    }
    const isDeleted = new Set(before.rows.filter(({ columns }) => columns === null).map(nameOf));
    for (const [at, image] of after.rows.entries()) {
      const name = nameOf(image);
      const known = expected.get(name);
      const now = known === undefined ? yield* rowAt(image.table, image.key) : known.image.columns;
      if (!isSame(now, image.columns)) found.push(yield* changedSince(entry, image));
      else if (image.table === "summaries") found.push(...(yield* builtOn(entry, image, isDeleted, reverted)));
      const columns = merged(now, before.rows[at]?.columns ?? null);
      expected.set(name, { entry, image: { ...image, columns } });
    }
    for (const { table, key } of after.rows) if (table === "summaries") reverted.add(String(key["summary_id"]));
    if (entry.operation === "transplant") found.push(...(yield* onlyCopies(entry, after)));
  }
  // Without this check, the database would reject the undo.
  if (found.length === 0) found.push(...(yield* namingNothing(expected)), ...(yield* stillNamed(expected)));
  return [...new Map(found.map((each) => [each.message, each])).values()];
}

/** A row as it would be after the undo, and the step that restores it. */
interface Left {
  readonly entry: JournalEntry;
  readonly image: Image;
}

/** Copies whose original and other copies were deleted must stay. */
function* onlyCopies(entry: JournalEntry, { rows }: Trace): Script<readonly Obstacle[]> {
  const copies = rows.filter(({ table }) => table === "messages").map(({ key }) => Number(key["message_id"]));
  const lost = yield* count(
    sql`SELECT count(*) FROM messages m LEFT JOIN messages o ON o.message_id = m.copied_from
        WHERE m.message_id IN (SELECT value FROM numbers_in(${copies})) AND o.message_id IS NULL
          AND m.copied_from NOT IN (
            SELECT copied_from FROM messages WHERE copied_from IS NOT NULL
              AND message_id NOT IN (SELECT value FROM numbers_in(${copies})))`,
  );
  return lost === 0
    ? []
    : [final(entry, `the originals of ${plural(lost, "message")} are gone, and only these copies are left`)];
}

/** Restored rows that would refer to a row which was removed since. */
function* namingNothing(left: ReadonlyMap<string, Left>): Script<readonly Obstacle[]> {
  const found: Obstacle[] = [];
  for (const { entry, image } of left.values()) {
    if (image.columns === null) continue;
    for (const named of namedBy(image)) {
      const known = left.get(nameOf(named));
      if ((known === undefined ? yield* rowAt(named.table, named.key, []) : known.image.columns) !== null) continue;
      const subject = subjectOf(entry, named);
      const change = (yield* laterStep(entry, named, subject))?.change ?? null;
      const by = change === null ? "" : ` by change ${change}`;
      found.push(obstacle(subject, `${subject} was removed since${by}`, { change }));
    }
  }
  return found;
}

/** The rows that a link or a context item refers to. */
function namedBy({ table, key, columns }: Image): readonly Image[] {
  if (["messages", "summaries", "message_parts", "pins"].includes(table)) return [];
  const {
    message_id: message = null,
    summary_id: own = null,
    parent_summary_id: source = null,
  } = { ...key, ...columns };
  const of = (named: Table, name: string, id: Value): readonly Image[] =>
    id === null ? [] : [{ table: named, key: { [name]: id }, columns: null }];
  const summary = table === "context_items" ? own : source;
  return [...of("summaries", "summary_id", summary), ...of("messages", "message_id", message)];
}

/** Removed rows that others would still refer to. */
function* stillNamed(left: ReadonlyMap<string, Left>): Script<readonly Obstacle[]> {
  const going = (table: Table, name: string): string =>
    JSON.stringify(
      [...left.values()].flatMap(({ image }) =>
        image.table === table && image.columns === null ? [image.key[name] ?? null] : [],
      ),
    );
  const [messages, summaries] = [going("messages", "message_id"), going("summaries", "summary_id")];
  const shown = yield* all(
    sql`SELECT conversation_id, ordinal, summary_id, message_id FROM context_items
        WHERE summary_id IN (SELECT value FROM texts_in(${summaries}))
        UNION ALL
        SELECT conversation_id, ordinal, summary_id, message_id FROM context_items
        WHERE ${messages} <> '[]' AND message_id IN (SELECT value FROM numbers_in(${messages}))`,
    (row) => ({
      place: nameOf({ table: "context_items", key: { at: int(row, "conversation_id"), ordinal: int(row, "ordinal") } }),
      where: `the context of conversation ${int(row, "conversation_id")}`,
      summary: row["summary_id"] === null ? null : toSummaryId(row),
      message: Number(row["message_id"] ?? 0) as MessageId,
    }),
  );
  const ties = yield* all(
    sql`SELECT summary_id, message_id FROM summary_messages
        WHERE message_id IN (SELECT value FROM numbers_in(${messages}))
          AND summary_id NOT IN (SELECT value FROM texts_in(${summaries}))`,
    (row) => ({ summary_id: toSummaryId(row), message_id: int(row, "message_id") }),
  );
  const staying = ties.filter((key) => !left.has(nameOf({ table: "summary_messages", key })));
  const tied = [...new Set(staying.map((key) => key.summary_id))];
  return [
    ...shown
      .filter(({ place }) => !left.has(place))
      .map(({ where, summary, message }) =>
        obstacle(where, `${summary ?? messageName(message)} is in ${where} now`, { cover: summary }),
      ),
    ...tied.map((id) => obstacle(id, `${id} was made since from messages that the undo removes`, { cover: id })),
  ];
}

function whyFinal({ operation, subject }: JournalEntry): string | null {
  if (operation === "forget") return "forgotten text is gone";
  if (operation === "prune") return "its rows are deleted; restore them from an archive or a backup";
  const [source, target] = subject.split(" → ");
  if (operation === "undo" && target !== undefined)
    return `run \`lcm transplant ${source} ${target}\` to copy them again`;
  return null;
}

const nameOf = ({ table, key }: Pick<Image, "table" | "key">): string => `${table} ${Object.values(key).join()}`;

const merged = (now: Columns | null, was: Columns | null): Columns | null => (was === null ? null : { ...now, ...was });

/** Whether a row has the values of an image. */
export function isSame(now: Columns | null, image: Columns | null): boolean {
  if (now === null || image === null) return now === image;
  return Object.entries(image).every(([name, value]) => (now[name] ?? null) === value);
}

function* changedSince(entry: JournalEntry, image: Image): Script<Obstacle> {
  const subject = subjectOf(entry, image);
  const later = yield* laterStep(entry, image, subject);
  if (later !== null) {
    const { change, operation } = later;
    const message = `${subject} was changed since by change ${change} (${operation})`;
    return operation === "forget"
      ? obstacle(subject, `${message}, which cannot be undone`)
      : obstacle(subject, message, { change });
  }
  const cover = image.table === "pins" ? null : yield* coverOf(subject, entry.conversation);
  const folded = `${subject} was folded since into ${cover}`;
  return obstacle(subject, cover === null ? `${subject} has changed since` : folded, { cover });
}

/** The newest later step that touched this row and is not undone. */
const laterStep = (
  { id }: JournalEntry,
  { table, key }: Image,
  subject: string,
): Script<{ readonly change: number; readonly operation: string } | null> =>
  first(
    sql`SELECT change_id, operation FROM journal WHERE journal_id > ${id} AND undone_by IS NULL
          AND (instr(after_json, ${String(Object.values(key).at(-1))}) OR instr(after_json, ${subject})) AND (
          EXISTS (SELECT 1 FROM objects_at(after_json, '$.rows') r
                  WHERE r.value ->> 'table' = ${table} AND is_same_json(r.value -> 'key', ${JSON.stringify(key)}))
          OR operation = 'forget' AND EXISTS (SELECT 1 FROM texts_at(after_json, '$.summaries') WHERE value = ${subject}))
        ORDER BY operation = 'undo', journal_id DESC LIMIT 1`,
    (row) => ({ change: int(row, "change_id"), operation: text(row, "operation") }),
  );

/** The row's name for people. */
function subjectOf({ conversation }: JournalEntry, { table, key, columns }: Image): string {
  const summary = table === "context_items" ? columns?.["summary_id"] : key["summary_id"];
  if (typeof summary === "string") return summary;
  const message = table === "context_items" ? columns?.["message_id"] : key["message_id"];
  if (typeof message === "number") return messageName(message as MessageId);
  return `the context of conversation ${conversation}`;
}

/** The summary in the context that covers a message or summary now. */
const coverOf = (subject: string, conversation: ConversationId | null): Script<SummaryId | null> =>
  first(
    sql`WITH RECURSIVE above(summary_id) AS (
          SELECT summary_id FROM summary_messages WHERE message_id = ${parseMessageId(subject)}
          UNION SELECT summary_id FROM summary_parents WHERE parent_summary_id = ${subject}
          UNION SELECT p.summary_id FROM summary_parents p JOIN above a ON p.parent_summary_id = a.summary_id
        )
        SELECT summary_id FROM context_items
        WHERE conversation_id = ${conversation} AND summary_id IN (SELECT summary_id FROM above) LIMIT 1`,
    toSummaryId,
  );

/** Summaries that were written from a text, or depend on a row, that the undo removes. */
function* builtOn(
  entry: JournalEntry,
  image: Image,
  isDeleted: ReadonlySet<string>,
  reverted: ReadonlySet<string>,
): Script<readonly Obstacle[]> {
  const id = String(image.key["summary_id"]);
  const goes = isDeleted.has(nameOf(image));
  if (!goes && image.columns?.["content"] === undefined) return [];
  const derived = yield* all(
    sql`SELECT s.summary_id FROM summary_parents p JOIN summaries s USING (summary_id)
        WHERE p.parent_summary_id = ${id} AND (${goes ? 1 : 0} = 1 OR s.updated_at > ${entry.at}
          OR s.updated_at = ${entry.at} AND EXISTS (
            SELECT 1 FROM journal WHERE journal_id > ${entry.id} AND subject = s.summary_id AND undone_by IS NULL
              AND operation IN ('rewrite', 'repair')))
        ORDER BY s.search_id`,
    toSummaryId,
  );
  const found: Obstacle[] = [];
  for (const subject of derived) {
    const link = nameOf({ table: "summary_parents", key: { summary_id: subject, parent_summary_id: id } });
    if (reverted.has(subject) || isDeleted.has(`summaries ${subject}`) || isDeleted.has(link)) continue;
    const later = yield* laterStep(entry, { table: "summaries", key: { summary_id: subject }, columns: null }, subject);
    const by = later === null ? "" : ` by change ${later.change}`;
    const remedy = later === null ? { cover: subject } : { change: later.change };
    found.push(obstacle(subject, `${subject} was written since from ${id}${by}`, remedy));
  }
  if (goes) {
    for (const subject of yield* reads.carriedBy(asSummary(id)))
      found.push(obstacle(subject, `${subject} carries the text of ${id}`));
  }
  return found;
}
