/** Anthropic's messages. */

import { isObject, type Json, type JsonObject } from "../../core/base/json.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import { saidIn, type Said } from "../../core/messages/said.ts";
import {
  listIn,
  numberIn,
  objectIn,
  parsedObject,
  placeIn,
  textIn,
  type Answer,
  type Usage,
  type Wire,
} from "./wire.ts";

export const anthropic: Wire = {
  name: "anthropic",
  field: "messages",
  isPinned: ({ role }) => role === "system",
  toMessage(element) {
    const { role, content } = element;
    if (role !== "user" && role !== "assistant") return null;
    return typeof content === "string" || Array.isArray(content) ? objectIn(withoutMarks(element)) : null;
  },
  fromMessage(message) {
    const elements: { role: string; content: Json[] }[] = [];
    for (const said of saidIn(message)) {
      const block = blockOf(said);
      if (block === null) continue;
      const role = roleOf(said, message);
      const last = elements.at(-1);
      if (last?.role === role) last.content.push(block);
      else elements.push({ role, content: [block] });
    }
    return elements;
  },
  ours(texts, first, isMarked) {
    const blocks: JsonObject[] = texts.map((text) => ({ type: "text", text }));
    const last = blocks.pop();
    if (last !== undefined) blocks.push(isMarked ? { ...last, cache_control: { type: "ephemeral" } } : last);
    return { role: "user", content: [...first.map(withoutMarks), ...blocks] };
  },
  readAnswer: ({ content, usage }): Answer => ({
    elements: [{ role: "assistant", content: listIn(content) }],
    isComplete: listIn(content).length > 0,
    usage: usageIn(objectIn(usage)),
  }),
  createCollector() {
    const blocks: (Record<string, Json | undefined> | undefined)[] = [];
    const inputs: string[] = [];
    let usage: JsonObject = {};
    let isComplete = false;
    return {
      event(data) {
        const at = placeIn(data["index"]);
        const block = blocks[at];
        switch (textIn(data["type"])) {
          case "message_start":
            usage = objectIn(objectIn(data["message"])["usage"]);
            break;
          case "content_block_start":
            blocks[at] = { ...objectIn(data["content_block"]) };
            break;
          case "content_block_delta":
            if (block !== undefined) addDelta(block, objectIn(data["delta"]), inputs, at);
            break;
          case "content_block_stop":
            if (block !== undefined && inputs[at] !== undefined) block["input"] = inputOf(inputs[at]);
            break;
          case "message_delta":
            usage = { ...usage, ...objectIn(data["usage"]) };
            break;
          case "message_stop":
            isComplete = true;
        }
      },
      answer() {
        const content = blocks.filter((block) => block !== undefined);
        return {
          elements: [{ role: "assistant", content }],
          isComplete: isComplete && content.length > 0,
          usage: usageIn(usage),
        };
      },
    };
  },
};

/** The error of a parser would repeat what it read, and end up in a log. */
function inputOf(text: string): JsonObject {
  const input = parsedObject(text || "{}");
  if (input === null) throw new Error("the input of a call is not a JSON object");
  return input;
}

function addDelta(block: Record<string, Json | undefined>, delta: JsonObject, inputs: string[], at: number): void {
  for (const field of ["text", "thinking", "signature"])
    if (delta["type"] === `${field}_delta`) block[field] = textIn(block[field]) + textIn(delta[field]);
  if (delta["type"] === "input_json_delta") inputs[at] = (inputs[at] ?? "") + textIn(delta["partial_json"]);
  if (delta["type"] === "citations_delta")
    block["citations"] = [...listIn(block["citations"]), delta["citation"] ?? null];
}

function usageIn(usage: JsonObject): Usage | null {
  if (typeof usage["input_tokens"] !== "number") return null;
  const cached = numberIn(usage["cache_read_input_tokens"]);
  return { input: usage["input_tokens"] + cached + numberIn(usage["cache_creation_input_tokens"]), cached };
}

const roleOf = (said: Said, { role }: HostMessage): string => {
  if (said.kind === "call" || said.kind === "reasoning") return "assistant";
  return said.kind !== "result" && role === "assistant" ? "assistant" : "user";
};

function blockOf(said: Said): Json | null {
  switch (said.kind) {
    case "text":
      return { type: "text", text: said.text };
    case "call":
      return { type: "tool_use", id: said.id, name: said.name, input: isObject(said.input) ? said.input : {} };
    case "result":
      return {
        type: "tool_result",
        tool_use_id: said.id,
        content: said.content,
        ...(said.isError ? { is_error: true } : {}),
      };
    case "reasoning":
      // Without its signature the provider refuses it.
      return typeof (said.block["signature"] ?? said.block["data"]) === "string" ? said.block : null;
    case "other":
      return isObject(said.block) && anthropicBlocks.has(textIn(said.block["type"])) ? said.block : null;
  }
}

const anthropicBlocks = new Set(["image", "document", "search_result"]);

/** Marks for the provider's cache move from request to request, and are not part of what is said. */
export function withoutMarks(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutMarks);
  if (!isObject(value)) return value;
  const fields = Object.entries(value).filter(([field]) => field !== "cache_control");
  return Object.fromEntries(fields.map(([field, inner]) => [field, inner === undefined ? inner : withoutMarks(inner)]));
}
