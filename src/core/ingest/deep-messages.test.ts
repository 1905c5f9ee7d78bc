/** JSON that is nested more deeply than programs can walk: stored whole, without words, and in nobody's way. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openSqlite } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createScriptedModel } from "../../../test/support/scripted-model.ts";
import { jsonText, type Json, type JsonObject } from "../base/json.ts";
import type { Timestamp } from "../base/time.ts";
import { createLcm, type Lcm } from "../lcm.ts";
import { forgetMessage, redactMessage } from "../maintenance/redact.ts";
import { messageFromStore, messageToStore, readableMessage, type Incoming } from "../messages/codec.ts";
import { resolveSettings } from "../model/settings.ts";
import { forgottenMark } from "../model/types.ts";
import { importTranscript, type SourceLine } from "./import-transcript.ts";
import { restoreMessage } from "./large-content.ts";

const at = "2026-02-17T08:00:00.000Z" as Timestamp;

/** Objects with numbered fields, because newer engines write others at any depth. */
const nested = (levels: number, inner: Json = "harpsichord"): Json => {
  let value = inner;
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { 0: value };
  return value;
};

/** Everywhere that a host may put something. */
const places: Readonly<Record<string, (deep: Json) => JsonObject>> = {
  "a content that is not text": (deep) => ({ role: "user", content: deep }),
  "an unknown block": (deep) => ({ role: "user", content: [{ type: "tree", root: deep }] }),
  "the arguments of a call": (deep) => ({
    role: "assistant",
    content: [{ type: "toolCall", id: "c1", name: "plant", arguments: { tree: deep } }],
  }),
  "the content of a result": (deep) => ({
    role: "user",
    content: [{ type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "ok" }, deep] }],
  }),
  "the details of a result": (deep) => ({
    role: "toolResult",
    toolCallId: "c1",
    toolName: "plant",
    content: [{ type: "text", text: "ok" }],
    details: deep,
  }),
  "a call beside the content": (deep) => ({
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c1", function: { name: "plant", arguments: "{}" }, more: deep }],
  }),
  "a block beside a picture": (deep) => ({
    role: "user",
    content: [
      { type: "image", data: "QUJD".repeat(2_000), mimeType: "image/png" },
      { type: "x", deep },
    ],
  }),
  "a field of its own": (deep) => ({ role: "system", more: deep }),
  "a role of the host": (deep) => ({ role: "bashExecution", output: "done", more: deep }),
};

const around = (text: string): JsonObject => ({ role: "user", content: text });

async function onLcm(test: (lcm: Lcm) => Promise<void>): Promise<void> {
  const folder = makeScratch("deep");
  const store = await openSqlite({ path: join(folder, "lcm.db"), filesDir: join(folder, "files") });
  const lcm = createLcm({
    store,
    clock: { now: () => at },
    settings: resolveSettings({ env: {}, config: {} }).values,
    model: createScriptedModel({ behaviour: () => "good" }),
  });
  try {
    await test(lcm);
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const incoming = (messages: readonly JsonObject[]): readonly Incoming[] =>
  messages.map((message, index) => ({ kind: "message", message, key: `k${index}`, at }));

describe("guarantee 4: a message that is nested too deeply to be walked is stored whole, without words", () => {
  for (const [place, put] of Object.entries(places)) {
    for (const levels of [9_000, 100_000]) {
      it(`${place}, ${levels} levels deep, and everything around it`, async () => {
        await onLcm(async (lcm) => {
          const messages = [around("before the tree"), put(nested(levels)), around("after the tree")];
          const { id } = await lcm.store.open({ sessionId: "s" });
          const first = await lcm.ingest(id, incoming(messages));
          assert.equal(first.messages.length, 3);
          const again = await lcm.ingest(id, incoming(messages));
          assert.deepEqual([again.duplicates, again.differing], [3, []]);

          const lines = await Array.fromAsync(lcm.export(id));
          assert.ok(lines.every((line, index) => line === jsonText(messages[index]!)));
          const [, stored = assert.fail()] = await lcm.store.messages({ conversation: id });
          assert.equal(jsonText(await restoreMessage(lcm.store, stored)), jsonText(messages[1]!));
          assert.equal(stored.text, "");
          const { hits } = await lcm.grep({
            pattern: "harpsichord",
            mode: "full_text",
            reach: { kind: "all", conversations: null },
          });
          assert.deepEqual(hits, []);
        });
      });
    }
  }

  it("it takes part in everything else: prompts, compaction, checks and reading", async () => {
    await onLcm(async (lcm) => {
      const { id } = await lcm.store.open({ sessionId: "s" });
      const messages = Object.values(places).flatMap((put, nth) => [
        around(`question ${nth}: ${"where is the ferry? ".repeat(40)}`),
        put(nested(9_000)),
      ]);
      messages.push(...messages);
      await lcm.ingest(id, incoming(messages));
      const assembly = await lcm.assemble(id, { budget: 100_000 });
      const shown = JSON.stringify(assembly.messages);
      assert.ok(shown.includes("question 8") && shown.includes("nested too deeply to be shown"), shown.slice(0, 2_000));
      assert.deepEqual(await lcm.inspect(id), []);
      const report = await lcm.compact({ conversation: id, mode: "sweep" });
      assert.notEqual(report.outcome.kind, "failed");
      assert.deepEqual(await lcm.inspect(id), []);
      const lines = await Array.fromAsync(lcm.export(id));
      assert.ok(lines.every((line, index) => line === jsonText(messages[index]!)));
    });
  });

  it("one whose key is stored with another content is reported as differing", async () => {
    await onLcm(async (lcm) => {
      const { id } = await lcm.store.open({ sessionId: "s" });
      await lcm.ingest(id, incoming([around("a shrub")]));
      const { differing } = await lcm.ingest(id, incoming([{ role: "user", content: nested(9_000) }]));
      assert.deepEqual(differing, ["k0"]);
    });
  });

  it("500 levels are walked, and 501 are not", () => {
    const encode = (levels: number) => messageToStore({ role: "user", content: nested(levels) }, { key: "k", at });
    assert.match(encode(499).parts[0]?.text ?? "", /harpsichord/);
    const sealed = encode(500);
    assert.deepEqual(
      sealed.parts.map(({ text }) => text),
      [null],
    );
    assert.equal(jsonText(messageFromStore(sealed)), jsonText({ role: "user", content: nested(500) }));
    assert.deepEqual(Object.keys(readableMessage(sealed)), ["role", "content"]);
    assert.ok(sealed.tokens < 50, "it costs what its note costs");
  });

  it("a message whose envelope looks like a sealed one is decoded as itself", () => {
    for (const raw of [
      { role: "user", content: ["[]"] },
      { role: "user", content: [["{}"]], 0: "{}" },
    ]) {
      assert.deepEqual(messageFromStore(messageToStore(raw, { key: "k", at })), raw);
    }
  });

  it("a value that contains itself is refused", () => {
    const ring: Json[] = [];
    let end = ring;
    for (let level = 0; level < 20_000; level++) {
      const next: Json[] = [];
      end.push(next);
      end = next;
    }
    end.push(ring);
    assert.throws(() => messageToStore({ role: "user", content: ring }, { key: "k", at }), {
      name: "LcmError",
      code: "invalid",
    });
  });
});

describe("guarantee 4: a transcript line that is nested too deeply", () => {
  const lines: Readonly<Record<string, JsonObject>> = {
    "around a message": { type: "message", id: "e1", message: around("in the middle"), more: nested(9_000) },
    "that is not a message": { type: "custom", id: "e2", data: nested(9_000) },
    "without a type": { id: "e3", data: nested(100_000) },
  };
  for (const [which, line] of Object.entries(lines)) {
    it(`${which} is imported with everything around it, and exported equal`, async () => {
      await onLcm(async (lcm) => {
        const all = [around("first"), line, around("last")];
        async function* source(): AsyncGenerator<SourceLine> {
          for (const [index, value] of all.entries()) yield { position: index + 1, text: jsonText(value) };
        }
        const deps = { store: lcm.store, clock: lcm.clock };
        for (const isAgain of [false, true]) {
          const report = await importTranscript(deps, source(), { fallbackSessionId: "deep" });
          assert.equal(report.malformed.length, 0);
          assert.equal(isAgain ? report.duplicates : report.messages + report.entries, 3);
          const exported = await Array.fromAsync(lcm.export(report.conversation?.id ?? assert.fail()));
          assert.deepEqual(exported, all.map(jsonText));
        }
      });
    });
  }
});

describe("forgetting a message that is nested too deeply", () => {
  const sealed = (raw: JsonObject, entry: JsonObject | null = null) => {
    const message = messageToStore(raw, { key: "k", at, ...(entry === null ? {} : { entry }) });
    const rest = { id: 1, conversation: 1, seq: 1, text: "", moved: [], parentKey: null, aside: null };
    return { ...rest, ...message } as unknown as Parameters<typeof redactMessage>[0];
  };

  it("removes all of it", () => {
    const left = forgetMessage(sealed({ role: "user", content: nested(9_000) }));
    assert.deepEqual(messageFromStore({ role: "user", at, ...left }), { role: "user", content: forgottenMark });
  });

  it("for a secret in it removes all of it, and for another leaves it unchanged", () => {
    for (const secret of ["harpsichord", "1234567"]) {
      const inner = secret === "1234567" ? [1234567] : secret;
      const message = sealed({ role: "user", content: nested(9_000, inner) });
      const left = redactMessage(message, secret);
      assert.ok(!JSON.stringify(left).includes(secret));
      assert.deepEqual(messageFromStore({ role: "user", at, ...left }), { role: "user", content: forgottenMark });
      assert.equal(redactMessage(message, "clavichord").envelope, message.envelope);
    }
  });

  it("removes a secret deep in the line around a message", () => {
    const message = sealed(around("hello"), { type: "message", message: around("hello"), more: nested(9_000) });
    assert.ok(message.entry?.includes("harpsichord"));
    assert.ok(!JSON.stringify(redactMessage(message, "harpsichord")).includes("harpsichord"));
  });
});
