/**
 * Taking back a change: every row that it touched is put back as it was, newest step first, in one transaction. Only if
 * each of them is still as the change left it, and nothing was written since from what it wrote; else it says what
 * stands on it. Taking back is itself a change, and can be taken back.
 */

import type { Obstacle } from "../../core/model/changes.ts";
import { LcmError } from "../../core/base/errors.ts";
import { messageName, parseMessageId } from "../../core/model/types.ts";
import type { ConversationId, JournalEntry, MessageId, SummaryId } from "../../core/model/types.ts";
import { rowAt, replaced, saysOfItself } from "./record.ts";
import type { Columns, Image, Table, Trace } from "./record.ts";
import { steps } from "./read.ts";
import type { StoredStep } from "./read.ts";
import { reads } from "../conversation/reads.ts";
import { asSummary, toSummaryId } from "../rows.ts";
import { all, count, first, int, sql, text } from "../script.ts";
import type { ReadScript, Script, ScriptDeps, Value, WriteScript } from "../script.ts";

export const planUndo: ReadScript<"planUndo"> = function* (change, summary) {
  const { left, obstacles } = yield* look(change, summary);
  return { change, summary: summary ?? null, entries: left.map(({ entry }) => entry), obstacles };
};

interface Look {
  /** The steps that hold. */
  readonly left: readonly StoredStep[];
  readonly obstacles: readonly Obstacle[];
}

function* look(change: number, summary: SummaryId | undefined): Script<Look> {
  const known = (yield* steps({ change })).filter(({ entry }) => summary === undefined || entry.subject === summary);
  const [newest] = known;
  if (newest === undefined) {
    const what = summary === undefined ? `there is no change ${change}` : `change ${change} did nothing to ${summary}`;
    throw new LcmError("not_found", what, { hint: "`lcm history` lists the changes" });
  }
  const left = known.filter(({ entry }) => entry.undoneBy === null);
  if (left.length === 0) return { left, obstacles: [undoneAlready(newest.entry)] };
  const obstacles = yield* obstaclesTo(left);
  const isIdle = obstacles.length === 0 && left.every(changesNothing);
  return { left, obstacles: isIdle ? [idle(newest.entry)] : obstacles };
}

/** What belonged to nothing cannot be put back, and search entries follow from the rows. */
const changesNothing = ({ after }: StoredStep): boolean => after?.rows.length === 0 && after.totals === undefined;

const idle = (entry: JournalEntry): Obstacle =>
  final(
    entry,
    "it only removed what belonged to nothing, or brought search up to date; the backup before it has the rest",
  );

export const undo: WriteScript<"undo"> = function* (deps, change, summary) {
  const { left, obstacles } = yield* look(change, summary);
  if (obstacles.length > 0) return { kind: "blocked", obstacles };
  let taking: number | undefined;
  for (const step of left) taking = yield* takeBack(deps, step, taking);
  if (taking === undefined) throw new LcmError("corrupt", `change ${change} has no steps`);
  yield* settle(left.map(({ entry }) => entry));
  return { kind: "undone", change: taking, entries: left.length };
};

function* takeBack(deps: ScriptDeps, { entry, before, after }: StoredStep, taking: number | undefined): Script<number> {
  const { conversation, subject } = entry;
  if (before === null || after === null) throw new LcmError("corrupt", `step ${entry.id} of the journal is unreadable`);
  const isUntouched = isSame(yield* saysOfItself(conversation), after.conversation);
  const partOf = taking === undefined ? {} : { partOf: { change: taking } };
  const step = { operation: "undo", conversation, subject, undoes: entry.change, ...partOf } as const;
  const totals = after.totals === undefined ? undefined : negated(after.totals);
  // It was last written to when it was before, unless others have written since.
  const change = yield* replaced(deps, step, before.rows, totals, isUntouched ? before.conversation : null);
  yield sql`UPDATE journal SET undone_by = ${change} WHERE journal_id = ${entry.id}`;
  return change;
}

/** What was taken back by a change that is now taken back holds again; what that one had taken back no longer does; and so on. */
function* settle(entries: readonly JournalEntry[]): Script<void> {
  const subjects = [...new Set(entries.map(({ subject }) => subject))];
  let by = entries[0]?.change ?? 0;
  let undone = entries[0]?.undoes ?? null;
  for (let holds = true; undone !== null; holds = !holds) {
    const [was, is] = holds ? [by, null] : [null, by];
    yield sql`UPDATE journal SET undone_by = ${is} WHERE change_id = ${undone}
                AND subject IN (SELECT value FROM json_each(${subjects})) AND undone_by IS ${was}`;
    by = undone;
    const [row] = yield sql`SELECT after_json ->> 'undoes' AS undoes FROM journal WHERE change_id = ${undone} LIMIT 1`;
    undone = typeof row?.["undoes"] === "number" ? row["undoes"] : null;
  }
}

const negated = (totals: NonNullable<Trace["totals"]>): NonNullable<Trace["totals"]> =>
  Object.fromEntries(Object.entries(totals).map(([name, by]) => [name, -by]));

// ── What stands in the way ───────────────────────────────────────────────────────────────────────────────────────────

/** `way`: the change to take back first, or the summary to open up, if there is one. */
const inTheWay = (subject: string, message: string, way: Partial<Obstacle> = {}): Obstacle => ({
  subject,
  change: null,
  cover: null,
  ...way,
  message,
});

const undoneAlready = ({ change, undoneBy }: JournalEntry): Obstacle =>
  inTheWay(`change ${change}`, `it was taken back already, by change ${undoneBy}`, { change: undoneBy });

const final = ({ change, operation }: JournalEntry, because: string): Obstacle =>
  inTheWay(`change ${change}`, `${withArticle(operation)} like this cannot be taken back: ${because}`);

const withArticle = (operation: string): string => `${operation === "undo" ? "an" : "a"} ${operation}`;

/** So many are looked for: each means a walk through all that was journalled since. */
const obstaclesMax = 20;

/** Newest step first: what a later step of the same change has done is taken back before the earlier one is looked at. */
function* obstaclesTo(taken: readonly StoredStep[]): Script<readonly Obstacle[]> {
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
      found.push(final(entry, "what was there before has been forgotten"));
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
  // The database keeps rows together, and would refuse with words of its own what is found here.
  if (found.length === 0) found.push(...(yield* namingNothing(expected)), ...(yield* stillNamed(expected)));
  return [...new Map(found.map((each) => [each.message, each])).values()];
}

/** A row as it would be when all is taken back, and the step that says so. */
interface Left {
  readonly entry: JournalEntry;
  readonly image: Image;
}

/** Copies whose originals were deleted, and every other copy, are all that is left of them. */
function* onlyCopies(entry: JournalEntry, { rows }: Trace): Script<readonly Obstacle[]> {
  const copies = rows.filter(({ table }) => table === "messages").map(({ key }) => Number(key["message_id"]));
  const lost = yield* count(
    sql`SELECT count(*) FROM messages m LEFT JOIN messages o ON o.message_id = m.copied_from
        WHERE m.message_id IN (SELECT value FROM json_each(${copies})) AND o.message_id IS NULL
          AND m.copied_from NOT IN (
            SELECT copied_from FROM messages WHERE copied_from IS NOT NULL
              AND message_id NOT IN (SELECT value FROM json_each(${copies})))`,
  );
  return lost === 0
    ? []
    : [final(entry, `the originals of ${lost} messages are gone, and these copies are all there is`)];
}

/** Rows that come back and name one that was removed since. */
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
      found.push(inTheWay(subject, `${subject} was removed since${by}`, { change }));
    }
  }
  return found;
}

/** What a row that ties others together names beside its own. */
function namedBy({ table, key, columns }: Image): readonly Image[] {
  const {
    message_id: message = null,
    summary_id: summary = null,
    parent_summary_id: source = null,
  } = { ...key, ...columns };
  const of = (named: Table, name: string, id: Value): readonly Image[] =>
    id === null ? [] : [{ table: named, key: { [name]: id }, columns: null }];
  switch (table) {
    case "context_items":
      return [...of("summaries", "summary_id", summary), ...of("messages", "message_id", message)];
    case "summary_messages":
      return of("messages", "message_id", message);
    case "summary_parents":
      return of("summaries", "summary_id", source);
    case "message_parts":
    case "messages":
    case "summaries":
      return [];
  }
}

/** Rows that go while others, which stay, name them. */
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
        WHERE summary_id IN (SELECT value FROM json_each(${summaries}))
        UNION ALL
        SELECT conversation_id, ordinal, summary_id, message_id FROM context_items
        WHERE ${messages} <> '[]' AND message_id IN (SELECT value FROM json_each(${messages}))`,
    (row) => ({
      place: nameOf({ table: "context_items", key: { at: int(row, "conversation_id"), ordinal: int(row, "ordinal") } }),
      where: `the context of conversation ${int(row, "conversation_id")}`,
      summary: row["summary_id"] === null ? null : toSummaryId(row),
      message: Number(row["message_id"] ?? 0) as MessageId,
    }),
  );
  const tied = yield* all(
    sql`SELECT DISTINCT summary_id FROM summary_messages
        WHERE message_id IN (SELECT value FROM json_each(${messages}))
          AND summary_id NOT IN (SELECT value FROM json_each(${summaries}))`,
    toSummaryId,
  );
  return [
    ...shown
      .filter(({ place }) => !left.has(place))
      .map(({ where, summary, message }) =>
        inTheWay(where, `${summary ?? messageName(message)} stands in ${where} now`, { cover: summary }),
      ),
    ...tied.map((id) => inTheWay(id, `${id} was made since from messages that would go`, { cover: id })),
  ];
}

/** Forgotten and deleted is for good. A transplant keeps no copy of its copies. */
function whyFinal({ operation, subject }: JournalEntry): string | null {
  if (operation === "forget") return "what is forgotten is gone";
  if (operation === "prune") return "its rows are gone; an archive or a backup has them";
  const [source, target] = subject.split(" → ");
  if (operation === "undo" && target !== undefined) return `\`lcm transplant ${source} ${target}\` copies them again`;
  return null;
}

const nameOf = ({ table, key }: Pick<Image, "table" | "key">): string => `${table} ${Object.values(key).join()}`;

const merged = (now: Columns | null, was: Columns | null): Columns | null => (was === null ? null : { ...now, ...was });

/** Whether a row is as it was left: as far as the image knows it. */
function isSame(now: Columns | null, image: Columns | null): boolean {
  if (now === null || image === null) return now === image;
  return Object.entries(image).every(([name, value]) => (now[name] ?? null) === value);
}

function* changedSince(entry: JournalEntry, image: Image): Script<Obstacle> {
  const subject = subjectOf(entry, image);
  const later = yield* laterStep(entry, image, subject);
  if (later !== null) {
    const { change, operation } = later;
    const message = `${subject} was changed since by change ${change}, ${withArticle(operation)}`;
    return operation === "forget"
      ? inTheWay(subject, `${message}, which is for good`)
      : inTheWay(subject, message, { change });
  }
  const cover = yield* coverOf(subject, entry.conversation);
  const folded = `${subject} was folded since: ${cover} stands for it now`;
  return inTheWay(subject, cover === null ? `${subject} has changed since` : folded, { cover });
}

/** The newest step of an operator that touched this row since and still holds. */
const laterStep = (
  { id }: JournalEntry,
  { table, key }: Image,
  subject: string,
): Script<{ readonly change: number; readonly operation: string } | null> =>
  first(
    sql`SELECT change_id, operation FROM journal WHERE journal_id > ${id} AND undone_by IS NULL
          AND (instr(after_json, ${String(Object.values(key).at(-1))}) OR instr(after_json, ${subject})) AND (
          EXISTS (SELECT 1 FROM json_each(after_json, '$.rows') r
                  WHERE r.value ->> 'table' = ${table} AND r.value -> 'key' = json(${JSON.stringify(key)}))
          OR operation = 'forget' AND EXISTS (SELECT 1 FROM json_each(after_json, '$.summaries') WHERE value = ${subject}))
        ORDER BY operation = 'undo', journal_id DESC LIMIT 1`,
    (row) => ({ change: int(row, "change_id"), operation: text(row, "operation") }),
  );

/** What a person would call this row. */
function subjectOf({ conversation }: JournalEntry, { table, key, columns }: Image): string {
  const summary = table === "context_items" ? columns?.["summary_id"] : key["summary_id"];
  if (typeof summary === "string") return summary;
  const message = table === "context_items" ? columns?.["message_id"] : key["message_id"];
  if (typeof message === "number") return messageName(message as MessageId);
  return `the context of conversation ${conversation}`;
}

/** The summary of the context that stands for a message or summary now. */
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

/** Summaries that were written from a text that is to go, or that were tied or carried to a row that is. */
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
        WHERE p.parent_summary_id = ${id} AND (${goes ? 1 : 0} OR s.updated_at > ${entry.at}
          OR s.updated_at = ${entry.at} AND EXISTS (
            SELECT 1 FROM journal WHERE journal_id > ${entry.id} AND subject = s.summary_id AND undone_by IS NULL
              AND operation IN ('rewrite', 'repair')))
        ORDER BY s.search_id`,
    toSummaryId,
  );
  const found: Obstacle[] = [];
  for (const subject of derived) {
    if (reverted.has(subject) || isDeleted.has(`summaries ${subject}`)) continue;
    const later = yield* laterStep(entry, { table: "summaries", key: { summary_id: subject }, columns: null }, subject);
    const by = later === null ? "" : ` by change ${later.change}`;
    const way = later === null ? { cover: subject } : { change: later.change };
    found.push(inTheWay(subject, `${subject} was written since from ${id}${by}`, way));
  }
  if (goes) {
    for (const subject of yield* reads.carriedBy(asSummary(id)))
      found.push(inTheWay(subject, `${subject} carries the text of ${id} over`));
  }
  return found;
}
