/**
 * Conversations of another database into this one, as they are there. Numbers are kept where they are free here, else all
 * of a kind are moved up by as much; ids that are random by nature stay. What was journalled there stays there: the
 * numbers of its changes mean others here.
 */

import { existsSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { LcmError } from "../../core/base/errors.ts";
import { numbersPerConversation } from "../../core/model/types.ts";
import type { ConversationId } from "../../core/model/types.ts";
import type { Merged } from "../../core/model/store.ts";
import { readOnlyName } from "./archive.ts";
import type { Place } from "./archive.ts";
import { filesBeside } from "./backup.ts";
import { belongings } from "../ownership.ts";
import { copyContent } from "../content/folder.ts";
import { freshNumber } from "../registry.ts";
import { asConversation } from "../rows.ts";
import { all, count, first, int, sql, statement, text } from "../script.ts";
import type { Script } from "../script.ts";
import { identify } from "./file-kind.ts";

export interface MergeDeps extends Place {
  readonly db: DatabaseSync;
  read<T>(script: () => Script<T>): Promise<T>;
  write<T>(script: () => Script<T>): Promise<T>;
}

export async function merge(deps: MergeDeps, from: Place): Promise<Merged> {
  checkSource(deps.path, from.path);
  const filesDir = existsSync(from.filesDir) ? from.filesDir : filesBeside(from.path); // So a backup has its own.
  deps.db.prepare("ATTACH ? AS source").get(readOnlyName(from.path)); // `run` would tell of a rowid, maybe one too large.
  try {
    const { contents } = await deps.read(() => lookAtSource(from.path));
    // Before the rows that name them: a crash in between leaves files that no row names, which doctor knows.
    let files = 0;
    for (const storageUri of contents) if (await copyContent(filesDir, deps.filesDir, storageUri)) files += 1;
    return { ...(await deps.write(() => bringIn(from.path))), files };
  } finally {
    deps.db.exec("DETACH source");
  }
}

function checkSource(path: string, from: string): void {
  // What tells files apart is larger than a number can be on some systems.
  const [source, own] = [from, path].map((each) => statSync(each, { throwIfNoEntry: false, bigint: true }));
  if (source === undefined) throw new LcmError("not_found", `there is no file ${from}`);
  if (source.dev === own?.dev && source.ino === own.ino) {
    throw new LcmError("invalid", `${from} is the database itself`, { hint: "name an archive, or another database" });
  }
  const kind = identify(from);
  switch (kind) {
    case "current":
      return;
    case "older_program":
      throw new LcmError("invalid", `${from} was made by an older lossless-claw`, {
        hint: `\`lcm adopt --db ${from}\` moves it over; then import it`,
      });
    case "outdated":
      throw new LcmError("invalid", `${from} is of an earlier format`, {
        hint: `\`lcm status --db ${from}\` brings it to the present one; then import it`,
      });
    case "empty":
      throw new LcmError("invalid", `${from} is empty`, { hint: "name an archive, or another database" });
  }
}

// ── What comes ───────────────────────────────────────────────────────────────────────────────────────────────────────

type Conversations = readonly ConversationId[];

interface Coming {
  readonly fresh: Conversations;
  readonly known: Conversations;
  /** Of the files folder, what is not here yet. */
  readonly contents: readonly string[];
}

function* lookAtSource(path: string): Script<Coming> {
  const found = yield* all(
    sql`SELECT c.conversation_id, EXISTS (
          SELECT 1 FROM main.conversations h WHERE h.created_at = c.created_at
            AND (h.session_id = c.session_id OR h.session_key = c.session_key)
            AND (SELECT message_key FROM main.messages WHERE conversation_id = h.conversation_id ORDER BY message_id LIMIT 1)
             IS (SELECT message_key FROM source.messages WHERE conversation_id = c.conversation_id ORDER BY message_id LIMIT 1)
        ) AS is_known FROM source.conversations c ORDER BY c.conversation_id`,
    (row) => ({ id: asConversation(int(row, "conversation_id")), isKnown: int(row, "is_known") === 1 }),
  );
  const fresh = found.filter(({ isKnown }) => !isKnown).map(({ id }) => id);
  yield* refuseClash(path, fresh);
  const contents = yield* all(
    sql`SELECT storage_uri FROM source.large_files WHERE conversation_id IN (SELECT value FROM json_each(${fresh}))
          AND file_id NOT IN (SELECT file_id FROM main.large_files) ORDER BY file_id`,
    (row) => text(row, "storage_uri"),
  );
  return { fresh, known: found.filter(({ isKnown }) => isKnown).map(({ id }) => id), contents };
}

/** The same id for something else: one of the two databases was made from the other, and they went separate ways. */
function* refuseClash(path: string, fresh: Conversations): Script<void> {
  const clash = yield* first(
    sql`SELECT s.summary_id AS id, s.conversation_id AS there, h.conversation_id AS here
        FROM source.summaries s JOIN main.summaries h USING (summary_id)
        WHERE s.created_at = h.created_at AND s.conversation_id IN (SELECT value FROM json_each(${fresh}))
        UNION ALL
        SELECT f.file_id, f.conversation_id, h.conversation_id FROM source.large_files f JOIN main.large_files h USING (file_id)
        WHERE f.conversation_id IN (SELECT value FROM json_each(${fresh})) AND f.content_hash <> h.content_hash
        LIMIT 1`,
    (row) => ({ id: text(row, "id"), there: int(row, "there"), here: int(row, "here") }),
  );
  if (clash === null) return;
  throw new LcmError(
    "conflict",
    `${clash.id} of conversation ${clash.there} in ${path} is here already, in conversation ${clash.here}`,
    { hint: "nothing was brought in; `lcm --db FILE export CONVERSATION` takes single ones out to be imported" },
  );
}

// ── Bringing it in ───────────────────────────────────────────────────────────────────────────────────────────────────

/** A conversation's number in the source, and here. */
type Renumbered = Merged["conversations"][number];

const staysThere: ReadonlySet<string> = new Set(["registry", "journal", "drafts"]);
/** Rows are numbered afresh here, in the same order. */
const rowNumbers: ReadonlySet<string> = new Set(["entry_id", "compaction_id"]);

function* bringIn(path: string): Script<Omit<Merged, "files">> {
  const { fresh, known } = yield* lookAtSource(path);
  const conversations = yield* renumber(fresh);
  const pairs = JSON.stringify(conversations.map(({ from, to }) => [from, to]));
  for (const { table } of belongings) {
    if (staysThere.has(table)) continue;
    const columns = yield* all(
      sql`SELECT name FROM pragma_table_xinfo(${table}, 'main') WHERE hidden = 0 ORDER BY cid`,
      (row) => text(row, "name"),
    );
    const copied = columns.filter((name) => !rowNumbers.has(name));
    const isNew = table === "large_files" ? "WHERE it.file_id NOT IN (SELECT file_id FROM main.large_files)" : "";
    yield statement(
      `INSERT INTO main.${table} (${copied.join(", ")}) SELECT ${copied.map((name) => valueOf(name)).join(", ")}
       FROM (SELECT value ->> 0 AS old, value ->> 1 AS new FROM json_each(?)) AS number
       JOIN source.${table} AS it ON it.conversation_id = number.old ${isNew}
       ORDER BY ${columns
         .slice(0, 2)
         .map((name) => `it.${name}`)
         .join(", ")}`,
      [pairs],
    );
  }
  const came = conversations.map(({ to }) => to);
  yield sql`INSERT INTO registry (kind, session_key, agent_id, number)
            SELECT 'session', session_key, coalesce(agent_id, ''), conversation_id FROM conversations
            WHERE active = 1 AND session_key IS NOT NULL AND conversation_id IN (SELECT value FROM json_each(${came}))`;
  yield* findOrigins(pairs);
  const rowsOf = (table: string) =>
    count(statement(`SELECT count(*) FROM ${table} WHERE conversation_id IN (SELECT value FROM json_each(?))`, [came]));
  return { conversations, known, messages: yield* rowsOf("messages"), summaries: yield* rowsOf("summaries") };
}

/** Ids move with the number of their conversation; files keep theirs, because texts and the folder name them. */
function valueOf(name: string): string {
  switch (name) {
    case "conversation_id":
      return "number.new";
    case "message_id":
    case "search_id":
      return `it.${name} + (number.new - number.old) * ${numbersPerConversation}`;
    case "summary_id":
    case "parent_summary_id":
      return renamed(`it.${name}`, "number.old", "number.new");
    case "active":
      return isStillActive;
    case "indexed_seq":
    case "indexed_summary":
      return "0"; // The search index is not copied.
    default:
      return `it.${name}`;
  }
}

/** A summary's id with the number of another conversation. Ids of earlier versions name none, and stay. */
const renamed = (id: string, from: string, to: string): string =>
  `CASE WHEN ${id} GLOB 'sum_' || printf('%08x', ${from}) || '*' THEN 'sum_' || printf('%08x', ${to}) || substr(${id}, 13)
   ELSE ${id} END`;

/** One session writes to one segment: what is active here stays active. */
const isStillActive = `it.active AND NOT EXISTS (SELECT 1 FROM main.conversations h WHERE h.active = 1
  AND h.session_key IS it.session_key AND coalesce(h.agent_id, '') = coalesce(it.agent_id, '')
  AND (it.session_key IS NOT NULL OR h.session_id = it.session_id))`;

/**
 * A conversation keeps its number if that is free here. It is not free while a message here claims to be a copy of one
 * with that number and is not: forgetting a message also forgets its copies.
 */
function* renumber(ids: Conversations): Script<readonly Renumbered[]> {
  const taken = yield* all(
    sql`SELECT value AS id FROM json_each(${ids}) WHERE value IN (SELECT conversation_id FROM main.conversations)
          OR EXISTS (SELECT 1 FROM main.messages h JOIN source.messages it ON it.message_id = h.copied_from
                     WHERE h.copied_from > value << 24 AND h.copied_from < (value + 1) << 24 AND h.content <> it.content)`,
    (row) => int(row, "id"),
  );
  const free = ids.filter((id) => !taken.includes(id));
  yield sql`INSERT INTO registry (kind, number) VALUES ('conversations', ${Math.max(0, ...free)})
            ON CONFLICT (kind, session_key, agent_id) DO UPDATE SET number = max(number, excluded.number)`;
  const renumbered: Renumbered[] = [];
  for (const from of ids) {
    const to = free.includes(from) ? from : asConversation(yield* freshNumber("conversations"));
    renumbered.push({ from, to });
  }
  return renumbered;
}

/**
 * Copies of a transplant name their originals by id: one that came along, the same message here, or one that may yet
 * come back because its id is never given again. Any other origin is unknown here: the copy then names itself, negated.
 */
function* findOrigins(pairs: string): Script<void> {
  yield sql`WITH number AS (SELECT value ->> 0 AS old, value ->> 1 AS new FROM json_each(${pairs}))
    UPDATE messages AS it SET copied_from = coalesce(
      (SELECT it.copied_from + (new - old) * ${numbersPerConversation} FROM number
       WHERE old = it.copied_from >> 24 AND it.copied_from > 0),
      (SELECT o.message_id FROM messages o
       WHERE o.message_id = it.copied_from AND o.content = it.content AND o.created_at = it.created_at),
      (SELECT it.copied_from FROM registry r LEFT JOIN conversations c ON c.conversation_id = it.copied_from >> 24
       WHERE r.kind = 'conversations' AND it.copied_from > 0 AND it.copied_from >> 24 <= r.number
         AND (c.next_seq IS NULL OR it.copied_from & 0xffffff < c.next_seq)
         AND NOT EXISTS (SELECT 1 FROM messages o WHERE o.message_id = it.copied_from)),
      -message_id)
    WHERE copied_from IS NOT NULL AND conversation_id IN (SELECT new FROM number)`;
  yield sql`WITH number AS (SELECT value ->> 0 AS old, value ->> 1 AS new FROM json_each(${pairs}))
    UPDATE summaries AS it SET carried_from = (
      SELECT s.summary_id FROM number JOIN summaries s ON s.conversation_id = number.new AND s.summary_id =
        'sum_' || printf('%08x', number.new) || substr(it.carried_from, 13)
      WHERE it.carried_from GLOB 'sum_' || printf('%08x', number.old) || '*')
    WHERE conversation_id IN (SELECT new FROM number) AND carried_from NOT IN (SELECT summary_id FROM summaries)
      AND EXISTS (SELECT 1 FROM number WHERE it.carried_from GLOB 'sum_' || printf('%08x', number.old) || '*')`;
}
