/**
 * Encodes a host's message as stored parts and an envelope, and decodes it to exactly the same message.
 *
 * Text is stored once. The rest of each block, and of the message, is JSON with holes where the text was; decoding fills
 * the holes. Whatever is not understood is kept whole: unknown blocks, odd contents, text that a database cannot store.
 * A message that is nested too deeply to be walked is sealed: its envelope is a list with its JSON text, and it has no words.
 */

import { assert, LcmError } from "../base/errors.ts";
import { roles } from "../model/types.ts";
import type { Aside, Message, MovedContent, NewEntry, NewMessage, Part, PartType, Role } from "../model/types.ts";
import { estimateTokens } from "../base/tokens.ts";
import { isObject, isTooDeep, jsonText, parseObject, type Json, type JsonObject } from "../base/json.ts";
import {
  answeredCallOf,
  callBeside,
  callFields,
  callOfBlock,
  inputFieldOf,
  isHostsReminder,
  isMedia,
  isResultBlock,
  isSilentBlock,
  isToolRole,
  mayHoldMedia,
  pi,
  reasoningFieldOf,
  resultContentOf,
  resultOfBlock,
} from "./dialects.ts";
import type { AnsweredCall, CallsBeside } from "./dialects.ts";
import { isTimestamp, parseTimestamp, type Timestamp } from "../base/time.ts";

/** A message in the form of the host: a role, and any other fields. */
export type HostMessage = JsonObject;

export interface MessageOrigin {
  /** The host's identity of the message. */
  readonly key: string;
  readonly at: Timestamp;
  readonly parentKey?: string | null;
  /** The transcript line around the message, with the message still in it. */
  readonly entry?: JsonObject;
  /** Where the message is in its line; in the field `message` if left out. Null if it is not there in this form. */
  readonly hole?: EntryHole | null;
  readonly aside?: Aside;
}

/** A field of a line that holds a message, the only block of its content, or all of its content. */
export interface EntryHole {
  readonly field: string;
  readonly holds: "message" | "block" | "content";
}

/** One item of a transcript on its way in: a host's message, or a line that is not a message. */
export type Incoming =
  | ({ readonly kind: "message"; readonly message: HostMessage } & MessageOrigin)
  | { readonly kind: "entry"; readonly entry: NewEntry };

/** Encodes a host's message for the store. Throws `invalid` for anything else. */
export function messageToStore(raw: Json, origin: MessageOrigin): NewMessage {
  checkMessage(raw, origin);
  const parts = partsOf(raw);
  const { at, aside, entry, parentKey, hole: where } = origin;
  const role = roleOf(raw.role);
  const place = {
    key: storableKey(origin.key),
    at,
    ...(parentKey === undefined ? {} : { parentKey: parentKey === null ? null : storableKey(parentKey) }),
  };
  return {
    ...place,
    role,
    parts,
    tokens: estimateMessageTokens(parts),
    envelope: parts === sealedParts ? JSON.stringify([jsonText(raw)]) : envelopeOf(raw, role, at),
    entry: entry === undefined ? null : where === undefined ? shortenEntry(entry, place) : holedEntry(entry, where),
    ...(aside === undefined ? {} : { aside }),
  };
}

export function checkMessage(raw: Json, { at }: MessageOrigin): asserts raw is JsonObject & { readonly role: string } {
  if (!isObject(raw) || typeof raw["role"] !== "string") {
    throw new LcmError("invalid", "a message must be a JSON object with a role", {
      hint: 'for example {"role":"user","content":"hello"}',
    });
  }
  if (!isTimestamp(at)) {
    const given = typeof at === "string" ? JSON.stringify(at) : `of the type ${typeof at}`;
    throw new LcmError("invalid", `the time of a message is ${given}, not a text with UTC and milliseconds`, {
      hint: "for example 2026-02-17T07:37:00.000Z, as clock.now(), date.toISOString() and parseTimestamp(text) return",
    });
  }
}

type StoredMessage = Pick<Message, "role" | "parts" | "envelope" | "at">;

/** Decodes the host's message, unchanged. */
export function messageFromStore(message: StoredMessage): HostMessage {
  if (isSealed(message)) return unsealed(message.envelope ?? "");
  const blocks = message.parts.filter((part) => !isBeside(part)).map(partToBlock);
  if (message.envelope === null) return { role: message.role, content: blockText(blocks[0] ?? "") };
  const envelope = parseObject(message.envelope);
  // Spread, not assignment, since a field may be called __proto__.
  const raw: Record<string, Json | undefined> =
    "role" in envelope ? { ...envelope } : { role: message.role, ...envelope };
  const { content, timestamp } = envelope;
  if (content !== undefined) raw["content"] = fillContent(content, blocks);
  if (timestamp !== undefined) raw["timestamp"] = fill(timestamp, hole.time, () => Date.parse(message.at));
  for (const { field } of callFields) {
    const calls = envelope[field];
    const listed = (): Json => message.parts.filter((part) => isFrom(field, part)).map(partToBlock);
    if (calls !== undefined) raw[field] = fill(calls, hole.calls, listed);
  }
  return raw;
}

/** The same for everything that walks a message: a sealed one is replaced by a note. */
export const readableMessage = (message: StoredMessage): HostMessage =>
  isSealed(message) ? { role: message.role, content: message.parts[0]?.kept ?? "" } : messageFromStore(message);

function unsealed(envelope: string): HostMessage {
  const [json = ""]: readonly string[] = JSON.parse(envelope);
  return parseObject(json);
}

export const isSealed = ({ envelope }: Pick<Message, "envelope">): boolean => envelope?.startsWith("[") === true;

/** The whole transcript line, or the bare message if there was none. `raw` is the host's message. */
export function entryFromStore(
  message: Pick<Message, "role" | "parts" | "envelope" | "entry" | "key" | "parentKey" | "at">,
  raw: HostMessage = messageFromStore(message),
): JsonObject {
  return message.entry === null ? raw : restoreEntry(message.entry, message, raw);
}

/** The text of a host's message as the store would have it, and its cost in a prompt. */
export const textOfMessage = (raw: HostMessage): string => textOfParts(partsOf(raw));
export function tokensOfMessage(raw: HostMessage): number {
  const parts = partsOf(raw);
  // A message of the live turn goes to the model as it is.
  return parts === sealedParts ? estimateTokens(jsonText(raw)) : estimateMessageTokens(parts);
}

/** The text of a message: the texts of its parts, in order. The store keeps exactly this. */
export const textOfParts = (parts: readonly Part[]): string =>
  parts.length === 1 ? (parts[0]?.text ?? "") : textsOf(parts).join("\n");

const textsOf = (parts: readonly Part[]): readonly string[] =>
  parts.map((part) => part.text).filter((text) => text !== null);

/** Marks of what was taken out of the envelope. A value that could be mistaken for a mark is put into an array. */
const hole = { text: "text", blocks: "blocks", calls: "calls", time: 0 } as const;

const roleOf = (role: string): Role =>
  isToolRole(role) ? "tool" : (roles.find((known) => known === role) ?? "system");

/** The message without what is stored elsewhere: its content, its role if that comes first, and its time. */
function envelopeOf(raw: JsonObject, role: Role, at: Timestamp): string | null {
  const { content, timestamp } = raw;
  const fields = Object.keys(raw);
  const isOrdinary = fields[0] === "role" && raw["role"] === role;
  if (isOrdinary && fields.length === 2 && typeof content === "string") return null;
  const envelope: Record<string, Json | undefined> = { ...raw };
  if (isOrdinary) delete envelope["role"];
  if (content !== undefined) {
    envelope["content"] = typeof content === "string" ? hole.text : Array.isArray(content) ? hole.blocks : [content];
  }
  if (timestamp === Date.parse(at)) envelope["timestamp"] = hole.time;
  else if (timestamp === hole.time || Array.isArray(timestamp)) envelope["timestamp"] = [timestamp];
  for (const { field } of callFields) {
    if (Array.isArray(raw[field])) envelope[field] = hole.calls;
    else if (raw[field] === hole.calls) envelope[field] = [hole.calls];
  }
  return JSON.stringify(envelope);
}

const fill = (marker: Json, empty: Json, filling: () => Json): Json =>
  marker === empty ? filling() : Array.isArray(marker) ? (marker[0] ?? null) : marker;

function fillContent(marker: Json, blocks: readonly Json[]): Json {
  if (marker === hole.blocks) return blocks;
  if (marker === hole.text) return blockText(blocks[0] ?? "");
  assert(Array.isArray(marker), "odd content is stored inside an array");
  return marker[0] ?? null;
}

const blockText = (block: Json): string => {
  if (typeof block === "string") return block;
  const text = isObject(block) ? block["text"] : undefined;
  return typeof text === "string" ? text : "";
};

type Known = Pick<MessageOrigin, "key" | "at" | "parentKey">;

/**
 * Most lines repeat what is stored with their message: then one letter per field is enough (`type`, `id`, `parentId`,
 * `message`, and `timestamp` as milliseconds from the message's own). Any other line is stored as JSON.
 */
function shortenEntry(entry: JsonObject, known: Known): string {
  const letters = Object.entries(entry).map(([field, value]) => letterOf(field, value, known));
  return letters.includes(null) ? jsonText({ ...entry, message: null }) : letters.join("");
}

const letters: readonly (readonly [letter: string, field: string, valueIn: (known: Known) => Json | undefined])[] = [
  ["y", "type", () => "message"],
  ["i", "id", ({ key }) => key],
  ["n", "parentId", () => null],
  ["p", "parentId", ({ parentKey }) => parentKey],
];

function letterOf(field: string, value: Json | undefined, known: Known): string | null {
  if (field === "message") return "m";
  if (field !== "timestamp")
    return letters.find(([, name, valueIn]) => name === field && valueIn(known) === value)?.[0] ?? null;
  if (value === known.at) return "t0";
  const isTime = typeof value === "string" && parseTimestamp(value) === value;
  return isTime ? `t${Date.parse(value) - Date.parse(known.at)}` : null;
}

/** Has no field `message`, unlike a line that is stored as JSON with a hole there. */
const holedEntry = (entry: JsonObject, hole: EntryHole | null): string =>
  jsonText(hole === null ? { row: entry } : { row: { ...entry, [hole.field]: null }, ...hole });

function restoreEntry(entry: string, known: Known, message: JsonObject): JsonObject {
  if (entry.startsWith("{")) return fillEntry(parseObject(entry), message);
  const fields = (entry.match(/[yinpm]|t-?\d+/g) ?? []).map((letter): readonly [string, Json] => {
    if (letter === "m") return ["message", message];
    const [, field, valueIn] = letters.find(([each]) => each === letter) ?? [];
    if (field !== undefined) return [field, valueIn?.(known) ?? null];
    return ["timestamp", new Date(Date.parse(known.at) + Number(letter.slice(1))).toISOString()];
  });
  return Object.fromEntries(fields);
}

function fillEntry(entry: JsonObject, message: JsonObject): JsonObject {
  const { row, field, holds } = entry;
  if ("message" in entry || !isObject(row)) return { ...entry, message };
  if (typeof field !== "string") return row;
  const content = message["content"] ?? null;
  // The content of a forgotten message is a text.
  const filling = Array.isArray(content) ? (holds === "block" ? content[0] : content) : content;
  return { ...row, [field]: holds === "message" ? message : filling };
}

function contentToParts({ role, content }: JsonObject): readonly Part[] {
  if (typeof content === "string") return [textPart(content, null, content)];
  const parts = Array.isArray(content) ? content.map(blockToPart) : [];
  return role === "user" ? withRemindersApart(parts) : parts;
}

/**
 * Blocks that the host has put beside a user's words are kept, but are no text of the message: who searches, reads or
 * summarises it looks for what was said. In a message of nothing else they are its text.
 */
function withRemindersApart(parts: readonly Part[]): readonly Part[] {
  const isReminder = ({ type, text, toolCallId }: Part): boolean =>
    type === "text" && text !== null && toolCallId === null && isHostsReminder(text);
  const isApart = parts.some((part) => !isReminder(part));
  return isApart ? parts.map((part) => (isReminder(part) ? { ...part, text: null, kept: part.text } : part)) : parts;
}

function partsOf(raw: JsonObject): readonly Part[] {
  if (isTooDeep(raw)) return sealedParts;
  const { content } = raw;
  const parts = [...contentToParts(raw), ...callFields.flatMap((beside) => callsToParts(raw[beside.field], beside))];
  if (typeof content === "string" || Array.isArray(content) || textsOf(parts).length > 0) return parts;
  const text = searchableText(Object.entries(raw).map(([field, value = null]) => (labels.has(field) ? null : value)));
  return text === null ? parts : [...parts, { ...emptyPart, type: "agent", text, metadata: '{"field":"rest"}' }];
}

/** Fields that describe a message and are not part of what it says. */
const labels: ReadonlySet<string> = new Set(
  "role type id api provider model usage timestamp stopReason customType __openclaw".split(" "),
);

/** All texts in a value, or null: what is not understood can still be searched. */
function searchableText(value: Json): string | null {
  if (typeof value === "string") return storable(value);
  if (typeof value !== "object" || value === null) return null;
  const words = Object.values(value).map((inner: Json | undefined) => searchableText(inner ?? null));
  return words.filter((word) => word !== null && word !== "").join("\n") || null;
}

function blockToPart(block: Json): Part {
  if (!isObject(block)) return whole("agent", block, typeof block === "string" ? block : null);
  const { text } = block;
  const reasoning = reasoningFieldOf(block);
  const thought = reasoning === undefined ? undefined : block[reasoning];
  if (reasoning !== undefined)
    return typeof thought === "string" ? reasoningPart(block, reasoning, thought) : whole("reasoning", block, null);
  if (isSilentBlock(block)) return { ...whole("agent", block, null), kept: "" };
  const answered = answeredCallOf(block);
  if (answered !== null) return answeredCallPart(block, answered);
  const input = inputFieldOf(block);
  if (input !== undefined) return toolCallPart(block, input);
  if (isResultBlock(block)) return toolResultPart(block);
  if (typeof text === "string") return textPart(text, isPlainText(block) ? null : { ...block, text: null }, block);
  if (isMedia(block)) return whole("file", block, null);
  const { type: _, ...rest } = block;
  return whole("agent", block, searchableText(rest));
}

const isPlainText = (block: JsonObject): boolean => block["type"] === "text" && Object.keys(block).length === 2;

/** `rest` is the block with a hole for its text; null for a block that has nothing else. */
function textPart(text: string, rest: JsonObject | null, block: Json): Part {
  if (!isStorable(text)) return whole("text", block, storable(text));
  return { ...emptyPart, type: "text", text, metadata: rest === null ? null : JSON.stringify({ rest }) };
}

function reasoningPart(block: JsonObject, field: string, kept: string): Part {
  if (!isStorable(kept)) return whole("reasoning", block, null);
  const isPlain = block["type"] === pi.reasoning.type && Object.keys(block).length === 2;
  const metadata = isPlain ? null : JSON.stringify({ rest: { ...block, [field]: null } });
  return { ...emptyPart, type: "reasoning", kept, metadata };
}

/**
 * The text of a call is `name {arguments}`, for search and summaries; decoding parses it. Arguments that were given as text
 * leave an empty text in their place.
 */
function toolCallPart(block: JsonObject, field: string): Part {
  const { id, name = "" } = callOfBlock(block) ?? {};
  const input = block[field];
  const isText = typeof input === "string";
  if (id === undefined || name === "" || !(isText || isObject(input))) return whole("tool", block, null);
  const text = `${name} ${isText ? input : JSON.stringify(input)}`;
  const part = { ...emptyPart, type: "tool", toolCallId: id, toolName: name } as const;
  if (!isStorable(text) || !isStorable(id))
    return { ...whole("tool", block, storable(text)), toolName: storable(name) };
  const isPlain = block["type"] === pi.callBlock.type && Object.keys(block).join() === "type,id,name,arguments";
  const rest = { ...block, [field]: isText ? "" : null };
  return { ...part, text, metadata: isPlain && !isText ? null : JSON.stringify({ rest }) };
}

/** The text is `name {arguments}`, then the output. */
function answeredCallPart(block: JsonObject, { id, name, input, output }: AnsweredCall): Part {
  const part = whole("tool", block, `${name} ${JSON.stringify(input)}\n${output}`);
  return isStorable(id) ? { ...part, toolCallId: id, toolName: storable(name) } : part;
}

function toolResultPart(block: JsonObject): Part {
  const content = resultContentOf(block);
  const id = resultOfBlock(block)?.id;
  const text =
    typeof content === "string" ? content : Array.isArray(content) ? content.map(blockText).join("\n") : null;
  const part = whole("text", block, text);
  return id !== undefined && isStorable(id) ? { ...part, toolCallId: id } : part;
}

/** Calls listed beside the content. */
function callsToParts(calls: Json | undefined, beside: CallsBeside): readonly Part[] {
  if (!Array.isArray(calls)) return [];
  return calls.map((call): Part => {
    const called = isObject(call) ? call[beside.target] : undefined;
    const { name, arguments: input } = isObject(called) ? called : {};
    const text = [name, input].filter((value) => typeof value === "string").join(" ");
    const id = callBeside(call, beside)?.id;
    return {
      ...emptyPart,
      type: "tool",
      text: storable(text),
      toolCallId: id !== undefined && isStorable(id) ? id : null,
      toolName: typeof name === "string" ? storable(name) : null,
      metadata: JSON.stringify({ field: beside.field, raw: call }),
    };
  });
}

const emptyPart = { text: null, kept: null, toolCallId: null, toolName: null, metadata: null } as const;

/** What a sealed message shows, and what it costs. */
const sealedNote = "[this message is nested too deeply to be shown; it is stored whole, and an export contains it]";
const sealedParts: readonly Part[] = [{ ...emptyPart, type: "agent", kept: sealedNote }];

const whole = (type: PartType, block: Json, text: string | null): Part => ({
  ...emptyPart,
  type,
  text: text === null ? null : storable(text),
  metadata: JSON.stringify({ raw: block }),
});

/** A key that a database cannot store is stored as JSON, so that different keys stay different. */
export const storableKey = (key: string): string => (isStorable(key) ? key : JSON.stringify(key));

/** SQLite's text is UTF-8 without NUL; half a surrogate pair would come back as another character. */
const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes("\0");
const storable = (text: string): string => (isStorable(text) ? text : text.toWellFormed().replaceAll("\0", " "));

/** Parts that are not blocks of the content: calls beside it, or the text of a message without content. */
const isBeside = (part: Part): boolean => part.metadata?.startsWith('{"field":') === true;
const isFrom = (field: string, part: Part): boolean =>
  part.metadata?.startsWith(`{"field":${JSON.stringify(field)}`) === true;

function partToBlock(part: Part): Json {
  const metadata = part.metadata === null ? {} : parseObject(part.metadata);
  const { raw, rest } = metadata;
  if (raw !== undefined) return raw;
  const text = part.text ?? part.kept ?? "";
  switch (part.type) {
    case "tool": {
      const given = text.slice((part.toolName ?? "").length + 1);
      const field = isObject(rest) ? (inputFieldOf(rest) ?? "input") : "";
      const input: Json = isObject(rest) && rest[field] === "" ? given : JSON.parse(given);
      if (isObject(rest)) return { ...rest, [field]: input };
      return { type: pi.callBlock.type, id: part.toolCallId, name: part.toolName, [pi.callBlock.input]: input };
    }
    case "reasoning":
      if (isObject(rest)) return { ...rest, [reasoningFieldOf(rest) ?? pi.reasoning.text]: text };
      return { type: pi.reasoning.type, [pi.reasoning.text]: text };
    default:
      return isObject(rest) ? { ...rest, text } : { type: "text", text };
  }
}

/** Role and separators, which every provider adds around a message. */
const messageOverheadTokens = 4;
/** What providers charge for a picture of ordinary size, whatever its bytes. */
export const imageTokens = 1_600;

export function estimateMessageTokens(parts: readonly Part[]): number {
  let tokens = messageOverheadTokens;
  for (const part of parts) {
    if (part.type === "file") tokens += imageTokens;
    else if (part.text !== null) tokens += estimateTokens(part.text);
    else if (part.kept !== null) tokens += estimateTokens(part.kept);
    else if (part.metadata !== null) tokens += estimateTokens(part.metadata);
    // A block that was stored whole, with its text beside it, may contain pictures.
    if (part.text !== null && part.metadata?.startsWith('{"raw":') === true && mayHoldMedia(part))
      tokens += imageTokens * mediaInside(partToBlock(part));
  }
  return tokens;
}

/** Counts media among the blocks inside a block, such as a tool result. */
function mediaInside(block: Json): number {
  const content = isObject(block) ? resultContentOf(block) : null;
  if (!Array.isArray(content)) return 0;
  let count = 0;
  for (const inner of content) count += isMedia(inner) ? 1 : mediaInside(inner);
  return count;
}

/** The string at a path; empty if there is none. */
export function stringAt(value: Json, path: MovedContent["path"]): string {
  let found: Json | undefined = value;
  for (const step of path)
    found = Array.isArray(found) ? found[Number(step)] : isObject(found) ? found[String(step)] : undefined;
  return typeof found === "string" ? found : "";
}
