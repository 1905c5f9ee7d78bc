/** A session to import, for tests of the command line. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const fixtures = fileURLToPath(new URL("../fixtures/", import.meta.url));

/** One of everything seen in session files, and of what may come. */
function createSession(): readonly object[] {
  const at = (second: number): string => new Date(Date.UTC(2026, 1, 17, 7, 37, second)).toISOString();
  const message = (second: number, inner: object): object => ({
    type: "message",
    timestamp: at(second),
    message: inner,
  });
  return [
    { type: "session", id: "5e551011-aaaa-4bbb-8ccc-000000000001", timestamp: at(0), cwd: "/home/me", version: 3 },
    message(1, { role: "user", content: "Where does the harbour ferry leave?" }),
    { type: "model_change", timestamp: at(2), provider: "anthropic", modelId: "some-model" },
    message(3, {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "They mean the old harbour.", thinkingSignature: "c2lnbmF0dXJl" },
        { type: "text", text: "I will look it up." },
        {
          type: "toolCall",
          id: "call_1",
          name: "look_up",
          arguments: { query: "ferry", nested: { list: [1, null, "二"] } },
        },
      ],
      usage: { input: 10, output: 20, cost: { total: 0.0012 } },
      stopReason: "toolUse",
    }),
    message(4, {
      role: "toolResult",
      toolCallId: "call_1",
      toolName: "look_up",
      content: [{ type: "text", text: "Pier 7, every 20 minutes. ERR_NONE" }],
      details: { source: "timetable", rows: [{ pier: 7 }] },
      isError: false,
    }),
    {
      type: "message",
      id: "entry-5",
      parentId: null,
      timestamp: at(5),
      message: { role: "assistant", content: [], stopReason: "aborted" },
    },
    {
      type: "message",
      id: "entry-6",
      parentId: "entry-5",
      timestamp: at(6),
      message: { role: "user", content: [{ type: "text", text: "東京の港は？ 🚢" }] },
    },
    message(7, {
      role: "assistant",
      content: [
        { type: "text", text: "竹芝から出ます。" },
        { type: "hologram", depth: 3, frames: ["a", "b"] },
        { type: "image", data: "aGVsbG8=", mimeType: "image/png" },
      ],
    }),
    { type: "thinking_level_change", timestamp: at(8), thinkingLevel: "high" },
    message(9, { role: "bashExecution", command: "ls", output: "a.txt", exitCode: 0 }),
    message(10, { role: "user", content: "ping" }),
    message(11, { role: "user", content: "ping" }),
    message(12, { role: "user", content: "" }),
    { type: "custom_future_entry", timestamp: at(13), payload: { anything: true } },
  ];
}

export const session = createSession();
export const messageCount = session.filter((entry) => "message" in entry).length;
export const sessionText = session.map((entry) => `${JSON.stringify(entry)}\n`).join("");

export function writeSession(folder: string, text: string | Buffer = sessionText, name = "session.jsonl"): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}
