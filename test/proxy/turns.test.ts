/** The proxy between agents and a provider that is as strict as the real ones, over a real database. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { WireName } from "../support/strict-provider.ts";
import { agentOn, findingsIn, saidBy, startProxyGround, storedPieces } from "../support/proxy-ground.ts";

for (const wire of ["anthropic", "chat", "responses"] as const) {
  describe(`an agent that speaks ${wire} through the proxy`, () => {
    it("has its old messages replaced by summaries, and no request is refused", async () => {
      const ground = await startProxyGround();
      try {
        const agent = agentOn(ground, wire, "s1");
        for (let turn = 1; turn <= 30; turn++) {
          const call = turn % 3 === 0 ? `CALL read {"path":"file${turn}"}${turn % 6 === 0 ? " TWICE" : ""}` : "";
          await agent.prompt(
            `Turn ${turn}: ${turn % 4 === 0 ? "THINK " : ""}BIG 60 ${call} tell me about topic ${turn}`,
          );
          await ground.settled();
        }
        const [status] = ground.service.status().sessions;
        assert.deepEqual(ground.service.status().problems, []);
        assert.equal(status?.refused, 0);
        assert.ok((status?.replaced ?? 0) > 10, JSON.stringify(status));
        assert.deepEqual(
          ground.provider.requests.flatMap(({ violations }) => violations),
          [],
        );
        const last = ground.provider.requests.at(-1);
        assert.match(last?.raw ?? "", /<summary id=/);
        assert.ok((last?.tokens ?? 0) < 5_000, `${last?.tokens} tokens`);
        assert.deepEqual(await storedPieces(ground, "s1"), saidBy(agent));
        assert.deepEqual(await findingsIn(ground), []);
        await assertRecorded(ground);
      } finally {
        await ground.close();
      }
    });

    it("sees its question word for word through a turn of sixty calls", async () => {
      const ground = await startProxyGround();
      try {
        const agent = agentOn(ground, wire, "s1");
        await agent.prompt("Turn 1: BIG 60");
        const before = ground.provider.requests.length;
        ground.provider.answer = (_wire, _body, number) => ({
          text: `step ${number}`,
          calls: [{ id: `call_${number}`, name: "read", input: { path: `file${number}` } }],
        });
        const question = `Find the leak in "topic 9" & say <where> it is. ${"quince ".repeat(40)}end`;
        agent.add(agent.user(question));
        // Five requests at a time.
        for (let steps = 0; steps < 60; steps += 5) {
          await agent.run();
          await ground.settled();
        }
        ground.provider.answer = () => ({ text: "There." });
        await agent.run();
        await ground.settled();
        const requests = ground.provider.requests.slice(before);
        assert.equal(requests.length, 61);
        for (const [at, { raw, violations }] of requests.entries()) {
          assert.deepEqual(violations, []);
          assert.equal(countOf(raw, JSON.stringify(question).slice(1, -1)), 1, `request ${at + 1}`);
        }
        assert.match(requests.at(-1)?.raw ?? "", /<summary id=/);
        assert.ok((requests.at(-1)?.tokens ?? 0) < 5_000);
        assert.deepEqual(await storedPieces(ground, "s1"), saidBy(agent));
        // Asked once more: what came of it the first time is not told.
        agent.rewind((agent.prompts().at(-1) ?? 0) + 1);
        await agent.run();
        assert.doesNotMatch(ground.provider.requests.at(-1)?.raw ?? "", /step \d/);
      } finally {
        await ground.close();
      }
    });
  });
}

describe("a request that ends with only a reminder", () => {
  it("is stored once, however often it is sent", async () => {
    const ground = await startProxyGround();
    try {
      const agent = agentOn(ground, "anthropic", "s1");
      await agent.prompt("turn 1");
      agent.add(agent.user("turn 2"));
      agent.add({ role: "user", content: [{ type: "text", text: "<system-reminder>Be brief.</system-reminder>" }] });
      for (let attempt = 1; attempt <= 3; attempt++) {
        ground.provider.faults.push({ kind: "status", status: 529 });
        await agent.send(agent.history);
      }
      await agent.run();
      await agent.prompt("turn 3");
      await ground.settled();
      const { store } = await ground.lcm();
      const [conversation] = await store.conversations({ sessionId: "s1" });
      const rows = await store.messages({ conversation: conversation?.id ?? (0 as never) });
      assert.equal(
        rows.filter(({ role, parts }) => role === "user" && /Be brief/.test(JSON.stringify(parts))).length,
        1,
      );
      assert.deepEqual(
        rows.map(({ aside }) => aside),
        rows.map(() => null),
      );
    } finally {
      await ground.close();
    }
  });
});

describe("reminders beside what a user says, as Claude Code sends them", () => {
  const reminder = (words: string) => ({ type: "text", text: `<system-reminder>\n${words}\n</system-reminder>` });
  const environment = reminder("Use the dataviz skill for every chart. Always look at /home/user/shop first.");

  it("are stored, but neither name the conversation nor are found, pinned or summarised", async () => {
    const ground = await startProxyGround();
    try {
      const agent = agentOn(ground, "anthropic", "s1");
      ground.provider.answer = (_wire, _body, number) => ({
        text: `Answer ${number}: ${"the tea is green ".repeat(30)}`,
      });
      const prompt = async (words: string): Promise<void> => {
        agent.add({ role: "user", content: [environment, reminder("99 tokens left"), { type: "text", text: words }] });
        await agent.run();
        await ground.settled();
      };
      await prompt("Always answer in German. My bike is a Brompton.");
      for (let turn = 2; turn <= 20; turn++) await prompt(`Tell me about topic ${turn}`);
      assert.deepEqual(await storedPieces(ground, "s1"), saidBy(agent));
      const lcm = await ground.lcm();
      const [conversation] = await lcm.store.conversations({ sessionId: "s1" });
      assert.equal(conversation?.title, "Always answer in German. My bike is a Brompton.");
      const [first] = await lcm.store.messages({ conversation: conversation.id, limit: 1 });
      assert.equal(first?.text, "Always answer in German. My bike is a Brompton.");
      assert.deepEqual(
        (await lcm.store.pins(conversation.id)).map(({ words }) => words),
        ["Always answer in German."],
      );
      const summaries = await lcm.store.summaries({ conversation: conversation.id });
      assert.ok(summaries.length > 0);
      for (const { text } of summaries) assert.doesNotMatch(text, /dataviz|tokens left/);
      const last = ground.provider.requests.at(-1)?.raw ?? "";
      assert.ok(last.includes("Always answer in German"), "what was said for good is in the prompt");
      assert.ok(last.includes("Use the dataviz skill"), "and so are the reminders");
      assert.deepEqual(await findingsIn(ground), []);
    } finally {
      await ground.close();
    }
  });
});

describe("prompts that a compaction kept", () => {
  it("can be edited one after another, the newest first", async () => {
    const ground = await startProxyGround();
    try {
      const agent = agentOn(ground, "anthropic", "s1");
      for (const turn of [1, 2, 3]) await agent.prompt(`turn ${turn}`);
      await agent.compact(2);
      for (const prompt of ['CALL read {"path":"edited"}', "turn 2 edited"]) {
        agent.rewind(agent.prompts().at(prompt.startsWith("CALL") ? 2 : 1) ?? 0);
        await agent.prompt(prompt);
        await ground.settled();
      }
      const { body } = ground.provider.requests.at(-1) ?? {};
      assert.ok(agent.lasts.has(JSON.stringify(body.messages.at(-1))), JSON.stringify(body.messages.at(-1)));
      assert.deepEqual(await storedPieces(ground, "s1"), saidBy(agent));
    } finally {
      await ground.close();
    }
  });
});

describe("two requests at once in one session", () => {
  it("have each its own answer, whichever comes first", async () => {
    const ground = await startProxyGround();
    try {
      const [slow, quick] = [agentOn(ground, "chat", "s1"), agentOn(ground, "chat", "s1")];
      await slow.prompt("turn 1");
      quick.history = [...slow.history];
      ground.provider.faults.push({ kind: "slow", ms: 50 });
      const asked = ground.provider.requests.length;
      const answered = slow.prompt("turn 2 is slow");
      while (ground.provider.requests.length === asked) await sleep(5);
      await quick.prompt("turn 2 is quick");
      await answered;
      await ground.settled();
      await quick.prompt("turn 3 is quick");
      await slow.prompt("turn 3 is slow");
      await ground.settled();
      const { store } = await ground.lcm();
      const [conversation] = await store.conversations({ sessionId: "s1" });
      const rows = await store.messages({ conversation: conversation?.id ?? (0 as never) });
      const said = rows.map(
        ({ aside, parts }) => `${aside ?? "shown"}: ${parts[0]?.text?.replace(/Reply \d+/, "Reply")}`,
      );
      const words = (aside: string, how: string): readonly string[] =>
        ["turn 2", "turn 3"].flatMap((turn) => [`${aside}: ${turn} is ${how}`, `${aside}: Reply: ${turn} is ${how}`]);
      const expected = [
        "shown: turn 1",
        "shown: Reply: turn 1",
        ...words("shown", "slow"),
        ...words("branch", "quick"),
      ];
      assert.deepEqual(said.toSorted(), expected.toSorted());
      assert.deepEqual(await findingsIn(ground), []);
    } finally {
      await ground.close();
    }
  });
});

/** At first requests went as they came; later ones are ours, and rebuilt to the byte. */
async function assertRecorded({ runtime }: Awaited<ReturnType<typeof startProxyGround>>): Promise<void> {
  const lcm = await runtime.open();
  const [conversation] = await lcm.store.conversations();
  assert(conversation);
  const records = await lcm.prompts(conversation.id);
  assert.equal(records[0]?.head.hosts, "everything fits");
  const ours = records.filter(({ head }) => head.hosts === undefined);
  assert.ok(ours.length > 10);
  for (const record of ours) {
    assert.ok((await lcm.rebuild(record)).isExact, `prompt ${record.number}`);
    assert.ok(record.outcome === "answered" && (record.counted ?? 0) > 0);
  }
}

/** An agent over this format, told so much that its old messages are replaced; its last request as it was sent. */
async function lastReplaced(wire: WireName, change: (body: Body) => Body = (body) => body): Promise<string> {
  const ground = await startProxyGround({ tokensMax: 2_300 });
  try {
    const agent = agentOn(ground, wire, "s1");
    const bodyOf = agent.body.bind(agent);
    agent.body = (list) => change(bodyOf(list));
    for (let turn = 1; turn <= 12; turn++) {
      await agent.prompt(`Turn ${turn}: BIG 60 ${turn > 9 ? 'CALL read {"path":"x"}' : ""}`);
      await ground.settled();
    }
    const last = ground.provider.requests.at(-1);
    assert.match(last?.raw ?? "", /<summary id=/);
    assert.deepEqual(
      ground.provider.requests.flatMap(({ violations }) => violations),
      [],
    );
    return last?.raw ?? "";
  } finally {
    await ground.close();
  }
}

type Body = Readonly<Record<string, unknown>>;

const countOf = (text: string, words: string): number => text.split(words).length - 1;

describe("a prompt of ours", () => {
  it("keeps the surroundings that the host wrote into its first message, once", async () => {
    const raw = await lastReplaced("anthropic");
    assert.equal(countOf(raw, "<system-reminder>"), 1);
    assert.ok(raw.indexOf("<system-reminder>") < raw.indexOf("<summary id="));
    assert.equal(countOf(await lastReplaced("responses"), "<environment_context>"), 1);
    assert.equal(countOf(await lastReplaced("chat"), '"role":"system"'), 1);
  });

  it("keeps thoughts with what follows them", async () => {
    const { input } = JSON.parse(await lastReplaced("responses")) as { input: { type: string }[] };
    const calls = input.flatMap(({ type }, at) => (type === "function_call" ? [at] : []));
    assert.ok(calls.length > 0);
    // A thought, the words, the call.
    for (const at of calls) assert.equal(input[at - 2]?.type, "reasoning");
  });

  it("keeps what loaded a tool of the agent", async () => {
    const ground = await startProxyGround({ tokensMax: 2_300 });
    try {
      const agent = agentOn(ground, "anthropic", "s1");
      const call = { type: "tool_use", id: "toolu_1", name: "ToolSearch", input: { query: "select:Monitor" } };
      const loaded = { type: "tool_reference", tool_name: "deferred" };
      agent.add(agent.user("load a tool"));
      agent.add({ role: "assistant", content: [{ type: "text", text: "searching" }, call] });
      agent.add({ role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [loaded] }] });
      await agent.run();
      for (let turn = 1; turn <= 12; turn++) await agent.prompt(`Turn ${turn}: BIG 60`);
      const last = ground.provider.requests.at(-1)?.raw ?? "";
      assert.match(last, /<summary id=/);
      assert.equal(countOf(last, '"tool_reference"'), 1);
      assert.deepEqual(
        ground.provider.requests.flatMap(({ violations }) => violations),
        [],
      );
    } finally {
      await ground.close();
    }
  });

  it("marks its head for the provider's cache, unless there are four marks already", async () => {
    assert.equal(countOf(await lastReplaced("anthropic"), '"cache_control"'), 3);
    const block = { type: "text", text: "Instructions.", cache_control: { type: "ephemeral" } };
    const marked = await lastReplaced("anthropic", (body) => ({ ...body, system: [block, block, block] }));
    assert.equal(countOf(marked, '"cache_control"'), 4);
  });
});
