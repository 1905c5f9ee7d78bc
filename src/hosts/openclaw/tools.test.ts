import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LcmError } from "../../core/base/errors.ts";
import { messageName } from "../../core/model/types.ts";
import type { NewGrant } from "../../core/model/store.ts";
import { createRecallWorld, textOf } from "../../../test/support/recall-world.ts";
import type { Place, RecallWorld } from "../../../test/support/recall-world.ts";
import { createHost, toAppendable } from "../../../test/support/scripted-host.ts";
import { itemsIn, lineFor } from "../../../test/support/honest-reader.ts";
import type { LlmRequest } from "./host-api.ts";
import { tools } from "../../agent-tools/all.ts";
import { createTool } from "./tools.ts";
import type { Json } from "../../core/base/json.ts";
import { msToTimestamp, timestampToMs } from "../../core/base/time.ts";

const reading = ["lcm_grep", "lcm_describe", "lcm_expand_query", "lcm_recent", "lcm_map"];
const ordinary = [...reading, "lcm_pin"];
const namesIn = (offered: readonly { readonly name: string }[]): readonly string[] => offered.map(({ name }) => name);

/** A child that forks the main session's context; its own session may be stored too. */
const child = { agentId: "ada", sessionKey: "agent:ada:subagent:one", sessionId: "c1" };

async function grant({ store, runtime, own }: RecallWorld, more: Partial<NewGrant> = {}): Promise<void> {
  const expiresAt = msToTimestamp(timestampToMs(runtime.clock.now()) + 60_000);
  const made = await store.issueGrant({
    conversations: [own.id],
    tokenCap: 1_000,
    expiresAt,
    parent: null,
    ...more,
  });
  runtime.grants.set(child.sessionKey, { grant: made.id });
}

describe("which session is offered which tools", () => {
  it("offers an ordinary session all but lcm_expand", async () => {
    const { toolsFor, own } = await createRecallWorld();
    assert.deepEqual(namesIn(toolsFor(own.context)), ordinary);
    assert(toolsFor(own.context).every(({ catalogMode, parameters }) => catalogMode === "direct-only" && parameters));
  });

  it("also offers lcm_expand to a child with a grant, and to no other", async () => {
    const world = await createRecallWorld();
    assert.deepEqual(namesIn(world.toolsFor(child)), ordinary);
    await grant(world);
    assert.deepEqual(namesIn(world.toolsFor(child)), [...reading, "lcm_expand", "lcm_pin"]);
    assert.deepEqual(namesIn(world.toolsFor(world.own.context)), ordinary);
  });

  it("offers none to an ignored session, and the recall tools to a read-only one", async () => {
    const { toolsFor } = await createRecallWorld({
      config: { ignoreSessionPatterns: ["agent:*:cron:*"], statelessSessionPatterns: ["agent:*:scratch"] },
    });
    assert.deepEqual(toolsFor({ sessionKey: "agent:ada:cron:1", agentId: "ada" }), []);
    assert.deepEqual(toolsFor({ agentId: "ada" }), []);
    assert.deepEqual(namesIn(toolsFor({ sessionKey: "agent:ada:scratch", agentId: "ada" })), reading);
    const disabled = await createRecallWorld({ config: { enabled: false } });
    assert.deepEqual(disabled.toolsFor(disabled.own.context), []);
  });

  it("hides them if settings are invalid, and logs that once", async () => {
    const { own, host } = await createRecallWorld();
    const errors: string[] = [];
    const logger = { info: () => undefined, warn: () => undefined, error: (text: string) => errors.push(text) };
    const runtime = (): never => {
      throw new LcmError("invalid", "freshTailCount is -3, but must be at least 1");
    };
    for (const tool of tools) assert.equal(createTool(tool, own.context, { runtime, host: () => host, logger }), null);
    assert.deepEqual(errors, ["the lcm tools are unavailable: freshTailCount is -3, but must be at least 1"]);
  });
});

describe("running a tool", () => {
  it("reads the session's own family, with the same details for programs", async () => {
    const { call, own, earlier } = await createRecallWorld();
    const found = await call(own.context, "lcm_grep", { pattern: "secret", mode: "full_text" });
    assert.match(textOf(found), /basalt[^]*amber|amber[^]*basalt/);
    assert.doesNotMatch(textOf(found), /copper|diamond/);
    assert.equal(found.details["total"], 4);
    const described = await call(own.context, "lcm_describe", { id: messageName(earlier.message) });
    assert.match(textOf(described), /The secret is amber/);
    assert.equal(described.details["id"], messageName(earlier.message));
    assert.match(textOf(await call(own.context, "lcm_recent", {})), /basalt/);
  });

  it("searches for words, and does not find the call that asked", async () => {
    const { call, own, store } = await createRecallWorld();
    const input = { pattern: "keeper basalt secret" };
    const host = createHost("asking");
    host.says({ role: "assistant", content: [{ type: "toolCall", id: "t1", name: "lcm_grep", arguments: input }] });
    await store.append(own.id, host.entries.map(toAppendable));
    const found = await call(own.context, "lcm_grep", input);
    assert.match(textOf(found), /^The \d+ best matches; times in UTC:\n[^]*> The secret is basalt/);
    assert.doesNotMatch(textOf(found), /lcm_grep|pattern/);
  });

  it("returns a refusal with its hint, in a form that the host treats as a failure", async () => {
    const { call, own, warnings } = await createRecallWorld();
    const { content, details } = await call(own.context, "lcm_describe", { id: "sum_ffffffffffffffff" });
    assert.match(content[0]?.text ?? "", /^lcm_describe: [^\n]+\.\nHint: [^\n]+\.$/);
    assert.match(JSON.stringify(details["error"]), /"code":"not_found"/);
    assert.deepEqual(warnings, []);
  });

  it("reports a problem with the database in the result, and records it", async () => {
    const { runtime, host, own } = await createRecallWorld();
    for (const error of [new LcmError("unavailable", "it is locked", { hint: "wait" }), new TypeError("x is not y")]) {
      const broken = { ...runtime, settings: runtime.settings, clock: runtime.clock, logger: runtime.logger };
      broken.open = async () => await Promise.reject(error);
      const [grep] = tools;
      const made = grep && createTool(grep, own.context, { runtime: () => broken, host: () => host });
      const output = (await made?.execute("1", { pattern: "x" })) ?? assert.fail("it is offered");
      const hint = error instanceof LcmError ? "\nHint: wait." : "";
      assert.equal(textOf(output), `lcm_grep: ${error.message}.${hint}`);
      assert(output.details["error"]);
      assert.equal(runtime.troubles.at(-1)?.message.startsWith(error.message), true);
    }
  });

  it("reports the progress of a question", async () => {
    const { call, own } = await createRecallWorld({ child: async () => await Promise.resolve("None.") });
    const updates: string[] = [];
    const question = { query: "secret", prompt: "What is the secret?" };
    await call(own.context, "lcm_expand_query", question, (update) => updates.push(textOf(update)));
    assert.match(updates[0] ?? "", /^searching for "secret"$/);
    assert(updates.some((text) => text.startsWith("reading ")));
  });

  it("expands under the grant of a child, and spends from it", async () => {
    const world = await createRecallWorld();
    await grant(world);
    const { own, runtime, store } = world;
    const read = await world.call(child, "lcm_expand", { summaryIds: [own.leaf], includeMessages: true });
    assert.match(textOf(read), /The secret is basalt/);
    const held = await store.grant(runtime.grants.get(child.sessionKey)?.grant ?? "grant_none");
    assert((held?.tokensUsed ?? 0) > 0);
  });
});

/** Arguments with which each tool might reveal a hidden place, directly or by its conversation number. */
const ways: readonly { readonly name: string; readonly args: (place: Place) => { readonly [name: string]: Json } }[] = [
  { name: "lcm_grep", args: ({ secret }) => ({ pattern: secret }) },
  { name: "lcm_describe", args: ({ message }) => ({ id: messageName(message) }) },
  { name: "lcm_describe", args: ({ leaf }) => ({ id: leaf }) },
  { name: "lcm_expand_query", args: ({ leaf }) => ({ prompt: "Tell the secret.", summaryIds: [leaf] }) },
  { name: "lcm_expand_query", args: () => ({ prompt: "Tell the secret.", query: "secret keeper" }) },
  { name: "lcm_recent", args: () => ({}) },
];

describe("guarantee 25: the tools of a host read for the session that calls them", () => {
  for (const { name, args } of ways) {
    for (const wider of ["", "conversationId", "allConversations"]) {
      it(`${name} ${Object.keys(args({} as Place)).join(" ")} ${wider}: never another agent's session`, async () => {
        const { call, own, stranger } = await createRecallWorld();
        const asked = {
          ...args(stranger),
          ...(wider === "conversationId" && { conversationId: stranger.id }),
          ...(wider === "allConversations" && { allConversations: true }),
        };
        assert.doesNotMatch(JSON.stringify(await call(own.context, name, asked)), /is diamond|secret: diamond/);
      });
    }
    it(`${name} ${Object.keys(args({} as Place)).join(" ")}: its own, asked in the same way`, async () => {
      const { call, own } = await createRecallWorld();
      assert.match(textOf(await call(own.context, name, args(own))), /is basalt|secret: basalt/);
    });
  }

  it("lcm_map and a thorough question read by the host's model, and never another agent's session", async () => {
    const model = async ({ messages: [message] }: LlmRequest): Promise<string> => {
      const items = itemsIn(message?.content ?? "");
      const lines = items.map((item) => lineFor(item, { facts: [], text: item.text }));
      return await Promise.resolve(items.length === 0 ? "Nothing." : lines.join("\n"));
    };
    const world = await createRecallWorld({ model });
    const schema = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
    const asked = { prompt: "Copy it.", schema, query: "secret" };
    const { call, own, stranger, completions } = world;
    assert.match(textOf(await call(own.context, "lcm_map", asked)), /^\d results[^]*secret is basalt/);
    assert.match(textOf(await call(own.context, "lcm_map", { ...asked, allConversations: true })), /[^]*\d results/);
    const foreign = await call(own.context, "lcm_map", { ...asked, conversationId: stranger.id });
    assert.match(textOf(foreign), /there is no conversation/);
    const thorough = { prompt: "Which secrets are there?", thorough: true, allConversations: true };
    assert.match(textOf(await call(own.context, "lcm_expand_query", thorough)), /None of \d+ messages/);
    assert.doesNotMatch(JSON.stringify(completions), /diamond/);
    assert.match(JSON.stringify(completions), /copper/);
    assert.equal((await (await world.runtime.open()).spend()).usage.calls, completions.length);
  });

  it("a session that is not stored reads its agent's sessions on request, and no others", async () => {
    const { call } = await createRecallWorld({ config: { statelessSessionPatterns: ["agent:ada:scratch"] } });
    for (const sessionKey of ["agent:ada:scratch", "agent:ada:fresh"]) {
      const context = { sessionKey, agentId: "ada", sessionId: "s9" };
      const ask = async (more: object): Promise<string> =>
        textOf(await call(context, "lcm_grep", { pattern: "secret", mode: "full_text", ...more }));
      assert.doesNotMatch(await ask({}), /amber|basalt|copper|diamond/);
      const all = await ask({ allConversations: true });
      assert(["amber", "basalt", "copper"].every((secret) => all.includes(secret)));
      assert.doesNotMatch(all, /diamond/);
    }
  });

  it("a read-only session has no session of its own, whatever was stored under its key before", async () => {
    const { call, own } = await createRecallWorld({ config: { statelessSessionPatterns: ["agent:ada:main"] } });
    assert.doesNotMatch(textOf(await call(own.context, "lcm_grep", { pattern: "secret" })), /amber|basalt/);
  });

  it("a child uses its grant only to expand; its other tools read without it", async () => {
    const world = await createRecallWorld();
    await grant(world);
    assert.match(textOf(await world.call(child, "lcm_grep", { pattern: "secret" })), /^No match/);
    const described = await world.call(child, "lcm_describe", { id: world.own.leaf });
    assert.match(JSON.stringify(described.details), /"code":"not_found"/);
  });

  it("a session restarted under the key of a deleted one does not read as the old one", async () => {
    const { call, store, own } = await createRecallWorld();
    await store.append(own.id, [], { hostCursor: "here" });
    const next = { ...own.context, sessionId: "s10" };
    assert.doesNotMatch(textOf(await call(next, "lcm_grep", { pattern: "secret" })), /amber|basalt/);
  });

  it("the operator's policies `all` and `own` are honoured", async () => {
    const widest = await createRecallWorld({ config: { scopePolicy: "all" } });
    const all = { pattern: "diamond", allConversations: true };
    assert.match(textOf(await widest.call(widest.own.context, "lcm_grep", all)), /is diamond/);
    const narrow = await createRecallWorld({ config: { scopePolicy: "own" } });
    const refused = await narrow.call(narrow.own.context, "lcm_grep", { ...all, pattern: "copper" });
    assert.match(textOf(refused), /scopePolicy own/);
  });

  it("lcm_expand reads nothing under a grant that is forged, expired, revoked, used up or foreign", async () => {
    const spoil: Readonly<Record<string, (world: RecallWorld) => unknown>> = {
      forged: ({ runtime }) => runtime.grants.set(child.sessionKey, { grant: "grant_0123456789abcdef" }),
      expired: (world) => world.pass(61_000),
      revoked: async ({ store, runtime }) =>
        await store.revokeGrant(runtime.grants.get(child.sessionKey)?.grant ?? "grant_none"),
      exhausted: async (world) => await grant(world, { tokenCap: 1 }),
      foreign: async (world) => await grant(world, { conversations: [world.stranger.id] }),
    };
    for (const [how, change] of Object.entries(spoil)) {
      const world = await createRecallWorld();
      await grant(world);
      await change(world);
      const args = { summaryIds: [world.own.leaf], includeMessages: true };
      const output = await world.call(child, "lcm_expand", args);
      assert.doesNotMatch(textOf(output), /basalt/, how);
    }
  });

  it("a child whose grant ended while it ran reads nothing more", async () => {
    const world = await createRecallWorld();
    await grant(world);
    const expand = world.toolsFor(child).find(({ name }) => name === "lcm_expand") ?? assert.fail("offered");
    world.runtime.grants.delete(child.sessionKey);
    const output = await expand.execute("1", { summaryIds: [world.own.leaf], includeMessages: true });
    assert.match(textOf(output), /^lcm_expand: lcm_expand needs a grant, and there is none/);
  });
});

describe("a session that answers a question", () => {
  const key = "agent:ada:subagent:lcm-question-1";

  it("is offered nothing without a question", async () => {
    const { toolsFor } = await createRecallWorld();
    assert.deepEqual(toolsFor({ sessionKey: key, agentId: "ada" }), []);
  });
});
