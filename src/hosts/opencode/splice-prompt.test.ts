import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HostMessageRow, HostPart } from "./host-api.ts";
import { splicePrompt, type OwnMessage } from "./splice-prompt.ts";

const model = { providerID: "scripted", modelID: "small" };

const part = (id: string, text: string, more: object = {}): HostPart => ({
  id: `prt_${id}`,
  sessionID: "ses_1",
  messageID: id,
  type: "text",
  text,
  ...more,
});

const row = (id: string, role: string, ...parts: readonly HostPart[]): HostMessageRow => ({
  info: { id, sessionID: "ses_1", role, time: { created: 7 }, agent: "build", model },
  parts,
});

const own = (id: string, role: string, ...content: readonly HostPart[]): OwnMessage => ({
  key: id,
  message: { role, content },
});

const summary: OwnMessage = { key: null, message: { role: "user", content: "<summary>long ago</summary>" } };

const textsOf = (rows: readonly HostMessageRow[] | null) =>
  rows?.map(({ parts }) => parts.map(({ text }) => (typeof text === "string" ? text : "")).join("|"));

describe("our prompt in the place of OpenCode's messages", () => {
  const given = [
    row("m1", "user", part("m1", "one")),
    row("m2", "assistant", part("m2", "two")),
    row("m3", "user", part("m3", "three")),
  ];

  it("shows summaries as a user's words, with the ids and the model that the host expects", () => {
    const [first] = splicePrompt(given, [summary, own("m3", "user", part("m3", "three"))]) ?? [];
    assert.deepEqual(first, {
      info: { id: "msg_lcm_0", sessionID: "ses_1", role: "user", time: { created: 7 }, agent: "build", model },
      parts: [
        {
          id: "prt_msg_lcm_0_0",
          sessionID: "ses_1",
          messageID: "msg_lcm_0",
          type: "text",
          text: "<summary>long ago</summary>",
          synthetic: true,
        },
      ],
    });
  });

  it("takes messages from the host where it has them, with what it adds for this request", () => {
    const reminded = row("m3", "user", part("m3", "<reminder>three</reminder>"), part("plan", "stay calm"));
    const [, , last] =
      splicePrompt(
        [...given.slice(0, 2), reminded],
        [
          own("m1", "user", part("m1", "one")),
          own("m2", "assistant", part("m2", "two")),
          own("m3", "user", part("m3", "three")),
        ],
      ) ?? [];
    assert.equal(last?.info, reminded.info);
    assert.deepEqual(last?.parts, reminded.parts);
  });

  it("shows what we shortened as we shortened it", () => {
    const tool = (output: string): HostPart => ({
      id: "prt_tool",
      messageID: "m2",
      type: "tool",
      state: { status: "completed", output },
    });
    const long = [given[0]!, row("m2", "assistant", tool("a very long output")), given[2]!];
    const spliced = splicePrompt(long, [own("m2", "assistant", tool("[cut]")), own("m3", "user", part("m3", "three"))]);
    assert.deepEqual(spliced?.[0]?.parts[0]?.["state"], { status: "completed", output: "[cut]" });
  });

  it("shows a call with its arguments as we shortened them, and nothing that we left out for want of room", () => {
    const call = (content: string): HostPart => ({
      id: "prt_call",
      messageID: "m2",
      type: "tool",
      state: { status: "completed", input: { content }, output: "ok" },
    });
    const thought: HostPart = { id: "prt_thought", messageID: "m2", type: "reasoning", text: "long thoughts" };
    const long = [given[0]!, row("m2", "assistant", thought, call("a very long file")), given[2]!];
    const spliced = splicePrompt(long, [own("m2", "assistant", call("[cut]")), own("m3", "user", part("m3", "three"))]);
    assert.deepEqual(spliced?.[0]?.parts, [call("[cut]")]);
  });

  it("brings back what the host no longer lists", () => {
    const spliced = splicePrompt(given.slice(2), [
      own("m2", "assistant", part("m2", "two")),
      own("m3", "user", part("m3", "three")),
    ]);
    assert.deepEqual(textsOf(spliced), ["two", "three"]);
    assert.equal(spliced?.[0]?.info["providerID"], "scripted");
    assert.equal(spliced?.[0]?.info.role, "assistant");
  });

  it("ends with what the host says after the last message that both have, but for its compactions", () => {
    const compaction = row("m4", "user", { ...part("m4", ""), type: "compaction" });
    const goOn = row("m5", "user", part("m5", "continue", { synthetic: true }));
    const spliced = splicePrompt([...given, compaction, goOn], [summary, own("m3", "user", part("m3", "three"))]);
    assert.deepEqual(textsOf(spliced), ["<summary>long ago</summary>", "three", "continue"]);
  });

  it("is not used if it lacks the live turn", () => {
    assert.equal(splicePrompt(given, [summary]), null, "nothing of it is known to the host");
    assert.equal(splicePrompt([], [summary]), null);
    const answered = [...given, row("m4", "assistant", part("m4", "four"))];
    assert.equal(splicePrompt(answered, [own("m4", "assistant", part("m4", "four"))]), null, "the question is missing");
  });

  it("is all that a compaction gets", () => {
    const later = [...given, row("m4", "user", part("m4", "four"))];
    const prompt = [summary, own("m3", "user", part("m3", "three"))];
    assert.deepEqual(textsOf(splicePrompt(later, prompt, true)), ["<summary>long ago</summary>", "three"]);
  });
});
