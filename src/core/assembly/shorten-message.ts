/** Shortens a message, for when even the fresh tail does not fit the budget. */

import { imageTokens, textOfMessage, type HostMessage } from "../messages/codec.ts";
import { callFieldOf, isBlockLabel, isMedia, isReasoning, isResultBlock } from "../messages/dialects.ts";
import { presentMessage, tokensOf } from "./present-message.ts";
import { isObject, type Json } from "../base/json.ts";
import { formatCount } from "../base/format.ts";

/** A shortened text keeps at least this many characters. */
const charactersMin = 64;

/**
 * The message within `tokensMax` if possible: long texts keep their beginning and end, with a note between them that
 * says how much of which message is left out. Reasoning is dropped, since it cannot be cut. Null if nothing is left.
 */
export function shortenMessage(raw: HostMessage, tokensMax: number, owner: string): HostMessage | null {
  let shorter = raw;
  for (const form of raw["role"] === "assistant" || hasResults(raw) ? [raw] : [raw, asOneText(raw, owner)]) {
    let characters = Math.max(charactersMin, tokensMax * 4);
    for (; characters >= charactersMin; characters = Math.floor(characters / 2)) {
      shorter = shortenWithin(form, { characters, owner, withPictures: characters / 4 > 2 * imageTokens });
      if (tokensOf(shorter) <= tokensMax) break;
    }
    if (tokensOf(shorter) <= tokensMax) break;
  }
  return presentMessage(shorter, "");
}

const hasResults = ({ content }: HostMessage): boolean => Array.isArray(content) && content.some(isResultBlock);

/** For a message with too many blocks to shorten each of them. */
function asOneText(raw: HostMessage, owner: string): HostMessage {
  const textOnly = shortenWithin(raw, { characters: Infinity, owner, withPictures: false });
  return { ...raw, content: textOfMessage(textOnly) };
}

interface Room {
  /** Most characters of each text. */
  readonly characters: number;
  readonly owner: string;
  readonly withPictures: boolean;
}

function shortenWithin(raw: HostMessage, room: Room): HostMessage {
  const { field = "" } = callFieldOf(raw) ?? {};
  const calls = raw[field];
  return {
    ...raw,
    content: shortenValue(raw["content"] ?? null, room),
    ...(Array.isArray(calls) ? { [field]: calls.map((call: Json) => shortenValue(call, room)) } : {}),
  };
}

function shortenValue(value: Json, room: Room): Json {
  if (typeof value === "string") return shortenText(value, room);
  if (Array.isArray(value)) return value.flatMap((inner: Json) => shortenBlock(inner, room));
  if (!isObject(value)) return value;
  const fields = Object.entries(value).map(([field, inner = null]): readonly [string, Json] => {
    if (isBlockLabel(field)) return [field, inner];
    // Arguments given as JSON text must stay valid JSON.
    if (field === "arguments" && typeof inner === "string" && inner.length > room.characters)
      return [field, JSON.stringify({ shortened: shortenText(inner, room) })];
    return [field, shortenValue(inner, room)];
  });
  return Object.fromEntries(fields);
}

function shortenBlock(block: Json, room: Room): readonly Json[] {
  const type = isObject(block) && typeof block["type"] === "string" ? block["type"] : "";
  if (isReasoning(type)) return [];
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
