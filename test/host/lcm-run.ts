/** What `lcm run` promises for any agent: its model is reached through the proxy, and it gets our tools over MCP. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { it } from "node:test";
import type { Timestamp } from "../../src/core/base/time.ts";
import { createLcm } from "../../src/core/lcm.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeScratch } from "../support/scratch.ts";
import { callLine, obey } from "./coding-agents.ts";
import { hostNode, hostPath, namedHostBin, type NamedHost } from "./install.ts";
import { startModelServer } from "./model-server.ts";
import { pluginFolder } from "./plugin.ts";

export interface AgentToRun {
  readonly host: NamedHost;
  readonly program: string;
  readonly env: NodeJS.ProcessEnv;
  /** Its words for one prompt; not the first one of the session if `isNext`. */
  readonly words: (prompt: string, isNext: boolean) => readonly string[];
  /** Whether it reads the prompt from its input. */
  readonly readsInput?: boolean;
  /** How its model calls a tool of ours. */
  readonly tool: (name: string) => string;
  /** Writes what it needs into its home. */
  readonly prepare?: (home: string) => void;
}

const key = "sk-ant-api03-of-this-test";

export function testLcmRun({ host, program, env, words, readsInput = false, tool, prepare }: AgentToRun): void {
  it(`lcm run -- ${program}: everything is stored, once, the model recalls it over MCP, and no file has the key`, async (test) => {
    const model = await startModelServer();
    test.after(async () => await model.close());
    model.script(obey);
    const home = makeScratch(`${host}-run`);
    const folder = join(home, "project");
    mkdirSync(folder);
    prepare?.(home);
    const run = async (prompt: string, isNext: boolean): Promise<string> => {
      const command = [namedHostBin(host, program), ...words(prompt, isNext)];
      const child = spawn(hostNode, [join(pluginFolder(), "bin", "lcm.js"), "run", "--", ...command], {
        cwd: folder,
        env: {
          HOME: home,
          PATH: hostPath,
          TMPDIR: process.env["TMPDIR"],
          LANG: "C.UTF-8",
          ANTHROPIC_BASE_URL: model.url,
          OPENAI_BASE_URL: `${model.url}/v1`,
          ANTHROPIC_API_KEY: key,
          OPENAI_API_KEY: key,
          CODEX_API_KEY: key,
          ...env,
        },
        stdio: "pipe",
      });
      child.stdin.end(readsInput ? prompt : "");
      const [out, err] = await Promise.all([textOf(child.stdout), textOf(child.stderr), once(child, "close")]);
      assert.equal(child.exitCode, 0, `${out}\n${err}`);
      return out;
    };

    assert.match(await run("Remember: the depot code is PLUM-7731.", false), /You said: Remember/);
    const out = await run(callLine(tool("lcm_grep"), { pattern: "depot code" }), true);
    assert.match(out, /PLUM-7731/);
    const result = model.asked.at(-1)?.messages.findLast(({ role }) => role === "tool")?.text ?? "";
    assert.match(result, /msg_1-\d+ user [^]*\n> Remember: the depot code is PLUM-7731/, "our words, and not JSON");
    assert.doesNotMatch(result, /"matches"|structuredContent/);

    const reports = globSync(".openclaw/lcm-proxies/lcm.db *.json", { cwd: home }).map((name) =>
      JSON.parse(readFileSync(join(home, name), "utf8")),
    );
    const why = reports.map(({ sessions, problems }) => [sessions[0]?.whyUnchanged, problems]);
    assert.deepEqual(why, [
      ["everything fits", []],
      ["everything fits", []],
    ]);

    const store = await openSqlite({ path: join(home, ".openclaw", "lcm.db"), readOnly: true });
    const lcm = createLcm({ store, clock: { now: () => new Date().toISOString() as Timestamp } });
    test.after(async () => await lcm.close());
    const [conversation, ...others] = await store.conversations();
    assert(conversation);
    assert.deepEqual(
      others.map(({ sessionKey, title }) => [sessionKey, title]),
      [],
    );
    assert.match(conversation.sessionKey ?? "", new RegExp(`^${host}:`));
    assert.deepEqual(await lcm.inspect(conversation.id), []);
    const texts = (await store.messages({ conversation: conversation.id })).map(({ text }) => text).join("\n");
    assert.match(texts, /the depot code is PLUM-7731[^]*You said[^]*lcm_grep[^]*The tool said/);
    for (const name of globSync("{.openclaw,project}/**/*", { cwd: home })) {
      const path = join(home, name);
      if (existsSync(path) && statSync(path).isFile())
        assert.ok(!readFileSync(path).includes(key), `${name} has the key`);
    }
  });
}
