/** Checks what went over the wire: what a provider would refuse, and how much of a prompt its cache still knows. */

import assert from "node:assert/strict";
import { estimateTokens } from "../../src/core/base/tokens.ts";
import type { Asked } from "./model-server.ts";

type Json = ReturnType<typeof JSON.parse>;

/** The turns of a session, in order; a turn has a request for every step of its loop. */
export const requestsOf = (asked: readonly Asked[], session: string): readonly Asked[] =>
  asked.filter((each) => each.kind === "turn" && each.session === session);

/** Every result follows its call, every call has its result before another role speaks, and a user speaks first. */
export function assertValid({ format, body }: Asked): void {
  const open = new Set<string>();
  const messages = (body.messages as readonly Json[]).filter(({ role }) => role !== "system" && role !== "developer");
  assert.equal(messages[0]?.role, "user", "a user speaks first");
  for (const message of messages) {
    const parts: readonly Json[] = Array.isArray(message.content) ? message.content : [];
    const results =
      format === "anthropic"
        ? parts.filter(({ type }) => type === "tool_result").map((part) => part.tool_use_id)
        : message.role === "tool"
          ? [message.tool_call_id]
          : [];
    for (const id of results) assert(open.delete(id), `a result without its call: ${id}`);
    if (results.length === 0) assert.deepEqual([...open], [], "calls without a result");
    const calls = format === "anthropic" ? parts.filter(({ type }) => type === "tool_use") : (message.tool_calls ?? []);
    for (const { id } of calls) open.add(id);
  }
  assert.deepEqual([...open], [], "calls without a result at the end");
}

/** The live turn appears once, with nothing later than it. */
export function assertLiveOnce(asked: Asked, text: string): void {
  const saying = asked.messages.filter((message) => message.role === "user" && message.text.includes(text));
  assert.equal(saying.length, 1, `${JSON.stringify(text)} appears ${saying.length} times`);
  assert.equal(
    asked.messages.findLast(({ role }) => role === "user"),
    saying[0],
    "and it is the newest",
  );
}

/** The share of a prompt's messages, by length, that the next prompt starts with unchanged. */
export function prefixKept(before: Asked, next: Asked): number {
  const told = (asked: Asked): readonly string[] => asked.messages.map((message) => JSON.stringify(message));
  const [old, fresh] = [told(before), told(next)];
  const same = old.findIndex((message, at) => message !== fresh[at]);
  const length = (messages: readonly string[]): number => messages.reduce((sum, { length: each }) => sum + each, 0);
  return length(same < 0 ? old : old.slice(0, same)) / length(old);
}

/** A whole request by our own estimate: system prompt, messages and schemas of tools. */
export const tokensOfRequest = ({ body }: Asked): number => estimateTokens(JSON.stringify(body));
