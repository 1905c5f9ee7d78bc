/**
 * Transcript files: which ones a person means, what is in them, line by line at flat memory, and how one is stored. Lines
 * may end in CRLF, a file may begin with a byte-order mark, and the last line may be torn because somebody is still
 * writing it.
 */

import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";
import { open, readdir, readFile, stat } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import { LcmError } from "../core/base/errors.ts";
import type { ImportReport, ImportTarget, SourceLine } from "../core/ingest/import-transcript.ts";
import type { Lcm } from "../core/lcm.ts";
import { messagesOfDocument, noTranscript } from "../core/messages/transcript-line.ts";
import type { Json, JsonObject } from "../core/base/json.ts";
import { isObject } from "../core/base/json.ts";
import { plural } from "../core/base/format.ts";

export interface TranscriptFile {
  readonly path: string;
  readonly bytes: number;
  /** Named by its folder and not by itself, so it may turn out to be something else. */
  readonly isFound: boolean;
}

/** The files that these paths mean: a folder stands for the transcripts in it. */
export async function findTranscripts(paths: readonly string[]): Promise<readonly TranscriptFile[]> {
  const found: TranscriptFile[] = [];
  for (const path of paths) {
    if (path === "-") throw notAFile("stdin");
    const facts = await stat(path).catch((cause: unknown) => {
      throw new LcmError("not_found", `there is no file or folder ${path}`, { cause });
    });
    if (!facts.isDirectory()) {
      if (!facts.isFile()) throw notAFile(path);
      found.push({ path, bytes: facts.size, isFound: false });
      continue;
    }
    const inside = await transcriptsIn(path);
    if (inside.length === 0) {
      throw new LcmError("not_found", `there are no .jsonl or .json files in ${path}`, {
        hint: "sub-folders are not looked into; name them, or the files",
      });
    }
    found.push(...inside);
  }
  return found;
}

/** What comes through a pipe has no name to be known by when it comes again, and cannot be looked at twice. */
const notAFile = (what: string): LcmError =>
  new LcmError("invalid", `${what} is not a file, and only files can be imported`, {
    hint: "save it first: … > chat.jsonl, then `lcm import chat.jsonl`",
  });

async function transcriptsIn(folder: string): Promise<readonly TranscriptFile[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory() && /\.jsonl?$/i.test(entry.name));
  const paths = files.map((entry) => join(folder, entry.name)).toSorted();
  const found = await Promise.all(paths.map(async (path) => ({ path, facts: await stat(path) })));
  return found
    .filter(({ facts }) => facts.isFile())
    .map(({ path, facts }) => ({ path, bytes: facts.size, isFound: true }));
}

const sqliteHeader = "SQLite format 3\0";

/** A database is the store's to read, not ours. */
export const isDatabase = async (path: string): Promise<boolean> =>
  (await readPart(path, 0, sqliteHeader.length)).toString("latin1") === sqliteHeader;

/** So many bytes from there on, or as many as there are. */
export async function readPart(path: string, from: number, bytes: number): Promise<Buffer> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, from);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Session ids come from inside a file; this is for one that names none. */
export const sessionNameOf = (path: string): string =>
  basename(path).replace(/\.(jsonl?|txt|ndjson)$/i, "") || "import";

export interface Transcript {
  readonly lines: AsyncIterable<SourceLine>;
  /** How many bytes have been read so far. */
  bytesRead(): number;
  /** Lines that could not be given on as text, with the reason; complete once all lines are read. */
  readonly unreadable: readonly { readonly position: number; readonly reason: string }[];
  /** Where the last line ends in the middle, once all lines are read; null if it does not. */
  tornAt(): number | null;
}

export async function openTranscript(file: TranscriptFile): Promise<Transcript> {
  const document = await readDocument(file);
  return document === null ? transcriptOfLines(file.path) : transcriptOfDocument(document, file.bytes);
}

// ── Line by line ─────────────────────────────────────────────────────────────────────────────────────────────────────

const newline = 0x0a;
/** A line is parsed as one string, and V8's strings end at half a gigabyte. */
const lineBytesMax = 256 * 1_048_576;
const chunkBytes = 262_144;

function transcriptOfLines(path: string): Transcript {
  const unreadable: { position: number; reason: string }[] = [];
  let bytes = 0;
  let torn: number | null = null;

  async function* lines(): AsyncGenerator<SourceLine> {
    let position = 0;
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

    for await (const chunk of createReadStream(path, { highWaterMark: chunkBytes }) as AsyncIterable<Buffer>) {
      let start = 0;
      for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
        const line = finishLine(chunk.subarray(start, end));
        bytes += end - start + 1;
        start = end + 1;
        if (line !== null) yield line;
      }
      const rest = chunk.subarray(start);
      bytes += rest.length;
      // Of a line that is too long only the length is kept.
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
  /** What the document says besides its messages; null when that is nothing. */
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

const headBytes = 65_536;

/** The file as one JSON document with a list of messages; null when it is one value per line. */
async function readDocument({ path, bytes }: TranscriptFile): Promise<ChatDocument | null> {
  if (await isDatabase(path)) throw new LcmError("invalid", `${path} is a database, not a transcript`);
  const head = await readHead(path);
  if (head.startsWith("[")) return documentOf(await parseWhole(path, bytes));
  if (extname(path).toLowerCase() === ".jsonl" || !head.startsWith("{")) return null;
  const isCut = bytes > headBytes && !head.includes("\n");
  if (isCut && extname(path).toLowerCase() !== ".json") return null;
  if (isValueAlone(head.split("\n", 1)[0] ?? "") && /\n\s*\S/.test(head)) return null;
  const value = await parseWhole(path, bytes);
  return isObject(value) && typeof value["role"] !== "string" && typeof value["type"] !== "string"
    ? documentOf(value)
    : null;
}

async function readHead(path: string): Promise<string> {
  const head = await readPart(path, 0, headBytes);
  if (["fffe", "feff"].includes(head.toString("hex", 0, 2))) {
    throw new LcmError("invalid", `${path} is UTF-16`, { hint: "convert it first: iconv -f UTF-16 -t UTF-8 FILE" });
  }
  return withoutMark(head.toString("utf8")).trimStart();
}

function isValueAlone(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false; // Then the value goes on over the next lines.
  }
}

async function parseWhole(path: string, bytes: number): Promise<Json> {
  if (bytes > lineBytesMax) {
    throw new LcmError("invalid", `${path} is one JSON document of more than ${lineBytesMax / 1_048_576} MB`, {
      hint: "write it with one message per line: jq -c '.[]' FILE > FILE.jsonl",
    });
  }
  const raw = await readFile(path);
  if (!isUtf8(raw)) throw new LcmError("invalid", `${path} is not valid UTF-8`);
  try {
    const value: Json = JSON.parse(withoutMark(raw.toString("utf8")));
    return value;
  } catch (cause) {
    throw new LcmError("invalid", `${path} is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  }
}

function documentOf(value: Json): ChatDocument {
  const messages = messagesOfDocument(value);
  if (!isObject(value)) return { messages, about: null };
  const { messages: _, ...about } = value;
  if (Object.keys(about).length === 0) return { messages, about: null };
  return { messages, about: { type: typeof about["id"] === "string" ? "session" : "document", ...about } };
}

// ── Stored ───────────────────────────────────────────────────────────────────────────────────────────────────────────

export type Imported = ImportReport & {
  /** Where the last line ends in the middle; null if it does not. */
  readonly torn: number | null;
};

/** Throws `invalid` for what is no transcript; `onProgress` hears how many bytes were read. */
export async function importTranscriptFile(
  lcm: Lcm,
  file: TranscriptFile,
  target: ImportTarget,
  onProgress: (bytes: number) => void,
): Promise<Imported> {
  const transcript = await openTranscript(file);
  const report = await lcm.import(transcript.lines, target, () => onProgress(transcript.bytesRead()));
  if (report.conversation === null && transcript.unreadable.length > 0)
    throw noTranscript(transcript.unreadable.length);
  const malformed = [...report.malformed, ...transcript.unreadable].toSorted((a, b) => a.position - b.position);
  return { ...report, malformed, torn: transcript.tornAt() };
}

export function importedCounts({ messages, entries, duplicates, differing, malformed }: ImportReport): string {
  const known = duplicates - differing.length;
  return [
    plural(messages, "message"),
    plural(entries, "other entry", "other entries"),
    `${known.toLocaleString("en-US")} already stored`,
    differing.length > 0 && `${plural(differing.length, "line")} unlike what is stored`,
    malformed.length > 0 && `${plural(malformed.length, "line")} not readable`,
  ]
    .filter((words) => words !== false)
    .join(", ");
}
