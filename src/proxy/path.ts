/**
 * The active branch of a stored conversation as the proxy compares it with requests: a hash for each piece that tells one
 * message from another. A row, and an element of a request, may have several, or none (a thought without words).
 */

import { hash } from "node:crypto";
import type { HostMessage } from "../core/messages/codec.ts";
import { comparable, isTelling, saidIn, type Said } from "../core/messages/said.ts";
import { restoreAvailable } from "../core/ingest/large-content.ts";
import type { Store } from "../core/model/store.ts";
import type { ConversationId, Message, MessageId } from "../core/model/types.ts";

export interface PathRow {
  readonly key: string;
  readonly id: MessageId;
  /** Its pieces are those of the path from `start` up to `end`. */
  readonly start: number;
  readonly end: number;
  /** Whether large content of it is in files. */
  readonly isMoved: boolean;
}

export interface Path {
  readonly pieces: string[];
  readonly rows: PathRow[];
}

export const emptyPath = (): Path => ({ pieces: [], rows: [] });

export const hashOf = (text: string): string => hash("sha256", text, "base64url").slice(0, 24);

export const tellingIn = (message: HostMessage): readonly Said[] => saidIn(message).filter(isTelling);

export const piecesOf = (message: HostMessage): readonly string[] => tellingIn(message).map(pieceOf);

export const textsIn = (message: HostMessage | null): readonly string[] =>
  saidIn(message ?? {}).flatMap((said) => (said.kind === "text" ? [said.text] : []));

/** Begins with who said it: `a` for the model and its tools, `u` for a person. */
export function pieceOf(said: Said): string {
  const isPersons = (said.kind === "text" || said.kind === "other") && said.role === "user";
  return (isPersons ? "u" : "a") + hashOf(comparable(said));
}

/** A person may say the same twice; what the model and its tools say does not repeat by chance. */
export const isAnswer = (piece: string | undefined): boolean => piece?.startsWith("a") === true;

export function addRow(path: Path, row: Omit<PathRow, "start" | "end">, pieces: readonly string[]): void {
  const start = path.pieces.length;
  for (const piece of pieces) path.pieces.push(piece);
  path.rows.push({ ...row, start, end: path.pieces.length });
}

/** Keeps this many rows. */
export function cutPath(path: Path, rows: number): void {
  path.rows.length = rows;
  path.pieces.length = path.rows.at(-1)?.end ?? 0;
}

/** Others wait while so many are read. */
const rowsPerRead = 500;

/** Adds what was stored after this seq. Returns the newest seq that was read. */
export async function readPath(
  store: Store,
  conversation: ConversationId,
  path: Path,
  afterSeq: number,
): Promise<number> {
  for (let newest = afterSeq; ;) {
    const messages = await store.messages({ conversation, afterSeq: newest, limit: rowsPerRead });
    for (const message of messages) {
      newest = message.seq;
      if (message.aside === null) await addMessage(store, path, message);
    }
    if (messages.length < rowsPerRead) return newest;
  }
}

async function addMessage(store: Store, path: Path, message: Message): Promise<void> {
  const { raw } = await restoreAvailable(store, message);
  addRow(path, { key: message.key, id: message.id, isMoved: message.moved.length > 0 }, piecesOf(raw));
}

/** What the model wrote, in up to so many rows from all over the path. */
export async function answersFrom(
  store: Store,
  conversation: ConversationId,
  { rows }: Path,
  rowsMax: number,
): Promise<readonly string[]> {
  const step = Math.ceil(rows.length / rowsMax);
  const keys = rows.filter((_, at) => at % step === 0).map(({ key }) => key);
  const messages = await store.messages({ conversation, keys });
  const restored = await Promise.all(messages.map(async (message) => await restoreAvailable(store, message)));
  return restored.flatMap(({ raw }) => (raw["role"] === "assistant" ? textsIn(raw) : []));
}
