/**
 * How one stored message reads in a prompt, and how it reads when there is too little room for it.
 *
 * A message is shown exactly as the host sent it wherever a provider takes it so. What no provider takes is said
 * another way: an assistant's text as blocks, a role of the host's own as a user's text that names the role, a call
 * without an id, or with the id of another beside it, as text. What says nothing at all is not shown, since providers
 * refuse an empty message.
 */

import { imageTokens, isMedia, isObject, messageToStore, textOfParts } from "../messages/codec.ts";
import type { HostMessage } from "../messages/codec.ts";
import type { Json } from "../model/types.ts";
import { disarm } from "./summary-xml.ts";
import { formatCount, msToTimestamp } from "../base/text.ts";

/** Null for what is not shown; the very object where nothing had to be changed. `text` is what the store has it say. */
export function presentMessage(raw: HostMessage, text: string): HostMessage | null {
  switch (raw["role"]) {
    case "user":
      return presentUser(raw, text);
    case "assistant":
      return presentAssistant(raw, text);
    case "toolResult":
    case "tool":
      return presentResult(raw, text);
    default:
      return raw["excludeFromContext"] === true ? null : presentOther(raw, text);
  }
}

/** What a message costs in a prompt, counted as the store counts it. */
export const tokensOf = (raw: HostMessage): number => messageToStore(raw, unplaced).tokens;

const unplaced = { key: "", at: msToTimestamp(0) };

function presentUser(raw: HostMessage, text: string): HostMessage | null {
  const { content } = raw;
  if (typeof content === "string") return saysSomething(content) ? raw : null;
  return withBlocks(raw, Array.isArray(content) ? presentBlocks(content, "user") : textBlocks(text));
}

/** An empty result is a result: its call needs it. */
const presentResult = (raw: HostMessage, text: string): HostMessage =>
  typeof raw["content"] === "string" || Array.isArray(raw["content"]) ? raw : { ...raw, content: text };

function presentAssistant(raw: HostMessage, text: string): HostMessage | null {
  const { content, tool_calls: beside } = raw;
  const given: readonly Json[] = Array.isArray(beside) ? beside : [];
  const ids = new Set<Json | undefined>();
  const isFirstOfId = (call: Json): boolean => isObject(call) && ids.size < ids.add(call["id"]).size;
  const inside = Array.isArray(content) ? presentBlocks(content, "assistant") : [];
  const shown = inside.flatMap((block) => (!isCallBlock(block) || isFirstOfId(block) ? [block] : callAsText(block)));
  const calls = new Set(given.filter((call) => isCallBeside(call) && isFirstOfId(call)));
  const blocks = [
    ...shown,
    ...(typeof content === "string" ? textBlocks(content) : []),
    // Without content, the text is what the calls beside it say, or else whatever other fields do.
    ...(isObject(content) || (isNone(content) && given.length === 0) ? textBlocks(text) : []),
    ...given.filter((call) => !calls.has(call)).flatMap(callAsText),
  ];
  if (beside === undefined) return withBlocks(raw, blocks);
  const { tool_calls: _, ...rest } = raw;
  if (calls.size === 0) return withBlocks(rest, blocks);
  if (blocks.length > 0) return { ...withBlocks(raw, blocks), tool_calls: [...calls] };
  return isNone(content) && calls.size === given.length ? raw : { ...raw, content: null, tool_calls: [...calls] };
}

const isNone = (value: Json | undefined): boolean => value === undefined || value === null;

const isCallBlock = (block: Json): boolean =>
  isObject(block) && (block["type"] === "toolCall" || block["type"] === "tool_use");

const isCallBeside = (call: Json): boolean =>
  isObject(call) && typeof call["id"] === "string" && isObject(call["function"]);

/** A call that cannot be shown as one, because no result could be told to be its. */
const callAsText = (call: Json): readonly Json[] => textBlocks(`[a call, shown as text] ${JSON.stringify(call)}`);

/** A role of the host's own. Its pictures are shown too; its words must not pass for a summary. */
function presentOther(raw: HostMessage, text: string): HostMessage | null {
  const { role, content, timestamp } = raw;
  const pictures = Array.isArray(content) ? content.filter(isMedia) : [];
  if (!saysSomething(text) && pictures.length === 0) return null;
  const said = disarm(`[${typeof role === "string" ? role : ""}] ${text}`);
  return {
    role: "user",
    content: pictures.length === 0 ? said : [...textBlocks(said), ...pictures],
    ...(typeof timestamp === "number" ? { timestamp } : {}),
  };
}

const withBlocks = (raw: HostMessage, blocks: readonly Json[]): HostMessage | null => {
  if (blocks.length === 0) return null;
  return isMadeOf(raw["content"], blocks) ? raw : { ...raw, content: blocks };
};

/** Whether a content is these very blocks. */
export const isMadeOf = (content: Json | undefined, blocks: readonly Json[]): boolean =>
  Array.isArray(content) && content.length === blocks.length && blocks.every((block, at) => block === content[at]);

// ── Blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The blocks of a message of this role, as far as they say anything. */
export const presentBlocks = (content: readonly Json[], role: "user" | "assistant"): readonly Json[] =>
  content.flatMap((block) => presentBlock(block, role));

function presentBlock(block: Json, role: "user" | "assistant"): readonly Json[] {
  if (typeof block === "string") return textBlocks(block);
  if (!isObject(block)) return [];
  const { type, text } = block;
  switch (type) {
    case "text":
      return typeof text === "string" && saysSomething(text) ? [block] : [];
    case "toolCall":
    case "tool_use":
      return role === "assistant" && typeof block["id"] === "string" && typeof block["name"] === "string"
        ? [block]
        : callAsText(block);
    case "tool_result":
      return role === "user" && typeof block["tool_use_id"] === "string" ? [block] : textBlocks(JSON.stringify(block));
    default:
      return typeof type === "string" ? [block] : textBlocks(JSON.stringify(block));
  }
}

const textBlocks = (text: string): readonly Json[] => (saysSomething(text) ? [{ type: "text", text }] : []);

const saysSomething = (text: string): boolean => /\S/.test(text);

// ── Too little room ──────────────────────────────────────────────────────────────────────────────────────────────────

/** A text that is cut keeps at least this many characters. */
const charactersMin = 64;

/**
 * The message within so many tokens, if that can be: of every text that is too long its beginning and its end, with a
 * sentence between them on what was left out and whose it was. Reasoning goes first, since it cannot be cut. Null if
 * nothing would be left.
 */
export function shortenMessage(raw: HostMessage, tokensMax: number, owner: string): HostMessage | null {
  let shorter = raw;
  for (const form of raw["role"] === "assistant" || holdsResults(raw) ? [raw] : [raw, asOneText(raw, owner)]) {
    let characters = Math.max(charactersMin, tokensMax * 4);
    for (; characters >= charactersMin; characters = Math.floor(characters / 2)) {
      shorter = shortenWithin(form, { characters, owner, withPictures: characters / 4 > 2 * imageTokens });
      if (tokensOf(shorter) <= tokensMax) break;
    }
    if (tokensOf(shorter) <= tokensMax) break;
  }
  return presentMessage(shorter, "");
}

const holdsResults = ({ content }: HostMessage): boolean =>
  Array.isArray(content) && content.some((block: Json) => isObject(block) && block["type"] === "tool_result");

/** For what has too many blocks to be cut one by one. */
function asOneText(raw: HostMessage, owner: string): HostMessage {
  const said = shortenWithin(raw, { characters: Infinity, owner, withPictures: false });
  return { ...raw, content: textOfParts(messageToStore(said, unplaced).parts) };
}

interface Room {
  /** Of each text. */
  readonly characters: number;
  readonly owner: string;
  readonly withPictures: boolean;
}

function shortenWithin(raw: HostMessage, room: Room): HostMessage {
  const { content, tool_calls: calls } = raw;
  return {
    ...raw,
    content: shortenValue(content ?? null, room),
    ...(Array.isArray(calls) ? { tool_calls: calls.map((call: Json) => shortenValue(call, room)) } : {}),
  };
}

function shortenValue(value: Json, room: Room): Json {
  if (typeof value === "string") return shortenText(value, room);
  if (Array.isArray(value)) return value.flatMap((inner: Json) => shortenBlock(inner, room));
  if (!isObject(value)) return value;
  const fields = Object.entries(value).map(([field, inner = null]): readonly [string, Json] => {
    if (labels.has(field)) return [field, inner];
    // Arguments that are JSON text must stay so.
    if (field === "arguments" && typeof inner === "string" && inner.length > room.characters)
      return [field, JSON.stringify({ shortened: shortenText(inner, room) })];
    return [field, shortenValue(inner, room)];
  });
  return Object.fromEntries(fields);
}

/** By these a block is known and tied to others. */
const labels: ReadonlySet<string> = new Set("type id name tool_use_id".split(" "));

function shortenBlock(block: Json, room: Room): readonly Json[] {
  const type = isObject(block) && typeof block["type"] === "string" ? block["type"] : "";
  if (/thinking|reasoning/i.test(type)) return [];
  if (!isMedia(block)) return [shortenValue(block, room)];
  return room.withPictures ? [block] : [{ type: "text", text: `[${type} of ${room.owner} left out]` }];
}

function shortenText(text: string, { characters, owner }: Room): string {
  if (text.length <= characters) return text;
  const half = Math.floor(characters / 2);
  const leftOut = formatCount(text.length - 2 * half);
  const [head, tail] = [text.slice(0, half), text.slice(text.length - half)].map((piece) => piece.toWellFormed());
  return `${head}\n[… ${leftOut} characters of ${owner} left out …]\n${tail}`;
}
