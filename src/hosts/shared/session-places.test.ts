import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { claudeCodeRows } from "./rows/claude-code.ts";
import { importFormat, sessionOfPath, sessionPlaces } from "./session-places.ts";

describe("the places of sessions", () => {
  it("are below the home folder, unless a host's own variable says otherwise", () => {
    const folders = (env: Readonly<Record<string, string>>) =>
      sessionPlaces(env, "/home/u").map(({ folder }) => folder);
    assert.deepEqual(folders({}), [
      join("/home/u/.claude/projects"),
      join("/home/u/.codex"),
      join("/home/u/.local/share/opencode"),
      join("/home/u/.pi/agent/sessions"),
    ]);
    const moved = { CLAUDE_CONFIG_DIR: "/c", CODEX_HOME: "/x", XDG_DATA_HOME: "/d", PI_CODING_AGENT_DIR: "/p" };
    assert.deepEqual(folders(moved), [join("/c/projects"), "/x", join("/d/opencode"), join("/p/sessions")]);
  });

  it("name sessions by their files", () => {
    const id = "01a1e399-7f38-7e00-97e6-a309aebdb38c";
    const sessions: readonly (readonly [string, string, string] | readonly [string, null])[] = [
      [`/c/projects/-x/${id}.jsonl`, "claude-code", id],
      [`/c/projects/-x/${id}/subagents/agent-ab12.jsonl`, "claude-code", "ab12"],
      [`C:\\c\\projects\\-x\\${id}.jsonl`, "claude-code", id],
      [`/x/sessions/2026/11/16/rollout-2026-11-16T09-04-10-${id}.jsonl`, "codex", id],
      [`/x/sessions/2026/11/16/rollout-2026-11-16T09-04-10-${id}_${id.replace("7f38", "8f38")}.jsonl`, "codex", id],
      [`/p/sessions/--home-u--/2026-11-16T09-01-40-735Z_${id}.jsonl`, "pi", id],
      ["/o/agents/main/sessions/session.jsonl", null],
      ["chat.jsonl", null],
    ];
    for (const [path, host, sessionId] of sessions)
      assert.deepEqual(sessionOfPath(path), host === null ? null : { host, sessionId }, path);
  });

  it("name the session of a fork, whose rows may name the one they were copied from", () => {
    const id = "01a1e399-7f38-7e00-97e6-a309aebdb38c";
    const facts = { id: "origin", folder: "/x", parentSessionId: null, title: null };
    const keyOf = (path: string) => importFormat(claudeCodeRows, path).identify(facts)?.sessionKey;
    assert.equal(keyOf(`/c/projects/-x/${id}.jsonl`), `claude-code:${id}`);
    assert.equal(keyOf("/backup/chat.jsonl"), "claude-code:origin");
  });
});
