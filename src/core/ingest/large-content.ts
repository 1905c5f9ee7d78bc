/**
 * Large content: moves long texts and pictures of a message into files, leaves a short reference, and puts them back.
 *
 * It works on the host's message, before encoding, so anything that can be stored can be moved.
 */

import { checkMessage, messageFromStore, messageToStore, storableKey, stringAt } from "../messages/codec.ts";
import type { HostMessage, Incoming } from "../messages/codec.ts";
import {
  callFields,
  isBlockLabel,
  isMedia,
  isReasoning,
  isWrittenText,
  looksLikeCall,
  resultFields,
} from "../messages/dialects.ts";
import { LcmError } from "../base/errors.ts";
import { previewFile } from "./file-preview.ts";
import type { ConversationId, FileEncoding, FileId, Message, MovedContent, StoredFile } from "../model/types.ts";
import type { Appendable, Store } from "../model/store.ts";
import { firstLine } from "../base/excerpt.ts";
import { estimateTokens, tokensPerCharacterMax } from "../base/tokens.ts";
import { isObject, isTooDeep, type Json, type JsonObject } from "../base/json.ts";
import { formatBytes, plural } from "../base/format.ts";

export interface MoveOptions {
  readonly store: Store;
  readonly conversation: ConversationId;
  /** Describes a new file in about 200 tokens, instead of the built-in preview. May throw, or return nothing. */
  readonly explore?: (content: string, about: Pick<StoredFile, "name" | "mimeType">) => Promise<string>;
}

/**
 * Moves these pieces of a message into files, then encodes it. Idempotent by content: the same message again gives the
 * same files and, byte for byte, the same references.
 */
export async function moveOut(
  item: Extract<Incoming, { readonly kind: "message" }>,
  pieces: readonly LargePiece[],
  options: MoveOptions,
): Promise<Appendable> {
  checkMessage(item.message, item);
  const { store, conversation } = options;
  const origin = { key: storableKey(item.key), at: item.at };
  const moved: MovedContent[] = [];
  let raw: HostMessage = item.message;
  let shift = 0;
  let path: Path | null = null;
  for (const piece of pieces) {
    if (piece.path !== path) shift = 0;
    ({ path } = piece);
    const { content, encoding } = piece;
    const described = { name: storable(piece.name), mimeType: storable(piece.mimeType) };
    const exploration = encoding === "base64" ? null : await previewOf(piece, options);
    const file = await store.saveFile({ conversation, ...described, content, encoding, exploration, message: origin });
    // From the row, not the piece: of several messages with the same content, the first one described it.
    const reference = referenceTo(file, piece.isJson);
    const place = { file: file.id, path, from: piece.from + shift, length: reference.length };
    raw = replaceIn(raw, { ...place, length: content.length }, reference);
    moved.push(place);
    shift += reference.length - content.length;
  }
  return { kind: "message", message: { ...messageToStore(raw, item), moved } };
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

/** A model asked for 200 tokens may write many more. */
const previewCharactersMax = 2_000;

async function previewOf({ content, name, mimeType }: LargePiece, options: MoveOptions): Promise<string | null> {
  const about = { name, mimeType };
  const ask = async (): Promise<string> => (await options.explore?.(content, about)) ?? "";
  const isAsked = options.explore !== undefined && !(await isStored(options, content));
  // Nothing is lost if the model fails: the built-in preview needs none.
  const answer = isAsked ? await ask().catch(() => "") : "";
  const preview = answer.trim().slice(0, previewCharactersMax) || previewFile(content, about);
  return preview === "" ? null : storable(preview);
}

/** A replay does not ask the model again about a file that was described when it was new. */
async function isStored({ store, conversation }: MoveOptions, content: string): Promise<boolean> {
  const lines = content.split("\n").length;
  for (const file of await store.files(conversation)) {
    const isLike = file.encoding === "utf8" && file.lines === lines;
    if (isLike && (await contentOf(store, file.id)) === content) return true;
  }
  return false;
}

const storable = <T extends string | null>(text: T): T | string =>
  text === null ? text : text.toWellFormed().replaceAll("\0", " ");

type Path = MovedContent["path"];

/** A range of one string of a message that belongs in a file. */
export interface LargePiece {
  readonly path: Path;
  readonly from: number;
  readonly content: string;
  readonly encoding: FileEncoding;
  readonly name: string | null;
  readonly mimeType: string | null;
  /** The string is JSON text, and must stay valid with the reference in it. */
  readonly isJson: boolean;
}

/** Smaller pictures stay in the message. */
const pictureCharactersMin = 4_096;

/** Texts of more tokens than the threshold, and pictures: by path, then place. Pieces of one string share their path. */
export function findLarge(raw: HostMessage, thresholdTokens: number): readonly LargePiece[] {
  const charactersMin = Math.min(pictureCharactersMin, Math.ceil(thresholdTokens / tokensPerCharacterMax));
  if (isTooDeep(raw) || !hasLongString(raw, charactersMin)) return [];
  const { content } = raw;
  const isUnderstood = typeof content === "string" || Array.isArray(content);
  const fields = Object.entries(raw).filter(([field]) => !isUnderstood || field === "content" || isCallField(field));
  const strings = stringsIn(Object.fromEntries(fields), [], { holder: {}, field: "", isInMedia: false, isCall: false });
  const isUsers = raw["role"] === "user";
  return [...strings].flatMap((string) =>
    isEncoded(string) ? picturesOf(string) : textsOf(string, thresholdTokens, isUsers),
  );
}

/** False for nearly all messages, which need no closer look. */
function hasLongString(value: Json | undefined, charactersMin: number): boolean {
  if (typeof value === "string") return value.length >= charactersMin;
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).some((inner: Json | undefined) => hasLongString(inner, charactersMin));
}

/** The context of a string in a message. */
interface Surroundings {
  readonly holder: JsonObject;
  readonly field: string;
  readonly isInMedia: boolean;
  readonly isCall: boolean;
}

type FoundString = Surroundings & { readonly path: Path; readonly text: string };

function* stringsIn(value: Json, path: Path, around: Surroundings): Generator<FoundString> {
  if (typeof value === "string") yield { ...around, path, text: value };
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* stringsIn(item, [...path, index], around);
  }
  if (!isObject(value)) return;
  const type = typeof value["type"] === "string" ? value["type"] : "";
  if (isPrivate(type)) return;
  const isCall = around.isCall || looksLikeCall(type);
  const isInMedia = around.isInMedia || (!isCall && isMedia(value));
  for (const [field, inner = null] of Object.entries(value)) {
    if (isLabel(field) || isPrivate(field)) continue;
    yield* stringsIn(inner, [...path, field], {
      holder: value,
      field,
      isInMedia,
      isCall: isCall || isCallField(field),
    });
  }
}

/** Fields that identify a message or block, or tie it to others. */
const isLabel = (field: string): boolean =>
  isBlockLabel(field) || /^(?:role|mimeType|mime_type|media_type)$/.test(field) || resultFields().includes(field);

const isCallField = (field: string): boolean => callFields.some((beside) => beside.field === field);

/** Reasoning goes back to its provider under a signature, or not at all. */
const isPrivate = (word: string): boolean => isReasoning(word) || /signature|encrypted/i.test(word);

/** Moves only the `<file>` blocks of a text if that is enough; otherwise all of it except what a user wrote around it. */
function textsOf(found: FoundString, thresholdTokens: number, isUsers: boolean): readonly LargePiece[] {
  const { path, text, holder, field } = found;
  if (estimateTokens(text) <= thresholdTokens) return [];
  const isJson = field === "arguments";
  const common = { path, encoding: "utf8", isJson } as const;
  const files = isJson ? [] : fileBlocksIn(text);
  const large = files.filter((file) => file.content.isWellFormed() && estimateTokens(file.content) > thresholdTokens);
  const isEnough = large.length > 0 && estimateTokens(withoutBlocks(text, large)) <= thresholdTokens;
  // UTF-8 cannot encode half a surrogate pair, so such a text stays in the message.
  if (isEnough || !text.isWellFormed()) return large.map((file) => ({ ...common, ...file }));
  const mimeType = isJson ? "application/json" : stringOf(holder, ["media_type"]);
  const isWritten = isUsers && (path.length === 1 || (path.length === 3 && isWrittenText(holder)));
  const [from, to] = isWritten ? pasteIn(text) : [0, text.length];
  return [{ ...common, from, content: text.slice(from, to), name: isJson ? null : nameIn(holder), mimeType }];
}

/** A user's remarks on a paste are whole lines before or after it, at most this long, in a text many times longer. */
const remarkCharactersMax = 600;
const pasteCharactersMin = 20 * remarkCharactersMax;

function pasteIn(text: string): readonly [from: number, to: number] {
  if (text.length < pasteCharactersMin) return [0, text.length];
  const from = text.lastIndexOf("\n", remarkCharactersMax) + 1;
  const end = text.indexOf("\n", Math.max(from, text.length - remarkCharactersMax));
  return [from, end === -1 ? text.length : end];
}

type FileBlock = Pick<LargePiece, "from" | "content" | "name" | "mimeType">;

const openingTag = /<file((?:\s+[\w-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*>/g;
const closingTag = "</file>";

/** `<file name="…" mime="…">…</file>`. A nested or unclosed one is just text. */
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

/** A name for display, from the fields around a string. */
const nameIn = (holder: JsonObject): string | null =>
  stringOf(holder, ["filename", "file_name", "path", "file_path", "filePath", "title"]);

const stringOf = (holder: JsonObject, fields: readonly string[]): string | null =>
  fields.map((field) => holder[field]).find((value) => typeof value === "string") ?? null;

const dataUrl = /^data:([^;,]*)(?:;[^;,]*)*;base64,/;

/** Whether a string is bytes as base64: `{ data, mimeType }`, `{ type: "base64", media_type, data }`, `data:…;base64,…`. */
const isEncoded = ({ isInMedia, holder, field, text }: FoundString): boolean =>
  isInMedia && ((field === "data" && holder["type"] !== "text") || dataUrl.test(text.slice(0, 200)));

function picturesOf({ path, text, holder }: FoundString): readonly LargePiece[] {
  const url = dataUrl.exec(text.slice(0, 200));
  const from = url?.[0].length ?? 0;
  const content = text.slice(from);
  if (content.length < pictureCharactersMin || !isCanonicalBase64(content)) return [];
  const mimeType = url?.[1] ?? stringOf(holder, ["mimeType", "mime_type", "media_type"]);
  return [{ path, from, content, encoding: "base64", name: nameIn(holder), mimeType, isJson: false }];
}

/** Whether decoding and re-encoding gives the same string: no blanks, groups of four, no stray bits at the end. */
const isCanonicalBase64 = (text: string): boolean =>
  text.length % 4 === 0 &&
  /(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$/.test(text.slice(-4)) &&
  !/[^A-Za-z0-9+/]/.test(text.slice(0, -4));

/** Page size for reading all messages back: small enough for a hundred large pictures. */
export const messagesPerPage = 100;

/** The host's message, unchanged, with moved content in its place. `unavailable` if one of its files is lost or cut. */
export async function restoreMessage(store: Store, message: Message): Promise<HostMessage> {
  const { raw, losses } = await restoreAvailable(store, message);
  const [cause] = losses;
  if (cause === undefined) return raw;
  throw new LcmError("unavailable", `${cause.message}, so the message has only a reference to it`, {
    cause,
    hint: cause.hint ?? "the files folder was moved or emptied; restore it from a backup",
  });
}

export async function restoreIfWhole(store: Store, message: Message): Promise<HostMessage | null> {
  const { raw, losses } = await restoreAvailable(store, message);
  return losses.length === 0 ? raw : null;
}

/** Restores what it can; references to files that are lost or cut remain. */
export async function restoreAvailable(store: Store, message: Message) {
  let raw = messageFromStore(message);
  const losses = new Map<FileId, LcmError>();
  for (const moved of message.moved.toReversed()) {
    const content = await contentOf(store, moved.file);
    if (typeof content === "string") raw = putBack(raw, moved, content);
    else losses.set(moved.file, content);
  }
  return { raw, losses: [...losses.values()].toReversed() };
}

/** The host's message for a prompt: with its pictures, but texts as references. A lost picture becomes a text block. */
export async function messageForPrompt(store: Store, message: Message): Promise<HostMessage> {
  let raw = messageFromStore(message);
  for (const moved of message.moved.toReversed()) {
    if (!isSeen(raw, moved.path) || (await store.file(moved.file))?.encoding === "utf8") continue;
    const content = await contentOf(store, moved.file);
    raw = typeof content === "string" ? putBack(raw, moved, content) : withTextBlock(raw, moved);
  }
  return raw;
}

/** The files that these messages refer to, each once. */
export const fileIdsOf = (messages: readonly Message[]): readonly FileId[] => [
  ...new Set(messages.flatMap(({ moved }) => moved.map(({ file }) => file))),
];

function putBack(raw: HostMessage, moved: MovedContent, content: string): HostMessage {
  const { file, path } = moved;
  const isThere = new RegExp(`^(?:\\{"moved":")?\\[File ${file} [^]*\\](?:"\\})?$`).test(referenceIn(raw, moved));
  if (isThere) return replaceIn(raw, moved, content);
  throw new LcmError("corrupt", `a message has no reference to ${file} at ${path.join(".")}, where it was moved out`);
}

/** Whether a path leads into a picture among the message's blocks, or among the blocks inside one. */
function isSeen(raw: HostMessage, path: Path): boolean {
  const [field, at, ...rest] = path;
  const { content } = raw;
  if (field !== "content" || typeof at !== "number" || !Array.isArray(content)) return false;
  const block: Json = content[at] ?? null;
  return isMedia(block) || (isObject(block) && isSeen(block, rest));
}

/** Replaces the block of a lost picture by its reference as text, which every provider accepts. */
function withTextBlock(raw: HostMessage, moved: MovedContent): HostMessage {
  const block = moved.path.slice(0, moved.path.findLastIndex((step) => typeof step === "number") + 1);
  return setAt(raw, block, { type: "text", text: referenceIn(raw, moved) });
}

/** The content of a file, or why it cannot be read. */
async function contentOf(store: Store, id: FileId): Promise<string | LcmError> {
  try {
    return await store.fileContent(id);
  } catch (error) {
    if (error instanceof LcmError) return error;
    throw error;
  }
}

type StringRange = Pick<MovedContent, "path" | "from" | "length">;

function replaceIn(raw: HostMessage, { path, from, length }: StringRange, text: string): HostMessage {
  const whole = stringAt(raw, path);
  return setAt(raw, path, whole.slice(0, from) + text + whole.slice(from + length));
}

const referenceIn = (raw: HostMessage, { path, from, length }: StringRange): string =>
  stringAt(raw, path).slice(from, from + length);

/** The message with another value at a path. Built from entries, since a field may be called __proto__. */
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
