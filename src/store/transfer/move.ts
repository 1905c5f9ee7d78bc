/**
 * Moves all conversations between a database file and a server, one in each transaction, under the numbers they have. A
 * run that was interrupted is continued by the next: what is there is whole. The source is only read.
 */

import { LcmError } from "../../core/base/errors.ts";
import type { ContentStore } from "../../core/model/content-store.ts";
import type { Move, MovedConversation, MovePlan } from "../../core/model/database-file.ts";
import type { ConversationId } from "../../core/model/types.ts";
import { asConversation } from "../rows.ts";
import { all, count, int, sql, statement, text, textOrNull, type Row, type Script } from "../script.ts";
import { contentsOf, copyContent, rowsOf, type OpenedFile } from "./archives.ts";
import { checksums, copyIn, copyOut, differences, insertions, yieldAll, type Checksums, type RowFile } from "./rows.ts";

/** The side that is not a file. */
export interface MoveServer {
  readonly content: ContentStore;
  readonly read: <T>(script: () => Script<T>) => Promise<T>;
  /** Excludes other writers of the conversation. */
  readonly write: <T>(conversation: ConversationId | null, script: () => Script<T>) => Promise<T>;
  readonly close: () => Promise<void>;
}

export interface MoveDeps {
  /** Null for a target that does not exist yet, and will only be planned for. */
  readonly file: OpenedFile | null;
  readonly server: MoveServer | null;
  readonly to: "file" | "server";
  /** How the target is shown. */
  readonly shown: string;
}

export function createMove(deps: MoveDeps): Move {
  return {
    plan: async () => await plan(deps),
    async copy(id, onRows) {
      const { file, server } = opened(deps);
      return await (deps.to === "server" ? copyToServer : copyToFile)(file, server, id, onRows);
    },
    async compare(id) {
      const { file, server } = opened(deps);
      const there = await server.read(() => checksums(id, file.file.columnsOf));
      return Object.fromEntries(differences(inFile(file.file, id), there));
    },
    async finish() {
      const { file, server } = opened(deps);
      if (deps.to === "server") {
        const rows = inSnapshot(file.file, () => file.file.run(globalRows(file.file)));
        await server.write(null, () => insertGlobals(rows, file.file, true));
      } else {
        const rows = await server.read(() => globalRows(file.file));
        file.file.begin("write");
        file.file.run(insertGlobals(rows, file.file, false));
        file.file.commit();
      }
    },
    async close() {
      deps.file?.file.rollback();
      deps.file?.close();
      await deps.server?.close();
    },
  };
}

function opened({ file, server }: MoveDeps): { readonly file: OpenedFile; readonly server: MoveServer } {
  if (file === null || server === null) throw new LcmError("invalid", "this move was only planned");
  return { file, server };
}

function inSnapshot<T>(file: RowFile, read: () => T): T {
  file.begin("read");
  try {
    return read();
  } finally {
    file.rollback();
  }
}

const inFile = (file: RowFile, id: ConversationId): Checksums =>
  inSnapshot(file, () => file.run(checksums(id, file.columnsOf)));

// ── Planning ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Outline {
  readonly id: ConversationId;
  /** What a conversation keeps for ever. */
  readonly identity: string;
  readonly title: string | null;
  readonly sessionKey: string | null;
  readonly sessionId: string;
  readonly messages: number;
  readonly summaries: number;
}

const outlines = (): Script<readonly Outline[]> =>
  all(
    sql`SELECT conversation_id, created_at, title, session_key, session_id, message_count, summary_count,
          (SELECT message_key FROM messages WHERE message_id > c.conversation_id << 24
             AND message_id < (c.conversation_id + 1) << 24 ORDER BY message_id LIMIT 1) AS first_key
        FROM conversations c ORDER BY conversation_id`,
    (row) => ({
      id: asConversation(int(row, "conversation_id")),
      identity: JSON.stringify([text(row, "created_at"), textOrNull(row, "first_key")]),
      title: textOrNull(row, "title"),
      sessionKey: textOrNull(row, "session_key"),
      sessionId: text(row, "session_id"),
      messages: int(row, "message_count"),
      summaries: int(row, "summary_count"),
    }),
  );

async function plan({ file, server, to, shown }: MoveDeps): Promise<MovePlan> {
  const inFile = file === null ? [] : inSnapshot(file.file, () => file.file.run(outlines()));
  const onServer = server === null ? [] : await server.read(outlines);
  const [source, target] = to === "server" ? [inFile, onServer] : [onServer, inFile];
  const own = new Map(source.map(({ id, identity }) => [id, identity]));
  const strangers = target.filter(({ id, identity }) => own.get(id) !== identity);
  if (strangers.length > 0)
    throw new LcmError(
      "conflict",
      `${shown} has other conversations (${strangers.length}, such as ${strangers[0]?.id}), whose numbers are in use`,
      {
        hint:
          to === "server"
            ? "import the file there instead, which numbers its conversations anew: `lcm import FILE` with --db set to the server"
            : "move to a new file",
      },
    );
  const there = new Set(target.map(({ id }) => id));
  return {
    conversations: source.map(({ id, identity: _, ...outline }) => ({
      conversation: id,
      ...outline,
      isThere: there.has(id),
    })),
  };
}

// ── Copying ──────────────────────────────────────────────────────────────────────────────────────────────────────────

type OnRows = Parameters<Move["copy"]>[1];

/** Content comes first, so that no row names what is not there. */
async function copyToServer(
  source: OpenedFile,
  server: MoveServer,
  id: ConversationId,
  onRows: OnRows,
): Promise<MovedConversation> {
  const { file } = source;
  const uris = file.run(contentsOf([id]));
  const missing = await copyContent(source.content, server.content, uris);
  let sums: Checksums = new Map();
  await server.write(id, function* () {
    file.begin("read"); // Once more if the server has to run this again.
    sums = yield* copyIn(id, file, onRows);
    file.rollback();
  });
  const there = await server.read(() => checksums(id, file.columnsOf));
  return checked(id, sums, there, { files: uris.length - missing.length, missingFiles: missing.length });
}

async function copyToFile(
  target: OpenedFile,
  server: MoveServer,
  id: ConversationId,
  onRows: OnRows,
): Promise<MovedConversation> {
  const { file } = target;
  const uris = await server.read(() => contentsOf([id]));
  const missing = await copyContent(server.content, target.content, uris);
  const sums = await server.read(() => {
    file.begin("write");
    return copyOut(id, file, onRows);
  });
  file.commit();
  const there = inFile(file, id);
  return checked(id, sums, there, { files: uris.length - missing.length, missingFiles: missing.length });
}

function checked(
  id: ConversationId,
  sent: Checksums,
  there: Checksums,
  files: Omit<MovedConversation, "rows">,
): MovedConversation {
  const differing = [...differences(sent, there)];
  if (differing.length > 0)
    throw new LcmError(
      "corrupt",
      `conversation ${id} did not arrive as it was sent: ${differing.map(([table, rows]) => `${rows} rows of ${table}`).join(", ")} differ`,
      { hint: "remove it there with `lcm prune`, then move again" },
    );
  return { rows: [...sent.values()].reduce((sum, rows) => sum + rows.length, 0), ...files };
}

// ── What belongs to no conversation ──────────────────────────────────────────────────────────────────────────────────

/** Of each table, a condition and an order. */
const globals = {
  registry: "kind <> 'session' ORDER BY kind",
  journal: "conversation_id IS NULL ORDER BY journal_id",
  expansion_grants: "1 = 1 ORDER BY issued_at, grant_id",
  model_usage: "1 = 1 ORDER BY usage_id",
  embedders: "1 = 1 ORDER BY name",
  checksum_backlog: "1 = 1 ORDER BY table_name",
} as const;

type GlobalTable = keyof typeof globals;
type GlobalRows = ReadonlyMap<GlobalTable, readonly Row[]>;
const globalNames = Object.keys(globals) as readonly GlobalTable[];

function* globalRows(file: RowFile): Script<GlobalRows> {
  const found = new Map<GlobalTable, readonly Row[]>();
  for (const table of globalNames) {
    const read = `SELECT ${file.columnsOf(table).join(", ")} FROM ${table} WHERE ${globals[table]}`;
    found.set(table, yield* rowsOf(statement(read)));
  }
  return found;
}

/** All in one transaction, so that what is there need not be compared. */
function* insertGlobals(rows: GlobalRows, { columnsOf }: RowFile, hasSequences: boolean): Script<void> {
  for (const table of globalNames) {
    const given = rows.get(table) ?? [];
    if (table === "registry") yield given.map(raised);
    else if (
      (yield* count(statement(`SELECT count(*) FROM ${table} WHERE ${globals[table].split(" ORDER")[0]}`))) === 0
    )
      yield* yieldAll(insertions(table, columnsOf(table), given));
  }
  if (hasSequences) yield sequences.map(([table, column]) => statement(raisedSequence(table, column)));
}

const raised = (row: Row) =>
  sql`INSERT INTO registry (kind, number) VALUES (${row["kind"] ?? ""}, ${row["number"] ?? 0})
      ON CONFLICT (kind, session_key, agent_id) DO UPDATE SET number = greatest(registry.number, excluded.number)`;

/** Rows came with their numbers; those that follow must get others. */
const sequences = [
  ["journal", "journal_id"],
  ["transcript_entries", "entry_id"],
  ["compactions", "compaction_id"],
  ["model_usage", "usage_id"],
] as const;

const raisedSequence = (table: string, column: string): string =>
  `SELECT setval(pg_get_serial_sequence('${table}', '${column}'), greatest(max(${column}), 1)) FROM ${table}`;
