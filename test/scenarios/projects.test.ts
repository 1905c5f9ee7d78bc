/** Tests what people see of folders and parents of sessions, and `lcm setup` where there is nothing to connect. */

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, describe, it } from "node:test";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { createFolder, lcm, linesOf, ok } from "./program.ts";

describe("lcm conversations", () => {
  const state = realpathSync(createFolder());
  const project = join(state, "pier");
  before(async () => {
    mkdirSync(join(project, "docs"), { recursive: true });
    const store = await openSqlite({ path: join(state, "lcm.db") });
    for (const session of [
      { sessionId: "one", sessionKey: "codex:one", folder: project },
      { sessionId: "two", sessionKey: "codex:two", folder: join(project, "docs"), parentSessionId: "one" },
      { sessionId: "three", sessionKey: "main" },
    ])
      await store.open(session);
    await store.close();
  });

  it("shows the folder of each session, and the session that started it", () => {
    const { stdout } = ok({ state }, "conversations");
    assert.match(stdout, /^id .* folder$/m);
    assert.match(stdout, new RegExp(`^ *2 +codex:two \\(from one\\) .*${project}/docs$`, "m"));
    assert.match(stdout, /^ *3 +main .*–$/m);
    const { conversations } = ok({ state }, "conversations", "--json").json;
    assert.deepEqual(
      conversations.map(({ folder, parentSessionId }: Record<string, unknown>) => [folder, parentSessionId]),
      [
        [null, null],
        [join(project, "docs"), "one"],
        [project, null],
      ],
    );
  });

  it("lists those of a folder, and has no column for folders if there are none", () => {
    const idsIn = (folder: string) =>
      ok({ state }, "conversations", "--folder", folder, "--json").json.conversations.map(
        ({ id }: { id: number }) => id,
      );
    assert.deepEqual(idsIn("pier"), [2, 1]);
    assert.deepEqual(idsIn("pier/docs/"), [2]);
    const { stderr } = ok({ state }, "conversations", "--folder", "mill");
    assert.match(stderr, /no matching conversations/);
    assert.doesNotMatch(ok({ state }, "conversations", "--session-key", "main").stdout, /folder/);
  });
});

describe("lcm setup without an agent that it could connect", () => {
  const nobody = () => {
    const state = createFolder();
    return { state, env: { PATH: join(state, "nowhere") } };
  };

  it("says so, and fails if the agent was named", () => {
    const place = nobody();
    const { stdout } = ok(place, "setup");
    assert.equal(stdout, "not found: OpenClaw, Pi, Claude Code, Codex, OpenCode\n");
    const named = lcm(place, "setup", "codex", "--yes");
    assert.equal(named.status, 3);
    assert.match(
      named.stderr,
      /Codex is not on this machine: no program codex, no .*config\.toml\nhint: run `lcm setup`/,
    );
    const unknown = lcm(place, "setup", "cursor");
    assert.equal(unknown.status, 2);
    assert.match(unknown.stderr, /^error: 'cursor' is not one of openclaw, pi, claude-code, codex, opencode\nhint: /);
    assert.match(lcm(place, "setup", "cursor", "--json").json.error.message, /^'cursor' is not one of openclaw, pi/);
  });

  it("changes nothing if a configuration makes no sense, or a program is missing", () => {
    const place = nobody();
    const files = {
      [join(place.state, ".config/opencode/opencode.json")]: "{\n  oops\n}",
      [join(place.state, ".claude/settings.json")]: "[]",
      [join(place.state, ".codex/config.toml")]: "",
    };
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    for (const words of [
      ["setup", "--yes"],
      ["setup", "opencode", "claude-code", "--remove", "--yes"],
    ]) {
      const { status, stdout } = lcm(place, ...words);
      assert.equal(status, 1, stdout);
      assert.match(stdout, /OpenCode: .*opencode\.json: line 2 is not JSON\n {2}hint: correct the file/);
      assert.match(stdout, /Claude Code: .*settings\.json: line 1 is not JSON/);
      if (!words.includes("--remove"))
        assert.match(
          stdout,
          /^Codex: it (?:copies the whole folder, and this is a checkout|has a configuration, but its program `codex` is not on PATH)$/m,
        );
    }
    assert.equal(linesOf(lcm(place, "setup", "codex").stdout).length, 2);
    for (const [path, text] of Object.entries(files)) {
      assert.equal(readFileSync(path, "utf8"), text);
      assert.equal(readdirSync(dirname(path)).length, 1);
    }
  });
});
