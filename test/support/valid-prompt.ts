/**
 * Decides whether a provider would accept a list of messages. Written from what providers refuse, not from how a prompt
 * is built: it walks the list once and expects exactly the result after every call.
 */

import assert from "node:assert/strict";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import type { Json, JsonObject } from "../../src/core/base/json.ts";
import { isObject } from "../../src/core/base/json.ts";

/** Throws at the first message that a provider would refuse, with the reason. */
export function checkValid(messages: readonly HostMessage[]): void {
  if (messages.length > 0) assert.equal(messages[0]?.["role"], "user", "a prompt begins with a user message");
  for (let at = 0; at < messages.length;) {
    const message = messages[at] ?? {};
    const refuse = (reason: string): never => assert.fail(`message ${at} ${reason}: ${JSON.stringify(message)}`);
    switch (message["role"]) {
      case "user":
        if (blocksOf(message).some(isResultBlock)) refuse("holds a result, and its call is not right before it");
        checkBlocks(message, refuse);
        at += 1;
        break;
      case "assistant":
        at += 1 + checkCalls(message, messages.slice(at + 1, at + 1 + callsOf(message).length), refuse);
        break;
      case "toolResult":
      case "tool":
        refuse("is a result, and its call is not right before it");
        break;
      default:
        refuse("has a role that no provider knows");
    }
  }
}

type Refuse = (reason: string) => never;

function checkBlocks(message: HostMessage, refuse: Refuse): void {
  const { role, content } = message;
  if (role === "user" && typeof content === "string") {
    if (content.trim() === "") refuse("is blank");
    return;
  }
  const blocks = blocksOf(message);
  if (blocks.length === 0) refuse("has no content");
  for (const block of blocks) {
    if (typeof block["type"] !== "string") refuse("has a block without a type");
    if (block["type"] === "text" && (typeof block["text"] !== "string" || block["text"].trim() === ""))
      refuse("has a blank text");
    if (role === "user" && isCallBlock(block)) refuse("calls, as a user");
    if (role === "assistant" && isResultBlock(block)) refuse("holds a result, as an assistant");
    if (isCallBlock(block) && (typeof block["id"] !== "string" || typeof block["name"] !== "string"))
      refuse("calls without an id or a name");
  }
}

/** How many messages after the calling one contain its results. */
function checkCalls(message: HostMessage, following: readonly HostMessage[], refuse: Refuse): number {
  const calls = callsOf(message);
  if (
    message["tool_calls"] !== undefined &&
    !(Array.isArray(message["tool_calls"]) && message["tool_calls"].length > 0)
  )
    refuse("has an empty list of calls");
  if (new Set(calls.map(({ id }) => id)).size < calls.length) refuse("has two calls of one id");
  if (typeof message["content"] === "string") refuse("is an assistant's, and not in blocks");
  // Beside calls, content may be absent.
  if (Array.isArray(message["content"]) || calls.length === 0) checkBlocks(message, refuse);
  let used = 0;
  for (let nth = 0; nth < calls.length;) {
    const call = calls[nth];
    const next = following[used] ?? {};
    used += 1;
    if (call?.dialect === "anthropic") {
      let together = nth;
      while (calls[together]?.dialect === "anthropic") together += 1;
      const ids = calls.slice(nth, together).map(({ id }) => id);
      if (next["role"] !== "user") refuse(`calls ${ids.join(", ")}, and no user's message with results follows`);
      const results = blocksOf(next).map((block) => (isResultBlock(block) ? idOf(block["tool_use_id"]) : null));
      const leading = results.slice(0, ids.length);
      if (leading.join() !== ids.join())
        refuse(`calls ${ids.join(", ")}, and what follows answers ${leading.join(", ")}`);
      if (results.slice(ids.length).some((id) => id !== null)) refuse("is followed by results of other calls");
      checkBlocks(next, refuse);
      nth = together;
    } else {
      const [role, field] = call?.dialect === "pi" ? ["toolResult", "toolCallId"] : ["tool", "tool_call_id"];
      if (next["role"] !== role || next[field] !== call?.id)
        refuse(`calls ${call?.id}, and its result does not follow`);
      const { content } = next;
      if (typeof content !== "string" && !Array.isArray(content)) refuse("has a result without content");
      nth += 1;
    }
  }
  return used;
}

interface Call {
  readonly id: string;
  readonly dialect: "pi" | "anthropic" | "openai";
}

const callsOf = (message: HostMessage): readonly Call[] => [
  ...blocksOf(message)
    .filter(isCallBlock)
    .map(({ id, type }): Call => ({ id: idOf(id), dialect: type === "toolCall" ? "pi" : "anthropic" })),
  ...(Array.isArray(message["tool_calls"]) ? message["tool_calls"] : []).map((call: Json): Call => ({
    id: idOf(isObject(call) ? call["id"] : call),
    dialect: "openai",
  })),
];

const idOf = (id: Json | undefined): string => (typeof id === "string" ? id : `not an id: ${JSON.stringify(id)}`);

const blocksOf = ({ content }: HostMessage): readonly JsonObject[] =>
  Array.isArray(content) ? content.map((block: Json) => (isObject(block) ? block : {})) : [];
const isCallBlock = ({ type }: JsonObject): boolean => type === "toolCall" || type === "tool_use";
const isResultBlock = ({ type }: JsonObject): boolean => type === "tool_result";
