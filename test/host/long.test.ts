/** Tests a long session on the real host: folded in the background, always within its budget, its prefix kept. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { makeScratch } from "../support/scratch.ts";
import { startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { startModelServer } from "./model-server.ts";
import type { Asked, ModelServer, Reply } from "./model-server.ts";
import { recordedPlugin } from "./plugin.ts";
import type { EngineCall } from "./plugin.ts";
import { assertStored, withStore } from "./stored.ts";
import { assertLiveOnce, assertValid, prefixKept, requestsOf, tokensOfRequest } from "./wire.ts";

const contextWindow = 64_000;
const turns = 200;
/** From this turn on the summariser does not answer before this many turns have passed without it. */
const hangsFrom = 70;
const turnsWithout = 6;

const words = "harbour ledger copper meadow signal window orchard parcel engine lantern river garden".split(" ");
const prose = (seed: number, count: number): string =>
  Array.from({ length: count }, (_, at) => words[(seed * 7 + at * at + at) % words.length]).join(" ");
const fact = (turn: number): string => `The locker of week ${turn} opens with ${1000 + 37 * turn}.`;
const isLooking = (turn: number): boolean => turn % 3 === 0;

describe("a long session on the host", () => {
  const session = "agent:main:long";
  let server: ModelServer;
  let gateway: Gateway;
  let calls: () => readonly EngineCall[];
  /** In which turn each summary was requested. */
  const askedIn: number[] = [];
  let hungIn: number | null = null;
  let turn = 0;
  const answers = Promise.withResolvers<void>();

  const reply = async ({ kind, prompt, results }: Asked): Promise<Reply> => {
    if (kind === "turn") {
      const pattern = words[prompt.length % words.length] ?? "";
      const isDone = results.length > 0 || !prompt.endsWith("Look it up.");
      return isDone ? `Noted. ${prose(prompt.length, 60)}` : { kind: "answer", calls: [grep({ pattern, limit: 3 })] };
    }
    askedIn.push(turn);
    if (turn >= hangsFrom) hungIn ??= turn;
    // Counted in turns, not by the clock: a quick machine would fill the window meanwhile, a busy one is late anyway.
    if (hungIn !== null) await answers.promise;
    const weeks = [...new Set(prompt.match(/(?<=locker of week )\d+/g))];
    return weeks
      .map((week) => `In week ${week} a locker was noted, and the ${words[Number(week) % 12]} with it.`)
      .join(" ");
  };
  const grep = (args: object) => ({ name: "lcm_grep", args });
  const requests = (): readonly Asked[] => requestsOf(server.asked, session);
  const firsts = (): readonly Asked[] => requests().filter(({ results }) => results.length === 0);
  const assemblies = (): readonly EngineCall[] => calls().filter(({ call }) => call === "assemble");

  before(async () => {
    server = await startModelServer();
    server.script(reply);
    const recorded = recordedPlugin(makeScratch("long"));
    calls = recorded.calls;
    gateway = await startGateway({ server, plugins: recorded.plugins, contextWindow });
    for (; turn < turns; turn++) {
      const said = `${fact(turn)} ${prose(turn, 80)}.${isLooking(turn) ? " Look it up." : ""}`;
      const { status, text } = await gateway.turn(session, said);
      assert.equal(status, 200, text);
      assert.match(text, /^Noted\./);
      if (hungIn !== null && turn + 1 >= hungIn + turnsWithout) answers.resolve();
    }
  });
  after(async () => await server.close());

  it("is folded in the background, by the host's own model", async () => {
    await withStore(gateway, async ({ store }) => {
      const [conversation] = await store.conversations({ sessionKey: session });
      assert(conversation);
      assert.equal(conversation.caughtUp, 0);
      const summaries = await store.summaries({ conversation: conversation.id });
      assert(summaries.length >= 3, `${summaries.length} summaries`);
      assert.deepEqual(new Set(summaries.map(({ level }) => level)), new Set(["normal"]));
      const { calls: made, inputTokens } = await store.usageSince(conversation.createdAt);
      assert.equal(made, askedIn.length, "every call is recorded");
      assert(inputTokens > 0);
    });
    assert.match(gateway.log(), /conversation 1: [\d,]+ → [\d,]+ tokens in \d+ pass/);
  });

  it("shows summaries before the tail, with the times they cover, and explains how to look below them", () => {
    const last = firsts().at(-1);
    assert(last);
    const kinds = last.messages.map(({ text }) => text.includes("<summary id="));
    assert(kinds[0], "a summary comes first");
    assert.equal(kinds.lastIndexOf(true) + 1, kinds.indexOf(false), "and no message before the last of them");
    assert.match(last.messages[0]?.text ?? "", /^\[\w{3} 20\d\d-\d\d-\d\d \d\d:\d\d [^\]]+\] <summary id="sum_/);
    assert.match(last.system, /## Memory of this conversation/);
    const additions = new Set(assemblies().map(({ result }) => result.systemPromptAddition));
    assert.equal(additions.size, 2, "none, and then always the same");
  });

  describe("guarantee 8: assembly makes no model call, and a hung summariser delays nothing, on the host", () => {
    it("answers every turn while a summary is pending", () => {
      assert(hungIn !== null, "a summary was requested and did not come");
      const during = firsts().slice(hungIn + 1, hungIn + turnsWithout);
      assert.equal(during.length, turnsWithout - 1);
      // What is not folded meanwhile is shown unchanged, and no turn is compacted in its middle.
      const compacted = calls().filter(({ call }) => call === "compact");
      assert.deepEqual(compacted, []);
    });
  });

  describe("guarantee 12: never over budget, on the host", () => {
    it("keeps what is shown within the first budget of a turn, and the request within the window", () => {
      let budget = 0;
      for (const { args, result } of assemblies()) {
        if (typeof args.runtimeSettings?.limits?.maxOutputTokens === "number") budget = args.tokenBudget;
        assert(result.estimatedTokens <= Math.min(budget, args.tokenBudget));
      }
      const largest = Math.max(...requests().map(tokensOfRequest));
      assert(largest < contextWindow - 4096, `${largest} tokens`);
      assert(largest > contextWindow / 2, "and it was not small");
    });
  });

  describe("guarantee 13: always a valid array, on the host", () => {
    it("in every request", () => {
      assert.equal(requests().length, turns + Math.ceil(turns / 3));
      for (const request of requests()) assertValid(request);
    });
  });

  describe("guarantee 14: the live turn appears exactly once, last, unchanged, on the host", () => {
    it("in every request", () => {
      for (const [at, request] of firsts().entries()) assertLiveOnce(request, fact(at));
      for (const request of requests()) {
        const said = /The locker of week \d+ opens with \d+\./.exec(request.prompt)?.[0];
        assertLiveOnce(request, said ?? "no fact");
      }
    });
  });

  describe("guarantee 15: prefix stability, on the host", () => {
    it("keeps at least 95% of the prompt between turns, and all of it where nothing was folded", async (t) => {
      const kept = firsts()
        .slice(1)
        .map((next, at) => prefixKept(firsts()[at] ?? next, next));
      const mean = kept.reduce((sum, part) => sum + part, 0) / kept.length;
      const broken = kept.filter((part) => part < 1).length;
      t.diagnostic(`${(100 * mean).toFixed(1)}% kept on average; ${broken} of ${kept.length} turns after a fold`);
      assert(mean >= 0.95, `${mean}`);
      const folds = await withStore(gateway, async ({ store }) => await store.compactions(null, turns));
      const folded = folds.filter(({ passes }) => passes > 0).length;
      assert(broken <= folded, `${broken} changes of the prefix and ${folded} folds`);
    });
  });

  it("is recalled: the model finds what only a summary represents", async () => {
    const question = "Which number opened the locker of week 7?";
    const pattern = "locker of week 7 opens";
    server.script((asked) =>
      asked.kind === "completion" || asked.prompt !== question
        ? reply(asked)
        : asked.results.length === 0
          ? { kind: "answer", calls: [grep({ pattern, mode: "full_text" })] }
          : `It was ${/week 7 opens with (\d+)/.exec(asked.results.join())?.[1]}.`,
    );
    const [request] = firsts().slice(-1);
    assert.equal(
      request?.messages.some(({ text }) => text.includes(fact(7))),
      false,
      "it is not in the prompt",
    );
    assert.equal((await gateway.turn(session, question)).text, "It was 1259.");
  });

  describe("guarantee 1: every message the host sent is stored once, on the host", () => {
    it("all of a long session", async () => {
      await assertStored(gateway, session);
    });
  });
});
