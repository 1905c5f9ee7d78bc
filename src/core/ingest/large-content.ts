/**
 * Content that is too large for a conversation: it lies in a file, and the message says a short reference in its place.
 * This file decides which strings of a host's message are moved, says the reference, and puts the content back exactly.
 * It works on the message as the host has it, so whatever can be stored can be moved.
 */

import { messageFromStore, messageToStore, stringAt } from "../messages/codec.ts";
import { callFields, isBlockLabel, isMedia, looksLikeCall, mayHoldMedia, resultFields } from "../messages/dialects.ts";
import type { HostMessage } from "../messages/codec.ts";
import { LcmError } from "../base/errors.ts";
import { explore } from "./file-preview.ts";
import type {
  ConversationId,
  FileEncoding,
  FileId,
  Message,
  MovedContent,
  NewMessage,
  StoredFile,
} from "../model/types.ts";
import type { Appendable, Store } from "../model/store.ts";
import { firstLine } from "../base/excerpt.ts";
import { estimateTokens } from "../base/tokens.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { isObject } from "../base/json.ts";
import { formatBytes, plural } from "../base/format.ts";

export interface MoveOptions {
  /** A text of more tokens is moved. */
  readonly thresholdTokens: number;
  /** Says in about 200 tokens what a new file holds, in place of the built-in exploration. May throw, or say nothing. */
  readonly explore?: (content: string, about: Pick<StoredFile, "name" | "mimeType">) => Promise<string>;
}

/**
 * Moves oversized texts, and pictures, of the messages into files. Idempotent by content: the same messages again give
 * the same files and, byte for byte, the same references.
 */
export async function moveOut(
  store: Store,
  conversation: ConversationId,
  items: readonly Appendable[],
  options: MoveOptions,
): Promise<readonly Appendable[]> {
  const left: Appendable[] = [];
  for (const item of items) {
    const isLarge = item.kind === "message" && mayHoldLarge(item.message, options.thresholdTokens);
    const message = isLarge ? await moveOutOf(item.message, { store, conversation, ...options }) : null;
    left.push(message === null ? item : { kind: "message", message });
  }
  return left;
}

/** For reading back all messages: they can hold pictures, and a page is small enough for a hundred large ones. */
export const messagesPerPage = 100;

/** The host's message exactly as it came, moved content back in its place. `unavailable` if a file of it is lost or cut. */
export async function restoreMessage(store: Store, message: Message): Promise<HostMessage> {
  const { raw, losses } = await restoreWhatIsThere(store, message);
  const [cause] = losses;
  if (cause === undefined) return raw;
  throw new LcmError("unavailable", `${cause.message}, and a message says only where it was`, {
    cause,
    hint: cause.hint ?? "the files folder was moved or emptied; restore it from a backup",
  });
}

/** The same, but for what lies in files that are lost or cut: there the references stay. */
export async function restoreWhatIsThere(
  store: Store,
  message: Message,
): Promise<{ readonly raw: HostMessage; readonly losses: readonly LcmError[] }> {
  let raw = messageFromStore(message);
  const losses = new Map<FileId, LcmError>();
  for (const moved of message.moved.toReversed()) {
    const content = await contentOf(store, moved.file);
    if (typeof content === "string") raw = putBack(raw, moved, content);
    else losses.set(moved.file, content);
  }
  return { raw, losses: [...losses.values()].toReversed() };
}

/**
 * The host's message as a prompt shows it: pictures back in their place, texts left as references. Where a picture is
 * lost the reference stands as text, for no provider takes it as a picture.
 */
export async function messageForPrompt(store: Store, message: Message): Promise<HostMessage> {
  let raw = messageFromStore(message);
  for (const moved of message.moved.toReversed()) {
    if (!isSeen(raw, moved.path) || (await store.file(moved.file))?.encoding === "utf8") continue;
    const content = await contentOf(store, moved.file);
    raw = typeof content === "string" ? putBack(raw, moved, content) : standIn(raw, moved);
  }
  return raw;
}

/** The files that these messages refer to, each once. */
export const fileIdsOf = (messages: readonly Message[]): readonly FileId[] => [
  ...new Set(messages.flatMap(({ moved }) => moved.map(({ file }) => file))),
];

// ── Moving ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Smaller pictures are no trouble where they are. */
const pictureCharactersMin = 4_096;

/** Quick to answer for nearly all messages, without putting any together. */
export const mayHoldLarge = ({ tokens, parts, moved }: NewMessage, thresholdTokens: number): boolean =>
  moved === undefined &&
  (tokens > thresholdTokens ||
    parts.some((part) => (part.metadata?.length ?? 0) >= pictureCharactersMin && mayHoldMedia(part)));

interface Moving extends MoveOptions {
  readonly store: Store;
  readonly conversation: ConversationId;
}

/** Null if nothing of it is large. */
async function moveOutOf(message: NewMessage, moving: Moving): Promise<NewMessage | null> {
  const { store, conversation } = moving;
  let raw = messageFromStore(message);
  const origin = { key: message.key, at: message.at };
  const moved: MovedContent[] = [];
  let shift = 0;
  let path: Path | null = null;
  for (const piece of piecesToMove(raw, moving.thresholdTokens)) {
    if (piece.path !== path) shift = 0;
    ({ path } = piece);
    const { content, encoding } = piece;
    const described = { name: storable(piece.name), mimeType: storable(piece.mimeType) };
    const exploration = encoding === "base64" ? null : await explorationOf(piece, moving);
    const file = await store.saveFile({ conversation, ...described, content, encoding, exploration, message: origin });
    // Made from the row, which keeps what the first one to save this content said of it.
    const reference = referenceTo(file, piece.isJson);
    const place = { file: file.id, path, from: piece.from + shift, length: reference.length };
    raw = replaceIn(raw, { ...place, length: content.length }, reference);
    moved.push(place);
    shift += reference.length - content.length;
  }
  if (moved.length === 0) return null;
  const { parts, envelope, tokens } = messageToStore(raw, origin);
  return { ...message, parts, envelope, tokens, moved };
}

function referenceTo(file: StoredFile, isJson: boolean): string {
  const facts = [
    `File ${file.id}`,
    firstLine(file.name ?? "", 80),
    firstLine(file.mimeType ?? "", 80),
    formatBytes(file.bytes),
    file.lines === null ? "" : plural(file.lines, "line"),
  ].filter((fact) => fact !== "");
  const head = `[${facts.join(" · ")}. Moved out of this message; lcm_describe shows it.]`;
  const reference = file.exploration === null ? head : `${head}\n${file.exploration}\n[End of ${file.id}]`;
  return isJson ? JSON.stringify({ moved: reference }) : reference;
}

/** A model that is asked for 200 tokens may write a book. */
const explorationCharactersMax = 2_000;

async function explorationOf({ content, name, mimeType }: Piece, moving: Moving): Promise<string | null> {
  const about = { name, mimeType };
  const ask = async (): Promise<string> => (await moving.explore?.(content, about)) ?? "";
  const isAsked = moving.explore !== undefined && !(await isStored(moving, content));
  // Nothing is lost where whoever is asked fails: the built-in exploration does without.
  const told = isAsked ? await ask().catch(() => "") : "";
  const exploration = told.trim().slice(0, explorationCharactersMax) || explore(content, about);
  return exploration === "" ? null : storable(exploration);
}

/** So that a replay asks nobody about a file that was explored when it was new. */
async function isStored({ store, conversation }: Moving, content: string): Promise<boolean> {
  const lines = content.split("\n").length;
  for (const file of await store.files(conversation)) {
    const isLike = file.encoding === "utf8" && file.lines === lines;
    if (isLike && (await contentOf(store, file.id)) === content) return true;
  }
  return false;
}

/** As a database holds it. */
const storable = <T extends string | null>(text: T): T | string =>
  text === null ? text : text.toWellFormed().replaceAll("\0", " ");

// ── Deciding what is moved ───────────────────────────────────────────────────────────────────────────────────────────

type Path = MovedContent["path"];

/** A stretch of one string of a message that is to lie in a file. */
interface Piece {
  readonly path: Path;
  readonly from: number;
  readonly content: string;
  readonly encoding: FileEncoding;
  readonly name: string | null;
  readonly mimeType: string | null;
  /** The string is JSON text, and must still be with a reference in it. */
  readonly isJson: boolean;
}

/** Pure: in order of path and place; pieces of one string share their path. */
function piecesToMove(raw: HostMessage, thresholdTokens: number): readonly Piece[] {
  const { content } = raw;
  const isUnderstood = typeof content === "string" || Array.isArray(content);
  const fields = Object.entries(raw).filter(([field]) => !isUnderstood || field === "content" || isCallField(field));
  const found = stringsIn(Object.fromEntries(fields), [], { holder: {}, field: "", isInMedia: false, isCall: false });
  const isUsers = raw["role"] === "user";
  return [...found].flatMap((string) =>
    isEncoded(string) ? picturesOf(string) : textsOf(string, thresholdTokens, isUsers),
  );
}

/** What is known of a string from where it stands. */
interface Surroundings {
  readonly holder: JsonObject;
  readonly field: string;
  readonly isInMedia: boolean;
  readonly isCall: boolean;
}

type Found = Surroundings & { readonly path: Path; readonly text: string };

function* stringsIn(value: Json, path: Path, around: Surroundings): Generator<Found> {
  if (typeof value === "string") yield { ...around, path, text: value };
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* stringsIn(item, [...path, index], around);
  }
  if (!isObject(value)) return;
  const type = typeof value["type"] === "string" ? value["type"] : "";
  if (isReasoning(type)) return;
  const isCall = around.isCall || looksLikeCall(type);
  const isInMedia = around.isInMedia || (!isCall && isMedia(value));
  for (const [field, inner = null] of Object.entries(value)) {
    if (isLabel(field) || isReasoning(field)) continue;
    yield* stringsIn(inner, [...path, field], {
      holder: value,
      field,
      isInMedia,
      isCall: isCall || isCallField(field),
    });
  }
}

/** By these a message and its blocks are told apart and tied together; nothing is said in them. */
const isLabel = (field: string): boolean =>
  isBlockLabel(field) || /^(?:role|mimeType|mime_type|media_type)$/.test(field) || resultFields().includes(field);

const isCallField = (field: string): boolean => callFields().some((beside) => beside.field === field);

/** Reasoning goes back to its provider under a signature, or not at all. */
const isReasoning = (word: string): boolean => /thinking|reasoning|signature|encrypted/i.test(word);

// ── Texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Of a text with files in it only the files are moved, if that is enough; else all but what a user wrote around it. */
function textsOf(found: Found, thresholdTokens: number, isUsers: boolean): readonly Piece[] {
  const { path, text, holder, field } = found;
  if (estimateTokens(text) <= thresholdTokens) return [];
  const isJson = field === "arguments";
  const common = { path, encoding: "utf8", isJson } as const;
  const files = isJson ? [] : fileBlocksIn(text);
  const large = files.filter((file) => file.content.isWellFormed() && estimateTokens(file.content) > thresholdTokens);
  const isEnough = large.length > 0 && estimateTokens(withoutBlocks(text, large)) <= thresholdTokens;
  // UTF-8 has no form for half a surrogate pair: such a text stays where it is.
  if (isEnough || !text.isWellFormed()) return large.map((file) => ({ ...common, ...file }));
  const mimeType = isJson ? "application/json" : stringOf(holder, ["media_type"]);
  const isWritten = isUsers && (path.length === 1 || (path.length === 3 && holder["type"] === "text"));
  const [from, to] = isWritten ? pasteIn(text) : [0, text.length];
  return [{ ...common, from, content: text.slice(from, to), name: isJson ? null : nameIn(holder), mimeType }];
}

/** What is said about a paste stands before or behind it: whole lines of so many characters, of a text many times that. */
const wordsAroundMax = 600;
const pasteCharactersMin = 20 * wordsAroundMax;

function pasteIn(text: string): readonly [from: number, to: number] {
  if (text.length < pasteCharactersMin) return [0, text.length];
  const from = text.lastIndexOf("\n", wordsAroundMax) + 1;
  const end = text.indexOf("\n", Math.max(from, text.length - wordsAroundMax));
  return [from, end === -1 ? text.length : end];
}

type FileBlock = Pick<Piece, "from" | "content" | "name" | "mimeType">;

const openingTag = /<file((?:\s+[\w-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*>/g;
const closingTag = "</file>";

/** `<file name="…" mime="…">…</file>`. One inside another, or without an end, is just text. */
function fileBlocksIn(text: string): readonly FileBlock[] {
  const blocks: FileBlock[] = [];
  const openings = [...text.matchAll(openingTag)];
  let passed = 0;
  for (const [number, opening] of openings.entries()) {
    const from = opening.index + opening[0].length;
    if (from < passed) continue;
    const to = text.indexOf(closingTag, from);
    if (to === -1) break;
    passed = to;
    if ((openings[number + 1]?.index ?? text.length) < to) continue;
    const attribute = attributesOf(opening[1] ?? "");
    const name = attribute("name", "path", "filename");
    blocks.push({ from, content: text.slice(from, to), name, mimeType: attribute("mime", "type", "mime_type") });
  }
  return blocks;
}

function attributesOf(tag: string): (...names: readonly string[]) => string | null {
  const pairs = [...tag.matchAll(/([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)];
  const values = new Map(pairs.map(([, name = "", double, single]) => [name, double ?? single ?? ""]));
  return (...names) => names.map((name) => values.get(name)).find((value) => value !== undefined) ?? null;
}

function withoutBlocks(text: string, blocks: readonly FileBlock[]): string {
  let left = "";
  let end = 0;
  for (const { from, content } of blocks) {
    left += text.slice(end, from);
    end = from + content.length;
  }
  return left + text.slice(end);
}

/** What the fields around a string call it; only ever shown. */
const nameIn = (holder: JsonObject): string | null =>
  stringOf(holder, ["filename", "file_name", "path", "file_path", "filePath", "title"]);

const stringOf = (holder: JsonObject, fields: readonly string[]): string | null =>
  fields.map((field) => holder[field]).find((value) => typeof value === "string") ?? null;

// ── Pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const dataUrl = /^data:([^;,]*)(?:;[^;,]*)*;base64,/;

/** Bytes as base64, and not text: `{ data, mimeType }`, `{ type: "base64", media_type, data }`, `data:…;base64,…`. */
const isEncoded = ({ isInMedia, holder, field, text }: Found): boolean =>
  isInMedia && ((field === "data" && holder["type"] !== "text") || dataUrl.test(text.slice(0, 200)));

function picturesOf({ path, text, holder }: Found): readonly Piece[] {
  const url = dataUrl.exec(text.slice(0, 200));
  const from = url?.[0].length ?? 0;
  const content = text.slice(from);
  if (content.length < pictureCharactersMin || !isCanonicalBase64(content)) return [];
  const mimeType = url?.[1] ?? stringOf(holder, ["mimeType", "mime_type", "media_type"]);
  return [{ path, from, content, encoding: "base64", name: nameIn(holder), mimeType, isJson: false }];
}

/** Whether decoding and encoding again gives the same: no blanks, whole groups of four, no bits left over at the end. */
const isCanonicalBase64 = (text: string): boolean =>
  text.length % 4 === 0 &&
  /(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$/.test(text.slice(-4)) &&
  !/[^A-Za-z0-9+/]/.test(text.slice(0, -4));

// ── Putting back ─────────────────────────────────────────────────────────────────────────────────────────────────────

function putBack(raw: HostMessage, moved: MovedContent, content: string): HostMessage {
  const { file, path } = moved;
  const isThere = new RegExp(`^(?:\\{"moved":")?\\[File ${file} [^]*\\](?:"\\})?$`).test(referenceIn(raw, moved));
  if (isThere) return replaceIn(raw, moved, content);
  throw new LcmError("corrupt", `a message is to hold ${file} at ${path.join(".")}, and no reference to it is there`);
}

/** Whether a model sees what is there: in a picture among the message's blocks, or among the blocks inside one. */
function isSeen(raw: HostMessage, path: Path): boolean {
  const [field, at, ...rest] = path;
  const { content } = raw;
  if (field !== "content" || typeof at !== "number" || !Array.isArray(content)) return false;
  const block: Json = content[at] ?? null;
  return isMedia(block) || (isObject(block) && isSeen(block, rest));
}

/** The block that has lost its picture says which. */
function standIn(raw: HostMessage, moved: MovedContent): HostMessage {
  const block = moved.path.slice(0, moved.path.findLastIndex((step) => typeof step === "number") + 1);
  return setAt(raw, block, { type: "text", text: referenceIn(raw, moved) });
}

/** Or why it cannot be read. */
async function contentOf(store: Store, id: FileId): Promise<string | LcmError> {
  try {
    return await store.fileContent(id);
  } catch (error) {
    if (error instanceof LcmError) return error;
    throw error;
  }
}

// ── A string inside a message ────────────────────────────────────────────────────────────────────────────────────────

type Stretch = Pick<MovedContent, "path" | "from" | "length">;

function replaceIn(raw: HostMessage, { path, from, length }: Stretch, text: string): HostMessage {
  const whole = stringAt(raw, path);
  return setAt(raw, path, whole.slice(0, from) + text + whole.slice(from + length));
}

const referenceIn = (raw: HostMessage, { path, from, length }: Stretch): string =>
  stringAt(raw, path).slice(from, from + length);

/** The message with another value at a path. Entries, not assignment: a field may be called __proto__. */
const setAt = (raw: HostMessage, [field, ...rest]: Path, value: Json): HostMessage =>
  Object.fromEntries(
    Object.entries(raw).map(([name, old = null]) => [name, name === field ? changed(old, rest, value) : old]),
  );

function changed(old: Json, path: Path, value: Json): Json {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (Array.isArray(old)) return old.map((item: Json, at) => (at === step ? changed(item, rest, value) : item));
  return isObject(old) ? setAt(old, path, value) : old;
}
