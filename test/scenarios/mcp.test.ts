/** Tests `lcm mcp` with the protocol's own client, over the demo's conversation and a scripted model on loopback. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { PassThrough } from "node:stream";
import type { Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import type { CallToolResult } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createLcm } from "../../src/core/lcm.ts";
import { serveMcp } from "../../src/mcp/server.ts";
import { openSqliteWorker } from "../../src/store/sqlite/worker.ts";
import { createHost, toIncoming, user } from "../support/scripted-host.ts";
import { startScriptedProvider } from "../support/scripted-provider.ts";
import type { ScriptedProvider } from "../support/scripted-provider.ts";
import { bare, bin, createFolder, linesOf, ok } from "./program.ts";
import { homeAt, withoutReplacing, withoutSignals } from "../support/platform.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

/** The demo's database, made once; a server writes only grants and usage to it. */
const state = createFolder();
let database = "";
let provider: ScriptedProvider;

before(async () => {
  const { kept } = ok({ state, env: { TMPDIR: state } }, "demo", "--keep", "--json").json;
  database = join(kept, "lcm.db");
  provider = await startScriptedProvider();
});
after(async () => await provider.close());

type Env = Readonly<Record<string, string>>;

const environment = (env: Env = {}): Record<string, string> => ({
  ...bare,
  PATH: bare.PATH ?? "",
  ...homeAt(state),
  OPENCLAW_STATE_DIR: state,
  LCM_DATABASE_PATH: database,
  ...env,
});

const withModel = (): Env => ({
  LCM_SUMMARY_MODEL: "scripted/storyteller",
  LCM_SUMMARY_BASE_URL: `${provider.url}/v1`,
  LCM_EXPAND_TIMEOUT_SECONDS: "60",
});

type Meta = Record<string, unknown>;

interface Connected {
  readonly client: Client;
  readonly stderr: () => string;
  readonly call: (name: string, args: Record<string, unknown>, meta?: Meta) => Promise<CallToolResult>;
}

/** A client with its own server, which ends when the work is done. */
async function connected<T>(
  options: {
    readonly env?: Env;
    readonly args?: readonly string[];
    readonly mode?: "legacy" | "auto";
    readonly cwd?: string;
  },
  work: (connected: Connected) => Promise<T>,
): Promise<T> {
  const { env, args = [], mode = "legacy", cwd = state } = options;
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [bin, "mcp", ...args],
    env: environment(env),
    cwd,
    stderr: "pipe",
  });
  let stderr = "";
  transport.stderr?.on("data", (chunk) => (stderr += String(chunk)));
  const client = new Client({ name: "scenario", version: "1.0.0" }, { versionNegotiation: { mode } });
  await client.connect(transport);
  try {
    const call: Connected["call"] = async (name, given, meta) =>
      await client.callTool({ name, arguments: given, ...(meta === undefined ? {} : { _meta: meta }) });
    return await work({ client, call, stderr: () => stderr });
  } finally {
    await client.close();
  }
}

const textIn = ({ content }: CallToolResult): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("\n");

function openGrants(): number {
  const db = new DatabaseSync(database, { readOnly: true });
  try {
    const row = db.prepare("SELECT count(*) AS open FROM expansion_grants WHERE revoked_at IS NULL").get();
    return Number(row?.["open"]);
  } finally {
    db.close();
  }
}

const offered = ["lcm_grep", "lcm_describe", "lcm_expand_query", "lcm_recent", "lcm_map"];

describe("lcm mcp", () => {
  for (const mode of ["legacy", "auto"] as const) {
    it(`offers its tools to ${mode === "legacy" ? "a client of 2025" : "one of 2026"}, marked read-only`, async () => {
      await connected({ mode }, async ({ client }) => {
        const { tools } = await client.listTools();
        assert.deepEqual(
          tools.map(({ name }) => name),
          offered,
        );
        for (const { annotations, inputSchema, description, title } of tools) {
          assert.deepEqual(annotations, { readOnlyHint: true, openWorldHint: false });
          assert.equal(inputSchema.type, "object");
          assert.ok(description !== undefined && description.length > 40 && title !== undefined);
        }
        assert.match(client.getInstructions() ?? "", /lcm_expand_query.*lcm_grep.*lcm_recent.*lcm_describe/);
        assert.equal(client.getServerVersion()?.name, "lossless-claw");
      });
    });
  }

  it("answers each of them with text for a model, and nothing that a client could show instead", async () => {
    await connected({}, async ({ call, stderr }) => {
      const grep = await call("lcm_grep", { pattern: "ERR_WEBHOOK_CLOCK_SKEW", mode: "full_text" });
      assert.match(textIn(grep), /; times in UTC:\nmsg_\d+-\d+ \w+ 2026-09-1\d \d\d:\d\d/);
      assert.match(textIn(grep), /chrony|CLOCK_SKEW/);
      const id = /msg_\d+-\d+/.exec(textIn(grep))?.[0];
      const message = await call("lcm_describe", { id });
      assert.match(textIn(message), new RegExp(`^${id} · `));
      const leaf = /sum_[\da-f]{16}/.exec(textIn(message))?.[0];
      assert.match(textIn(await call("lcm_describe", { id: leaf })), /Below it: \d+ messages/);
      const recent = await call("lcm_recent", { since: "2026-09-29", before: "2026-09-30" });
      assert.match(textIn(recent), /What happened 2026-09-29 .*\n(sum|msg)_/);
      const asked = await call("lcm_expand_query", { prompt: "When is the appointment for Theo's passport?" });
      assert.match(textIn(asked), /30 September.*9:40/s);
      assert.match(textIn(asked), /Sources: (?:msg|sum)_/);
      for (const result of [grep, message, recent, asked]) {
        assert.notEqual(result.isError, true);
        assert.deepEqual([result.content.length, "structuredContent" in result], [1, false]);
      }
      assert.equal(stderr(), "");
    });
    assert.equal(openGrants(), 0);
  });

  it("searches for words unless asked otherwise, and does not find the call that asked", async () => {
    const path = join(createFolder(), "lcm.db");
    const place = { state: createFolder(), env: { LCM_DATABASE_PATH: path } };
    const chat = join(place.state, "chat.jsonl");
    const input = { pattern: "payment worker retry" };
    const said = [
      { role: "user", content: "The worker took the payment on Monday; its retry failed." },
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "mcp__lcm__lcm_grep", input }] },
    ];
    writeFileSync(chat, said.map((message) => `${JSON.stringify(message)}\n`).join(""));
    ok(place, "import", chat);
    await connected({ env: place.env }, async ({ call }) => {
      const found = await call("lcm_grep", input);
      assert.match(textIn(found), /^1 match, best first; .*\n> The worker took the payment on Monday/s);
    });
  });

  it("explains a wrong argument, and what would be right", async () => {
    await connected({}, async ({ call }) => {
      for (const [name, args, words] of [
        ["lcm_grep", {}, /the pattern is empty.*\nHint: pass at least one word, or a role or a time/s],
        ["lcm_grep", { patern: "x" }, /no argument "patern", did you mean pattern\?/],
        ["lcm_grep", { pattern: "(", mode: "regex" }, /lcm_grep: .*Hint: /s],
        ["lcm_describe", { id: "nonsense" }, /"nonsense" is not an id/],
        ["lcm_describe", { id: "sum_0000000000000000" }, /there is no summary sum_0000000000000000/],
        ["lcm_expand_query", { question: "?" }, /prompt is missing/],
        ["lcm_recent", { since: "soon" }, /since is "soon", which is not a time/],
      ] as const) {
        const result = await call(name, args);
        assert.equal(result.isError, true, name);
        assert.match(textIn(result), words);
      }
    });
  });

  it("has no other tools, and not the one that needs a grant", async () => {
    await connected({}, async ({ call }) => {
      for (const name of ["lcm_expand", "lcm_forget", ""])
        await assert.rejects(call(name, {}), /there is no tool .*; available: lcm_grep, /, name);
    });
  });

  it("reports the progress of a question on request, and has a model answer it", async () => {
    const answer = "The appointment is on Wednesday 30 September at 9:40.";
    provider.play({ kind: "answer", text: answer });
    await connected({ env: withModel() }, async ({ client }) => {
      const told: string[] = [];
      const result = await client.callTool(
        { name: "lcm_expand_query", arguments: { prompt: "When is the appointment for Theo's passport?" } },
        { onprogress: ({ message }) => void told.push(message ?? "") },
      );
      assert.match(textIn(result), /Wednesday 30 September at 9:40/);
      assert.match(told.join("\n"), /^searching for .*\nfound .*\nreading .*\n(?:.*\n)*asking .*storyteller/);
    });
  });

  it("lets a question be cancelled: its grant is revoked, and the next call is answered", async () => {
    provider.play({ kind: "hang" });
    await connected({ env: withModel() }, async ({ client, call }) => {
      const withdrawal = new AbortController();
      const asking = client.callTool(
        { name: "lcm_expand_query", arguments: { prompt: "When is the appointment for Theo's passport?" } },
        {
          signal: withdrawal.signal,
          onprogress: ({ message }) => void (message?.startsWith("asking") === true && withdrawal.abort("enough")),
        },
      );
      await assert.rejects(asking);
      assert.match(textIn(await call("lcm_grep", { pattern: "K7QX2M" })), /K7QX2M/);
    });
    assert.equal(openGrants(), 0);
  });

  it("serves two clients of one database at the same time", async () => {
    const questions = ["When is the appointment for Theo's passport?", "How many orders were moved?"];
    const ask = async (): Promise<readonly string[]> =>
      await connected({}, async ({ call }) => {
        const results = await Promise.all(questions.map(async (prompt) => await call("lcm_expand_query", { prompt })));
        return results.map(textIn);
      });
    for (const [passport, orders] of await Promise.all([ask(), ask()])) {
      assert.match(passport ?? "", /9:40/);
      assert.match(orders ?? "", /41,382/);
    }
    assert.equal(openGrants(), 0);
  });
});

describe("guarantee 25: lcm mcp reads no further than the operator allows", () => {
  it("reads the whole database unless a policy is set, which then needs a session", async () => {
    for (const policy of ["own", "agent"]) {
      const server = startServer({ LCM_SCOPE_POLICY: policy });
      server.stdin.end();
      const [, , [status]] = await Promise.all([textOf(server.stdout), server.told, once(server, "close")]);
      assert.equal(status, 2);
      assert.match(
        await server.told,
        /LCM_SCOPE_POLICY=\w+ needs a conversation\nhint: pass --conversation NAME, or set/,
      );
    }
  });

  it("restricts a client to the given session", async () => {
    const path = join(createFolder(), "lcm.db");
    copyFileSync(database, path);
    const lcm = createLcm({ store: await openSqliteWorker({ path }), clock: systemClock });
    await lcm.store.open({ sessionId: "other", sessionKey: "agent:main:other", agentId: "main" });
    await lcm.close();
    const env = { LCM_DATABASE_PATH: path, LCM_SCOPE_POLICY: "own" };
    await connected({ env, args: ["--conversation", "agent:main:other"] }, async ({ call }) => {
      const other = { pattern: "passport", mode: "full_text" };
      assert.match(textIn(await call("lcm_grep", other)), /^No matches/);
      for (const [name, args] of [
        ["lcm_grep", { ...other, conversationId: 1 }],
        ["lcm_grep", { ...other, allConversations: true }],
        ["lcm_describe", { id: "msg_1-42", allConversations: true }],
        ["lcm_describe", { id: "msg_1-42" }],
        ["lcm_recent", { since: "2026-09-01", allConversations: true }],
        ["lcm_recent", { since: "2026-09-01", conversationId: 1 }],
        ["lcm_expand_query", { prompt: "passport?", allConversations: true }],
        ["lcm_expand_query", { prompt: "passport?", conversationId: 1 }],
      ] as const) {
        const result = await call(name, args);
        assert.equal(result.isError, true, `${name} ${JSON.stringify(args)}`);
        assert.doesNotMatch(textIn(result), /30 September/);
      }
    });
    await connected({ env, args: ["--conversation", "nobody"] }, async ({ call }) => {
      const result = await call("lcm_grep", { pattern: "passport" });
      assert.equal(result.isError, true);
      assert.match(textIn(result), /there is no conversation nobody/);
    });
  });
});

/** Sessions that each keep one word, by the folder they were in. */
describe("lcm mcp in a project", () => {
  const root = realpathSync(createFolder());
  const [pier, docs, mill, empty] = ["pier", "pier/docs", "mill", "empty"].map((name) => join(root, name));
  const path = join(root, "lcm.db");
  const env = { LCM_DATABASE_PATH: path };
  const words = ["anchor", "buoy", "cog", "drum", "ember"] as const;

  before(async () => {
    for (const folder of [pier, docs, mill, empty]) mkdirSync(folder ?? "", { recursive: true });
    const lcm = createLcm({ store: await openSqliteWorker({ path }), clock: systemClock });
    const sessions = [
      { sessionId: "s1", agentId: "claude-code", folder: pier ?? null },
      { sessionId: "s2", agentId: "codex", folder: docs ?? null, parentSessionId: "s1" },
      { sessionId: "s3", agentId: "codex", folder: mill ?? null },
      { sessionId: "s4", agentId: "main" },
      { sessionId: "s5", agentId: "claude-code", folder: mill ?? null },
    ];
    for (const [at, session] of sessions.entries()) {
      const { id } = await lcm.store.open({ ...session, sessionKey: `${session.agentId}:${session.sessionId}` });
      const host = createHost(session.sessionId);
      host.says(user(`lantern ${words[at]}`));
      await lcm.ingest(id, host.entries.map(toIncoming));
    }
    await lcm.close();
  });

  const wordsIn = (result: CallToolResult): readonly string[] => words.filter((word) => textIn(result).includes(word));
  const grep = { pattern: "lantern" };
  const everyWord = { ...grep, allConversations: true };
  const noteOf = (folder: string | undefined): string =>
    `No stored conversation belongs to the folder ${folder}: all of them are read.`;

  it("reads the sessions of its folder and of folders inside it, and others on request", async () => {
    await connected({ env, cwd: pier ?? "" }, async ({ call }) => {
      assert.deepEqual(wordsIn(await call("lcm_grep", grep)), ["anchor", "buoy"]);
      assert.deepEqual(wordsIn(await call("lcm_recent", { since: "2026-01-01" })), ["anchor", "buoy"]);
      assert.deepEqual(wordsIn(await call("lcm_grep", everyWord)), [...words]);
      assert.deepEqual(wordsIn(await call("lcm_grep", { ...grep, conversationId: 3 })), ["cog"]);
      const nothing = textIn(await call("lcm_grep", { pattern: "cog" }));
      assert.match(nothing, /^No matches.*Only this project's sessions were searched; set allConversations to true/s);
      const asked = textIn(await call("lcm_expand_query", { prompt: "Where is the cog?", query: "cog" }));
      assert.match(asked, /Nothing relevant was found in any session of this project/);
      const unknown = textIn(await call("lcm_describe", { id: "msg_3-1" }));
      assert.match(unknown, /there is no msg_3-1.*set allConversations/s);
      assert.match(textIn(await call("lcm_describe", { id: "msg_3-1", allConversations: true })), /cog/);
    });
  });

  it("reads everything where no folder is known, and says so if a folder has no sessions", async () => {
    for (const cwd of [state, "/"]) {
      await connected({ env, cwd }, async ({ call }) => {
        const result = await call("lcm_grep", grep);
        assert.deepEqual(wordsIn(result), [...words]);
        assert.doesNotMatch(textIn(result), /No stored conversation/);
      });
    }
    await connected({ env, cwd: empty ?? "" }, async ({ call }) => {
      const result = await call("lcm_grep", grep);
      assert.deepEqual(wordsIn(result), [...words]);
      assert.equal(linesOf(textIn(result)).at(-1), noteOf(empty));
    });
    await connected({ env, cwd: mill ?? "", args: ["--folder", empty ?? ""] }, async ({ call }) => {
      assert.deepEqual(wordsIn(await call("lcm_grep", grep)), []);
    });
    await connected({ env, cwd: mill ?? "", args: ["--folder", "../pier/docs"] }, async ({ call }) => {
      assert.deepEqual(wordsIn(await call("lcm_grep", grep)), ["buoy"]);
    });
  });

  it("takes the project of the session that Codex names, and Claude Code's newest", async () => {
    const turn = (thread: string) => ({ "x-codex-turn-metadata": { session_id: "s3", thread_id: thread } });
    await connected({ env, cwd: empty ?? "" }, async ({ call }) => {
      assert.deepEqual(wordsIn(await call("lcm_grep", grep, turn("s2"))), ["buoy"]);
      assert.deepEqual(wordsIn(await call("lcm_grep", grep, turn("not stored yet"))), ["cog", "ember"]);
      // A session of another agent is not the caller's.
      for (const turn of [{ thread_id: "s1" }, { thread_id: 2 }, ["s2"], "s2", null]) {
        const result = await call("lcm_grep", grep, { "x-codex-turn-metadata": turn });
        assert.equal(linesOf(textIn(result)).at(-1), noteOf(empty));
      }
    });
    const started = { ...env, CLAUDE_CODE_SESSION_ID: "s5", CLAUDE_PROJECT_DIR: empty ?? "" };
    await connected({ env: started }, async ({ call }) => {
      assert.deepEqual(wordsIn(await call("lcm_grep", grep)), ["cog", "ember"]);
    });
    // Claude Code names its project, so a new one has nothing to read yet.
    await connected({ env: { ...started, CLAUDE_CODE_SESSION_ID: "new" } }, async ({ call }) => {
      const nothing = textIn(await call("lcm_grep", grep));
      assert.match(nothing, /^No matches in 0 messages.*set allConversations to true/s);
      assert.deepEqual(wordsIn(await call("lcm_grep", everyWord)), [...words]);
    });
    const pluginData = createFolder();
    const note = join(pluginData, `session-${process.pid}.json`);
    await connected({ env: { ...started, CLAUDE_PLUGIN_DATA: pluginData } }, async ({ call }) => {
      // Of another process of the host, which works in another project.
      writeFileSync(join(pluginData, "session.json"), JSON.stringify({ sessionId: "s1", folder: "anywhere" }));
      assert.deepEqual(wordsIn(await call("lcm_grep", grep)), ["cog", "ember"]);
      writeFileSync(note, JSON.stringify({ sessionId: "s1", folder: "anywhere" }));
      assert.deepEqual(wordsIn(await call("lcm_grep", grep)), ["anchor", "buoy"]);
      for (const broken of ["", "{", "[]", '{"sessionId":5,"folder":"x"}', '{"sessionId":"gone","folder":"x"}']) {
        writeFileSync(note, broken);
        assert.deepEqual(wordsIn(await call("lcm_grep", grep)), ["cog", "ember"], broken);
      }
    });
  });

  it("guarantee 25: nothing that a client sends widens what the policy allows", async () => {
    const meta = { "x-codex-turn-metadata": { session_id: "s3", thread_id: "s3" } };
    const cases = [
      ["own", ["--conversation", "codex:s2"], ["buoy"], ["buoy"]],
      ["agent", ["--conversation", "codex:s2"], ["buoy"], ["buoy", "cog"]],
      ["agent", ["--conversation", "codex:s2", "--folder", mill ?? ""], ["buoy", "cog"], ["buoy", "cog"]],
      ["own", ["--conversation", "codex:s2", "--folder", mill ?? ""], ["buoy"], ["buoy"]],
    ] as const;
    for (const [policy, args, byDefault, widest] of cases) {
      await connected({ env: { ...env, LCM_SCOPE_POLICY: policy }, args }, async ({ call }) => {
        assert.deepEqual(wordsIn(await call("lcm_grep", grep, meta)), byDefault);
        const wide = await call("lcm_grep", everyWord, meta);
        if (policy === "own") assert.equal(wide.isError, true);
        else assert.deepEqual(wordsIn(wide), widest);
      });
    }
    const started = { ...env, CLAUDE_CODE_SESSION_ID: "s1", LCM_SCOPE_POLICY: "agent" };
    await connected({ env: started, cwd: mill ?? "" }, async ({ call }) => {
      assert.deepEqual(wordsIn(await call("lcm_grep", grep, meta)), ["anchor"]);
      assert.deepEqual(wordsIn(await call("lcm_grep", everyWord, meta)), ["anchor", "ember"]);
    });
    // Not even if the note of its session is gone.
    const pluginData = createFolder();
    const note = join(pluginData, `session-${process.pid}.json`);
    writeFileSync(note, JSON.stringify({ sessionId: "s1", folder: "x" }));
    const noted = { ...env, CLAUDE_PLUGIN_DATA: pluginData, LCM_SCOPE_POLICY: "own" };
    await connected({ env: noted }, async ({ call }) => {
      assert.deepEqual(wordsIn(await call("lcm_grep", grep, meta)), ["anchor"]);
      rmSync(note);
      const denied = await call("lcm_grep", grep, meta);
      assert.deepEqual([denied.isError, wordsIn(denied)], [true, []]);
    });
    // A session that is not stored yet has no family; its agent is known all the same.
    await connected({ env: { ...started, CLAUDE_CODE_SESSION_ID: "new" }, cwd: mill ?? "" }, async ({ call }) => {
      assert.deepEqual(wordsIn(await call("lcm_grep", grep, meta)), ["ember"]);
      assert.deepEqual(wordsIn(await call("lcm_grep", everyWord, meta)), ["anchor", "ember"]);
    });
  });
});

// ── What a server does on its pipes ──────────────────────────────────────────────────────────────────────────────────

const systemClock = { now: (): Timestamp => new Date().toISOString() as Timestamp };

function startServer(env: Env = {}, ...args: readonly string[]) {
  const server = spawn(process.execPath, [bin, "mcp", ...args], { cwd: state, env: environment(env), stdio: "pipe" });
  return Object.assign(server, { told: textOf(server.stderr) });
}

const hello = [
  {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "0" } },
  },
  { jsonrpc: "2.0", method: "notifications/initialized" },
];
const grepCall = (id: number): object => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name: "lcm_grep", arguments: { pattern: "K7QX2M" } },
});
const toLines = (messages: readonly object[]): string => messages.map((each) => `${JSON.stringify(each)}\n`).join("");

/** All output up to the answer to this request. */
async function untilAnswer(output: Readable, id: number): Promise<string> {
  let all = "";
  for await (const chunk of output.iterator({ destroyOnReturn: false })) {
    all += String(chunk);
    if (linesOf(all).some((line) => line.endsWith("}") && JSON.parse(line).id === id)) return all;
  }
  assert.fail(`no answer to ${id} in ${all}`);
}

describe("lcm mcp on its pipes", () => {
  it("writes nothing but the protocol to stdout, and exits cleanly when stdin ends", async () => {
    const server = startServer();
    const closed = once(server, "close");
    server.stdin.write(toLines([...hello, grepCall(2)]));
    const stdout = await untilAnswer(server.stdout, 2);
    server.stdin.end();
    const [rest, [status, signal]] = await Promise.all([textOf(server.stdout), closed]);
    for (const line of linesOf(stdout + rest)) assert.equal(JSON.parse(line).jsonrpc, "2.0");
    assert.deepEqual([status, signal, await server.told], [0, null, ""]);
  });

  it("answers everything sent before its input ended, even at once", async () => {
    const server = startServer();
    const closed = once(server, "close");
    const list = { jsonrpc: "2.0", id: 2, method: "tools/list" };
    const nonsense = { jsonrpc: "2.0", id: "six", method: "no/such/method" };
    server.stdin.end(toLines([...hello, list, grepCall(3), grepCall(4), grepCall(5), nonsense]));
    const [stdout, ending] = await Promise.all([textOf(server.stdout), closed]);
    const answers = linesOf(stdout).map((line) => JSON.parse(line));
    assert.deepEqual(new Set(answers.map(({ id }) => id)), new Set([1, 2, 3, 4, 5, "six"]));
    for (const { id, result } of answers) if ([3, 4, 5].includes(id)) assert.match(textIn(result), /K7QX2M/);
    assert.deepEqual([ending, await server.told], [[0, null], ""]);
  });

  it("answers a question during which its input ended, within the question's own time", async () => {
    provider.play({ kind: "hang" });
    const asked = provider.asked.length;
    const server = startServer({ ...withModel(), LCM_EXPAND_TIMEOUT_SECONDS: "5" });
    const closed = once(server, "close");
    const question = { name: "lcm_expand_query", arguments: { prompt: "When is the appointment for the passport?" } };
    server.stdin.end(toLines([...hello, { jsonrpc: "2.0", id: 2, method: "tools/call", params: question }]));
    const [stdout, ending] = await Promise.all([textOf(server.stdout), closed]);
    assert.deepEqual([ending, provider.asked.length], [[0, null], asked + 1], await server.told);
    assert.ok(linesOf(stdout).some((line) => JSON.parse(line).id === 2));
    assert.equal(openGrants(), 0);
  });

  it("waits for nothing that was cancelled, and for no client that stopped reading or is gone", async () => {
    for (const last of ["cancelled", "deaf", "gone"] as const) {
      provider.play({ kind: "hang" });
      const asked = provider.asked.length;
      const server = startServer(withModel());
      const closed = once(server, "close");
      const question = { name: "lcm_expand_query", arguments: { prompt: "When is the appointment for the passport?" } };
      server.stdin.write(toLines([...hello, { jsonrpc: "2.0", id: 2, method: "tools/call", params: question }]));
      while (provider.asked.length === asked) await sleep(20);
      if (last === "cancelled") server.stdout.resume();
      else server.stdout.destroy();
      const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } };
      server.stdin.end(toLines({ cancelled: [cancelled], deaf: [grepCall(3)], gone: [] }[last]));
      assert.deepEqual(await closed, [0, null], await server.told);
      assert.equal(openGrants(), 0);
    }
  });

  for (const ending of ["SIGTERM", "SIGINT"] as const) {
    it(
      `exits cleanly on ${ending} in the middle of a question`,
      { timeout: 600_000, skip: withoutSignals },
      async () => {
        provider.play({ kind: "hang" });
        const asked = provider.asked.length;
        const server = startServer(withModel());
        const closed = once(server, "close");
        const question = {
          name: "lcm_expand_query",
          arguments: { prompt: "When is the appointment for the passport?" },
        };
        server.stdin.write(toLines([...hello, { jsonrpc: "2.0", id: 2, method: "tools/call", params: question }]));
        while (provider.asked.length === asked) await sleep(20);
        server.kill(ending);
        server.stdout.resume();
        assert.deepEqual(await closed, [0, null], await server.told);
        assert.equal(openGrants(), 0);
      },
    );
  }

  it("survives lines that are not of the protocol, and reports them on stderr", async () => {
    const server = startServer();
    server.stdin.write(`this is no message\n{"neither":"is this"}\n${toLines([...hello, grepCall(2)])}`);
    assert.match(await untilAnswer(server.stdout, 2), /K7QX2M/);
    server.stdin.end();
    assert.match(await server.told, /^lcm mcp: /);
  });
});

describe("lcm mcp without a usable database", () => {
  it("starts before there is one, reports that in every call, and finds it once it exists", async () => {
    const path = join(createFolder(), "lcm.db");
    await connected({ env: { LCM_DATABASE_PATH: path } }, async ({ client, call }) => {
      assert.equal((await client.listTools()).tools.length, offered.length);
      for (const name of offered) {
        const result = await call(name, { pattern: "K7QX2M", id: "msg_1-1", prompt: "?" });
        assert.equal(result.isError, true);
        assert.match(
          textIn(result),
          /there is no database at .*lcm\.db\nhint: [^]*`lcm import --discover` or `lcm import FILE…`/,
        );
      }
      copyFileSync(database, path);
      assert.match(textIn(await call("lcm_grep", { pattern: "K7QX2M" })), /K7QX2M/);
    });
  });

  it(
    "continues with a database that replaced it, and reports when there is none any more",
    { skip: withoutReplacing },
    async () => {
      const path = join(createFolder(), "lcm.db");
      copyFileSync(database, path);
      await connected({ env: { LCM_DATABASE_PATH: path } }, async ({ call }) => {
        assert.match(textIn(await call("lcm_grep", { pattern: "K7QX2M" })), /K7QX2M/);
        for (const file of ["", "-wal", "-shm"]) rmSync(`${path}${file}`, { force: true });
        assert.match(textIn(await call("lcm_grep", { pattern: "K7QX2M" })), /there is no database at/);
        const other = { state: createFolder(), env: { LCM_DATABASE_PATH: path } };
        const chat = join(other.state, "walrus.jsonl");
        writeFileSync(chat, `${JSON.stringify({ role: "user", content: "the walrus sleeps" })}\n`);
        ok(other, "import", chat);
        assert.match(textIn(await call("lcm_grep", { pattern: "walrus" })), /the walrus sleeps/);
        assert.match(textIn(await call("lcm_grep", { pattern: "K7QX2M" })), /No matches/);
      });
    },
  );

  it("does not touch one of the older program, and explains how to convert it", async () => {
    const path = join(createFolder(), "lcm.db");
    copyFileSync(fileURLToPath(new URL("../fixtures/lcm-0.15.3.db", import.meta.url)), path);
    await connected({ env: { LCM_DATABASE_PATH: path } }, async ({ call }) => {
      const result = await call("lcm_grep", { pattern: "x" });
      assert.equal(result.isError, true);
      assert.match(textIn(result), /older.*\nhint: .*lcm adopt/s);
    });
  });

  it("answers from a read-only database", async () => {
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    const lcm = createLcm({ store: await openSqliteWorker({ path: database, readOnly: true }), clock: systemClock });
    const serving = serveMcp({
      open: async () => ({ lcm, reader: { conversation: null, policy: "all" }, isCurrent: () => true }),
      version: "0",
      stdin,
      stdout,
      onError: (error) => assert.fail(error),
    });
    const question = { name: "lcm_expand_query", arguments: { prompt: "How many orders were moved?" } };
    stdin.write(toLines([...hello, { jsonrpc: "2.0", id: 2, method: "tools/call", params: question }]));
    assert.match(await untilAnswer(stdout, 2), /41,382/);
    stdin.end();
    await serving;
  });
});
