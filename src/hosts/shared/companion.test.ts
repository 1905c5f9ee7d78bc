import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import type { Timestamp } from "../../core/base/time.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import type { Store } from "../../core/model/store.ts";
import { freshLcms } from "../../../test/support/fresh-lcm.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { claudeCode } from "../claude-code/host.ts";
import { codex } from "../codex/host.ts";
import { leftBehind, parseHookCall, planHook, storeTranscript, type CompanionHost } from "./companion.ts";

const withLcm = freshLcms("companion");
const session = "5d5328cc-d223-4b00-a54d-1c46ea17158d";
const at = "2026-11-18T11:06:58.000Z" as Timestamp;
const lines = (...rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

/** A row of Claude Code. */
const said = (uuid: string, parentUuid: string | null, text: string, more: object = {}) => ({
  type: "user",
  uuid,
  parentUuid,
  timestamp: at,
  sessionId: session,
  cwd: "/work",
  isSidechain: false,
  message: { role: "user", content: text },
  ...more,
});
const mode = { type: "mode", mode: "normal", sessionId: session };

const claudeFile = (): string => join(makeScratch("companion"), `${session}.jsonl`);

async function store(store: Store, host: CompanionHost, path: string, config: object = {}) {
  const settings = resolveSettings({ env: {}, config: { ...config } }).values;
  const problems: string[] = [];
  const clock = { now: () => at };
  const deps = { store, clock, settings, onProblem: (doing: string) => problems.push(doing) };
  return { stored: await storeTranscript(deps, host, path), problems };
}

describe("what a hook does", () => {
  const call = { sessionId: session, transcript: "/t/own.jsonl", folder: "/work", agentTranscript: "/t/agent-1.jsonl" };
  const plan = (event: string, source: string | null = null) => planHook({ ...call, event, source });

  it("stores at every event that may be the last before something is lost", () => {
    for (const event of ["Stop", "PreCompact", "SessionStart"])
      assert.equal(plan(event).transcript, "/t/own.jsonl", event);
    assert.equal(plan("SubagentStop").transcript, "/t/agent-1.jsonl");
    assert.equal(planHook({ ...call, event: "SubagentStop", source: null, agentTranscript: null }).transcript, null);
  });

  it("gives a recap after a compaction only, and looks for what was missed at every other start", () => {
    for (const source of ["startup", "resume", "clear"]) {
      assert.equal(plan("SessionStart", source).givesRecap, false);
      assert.equal(plan("SessionStart", source).catchesUp, true);
    }
    assert.equal(plan("SessionStart", "compact").givesRecap, true);
    assert.equal(plan("SessionStart", "compact").catchesUp, false);
  });

  it("folds all before a compaction, and what is due after a turn", () => {
    assert.equal(plan("PreCompact").fold, "all");
    assert.equal(plan("Stop").fold, "due");
  });

  it("does no more than storing when a session ends, and nothing at events that it does not know", () => {
    assert.equal(plan("SessionEnd").transcript, "/t/own.jsonl");
    assert.equal(plan("SessionEnd").fold, "nothing");
    assert.deepEqual(plan("MessageDisplay"), {
      transcript: null,
      isStart: false,
      givesRecap: false,
      fold: "nothing",
      catchesUp: false,
    });
  });

  it("reads the call of either host, and ignores anything else", () => {
    const input = { session_id: session, transcript_path: "/t/a.jsonl", cwd: "/work", hook_event_name: "Stop" };
    assert.equal(parseHookCall(JSON.stringify({ ...input, turn_id: "t" }))?.sessionId, session);
    assert.equal(parseHookCall(JSON.stringify({ ...input, transcript_path: null })), null);
    assert.equal(parseHookCall("[]"), null);
  });
});

describe("storing a transcript as it grows", () => {
  it("stores each row once, however often and from wherever it is read", async () =>
    await withLcm(async ({ lcm }) => {
      const path = claudeFile();
      writeFileSync(path, lines(mode, said("u1", null, "hello"), said("u2", "u1", "and")));
      const { stored } = await store(lcm.store, claudeCode, path);
      assert.equal(stored?.isWhole, true);
      await store(lcm.store, claudeCode, path);
      appendFileSync(path, lines(said("u3", "u2", "more"), mode));
      await store(lcm.store, claudeCode, path);
      // A host that rewrites its file, and a cursor that is lost, change nothing.
      writeFileSync(path, lines(mode, said("u1", null, "hello", { version: "2" }), said("u2", "u1", "and")));
      await store(lcm.store, claudeCode, path);
      const [conversation, ...others] = await lcm.store.conversations({ sessionKey: `claude-code:${session}` });
      assert.ok(conversation !== undefined);
      assert.deepEqual(others, []);
      assert.equal(conversation.folder, "/work");
      assert.equal(conversation.agentId, "claude-code");
      const exported = (await Array.fromAsync(lcm.export(conversation.id))).map((line) => JSON.parse(line));
      assert.deepEqual(exported, [
        mode,
        said("u1", null, "hello"),
        said("u2", "u1", "and"),
        said("u3", "u2", "more"),
        mode,
      ]);
    }));

  it("knows the folder of a session whose first rows do not name it", async () =>
    await withLcm(async ({ lcm }) => {
      const path = claudeFile();
      writeFileSync(path, lines(mode));
      assert.equal((await store(lcm.store, claudeCode, path)).stored?.conversation.folder, null);
      appendFileSync(path, lines(said("u1", null, "hello")));
      assert.equal((await store(lcm.store, claudeCode, path)).stored?.conversation.folder, "/work");
    }));

  it("names the parent of a sub-agent", async () =>
    await withLcm(async ({ lcm }) => {
      const path = join(makeScratch("companion"), session, "subagents", "agent-a248401b414e9ebc1.jsonl");
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, lines(said("s1", null, "count", { isSidechain: true, agentId: "a248401b414e9ebc1" })));
      const { stored } = await store(lcm.store, claudeCode, path);
      assert.equal(stored?.conversation.sessionId, "a248401b414e9ebc1");
      assert.equal(stored?.conversation.parentSessionId, session);
    }));

  it("finds what other sessions left behind, and only that", async () =>
    await withLcm(async ({ lcm }) => {
      const path = claudeFile();
      const other = join(dirname(path), "6d600e55-49f0-4a5b-b43f-ee9dd38b06a9.jsonl");
      writeFileSync(path, lines(said("u1", null, "hello")));
      writeFileSync(other, lines(said("o1", null, "hi")));
      const left = async (lookedAtMax = 9) =>
        await leftBehind(lcm.store, claudeCode, { folder: "/work", transcript: path }, { sinceMs: 0, lookedAtMax });
      assert.deepEqual((await left()).toSorted(), [path, other].toSorted());
      assert.equal((await left(1)).length, 1);
      await store(lcm.store, claudeCode, path);
      assert.deepEqual(await left(), [other]);
      await store(lcm.store, claudeCode, other);
      assert.deepEqual(await left(), []);
      appendFileSync(other, lines(said("o2", "o1", "more")));
      assert.deepEqual(await left(), [other]);
    }));

  it("leaves out a line that was cut by a kill, and reports it", async () =>
    await withLcm(async ({ lcm }) => {
      const path = claudeFile();
      writeFileSync(path, `${lines(said("u1", null, "hello"))}{"type":"user","uu${lines(said("u2", "u1", "again"))}`);
      const { stored, problems } = await store(lcm.store, claudeCode, path);
      assert.equal(stored?.isWhole, true);
      assert.deepEqual(problems, [`reading line 2 of ${path}`]);
      appendFileSync(path, lines(said("u3", "u1", "once more")));
      await store(lcm.store, claudeCode, path);
      const messages = await lcm.store.messages({ conversation: stored.conversation.id });
      assert.deepEqual(
        messages.map(({ text }) => text),
        ["hello", "once more"],
      );
    }));

  it("stores nothing of sessions that the settings exclude, and of files that are not transcripts", async () =>
    await withLcm(async ({ lcm }) => {
      const path = claudeFile();
      writeFileSync(path, lines(said("u1", null, "hello")));
      const config = { ignoreSessionPatterns: ["claude-code:5d53*"] };
      assert.equal((await store(lcm.store, claudeCode, path, config)).stored, null);
      assert.equal((await store(lcm.store, claudeCode, `${path}.missing`)).stored, null);
      assert.equal((await store(lcm.store, claudeCode, join(dirname(path), "none.jsonl"))).stored, null);
      assert.deepEqual(await lcm.store.conversations(), []);
    }));
});

describe("where a host keeps its transcripts", () => {
  const touch = (path: string, text = ""): string => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  };

  it("Claude Code: those of the project and of its sub-agents", () => {
    const project = join(makeScratch("companion"), "-work");
    const own = touch(join(project, `${session}.jsonl`));
    const other = touch(join(project, "6d600e55-49f0-4a5b-b43f-ee9dd38b06a9.jsonl"));
    const agent = touch(join(project, session, "subagents", "agent-a1.jsonl"));
    touch(join(project, session, "tool-results", "x.txt"));
    const all = [own, other, agent].toSorted();
    assert.deepEqual(claudeCode.transcriptsNear(own, 0).toSorted(), all);
    assert.deepEqual(claudeCode.transcriptsNear(agent, 0).toSorted(), all);
    assert.deepEqual(claudeCode.transcriptsNear(own, Date.now() + 60_000), []);
  });

  it("Codex: those of all days whose first line names the folder", () => {
    const sessions = makeScratch("companion");
    const meta = (cwd: string): string => lines({ timestamp: at, type: "session_meta", payload: { id: session, cwd } });
    const name = (id: string): string => `rollout-2026-11-18T11-06-58-${id}.jsonl`;
    const own = touch(join(sessions, "2026/11/18", name(session)), meta("/work"));
    const older = touch(join(sessions, "2026/10/31", name("01a1ee56-a53d-7133-a061-005a95aeed8a")), meta("/work"));
    touch(join(sessions, "2026/11/17", name("01a1ee56-a53d-7133-a061-005a95aeed8b")), meta("/elsewhere"));
    touch(join(sessions, "2026/11/17", name("01a1ee56-a53d-7133-a061-005a95aeed8c")), "not JSON\n");
    const near = codex.transcriptsNear(own, 0);
    assert.deepEqual(near.filter((path) => codex.isOf("/work", path)).toSorted(), [own, older].toSorted());
    assert.equal(codex.sessionIdOf(own), session);
    assert.equal(codex.sessionIdOf("/x/history.jsonl"), null);
  });
});
