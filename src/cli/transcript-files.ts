/**
 * Finds, reads and imports transcript files, line by line in constant memory. Lines may end in CRLF, a file may begin
 * with a byte-order mark, and the last line may be incomplete because the host is still writing it.
 */

import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";
import { glob, open, readdir, stat } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import { errorText, LcmError } from "../core/base/errors.ts";
import {
  nothingImported,
  recogniseTranscript,
  resumed,
  type ImportReport,
  type ImportTarget,
  type SourceLine,
  type TranscriptFormat,
} from "../core/ingest/import-transcript.ts";
import type { Lcm } from "../core/lcm.ts";
import { messagesOfDocument, noTranscript } from "../core/messages/transcript-line.ts";
import { isObject, type Json, type JsonObject } from "../core/base/json.ts";
import { plural } from "../core/base/format.ts";
import type { Conversation } from "../core/model/types.ts";
import { cursorAt, placeAfter, stateOf } from "../hosts/shared/read-on.ts";
import { chatsIn, formatOf, recogniseRow, type ExportedChat } from "../hosts/shared/rows/formats.ts";
import { formatOfPath, importFormat, sessionFilesBelow, sessionOfPath } from "../hosts/shared/session-places.ts";
import { hostSession } from "../hosts/shared/sessions.ts";

export interface TranscriptFile {
  readonly path: string;
  /** Infinite for a pipe. */
  readonly bytes: number;
  /** The content of a pipe, which can be read only once. */
  readonly pipe?: AsyncIterable<Buffer | string>;
  /** Found in a folder, not named itself, so it may not be a transcript. */
  readonly isFound: boolean;
  /** Where to read on; its start if left out. */
  readonly from?: { readonly offset: number; readonly lines: number };
}

/** The files at these paths, and the transcripts in those that are folders; `-` is stdin. */
export async function findTranscripts(
  paths: readonly string[],
  stdin: AsyncIterable<Buffer | string>,
): Promise<readonly TranscriptFile[]> {
  const found: TranscriptFile[] = [];
  for (const path of paths) {
    if (path === "-") {
      found.push({ path: "stdin", bytes: Infinity, pipe: stdin, isFound: false });
      continue;
    }
    const facts = await stat(path).catch((cause: unknown) => {
      throw new LcmError("not_found", `there is no file or folder ${path}`, { cause });
    });
    if (!facts.isDirectory()) {
      if (facts.isFIFO()) found.push({ path, bytes: Infinity, pipe: createReadStream(path), isFound: false });
      else if (facts.isFile()) found.push({ path, bytes: facts.size, isFound: false });
      else throw notAFile(path);
      continue;
    }
    const inside = await transcriptsIn(path);
    if (inside.length === 0) {
      throw new LcmError("not_found", `there are no .jsonl or .json files in ${path}`, {
        hint: "in subfolders, only the sessions of known agents are searched for; name them, or the files",
      });
    }
    found.push(...inside);
  }
  return found;
}

const notAFile = (what: string): LcmError =>
  new LcmError("invalid", `${what} is not a file, folder or pipe`, {
    hint: "save it first: … > chat.jsonl, then run `lcm import chat.jsonl`",
  });

async function transcriptsIn(folder: string): Promise<readonly TranscriptFile[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory() && /\.jsonl?$/i.test(entry.name));
  const below = await Array.fromAsync(glob(sessionFilesBelow, { cwd: folder }));
  const paths = [...new Set([...files.map(({ name }) => name), ...below])].map((name) => join(folder, name)).toSorted();
  const found = await Promise.all(paths.map(async (path) => ({ path, facts: await stat(path) })));
  return found
    .filter(({ facts }) => facts.isFile())
    .map(({ path, facts }) => ({ path, bytes: facts.size, isFound: true }));
}

const sqliteHeader = "SQLite format 3\0";

export const isDatabase = async ({ path, pipe }: TranscriptFile): Promise<boolean> =>
  pipe === undefined && beginsDatabase(await readPart(path, 0, sqliteHeader.length));

const beginsDatabase = (head: Buffer): boolean => head.toString("latin1", 0, sqliteHeader.length) === sqliteHeader;

/** Up to this many bytes from an offset. */
export async function readPart(path: string, from: number, bytes: number): Promise<Buffer> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, from);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** For files that do not name their session. */
export const sessionNameOf = ({ path, pipe }: Pick<TranscriptFile, "path" | "pipe">): string =>
  pipe !== undefined ? "stdin" : basename(path).replace(/\.(jsonl?|txt|ndjson)$/i, "") || "import";

export interface Transcript {
  readonly lines: AsyncIterable<SourceLine>;
  /** How many bytes have been read so far. */
  bytesRead(): number;
  /** Lines that could not be read as text; complete once all lines are read. */
  readonly unreadable: readonly { readonly position: number; readonly reason: string }[];
  /** The number of an incomplete last line, once all lines are read; null if there is none. */
  tornAt(): number | null;
}

/** Throws `invalid` if it cannot be a transcript, without naming the file. */
export async function openTranscript(file: TranscriptFile): Promise<Transcript> {
  const source = await (file.pipe === undefined ? sourceOfFile(file) : sourceOfPipe(file.path, file.pipe));
  const document = await readDocument(source);
  return document === null ? transcriptOfLines(source, file.from) : transcriptOfDocument(document, source.bytes);
}

/** The bytes of a file or pipe. */
interface Source {
  readonly extension: string;
  /** Infinite for a pipe that has not ended yet. */
  readonly bytes: number;
  readonly head: Buffer;
  /** Everything, including the head. What lies beyond the head of a pipe comes only once. */
  chunks(): AsyncIterable<Buffer>;
}

const headBytes = 65_536;

async function sourceOfFile({ path, bytes, from }: TranscriptFile): Promise<Source> {
  const start = from?.offset ?? 0;
  const chunks = (): AsyncIterable<Buffer> => createReadStream(path, { highWaterMark: chunkBytes, start });
  return { extension: extname(path).toLowerCase(), bytes, head: await readPart(path, 0, headBytes), chunks };
}

async function sourceOfPipe(path: string, pipe: NonNullable<TranscriptFile["pipe"]>): Promise<Source> {
  let size = 0;
  let isEnded = false;
  async function* buffers(): AsyncGenerator<Buffer> {
    for await (const chunk of pipe) {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      size += bytes.length;
      yield bytes;
    }
    isEnded = true;
  }
  const rest = buffers();
  const taken: Buffer[] = [];
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
    taken.push(next.value);
    if (size >= headBytes) break;
  }
  return {
    extension: extname(path).toLowerCase(),
    get bytes() {
      return isEnded ? size : Infinity;
    },
    head: Buffer.concat(taken),
    chunks: () => resumed(taken, rest),
  };
}

// ── Line by line ─────────────────────────────────────────────────────────────────────────────────────────────────────

const newline = 0x0a;
/** A line is parsed as one string, and V8 limits strings to half a gigabyte. */
const lineBytesMax = 256 * 1_048_576;
const chunkBytes = 262_144;

function transcriptOfLines(source: Source, from: TranscriptFile["from"]): Transcript {
  const unreadable: { position: number; reason: string }[] = [];
  let bytes = from?.offset ?? 0;
  let torn: number | null = null;

  async function* lines(): AsyncGenerator<SourceLine> {
    let position = from?.lines ?? 0;
    let pending: Buffer[] = [];
    let pendingBytes = 0;

    const finishLine = (last: Buffer): SourceLine | null => {
      position += 1;
      const size = pendingBytes + last.length;
      const line = pending.length === 0 ? last : Buffer.concat([...pending, last]);
      pending = [];
      pendingBytes = 0;
      const reason =
        size > lineBytesMax
          ? `the line is longer than ${lineBytesMax / 1_048_576} MB`
          : isUtf8(line)
            ? null
            : "the line is not valid UTF-8";
      if (reason === null) return { position, text: textOf(line, position) };
      unreadable.push({ position, reason });
      return null;
    };

    for await (const chunk of source.chunks()) {
      let start = 0;
      for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
        const line = finishLine(chunk.subarray(start, end));
        bytes += end - start + 1;
        start = end + 1;
        if (line !== null) yield { ...line, end: bytes };
      }
      const rest = chunk.subarray(start);
      bytes += rest.length;
      // Of a line that is too long, only the length is kept.
      if (pendingBytes <= lineBytesMax) pending.push(rest);
      else pending = [];
      pendingBytes += rest.length;
    }
    if (pendingBytes === 0) return;
    torn = position + 1;
    const line = finishLine(Buffer.alloc(0));
    if (line !== null) yield line;
  }
  return { lines: lines(), bytesRead: () => bytes, unreadable, tornAt: () => torn };
}

const byteOrderMark = "\ufeff";

function textOf(line: Buffer, position: number): string {
  const text = line.toString("utf8");
  const whole = text.endsWith("\r") ? text.slice(0, -1) : text;
  return position === 1 ? withoutMark(whole) : whole;
}

const withoutMark = (text: string): string => (text.startsWith(byteOrderMark) ? text.slice(1) : text);

// ── A whole document ─────────────────────────────────────────────────────────────────────────────────────────────────

interface ChatDocument {
  readonly messages: readonly Json[];
  /** The other fields of the document; null if there are none. */
  readonly about: JsonObject | null;
}

function transcriptOfDocument({ messages, about }: ChatDocument, bytes: number): Transcript {
  let position = 0;
  async function* lines(): AsyncGenerator<SourceLine> {
    if (about !== null) yield { position, value: about };
    for (const value of messages) yield { position: ++position, value };
  }
  const bytesRead = (): number => Math.round((bytes * position) / Math.max(1, messages.length));
  return { lines: lines(), bytesRead, unreadable: [], tornAt: () => null };
}

/** The file as one JSON document with a list of messages; null if it has one value per line. */
async function readDocument(source: Source): Promise<ChatDocument | null> {
  const { extension, bytes } = source;
  const head = textOfHead(source);
  if (head.startsWith("[")) return documentOf(await parseWhole(source));
  if (extension === ".jsonl" || !head.startsWith("{")) return null;
  const isCut = bytes > headBytes && !head.includes("\n");
  if (isCut && extension !== ".json") return null;
  if (isValueAlone(head.split("\n", 1)[0] ?? "") && /\n\s*\S/.test(head)) return null;
  const value = await parseWhole(source);
  return isObject(value) && typeof value["role"] !== "string" && typeof value["type"] !== "string"
    ? documentOf(value)
    : null;
}

/** A document with many chats, as web products export them; null for any other file. */
export async function readExport(file: TranscriptFile): Promise<readonly ExportedChat[] | null> {
  if (file.pipe !== undefined || extname(file.path).toLowerCase() !== ".json") return null;
  const source = await sourceOfFile(file);
  const head = source.head.toString("utf8");
  return /^\ufeff?\s*\[/.test(head) && /"(?:mapping|chat_messages)"/.test(head)
    ? chatsIn(await parseWhole(source))
    : null;
}

function textOfHead({ head }: Source): string {
  if (beginsDatabase(head)) throw new LcmError("invalid", "this is a database, not a transcript");
  if (["fffe", "feff"].includes(head.toString("hex", 0, 2))) {
    throw new LcmError("invalid", "the text is UTF-16", {
      hint: "convert it first with `iconv -f UTF-16 -t UTF-8 FILE`",
    });
  }
  return withoutMark(head.toString("utf8")).trimStart();
}

function isValueAlone(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false; // The value continues on the next lines.
  }
}

async function parseWhole(source: Source): Promise<Json> {
  const raw = await readWhole(source);
  if (!isUtf8(raw)) throw new LcmError("invalid", "the text is not valid UTF-8");
  try {
    const value: Json = JSON.parse(withoutMark(raw.toString("utf8")));
    return value;
  } catch (cause) {
    throw new LcmError("invalid", `the text is not JSON: ${errorText(cause)}`, { cause });
  }
}

async function readWhole(source: Source): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source.chunks()) {
    chunks.push(chunk);
    size += chunk.length;
    if (size <= lineBytesMax) continue;
    throw new LcmError("invalid", `the text is a single JSON document larger than ${lineBytesMax / 1_048_576} MB`, {
      hint: "convert it to one message per line: `jq -c '.[]' FILE > FILE.jsonl`",
    });
  }
  return Buffer.concat(chunks);
}

function documentOf(value: Json): ChatDocument {
  const messages = messagesOfDocument(value);
  if (!isObject(value)) return { messages, about: null };
  const { messages: _, ...about } = value;
  if (Object.keys(about).length === 0) return { messages, about: null };
  // What `opencode export` writes.
  if (isObject(about["info"])) return { messages, about };
  return { messages, about: { type: typeof about["id"] === "string" ? "session" : "document", ...about } };
}

// ── Import ───────────────────────────────────────────────────────────────────────────────────────────────────────────

export type Imported = ImportReport & {
  /** The number of an incomplete last line; null if there is none. */
  readonly torn: number | null;
  /** Nothing was written to it since the last import, so it was not read. */
  readonly isUnchanged: boolean;
};

export interface Importing {
  /** Called once the file is known to be a transcript: opening may create a database. */
  readonly open: () => Promise<Lcm>;
  /** Whether there is a database already, so that opening it creates nothing. */
  readonly isStored?: () => boolean;
  readonly target: ImportTarget;
  /** Whether to read what was read before, too. */
  readonly isAgain?: boolean;
  /** Gets the number of bytes read. */
  readonly onProgress: (bytes: number, messagesStored: number) => void;
}

/**
 * Throws `invalid` if the file is not a transcript, without naming it. Only what was written since the last import is
 * read, and a file to which nothing was added is not read at all.
 */
export async function importTranscriptFile(file: TranscriptFile, importing: Importing): Promise<Imported> {
  const { open, target, onProgress, isAgain = false } = importing;
  const stored = isAgain ? null : await findStored(file, importing);
  if (stored !== null && stored.from?.offset === file.bytes) return unchanged(stored.conversation);
  const reading = await readFile(file, stored);
  const recognised =
    stored === null || stored.from === null
      ? await recogniseTranscript(reading.lines, (row) => importFormatOf(row, file.path))
      : { lines: reading.lines, format: stored.format };
  if (recognised === null && reading.unreadable().length > 0) throw noTranscript(reading.unreadable().length);
  if (recognised === null) return { ...nothingImported, torn: null, isUnchanged: false };
  const format = recognised.format ?? formatOfPath(file.path);
  const { cursorAt, readOn } = reading;
  const source = {
    ...target,
    ...(format !== null && { format }),
    ...(file.pipe === undefined && { cursorAt, ...(isAgain ? {} : { readOn }) }),
  };
  const onLine = (_: number, count: number): void => onProgress(reading.bytesRead(), count);
  const report = await (await open()).import(recognised.lines, source, onLine);
  if (reading.isUnchanged() && report.conversation !== null) return unchanged(report.conversation);
  const malformed = [...report.malformed, ...reading.unreadable()].toSorted((a, b) => a.position - b.position);
  return { ...report, malformed, torn: reading.tornAt(), isUnchanged: false };
}

/** Reads a file from its start or a known place, and goes on elsewhere once its conversation says how far it was read. */
async function readFile(file: TranscriptFile, stored: StoredFile | null) {
  const { path, bytes, pipe } = file;
  const state = pipe === undefined ? { of: stateOf(path) } : {};
  let cursor = stored?.conversation.hostCursor ?? null;
  let transcript = await openTranscript({ ...file, ...(stored?.from && { from: stored.from }) });
  let isUnchanged = false;
  return {
    lines: transcript.lines,
    bytesRead: (): number => transcript.bytesRead(),
    unreadable: (): Transcript["unreadable"] => transcript.unreadable,
    tornAt: (): number | null => transcript.tornAt(),
    isUnchanged: (): boolean => isUnchanged,
    cursorAt: (offset: number, lines: number): string => cursorAt(path, { offset, lines, ...state }, cursor),
    readOn: async (known: string): Promise<Transcript["lines"] | null> => {
      cursor = known;
      const from = placeAfter(path, known, bytes);
      if (from === null) return null;
      isUnchanged = from.offset === bytes;
      transcript = await openTranscript({ ...file, from });
      return transcript.lines;
    },
  };
}

export const unchanged = (conversation: Conversation): Imported => ({
  ...nothingImported,
  conversation,
  torn: null,
  isUnchanged: true,
});

function importFormatOf(row: Json, path: string): TranscriptFormat | null {
  const format = recogniseRow(row);
  return format === null ? null : importFormat(format, path);
}

interface StoredFile {
  /** Null if its session is stored from other files. */
  readonly from: TranscriptFile["from"] | null;
  readonly format: TranscriptFormat;
  readonly conversation: Conversation;
}

/** How far a host's file was read before, by an import or by the host's own plugin; null if its session is not stored. */
async function findStored(file: TranscriptFile, importing: Importing): Promise<StoredFile | null> {
  const { sessionId, sessionKey, agentId } = importing.target;
  const named = [sessionId, sessionKey, agentId].some((name) => name !== undefined);
  const session = named || file.pipe !== undefined ? null : sessionOfPath(file.path);
  if (session === null || importing.isStored?.() !== true) return null;
  const identity = hostSession(session);
  const { store } = await importing.open();
  const filter = { sessionKey: identity.sessionKey ?? "", agentId: session.host, includeHidden: true, limit: 1 };
  const [conversation] = await store.conversations(filter);
  if (conversation === undefined) return null;
  // Most hosts name the session only at the start of a file.
  return {
    from: placeAfter(file.path, conversation.hostCursor, file.bytes),
    format: { ...importFormat(formatOf(session.host), file.path), identify: () => identity },
    conversation,
  };
}

export function importedCounts({ messages, entries, duplicates, differing, malformed }: ImportReport): string {
  const known = duplicates - differing.length;
  return [
    plural(messages, "message"),
    plural(entries, "other entry", "other entries"),
    `${known.toLocaleString("en-US")} already stored`,
    differing.length > 0 && `${plural(differing.length, "line")} differing from what is stored`,
    malformed.length > 0 && `${plural(malformed.length, "line")} unreadable`,
  ]
    .filter((words) => words !== false)
    .join(", ");
}
