/**
 * Presents a stored message in a form that providers accept: unchanged if possible, otherwise as blocks or text.
 * A host-specific role becomes user text that names the role; a call without an id of its own becomes text. Empty
 * messages are left out, because providers reject them.
 */

import { tokensOfMessage, type HostMessage } from "../messages/codec.ts";
import {
  callFieldOf,
  callOfBlock,
  isCallBlock,
  isMedia,
  isResultBlock,
  isResultRole,
  resultOfBlock,
} from "../messages/dialects.ts";
import { isObject, type Json } from "../base/json.ts";
import { disarm } from "../base/escape.ts";

/** Null if it is not shown; the given object itself if nothing had to change. `text` is its stored text. */
export function presentMessage(raw: HostMessage, text: string): HostMessage | null {
  const { role } = raw;
  if (role === "user") return presentUser(raw, text);
  if (role === "assistant") return presentAssistant(raw, text);
  if (isResultRole(role)) return presentResult(raw, text);
  return raw["excludeFromContext"] === true ? null : presentOther(raw, text);
}

/** Tokens of a message, counted as the store does. */
export const tokensOf = tokensOfMessage;

function presentUser(raw: HostMessage, text: string): HostMessage | null {
  const { content } = raw;
  if (typeof content === "string") return hasText(content) ? raw : null;
  return withBlocks(raw, Array.isArray(content) ? presentBlocks(content, "user") : textBlocks(text));
}

/** An empty result is shown too: its call needs it. */
const presentResult = (raw: HostMessage, text: string): HostMessage =>
  typeof raw["content"] === "string" || Array.isArray(raw["content"]) ? raw : { ...raw, content: text };

function presentAssistant(raw: HostMessage, text: string): HostMessage | null {
  const { content } = raw;
  const { field = "", target = "" } = callFieldOf(raw) ?? {};
  const beside = raw[field];
  const given: readonly Json[] = Array.isArray(beside) ? beside : [];
  const isCallBeside = (call: Json): boolean =>
    isObject(call) && typeof call["id"] === "string" && isObject(call[target]);
  const ids = new Set<Json | undefined>();
  const isFirstOfId = (call: Json): boolean =>
    isObject(call) && ids.size < ids.add(callOfBlock(call)?.id ?? call["id"]).size;
  const inside = Array.isArray(content) ? presentBlocks(content, "assistant") : [];
  const shown = inside.flatMap((block) => (!isCallBlock(block) || isFirstOfId(block) ? [block] : callAsText(block)));
  const calls = new Set(given.filter((call) => isCallBeside(call) && isFirstOfId(call)));
  const blocks = [
    ...shown,
    ...(typeof content === "string" ? textBlocks(content) : []),
    // Without content, the stored text comes from the calls, or from other fields if there are none.
    ...(isObject(content) || (isNone(content) && given.length === 0) ? textBlocks(text) : []),
    ...given.filter((call) => !calls.has(call)).flatMap(callAsText),
  ];
  if (field === "") return withBlocks(raw, blocks);
  const { [field]: _, ...rest } = raw;
  if (calls.size === 0) return withBlocks(rest, blocks);
  if (blocks.length > 0) return { ...withBlocks(raw, blocks), [field]: [...calls] };
  return isNone(content) && calls.size === given.length ? raw : { ...raw, content: null, [field]: [...calls] };
}

const isNone = (value: Json | undefined): boolean => value === undefined || value === null;

/** For a call that cannot be shown as one, because no result could be matched to it. */
const callAsText = (call: Json): readonly Json[] => textBlocks(`[tool call, shown as text] ${JSON.stringify(call)}`);

/** A host-specific role. Its pictures are shown too; its text must not pass for a summary. */
function presentOther(raw: HostMessage, text: string): HostMessage | null {
  const { role, content, timestamp } = raw;
  const pictures = Array.isArray(content) ? content.filter(isMedia) : [];
  if (!hasText(text) && pictures.length === 0) return null;
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

/** Whether the content consists of exactly these block objects. */
export const isMadeOf = (content: Json | undefined, blocks: readonly Json[]): boolean =>
  Array.isArray(content) && content.length === blocks.length && blocks.every((block, at) => block === content[at]);

/** The non-empty blocks of a message of this role. */
export const presentBlocks = (content: readonly Json[], role: "user" | "assistant"): readonly Json[] =>
  content.flatMap((block) => presentBlock(block, role));

function presentBlock(block: Json, role: "user" | "assistant"): readonly Json[] {
  if (typeof block === "string") return textBlocks(block);
  if (!isObject(block)) return [];
  const { type, text } = block;
  if (type === "text") return typeof text === "string" && hasText(text) ? [block] : [];
  if (isCallBlock(block)) {
    const isWhole = (callOfBlock(block)?.name ?? "") !== "";
    return role === "assistant" && isWhole ? [block] : callAsText(block);
  }
  const isShown = isResultBlock(block) ? role === "user" && resultOfBlock(block) !== null : typeof type === "string";
  return isShown ? [block] : textBlocks(JSON.stringify(block));
}

const textBlocks = (text: string): readonly Json[] => (hasText(text) ? [{ type: "text", text }] : []);

const hasText = (text: string): boolean => /\S/.test(text);
