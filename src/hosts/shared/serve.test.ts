import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { Json } from "../../core/base/json.ts";
import { createLcm } from "../../core/lcm.ts";
import type { Model } from "../../core/model/store.ts";
import { openSqlite, systemNow } from "../../store/sqlite/store.ts";
import { eventually, patienceMs } from "../../../test/support/eventually.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createRemoteEngine, type RemoteEngine } from "./remote-engine.ts";
import type { HostSession } from "./sessions.ts";

const launcher = fileURLToPath(new URL("../../../bin/lcm.js", import.meta.url));
const scratch = makeScratch("serve");
const engines: RemoteEngine[] = [];
after(async () => void (await Promise.all(engines.map(async (engine) => await engine.close()))));

let states = 0;
const createState = (): string => {
  const folder = join(scratch, `state-${++states}`);
  mkdirSync(folder);
  return folder;
};

function start(state: string, more: { readonly model?: Model; readonly patienceMs?: number } = {}) {
  const notes: string[] = [];
  const engine = createRemoteEngine({
    command: [process.execPath, launcher, "serve"],
    env: { ...process.env, OPENCLAW_STATE_DIR: state },
    host: "opencode",
    version: "test",
    words: { name: "OpenCode", shell: "lcm", ownCompaction: "/compact" },
    note: (line) => notes.push(line),
    patienceMs,
    ...more,
  });
  engines.push(engine);
  return { engine, notes };
}

const session = (sessionId: string): HostSession => ({ host: "opencode", sessionId, folder: "/work" });
const room = { window: 32_000, reserve: 2_000, overhead: 0 };

/** Messages of OpenCode: a question and its answer per turn. */
function rowsOf(sessionID: string, turns: number, words = 5): readonly Json[] {
  return Array.from({ length: 2 * turns }, (_, at) => {
    const id = `msg_${String(at).padStart(5, "0")}`;
    const role = at % 2 === 0 ? "user" : "assistant";
    const text = `${role} ${at} says plum-${at} ${"and more ".repeat(words)}`;
    const time = {
      created: 1_790_000_000_000 + at,
      ...(role === "assistant" ? { completed: 1_790_000_000_001 + at } : {}),
    };
    return {
      info: { id, sessionID, role, time },
      parts: [{ id: `prt_${at}`, sessionID, messageID: id, type: "text", text }],
    };
  });
}

async function storedKeys(state: string, sessionId: string): Promise<readonly string[]> {
  const store = await openSqlite({ path: join(state, "lcm.db"), readOnly: true });
  const lcm = createLcm({ store, clock: { now: systemNow } });
  try {
    const [conversation] = await store.conversations({ sessionKey: `opencode:${sessionId}` });
    return (await store.messages({ conversation: conversation!.id })).map(({ key }) => key);
  } finally {
    await lcm.close();
  }
}

const keysOf = (rows: readonly Json[]): readonly string[] =>
  rows.map((row) => (row as { readonly info: { readonly id: string } }).info.id);

describe("an engine behind `lcm serve`", () => {
  it("stores, builds prompts, runs tools and answers /lcm", async () => {
    const { engine, notes } = start(createState());
    const rows = rowsOf("one", 10);
    assert.equal(await engine.store(session("one"), rows, 0), "stored");
    const prompt = await engine.prompt(session("one"), room);
    assert.equal(prompt?.messages.length, 20);
    assert.deepEqual(prompt.messages[0]?.["content"], (rows[0] as { readonly parts: Json }).parts, "as it came");
    const { text: found } = await engine.tool(session("one"), { name: "lcm_grep", args: { pattern: "plum-7" } });
    assert.match(found, /says plum-7/);
    assert.match(await engine.command(session("one"), "status"), /20 messages stored/);
    assert.deepEqual(notes, []);
  });

  it("keeps everything once when two clients write to one database, and to one session", async () => {
    const state = createState();
    const [one, other] = [start(state).engine, start(state).engine];
    const rows = rowsOf("both", 60);
    const pieces = Array.from({ length: 12 }, (_, at) => rows.slice(at * 10, at * 10 + 11));
    await Promise.all(
      [one, other].map(async (engine) => {
        for (const piece of pieces) assert.equal(await engine.store(session("both"), piece, 0), "stored");
      }),
    );
    await Promise.all([one.store(session("a"), rowsOf("a", 5), 0), other.store(session("b"), rowsOf("b", 5), 0)]);
    assert.deepEqual(await storedKeys(state, "both"), keysOf(rows));
    assert.equal((await storedKeys(state, "a")).length, 10);
    assert.equal((await storedKeys(state, "b")).length, 10);
  });

  it("lets the host go on without it when it is killed, and has everything afterwards", async () => {
    const state = createState();
    const { engine } = start(state);
    const rows = rowsOf("killed", 200);
    assert.equal(await engine.store(session("killed"), rows.slice(0, 10), 0), "stored");
    const storing = engine.store(session("killed"), rows, 0);
    process.kill(engine.pid!, "SIGKILL");
    assert.equal(await storing, "later", "not stored, so it must come again");
    await eventually(() => engine.pid === undefined);
    assert.equal(await engine.store(session("killed"), rows, 0), "stored");
    assert.deepEqual(await storedKeys(state, "killed"), keysOf(rows));
  });

  it("answers in time while the database is locked, and catches up", async () => {
    const state = createState();
    const { engine } = start(state, { patienceMs: 1_000 });
    const store = async (turns: number) => await engine.store(session("locked"), rowsOf("locked", turns), 0);
    await eventually(async () => (await store(1)) === "stored");
    const other = new DatabaseSync(join(state, "lcm.db"), { timeout: 20_000 });
    other.exec("BEGIN IMMEDIATE");
    assert.equal(await store(3), "later");
    assert.equal(await engine.prompt(session("locked"), room), null, "an old state is not shown");
    other.exec("ROLLBACK");
    other.close();
    await eventually(async () => (await store(3)) === "stored");
    assert.deepEqual(await storedKeys(state, "locked"), keysOf(rowsOf("locked", 3)));
    await eventually(async () => (await engine.prompt(session("locked"), room))?.messages.length === 6);
  });

  it("writes summaries with the model of its client", async () => {
    const prompts: string[] = [];
    const model: Model = {
      provider: "scripted",
      name: "scripted",
      complete: async ({ prompt }) => {
        prompts.push(prompt);
        const text = `${"They spoke of plums, and of more. ".repeat(30)}\n\nExpand for details about: plums`;
        return await Promise.resolve({ kind: "text", text, finish: "stop", inputTokens: 9, outputTokens: 9 });
      },
    };
    const { engine } = start(createState(), { model });
    await engine.store(session("long"), rowsOf("long", 100, 60), 0);
    const { ok, compacted, message } = await engine.compact(session("long"), { why: "asked" });
    assert.ok(ok && compacted, message);
    assert.match(prompts[0] ?? "", /says plum-0/);
    const prompt = await engine.prompt(session("long"), room);
    assert.match(JSON.stringify(prompt?.messages[0]), /They spoke of plums/);
  });

  it("stops a compaction when its client cancels it", async () => {
    const begun = Promise.withResolvers<void>();
    const model: Model = {
      provider: "scripted",
      name: "hangs",
      complete: async () => {
        begun.resolve();
        return await new Promise(() => undefined);
      },
    };
    const { engine } = start(createState(), { model });
    await engine.store(session("long"), rowsOf("long", 100, 60), 0);
    const stop = new AbortController();
    const compacting = engine.compact(session("long"), { why: "asked" }, stop.signal);
    await begun.promise;
    stop.abort();
    assert.deepEqual((await compacting).compacted, false);
    assert.equal((await engine.prompt(session("long"), room)) !== null, true, "and serves on");
  });

  it("says what is wrong if the database cannot be opened, and lets the host go on", async () => {
    const state = createState();
    mkdirSync(join(state, "lcm.db"));
    const { engine } = start(state);
    assert.equal(await engine.store(session("one"), rowsOf("one", 1), 0), "later");
    assert.equal(await engine.prompt(session("one"), room), null);
    assert.match(await engine.command(session("one"), "status"), /lcm\.db/);
  });
});

describe("`lcm serve`", () => {
  async function serve(lines: readonly string[]) {
    const env = { ...process.env, OPENCLAW_STATE_DIR: createState() };
    const child = spawn(process.execPath, [launcher, "serve"], { env });
    const said = text(child.stdout);
    child.stdin.end(lines.map((line) => `${line}\n`).join(""));
    const [status] = await once(child, "close");
    const answers = (await said).trim().split("\n").filter(Boolean);
    return { status, answers: answers.map((line) => JSON.parse(line)) };
  }
  const hello = `{"id":1,"method":"hello","params":{"protocol":1,"host":"opencode","words":{}}}`;

  it("survives whatever comes, and ends with its input", async () => {
    const { status, answers } = await serve([
      "this is not JSON",
      `{"id":"early","method":"prompt","params":{}}`,
      hello,
      `{"id":2,"method":"store","params":{"session":{"host":"nobody","sessionId":"x"},"rows":[],"from":0}}`,
      `{"id":3,"method":"store","params":{"session":{"host":"opencode","sessionId":"x"},"rows":[1,null,{"odd":true}],"from":0}}`,
      `{"id":4,"method":"explode"}`,
    ]);
    assert.equal(status, 0);
    const errors = Object.fromEntries(answers.map(({ id, error }) => [String(id), error?.message]));
    assert.match(errors["null"], /not JSON/);
    assert.match(errors["early"], /the first call must be hello/);
    assert.match(errors["4"], /there is no method explode/);
  });

  it("has another protocol than an older or newer client, which can see it", async () => {
    const { answers } = await serve([hello.replace(`"protocol":1`, `"protocol":99`)]);
    assert.equal(answers[0]?.result?.protocol, 1);
  });
});
