/** Ordinary turns on the real host: what is called, what is stored, and what the model gets to see. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { makeScratch } from "../../src/testing/scratch.ts";
import { models, startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { echo, startModelServer } from "./model-server.ts";
import type { ModelServer } from "./model-server.ts";
import { recordedPlugin } from "./plugin.ts";
import type { EngineCall } from "./plugin.ts";
import { assertStored } from "./stored.ts";

describe("turns", () => {
  const session = "agent:main:turns";
  let server: ModelServer;
  let gateway: Gateway;
  let calls: () => readonly EngineCall[];

  before(async () => {
    server = await startModelServer();
    const recorded = recordedPlugin(makeScratch("turns"));
    calls = recorded.calls;
    gateway = await startGateway({ server, plugins: recorded.plugins });
  });
  after(async () => await server.close());

  it("runs", async () => {
    for (let i = 0; i < 3; i++) {
      assert.equal((await gateway.turn(session, `hello ${i}`)).text, `You said: hello ${i}`);
    }
    server.script(({ results }) =>
      results.length === 0
        ? { kind: "answer", thinking: "I look.", calls: [{ name: "lcm_grep", args: { pattern: "hello" } }] }
        : `found ${results.join().length}`,
    );
    console.log(await gateway.turn(session, "look", { model: models.anthropic }));
    console.log(JSON.stringify(server.asked.at(-1)?.messages, null, 1));
    console.log(
      calls()
        .map(({ call, engine, ms, args, error }) =>
          [
            engine,
            call,
            ms.toFixed(1),
            args.tokenBudget,
            args.runtimeSettings?.limits?.maxOutputTokens,
            args.messages?.length,
            error,
          ].join(" "),
        )
        .join("\n"),
    );
    await assertStored(gateway, session);
  });
});
