/**
 * Tests `/new`, `/reset` and what the host does to old sessions by itself: found in its transcript, whenever they came.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { startModelServer } from "./model-server.ts";
import type { Asked, ModelServer, Script } from "./model-server.ts";
import { ourPlugin } from "./plugin.ts";
import { assertStored, segmentsOf, withStore } from "./stored.ts";
import { requestsOf } from "./wire.ts";

/** Small enough that a few turns are folded to depth 2. */
const small = {
  contextTarget: 0,
  freshTailCount: 2,
  leafChunkTokens: 400,
  leafTargetTokens: 80,
  condensedTargetTokens: 80,
  leafMinFanout: 2,
  condensedMinFanout: 2,
};

const fact = (at: number): string => `Crane ${at} lifts ${100 + 7 * at} crates.`;
const long = (at: number): string => `${fact(at)} ${`The harbour has room for ship${at}. `.repeat(50)}`;

describe("resets on the host", () => {
  const key = (name: string): string => `agent:main:${name}`;
  let server: ModelServer;
  let gateway: Gateway;
  let summaries = 0;

  /** Summarises without facts, and searches for what it is asked to. */
  const reply: Script = ({ kind, prompt, results }) => {
    if (kind === "completion")
      return `Account ${++summaries}: they spoke about the cranes and the room in the harbour, and all of it was settled.`;
    const [, tool = "", argument] = /^(lcm_\w+) (.*)/.exec(prompt) ?? [];
    if (tool === "" || results.length > 0) return `Noted. ${results.join()}`;
    const args = tool === "lcm_grep" ? { pattern: argument } : { id: argument };
    return { kind: "answer", calls: [{ name: tool, args }] };
  };
  const say = async (session: string, text: string): Promise<Asked> => {
    const { status, text: answer } = await gateway.turn(session, text);
    assert.equal(status, 200, answer);
    return lastOf(session);
  };
  const lastOf = (session: string): Asked => {
    const last = requestsOf(server.asked, session).at(-1);
    assert(last);
    return last;
  };
  /** What the model was shown of earlier: everything but the words of the live turn. */
  const shown = ({ messages, results }: Asked): readonly string[] =>
    messages.slice(0, results.length > 0 ? -3 : -1).map(({ text }) => text.replace(/\n\nRuntime: agent=[^]*/, ""));
  const summariesIn = (asked: Asked): readonly string[] =>
    shown(asked).flatMap((text) => /<summary id="(\w+)"/.exec(text)?.[1] ?? []);
  /** The depths of the active segment's items; -1 is a message. */
  const depthsOf = async (session: string): Promise<readonly number[]> =>
    await withStore(gateway, async (lcm) => {
      const active = (await segmentsOf(lcm, session)).find((each) => each.active);
      assert(active);
      return (await lcm.store.context(active.id)).map(({ depth }) => depth);
    });
  /** Until there is a summary of depth 2 and one of less; some of it is folded between turns, the rest on demand. */
  const fold = async (session: string): Promise<void> => {
    for (let turn = 0; turn < 12; turn++) {
      await say(session, long(turn));
      if (turn % 2 === 0) await gateway.chat(session, "/compact");
      const depths = await depthsOf(session);
      if (depths.includes(2) && depths.some((depth) => depth === 0 || depth === 1)) return;
    }
    assert.fail(`${session} is not folded to depth 2`);
  };

  before(async () => {
    server = await startModelServer();
    server.script(reply);
    gateway = await startGateway({ server, plugins: ourPlugin({ ...small, newSessionRetainDepth: -1 }) });
  });
  after(async () => await server.close());

  it("begin a segment of the same family without earlier messages, and mention that there is more", async () => {
    const session = key("reset");
    await say(session, fact(1));
    assert.match(await gateway.chat(session, "/reset"), /reset/i);
    const asked = await say(session, "What did I say?");
    assert.deepEqual(shown(asked).map(withoutTime), ["/reset"]);
    assert.match(guidanceIn(asked), /This conversation was restarted/);
    const [old, fresh] = await assertStored(gateway, session);
    assert.deepEqual([old?.active, fresh?.active], [false, true]);
    assert.equal(old?.totals.messages, 2);
  });

  it("leave earlier messages to be found by the model", async () => {
    const session = key("reset");
    const { results } = await say(session, "lcm_grep Crane 1");
    assert.match(results.join(), /Crane 1 lifts 107 crates/);
    await say(session, fact(2));
    assert.match(
      (await say(session, "lcm_grep lifts \\d+ crates")).results.join(),
      /107 crates[^]*114|114[^]*107 crates/,
    );
    await assertStored(gateway, session);
  });

  it("may come from the gateway's protocol, and several in a row", async () => {
    const session = key("rows");
    await say(session, fact(3));
    for (const reason of ["new", "reset", "new"]) await gateway.rpc("sessions.reset", { key: session, reason });
    assert.deepEqual(shown(await say(session, "And now?")), []);
    const segments = await assertStored(gateway, session);
    assert.deepEqual(
      segments.map(({ totals }) => totals.messages),
      [2, 0, 0, 2],
    );
    assert.match((await say(session, "lcm_grep crates")).results.join(), /Crane 3/);
  });

  it("carry nothing at all where the operator wants it so", async () => {
    const session = key("none");
    for (let turn = 0; turn < 3; turn++) await say(session, long(turn));
    await gateway.chat(session, "/compact");
    assert((await depthsOf(session)).some((depth) => depth >= 0));
    await gateway.chat(session, "/new");
    assert.deepEqual(shown(await say(session, "And now?")).map(withoutTime), ["/new"]);
    await assertStored(gateway, session);
  });

  it("are found after the gateway was killed, or while another engine has served", async () => {
    for (const name of ["killed", "renewed"]) await fold(key(name));
    for (const name of ["aged", "served", "replaced"]) await say(key(name), fact(4));
    await gateway.rpc("sessions.reset", { key: key("renewed"), reason: "new" });
    await gateway.chat(key("killed"), "/new");
    await gateway.kill9();
    age(gateway, ["aged", "renewed", "replaced"].map(key));

    await gateway.start({ plugins: { enabled: false } });
    await gateway.chat(key("served"), "Good morning.");
    await gateway.chat(key("served"), "/new");
    await say(key("served"), "Still there?");
    await gateway.stop();

    const idle = { session: { reset: { mode: "idle", idleMinutes: 60 } } };
    await gateway.start({ plugins: ourPlugin(small), config: idle });
    assert.deepEqual(shown(await say(key("served"), "And now?")).map(withoutTime), ["/new", "Still there?", "Noted. "]);
    const [old, fresh] = await assertStored(gateway, key("served"));
    assert.equal(old?.totals.messages, 4);
    assert.equal(fresh?.totals.messages, 6);
  });

  it("carry summaries of the configured depth and above into the next segment, and nothing else", async () => {
    const session = key("killed");
    const asked = await say(session, "And now?");
    const [carried, ...others] = summariesIn(asked);
    assert(carried !== undefined);
    assert.deepEqual(others, []);
    assert.deepEqual(shown(asked).slice(1).map(withoutTime), ["/new"]);
    assert.match(shown(asked)[0] ?? "", /depth="2"[^]*Account \d+: they spoke about the cranes/);
    assert.doesNotMatch(shown(asked).join(), /crates/);
    assert.match(guidanceIn(asked), /appear in your context as <summary>[^]*This conversation was restarted/);
    const [old, fresh] = await assertStored(gateway, session);
    assert.equal(fresh?.totals.summaries, 1);
    assert(old !== undefined && old.totals.summaries > 1);
    const described = await say(session, `lcm_describe ${carried}`);
    assert.match(described.results.join(), /depth 2/);
    assert.match((await say(session, "lcm_grep Crane 5")).results.join(), /135 crates/);
  });

  it("carry what was carried once more, and nothing on a reset", async () => {
    const session = key("killed");
    await gateway.chat(session, "/new");
    assert.equal(summariesIn(await say(session, "And now?")).length, 1);
    await gateway.chat(session, "/reset");
    assert.deepEqual(shown(await say(session, "And now?")).map(withoutTime), ["/reset"]);
    assert.equal((await assertStored(gateway, session)).length, 4);
  });

  it("of a session that was only old do not interrupt it", async () => {
    const session = key("aged");
    await gateway.chat(session, "Good morning.");
    const event = gateway.transcript(session).find(({ type }) => type === "reset");
    assert.equal(event?.reason, "idle");
    assert(event.firstKeptEntryId);
    assert.match(shown(lastOf(session)).join(), /Crane 4/);
    assert.equal((await assertStored(gateway, session)).length, 1);
  });

  it("of a session that was old before its first message lose nothing that was carried", async () => {
    const session = key("renewed");
    await gateway.chat(session, "Good morning.");
    const [, event] = gateway.transcript(session).filter(({ type }) => type === "reset");
    assert.equal(event?.reason, "idle");
    assert.equal(event.firstKeptEntryId, undefined);
    assert.equal(summariesIn(lastOf(session)).length, 1);
    assert.equal((await assertStored(gateway, session)).length, 2);
  });

  it("that give the session another transcript leave the old one in its family", async () => {
    const session = key("replaced");
    assert.deepEqual(shown(await say(session, "Good morning.")), []);
    const asked = await say(session, "lcm_grep crates");
    assert.match(guidanceIn(asked), /This conversation was restarted/);
    assert.match(asked.results.join(), /Crane 4/);
    const [old, fresh] = await assertStored(gateway, session);
    assert.notEqual(old?.sessionId, fresh?.sessionId);
  });
});

const guidanceIn = ({ system }: Asked): string =>
  /## Memory of this conversation[^]*?Look things up/.exec(system)?.[0] ?? "";
const withoutTime = (text: string): string => text.replace(/^\[\w{3} [^\]]+\] /, "");

/** As if these sessions had been silent for a day. The host must not be running. */
function age(gateway: Gateway, sessions: readonly string[]): void {
  const db = new DatabaseSync(join(gateway.state, "agents/main/agent/openclaw-agent.sqlite"));
  const yesterday = Date.now() - 86_400_000;
  for (const session of sessions) {
    const { changes } = db
      .prepare(
        `UPDATE session_nodes SET updated_at = $at, last_interaction_at = $at,
           entry_json = json_set(entry_json, '$.updatedAt', $at, '$.sessionStartedAt', $at, '$.lastInteractionAt', $at)
         WHERE session_key = $session`,
      )
      .run({ at: yesterday, session });
    assert.equal(changes, 1, session);
    db.prepare("UPDATE session_nodes SET entry_valid = 1 WHERE session_key = ?").run(session);
  }
  db.close();
}
