/** When summaries are written, by whom, and what a count of tokens sees of them. */

import assert from "node:assert/strict";
import { globSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import type { Timestamp } from "../../src/core/base/time.ts";
import { keyedModel } from "../../src/cli/open.ts";
import { eventually } from "../support/eventually.ts";
import { agentOn, startProxyGround, type GroundOptions, type ProxyGround } from "../support/proxy-ground.ts";
import { answerByLast } from "../support/strict-provider.ts";

async function withGround(options: GroundOptions, test: (ground: ProxyGround) => Promise<void>): Promise<void> {
  const ground = await startProxyGround(options);
  try {
    await test(ground);
  } finally {
    await ground.close();
  }
}

const summariesIn = async (ground: ProxyGround): Promise<number> =>
  (await (await ground.lcm()).store.conversations())[0]?.totals.summaries ?? 0;

/** Prompts until a fold is due, and more room is left than one turn takes. */
async function talkUntilDue(ground: ProxyGround): Promise<void> {
  const agent = agentOn(ground, "anthropic", "s1");
  for (let turn = 0; turn < 40; turn++) {
    await agent.prompt(`turn ${turn}: BIG 20`);
    await ground.settled();
    const lcm = await ground.lcm();
    const [conversation] = await lcm.store.conversations();
    assert.ok(conversation);
    if (conversation.totals.summaries > 0 || (await lcm.due(conversation.id)).kind === "sweep") return;
  }
  assert.fail("no fold is due after 40 turns");
}

describe("a fold", () => {
  it("waits while the provider's cache is warm and there is room", async () => {
    await withGround({ tokensMax: 3_000 }, async (ground) => {
      await talkUntilDue(ground);
      assert.equal(await summariesIn(ground), 0);
      ground.service.end();
      await ground.settled();
      assert.ok((await summariesIn(ground)) > 0, "at the end");
    });
  });

  it("comes when the session has been idle for as long as the cache lives", async () => {
    await withGround({ tokensMax: 3_000, idleMs: 1 }, async (ground) => {
      await talkUntilDue(ground);
      await eventually(async () => (await summariesIn(ground)) > 0);
    });
  });

  it("does not wait for an agent that never rests", async () => {
    await withGround({ tokensMax: 3_000 }, async (ground) => {
      const agent = agentOn(ground, "anthropic", "s1");
      for (let turn = 0; turn < 40; turn++) {
        await agent.prompt(`turn ${turn}: BIG 20`);
        await ground.settled();
      }
      assert.ok((await summariesIn(ground)) > 0);
      assert.ok(ground.provider.requests.every(({ tokens }) => tokens < 3_400));
    });
  });
});

describe("the agent's own key", () => {
  const talk = async (ground: ProxyGround, headers: Record<string, string>): Promise<readonly string[]> => {
    ground.provider.answer = (wire, body, number) =>
      (body.tools ?? []).length > 0
        ? answerByLast(wire, body, number)
        : { text: `The user counted turns, and the agent answered with words. ${"More was said. ".repeat(8)}` };
    const agent = agentOn(ground, "anthropic", "s1", undefined, headers);
    for (let turn = 0; turn < 30; turn++) {
      await agent.prompt(`turn ${turn}: BIG 40`);
      await ground.settled();
    }
    const written = ground.provider.requests.filter(({ body }) => (body.tools ?? []).length === 0);
    return written.map(({ headers: sent, body, path }) => `${path} ${body.model} ${String(sent["x-api-key"])}`);
  };
  const consent: GroundOptions = {
    tokensMax: 2_500,
    modelWith: async (client) => await keyedModel(client, { summaryTimeoutSeconds: 10 }),
  };
  const key = { "x-api-key": "sk-ant-api03-very-secret" };

  it("writes summaries with the agent's model if the user agrees, is metered, and is in no file afterwards", async () => {
    const ground = await startProxyGround(consent);
    try {
      const written = await talk(ground, key);
      assert.ok(written.length > 0);
      for (const each of written) assert.equal(each, "/v1/messages scripted sk-ant-api03-very-secret");
      const { store } = await ground.lcm();
      assert.equal(
        (await store.usageSince("2026-01-01T00:00:00.000Z" as Timestamp)).calls,
        written.length,
        "guarantee 20: every call is on record",
      );
      const [conversation] = await store.conversations();
      const summaries = conversation === undefined ? [] : await store.summaries({ conversation: conversation.id });
      assert.ok(summaries.some(({ model }) => model?.includes("scripted") === true));
      assert.doesNotMatch(JSON.stringify(ground.service.status()), /very-secret/);
    } finally {
      await ground.close();
    }
    const folder = dirname(ground.path);
    for (const name of globSync("**/*", { cwd: folder })) {
      const path = join(folder, name);
      if (statSync(path).isFile()) assert.ok(!readFileSync(path).includes("very-secret"), name);
    }
  });

  it("is not used without consent, nor the token of a subscription", async () => {
    await withGround({ tokensMax: 2_500 }, async (ground) => assert.deepEqual(await talk(ground, key), []));
    const token = { authorization: "Bearer sk-ant-oat01-abc", "x-api-key": "" };
    await withGround(consent, async (ground) => assert.deepEqual(await talk(ground, token), []));
  });
});

describe("a count of tokens", () => {
  it("is of what would be sent, and changes nothing", async () => {
    await withGround({ tokensMax: 2_500 }, async (ground) => {
      const agent = agentOn(ground, "anthropic", "s1");
      for (let turn = 0; turn < 30; turn++) {
        await agent.prompt(`turn ${turn}: BIG 40`);
        await ground.settled();
      }
      agent.add(agent.user("how large is this?"));
      const before = JSON.stringify([await (await ground.lcm()).store.conversations(), ground.service.status()]);
      const count = async (list: readonly object[], session: string) => {
        const headers = { "content-type": "application/json", "x-api-key": "k", "x-claude-code-session-id": session };
        const body = JSON.stringify(agent.body([...list]));
        const url = `${ground.proxy.urlOf("model")}/v1/messages/count_tokens`;
        const answer = await (await fetch(url, { method: "POST", headers, body })).json();
        return { ...(answer as { readonly input_tokens: number; readonly echo: string }), body };
      };
      const counted = await count(agent.history, "s1");
      const elsewhere = await count(agent.history, "unknown");
      const short = await count(agent.history.slice(-1), "s1");
      assert.equal(
        JSON.stringify([await (await ground.lcm()).store.conversations(), ground.service.status()]),
        before,
        "nothing is stored",
      );
      assert.equal(elsewhere.echo, elsewhere.body);
      assert.equal(short.echo, short.body);
      await agent.run();
      const sent = ground.provider.requests.at(-1);
      assert.equal(counted.echo, sent?.raw);
      assert.ok(counted.input_tokens < elsewhere.input_tokens / 2);
    });
  });
});
