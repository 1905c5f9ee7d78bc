/**
 * How one stored message reads in a prompt, and how it reads when there is too little room for it.
 *
 * A message is shown exactly as the host sent it wherever a provider takes it so. What no provider takes is said
 * another way: an assistant's text as blocks, a role of the host's own as a user's text that names the role, a call
 * without an id, or with the id of another beside it, as text. What says nothing at all is not shown, since providers
 * refuse an empty message.
 */

import { messageToStore } from "../messages/codec.ts";
import {
  callFieldOf,
  callOfBlock,
  isCallBlock,
  isMedia,
  isResultBlock,
  isResultRole,
  resultOfBlock,
} from "../messages/dialects.ts";
import type { HostMessage } from "../messages/codec.ts";
import type { Json } from "../base/json.ts";
import { isObject } from "../base/json.ts";
import { msToTimestamp } from "../base/time.ts";
import { disarm } from "../base/escape.ts";

/** Null for what is not shown; the very object where nothing had to be changed. `text` is what the store has it say. */
export function presentMessage(raw: HostMessage, text: string): HostMessage | null {
  const { role } = raw;
  if (role === "user") return presentUser(raw, text);
  if (role === "assistant") return presentAssistant(raw, text);
  if (isResultRole(role)) return presentResult(raw, text);
  return raw["excludeFromContext"] === true ? null : presentOther(raw, text);
}

/** What a message costs in a prompt, counted as the store counts it. */
export const tokensOf = (raw: HostMessage): number => messageToStore(raw, unplaced).tokens;

export const unplaced = { key: "", at: msToTimestamp(0) };

function presentUser(raw: HostMessage, text: string): HostMessage | null {
  const { content } = raw;
  if (typeof content === "string") return saysSomething(content) ? raw : null;
  return withBlocks(raw, Array.isArray(content) ? presentBlocks(content, "user") : textBlocks(text));
}

/** An empty result is a result: its call needs it. */
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
  if (field === "") return withBlocks(raw, blocks);
  const { [field]: _, ...rest } = raw;
  if (calls.size === 0) return withBlocks(rest, blocks);
  if (blocks.length > 0) return { ...withBlocks(raw, blocks), [field]: [...calls] };
  return isNone(content) && calls.size === given.length ? raw : { ...raw, content: null, [field]: [...calls] };
}

const isNone = (value: Json | undefined): boolean => value === undefined || value === null;

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
  if (type === "text") return typeof text === "string" && saysSomething(text) ? [block] : [];
  if (isCallBlock(block)) {
    const isWhole = callOfBlock(block) !== null && typeof block["name"] === "string";
    return role === "assistant" && isWhole ? [block] : callAsText(block);
  }
  const isShown = isResultBlock(block) ? role === "user" && resultOfBlock(block) !== null : typeof type === "string";
  return isShown ? [block] : textBlocks(JSON.stringify(block));
}

const textBlocks = (text: string): readonly Json[] => (saysSomething(text) ? [{ type: "text", text }] : []);

const saysSomething = (text: string): boolean => /\S/.test(text);

// ── Too little room ──────────────────────────────────────────────────────────────────────────────────────────────────
