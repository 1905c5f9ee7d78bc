/** Tests the chat commands on the real host, as a person sends them, and what deleting a session does to recall. */

import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import type { Conversation } from "../../src/core/model/types.ts";
import { startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { startModelServer } from "./model-server.ts";
import type { ModelServer } from "./model-server.ts";
import { ourPlugin } from "./plugin.ts";
import { segmentsOf, withStore } from "./stored.ts";

describe("chat commands", () => {
  const session = "agent:main:quay";
  const [ignored, reading] = ["agent:main:private", "agent:main:reading"];
  let server: ModelServer;
  let gateway: Gateway;

  before(async () => {
    server = await startModelServer();
    const patterns = { ignoreSessionPatterns: ["agent:*:private"], statelessSessionPatterns: ["agent:*:reading"] };
    gateway = await startGateway({ server, plugins: ourPlugin({ freshTailCount: 2, ...patterns, oldKey: 1 }) });
  });
  after(async () => await server.close());

  const segments = async (): Promise<readonly Conversation[]> =>
    await withStore(gateway, async (lcm) => await segmentsOf(lcm, session));

  it("answer helpfully before anything is stored", async () => {
    const text = await gateway.chat(session, "/lcm");
    assert.match(
      text,
      /^⚠️ \*\*Lossless Claw\*\*: 1 thing to look at\n- The plugin's config has unknown settings, which are ignored: `oldKey`/,
    );
    assert.match(text, /\*\*This session\*\*: Nothing is stored yet/);
  });

  it("guarantee 27: one status reports what is stored, waiting and set, on the host", async () => {
    for (let turn = 0; turn < 4; turn++)
      assert.equal((await gateway.turn(session, `${turn}: ${"the quay is green. ".repeat(60)}`)).status, 200);
    const [conversation] = await segments();
    assert(conversation);
    const text = await gateway.chat(session, "/lcm status");
    assert.match(text, new RegExp(`\\*\\*This session \\(conversation ${conversation.id}\\)\\*\\*`));
    // The first command and its answer are in the transcript, too.
    assert.match(text, /- 10 messages stored\n/);
    assert.match(text, /- 1 message from outside a finished turn/);
    assert.match(text, new RegExp(`of ${conversation.promptBudget?.toLocaleString("en-US")} tokens, compacted above`));
    assert.match(text, /- `freshTailCount: 2` \(plugin config\)/);
    const shown = gateway.database.replace(/:[^:@/]+@/, "@"); // Without the password.
    assert(text.includes(`- \`${shown}\``), text);
  });

  it("answer by both names, and list what can be requested", async () => {
    const help = await gateway.chat(session, "/lossless help");
    assert.match(help, /`\/lcm status`[^]*`\/lcm doctor`[^]*`\/lcm compact`[^]*`openclaw lcm`/);
    assert.match(await gateway.chat(session, "/lcm dance"), /^Unknown command `\/lcm dance`/);
    assert.match(await gateway.chat(session, "/lcm doctor"), /^✅ \*\*All is well\*\*: 10 messages and 0 summaries/);
  });

  it("guarantee 27: one status reports the last compaction and model calls, on the host, after one by hand", async () => {
    const summary = `The quay is green. ${"It was said again. ".repeat(8)}\nExpand for details about: the colour`;
    server.script(({ kind, prompt }) => (kind === "completion" ? summary : `You said: ${prompt}`));
    const text = await gateway.chat(session, "/lcm compact keep all colours");
    const asked = server.asked.at(-1);
    assert.equal(asked?.kind, "completion");
    assert.match(asked.prompt, /keep all colours/);
    assert.match(text, /^✅ [\d,]+ → [\d,]+ tokens in 1 pass; nothing is left to fold\.$/);
    const status = await gateway.chat(session, "/lcm");
    assert.match(status, /- Last compaction: [\d,]+ → [\d,]+ tokens in 1 pass; .* \(.* America\/St_Johns\)/);
    assert.match(status, /\*\*Model calls\*\*: 1 of 120 in the last hour, 0 failed/);
    assert.match(
      await gateway.chat(session, "/lcm doctor"),
      /^✅ \*\*All is well\*\*: \d+ messages and 1 summary checked/,
    );
  });

  it("show a session that was just reset as it is now", async () => {
    const renewed = "agent:main:renewed";
    assert.equal((await gateway.turn(renewed, "the pier is blue")).status, 200);
    assert.match(await gateway.chat(renewed, "/lcm"), /\n- 2 messages stored\n/);
    await gateway.rpc("sessions.reset", { key: renewed, reason: "reset" });
    assert.match(
      await gateway.chat(renewed, "/lcm"),
      /\n- 0 messages stored, and 4 in 1 earlier segment\n- Prompt: about 0 of /,
    );
  });

  it("report that a session is ignored, or read-only", async () => {
    for (const key of [ignored, reading]) await gateway.turn(key, "nobody keeps this");
    assert.match(await gateway.chat(ignored, "/lcm"), /It is ignored \(`ignoreSessionPatterns`\)/);
    assert.match(await gateway.chat(ignored, "/lcm compact"), /`\/compact` uses OpenClaw's own compaction here/);
    assert.match(await gateway.chat(reading, "/lcm"), /It is read-only \(`statelessSessionPatterns`\)/);
    const stored = await withStore(gateway, async ({ store }) => await store.conversations({ includeHidden: true }));
    assert(stored.every(({ sessionKey }) => sessionKey !== ignored && sessionKey !== reading));
  });

  it("a session deleted in the host is hidden from recall, and its rows stay", async () => {
    const found = async (): Promise<number> => {
      const request = { pattern: "quay", mode: "regex", scope: "messages", sort: "recency", limit: 50 } as const;
      return (await withStore(gateway, async ({ store }) => await store.search(request))).hits.length;
    };
    const [before] = await segments();
    assert((await found()) > 0);
    assert.equal((await gateway.rpc("sessions.delete", { key: session, deleteTranscript: true })).deleted, true);
    // The host answers first, and notifies its plugins afterwards.
    const until = AbortSignal.timeout(30_000);
    while ((await segments()).some(({ hidden }) => !hidden)) await setTimeout(100, null, { signal: until });
    assert.equal(await found(), 0);
    assert.deepEqual(
      (await segments()).map(({ totals }) => totals),
      [before?.totals],
    );
  });

  it("a new session under the same key is another one", async () => {
    assert.equal((await gateway.turn(session, "the quay is red now")).status, 200);
    const [older, newer] = await segments();
    assert.deepEqual([older?.hidden, newer?.hidden], [true, false]);
    const text = await gateway.chat(session, "/lcm");
    assert.match(text, new RegExp(`\\(conversation ${newer?.id}\\)\\*\\*\n- 2 messages stored\n`));
  });
});
