/** Generates random exchanges between hosts and their models. */

import type { HostMessage } from "../../src/core/messages/codec.ts";
import type { Random } from "../support/random.ts";

/** One turn of a host, of any shape that hosts have. */
export function aTurn(random: Random, word: () => string): readonly HostMessage[] {
  switch (random.weighted({ ping: 3, talk: 4, tool: 5, odd: 2 })) {
    case "ping":
      return [
        { role: "user", content: "ping" },
        { role: "assistant", content: [{ type: "text", text: "pong" }] },
      ];
    case "talk":
      return [
        { role: "user", content: `please ${word()}`, timestamp: random.below(1_000_000) },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", thinkingSignature: "c2ln" },
            { type: "text", text: `done ${word()}` },
          ],
          usage: { input: random.below(99) },
        },
      ];
    case "tool": {
      const calls = random.between(1, 3);
      const ids = Array.from(
        { length: calls },
        (_, index) => `call_${random.chance(0.3) ? 0 : random.below(1e6)}_${index}`,
      );
      return [
        { role: "user", content: [{ type: "text", text: `look up ${word()}` }] },
        {
          role: "assistant",
          content: ids.map((id) => ({
            type: "toolCall",
            id,
            name: "read",
            arguments: { path: `/tmp/${word()}`, lines: [1, 2] },
          })),
          stopReason: "toolUse",
        },
        ...ids.map((id) => ({
          role: "toolResult",
          toolCallId: id,
          toolName: "read",
          content: [{ type: "text", text: `found ${word()}\n${"filler ".repeat(random.below(30))}` }],
          details: { ok: true },
          isError: random.chance(0.1),
        })),
        { role: "assistant", content: `so it is ${word()}` },
      ];
    }
    case "odd":
      return [
        random.pick<HostMessage>([
          { role: "bashExecution", command: "ls", output: "a\0b" },
          { role: "user", content: "\ud83d" },
          { role: "user", content: [{ type: "image", data: "AAAA", mimeType: "image/png" }, "loose", null, 7] },
          { role: "assistant" },
          { role: "user", content: "" },
          { role: "user", content: { odd: true } },
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
          },
        ]),
      ];
  }
}
