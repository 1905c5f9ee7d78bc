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

const toolOf = ({ callBlock }: Dialect): string => callBlock?.tool ?? "read";

function calling(dialect: Dialect, id: string): HostMessage {
  const { callBlock, callsBeside, reasoning } = dialect;
  const name = toolOf(dialect);
  const thought = reasoning === undefined ? [] : [{ type: reasoning.type, [reasoning.text]: "let me look" }];
  const said: readonly Json[] = [...thought, { type: "text", text: "one moment" }];
  const args = { path: "notes.md" };
  if (callBlock !== undefined) {
    const call = { type: callBlock.type, [callBlock.id ?? "id"]: id, name, [callBlock.input]: args };
    return { role: "assistant", content: [...said, call] };
  }
  assert.ok(callsBeside !== undefined, "a dialect has calls");
  const call = { id, [callsBeside.target]: { name, arguments: JSON.stringify(args) } };
  return { role: "assistant", content: said, [callsBeside.field]: [call] };
}

function answering(dialect: Dialect, id: string, text: string): HostMessage {
  const result: JsonObject = resultTo({ id, name: "read", dialect }, { content: [{ type: "text", text }] });
  const { resultBlock } = dialect;
  return resultBlock === undefined ? result : { role: resultBlock.role ?? "user", content: [result] };
}

const at = msToTimestamp(0);

function stored(raw: HostMessage, seq: number): Message {
  const { parts, ...message } = messageToStore(raw, { key: `k${seq}`, at });
  const place = { id: seq, conversation: 1, seq, parentKey: null, aside: null, moved: [] };
  return { ...message, ...place, parts, text: textOfParts(parts) } as unknown as Message;
}

/** Bare text as blocks: a result may have either. */
const inBlocks = (raw: HostMessage | undefined): Json =>
  JSON.parse(
    JSON.stringify(raw ?? null).replaceAll(/"(content|output)":("[^"]*")/g, '"$1":[{"type":"text","text":$2}]'),
  );

for (const dialect of dialects.filter(({ answeredCall }) => answeredCall === undefined)) {
  describe(`the dialect ${dialect.name}`, () => {
    const call = calling(dialect, "c1");
    const result = answering(dialect, "c1", "the heron is grey");

    it("stores a call and its result, and reads both back unchanged", () => {
      for (const raw of [call, result]) assert.deepEqual(messageFromStore(stored(raw, 1)), raw);
      const said = stored(call, 1);
      const part = said.parts.find(({ type }) => type === "tool");
      assert.deepEqual([part?.toolName, part?.toolCallId], [toolOf(dialect), "c1"]);
      assert.match(said.text, /(read|shell) \{"path":"notes.md"\}/);
      assert.doesNotMatch(said.text, /let me look/, "reasoning is not part of the text");
    });

    it("ties the result to its call, so that no cut separates them", () => {
      assert.deepEqual(callsOf(call), [{ id: "c1", name: toolOf(dialect), dialect }]);
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
        assert.deepEqual(inBlocks(messages[1]?.message), inBlocks(answering(dialect, "c1", "grey")), other.name);
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
      const nameless = JSON.parse(JSON.stringify(call).replaceAll(/"(id|call_id)":"c1",/g, "")) as HostMessage;
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
      assert.deepEqual(passage, { label: `[tool · ${toolOf(dialect)}]`, text: "the heron is grey", kind: "tool" });
    });
  });
}

describe("calls whose arguments are text", () => {
  const item = (type: string, input: string, args: string): HostMessage => ({
    role: "assistant",
    content: [{ type, status: "completed", id: "fc_3", name: "exec", [input]: args, call_id: "c1" }],
  });

  it("are stored once and read back unchanged, valid JSON or not", () => {
    for (const args of ['{"cmd":"cat a.txt"}', "{ broken", "", '{"cmd":"a\\u0000b"}', "a\0b"]) {
      for (const raw of [item("function_call", "arguments", args), item("custom_tool_call", "input", args)])
        assert.deepEqual(messageFromStore(stored(raw, 1)), raw);
    }
    const [part] = stored(item("function_call", "arguments", '{"cmd":"cat a.txt"}'), 1).parts;
    assert.equal(part?.text, 'exec {"cmd":"cat a.txt"}');
    assert.doesNotMatch(part.metadata ?? "", /cat a/);
  });

  it("are summarised by what matters in them", () => {
    const [passage] = messagePassages([stored(item("function_call", "arguments", '{"cmd":"cat a.txt"}'), 1)], null);
    assert.match(passage?.text ?? "", /^→ exec .*cat a\.txt/);
  });
});

describe("reasoning that only its provider can read", () => {
  it("is kept, and is neither said nor searched", () => {
    const thought = { type: "reasoning", summary: [], encrypted_content: "gAAAA" };
    const message = stored({ role: "assistant", content: [thought] }, 1);
    assert.deepEqual(messageFromStore(message), { role: "assistant", content: [thought] });
    assert.deepEqual([message.text, message.parts.map(({ type }) => type)], ["", ["reasoning"]]);
  });
});

describe("a call and its result in one block", () => {
  const block = (status: string, said: JsonObject): HostMessage => ({
    role: "assistant",
    content: [
      { type: "step-start", id: "prt_1", snapshot: "c16894" },
      { type: "text", text: "one moment", id: "prt_2" },
      { type: "tool", callID: "c1", tool: "bash", state: { status, input: { command: "ls" }, ...said, title: "ls" } },
      { type: "step-finish", id: "prt_3", reason: "tool-calls" },
    ],
  });
  const done = block("completed", { output: "the heron is grey\n" });

  it("is read back unchanged; its accounts are not part of the text", () => {
    assert.deepEqual(messageFromStore(stored(done, 1)), done);
    assert.equal(stored(done, 1).text, 'one moment\nbash {"command":"ls"}\nthe heron is grey\n');
  });

  it("needs no partner in a prompt", () => {
    assert.deepEqual(tiesOf(done), { calls: [], answers: [] });
    assert.deepEqual(pair([done]), { messages: [{ message: done, from: 0 }], unanswered: [], loose: 0 });
    assert.deepEqual(presentMessage(done, ""), done);
  });

  it("is summarised as a call, then its result", () => {
    const [said, result] = messagePassages([stored(done, 1)], null);
    assert.match(said?.text ?? "", /^one moment\n→ bash ls/);
    assert.deepEqual(result, { label: "[tool · bash]", text: "the heron is grey", kind: "tool" });
    const [, failed] = messagePassages([stored(block("error", { error: "no such file" }), 1)], null);
    assert.deepEqual(failed, { label: "[tool · bash · failed]", text: "no such file", kind: "tool" });
  });
});
