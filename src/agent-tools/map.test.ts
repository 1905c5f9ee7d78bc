import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { createHonestReader } from "../../test/support/honest-reader.ts";
import { makeScratch } from "../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../test/support/scripted-host.ts";
import type { Json } from "../core/base/json.ts";
import type { Timestamp } from "../core/base/time.ts";
import { createLcm, type Lcm } from "../core/lcm.ts";
import type { Model } from "../core/model/store.ts";
import { resolveSettings } from "../core/model/settings.ts";
import type { ConversationId, FileId } from "../core/model/types.ts";
import { openSqlite } from "../store/sqlite/store.ts";
import { tools } from "./all.ts";
import type { ToolContext } from "./define.ts";

const folder = makeScratch("map-tool");
after(() => rmSync(folder, { recursive: true, force: true }));

const now = "2026-02-17T09:00:00.000Z" as Timestamp;
let databases = 0;

async function openLcm(model: Model | null, config: Record<string, Json> = {}): Promise<Lcm> {
  const path = join(folder, `${++databases}.db`);
  const store = await openSqlite({ path, housekeeping: false, now: () => now });
  return createLcm({ store, clock: { now: () => now }, settings: resolveSettings({ env: {}, config }).values, model });
}

async function tell(lcm: Lcm, name: string, texts: readonly string[]): Promise<ConversationId> {
  const { id } = await lcm.store.openSession({ sessionId: name, sessionKey: name, agentId: name });
  const host = createHost(name);
  for (const text of texts) host.says(user(text));
  await lcm.store.append(id, host.entries.map(toAppendable));
  return id;
}

const run = async (name: string, args: unknown, context: ToolContext) =>
  await (tools.find((tool) => tool.name === name) ?? assert.fail()).run(args, context);

const logs = Array.from({ length: 40 }, (_, n) => `Log ${n}: ${n % 4 === 0 ? "rain fell" : "it was dry"}.`);
const schema = { type: "object", properties: { rain: { type: "boolean" } }, required: ["rain"] };
const isRainy = (text: string): Json => ({ rain: text.includes("rain fell") });
const asked = { prompt: "Did it rain?", schema };

describe("lcm_map", () => {
  it("stores a line per message in the session's own file, and shows the first ones", async () => {
    const lcm = await openLcm(createHonestReader(isRainy));
    const id = await tell(lcm, "ada", logs);
    const context = { lcm, reader: { conversation: id, policy: "agent" } } as const;
    const progress: unknown[] = [];
    const { text, details, isError } = await run("lcm_map", asked, {
      ...context,
      onProgress: (at) => progress.push(at),
    });
    assert.equal(isError, false);
    assert.match(
      text,
      /^40 results for 40 messages \(1 call, [\d,]+ tokens in and [\d,]+ out\)\.\nStored as file_\w{16}, one line/,
    );
    assert.match(
      text,
      /\nThe first 5 lines:\n> \{"id":"msg_1-1","at":"2026-02-17T07:37:00\.000Z","role":"user","result":\{"rain":true\}\}\n> /,
    );
    const [file] = details["files"] as { id: FileId; conversationId: number }[];
    assert.equal(file?.conversationId, id);
    const lines = (await lcm.store.fileContent(file.id))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.equal(lines.filter((line) => line.result.rain === true).length, 10);
    assert.deepEqual(progress, [{ kind: "mapping", done: 40, of: 40, calls: 1 }]);
    const described = await run("lcm_describe", { id: file.id, fromLine: 40 }, context);
    assert.match(described.text, /"id":"msg_1-40"/);
  });

  it("takes a schema as a string, a query, a time and a role", async () => {
    const lcm = await openLcm(createHonestReader(isRainy));
    const id = await tell(lcm, "ada", logs);
    const context = { lcm, reader: { conversation: id, policy: "agent" } } as const;
    const count = async (more: object): Promise<unknown> =>
      (await run("lcm_map", { ...asked, schema: JSON.stringify(schema), ...more }, context)).details["results"];
    assert.equal(await count({ query: "rain" }), 10);
    assert.equal(await count({ since: "2026-02-17T07:37:30Z" }), 10);
    assert.equal(await count({ role: "assistant" }), 0);
    assert.equal(await count({ role: "user", query: "rain", before: "2026-02-17T07:37:05Z" }), 2);
  });

  it("returns the plan instead if it would spend more than allowed, or more calls than are left", async () => {
    const model = createHonestReader(isRainy);
    for (const [config, why] of [
      [{ mapTokens: 500 }, /more than the 500 tokens allowed \(setting mapTokens\)/],
      [{ spendCeilingCalls: 0 }, /more than the 0 model calls left in the current 60 minutes/],
    ] as const) {
      const lcm = await openLcm(model, config);
      const id = await tell(lcm, "ada", logs);
      const context = { lcm, reader: { conversation: id, policy: "agent" } } as const;
      for (const [name, args] of [
        ["lcm_map", asked],
        ["lcm_expand_query", { prompt: "How often did it rain?", thorough: true }],
      ] as const) {
        const { text, details, isError } = await run(name, args, context);
        assert.match(text, why);
        assert.match(text, /The plan: 40 messages to read; \d calls?, [\d,]+ tokens\.\nNarrow it with since/);
        assert.deepEqual([details["ran"], isError], [false, false]);
      }
    }
    assert.equal(model.calls.length, 0);
  });

  it("answers before its time is up, and continues when it is called again", async () => {
    const honest = createHonestReader(isRainy);
    let calls = 0;
    const slow: Model = {
      ...honest,
      complete: async (request) =>
        ++calls > 1 ? await new Promise<never>(() => undefined) : await honest.complete(request),
    };
    const lcm = await openLcm(slow, { expandTimeoutSeconds: 1, summaryConcurrency: 1 });
    const id = await tell(lcm, "ada", [...logs, ...logs]);
    const context = { lcm, reader: { conversation: id, policy: "agent" } } as const;
    const { text, details } = await run("lcm_map", asked, context);
    assert.match(
      text,
      /30 messages not read \(30 not reached\): msg_1-51…msg_1-80\.\nStopped: the time limit was reached; call it again/,
    );
    assert.equal(details["results"], 50);
    const second = await run("lcm_map", asked, { ...context, model: lcm.metered(honest) });
    assert.match(second.text, /^80 results for 80 messages \(1 call/);
  });

  it("reports a missing model, a bad schema and a bad id as errors", async () => {
    const lcm = await openLcm(null);
    const id = await tell(lcm, "ada", logs);
    const context = { lcm, reader: { conversation: id, policy: "agent" } } as const;
    for (const [args, problem] of [
      [asked, /^lcm_map: reading every message needs a model/],
      [{ prompt: "x" }, /schema is missing: it must be an object/],
      [{ prompt: "x", schema: "yes" }, /schema is "yes", but must be an object/],
      [{ prompt: "x", schema: { type: "string", format: "date" } }, /uses "format", which is not supported/],
      [{ ...asked, summaryIds: ["sum_1"] }, /sum_1/],
      [{ ...asked, role: "robot" }, /role is "robot", but must be one of system, user, assistant, tool/],
      [{ ...asked, since: "soon" }, /since is "soon"/],
    ] as const) {
      const { text, isError } = await run("lcm_map", args, context);
      assert.match(text, problem);
      assert.equal(isError, true);
    }
  });
});

describe("guarantee 25: lcm_map and thorough questions read no further than the caller may", () => {
  it("another agent's messages are neither read nor stored, and a delegate cannot call it", async () => {
    const model = createHonestReader((text) => ({
      rain: true,
      facts: [{ subject: "log", statement: text, quote: text }],
    }));
    const lcm = await openLcm(model);
    const own = await tell(lcm, "ada", ["the secret is amber"]);
    const foreign = await tell(lcm, "bob", ["the secret is diamond"]);
    const context = { lcm, reader: { conversation: own, policy: "agent" } } as const;
    const calls = [
      ["lcm_map", asked],
      ["lcm_expand_query", { prompt: "Which secrets?", thorough: true }],
    ] as const;
    for (const [name, args] of calls) {
      for (const wider of [{}, { allConversations: true }]) {
        const { text, details } = await run(name, { ...args, ...wider }, context);
        assert.doesNotMatch(text + JSON.stringify(details), /diamond/);
      }
      const named = await run(name, { ...args, conversationId: foreign }, context);
      assert.match(named.text, /there is no conversation 2/);
      const delegate = await run(name, args, { ...context, grant: "grant_0" });
      assert.match(delegate.text, /is not available to a delegate/);
    }
    assert.doesNotMatch(JSON.stringify(model.calls), /diamond/);
    assert.deepEqual(await lcm.store.files(foreign), []);
  });
});

describe("lcm_expand_query with thorough", () => {
  it("answers with exact counts, the ids that prove them, and what was read", async () => {
    const factsOf = (text: string): Json => ({
      facts: text.includes("rain fell") ? [{ subject: "rain", statement: "Rain fell.", quote: "rain fell" }] : [],
    });
    const lcm = await openLcm(createHonestReader(factsOf));
    const id = await tell(lcm, "ada", logs);
    const context = { lcm, reader: { conversation: id, policy: "agent" } } as const;
    const args = { prompt: "How often did it rain?", thorough: true };
    const { text, details } = await run("lcm_expand_query", args, context);
    assert.match(
      text,
      /^> Counted: 40 messages read; 10 facts in 10 messages; 1 distinct subject\. \[msg_1-1\] \[msg_1-5\] \[msg_1-9\]\n/,
    );
    assert.match(
      text,
      /\nSources: msg_1-1, msg_1-5, msg_1-9\. Read 40 of 40 messages \(2 calls, .*\): 10 facts in 10 messages\. All facts: file_\w+/,
    );
    const { unread, ...reading } = details["reading"] as { unread: unknown };
    assert.deepEqual(unread, []);
    assert.deepEqual(
      { ...reading, spent: 0, files: 0 },
      {
        facts: 10,
        matching: 10,
        subjects: [{ subject: "rain", facts: 10, messages: 10 }],
        messages: 40,
        read: 40,
        dropped: 0,
        spent: 0,
        files: 0,
      },
    );
    const half = await run("lcm_expand_query", { ...args, since: "2026-02-17T07:37:20Z" }, context);
    assert.match(half.text, /Counted: 20 messages read; 5 facts/);
  });

  it("refuses a time range without it", async () => {
    const lcm = await openLcm(null);
    const id = await tell(lcm, "ada", logs);
    const context = { lcm, reader: { conversation: id, policy: "agent" } } as const;
    const { text, isError } = await run("lcm_expand_query", { prompt: "Rain?", since: "7d" }, context);
    assert.match(text, /since and before need thorough: true/);
    assert.equal(isError, true);
  });
});
