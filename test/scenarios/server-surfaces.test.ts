/** Every other surface on a PostgreSQL server, once: the terminal UI, MCP, the library, the runtime of hosts, the hook. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createLcm, openStore, systemClock } from "../../src/index.ts";
import { openRuntime } from "../../src/hosts/shared/open-runtime.ts";
import { homeAt } from "../support/platform.ts";
import { portOver, startRobot } from "../support/robot.ts";
import { createHost, toAppendable, user } from "../support/scripted-host.ts";
import { usePostgres } from "../support/shared-postgres.ts";
import { bare, bin, createFolder } from "./program.ts";

const server = await usePostgres();
const urlOf = (schema: string): string => `${server.url}?schema=${schema}`;
const shown = /postgres:\/\/postgres@127\.0\.0\.1:\d+\/t_\w+\?schema=\w+/;

/** A conversation with these words. */
async function say(url: string, ...words: readonly string[]): Promise<void> {
  const store = await openStore(url);
  const { id } = await store.open({ sessionId: "talk" });
  const host = createHost(words.join(" "));
  for (const each of words) host.says(user(each));
  await store.append(id, host.entries.map(toAppendable));
  await store.close();
}

describe("on a server", () => {
  it("the library stores, builds prompts and searches", async () => {
    const url = urlOf("library");
    await say(url, "a heron at the harbour", "an otter");
    const store = await openStore(url);
    const lcm = createLcm({ store, clock: systemClock });
    const [{ id } = assert.fail()] = await store.conversations();
    const { messages } = await lcm.assemble(id, { budget: 10_000 });
    assert.equal(messages.length, 2);
    assert.match((await store.status()).path, shown);
    await lcm.close();
  });

  it("the terminal UI shows where it is and what is stored, and follows what others write", async () => {
    const url = urlOf("tui");
    await say(url, "a heron at the harbour");
    const port = portOver(url);
    const robot = startRobot(port, { columns: 160, rows: 24, now: "2026-11-10T09:00:00.000Z" });
    try {
      await robot.sees(/talk +1 /);
      await robot.sees(/postgres@127\.0\.0\.1/);
      await say(url, "a heron at the harbour", "a second message");
      await robot.sees(/talk +3 /);
      await robot.press("!");
      await robot.press("b");
      await robot.sees(/not backed up by lcm/);
    } finally {
      await robot.end();
      await port.close();
    }
  });

  it("MCP searches", async () => {
    const url = urlOf("mcp");
    await say(url, "a heron at the harbour");
    const state = createFolder();
    const env = { ...bare, PATH: bare.PATH ?? "", ...homeAt(state), OPENCLAW_STATE_DIR: state, LCM_DATABASE_URL: url };
    const client = new Client({ name: "test", version: "1" });
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [bin, "mcp"], env, cwd: state }));
    try {
      const found = await client.callTool({
        name: "lcm_grep",
        arguments: { pattern: "heron", allConversations: true },
      });
      assert.match(JSON.stringify(found), /a heron at the harbour/);
    } finally {
      await client.close();
    }
  });

  it("the runtime of hosts opens it, names it without its password, and is one per database", async () => {
    const state = createFolder();
    const logged: string[] = [];
    const log = (message: string): void => void logged.push(message);
    const env = { OPENCLAW_STATE_DIR: state, LCM_DATABASE_URL: urlOf("runtime") };
    const logger = { info: log, warn: log, error: log };
    const runtime = await openRuntime(env, logger);
    assert.equal(await openRuntime(env, logger), runtime);
    const { store } = await runtime.open();
    await store.open({ sessionId: "s" });
    assert.match(runtime.path, shown);
    await runtime.close();
    const gone = await openRuntime({ ...env, LCM_DATABASE_URL: "postgres://u:quokka-4711@127.0.0.1:1/db" }, logger);
    await assert.rejects(gone.open(), { code: "unavailable" });
    assert.doesNotMatch(logged.join("\n") + gone.path, /quokka|a%20password/);
    await gone.close();
    assert.deepEqual(readdirSync(state), []);
  });

  it("the hook of a coding agent stores the transcript", async () => {
    const [state, url] = [createFolder(), urlOf("hook")];
    const transcript = join(state, "11111111-1111-4111-8111-111111111111.jsonl");
    const row = {
      type: "user",
      uuid: "22222222-2222-4222-8222-222222222222",
      parentUuid: null,
      sessionId: "11111111-1111-4111-8111-111111111111",
      timestamp: "2026-11-10T09:00:00.000Z",
      cwd: state,
      message: { role: "user", content: "a heron at the harbour" },
    };
    writeFileSync(transcript, `${JSON.stringify(row)}\n`);
    const hook = fileURLToPath(new URL("../../bin/lcm-hook.js", import.meta.url));
    const input = JSON.stringify({
      hook_event_name: "Stop",
      session_id: row.sessionId,
      transcript_path: transcript,
      cwd: state,
    });
    const env = { ...bare, ...homeAt(state), OPENCLAW_STATE_DIR: state, LCM_DATABASE_URL: url };
    const { status } = spawnSync(process.execPath, [hook, "claude-code"], { input, env, cwd: state });
    assert.equal(status, 0);
    const store = await openStore(url);
    assert.equal((await store.status()).messages, 1);
    await store.close();
    assert.ok(!existsSync(join(state, "lcm.db")));
  });
});
