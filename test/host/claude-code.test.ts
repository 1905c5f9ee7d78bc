/** The companion in the real Claude Code. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claudeTools } from "../../src/cli/setup/agents.ts";
import {
  assertAllStored,
  createClaudeCode,
  obey,
  rowsOf,
  sessionOf,
  settled,
  succeed,
  withDatabase,
} from "./coding-agents.ts";
import { describeCompanion } from "./companion-scenarios.ts";
import { startModelServer } from "./model-server.ts";

describeCompanion("Claude Code", createClaudeCode);

describe("permission to use our tools", () => {
  it("is given by the rule that lcm setup names, and Claude cannot ask for it without a terminal", async (test) => {
    const model = await startModelServer();
    test.after(async () => await model.close());
    model.script(obey);
    const agent = await createClaudeCode(model.url);
    const ask = `CALL ${agent.tool("lcm_recent")} {}`;
    const run = async (...words: readonly string[]): Promise<string> =>
      (await succeed(agent.run("-p", ask, "--model=claude-sonnet-4-5", ...words))).stdout;
    assert.match(await run(), /^The tool said: Claude requested permissions to use/);
    const rules = JSON.stringify({ permissions: { allow: [claudeTools] } });
    assert.match(await run("--settings", rules), /^The tool said: What happened since/);
  });
});

describe("Claude Code's tree", () => {
  it("keeps branches: a rewind and a fork", async (test) => {
    const model = await startModelServer();
    test.after(async () => await model.close());
    model.script(obey);
    const agent = await createClaudeCode(model.url);
    await succeed(agent.turn("first: apples"));
    const [transcript = ""] = agent.transcripts();
    const session = { resume: sessionOf(transcript) };
    const answer = rowsOf(transcript).findLast(({ type }) => type === "assistant").uuid;
    await succeed(agent.turn("second: pears", session));
    await succeed(agent.turn("third: quinces", { ...session, words: ["--resume-session-at", answer] }));
    await succeed(agent.turn("fourth: a fork", { ...session, words: ["--fork-session"] }));
    await succeed(agent.turn("bye"));
    await settled(agent);
    const stored = await assertAllStored(agent);
    assert.equal(stored.size, 3);
    const own = stored.get(session.resume);
    assert.ok(own !== undefined);
    const shown = await withDatabase(agent, async (lcm) => JSON.stringify((await lcm.assemble(own.id)).messages));
    assert.match(shown, /first: apples/);
    assert.match(shown, /third: quinces/);
    assert.doesNotMatch(shown, /second: pears/, "the branch that was left is stored, but not in the context");
  });
});
