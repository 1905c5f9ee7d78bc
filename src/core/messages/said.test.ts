import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HostMessage } from "./codec.ts";
import { comparable, isTelling, onlySaying, saidIn } from "./said.ts";

const pieces = (...messages: readonly HostMessage[]): readonly string[] =>
  messages.flatMap((message) => saidIn(message).filter(isTelling).map(comparable));

describe("what a message says", () => {
  const input = { path: "a.txt", lines: [1, 2] };
  const anthropic: readonly HostMessage[] = [
    { role: "user", content: [{ type: "text", text: "read it", cache_control: { type: "ephemeral" } }] },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "s" },
        { type: "text", text: "reading" },
        { type: "tool_use", id: "c1", name: "read", input },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "lines" }] }] },
  ];

  it("is the same in every dialect, and however it is cut into messages", () => {
    const args = JSON.stringify({ lines: [1, 2], path: "a.txt" });
    const call = { id: "c1", type: "function", function: { name: "read", arguments: args } };
    const chat: readonly HostMessage[] = [
      { role: "user", content: "read it" },
      { role: "assistant", content: "reading", tool_calls: [call] },
      { role: "tool", tool_call_id: "c1", content: "lines" },
    ];
    const responses: readonly HostMessage[] = [
      { type: "message", role: "user", content: [{ type: "input_text", text: "read it" }] },
      { role: "assistant", content: [{ type: "reasoning", encrypted_content: "x" }] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "reading", annotations: [] }] },
      {
        role: "assistant",
        content: [{ type: "function_call", id: "fc", call_id: "c1", name: "read", arguments: args }],
      },
      { role: "tool", content: [{ type: "function_call_output", call_id: "c1", output: "lines" }] },
    ];
    const state = { status: "completed", input, output: "lines" };
    const openCode: readonly HostMessage[] = [
      { role: "user", content: [{ type: "text", text: "read it" }] },
      {
        role: "assistant",
        content: [
          { type: "step-start" },
          { type: "text", text: "reading" },
          { type: "tool", callID: "c1", tool: "read", state },
        ],
      },
    ];
    for (const other of [chat, responses, openCode]) assert.deepEqual(pieces(...other), pieces(...anthropic));
  });

  it("is the same picture in every dialect, also in a result", () => {
    const [data, mime] = ["iVBORw0KGgo=", "image/png"];
    const url = `data:${mime};base64,${data}`;
    const pictures = [
      { type: "image", source: { type: "base64", media_type: mime, data } },
      { type: "image_url", image_url: { url } },
      { type: "input_image", image_url: url },
      { type: "image", data, mimeType: mime },
      { type: "file", mime, filename: "a.png", url },
    ];
    for (const picture of pictures) {
      assert.deepEqual(pieces({ role: "user", content: [picture] }), [`other\n${data}`]);
      const result = { type: "tool_result", tool_use_id: "c1", content: [picture] };
      assert.deepEqual(pieces({ role: "user", content: [result] }), [`result\nc1\n${data}`]);
    }
  });

  it("does not depend on what hosts put around it", () => {
    const reminder = "<system-reminder>\nnow\n</system-reminder>";
    assert.deepEqual(pieces({ role: "user", content: [{ type: "text", text: reminder }, "hello"] }), ["user\nhello"]);
    for (const text of [
      "<subagent_notification>\n{}",
      "Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed.",
    ])
      assert.deepEqual(pieces({ role: "user", content: text }), []);
    const result = (content: string): HostMessage => ({ role: "tool", tool_call_id: "c1", content });
    assert.deepEqual(pieces(result(`lines\n\n${reminder}`)), pieces(result("lines")));
    assert.notDeepEqual(pieces(result("other lines")), pieces(result("lines")));
    // The model may quote such words.
    assert.equal(pieces({ role: "assistant", content: reminder }).length, 1);
  });

  it("can be cut from a message, with nothing else of it", () => {
    const [, message = {}] = anthropic;
    const [, , call] = saidIn(message);
    assert.deepEqual(onlySaying(message, call === undefined ? [] : [call])["content"], [
      { type: "tool_use", id: "c1", name: "read", input },
    ]);
  });
});
