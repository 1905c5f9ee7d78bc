/** A thread of the real Codex that is rewound: it goes on in a file of its own, and is one conversation here. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createInterface } from "node:readline";
import { isReadWhole } from "../../src/hosts/shared/read-on.ts";
import {
  createCodex,
  obey,
  rowsOf,
  sessionOf,
  settled,
  succeed,
  withDatabase,
  type CodingAgent,
} from "./coding-agents.ts";
import { startModelServer } from "./model-server.ts";

type Json = ReturnType<typeof JSON.parse>;

/** Takes back a turn and everything after it, as a client of Codex's own server does. */
async function rewind(agent: CodingAgent, threadId: string, beforeTurnId: string): Promise<void> {
  const server = agent.spawn("app-server");
  assert.ok(server.stdin && server.stdout);
  const { stdin } = server;
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  let asked = 0;
  const ask = async (method: string, params: object): Promise<Json> => {
    const id = ++asked;
    stdin.write(`${JSON.stringify({ id, method, params })}\n`);
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(done !== true, `Codex's server ended before it answered ${method}`);
      const message = JSON.parse(value);
      if (message.id !== id) continue;
      assert.ok(message.error === undefined, `${method}: ${value}`);
      return message.result;
    }
  };
  try {
    const clientInfo = { name: "test", title: null, version: "1" };
    await ask("initialize", { clientInfo, capabilities: { experimentalApi: true, requestAttestation: false } });
    stdin.write(`${JSON.stringify({ method: "initialized" })}\n`);
    await ask("thread/resume", { threadId });
    await ask("thread/revert", { threadId, beforeTurnId });
  } finally {
    server.kill();
  }
}

describe("a thread of Codex that is rewound", () => {
  it("is one conversation, which shows the new branch, and reads back as the host's files", async (test) => {
    const model = await startModelServer();
    test.after(async () => await model.close());
    model.script(obey);
    const agent = await createCodex(model.url);
    await succeed(agent.turn("first: apples"));
    const [transcript = ""] = agent.transcripts();
    const session = { resume: sessionOf(transcript) };
    await succeed(agent.turn("second: pears", session));
    const pears = rowsOf(transcript).findLast(({ type }) => type === "turn_context").payload.turn_id;
    await rewind(agent, session.resume, pears);
    await succeed(agent.turn("third: quinces", session));
    await succeed(agent.turn("fourth: plums", session));
    await succeed(agent.turn("bye"));
    await settled(agent);
    const files = agent.transcripts().filter((path) => path.includes(session.resume));
    assert.equal(files.length, 2, "it went on in another file");
    await withDatabase(agent, async (lcm) => {
      const conversations = await lcm.store.conversations({ sessionKey: `codex:${session.resume}` });
      const [own, ...others] = conversations;
      assert.ok(own !== undefined);
      assert.deepEqual(others, []);
      const stored = (await Array.fromAsync(lcm.export(own.id))).map((line) => JSON.parse(line));
      assert.deepEqual(stored, files.flatMap(rowsOf));
      const findings = await lcm.inspect(own.id);
      assert.deepEqual(
        findings.filter(({ severity }) => severity !== "info"),
        [],
      );
      for (const path of files) assert.ok(isReadWhole(path, own.hostCursor), `${path} would be read again`);
      const shown = JSON.stringify((await lcm.assemble(own.id)).messages);
      assert.match(shown, /first: apples.*third: quinces.*fourth: plums/);
      assert.doesNotMatch(shown, /second: pears/, "the branch that was left is stored, but not in the context");
    });
  });
});
