import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { messageFromStore, messageToStore, textOfParts } from "./codec.ts";
import type { HostMessage } from "./codec.ts";
import { addDialect, dialects, resultTo } from "./dialects.ts";
import type { Dialect } from "./dialects.ts";
import { callsOf, safeCuts, tiesOf } from "./tool-calls.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { msToTimestamp } from "../base/time.ts";
import { pair } from "../assembly/pair-results.ts";
import { presentMessage } from "../assembly/present-message.ts";
import { shortenMessage } from "../assembly/shorten-message.ts";
import type { Message } from "../model/types.ts";
import { messagePassages } from "../summarize/source-text.ts";

/** Dialects of no host: adding one takes a row and nothing else. */
const madeUp: readonly Dialect[] = [
  {
    name: "made up, in blocks",
    callBlock: { type: "invoke", input: "params" },
    resultBlock: { type: "outcome", id: "invokeId", error: "broke" },
    reasoning: { type: "musing", text: "mused" },
  },
  {
    name: "made up, in messages",
    callsBeside: { field: "invocations", target: "tool" },
    resultMessage: { role: "outcome", id: "invokeId", name: "invoked", error: "broke", asBlocks: true },
  },
];
for (const dialect of madeUp) addDialect(dialect);

function calling({ callBlock, callsBeside, reasoning }: Dialect, id: string, name = "read"): HostMessage {
  const thought = reasoning === undefined ? [] : [{ type: reasoning.type, [reasoning.text]: "let me look" }];
  const said: readonly Json[] = [...thought, { type: "text", text: "one moment" }];
  const args = { path: "notes.md" };
  if (callBlock !== undefined)
    return { role: "assistant", content: [...said, { type: callBlock.type, id, name, [callBlock.input]: args }] };
  assert.ok(callsBeside !== undefined, "a dialect has calls");
  const call = { id, [callsBeside.target]: { name, arguments: JSON.stringify(args) } };
  return { role: "assistant", content: said, [callsBeside.field]: [call] };
}

function answering(dialect: Dialect, id: string, text: string): HostMessage {
  const result: JsonObject = resultTo({ id, name: "read", dialect }, { content: [{ type: "text", text }] });
  return dialect.resultBlock === undefined ? result : { role: "user", content: [result] };
}

const at = msToTimestamp(0);

function stored(raw: HostMessage, seq: number): Message {
  const { parts, ...message } = messageToStore(raw, { key: `k${seq}`, at });
  const place = { id: seq, conversation: 1, seq, parentKey: null, aside: null, moved: [] };
  return { ...message, ...place, parts, text: textOfParts(parts) } as unknown as Message;
}

for (const dialect of dialects) {
  describe(`the dialect ${dialect.name}`, () => {
    const call = calling(dialect, "c1");
    const result = answering(dialect, "c1", "the heron is grey");

    it("stores a call and its result, and reads both back unchanged", () => {
      for (const raw of [call, result]) assert.deepEqual(messageFromStore(stored(raw, 1)), raw);
      const said = stored(call, 1);
      const part = said.parts.find(({ type }) => type === "tool");
      assert.deepEqual([part?.toolName, part?.toolCallId], ["read", "c1"]);
      assert.match(said.text, /read \{"path":"notes.md"\}/);
      assert.doesNotMatch(said.text, /let me look/, "reasoning is not part of the text");
    });

    it("ties the result to its call, so that no cut separates them", () => {
      assert.deepEqual(callsOf(call), [{ id: "c1", name: "read", dialect }]);
      assert.deepEqual(safeCuts([call, result].map(tiesOf)), [0, 2]);
    });

    it("pairs a call with a result of any dialect", () => {
      for (const other of dialects) {
        const { messages, unanswered, loose } = pair([
          call,
          { role: "user", content: "and?" },
          answering(other, "c1", "grey"),
        ]);
        assert.deepEqual([unanswered, loose], [[], 0], other.name);
        assert.deepEqual(messages[1]?.message, answering(dialect, "c1", "grey"), other.name);
      }
    });

    it("shows a missing result as failed, and a result without its call as text", () => {
      const { messages, unanswered } = pair([call]);
      assert.deepEqual(unanswered, [{ at: 0, id: "c1" }]);
      assert.match(JSON.stringify(messages[1]?.message), /no result of this call/);
      const alone = pair([result]);
      assert.equal(alone.loose, 1);
      assert.match(JSON.stringify(alone.messages[0]?.message), /the heron is grey/);
    });

    it("presents a call and its result unchanged, and a call without an id as text", () => {
      for (const raw of [call, result]) assert.deepEqual(presentMessage(raw, ""), raw);
      const nameless = JSON.parse(JSON.stringify(call).replaceAll('"id":"c1",', "")) as HostMessage;
      assert.deepEqual(callsOf(presentMessage(nameless, "") ?? assert.fail()), []);
    });

    it("shortens a result without losing its call", () => {
      const shorter =
        shortenMessage(answering(dialect, "c1", "a long report ".repeat(500)), 200, "msg_1") ?? assert.fail();
      assert.deepEqual(tiesOf(shorter).answers, ["c1"]);
      assert.match(JSON.stringify(shorter), /characters of msg_1 left out/);
    });

    it("names the tool of a result in the source of a summary", () => {
      const [, passage] = messagePassages([stored(call, 1), stored(result, 2)], null);
      assert.deepEqual(passage, { label: "[tool · read]", text: "the heron is grey", kind: "tool" });
    });
  });
}
