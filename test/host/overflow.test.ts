/**
 * Tests prompts that a provider refuses for their length, and compaction on demand: the host asks, we fold, it goes on.
 */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { makeScratch } from "../support/scratch.ts";
import { models, startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { startModelServer } from "./model-server.ts";
import type { Asked, ModelServer, Reply } from "./model-server.ts";
import { recordedPlugin } from "./plugin.ts";
import type { EngineCall } from "./plugin.ts";
import { assertStored } from "./stored.ts";
import { assertLiveOnce, assertValid, requestsOf } from "./wire.ts";

/** How long the host waits for a compaction. */
const timeoutSeconds = 12;

/** Folded only on demand: nothing here reaches the size of a leaf, or fills the window. */
const small = { freshTailCount: 2, leafTargetTokens: 150, condensedTargetTokens: 150 };

const long = (at: number): string =>
  `Line ${at} of the ledger: ${`copper ${at} is sold for ${3 * at} coins. `.repeat(15)}`;

describe("overflow on the host", () => {
  const key = (name: string): string => `agent:main:${name}`;
  let server: ModelServer;
  let gateway: Gateway;
  let calls: () => readonly EngineCall[];
  /** What the provider refuses: by the characters of a prompt's messages, or the next request whatever it is. */
  let charactersMax = Infinity;
  let refusals = 0;
  let summarise: () => Reply;
  const account = (): Reply =>
    "Account: they went through the ledger line by line, and wrote down what copper is sold for.";

  const reply = ({ kind, prompt, messages, results }: Asked): Reply => {
    if (kind === "completion") return summarise();
    const characters = messages.reduce((sum, { text }) => sum + text.length, 0);
    if (refusals-- > 0 || characters > charactersMax) return { kind: "overflow" };
    if (!prompt.includes("Look up") || results.length > 0) return `Noted${results.length > 0 ? " and found" : ""}.`;
    refusals = 1;
    return { kind: "answer", text: "One moment.", calls: [{ name: "lcm_grep", args: { pattern: "ledger" } }] };
  };
  const say = async (session: string, text: string, model?: string): Promise<readonly Asked[]> => {
    const before = requests(session).length;
    const { status, text: answer } = await gateway.turn(session, text, model === undefined ? {} : { model });
    assert.equal(status, 200, answer);
    return requests(session).slice(before);
  };
  const requests = (session: string): readonly Asked[] => requestsOf(server.asked, session);
  const fill = async (session: string, turns = 5): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) await say(session, long(turn));
  };
  const compactions = (session: string): readonly EngineCall[] =>
    calls().filter((each) => each.call === "compact" && each.session === session);
  const sizeOf = ({ messages }: Asked): number => messages.reduce((sum, { text }) => sum + text.length, 0);
  /** The turn was refused once, and is answered with less; it appears in every prompt once, and in the store. */
  const assertRecovered = async (session: string, text: string, asked: readonly Asked[]): Promise<void> => {
    const [refused, answered] = asked.slice(-2);
    assert(refused && answered);
    for (const each of asked) {
      assertSaidLast(each, text);
      assertValid(each);
    }
    assert(sizeOf(answered) < sizeOf(refused), "the prompt is shorter");
    const { result } = compactions(session).at(-1) ?? {};
    assert.equal(result?.compacted, true);
    assert(result.result.tokensAfter < result.result.tokensBefore);
    await assertStored(gateway, session);
    const [next] = await say(session, "Thank you.");
    assert(next);
    assertLiveOnce(next, "Thank you.");
    assertSaidLast(next, text);
    await assertStored(gateway, session);
  };

  /** Once, after everything before it; the host may ask to continue with it, in a user message too. */
  const assertSaidLast = ({ messages }: Asked, text: string): void => {
    const places = messages.flatMap((message, at) =>
      message.role === "user" && message.text.includes(text) ? [at] : [],
    );
    assert.equal(places.length, 1, `${text} appears ${places.length} times`);
    assert(messages.findLastIndex((message) => message.text.includes("] Line ")) < (places[0] ?? 0));
  };

  before(async () => {
    server = await startModelServer();
    server.script(reply);
    const recorded = recordedPlugin(makeScratch("overflow"), small);
    calls = recorded.calls;
    const { openai, anthropic } = models;
    const defaults = {
      model: { primary: openai },
      models: { [openai]: {}, [anthropic]: {} },
      compaction: { timeoutSeconds },
    };
    gateway = await startGateway({ server, plugins: recorded.plugins, config: { agents: { defaults } } });
  });
  after(async () => await server.close());

  describe("guarantee 14: the live turn appears exactly once, on the host", () => {
    for (const [format, model] of Object.entries(models)) {
      it(`in every prompt of a turn that the ${format} provider refuses once`, async () => {
        const session = key(`once-${format}`);
        summarise = account;
        await fill(session);
        refusals = 1;
        await assertRecovered(session, "Does it fit?", await say(session, "Does it fit?", model));
        assert.equal(compactions(session).length, 1);
      });

      it(`also after one of its tools has answered, with the ${format} provider`, async () => {
        const session = key(`tool-${format}`);
        summarise = account;
        await fill(session);
        const asked = await say(session, "Look up the ledger.", model);
        const [, , last] = asked;
        assert.equal(asked.length, 3);
        assert(last);
        const found = last.messages.findIndex(({ calls: made }) => made.some(({ name }) => name === "lcm_grep"));
        assert(found >= 0, "the outcome is shown");
        assert.match(last.messages[found - 1]?.text ?? "", /Look up the ledger/);
        assert.match(last.messages[found + 1]?.text ?? "", /5 matches/);
        await assertRecovered(session, "Look up the ledger.", asked);
      });
    }
  });

  it("takes as many rounds as needed to fit what the provider really accepts", async () => {
    const session = key("really");
    summarise = account;
    await fill(session, 10);
    charactersMax = 5_000;
    const asked = await say(session, "Does it fit?");
    const after = await say(session, "And this?");
    charactersMax = Infinity;
    await assertRecovered(session, "Does it fit?", asked);
    assert.equal(after.length, 1, "the next prompt is within it from the start");
  });

  describe("guarantee 20: overflow rescue always has a path without a model, on the host", () => {
    const troubles: Readonly<Record<string, Reply>> = {
      refuses: { kind: "error", status: 500 },
      "is refused with 401": { kind: "error", status: 401 },
      "does not answer": { kind: "hang" },
    };
    for (const [trouble, answer] of Object.entries(troubles)) {
      it(`when the summariser ${trouble}`, async () => {
        const session = key(trouble.replaceAll(" ", "-"));
        summarise = () => answer;
        await fill(session);
        refusals = 1;
        await assertRecovered(session, "Does it fit?", await say(session, "Does it fit?"));
      });
    }
  });

  it("refuses no turn because the last one was long by its tool results, when there is nothing to fold", async () => {
    const session = key("by-its-tools");
    server.script(() => ({ kind: "answer", text: "Noted.", usage: { input: 60_000 } }));
    for (const text of ["One.", "Two.", "Three."]) {
      const { status, text: answer } = await gateway.turn(session, text);
      assert.equal(status, 200, answer);
    }
    server.script(reply);
    const reasons = compactions(session).map(({ result }) => result.reason);
    assert(reasons.length > 0, "the host asks before the turn");
    for (const reason of reasons) assert.match(reason, /^nothing to compact: /);
    await assertStored(gateway, session);
  });

  describe("guarantee 17: compact() tells the truth, on the host", () => {
    it("when there is nothing to fold, and the turn fails for its own reason", async () => {
      const session = key("nothing");
      summarise = account;
      charactersMax = 1;
      const { status, text } = await gateway.turn(session, "All at once.");
      assert.notEqual(status, 200);
      assert.match(text, /overflow|too large/i);
      const [compaction] = compactions(session);
      assert.equal(compaction?.result.compacted, false);
      assert.match(compaction?.result.reason, /nothing is stored/);
      charactersMax = Infinity;
      await say(session, "And now that it fits?");
      await assertStored(gateway, session);
      charactersMax = 1;
      assert.notEqual((await gateway.turn(session, "Again.")).status, 200);
      charactersMax = Infinity;
      const last = compactions(session).at(-1)?.result;
      assert.equal(last?.compacted, false);
      assert.match(last.reason, /nothing/);
      const [asked] = await say(session, "And now?");
      assert(asked);
      assertLiveOnce(asked, "And now?");
      await assertStored(gateway, session);
    });

    it("to a person, whose instructions reach the summariser", async () => {
      const session = key("asked");
      summarise = account;
      await fill(session);
      // The question and its answer go into the fresh tail too, and push only these out.
      for (const short of ["Yes.", "No."]) await say(session, short);
      const before = server.asked.length;
      assert.match(await gateway.chat(session, "/compact keep the numbers"), /Compacted \(\S+ → \S+\)/);
      const prompts = server.asked.slice(before).filter(({ kind }) => kind === "completion");
      assert(prompts.length > 0);
      for (const { prompt } of prompts) assert.match(prompt, /keep the numbers/);
      assert.match(await gateway.chat(session, "/compact"), /skipped: nothing was folded/);
      await say(session, "Thank you.");
      await assertStored(gateway, session);
    });

    it("to the gateway's protocol", async () => {
      const session = key("protocol");
      summarise = account;
      await fill(session);
      const first = await gateway.rpc("sessions.compact", { key: session });
      assert.equal(first.compacted, true);
      assert(first.result.tokensAfter < first.result.tokensBefore);
      const second = await gateway.rpc("sessions.compact", { key: session });
      assert.deepEqual([second.ok, second.compacted], [true, false]);
      assert.match(second.reason, /nothing/);
      await assertStored(gateway, session);
    });

    it("when the summariser refuses and nothing is urgent: it waits for the model", async () => {
      const session = key("waiting");
      summarise = () => ({ kind: "error", status: 500 });
      await fill(session);
      const refused = await gateway.rpc("sessions.compact", { key: session });
      assert.equal(refused.compacted, false);
      assert.match(refused.reason, /waiting for the model/);
      summarise = account;
      assert.equal((await gateway.rpc("sessions.compact", { key: session })).compacted, true);
      await assertStored(gateway, session);
    });

    it("and does not get the engine disabled", async () => {
      assert.deepEqual(
        calls().flatMap(({ error }) => error ?? []),
        [],
      );
      const { stdout } = await gateway.cli("health");
      assert.match(stdout, /Gateway/);
      assert.doesNotMatch(stdout, /quarantined|downgraded/);
    });
  });
});
