/** The hook as a host runs it: a process per call, with the call on stdin. */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { createLcm } from "../../core/lcm.ts";
import { takeLease } from "../../store/lease.ts";
import { openSqlite, systemNow } from "../../store/sqlite/store.ts";
import { hold } from "../../../test/host/hold.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { oldNode } from "../../../test/support/old-node.ts";
import { withoutShell } from "../../../test/support/platform.ts";
import { startScriptedProvider } from "../../../test/support/scripted-provider.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { problemLogOf, readProblems } from "../shared/problem-log.ts";

const program = fileURLToPath(new URL("../../../bin/lcm-hook.js", import.meta.url));
const lcm = fileURLToPath(new URL("../../../bin/lcm.js", import.meta.url));
const fixture = (name: string): string => fileURLToPath(new URL(`../../../test/fixtures/${name}`, import.meta.url));
const session = "5d5328cc-d223-4b00-a54d-1c46ea17158d";
const other = "6d600e55-49f0-4a5b-b43f-ee9dd38b06a9";

/** A home with the transcripts of one project. */
function createWorld(env: NodeJS.ProcessEnv = {}) {
  const home = makeScratch("hook");
  const project = join(home, "projects", "-work");
  const state = join(home, "state");
  const data = join(home, "data");
  mkdirSync(project, { recursive: true });
  const transcriptOf = (id: string): string => join(project, `${id}.jsonl`);
  let rows = 0;
  return {
    home,
    database: join(state, "lcm.db"),
    data,
    transcriptOf,
    says(text: string, id = session): void {
      rows += 1;
      const row = {
        type: "user",
        uuid: `u${rows}`,
        parentUuid: rows === 1 || id === other ? null : `u${rows - 1}`,
        timestamp: `2026-11-18T11:00:${String(rows % 60).padStart(2, "0")}.000Z`,
        sessionId: id,
        cwd: "/work",
        message: { role: "user", content: text },
      };
      appendFileSync(transcriptOf(id), `${JSON.stringify(row)}\n`);
    },
    run(event: string, more: object = {}, node: readonly string[] = [process.execPath]) {
      const transcript_path = transcriptOf(session);
      const call = { session_id: session, transcript_path, cwd: "/work", hook_event_name: event, ...more };
      return this.runWith(JSON.stringify(call), "claude-code", node);
    },
    runWith(input: string, host: string, [node = "", ...words]: readonly string[] = [process.execPath]) {
      const { status, stdout, stderr } = spawnSync(node, [...words, program, host], {
        input,
        encoding: "utf8",
        env: {
          PATH: process.env["PATH"],
          HOME: home,
          OPENCLAW_STATE_DIR: state,
          CLAUDE_PLUGIN_DATA: data,
          ...env,
        },
      });
      assert.deepEqual({ status, stderr }, { status: 0, stderr: "" });
      return stdout;
    },
    /** Waits for what the hook left to the background; it may not have begun yet. */
    async settled(): Promise<void> {
      if (existsSync("/proc/self/environ")) return await eventually(() => !hasProcess(`OPENCLAW_STATE_DIR=${state}\0`));
      const lease = join(state, "lcm-companion.lock");
      for (let free = 0; free < 10;) {
        await sleep(100);
        const release = existsSync(lease) ? takeLease(lease) : null;
        release?.();
        free = release === null ? 0 : free + 1;
      }
    },
    /** As `lcm conversations` lists it. */
    async title(): Promise<string | null | undefined> {
      const store = await openSqlite({ path: join(state, "lcm.db"), readOnly: true });
      try {
        return (await store.conversations())[0]?.title;
      } finally {
        await store.close();
      }
    },
    async texts(id = session): Promise<readonly string[]> {
      const store = await openSqlite({ path: join(state, "lcm.db"), readOnly: true });
      const engine = createLcm({ store, clock: { now: systemNow } });
      try {
        const [conversation] = await store.conversations({ sessionKey: `claude-code:${id}` });
        const messages = conversation === undefined ? [] : await store.messages({ conversation: conversation.id });
        return messages.map(({ text }) => text);
      } finally {
        await engine.close();
      }
    },
  };
}

/** On Linux: whether a process that exists has this in its environment. */
const hasProcess = (variable: string): boolean =>
  readdirSync("/proc").some((entry) => {
    try {
      return /^\d+$/.test(entry) && readFileSync(`/proc/${entry}/environ`, "utf8").includes(variable);
    } catch {
      return false; // It has just ended, or is not ours.
    }
  });

describe("the hook of Claude Code and Codex", { skip: withoutShell }, () => {
  it("stores what was said when a turn ends, and prints nothing", async () => {
    const world = createWorld();
    world.says("hello");
    assert.equal(world.run("Stop"), "");
    assert.deepEqual(await world.texts(), ["hello"]);
    world.says("again");
    assert.equal(world.run("Stop"), "");
    assert.deepEqual(await world.texts(), ["hello", "again"]);
  });

  it("names a session by how it began", async () => {
    const world = createWorld();
    world.says("/clear");
    world.run("Stop");
    assert.equal(await world.title(), null);
    world.says("Paint the hull blue\nand the deck, too");
    world.run("Stop");
    world.says("another thing");
    world.run("Stop");
    assert.equal(await world.title(), "Paint the hull blue");
  });

  it("notes the session for the MCP server, and stores what another session of the folder left behind", async () => {
    const world = createWorld();
    world.says("first");
    world.run("Stop"); // From here on nothing may be missed.
    world.says("of a session that was killed", other);
    assert.equal(world.run("SessionStart", { source: "resume" }), "");
    const note = JSON.parse(readFileSync(join(world.data, "session.json"), "utf8"));
    assert.deepEqual(note, { sessionId: session, folder: "/work" });
    await world.settled();
    assert.deepEqual(await world.texts(other), ["of a session that was killed"]);
  });

  it("folds before a compaction, and gives the host a recap after it", async () => {
    const world = createWorld({ LCM_FRESH_TAIL_COUNT: "2" });
    for (let nth = 0; nth < 40; nth++)
      world.says(`Note ${nth}: the code of depot ${nth} is ${nth * 7_919}. `.repeat(10));
    world.says("Always answer in English.");
    for (let nth = 0; nth < 3; nth++) world.says(`bye ${nth}`);
    world.run("PreCompact", { trigger: "auto" });
    const { hookSpecificOutput: answer } = JSON.parse(world.run("SessionStart", { source: "compact" }));
    assert.equal(answer.hookEventName, "SessionStart");
    assert.ok(answer.additionalContext.length <= 10_000);
    assert.match(answer.additionalContext, /msg_1-1 to msg_1-44[^]*Always answer in English[^]*<summary id="sum_/);
  });

  it("folds in the background with the model in the settings, and with no other", async (test) => {
    const provider = await startScriptedProvider();
    test.after(async () => await provider.close());
    provider.play({ kind: "answer", text: "The depots and their codes were listed. Expand for details about: codes." });
    const talk = (world: ReturnType<typeof createWorld>): void => {
      for (let nth = 0; nth < 40; nth++)
        world.says(`Note ${nth}: depot ${nth} has the code ${nth * 7_919}. `.repeat(10));
    };
    const tail = { LCM_FRESH_TAIL_COUNT: "2", OPENAI_API_KEY: "dummy" };
    const world = createWorld({
      ...tail,
      LCM_SUMMARY_MODEL: "harbour/scripted-1",
      LCM_SUMMARY_BASE_URL: `${provider.url}/v1`,
    });
    talk(world);
    world.run("PreCompact");
    await world.settled();
    assert.match(world.run("SessionStart", { source: "compact" }), /The depots and their codes were listed/);
    const asked = provider.asked.length;
    assert.ok(asked > 0);
    // OpenClaw's own model is for those who ask for it.
    const often = { LCM_CONTEXT_TARGET: "0", LCM_LEAF_CHUNK_TOKENS: "500", LCM_LEAF_TARGET_TOKENS: "100" };
    const plain = createWorld({ ...tail, ...often });
    const providers = { harbour: { baseUrl: `${provider.url}/v1`, apiKey: "dummy", models: [{ id: "scripted-1" }] } };
    const config = { models: { providers }, agents: { defaults: { model: { primary: "harbour/scripted-1" } } } };
    mkdirSync(dirname(plain.database), { recursive: true });
    writeFileSync(join(dirname(plain.database), "openclaw.json"), JSON.stringify(config));
    talk(plain);
    plain.run("Stop");
    await plain.settled();
    assert.match(plain.run("SessionStart", { source: "compact" }), /<summary id=/);
    assert.equal(provider.asked.length, asked);
  });

  it("says nothing and does nothing if it is turned off, or called by something else", () => {
    const off = createWorld({ LCM_ENABLED: "false" });
    off.says("hello");
    off.run("Stop");
    assert.equal(existsSync(off.database), false);
    const world = createWorld();
    for (const input of ["", "{", "[]", "{}"]) assert.equal(world.runWith(input, "claude-code"), "");
    assert.equal(world.runWith("{}", "cursor"), "");
    assert.equal(existsSync(world.database), false);
  });

  it("on a Node that is too old, tells the user once per session why nothing is stored", () => {
    const world = createWorld({ PATH: "", LCM_NODE: "" });
    // A repository has a newer Node of its own, which the launcher would find.
    const folder = makeScratch("hook-old");
    mkdirSync(join(folder, "bin"));
    for (const name of ["bin/launch.js", "bin/lcm-hook.js", "package.json"])
      writeFileSync(join(folder, name), readFileSync(join(dirname(program), "..", name)));
    const run = (input: object): string => {
      const [node = "", ...words] = oldNode;
      const path = join(folder, "bin/lcm-hook.js");
      const env = { PATH: "" };
      const ran = spawnSync(node, [...words, path, "codex"], { input: JSON.stringify(input), env, encoding: "utf8" });
      assert.deepEqual({ status: ran.status, stderr: ran.stderr }, { status: 0, stderr: "" });
      return ran.stdout;
    };
    const { systemMessage } = JSON.parse(run({ hook_event_name: "SessionStart", source: "startup" }));
    assert.match(systemMessage, /needs Node 24\.16 or newer, and this is Node/);
    assert.equal(run({ hook_event_name: "Stop" }), "");
    assert.equal(existsSync(world.database), false);
  });
});

describe("guarantee 38: the hook never breaks its agent", { skip: withoutShell }, () => {
  it("is silent while the database is locked; what it missed comes later", async () => {
    const world = createWorld();
    world.says("one");
    world.run("Stop");
    const lock = await hold(world.database, "BEGIN EXCLUSIVE");
    world.says("two");
    try {
      assert.equal(world.run("Stop"), "");
    } finally {
      await lock.release();
    }
    await world.settled();
    assert.deepEqual(await world.texts(), ["one", "two"]);
    assert.deepEqual(readProblems(problemLogOf(world.database)), [], "it was made good");
  });

  it("is silent if the database is not one, or cannot be made", async () => {
    const world = createWorld();
    world.says("one");
    mkdirSync(dirname(world.database), { recursive: true });
    writeFileSync(world.database, "something else");
    for (const event of ["SessionStart", "Stop", "PreCompact", "SessionEnd"]) assert.equal(world.run(event), "");
    await world.settled();
    assert.match(readProblems(problemLogOf(world.database))[0]?.message ?? "", /not a database/);
    assert.equal(readFileSync(world.database, "utf8"), "something else");
    rmSync(dirname(world.database), { recursive: true });
    writeFileSync(dirname(world.database), "a file where the folder should be");
    assert.equal(world.run("Stop"), "");
  });

  it("leaves an upgrade to the background, and a database of the older program to its user", async () => {
    const world = createWorld();
    mkdirSync(dirname(world.database), { recursive: true });
    copyFileSync(fixture("lcm-schema-5.db"), world.database);
    world.says("one");
    assert.equal(world.run("Stop"), "");
    await world.settled();
    assert.deepEqual(await world.texts(), ["one"]);
    for (const end of ["", "-wal", "-shm"]) rmSync(world.database + end, { force: true });
    copyFileSync(fixture("lcm-0.15.3.db"), world.database);
    const before = readFileSync(world.database);
    for (const event of ["SessionStart", "Stop", "PreCompact"]) assert.equal(world.run(event), "");
    await world.settled();
    assert.deepEqual(readFileSync(world.database), before);
    const problem = readProblems(problemLogOf(world.database)).at(-1);
    assert.match(problem?.message ?? "", /made by an older lossless-claw/);
  });

  it("shows what it could not do in `lcm status`", () => {
    const world = createWorld();
    appendFileSync(world.transcriptOf(session), '{"type":"user","uu\n');
    world.says("one");
    assert.equal(world.run("Stop"), "");
    const status = (...words: readonly string[]): string =>
      spawnSync(process.execPath, [lcm, "status", "--no-color", "--db", world.database, ...words], { encoding: "utf8" })
        .stdout;
    assert.match(status(), /hooks +1 problem in .*lcm-companion\.log[^]*claude-code, while reading line 1 of /);
    assert.equal(JSON.parse(status("--json")).companionProblems.length, 1);
  });

  it("makes a database that is gone again, whole", async () => {
    const world = createWorld();
    world.says("one");
    world.run("Stop");
    for (const end of ["", "-wal", "-shm"]) rmSync(world.database + end, { force: true });
    world.says("two");
    world.run("Stop");
    assert.deepEqual(await world.texts(), ["one", "two"]);
  });

  it("looks for what was missed even if the note of its first run is empty, as a full disk leaves it", async () => {
    const world = createWorld();
    mkdirSync(dirname(world.database), { recursive: true });
    writeFileSync(join(dirname(world.database), "lcm-companion.since"), "");
    world.says("one");
    world.run("Stop");
    world.says("of a session that was killed", other);
    world.run("SessionStart", { source: "resume" });
    await world.settled();
    assert.deepEqual(await world.texts(other), ["of a session that was killed"]);
  });

  it("ends by itself when the host does not end its input", async () => {
    const { home } = createWorld();
    const hook = spawn(process.execPath, [program, "claude-code"], {
      env: { PATH: process.env["PATH"], HOME: home },
      stdio: ["pipe", "ignore", "inherit"],
    });
    const [status] = await once(hook, "exit");
    assert.equal(status, 0);
  });

  it("is silent in half an installation", () => {
    const folder = makeScratch("half");
    cpSync(dirname(program), join(folder, "bin"), { recursive: true });
    copyFileSync(join(dirname(dirname(program)), "package.json"), join(folder, "package.json"));
    const words = [join(folder, "bin", "lcm-hook.js"), "claude-code"];
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { input: "{}", encoding: "utf8" });
    assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: "", stderr: "" });
  });
});
