/** The engine for hosts, on a real database: what it stores, shows, learns, and does when something fails. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import type { Json } from "../../core/base/json.ts";
import type { Timestamp } from "../../core/base/time.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import type { Store } from "../../core/model/store.ts";
import { builtInTemplates } from "../../core/prompts/summary.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createScriptedModel } from "../../../test/support/scripted-model.ts";
import { createHostEngine, type HostEngine, type PromptRequest } from "./engine.ts";
import { runtimeOf, type Runtime } from "./runtime.ts";
import type { HostSession } from "./sessions.ts";

const scratch = makeScratch("engine");
const at = "2026-11-18T12:00:00.000Z" as Timestamp;
const session: HostSession = { host: "pi", sessionId: "s1", folder: "/work" };
const room: PromptRequest = { window: 40_000, reserve: 4_000, overhead: 3_000 };
const runtimes: Runtime[] = [];
after(async () => void (await Promise.all(runtimes.map(async (runtime) => await runtime.close()))));

interface World {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly openStore?: (open: () => Promise<Store>) => Promise<Store>;
}

function createWorld({ config = {}, openStore }: World = {}) {
  const path = join(scratch, `${runtimes.length}.db`);
  const warned: string[] = [];
  const open = async (): Promise<Store> => await openSqlite({ path, housekeeping: false });
  const runtime = runtimeOf({
    path,
    settings: resolveSettings({ env: {}, config }),
    clock: { now: () => at },
    logger: { info: () => undefined, warn: (message) => warned.push(message), error: () => undefined },
    openStore: openStore === undefined ? open : async () => await openStore(open),
    templates: async () => await Promise.resolve(builtInTemplates),
  });
  runtimes.push(runtime);
  const model = createScriptedModel({ behaviour: () => "good" });
  const words = { name: "Pi", shell: "lcm", ownCompaction: "`/compact` uses Pi's own compaction" };
  return { runtime, warned, engine: createHostEngine({ runtime, words, modelOf: () => model }), model };
}

/** A header, then turns of a user message and an answer. */
function rowsOf(turns: number, words = 40): readonly Json[] {
  const entries = Array.from({ length: 2 * turns }, (_, index) => ({
    type: "message",
    id: `e${index}`,
    parentId: index === 0 ? null : `e${index - 1}`,
    timestamp: at,
    message: {
      role: index % 2 === 0 ? "user" : "assistant",
      content: [{ type: "text", text: `plum-${index} ${"and so on ".repeat(words)}` }],
    },
  }));
  return [{ type: "session", version: 3, id: "s1", timestamp: at, cwd: "/elsewhere" }, ...entries];
}

const textOf = (messages: readonly HostMessage[] = []): string => JSON.stringify(messages);

async function shown(engine: HostEngine, request: Partial<PromptRequest> = {}) {
  const prompt = await engine.prompt(session, { ...room, ...request });
  assert(prompt);
  return prompt;
}

describe("guarantee 2: rows that a host hands over", () => {
  it("are stored once, however often and in whatever pieces they come", async () => {
    const { engine, runtime } = createWorld();
    const rows = rowsOf(5);
    assert.equal(await engine.store(session, rows.slice(0, 4), 0), "stored");
    assert.equal(await engine.store(session, rows, 0), "stored");
    assert.equal(await engine.store(session, rows.slice(6), 6), "stored");
    const lcm: Lcm = await runtime.open();
    const [conversation, ...others] = await lcm.store.conversations();
    assert.deepEqual(others, []);
    assert(conversation);
    assert.equal(conversation.sessionKey, "pi:s1");
    assert.equal(conversation.folder, "/work", "what the host says now comes before the header");
    assert.match(conversation.title ?? "", /^plum-0 and so on/, "it is listed by how it began");
    const lines = (await Array.fromAsync(lcm.export(conversation.id))).map((line) => JSON.parse(line));
    assert.deepEqual(lines, rows);
  });

  it("are left alone if the settings exclude the session, which then has no tools either", async () => {
    const { engine, runtime } = createWorld({ config: { ignoreSessionPatterns: ["pi:**"] } });
    assert.equal(await engine.store(session, rowsOf(2), 0), "left");
    assert.equal(await engine.prompt(session, room), null);
    assert.equal((await engine.compact(session, { why: "asked" })).ok, false);
    const { isError, text } = await engine.tool(session, { name: "lcm_grep", args: { pattern: "plum" } });
    assert.ok(isError);
    assert.match(text, /not available in this session/);
    assert.match(await engine.command(session, ""), /It is ignored/);
    assert.equal(runtime.isOpen(), false);
  });

  it("are missing from no prompt: while some could not be stored, there is none", async () => {
    let isBroken = false;
    const { engine, warned } = createWorld({
      async openStore(open) {
        const store = await open();
        const append: Store["append"] = async (...given) => {
          if (isBroken) throw new Error("the disk is full");
          return await store.append(...given);
        };
        return new Proxy(store, { get: (target, name) => (name === "append" ? append : Reflect.get(target, name)) });
      },
    });
    const rows = rowsOf(4);
    await engine.store(session, rows.slice(0, 5), 0);
    isBroken = true;
    assert.equal(await engine.store(session, rows.slice(5), 5), "later");
    assert.equal(await engine.prompt(session, room), null);
    assert.deepEqual(await engine.compact(session, { why: "asked" }), {
      ok: false,
      compacted: false,
      message: "what the host has written is not stored yet",
      ours: null,
    });
    assert.match(warned.join("\n"), /while storing rows of pi:s1: the disk is full/);
    isBroken = false;
    assert.equal(await engine.store(session, rows.slice(5), 5), "stored");
    assert.match(textOf((await shown(engine)).messages), /plum-0 .*plum-7 /);
  });
});

describe("guarantee 12: the room for a prompt", () => {
  it("excludes the host's reserve, what it adds itself, and what the provider counted beyond that", async () => {
    const { engine } = createWorld();
    await engine.store(session, rowsOf(400), 0);
    const first = await shown(engine);
    assert.ok(first.tokens <= 0.9 * 33_000, "a tenth is kept free while nothing is known");
    await engine.learn(session, { kind: "counted", inputTokens: first.tokens + 3_000 + 9_000 });
    const second = await shown(engine);
    assert.ok(second.tokens <= 33_000 - 9_000, `${second.tokens}`);
    for (let answers = 0; answers < 6; answers++)
      await engine.learn(session, { kind: "counted", inputTokens: second.tokens + 3_000 });
    assert.ok((await shown(engine)).tokens > second.tokens, "what is no longer needed is used again");
  });

  it("shrinks with every refusal until the provider accepts, and stays below what was refused", async () => {
    const { engine } = createWorld();
    await engine.store(session, rowsOf(400), 0);
    let last = (await shown(engine)).tokens;
    for (let refusals = 0; refusals < 3; refusals++) {
      await engine.learn(session, { kind: "overflow" });
      const { tokens } = await shown(engine);
      assert.ok(tokens <= 0.75 * last, `${tokens} after ${last}`);
      last = tokens;
    }
    for (let answers = 0; answers < 10; answers++) {
      await engine.learn(session, { kind: "counted", inputTokens: last + 3_000 });
      assert.ok((await shown(engine)).tokens <= last, "larger ones were refused");
    }
  });
});

describe("what a host shows differently", () => {
  it("is shown so: other content, or nothing, while all of it stays stored", async () => {
    const { engine } = createWorld();
    await engine.store(session, rowsOf(3, 1), 0);
    const edits = { e1: null, e2: "something else", e4: [{ type: "text", text: "blocks" }] };
    const { messages } = await shown(engine, { edits });
    assert.deepEqual(
      messages.map(({ content }) => (typeof content === "string" ? content : textOf(content as never))),
      ["plum-0 and so on ", "something else", "plum-3 and so on ", "blocks", "plum-5 and so on "].map((text, index) =>
        index === 1 ? text : JSON.stringify([{ type: "text", text }]),
      ),
    );
    assert.match(textOf((await shown(engine)).messages), /plum-1 .*plum-2 .*plum-4 /);
  });
});

describe("guarantee 17: a compaction that a host asks for", () => {
  const config = { freshTailCount: 4, leafChunkTokens: 2_000, leafTargetTokens: 300 };

  it("gives the host a text for what comes before the first message that it keeps", async () => {
    const { engine } = createWorld({ config });
    await engine.store(session, rowsOf(30), 0);
    const { ok, compacted, ours } = await engine.compact(session, { why: "asked" });
    assert.ok(ok && compacted && ours);
    assert.match(ours.text, /^<summary id="sum_/);
    assert.equal(ours.firstKept, "e56", "the fresh tail");
    const { messages, guidance } = await shown(engine);
    assert.match(textOf(messages.slice(0, 1)), /<summary id=/);
    assert.match(guidance ?? "", /lcm_grep/);
  });

  it("says what it did if there is nothing to fold", async () => {
    const { engine } = createWorld();
    await engine.store(session, rowsOf(3), 0);
    const { ok, compacted, message, ours } = await engine.compact(session, { why: "asked" });
    assert.deepEqual({ ok, compacted, ours }, { ok: true, compacted: false, ours: null });
    assert.match(message, /nothing was folded/);
  });

  it("waits for no model if only the host's own context is too long", async () => {
    const { engine, model } = createWorld({ config });
    await engine.store(session, rowsOf(30), 0);
    assert.equal((await engine.compact(session, { why: "threshold" })).ours, null);
    await engine.compact(session, { why: "asked" });
    const calls = model.calls.length;
    assert.match((await engine.compact(session, { why: "threshold" })).ours?.text ?? "", /<summary id=/);
    assert.equal(model.calls.length, calls);
  });

  it("folds in the background when it is due", async () => {
    const { engine, runtime } = createWorld({ config });
    await engine.store(session, rowsOf(400), 0);
    await shown(engine);
    await engine.foldSoon(session);
    await runtime.settled();
    assert.match(textOf((await shown(engine)).messages.slice(0, 1)), /<summary id=/);
    assert.match(await engine.command(session, "status"), /800 messages stored/);
  });
});

describe("guarantee 25: a tool", () => {
  it("reads the session that calls it", async () => {
    const { engine } = createWorld();
    const other: HostSession = { host: "codex", sessionId: "s2" };
    await engine.store(session, rowsOf(3), 0);
    const call = { name: "lcm_grep", args: { pattern: "plum-4" } };
    assert.match((await engine.tool(session, call)).text, /plum-4/);
    assert.doesNotMatch((await engine.tool(other, call)).text, /plum-4 and/);
    const { isError } = await engine.tool(session, { name: "lcm_expand", args: {} });
    assert.ok(isError, "which is for delegates");
  });
});

describe("guarantee 35: prompts for a host", () => {
  const recordedBy = async (runtime: Runtime) => {
    await runtime.settled();
    const lcm = await runtime.open();
    const [conversation] = await lcm.store.conversations();
    assert(conversation);
    return { lcm, records: await lcm.prompts(conversation.id) };
  };

  it("are recorded as they are sent, with the model and what came of them", async () => {
    const { engine, runtime } = createWorld();
    await engine.store(session, rowsOf(4), 0);
    const first = await shown(engine, { model: "scripted/one" });
    await engine.learn(session, { kind: "counted", inputTokens: first.tokens + 3_000, cachedTokens: 1_000 });
    await engine.store(session, rowsOf(6), 0);
    await shown(engine, { model: "scripted/one" });
    await engine.learn(session, { kind: "overflow", countedTokens: 99 });
    const { lcm, records } = await recordedBy(runtime);
    assert.deepEqual(
      records.map(({ number, newestSeq, outcome, counted, cached, head }) => [
        number,
        newestSeq,
        outcome,
        counted,
        cached,
        head.model,
      ]),
      [
        [1, 8, "answered", first.tokens + 3_000, 1_000, "scripted/one"],
        [2, 12, "overflow", 99, null, "scripted/one"],
      ],
    );
    const [record] = records;
    assert(record);
    const { isExact, assembly } = await lcm.rebuild(record);
    assert.equal(isExact, true);
    assert.deepEqual(assembly.messages, first.messages);
  });

  it("are recorded as the host's own if ours was not used, or rows were missing", async () => {
    const { engine, runtime } = createWorld();
    await engine.store(session, rowsOf(2), 0);
    await shown(engine);
    await engine.learn(session, { kind: "unused" });
    const { records } = await recordedBy(runtime);
    assert.deepEqual(
      records.map(({ head }) => head.hosts ?? null),
      [null, "our prompt did not have the running turn"],
    );
  });

  it("are no problem of their own while the database cannot be opened", async () => {
    const { engine, runtime, warned } = createWorld({
      openStore: async () => await Promise.reject(new Error("no such folder")),
    });
    await engine.store(session, rowsOf(2), 0);
    assert.equal(await engine.prompt(session, room), null);
    await runtime.settled();
    assert.deepEqual(warned, ["while storing rows of pi:s1: no such folder"]);
  });

  it("hold no turn up: a record that fails is noted and missing, and the next is written", async () => {
    let isBroken = true;
    const { engine, runtime, warned } = createWorld({
      openStore: async (open) => {
        const store = await open();
        const recordPrompt: Store["recordPrompt"] = async (...args) => {
          if (isBroken) throw new Error("the disk is full");
          return await store.recordPrompt(...args);
        };
        return { ...store, recordPrompt };
      },
    });
    await engine.store(session, rowsOf(2), 0);
    await shown(engine);
    await engine.learn(session, { kind: "counted", inputTokens: 5_000 });
    await runtime.settled();
    assert.ok(warned.some((line) => /recording a prompt of pi:s1: the disk is full/.test(line)));
    isBroken = false;
    await shown(engine);
    const { records } = await recordedBy(runtime);
    assert.deepEqual(
      records.map(({ number, outcome }) => [number, outcome]),
      [[1, null]],
    );
  });
});
