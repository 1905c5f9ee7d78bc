/**
 * Keeps content in a table of the database, and what is larger elsewhere if there is such a place: then small content is
 * stored, copied and forgotten with its row. URIs are those of a folder, so the same row can name content in either.
 */

import { LcmError } from "../../core/base/errors.ts";
import type { ContentStore, ListedContent } from "../../core/model/content-store.ts";
import type { NewFile } from "../../core/model/store.ts";
import type { FileId } from "../../core/model/types.ts";
import { count, first, sql, type Row, type Script, type Statement, type Transactions } from "../script.ts";
import { encode, lastNames, toListed, uriOf } from "./folder.ts";
import type { StoredContent } from "./staged.ts";

export interface TableOptions extends Transactions {
  readonly nowMs: () => number;
  /** Where content goes that is larger than `bytesMax`; null to keep all of it in the table. */
  readonly larger: ContentStore | null;
  readonly bytesMax?: number;
}

const bytesMaxDefault = 2 ** 20;

export function openTable({ read, write, nowMs, larger, bytesMax = bytesMaxDefault }: TableOptions): StoredContent {
  const isHere = async (storageUri: string): Promise<boolean> => (await read(() => count(existing(storageUri)))) > 0;
  const bytesOf = async (storageUri: string): Promise<Buffer | null> => await read(() => contentBytes(storageUri));
  const isKeptHere = (bytes: Buffer): boolean => larger === null || bytes.length <= bytesMax;
  return {
    async put(id: FileId, file: NewFile) {
      const storageUri = uriOf(id, file);
      const { bytes, size } = encode(file.content, file.encoding);
      if (larger !== null && !isKeptHere(bytes)) return await larger.put(id, file);
      const rows = [inserted(storageUri, bytes, nowMs())];
      return { storageUri, ...size, rows, keep: () => undefined, drop: async () => undefined };
    },
    async read(file) {
      const bytes = await bytesOf(file.storageUri);
      if (bytes !== null) return bytes.toString(file.encoding);
      if (larger !== null) return await larger.read(file);
      throw new LcmError("unavailable", `the content of ${file.id} is not in the database`, {
        hint: "restore it from a backup of the database",
      });
    },
    path: async (storageUri) => (larger === null || (await isHere(storageUri)) ? null : await larger.path(storageUri)),
    facts: async (storageUri) =>
      (await read(() => first(facts(storageUri), toFacts))) ?? (await larger?.facts(storageUri)) ?? null,
    oddity: async (storageUri) => ((await isHere(storageUri)) ? null : ((await larger?.oddity(storageUri)) ?? null)),
    async replace(storageUri, content, encoding) {
      const { bytes, size } = encode(content, encoding);
      const isElsewhere = larger !== null && !(await isHere(storageUri));
      if (isElsewhere && ((await larger.facts(storageUri)) !== null || !isKeptHere(bytes)))
        return await larger.replace(storageUri, content, encoding);
      await write(() => all([inserted(storageUri, bytes, nowMs())]));
      return size;
    },
    async remove(storageUri) {
      await write(() => all([removed(storageUri)]));
      await larger?.remove(storageUri);
    },
    async list(conversation) {
      const rows = await read(() => listed(conversation));
      return [...rows.flatMap(toEntries), ...((await larger?.list(conversation)) ?? [])];
    },
    async contains(storageUri, texts) {
      const bytes = await bytesOf(storageUri);
      if (bytes !== null) return texts.some((text) => bytes.includes(text));
      return (await larger?.contains(storageUri, texts)) ?? false;
    },
  };
}

/** The key of a content. A folder that is not a conversation's comes from the older program. */
function keyOf(storageUri: string): readonly [conversation: number, name: string] {
  const [folder, name] = lastNames(storageUri);
  return /^[1-9]\d{0,9}$/.test(folder) ? [Number(folder), name] : [0, `${folder}/${name}`];
}

/** Also replaces it. */
export function inserted(storageUri: string, bytes: Buffer, writtenAtMs: number): Statement {
  const [conversation, name] = keyOf(storageUri);
  return sql`INSERT INTO file_contents (conversation_id, name, content, written_at)
             VALUES (${conversation}, ${name}, ${bytes}, ${writtenAtMs})
             ON CONFLICT (conversation_id, name) DO UPDATE SET content = excluded.content, written_at = excluded.written_at`;
}

function removed(storageUri: string): Statement {
  const [conversation, name] = keyOf(storageUri);
  return sql`DELETE FROM file_contents WHERE conversation_id = ${conversation} AND name = ${name}`;
}

function existing(storageUri: string): Statement {
  const [conversation, name] = keyOf(storageUri);
  return sql`SELECT count(*) FROM file_contents WHERE conversation_id = ${conversation} AND name = ${name}`;
}

function facts(storageUri: string): Statement {
  const [conversation, name] = keyOf(storageUri);
  return sql`SELECT length(content) AS bytes, written_at FROM file_contents
             WHERE conversation_id = ${conversation} AND name = ${name}`;
}

const toFacts = (row: Row) => ({ bytes: Number(row["bytes"]), writtenAtMs: Number(row["written_at"]) });

export function* contentBytes(storageUri: string): Script<Buffer | null> {
  const [conversation, name] = keyOf(storageUri);
  const content = yield* first(
    sql`SELECT content FROM file_contents WHERE conversation_id = ${conversation} AND name = ${name}`,
    (row) => row["content"],
  );
  return content instanceof Uint8Array ? Buffer.from(content.buffer, content.byteOffset, content.length) : null;
}

function* listed(conversation: number | null): Script<readonly Row[]> {
  return conversation === null
    ? yield sql`SELECT conversation_id, name FROM file_contents ORDER BY conversation_id, name`
    : yield sql`SELECT conversation_id, name FROM file_contents WHERE conversation_id = ${conversation} ORDER BY name`;
}

const toEntries = (row: Row): readonly ListedContent[] => toListed(String(row["conversation_id"]))(String(row["name"]));

function* all(statements: readonly Statement[]): Script<void> {
  yield statements;
}
