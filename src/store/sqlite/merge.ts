/**
 * Conversations of another database into this one, as they are there. Numbers are kept where they are free here, else all
 * of a kind are moved up by as much; ids that are random by nature stay. What was journalled there stays there: the
 * numbers of its changes mean others here.
 */

import { existsSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId } from "../../core/model/types.ts";
import type { Merged } from "../../core/model/store.ts";
import { readOnlyName } from "./archive.ts";
import type { Place } from "./archive.ts";
import { filesBeside } from "./backup.ts";
import { belongings } from "../ownership.ts";
import { copyContent } from "../content/folder.ts";
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
            AND (SELECT message_key FROM main.messages WHERE conversation_id = h.conversation_id ORDER BY seq LIMIT 1)
             IS (SELECT message_key FROM source.messages WHERE conversation_id = c.conversation_id ORDER BY seq LIMIT 1)
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
        WHERE s.conversation_id IN (SELECT value FROM json_each(${fresh}))
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

/** What is numbered, and the column of the number. */
const numbers = [
  ["conversations", "conversation_id"],
  ["messages", "message_id"],
  ["transcript_entries", "entry_id"],
  ["compactions", "compaction_id"],
] as const;

const staysThere: ReadonlySet<string> = new Set(["journal", "drafts"]);

function* bringIn(path: string): Script<Omit<Merged, "files">> {
  const { fresh, known } = yield* lookAtSource(path);
  const offsets = new Map<string, number>();
  for (const [table, column] of numbers) offsets.set(column, yield* offsetFor(table, column, fresh));
  offsets.set("search_id", (offsets.get("conversation_id") ?? 0) * 2 ** 24);
  for (const { table, isOwn } of belongings) {
    if (staysThere.has(table)) continue;
    const columns = yield* all(
      sql`SELECT name FROM pragma_table_xinfo(${table}, 'main') WHERE hidden = 0 ORDER BY cid`,
      (row) => text(row, "name"),
    );
    const valueOf = (name: string): string => {
      if (name === "active") return isStillActive;
      if (name.startsWith("indexed_")) return "0"; // They come without the entries of the search index.
      return offsets.has(name) ? `it.${name} + ${offsets.get(name)}` : `it.${name}`;
    };
    const isNew = table === "large_files" ? "AND it.file_id NOT IN (SELECT file_id FROM main.large_files)" : "";
    yield statement(
      `INSERT INTO main.${table} (${columns.join(", ")}) SELECT ${columns.map(valueOf).join(", ")}
       FROM source.${table} AS it WHERE it.${isOwn("source")} ${isNew}`,
      [fresh],
    );
  }
  const by = offsets.get("conversation_id") ?? 0;
  const conversations = fresh.map((from) => ({ from, to: asConversation(from + by) }));
  const came = conversations.map(({ to }) => to);
  yield* findOrigins(came, offsets.get("message_id") ?? 0);
  const rowsOf = (table: string) =>
    count(statement(`SELECT count(*) FROM ${table} WHERE conversation_id IN (SELECT value FROM json_each(?))`, [came]));
  return { conversations, known, messages: yield* rowsOf("messages"), summaries: yield* rowsOf("summaries") };
}

/** One session writes to one segment: what goes on here does not give way to what comes. */
const isStillActive = `it.active AND NOT EXISTS (SELECT 1 FROM main.conversations h WHERE h.active = 1
  AND h.session_key IS it.session_key AND coalesce(h.agent_id, '') = coalesce(it.agent_id, '')
  AND (it.session_key IS NOT NULL OR h.session_id = it.session_id))`;

/**
 * By how much the numbers that come must grow; 0 if all are free. That of a message is not free while another here says
 * that it is a copy of that number, and is not: whatever is forgotten takes its copies with it.
 */
function* offsetFor(table: string, column: string, ids: Conversations): Script<number> {
  const isAsked = "it.conversation_id IN (SELECT value FROM json_each(?))";
  const isTaken = `EXISTS (SELECT 1 FROM source.${table} it JOIN main.${table} h USING (${column}) WHERE ${isAsked})`;
  const isNamed = `EXISTS (SELECT 1 FROM main.messages h JOIN source.messages it ON it.message_id = h.copied_from
    WHERE h.copied_from IS NOT NULL AND h.content <> it.content AND ${isAsked})`;
  const [row = {}] = yield statement(
    `SELECT ${isTaken} ${table === "messages" ? `OR ${isNamed}` : "OR ? = ''"} AS is_taken, max(
       coalesce((SELECT max(${column}) FROM main.${table}), 0),
       coalesce((SELECT seq FROM main.sqlite_sequence WHERE name = '${table}'), 0)) AS last`,
    [ids, ids],
  );
  return int(row, "is_taken") === 1 ? int(row, "last") : 0;
}

/**
 * Copies of a transplant name their originals by number: one that came along, one that is here and is the same, or one
 * that may yet come back to its place. Of any other nothing is known here but that it is not itself.
 */
function* findOrigins(came: Conversations, offset: number): Script<void> {
  yield sql`UPDATE messages AS it SET copied_from = CASE
      WHEN EXISTS (SELECT 1 FROM messages o WHERE o.message_id = it.copied_from + ${offset}
                     AND o.conversation_id IN (SELECT value FROM json_each(${came}))) THEN copied_from + ${offset}
      WHEN EXISTS (SELECT 1 FROM messages o WHERE o.message_id = it.copied_from
                     AND o.content = it.content AND o.created_at = it.created_at) THEN copied_from
      WHEN ${offset} = 0 AND NOT EXISTS (SELECT 1 FROM messages o WHERE o.message_id = it.copied_from)
                     AND copied_from < message_id THEN copied_from
      ELSE -message_id END
    WHERE copied_from IS NOT NULL AND conversation_id IN (SELECT value FROM json_each(${came}))`;
}
