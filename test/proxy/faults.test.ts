/** Whatever fails, here or at the provider: the agent gets what it would have got without us, or better. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  agentOn,
  saidBy,
  startProxyGround,
  storedPieces,
  type GroundOptions,
  type ProxyGround,
} from "../support/proxy-ground.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { eventually } from "../support/eventually.ts";
import { makeScratch } from "../support/scratch.ts";

async function withGround(options: GroundOptions, test: (ground: ProxyGround) => Promise<void>): Promise<void> {
  const ground = await startProxyGround(options);
  try {
    await test(ground);
  } finally {
    await ground.close();
  }
}

const body = JSON.stringify({
  model: "m",
  max_tokens: 9,
  tools: [{ name: "t" }],
  messages: [{ role: "user", content: "hello" }],
});
const headers = { "content-type": "application/json", "x-claude-code-session-id": "s1", "x-api-key": "sk-secret-key" };

/** Writes until nothing fits any more. */
function fill(folder: string): void {
  for (let size = 2_000_000; size >= 1_000; size = Math.floor(size / 2)) {
    try {
      writeFileSync(join(folder, "filler"), Buffer.alloc(size), { flag: "a" });
    } catch {
      // No more of that size; a part of it may have been written.
    }
  }
}

describe("the provider", () => {
  for (const status of [400, 401, 413, 429, 500, 529]) {
    it(`answers ${status}: the agent gets the same`, async () => {
      await withGround({}, async ({ provider, proxy }) => {
        const said = JSON.stringify({ type: "error", error: { type: "odd", message: `number ${status}` } });
        const fault = {
          kind: "status",
          status,
          headers: { "retry-after": "7", "x-should-retry": "true" },
          body: said,
        } as const;
        provider.faults.push(fault, fault);
        const [direct, through] = [
          await fetch(`${provider.url}/v1/messages`, { method: "POST", headers, body }),
          await fetch(`${proxy.urlOf("model")}/v1/messages`, { method: "POST", headers, body }),
        ];
        assert.equal(through.status, direct.status);
        assert.equal(await through.text(), await direct.text());
        for (const name of ["retry-after", "x-should-retry", "content-type"])
          assert.equal(through.headers.get(name), direct.headers.get(name));
      });
    });
  }

  it("hangs: an agent that gives up ends the request there, too, and its message is stored", async () => {
    await withGround({}, async (ground) => {
      const agent = agentOn(ground, "anthropic", "s1");
      agent.add(agent.user("are you there?"));
      ground.provider.faults.push({ kind: "hang" });
      const givingUp = new AbortController();
      const asked = agent.send(agent.history, "turn", givingUp.signal);
      await eventually(() => ground.provider.requests.length === 1);
      givingUp.abort();
      await assert.rejects(asked);
      await eventually(() => ground.provider.requests[0]?.aborted === true);
      assert.deepEqual(await storedPieces(ground, "s1"), saidBy(agent));
    });
  });

  it("dies in the middle of an answer: so does the answer to the agent, and nothing half is stored", async () => {
    await withGround({}, async (ground) => {
      const agent = agentOn(ground, "anthropic", "s1");
      agent.add(agent.user("tell me: BIG 50"));
      ground.provider.faults.push({ kind: "die" });
      await assert.rejects(agent.send(agent.history));
      await ground.settled();
      assert.equal((await storedPieces(ground, "s1")).length, 1);
      await agent.run();
      await ground.settled();
      assert.deepEqual(await storedPieces(ground, "s1"), saidBy(agent));
    });
  });

  it("is slow: the agent gets each piece as it comes", async () => {
    await withGround({}, async ({ provider, proxy }) => {
      provider.faults.push({ kind: "slow", ms: 60 });
      const streaming = JSON.stringify({ ...JSON.parse(body), stream: true });
      const answer = await fetch(`${proxy.urlOf("model")}/v1/messages`, { method: "POST", headers, body: streaming });
      let pieces = 0;
      for await (const _ of answer.body ?? []) pieces += 1;
      assert.ok(pieces > 3, `${pieces} pieces`);
    });
  });

  it("refuses our prompt: the request is sent unchanged, and after three times only stored", async () => {
    await withGround({ tokensMax: 1_500 }, async (ground) => {
      const agent = agentOn(ground, "anthropic", "s1");
      const { requests } = ground.provider;
      let refused = 0;
      Object.defineProperty(ground.provider, "windowTokens", {
        get: () => (requests.at(-1)?.raw.includes("<summary id=") === true ? (refused++, 0) : Infinity),
      });
      for (let turn = 0; turn < 20; turn++) {
        await agent.prompt(`turn ${turn}: BIG 50`);
        await ground.settled();
      }
      assert.ok(refused > 0 && refused <= 6, `${refused} refused`);
      assert.equal(ground.service.status().sessions[0]?.whyUnchanged, "the provider refused our prompt");
      assert.deepEqual(await storedPieces(ground, "s1"), saidBy(agent));
    });
  });

  it("says that a prompt is too long: the next one is shorter", async () => {
    await withGround({ tokensMax: 100_000 }, async (ground) => {
      const agent = agentOn(ground, "anthropic", "s1");
      for (let turn = 0; turn < 16; turn++) await agent.prompt(`turn ${turn}: BIG 60`);
      await ground.settled();
      ground.provider.windowTokens = Math.ceil((ground.provider.requests.at(-1)?.tokens ?? 0) * 0.8);
      agent.add(agent.user("one more"));
      assert.equal((await agent.send(agent.history)).status, 400);
      await ground.settled();
      assert.equal((await agent.send(agent.history)).status, 200);
    });
  });
});

describe("the database", () => {
  const served = async (ground: ProxyGround): Promise<void> => {
    const agent = agentOn(ground, "anthropic", "s1");
    for (const turn of ["one", "two"]) assert.match(await agent.prompt(turn), /Reply/);
  };

  it("cannot be made: requests go on", async () => {
    const folder = makeScratch("absent");
    writeFileSync(join(folder, "file"), "");
    await withGround({ path: join(folder, "file", "lcm.db") }, served);
  });

  it("is a folder: requests go on", async () => {
    const folder = makeScratch("folder");
    mkdirSync(join(folder, "lcm.db"));
    await withGround({ path: join(folder, "lcm.db") }, served);
  });

  it("is not a database: requests go on, and the file stays", async () => {
    const path = join(makeScratch("corrupt"), "lcm.db");
    writeFileSync(path, "not a database, but somebody's file. ".repeat(200));
    await withGround({ path }, served);
    assert.match(readFileSync(path, "utf8"), /^not a database/);
  });

  it("is locked: requests go on within the deadline, and everything is stored later", async () => {
    await withGround({ patienceMs: 100 }, async (ground) => {
      const agent = agentOn(ground, "chat", "s1");
      await agent.prompt("before");
      await ground.settled();
      const other = new DatabaseSync(ground.path);
      other.exec("BEGIN IMMEDIATE");
      await agent.prompt("while it is locked");
      await agent.prompt("still locked");
      other.exec("ROLLBACK");
      other.close();
      await sleep(300);
      await agent.prompt("after");
      await ground.settled();
      assert.deepEqual(await storedPieces(ground, "s1"), saidBy(agent));
    });
  });

  it("is slow: a request that could not wait for it is stored, and so is its answer, though none follows", async () => {
    await withGround({ patienceMs: 0 }, async (ground) => {
      const agent = agentOn(ground, "chat", "s1");
      await agent.prompt("the only words");
      await ground.settled();
      assert.deepEqual(await storedPieces(ground, "s1"), saidBy(agent));
    });
  });

  it("is read-only: requests go on, and nothing is written", async () => {
    const path = join(makeScratch("readonly"), "lcm.db");
    await (await openSqlite({ path, housekeeping: false })).close();
    const before = readFileSync(path);
    // Not by permissions: root may write everywhere.
    await withGround({ path, openStore: async () => await openSqlite({ path, readOnly: true }) }, served);
    assert.deepEqual(readFileSync(path), before);
  });

  it("is damaged in the middle of a session: requests go on", async () => {
    await withGround({ tokensMax: 2_000 }, async (ground) => {
      const agent = agentOn(ground, "anthropic", "s1");
      for (let turn = 0; turn < 8; turn++) await agent.prompt(`turn ${turn}: BIG 50`);
      await ground.settled();
      await ground.runtime.close(); // It is opened again by the next request.
      const pages = openSync(ground.path, "r+");
      for (let at = 4_096; at < statSync(ground.path).size; at += 4_096)
        writeSync(pages, Buffer.alloc(4_096, "x"), 0, 4_096, at);
      closeSync(pages);
      for (let turn = 0; turn < 4; turn++) assert.match(await agent.prompt(`after ${turn}`), /Reply/);
      assert.ok(ground.runtime.troubles.length > 0, "nothing failed");
    });
  });

  it("is on a full disk: requests go on, and everything is stored once there is room", async (t) => {
    const disk = join(makeScratch("full"), "disk");
    mkdirSync(disk);
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], { encoding: "utf8" });
    if (mounted.status !== 0) return t.skip(`no file system of its own without root: ${mounted.stderr.trim()}`);
    try {
      await withGround({ path: join(disk, "lcm.db"), tokensMax: 20_000 }, async (ground) => {
        const agent = agentOn(ground, "anthropic", "s1");
        await agent.prompt("before");
        await ground.settled();
        fill(disk);
        for (let turn = 0; turn < 4; turn++) assert.match(await agent.prompt(`full ${turn}: BIG 900`), /Reply/);
        await ground.settled();
        assert.ok(ground.runtime.troubles.length > 0, "nothing failed");
        rmSync(join(disk, "filler"));
        await agent.prompt("after");
        await ground.settled();
        assert.deepEqual(await storedPieces(ground, "s1"), saidBy(agent));
      });
    } finally {
      spawnSync("umount", ["-l", disk]);
    }
  });

  it("serves 16 sessions at once", async () => {
    await withGround({ tokensMax: 2_000 }, async (ground) => {
      const wires = ["anthropic", "chat", "responses"] as const;
      const agents = Array.from({ length: 16 }, (_, at) => agentOn(ground, wires[at % 3] ?? "chat", `s${at}`));
      await Promise.all(
        agents.map(async (agent, at) => {
          for (let turn = 0; turn < 8; turn++)
            await agent.prompt(`agent ${at}, turn ${turn}: BIG 50 CALL read {"turn":${turn}}`);
        }),
      );
      await ground.settled();
      for (const agent of agents)
        assert.deepEqual(await storedPieces(ground, agent.options.sessionId ?? ""), saidBy(agent));
      assert.deepEqual(
        ground.provider.requests.flatMap(({ violations }) => violations),
        [],
      );
    });
  });
});
