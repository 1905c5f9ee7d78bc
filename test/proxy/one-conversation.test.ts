/** One session is one conversation, whichever way its messages come in: by the proxy, a companion, a plugin or an import. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { exportTranscript } from "../../src/core/ingest/export-transcript.ts";
import { comparable, isTelling, saidIn } from "../../src/core/messages/said.ts";
import { claudeCode } from "../../src/hosts/claude-code/host.ts";
import { storeTranscript } from "../../src/hosts/shared/companion.ts";
import { codex } from "../../src/hosts/codex/host.ts";
import {
  agentOn,
  findingsIn,
  saidBy,
  startProxyGround,
  storedPieces,
  type ProxyGround,
} from "../support/proxy-ground.ts";
import { makeScratch } from "../support/scratch.ts";
import type { ScriptedAgent } from "../support/scripted-agent.ts";
import { answerByLast } from "../support/strict-provider.ts";

/* oxlint-disable typescript/no-explicit-any */
type Any = any;

const session = "11111111-2222-3333-4444-555555555555";

/** Claude Code's transcript of what an agent said: a row per block, and rows of its own in between. */
function claudeRows(agent: ScriptedAgent): readonly Any[] {
  const rows: Any[] = [];
  const push = (row: Any): void => {
    const uuid = `00000000-0000-4000-8000-${String(rows.length).padStart(12, "0")}`;
    const time = new Date(Date.UTC(2026, 10, 18, 12, 0, rows.length)).toISOString();
    rows.push({
      uuid,
      parentUuid: rows.at(-1)?.uuid ?? null,
      sessionId: session,
      cwd: "/project",
      timestamp: time,
      ...row,
    });
  };
  for (const { role, content } of agent.history) {
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    for (const block of blocks) {
      if (block.text?.startsWith("<system-reminder>") === true) push({ type: "attachment", attachment: block.text });
      else if (role === "user" && block.type === "text") push({ type: "user", message: { role, content: block.text } });
      else push({ type: role, message: { role, content: [block], ...(role === "assistant" ? { id: "msg_1" } : {}) } });
    }
    push({ type: "user", isMeta: true, message: { role: "user", content: "Caveat: the host's own words" } });
  }
  return rows;
}

const codexRows = (agent: ScriptedAgent): readonly Any[] =>
  agent.history.map((item, ordinal) => ({
    timestamp: new Date(Date.UTC(2026, 10, 18, 12, 0, ordinal)).toISOString(),
    ordinal,
    type: "response_item",
    payload: item,
  }));

const kinds = {
  anthropic: { host: claudeCode, rows: claudeRows, name: `${session}.jsonl` },
  responses: { host: codex, rows: codexRows, name: `rollout-2026-11-18T12-00-00-${session}.jsonl` },
} as const;

/** What a companion does with the rows: it stores what the transcript has gained. */
async function companion(ground: ProxyGround, agent: ScriptedAgent, folder: string, upto?: number): Promise<void> {
  const { host, rows, name } = kinds[agent.options.wire as "anthropic"];
  const path = join(folder, name);
  writeFileSync(
    path,
    rows(agent)
      .slice(0, upto)
      .map((row) => `${JSON.stringify(row)}\n`)
      .join(""),
  );
  const lcm = await ground.lcm();
  const problems: string[] = [];
  const deps = {
    store: lcm.store,
    clock: lcm.clock,
    settings: lcm.settings,
    onProblem: (_: string, error: unknown) => problems.push(String(error)),
  };
  await storeTranscript(deps, host, path);
  assert.deepEqual(problems, []);
}

/** The host's transcript, line by line, and nothing else; whatever came in first. */
async function assertGivenBack(ground: ProxyGround, agent: ScriptedAgent): Promise<void> {
  const { store } = await ground.lcm();
  const [conversation] = await store.conversations({ sessionId: session });
  const lines = await Array.fromAsync(exportTranscript(store, conversation?.id ?? assert.fail()));
  const { rows } = kinds[agent.options.wire as "anthropic"];
  assert.deepEqual(
    lines,
    rows(agent).map((row) => JSON.stringify(row)),
  );
}

for (const wire of ["anthropic", "responses"] as const) {
  const prompts = Array.from({ length: 12 }, (_, at) =>
    at % 3 === 1 ? `${at}: THINK CALL read {"path":"file${at}"} TWICE` : at % 3 === 2 ? "go on" : `${at}: BIG 40 words`,
  );

  describe(`a session over ${wire} that comes by the proxy and by a companion`, () => {
    it("is stored once if the proxy is first", async () => {
      const ground = await startProxyGround({ tokensMax: 1_200 });
      const folder = makeScratch("transcripts");
      try {
        const agent = agentOn(ground, wire, session);
        for (const prompt of prompts) {
          await agent.prompt(prompt);
          await ground.settled();
          await companion(ground, agent, folder);
        }
        assert.deepEqual(await storedOnce(ground), saidBy(agent));
        await assertGivenBack(ground, agent);
        assert.deepEqual(
          ground.provider.requests.flatMap(({ violations }) => violations),
          [],
        );
        assert.deepEqual(ground.runtime.troubles, []);
        assert.deepEqual(await findingsIn(ground), []);
        assert.ok((ground.service.status().sessions[0]?.replaced ?? 0) > 3);
      } finally {
        await ground.close();
      }
    });

    it("is stored once if the companion is first, and by turns", async () => {
      const ground = await startProxyGround({ tokensMax: 1_200 });
      const folder = makeScratch("transcripts");
      try {
        const direct = agentOn(ground, wire, session);
        const agent = new (direct.constructor as typeof ScriptedAgent)({ ...direct.options, base: () => base });
        let base = ground.provider.url;
        for (const [turn, prompt] of prompts.entries()) {
          // Three turns without the proxy, three with it.
          base = Math.floor(turn / 3) % 2 === 0 ? ground.provider.url : ground.proxy.urlOf("model");
          await agent.prompt(prompt);
          await ground.settled();
          if (turn % 3 === 2) await companion(ground, agent, folder);
        }
        assert.deepEqual(await storedOnce(ground), saidBy(agent));
        await assertGivenBack(ground, agent);
        assert.deepEqual(
          ground.provider.requests.flatMap(({ violations }) => violations),
          [],
        );
        assert.deepEqual(await findingsIn(ground), []);
      } finally {
        await ground.close();
      }
    });
  });
}

describe("the export of a session whose transcript the host has not finished", () => {
  it("has the missing words from the proxy", async () => {
    const ground = await startProxyGround();
    try {
      const agent = agentOn(ground, "anthropic", session);
      await agent.prompt('THINK CALL read {"path":"x"} TWICE');
      await ground.settled();
      // In the middle of an answer: a thought and a text are there, its calls are not.
      await companion(ground, agent, makeScratch("transcripts"), 5);
      const { store } = await ground.lcm();
      const [conversation] = await store.conversations({ sessionId: session });
      const lines = await Array.fromAsync(exportTranscript(store, conversation?.id ?? assert.fail()));
      const said = lines.flatMap((line) => {
        const row = JSON.parse(line);
        return saidIn(row.message ?? row)
          .filter(isTelling)
          .map(comparable);
      });
      for (const words of saidBy(agent)) assert.ok(said.includes(words), words);
    } finally {
      await ground.close();
    }
  });
});

/** Without the host's own rows. */
async function storedOnce(ground: ProxyGround): Promise<readonly string[]> {
  const pieces = await storedPieces(ground, session);
  return pieces.filter((piece) => !piece.includes("the host's own words"));
}

const piOn = (ground: ProxyGround): ScriptedAgent =>
  agentOn(ground, "chat", null, undefined, { "user-agent": "pi/1.5.0" });

/**
 * Pi quotes what it wants summed up in one message, and the summary in another one. It keeps the last messages. A turn of
 * which it keeps only the end is summed up by itself.
 */
async function compactAsPi(agent: ScriptedAgent, keep: number): Promise<void> {
  const from = agent.history.length - keep;
  const told = agent.history
    .slice(0, from)
    .map(({ role, content }) => `[${role === "user" ? "User" : "Assistant"}]: ${content}`);
  const texts: string[] = [];
  for (const quoted of [told.join("\n\n"), "[User]: short words"]) {
    const asked = `<conversation>\n${quoted}\n</conversation>\n\nCreate a structured summary.`;
    texts.push((await agent.send([agent.user(asked)], "compaction")).text);
  }
  const text = texts.join("\n\n---\n\n**Turn Context (split turn):**\n\n");
  const opener = "The conversation history before this point was compacted into the following summary:";
  agent.history = [agent.user(`${opener}\n\n<summary>\n${text}\n</summary>`), ...agent.history.slice(from)];
}

/** What is stored, conversation by conversation. */
async function allStored(ground: ProxyGround): Promise<(readonly string[])[]> {
  const { store } = await ground.lcm();
  const sessions = (await store.conversations()).map(({ sessionId }) => sessionId);
  return await Promise.all(sessions.map(async (id) => await storedPieces(ground, id)));
}

describe("an agent that sends no session id", () => {
  const tell = async (agent: ScriptedAgent, turns: readonly string[], ground: ProxyGround): Promise<void> => {
    for (const turn of turns) {
      await agent.prompt(turn);
      await ground.settled();
    }
  };
  const conversations = async (ground: ProxyGround): Promise<number> =>
    (await (await ground.lcm()).store.conversations()).length;

  it("is found again by what it says, after its own compaction and after a restart", async () => {
    const ground = await startProxyGround();
    try {
      const agent = agentOn(ground, "chat", null);
      await tell(agent, ["one: BIG 20", "two: BIG 20", "three: BIG 20", "four"], ground);
      agent.history = [
        agent.user("The conversation history before this point was compacted."),
        ...agent.history.slice(-4),
      ];
      await tell(agent, ["five", "six"], ground);
      await ground.restart();
      await tell(agent, ["seven"], ground);
      assert.equal(await conversations(ground), 1);
    } finally {
      await ground.close();
    }
  });

  for (const keep of [0, 1])
    it(`is found again by its summary if its compaction keeps ${keep === 0 ? "nothing" : "one answer"}`, async () => {
      const ground = await startProxyGround();
      try {
        const agent = piOn(ground);
        await tell(agent, ["one: BIG 60", "two: BIG 60", "three: BIG 60"], ground);
        for (const turns of [["four: BIG 60", "five: BIG 60"], ["six"]]) {
          await compactAsPi(agent, keep);
          await tell(agent, turns, ground);
        }
        assert.equal(await conversations(ground), 1);
        assert.deepEqual(await allStored(ground), [saidBy(agent)]);
      } finally {
        await ground.close();
      }
    });

  it("stays apart from another one that compacts at the same time and keeps nothing", async () => {
    const ground = await startProxyGround();
    try {
      const agents = [piOn(ground), piOn(ground)];
      const both = async (turn: string): Promise<void> => {
        for (const agent of agents) await tell(agent, [turn], ground);
      };
      for (const turn of ["one: BIG 60", "two: BIG 60"]) await both(turn);
      for (const agent of agents) await compactAsPi(agent, 0);
      await both("three");
      const inOrder = (each: readonly (readonly string[])[]): readonly string[] =>
        each.map((said) => said.join("\n")).toSorted();
      assert.deepEqual(inOrder(await allStored(ground)), inOrder(agents.map(saidBy)));
    } finally {
      await ground.close();
    }
  });

  it("is not taken for one whose summary is as short as many are", async () => {
    const ground = await startProxyGround();
    try {
      const agent = piOn(ground);
      await tell(agent, ["one: BIG 60", "two: BIG 60"], ground);
      ground.provider.answer = (wire, body, number) =>
        body.tools === undefined ? { text: "All is done." } : answerByLast(wire, body, number);
      await compactAsPi(agent, 0);
      await tell(agent, ["three"], ground);
      assert.equal(await conversations(ground), 2);
    } finally {
      await ground.close();
    }
  });

  it("stays apart from another one that begins alike, until an answer tells them apart", async () => {
    const ground = await startProxyGround();
    try {
      const [one, other] = [agentOn(ground, "chat", null), agentOn(ground, "chat", null)];
      for (const turn of ["hello", "next", "and then"])
        for (const agent of [one, other]) await tell(agent, [turn], ground);
      assert.equal(await conversations(ground), 2);
      const { store } = await ground.lcm();
      for (const { totals } of await store.conversations()) assert.equal(totals.messages, 6);
    } finally {
      await ground.close();
    }
  });

  it("has a path of its own in each run", async () => {
    const ground = await startProxyGround();
    try {
      ground.provider.answer = () => ({ text: "always the same" });
      const [one, other] = [agentOn(ground, "chat", null, "aa"), agentOn(ground, "chat", null, "bb")];
      for (const turn of ["hello", "next"]) for (const agent of [one, other]) await tell(agent, [turn], ground);
      assert.equal(await conversations(ground), 2);
    } finally {
      await ground.close();
    }
  });
});
