/**
 * Merges the conversations of another database, such as an archive, into this one.
 * A conversation keeps its number if that is free here. The journal is not merged, because its change numbers are in use.
 */

import { existsSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { LcmError } from "../../core/base/errors.ts";
import { shellPath } from "../../core/base/format.ts";
import { numbersPerConversation, type ConversationId } from "../../core/model/types.ts";
import type { Merged } from "../../core/model/store.ts";
import { filesBeside, type DatabaseLocation } from "./location.ts";
import { ownedTables } from "../ownership.ts";
import { copyContents, placeOf, refuseLinks } from "../content/folder.ts";
import { isLink, notPlain } from "../content/plain-file.ts";
import { freshNumber } from "../registry.ts";
import { asConversation } from "../rows.ts";
import { all, count, first, int, sql, statement, text, type Script } from "../script.ts";
import { identify } from "./file-kind.ts";
import { readOnlyUri } from "./read-only.ts";

export interface MergeDeps extends DatabaseLocation {
  readonly db: DatabaseSync;
  read<T>(script: () => Script<T>): Promise<T>;
  write<T>(script: () => Script<T>): Promise<T>;
}

export async function merge(deps: MergeDeps, from: DatabaseLocation): Promise<Merged> {
  checkMerge(deps.path, from.path);
  const filesDir = existsSync(from.filesDir) ? from.filesDir : filesBeside(from.path); // The latter for a backup.
  deps.db.prepare("ATTACH ? AS source").get(readOnlyUri(from.path)); // `run` throws if the last rowid is too large.
  try {
    const { contents } = await deps.read(() => readSource(from.path));
    await refuseTaken(deps, from.path, contents);
    // Files come first: a crash in between leaves files without a row, which doctor reports.
    if (isLink(filesDir)) throw notPlain(filesDir, "a symbolic link");
    await refuseLinks(filesDir, contents);
    const missing = await copyContents(filesDir, deps.filesDir, contents, true);
    return { ...(await deps.write(() => mergeRows(from.path))), files: contents.length - missing.length };
  } finally {
    deps.db.exec("DETACH source");
  }
}

/** A row of a damaged or forged database may name content of a row here, which copying would replace. */
async function refuseTaken(deps: MergeDeps, from: string, contents: readonly string[]): Promise<void> {
  const here = await deps.read(() =>
    all(sql`SELECT storage_uri FROM main.large_files`, (row) => text(row, "storage_uri")),
  );
  const taken = new Set(here.map((storageUri) => placeOf(deps.filesDir, storageUri)).filter((place) => place !== null));
  const clash = contents.find((storageUri) => taken.has(placeOf(deps.filesDir, storageUri) ?? ""));
  if (clash === undefined) return;
  throw new LcmError("conflict", `${from} would replace the stored file ${clash}, which another file here uses`, {
    hint: "nothing was merged; export single conversations and import these",
  });
}

/** Throws if `from` cannot be merged into the database at `path`, which need not exist. */
export function checkMerge(path: string, from: string): void {
  // On some systems a file's number is too large for a double.
  const [source, own] = [from, path].map((each) => statSync(each, { throwIfNoEntry: false, bigint: true }));
  if (source === undefined) throw new LcmError("not_found", `there is no file ${from}`);
  if (source.dev === own?.dev && source.ino === own.ino) {
    throw new LcmError("invalid", `${from} is the database itself`, { hint: "pass an archive or another database" });
  }
  const kind = identify(from);
  if (kind === "current") return;
  const refusals = {
    older_program: [
      "was made by an older lossless-claw",
      `convert it with \`lcm adopt --db ${shellPath(from)}\`, then import it`,
    ],
    outdated: ["has an earlier format", `upgrade it with \`lcm status --db ${shellPath(from)}\`, then import it`],
    empty: ["is empty", "pass an archive or another database"],
  } as const;
  const [problem, hint] = refusals[kind];
  throw new LcmError("invalid", `${from} ${problem}`, { hint });
}

type Conversations = readonly ConversationId[];

interface Source {
  readonly fresh: Conversations;
  readonly known: Conversations;
  /** Storage URIs of files that are not here yet. */
  readonly contents: readonly string[];
}

function* readSource(path: string): Script<Source> {
  const found = yield* all(
    sql`SELECT c.conversation_id, EXISTS (
          SELECT 1 FROM main.conversations h WHERE h.created_at = c.created_at
            AND (h.session_id = c.session_id OR h.session_key = c.session_key)
            AND (SELECT message_key FROM main.messages WHERE message_id > h.conversation_id << 24
                   AND message_id < (h.conversation_id + 1) << 24 ORDER BY message_id LIMIT 1)
             IS (SELECT message_key FROM source.messages WHERE message_id > c.conversation_id << 24
                   AND message_id < (c.conversation_id + 1) << 24 ORDER BY message_id LIMIT 1)
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

/** One database is a copy of the other, and both have used the same id since, for different things. */
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
  const message = `${clash.id} of conversation ${clash.there} in ${path} already exists in conversation ${clash.here}`;
  const hint = `nothing was merged; export single conversations with \`lcm export --db ${shellPath(path)}\` and import these`;
  throw new LcmError("conflict", message, { hint });
}

/** A conversation's number in the source, and here. */
type Renumbered = Merged["conversations"][number];

const notMerged: ReadonlySet<string> = new Set(["registry", "journal", "drafts", "map_answers"]);
/** Columns whose values are assigned again, in the same order. */
const rowNumbers: ReadonlySet<string> = new Set(["entry_id", "compaction_id"]);

function* mergeRows(path: string): Script<Omit<Merged, "files">> {
  const { fresh, known } = yield* readSource(path);
  const conversations = yield* renumber(fresh);
  const pairs = JSON.stringify(conversations.map(({ from, to }) => [from, to]));
  for (const { table } of ownedTables) {
    if (notMerged.has(table)) continue;
    const columns = yield* all(
      sql`SELECT name FROM pragma_table_xinfo(${table}, 'main') WHERE hidden = 0 ORDER BY cid`,
      (row) => text(row, "name"),
    );
    const copied = columns.filter((name) => !rowNumbers.has(name));
    const isNew = table === "large_files" ? "WHERE it.file_id NOT IN (SELECT file_id FROM main.large_files)" : "";
    const [key, next] = columns;
    yield statement(
      `INSERT INTO main.${table} (${copied.join(", ")}) SELECT ${copied.map((name) => valueOf(name)).join(", ")}
       FROM (SELECT value ->> 0 AS old, value ->> 1 AS new FROM json_each(?)) AS number
       JOIN source.${table} AS it ON it.conversation_id = number.old ${isNew} ORDER BY it.${key}, it.${next}`,
      [pairs],
    );
  }
  // Rows of an earlier version may still be without checksums, and have any number here.
  yield sql`INSERT OR REPLACE INTO main.checksum_backlog (table_name, after_id)
            SELECT table_name, 0 FROM source.checksum_backlog`;
  const merged = conversations.map(({ to }) => to);
  yield sql`INSERT INTO registry (kind, session_key, agent_id, number)
            SELECT 'session', session_key, coalesce(agent_id, ''), conversation_id FROM conversations
            WHERE active = 1 AND session_key IS NOT NULL AND conversation_id IN (SELECT value FROM json_each(${merged}))`;
  yield* resolveOrigins(pairs);
  const isMerged = "conversation_id IN (SELECT value FROM json_each(?))";
  const rowsOf = (table: string) => count(statement(`SELECT count(*) FROM ${table} WHERE ${isMerged}`, [merged]));
  return { conversations, known, messages: yield* rowsOf("messages"), summaries: yield* rowsOf("summaries") };
}

/** Ids follow the number of their conversation. Files keep theirs, because texts and the files folder contain them. */
function valueOf(name: string): string {
  switch (name) {
    case "conversation_id":
      return "number.new";
    case "message_id":
      // What is carried over names a message of another conversation; see resolveOrigins.
      return `it.message_id + (it.message_id >> 24 = number.old) * (number.new - number.old) * ${numbersPerConversation}`;
    case "search_id":
      return `it.${name} + (number.new - number.old) * ${numbersPerConversation}`;
    case "summary_id":
    case "parent_summary_id":
      return renamed(`it.${name}`, "number.old", "number.new");
    case "active":
      return isStillActive;
    case "unindexed":
      return "1";
    case "indexed_seq":
    case "indexed_summary":
      return "0"; // The search index is not copied.
    default:
      return `it.${name}`;
  }
}

/** SQL for a summary's id with another conversation's number. Ids of earlier versions contain no number and stay. */
const renamed = (id: string, from: string, to: string): string =>
  `CASE WHEN ${id} GLOB 'sum_' || printf('%08x', ${from}) || '*' THEN 'sum_' || printf('%08x', ${to}) || substr(${id}, 13)
   ELSE ${id} END`;

/** A session has one active segment: the one here stays active. */
const isStillActive = `it.active AND NOT EXISTS (SELECT 1 FROM main.conversations h WHERE h.active = 1
  AND h.session_key IS it.session_key AND coalesce(h.agent_id, '') = coalesce(it.agent_id, '')
  AND (it.session_key IS NOT NULL OR h.session_id = it.session_id))`;

/**
 * A conversation keeps its number if that is free here. It is not free if a message here would then count as a copy of
 * one it was not copied from: forgetting a message also forgets its copies.
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
 * Sets the origin of transplanted copies: a message merged with them, the same message here, or a deleted one that may be
 * merged later, because ids are never reused. If the origin is unknown here, the copy's own id, negated.
 */
function* resolveOrigins(pairs: string): Script<void> {
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
    UPDATE pins AS it SET message_id = message_id + (number.new - number.old) * ${numbersPerConversation} FROM number
    WHERE it.conversation_id IN (SELECT value ->> 1 FROM json_each(${pairs})) AND number.old = it.message_id >> 24
      AND it.message_id >> 24 <> it.conversation_id`;
  yield sql`WITH number AS (SELECT value ->> 0 AS old, value ->> 1 AS new FROM json_each(${pairs}))
    UPDATE summaries AS it SET carried_from = (
      SELECT s.summary_id FROM number JOIN summaries s ON s.conversation_id = number.new AND s.summary_id =
        'sum_' || printf('%08x', number.new) || substr(it.carried_from, 13)
      WHERE it.carried_from GLOB 'sum_' || printf('%08x', number.old) || '*')
    WHERE conversation_id IN (SELECT new FROM number) AND carried_from NOT IN (SELECT summary_id FROM summaries)
      AND EXISTS (SELECT 1 FROM number WHERE it.carried_from GLOB 'sum_' || printf('%08x', number.old) || '*')`;
}
