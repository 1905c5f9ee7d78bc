/** What a companion promises in any coding agent: what it stores, what the model sees, and that it never holds up a turn. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import { makeScratch } from "../support/scratch.ts";
import {
  assertAllStored,
  callLine,
  hostSummary,
  obey,
  type CodingAgent,
  sessionOf,
  settled,
  succeed,
} from "./coding-agents.ts";
import { hold } from "./hold.ts";
import { hostNode } from "./install.ts";
import { startModelServer, type ModelServer } from "./model-server.ts";
import { pluginFolder } from "./plugin.ts";

/** What a host prints when a hook fails or takes too long. */
const hookTrouble = /hook/i;

type Create = (modelUrl: string, env?: NodeJS.ProcessEnv) => Promise<CodingAgent>;

export function describeCompanion(title: string, create: Create): void {
  let model: ModelServer;
  before(async () => {
    model = await startModelServer();
    model.script(obey);
  });
  after(async () => await model.close());

  describe(`a session of ${title}`, () => {
    it("is stored row by row; after its compaction the model gets our recap, and recalls a fact through the tools", async () => {
      const agent = await create(model.url, { LCM_FRESH_TAIL_COUNT: "4", LCM_LEAF_MIN_FANOUT: "2" });
      await succeed(agent.turn("Remember: the depot code is PLUM-7731. Always answer in English."));
      const [transcript = ""] = agent.transcripts();
      const session = { resume: sessionOf(transcript) };
      for (let turn = 2; turn <= 9; turn++) {
        const { name, args } = agent.shell(`echo step ${turn}; seq ${turn}00 ${turn}40`);
        await succeed(agent.turn(`Step ${turn}\n${callLine(name, args)}`, session));
      }
      await succeed(agent.compact(session));
      model.forget();
      const { stdout } = await succeed(
        agent.turn(callLine(agent.tool("lcm_grep"), { pattern: "depot code" }), session),
      );
      // Codex compacts within this turn, before it asks.
      const first =
        model.asked.map(({ body }) => JSON.stringify(body)).find((body) => body.includes("lcm_grep {")) ?? "";
      assert.ok(first.includes(hostSummary), "the host's own summary is there");
      assert.match(first, /Memory of this conversation/);
      assert.match(first, /stored word for word: msg_1-\d+ to msg_1-\d+/);
      assert.match(first, /Always answer in English/, "a standing instruction stays");
      assert.match(first, /<summary id=.{0,3}sum_/, "and so does what was folded");
      assert.match(stdout, /PLUM-7731/);
      // The model gets our words, not the JSON of the same.
      const result = model.asked.at(-1)?.messages.findLast(({ role }) => role === "tool")?.text ?? "";
      assert.match(result, /^msg_1-\d+ user .*\n> Remember: the depot code is PLUM-7731/m);
      assert.doesNotMatch(result, /"matches"|structuredContent/);
      await succeed(agent.turn("bye"));
      await settled(agent);
      const stored = await assertAllStored(agent);
      assert.equal(stored.get(session.resume)?.folder, agent.folder);
      assert.equal(stored.size, 2);
      // An import of the same files finds everything there.
      const words = [join(pluginFolder(), "bin", "lcm.js"), "import", ...agent.transcripts(), "--json"];
      const imported = spawnSync(hostNode, [...words, "--db", agent.database], { encoding: "utf8" });
      assert.equal(imported.status, 0, imported.stderr);
      const kinds: readonly string[] = JSON.parse(imported.stdout).files.map(({ kind }: { kind: string }) => kind);
      assert.deepEqual([...new Set(kinds)], ["unchanged"]);
      assert.deepEqual(await assertAllStored(agent).then((again) => again.size), 2);
    });

    it("has its sub-agents stored as conversations of their own that name it", async () => {
      const agent = await create(model.url);
      await succeed(agent.turn(agent.subagent("count the pears")));
      await succeed(agent.turn("bye"));
      await settled(agent);
      const stored = await assertAllStored(agent);
      const child = [...stored.values()].find(({ parentSessionId }) => parentSessionId !== null);
      assert.ok(child !== undefined, "a sub-agent has run");
      assert.equal(stored.get(child.parentSessionId ?? "")?.parentSessionId, null);
    });

    it("is whole after the host was killed in the middle of a turn", async () => {
      const agent = await create(model.url);
      await succeed(agent.turn("before the kill"));
      const [transcript = ""] = agent.transcripts();
      const session = { resume: sessionOf(transcript) };
      const asked = model.asked.length;
      model.script((each) => (JSON.stringify(each.body).includes("the cut") ? { kind: "hang" } : obey(each)));
      const { name, args } = agent.shell("echo almost");
      const child = agent.start(`the cut\n${callLine(name, args)}`, session);
      while (model.asked.length === asked) await sleep(50);
      child.kill("SIGKILL");
      await once(child, "close");
      model.script(obey);
      await succeed(agent.turn("another session in the same folder"));
      await settled(agent);
      await assertAllStored(agent);
      await succeed(agent.turn("after the kill", session));
      await succeed(agent.turn("bye"));
      await settled(agent);
      await assertAllStored(agent);
    });
  });

  describe(`guarantee 38: whatever is wrong with our database, ${title} goes on`, () => {
    it("locked: the turn ends as usual, and the rows come later", async () => {
      const agent = await create(model.url);
      await succeed(agent.turn("the first"));
      const [transcript = ""] = agent.transcripts();
      const session = { resume: sessionOf(transcript) };
      await settled(agent);
      const lock = await hold(agent.database, "BEGIN EXCLUSIVE");
      const ran = await agent.turn("the second", session);
      await lock.release();
      const { status, stdout, stderr } = ran;
      assert.equal(status, 0);
      assert.doesNotMatch(stderr, hookTrouble);
      assert.match(stdout, /You said: the second/);
      await succeed(agent.turn("bye"));
      await settled(agent);
      await assertAllStored(agent);
    });

    it("gone: it is made again, whole", async () => {
      const agent = await create(model.url);
      await succeed(agent.turn("the first"));
      const [transcript = ""] = agent.transcripts();
      await settled(agent);
      for (const end of ["", "-wal", "-shm"]) rmSync(agent.database + end, { force: true });
      const { stderr } = await succeed(agent.turn("the second", { resume: sessionOf(transcript) }));
      assert.doesNotMatch(stderr, hookTrouble);
      await succeed(agent.turn("bye"));
      await settled(agent);
      await assertAllStored(agent);
    });

    it("on a full disk, or where nothing can be written: the turn ends as usual, and the rows come later", async (test) => {
      const disk = join(makeScratch("full"), "disk");
      mkdirSync(disk);
      const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", disk]);
      if (mounted.status !== 0) return test.skip("mounting a small disk needs root");
      test.after(() => spawnSync("umount", ["--lazy", disk]));
      const agent = await create(model.url, { LCM_DATABASE_PATH: join(disk, "lcm.db") });
      await succeed(agent.turn("the first"));
      const [transcript = ""] = agent.transcripts();
      await settled(agent);
      const { bavail, bsize } = statfsSync(disk);
      writeFileSync(join(disk, "ballast"), Buffer.alloc(bavail * bsize));
      const session = { resume: sessionOf(transcript) };
      const { stdout, stderr } = await succeed(agent.turn("the second", session));
      assert.match(stdout, /You said: the second/);
      assert.doesNotMatch(stderr, hookTrouble);
      rmSync(join(disk, "ballast"));
      await succeed(agent.turn("bye"));
      await settled(agent);
      await assertAllStored(agent);
    });
  });
}
