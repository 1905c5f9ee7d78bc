import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { messageName } from "../../core/model/types.ts";
import type { Task } from "../../core/recall/ask-types.ts";
import { createRecallWorld, textOf } from "../../../test/support/recall-world.ts";
import type { ChildRun, RecallOptions, RecallWorld } from "../../../test/support/recall-world.ts";
import { createDelegate } from "./delegate.ts";
import { createEngine } from "./engine.ts";
import { delegateKey, isDelegateKey } from "./sessions.ts";
import type { Timestamp } from "../../core/base/time.ts";

const question = { query: "secret", prompt: "What is the secret of this place?" };
const long = { config: { expandTimeoutSeconds: 600 } };
const short = { config: { expandTimeoutSeconds: 1 } };
const never = async (): Promise<never> => await new Promise<never>(() => undefined);
const settled = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));

async function ask(world: RecallWorld) {
  const output = await world.call(world.own.context, "lcm_expand_query", question);
  return { text: textOf(output), details: output.details };
}

async function asking(options: RecallOptions) {
  const world = await createRecallWorld({ ...long, ...options });
  return { world, answer: await ask(world) };
}

const usageOf = async ({ store }: RecallWorld) => await store.usageSince("2026-01-01T00:00:00.000Z" as Timestamp);

describe("a question in a host", () => {
  it("is answered by a sub-agent that gets instructions and matches, and nothing about who asks", async () => {
    const { world, answer } = await asking({ child: async ({ request }) => await Promise.resolve(citing(request)) });
    const [request] = world.runs;
    assert.equal(world.runs.length, 1);
    assert(request && isDelegateKey(request.sessionKey) && request.sessionKey.startsWith("agent:ada:subagent:"));
    assert.deepEqual(
      [request.promptMode, request.deliver, request.toolsAlsoAllow],
      ["minimal", false, ["lcm_expand", "lcm_describe", "lcm_grep"]],
    );
    assert.match(request.extraSystemPrompt ?? "", /You answer questions from the record/);
    assert.match(request.message, /What is the secret of this place\?/);
    assert.match(request.message, /The secret is basalt/);
    assert.match(answer.text, /^> It is basalt \[msg_\d+-\d+\]\.\nSources: msg_\d+-\d+/);
    assert.deepEqual([answer.details["by"], answer.details["partial"]], ["delegate", null]);
  });

  it("may cite only what the sub-agent has read with its tools", async () => {
    const world = await createRecallWorld({
      ...long,
      async child({ call }) {
        const [read, unread] = await outside();
        assert.match(await call("lcm_describe", { id: read }), /Small talk/);
        return `They spoke of the weather [${read}] and more [${unread}].`;
      },
    });
    const { own, store, call } = world;
    /** Said after the messages of the leaf, so not among what is read at first. */
    const outside = async (): Promise<readonly [string, string]> => {
      const messages = await store.messages({ conversation: own.id, limit: 2, keep: "newest" });
      const [read, unread] = messages.map(({ id }) => messageName(id));
      return [read ?? "", unread ?? ""];
    };
    const asked = { prompt: "What else?", summaryIds: [own.leaf] };
    const { details } = await call(own.context, "lcm_expand_query", asked);
    const [read, unread] = await outside();
    assert.deepEqual(details["citedMessages"], [read]);
    assert(!JSON.stringify(details).includes(unread));
  });

  it("offers the sub-agent lcm_expand, lcm_describe and lcm_grep, which read under the question's grant", async () => {
    const offered: string[] = [];
    const said: string[] = [];
    const world = await createRecallWorld({
      ...long,
      async child({ request, tools, call }: ChildRun) {
        offered.push(...world.toolsFor(request).map(({ name }) => name));
        const failed = await tools[0]?.execute("1", { id: "msg_1-0" });
        assert(failed?.details["error"], "the host takes it for a failure");
        const [leaf = ""] = /sum_[0-9a-f]{16}/.exec(request.message) ?? [];
        said.push(await call("lcm_expand", { summaryIds: [leaf], includeMessages: true }));
        said.push(await call("lcm_grep", { pattern: "secret" }));
        said.push(await call("lcm_expand_query", question));
        said.push(await call("lcm_describe", { id: "msg_1-20", allConversations: true }));
        return "That is all.";
      },
    });
    await ask(world);
    assert.deepEqual(offered, ["lcm_grep", "lcm_describe", "lcm_expand"]);
    assert.match(said[0] ?? "", /The secret is (basalt|amber)/);
    assert.match(said[1] ?? "", /The secret is basalt/);
    assert.doesNotMatch(said[1] ?? "", /diamond|copper/);
    assert.equal(said[2], "Tool lcm_expand_query not found");
    assert.match(said[3] ?? "", /a delegate can read only the conversations of its grant/);
    assert.equal(world.runs.length, 1);
  });

  it("counts as one call, with all tokens of the sub-agent", async () => {
    const { world } = await asking({ child: async () => await Promise.resolve("None.") });
    const { calls, failures, open, inputTokens, outputTokens } = await usageOf(world);
    assert.deepEqual([calls, failures, open, inputTokens, outputTokens], [1, 0, 0, 642, 60]);
  });

  it("is valid even if its token counts cannot be read, and is read from the session if the run returns none", async () => {
    const child = async (): Promise<string> => await Promise.resolve("It is basalt.");
    const getSessionMessages = async (): Promise<never> => await Promise.reject(new Error("busy"));
    const waitForRun = async () => await Promise.resolve({ status: "ok" } as const);
    for (const subagent of [{ getSessionMessages }, { waitForRun }])
      assert.match((await asking({ child, subagent })).answer.text, /It is basalt/);
    const { answer } = await asking({ child, subagent: { getSessionMessages, waitForRun } });
    assert.equal(answer.details["partial"], "the delegate returned no usable answer");
  });

  it("guarantee 20: starts no sub-agent beyond the ceiling", async () => {
    const config = { ...long.config, spendCeilingCalls: 1 };
    const { world } = await asking({ config, child: async () => await Promise.resolve("None.") });
    const { text, details } = await ask(world);
    assert.equal(world.runs.length, 1);
    assert.match(text, /basalt/);
    assert.match(JSON.stringify(details["partial"]), /^"OpenClaw did not answer \(ceiling\)/);
  });
});

const citing = ({ message }: { readonly message: string }): string => {
  const said = /msg_\d+-\d+(?=[^\n]*\n[^\n]*basalt)|msg_\d+-\d+(?=[^]*?basalt)/.exec(message)?.[0] ?? "none";
  return `It is basalt [${said}].`;
};

describe("afterwards", () => {
  it("nothing remains: the grant is revoked and removed, the session deleted", async () => {
    const held: unknown[] = [];
    const world = await createRecallWorld({
      ...long,
      async child({ request }) {
        held.push(world.runtime.grants.get(request.sessionKey)?.grant);
        return await Promise.resolve("None.");
      },
    });
    await ask(world);
    const [grant] = held;
    assert.equal(typeof grant, "string");
    assert.equal(world.runtime.grants.size, 0);
    assert.notEqual((await world.store.grant(grant as never))?.revokedAt, null);
    assert.deepEqual(
      world.deleted,
      world.runs.map(({ sessionKey }) => sessionKey),
    );
  });

  it("no caller waits for the deletion, and a failure is recorded", async () => {
    const child = async (): Promise<string> => await Promise.resolve("It is basalt.");
    const slow = await asking({ child, subagent: { deleteSession: never } });
    assert.match(slow.answer.text, /It is basalt/);
    const deleteSession = async (): Promise<never> => await Promise.reject(new Error("the session is busy"));
    const { world } = await asking({ child, subagent: { deleteSession } });
    while (world.warnings.length === 0) await settled();
    assert.match(world.warnings.join(), /while deleting .*, which answered a question: the session is busy/);
  });

  it("an interrupted run is deleted again once it has ended, because it may have written until then", async () => {
    const end = Promise.withResolvers<string>();
    const { world } = await asking({ ...short, child: async () => await end.promise });
    await settled();
    assert.equal(world.deleted.length, 1);
    end.resolve("Too late.");
    while (world.deleted.length < 2) await settled();
    assert.deepEqual(new Set(world.deleted), new Set(world.runs.map(({ sessionKey }) => sessionKey)));
  });

  it("the engine stores nothing of such a session", async () => {
    const { runtime, store } = await createRecallWorld();
    const sessionKey = delegateKey("ada", "1");
    const before = await store.status();
    const engine = createEngine({
      id: "lossless-claw",
      version: "1",
      runtime,
      readTranscript: async () => await Promise.reject(new Error("nobody reads it")),
      delegateCompaction: async () => await Promise.resolve({ ok: true, compacted: false, reason: "the host's" }),
    });
    const call = { sessionKey, sessionId: "child" };
    const messages = [{ role: "user", content: "What is the secret?" }];
    const ends = { advancementKey: "t1", terminal: { entryId: "b" } };
    assert.equal((await engine.bootstrap(call)).bootstrapped, false);
    assert.deepEqual((await engine.assemble({ ...call, messages, tokenBudget: 1_000 })).messages, messages);
    assert.deepEqual(await engine.commitTurn({ ...call, ...ends, messages }), { status: "committed" });
    await engine.maintain({ ...call, runtimeContext: { allowDeferredCompactionExecution: true } });
    await engine.afterTurn({ ...call, messages, prePromptMessageCount: 0 });
    assert.equal((await engine.compact({ ...call, force: true })).reason, "the host's");
    await engine.onSubagentEnded({ childSessionKey: sessionKey });
    await runtime.settled();
    assert.deepEqual(await store.status(), before);
  });

  it("the end of the child does not end the question", async () => {
    const world = await createRecallWorld({
      ...long,
      async child({ request, call }) {
        const engine = createEngine({
          id: "lossless-claw",
          version: "1",
          runtime: world.runtime,
          readTranscript: never,
          delegateCompaction: never,
        });
        await engine.onSubagentEnded({ childSessionKey: request.sessionKey, reason: "completed" });
        const [leaf = ""] = /sum_[0-9a-f]{16}/.exec(request.message) ?? [];
        return await call("lcm_expand", { summaryIds: [leaf], includeMessages: true });
      },
    });
    assert.match((await ask(world)).text, /The secret is/);
  });
});

describe("guarantee 24: a question is answered, whatever the host does", () => {
  it("by excerpts at its deadline; a hanging sub-agent is deleted and can read nothing more", async () => {
    const runs: ChildRun[] = [];
    const { world, answer } = await asking({
      ...short,
      async child(run) {
        runs.push(run);
        return await never();
      },
    });
    assert.match(answer.text, /basalt/);
    assert.equal(answer.details["partial"], "the deadline passed while waiting for the delegate");
    await settled();
    const [run = assert.fail("it ran")] = runs;
    assert.deepEqual(world.deleted, [run.request.sessionKey]);
    assert.match(
      await run.call("lcm_describe", { id: "msg_1-1" }),
      /the question has ended, so nothing can be read for it/,
    );
    assert.deepEqual((await usageOf(world)).open, 0);
  });

  it("also if the sub-agent starts too late; then it is deleted too", async () => {
    const late = Promise.withResolvers<{ readonly runId: string }>();
    const { world, answer } = await asking({
      ...short,
      subagent: { run: async () => await late.promise, waitForRun: never },
    });
    assert.match(answer.text, /basalt/);
    assert.equal(world.deleted.length, 0);
    late.resolve({ runId: "r1" });
    await settled();
    assert.equal(world.deleted.length, 1);
    assert.equal(world.runtime.grants.size, 0);
  });

  it("by excerpts with the reason if the sub-agent dies", async () => {
    const { world, answer } = await asking({ child: async () => await Promise.reject(new Error("it was killed")) });
    assert.match(answer.text, /basalt/);
    assert.equal(answer.details["partial"], "OpenClaw did not answer (unreachable): it was killed");
    assert.deepEqual([world.runs.length, world.deleted.length, (await usageOf(world)).failures], [1, 1, 1]);
  });

  it("by the host's model without tools if there are no sub-agents, as one call and without a warning", async () => {
    const { world, answer } = await asking({
      model: async ({ messages }) => await Promise.resolve(citing({ message: messages[0]?.content ?? "" })),
    });
    assert.match(answer.text, /^> It is basalt \[msg_\d+-\d+\]/);
    assert.match(world.completions[0]?.messages[0]?.content ?? "", /There is nothing more to read: answer now/);
    const { calls, failures, inputTokens } = await usageOf(world);
    assert.deepEqual([calls, failures, inputTokens, world.warnings], [1, 0, 70, []]);
    assert.equal(world.runtime.grants.size, 0);
  });

  it("by the host's model if a sub-agent cannot be started, with a warning", async () => {
    const { world, answer } = await asking({
      subagent: { run: async () => await Promise.reject(new Error("too many sub-agents")) },
      model: async () => await Promise.resolve("It is basalt."),
    });
    assert.match(answer.text, /It is basalt/);
    assert.match(world.warnings.join(), /while starting a sub-agent: too many sub-agents/);
  });

  it("by excerpts if there is neither, saying so", async () => {
    const { answer } = await asking({});
    assert.match(answer.text, /basalt/);
    assert.equal(answer.details["by"], "excerpts");
    assert.equal(answer.details["partial"], "OpenClaw did not answer (unreachable): no model is configured");
  });
});

describe("several questions of one session", () => {
  it("are answered one after another; other sessions do not wait", async () => {
    const first = Promise.withResolvers<string>();
    const begun: string[] = [];
    const world = await createRecallWorld({
      ...long,
      async child({ request }) {
        begun.push(request.sessionKey);
        return begun.length === 1 ? await first.promise : "None.";
      },
    });
    const one = ask(world);
    while (begun.length === 0) await settled();
    const two = ask(world);
    await world.call(world.sister.context, "lcm_expand_query", question);
    assert.equal(begun.length, 2, "the sister's has been answered");
    first.resolve("It is basalt.");
    assert.match((await one).text, /It is basalt/);
    await two;
    assert.equal(begun.length, 3);
  });

  it("one that waits too long reports it and is never asked", async () => {
    const first = Promise.withResolvers<string>();
    const world = await createRecallWorld({ ...short, child: async () => await first.promise });
    const lcm = await world.runtime.open();
    const { own, host, runtime } = world;
    const delegate = () => createDelegate({ ...own.context, runtime, lcm, host: () => host, conversation: own.id });
    const task: Task = {
      system: "s",
      prompt: "p",
      grant: "grant_1",
      summaryIds: [],
      maxTokens: 10,
      signal: undefined,
      tools: [],
    };
    const one = delegate()(task);
    const reason = "another question from this session is still being answered";
    assert.deepEqual(await delegate()(task), { kind: "failed", reason });
    first.resolve("At last.");
    assert.equal((await one).kind, "answered");
    await settled();
    assert.equal(world.runs.length, 1);
  });
});
