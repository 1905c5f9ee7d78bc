/** What can be imported: transcript files, and the sessions in OpenCode's database. */

import { glob, stat } from "node:fs/promises";
import { join } from "node:path";
import type { JsonObject } from "../core/base/json.ts";
import type { SourceLine } from "../core/ingest/import-transcript.ts";
import type { ForeignDatabase, ForeignSession } from "../core/model/foreign-database.ts";
import { isAnswer, isUnfinished, openCodeRows } from "../hosts/shared/rows/opencode.ts";
import { importFormat, sessionOfPath, type SessionPlace } from "../hosts/shared/session-places.ts";
import { hostSession } from "../hosts/shared/sessions.ts";
import {
  importTranscriptFile,
  readExport,
  unchanged,
  type Imported,
  type Importing,
  type TranscriptFile,
} from "./transcript-files.ts";

export interface Importable {
  /** The file, and the session in it if there are several. */
  readonly path: string;
  readonly file: TranscriptFile;
  readonly changedMs: number;
  readonly import: (importing: Importing) => Promise<Imported>;
}

export type OpenForeign = (path: string) => Promise<ForeignDatabase | null>;

export const importableFile = (file: TranscriptFile, changedMs = 0): Importable => ({
  path: file.path,
  file,
  changedMs,
  import: async (importing) => await importTranscriptFile(file, importing),
});

/** The sessions of OpenCode's database; null if the file is another database. */
export async function importablesIn(file: TranscriptFile, open: OpenForeign): Promise<readonly Importable[] | null> {
  const db = await open(file.path);
  if (db === null) return null;
  try {
    return db.sessions().map((session) => ({
      path: `${file.path} ${session.id}`,
      file,
      changedMs: session.updatedMs,
      import: async (importing) => await importOpenCode(session, file, open, importing),
    }));
  } finally {
    db.close();
  }
}

/** The chats in a data export; null if the file is something else. */
export async function chatsOf(file: TranscriptFile): Promise<readonly Importable[] | null> {
  const chats = await readExport(file);
  if (chats === null) return null;
  return chats.map(({ format, rows }, at) => ({
    path: `${file.path} ${at + 1}`,
    file,
    changedMs: 0,
    import: async ({ open, target, onProgress }) => {
      const onLine = (position: number, count: number): void =>
        onProgress(Math.round((file.bytes * position) / rows.length), count);
      const report = await (await open()).import(allOf(rows), { ...target, format: importFormat(format) }, onLine);
      return { ...report, torn: null, isUnchanged: false };
    },
  }));
}

async function* allOf(rows: readonly JsonObject[]): AsyncGenerator<SourceLine> {
  for (const [at, value] of rows.entries()) yield { position: at + 1, value };
}

async function importOpenCode(
  session: ForeignSession,
  { path, bytes }: TranscriptFile,
  openForeign: OpenForeign,
  { open, target, onProgress }: Importing,
): Promise<Imported> {
  const lcm = await open();
  const { sessionKey = null } = hostSession({ host: "opencode", sessionId: session.id });
  const filter = { sessionKey: sessionKey ?? "", agentId: "opencode", includeHidden: true, limit: 1 };
  const [stored] = await lcm.store.conversations(filter);
  if (stored?.hostCursor === session.stamp) return unchanged(stored);
  const db = await openForeign(path);
  try {
    const reading = { ...target, format: importFormat(openCodeRows), cursorAt: () => session.stamp };
    const share = bytes / Math.max(1, session.messages);
    const onLine = (position: number, count: number): void => onProgress(Math.round(position * share), count);
    const report = await lcm.import(linesOf(db?.rows(session.id) ?? []), reading, onLine);
    return { ...report, torn: null, isUnchanged: false };
  } finally {
    db?.close();
  }
}

/**
 * An answer that is still being written is left for the next time, with what was asked meanwhile. Only the newest can be:
 * an older one was cut off.
 */
async function* linesOf(rows: Iterable<JsonObject>): AsyncGenerator<SourceLine> {
  let position = 0;
  let held: JsonObject[] = [];
  for (const row of rows) {
    const [first] = held;
    if (first === undefined || !isUnfinished(first) || isAnswer(row)) {
      for (const value of held) yield { position: ++position, value };
      held = [];
    }
    held.push(row);
  }
  const [first] = held;
  // Only once all is stored does the cursor point behind it.
  if (first !== undefined && !isUnfinished(first)) yield { position: ++position, value: first, end: position };
}

/** How many sessions these are: one of Codex's that was rewound has several files. */
export const countSessions = (found: readonly { readonly path: string }[]): number =>
  new Set(found.map(({ path }) => sessionOfPath(path)?.sessionId ?? path)).size;

export interface FoundAgent {
  readonly place: SessionPlace;
  readonly sessions: readonly Importable[];
  readonly bytes: number;
}

/** What the agents on this machine have left behind; those without a session are left out. */
export async function findAgents(
  places: readonly SessionPlace[],
  openForeign: OpenForeign,
): Promise<readonly FoundAgent[]> {
  const agents = await Promise.all(places.map(async (place) => await findSessions(place, openForeign)));
  return agents.filter(({ sessions }) => sessions.length > 0);
}

async function findSessions(place: SessionPlace, openForeign: OpenForeign): Promise<FoundAgent> {
  const names = await Array.fromAsync(glob(place.patterns, { cwd: place.folder }));
  const sessions: Importable[] = [];
  let bytes = 0;
  for (const name of names.toSorted()) {
    const path = join(place.folder, name);
    // A file may be gone since.
    const facts = await stat(path).catch(() => null);
    if (facts === null || !facts.isFile()) continue;
    const file = { path, bytes: facts.size, isFound: true };
    bytes += facts.size;
    const inside =
      place.host === "opencode" ? await importablesIn(file, openForeign) : [importableFile(file, facts.mtimeMs)];
    sessions.push(...(inside ?? []));
  }
  return { place, sessions, bytes };
}
