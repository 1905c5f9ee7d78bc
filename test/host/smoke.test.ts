/** The harness itself: what every other host test takes for granted. The engine here stores nothing and folds nothing. */

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { enginePlugin, models, startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { echo, startModelServer } from "./model-server.ts";
import type { ModelServer } from "./model-server.ts";

const engine = `
import { appendFileSync } from "node:fs";
export default {
  id: "tiny-engine",
  name: "Tiny engine",
  register(api) {
    const note = (call) => appendFileSync(api.pluginConfig.notes, call + "\\n");
    api.registerContextEngine("tiny-engine", () => ({
      info: {
        id: "tiny-engine",
        name: "Tiny engine",
        ownsCompaction: true,
        transcriptSemantics: {
          currentTurnFence: "before-current-turn-entry-v1",
          turnAdvancementIdempotency: "atomic-idempotent-v1",
        },
      },
      ingest: async () => ({ ingested: true }),
      assemble: async ({ messages }) => ({ messages, estimatedTokens: 1 }),
      commitTurn: async ({ messages }) => (note(messages.map(({ role }) => role).join(" ")), { status: "committed" }),
      compact: async ({ runtimeContext, currentTokenCount = 2 }) => {
        const { text } = await runtimeContext.llm.complete({ messages: [{ role: "user", content: "fold" }] });
        note("folded into " + text);
        return { ok: true, compacted: true, result: { tokensBefore: currentTokenCount, tokensAfter: 1 } };
      },
    }));
    api.registerTool(() => ({
      name: "tiny_sum",
      description: "Adds two numbers.",
      catalogMode: "direct-only",
      parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
      execute: async (id, { a, b }) => ({ content: [{ type: "text", text: "sum " + (a + b) }] }),
    }), { name: "tiny_sum" });
    api.registerCommand({
      name: "tiny",
      description: "Says what it was told.",
      acceptsArgs: true,
      handler: async ({ args }) => ({ text: "tiny heard " + args }),
    });
  },
};`;

/** Writes the plugin, as a folder that a path in openclaw.json can name. */
function writePlugin(path: string): void {
  const manifest = {
    id: "tiny-engine",
    kind: "context-engine",
    contracts: { tools: ["tiny_sum"] },
    activation: { onStartup: true },
    configSchema: { type: "object", properties: { notes: { type: "string" } } },
  };
  const openclaw = { extensions: ["./index.js"], compat: { pluginApi: ">=2026.9.6" } };
  mkdirSync(path);
  writeFileSync(join(path, "index.js"), engine);
  writeFileSync(join(path, "openclaw.plugin.json"), JSON.stringify(manifest));
  writeFileSync(
    join(path, "package.json"),
    JSON.stringify({ name: "tiny-engine", version: "1.0.0", type: "module", openclaw }),
  );
}

describe("the harness", () => {
  const session = "agent:main:smoke";
  const scratch = mkdtempSync(join(tmpdir(), "lcm-host-"));
  const noteFile = join(scratch, "notes");
  const notes = (): readonly string[] => readFileSync(noteFile, "utf8").trim().split("\n");
  let server: ModelServer;
  let gateway: Gateway;

  before(async () => {
    const plugin = join(scratch, "tiny-engine");
    writePlugin(plugin);
    server = await startModelServer();
    gateway = await startGateway({ server, plugins: enginePlugin("tiny-engine", plugin, { notes: noteFile }) });
  });
  after(async () => {
    await server.close();
    rmSync(scratch, { recursive: true, force: true });
  });

  it("lets the scripted model answer a turn, which the plugin's engine commits", async () => {
    assert.deepEqual(await gateway.turn(session, "hello"), { status: 200, text: "You said: hello" });
    const [asked] = server.asked;
    assert.equal(server.asked.length, 1);
    assert.equal(asked?.kind, "turn");
    assert.equal(asked.session, session);
    assert.equal(asked.prompt, "hello");
    assert.deepEqual(notes(), ["user assistant"]);
  });

  for (const [format, model] of Object.entries(models)) {
    it(`lets the model think and call a tool of the plugin in the ${format} format`, async () => {
      server.script(({ results }) =>
        results.length === 0
          ? { kind: "answer", thinking: "I shall add.", calls: [{ name: "tiny_sum", args: { a: 19, b: 23 } }] }
          : `It is the ${results.join()}`,
      );
      assert.deepEqual(await gateway.turn(session, "add", { model }), { status: 200, text: "It is the sum 42" });
      const asked = server.asked.at(-1);
      assert.equal(asked?.format, format);
      assert(asked.tools.includes("tiny_sum"));
      assert.deepEqual(
        asked.messages.at(-2)?.calls.map(({ name }) => name),
        ["tiny_sum"],
      );
      assert.equal(notes().at(-1), "user assistant toolResult assistant");
      const messages = gateway.transcript(session).flatMap(({ message = [] }) => message);
      const thought = messages.at(-3).content[0];
      assert.equal(thought.thinking, "I shall add.");
      assert.equal(thought.thinkingSignature, format === "anthropic" ? "c2lnbmVk" : "reasoning_content");
    });

    it(`has a prompt that is too long for the ${format} provider folded and tried again`, async () => {
      let turns = 0;
      server.script(({ kind }) => (kind === "completion" ? "less" : ++turns === 1 ? { kind: "overflow" } : "It fits."));
      assert.deepEqual(await gateway.turn(session, "a lot", { model }), { status: 200, text: "It fits." });
      assert.equal(notes().at(-2), "folded into less");
    });
  }

  it("shows what a provider refuses, and what a script does wrong", async () => {
    server.script(() => ({ kind: "error", status: 400, error: { message: "not today" } }));
    const refused = await gateway.turn(session, "please");
    assert.equal(refused.status, 400);
    assert.match(refused.text, /not today/);
    server.script(() => {
      throw new Error("no such line");
    });
    assert.match((await gateway.turn(session, "please")).text, /the script failed: Error: no such line/);
  });

  it("compacts through the gateway's protocol, and tells a completion from a turn", async () => {
    server.script(({ kind, prompt }) => `${kind} ${prompt}`);
    const { compacted } = await gateway.rpc("sessions.compact", { key: session });
    assert.equal(compacted, true);
    assert.equal(notes().at(-1), "folded into completion fold");
    await assert.rejects(gateway.rpc("sessions.nothing"), /INVALID_REQUEST unknown method/);
  });

  it("takes slash commands", async () => {
    assert.equal(await gateway.chat(session, "/tiny one two"), "tiny heard one two");
    assert.match(await gateway.chat(session, "/reset"), /reset/i);
  });

  it("is killed in the middle of a turn, and goes on over the same home", async () => {
    const asked = Promise.withResolvers<void>();
    server.script(() => {
      asked.resolve();
      return { kind: "hang" };
    });
    const turn = assert.rejects(gateway.turn(session, "for ever"));
    await asked.promise;
    await gateway.kill9();
    await turn;
    server.script(echo);
    await gateway.start();
    assert(server.asked.at(-1)?.prompt.includes("interrupted by a gateway restart"));
    assert.equal((await gateway.turn(session, "still there?")).text, "You said: still there?");
    const said = gateway.transcript(session).map(({ message }) => message?.content);
    assert(said.includes("for ever") && said.includes("still there?"));
  });

  it("ends without being killed, and leaves its home to the command line", async () => {
    await gateway.stop();
    assert.match(gateway.log(), /\[shutdown\] completed cleanly/);
    assert.match((await gateway.cli("--version")).stdout, /2026\.9\.6/);
  });
});
