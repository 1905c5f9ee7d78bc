/** The real OpenCode with our plugin: what it stores, what the model sees, and what survives reverts and restarts. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { assertStored, obey, readStored, turnsOf, until } from "./opencode-script.ts";
import {
  createHome,
  databaseRows,
  openCodePlugin,
  removeHome,
  runOnce,
  startOpenCode,
  type Home,
  type OpenCode,
} from "./opencode-server.ts";
import { startModelServer, type ModelServer } from "./model-server.ts";

let model: ModelServer;
let home: Home;
let host: OpenCode;

before(async () => {
  model = await startModelServer();
  model.script(obey);
  home = createHome({ modelUrl: model.url, plugin: openCodePlugin() });
  host = await startOpenCode(home);
});
after(async () => {
  await host.kill();
  await model.close();
  removeHome(home);
});

describe("a session of OpenCode", () => {
  it("is stored message by message, tools and all, and the model sees what OpenCode would send", async () => {
    const session = await host.createSession();
    for (let turn = 1; turn <= 10; turn++) {
      const call = turn % 3 === 0 ? `\nCALL bash {"command":"echo marker-${turn}","description":"a test"}` : "";
      await host.prompt(session, `turn ${turn}: the password of door ${turn} is plum-${turn}${call}`);
    }
    const { conversation } = await assertStored(home, session);
    assert.equal(conversation.folder, home.work);
    assert.equal(conversation.totals.messages, 23);
    const last = turnsOf(model.asked).at(-1);
    const texts = last?.messages.map(({ text }) => text) ?? [];
    for (let turn = 1; turn <= 10; turn++) {
      const said = texts.filter((text) => text.startsWith(`turn ${turn}:`));
      assert.equal(said.length, 1, `turn ${turn} is in the prompt once`);
    }
    assert.ok(
      texts.some((text) => text.includes("marker-9")),
      "the results of tools are there",
    );
  });

  it("can be searched by its model, with our tools", async () => {
    const session = await host.createSession();
    await host.prompt(session, "remember: the ferry leaves at 06:42 from pier nine");
    const { text } = await host.prompt(session, `CALL lcm_grep {"pattern":"ferry"}`);
    assert.match(text, /msg_\d+-1 user[^]*06:42 from pier nine/);
    const tool = turnsOf(model.asked)
      .at(-1)
      ?.body.tools.find(({ function: { name } }: { function: { name: string } }) => name === "lcm_grep");
    assert.equal(
      tool.function.parameters.required?.includes("limit") ?? false,
      false,
      "optional arguments stay optional",
    );
  });

  it("answers /lcm with its status", async () => {
    const session = await host.createSession();
    await host.prompt(session, "hello");
    await host.request("POST", `/session/${session}/command`, { command: "lcm", arguments: "" });
    assert.match(turnsOf(model.asked).at(-1)?.prompt ?? "", /Lossless Claw[^]*2 messages stored/);
  });

  it("keeps what a revert deletes, outside of the context", async () => {
    const session = await host.createSession();
    await host.prompt(session, "one: the sky is green");
    await host.prompt(session, "two: the sea is red");
    const before = databaseRows(home, session);
    await until(async () => (await readStored(home, session)).rows.length === before.length);
    const reverted = before.slice(2).map(({ info }) => info.id);
    await host.request("POST", `/session/${session}/revert`, { messageID: reverted[0] });
    await host.prompt(session, "three: the grass is blue");
    assert.ok(!databaseRows(home, session).some(({ info }) => reverted.includes(info.id)), "OpenCode has deleted them");
    await assertStored(home, session, reverted);
    const texts =
      turnsOf(model.asked)
        .at(-1)
        ?.messages.map(({ text }) => text) ?? [];
    assert.ok(!texts.some((text) => text.includes("the sea is red")), "the model does not see them");
    const { text } = await host.prompt(session, `CALL lcm_grep {"pattern":"sea"}`);
    assert.match(text, /the sea is red/);
  });

  it("of a sub-agent is a conversation of its own that names its parent", async () => {
    const session = await host.createSession();
    const task = { description: "look", prompt: "what is in the cellar?", subagent_type: "general" };
    await host.prompt(session, `CALL task ${JSON.stringify(task)}`);
    const [child] = await host.request("GET", `/session/${session}/children`);
    await assertStored(home, session);
    const { conversation } = await assertStored(home, child.id);
    assert.equal(conversation.parentSessionId, session);
  });

  it("that a person compacts is summarised from our record, and goes on with our prompt", async () => {
    const session = await host.createSession();
    for (let turn = 1; turn <= 4; turn++)
      await host.prompt(session, `turn ${turn}: the code of safe ${turn} is ${turn}${turn}7`);
    await host.request("POST", `/session/${session}/summarize`, { providerID: "scripted", modelID: "scripted" });
    const asked = model.asked.findLast(({ tools }) => tools.length === 0);
    assert.match(JSON.stringify(asked?.body), /the code of safe 1 is 117/);
    await host.prompt(session, "after the compaction");
    const texts =
      turnsOf(model.asked)
        .at(-1)
        ?.messages.map(({ text }) => text) ?? [];
    assert.ok(
      texts.some((text) => text.includes("the code of safe 1 is 117")),
      "the old messages are still shown",
    );
    assert.equal(texts.at(-1), "after the compaction");
    await assertStored(home, session);
  });

  it("is carried on by another process of OpenCode, which brings what is missing", async () => {
    const session = await host.createSession();
    await host.prompt(session, "before the restart: the key is under the mat");
    await host.kill();
    host = await startOpenCode(home);
    await host.prompt(session, "after the restart");
    await assertStored(home, session);
    const texts =
      turnsOf(model.asked)
        .at(-1)
        ?.messages.map(({ text }) => text) ?? [];
    assert.equal(texts.filter((text) => text.includes("under the mat")).length, 2, "the question and its echo");
  });

  it("of a single run is stored to its end", async () => {
    const session = await runOnce(home, "just this once");
    const stored = await readStored(home, session);
    assert.equal(stored.rows.length, 2, "the process has ended, so nothing can come later");
    await assertStored(home, session);
  });

  it("whose prompt is too long for the model is asked once more, with a smaller one", async () => {
    const session = await host.createSession();
    for (let turn = 1; turn <= 12; turn++) await host.prompt(session, `turn ${turn}: SAY 400`);
    let refusals = 0;
    model.script((asked) => (asked.tools.length > 0 && refusals++ === 0 ? { kind: "overflow" } : obey(asked)));
    const sizes = () => turnsOf(model.asked).map(({ body }) => JSON.stringify(body.messages).length);
    const begun = sizes().length;
    await host.prompt(session, "what did I ask first?");
    await until(() => sizes().length >= begun + 2);
    const [refused = 0, retried = 0] = sizes().slice(begun);
    assert.ok(retried < 0.9 * refused, `${refused} characters were refused, then ${retried} sent`);
    await until(async () => (await host.messages(session)).at(-1)?.info.finish === "stop");
    model.script(obey);
    await assertStored(home, session);
  });
});
