/** `lcm import` for users of other agents: what they have left on a machine is found, imported and given back. */

import assert from "node:assert/strict";
import { appendFileSync, cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../src/core/base/json.ts";
import { fillOpenCode } from "../support/opencode-database.ts";
import { createFolder, lcm, ok, type Place } from "./program.ts";

const fixtures = fileURLToPath(new URL("../fixtures/hosts", import.meta.url));
const document = (name: string): JsonObject =>
  JSON.parse(readFileSync(join(fixtures, "opencode", `${name}.json`), "utf8")) as JsonObject;
const session = "11111111-2222-4333-8444-555555555501";

/** A home folder in which four agents have worked. */
function createHome(): Place & { readonly openCode: string; readonly projects: string } {
  const state = createFolder();
  const projects = join(state, ".claude", "projects");
  cpSync(join(fixtures, "claude-code"), join(projects, "-home-user-x"), { recursive: true });
  const codex = join(state, ".codex", "sessions", "2026", "11", "18");
  mkdirSync(codex, { recursive: true });
  const [rollout = ""] = globSync("codex/*T11-26-37*.jsonl", { cwd: fixtures });
  cpSync(join(fixtures, rollout), join(codex, basename(rollout)));
  cpSync(join(fixtures, "pi"), join(state, ".pi", "agent", "sessions"), { recursive: true });
  const openCode = join(state, ".local", "share", "opencode", "opencode.db");
  mkdirSync(dirname(openCode), { recursive: true });
  fillOpenCode(openCode, document("before"), document("child"));
  return { state, openCode, projects };
}

const sessionsOf = (place: Place): readonly string[] =>
  ok(place, "conversations", "--json")
    .json.conversations.map(({ sessionKey }: { sessionKey: string }) => sessionKey)
    .toSorted();

describe("lcm import --discover", () => {
  it("lists what is there, and imports nothing unless it is told to", () => {
    const place = createHome();
    const { stdout, stderr } = ok(place, "import", "--discover");
    assert.match(
      stdout,
      /^agent +sessions +size +newest +folder\nClaude Code +3 .*\nCodex +1 .*\nOpenCode +2 .*\nPi +1 /,
    );
    assert.match(stderr, /nothing was imported; pass --yes/);
    const { agents, files } = ok(place, "import", "--discover", "--json").json;
    assert.deepEqual(
      agents.map(({ host, sessions }: { host: string; sessions: number }) => [host, sessions]),
      [
        ["claude-code", 3],
        ["codex", 1],
        ["opencode", 2],
        ["pi", 1],
      ],
    );
    assert.deepEqual(files, []);
    assert.equal(lcm(place, "conversations").status, 3, "there is no database yet");
  });

  it("imports every session under its own name, once, and later only what is new", () => {
    const place = createHome();
    const first = ok(place, "import", "--discover", "--yes");
    assert.match(first.stdout, /Claude Code: 3 sessions read, \d+ messages, \d+ other entries\n/);
    assert.match(first.stdout, /OpenCode: 2 sessions read, 16 messages, 2 other entries\n/);
    assert.match(first.stderr, /`lcm grep WORDS` searches them/);
    const sessions = sessionsOf(place);
    assert.equal(sessions.length, 7);
    const listed = ok(place, "conversations").stdout;
    assert.match(listed, /^id .* agent +folder$/m);
    for (const agent of ["claude-code", "codex", "opencode", "pi"])
      assert.match(listed, new RegExp(`  ${agent} +/`), agent);
    assert.match(ok(place, "context", `claude-code:${session}`).stderr, /Claude Code builds its prompts itself/);
    assert.doesNotMatch(ok(place, "context", "pi:0198a000-0000-7000-8000-000000000001").stderr, /builds its prompts/);
    const unseen = lcm(place, "seen", `claude-code:${session}`);
    assert.match(unseen.stderr, /hint: prompts that lossless-claw builds are recorded/);
    assert.match(ok(place, "stats", `claude-code:${session}`).stderr, /the host builds its own/);
    assert.ok(sessions.includes(`claude-code:${session}`));
    assert.match(
      ok(place, "import", "--discover", "--yes").stdout,
      /Claude Code: 3 unchanged\nCodex: 1 unchanged\nOpenCode: 2 unchanged\nPi: 1 unchanged\n$/,
    );

    const file = join(place.projects, "-home-user-x", `${session}.jsonl`);
    const row = {
      type: "user",
      uuid: "u9",
      parentUuid: null,
      sessionId: session,
      message: { role: "user", content: "one more" },
    };
    appendFileSync(file, `${JSON.stringify(row)}\n`);
    fillOpenCode(place.openCode, document("after"));
    const again = ok(place, "import", "--discover", "--yes").stdout;
    assert.match(again, /Claude Code: 1 session read, 1 message, 0 other entries, 2 unchanged\n/);
    assert.match(again, /OpenCode: 1 session read, 2 messages, 0 other entries, 1 unchanged\n/);
    assert.match(ok(place, "grep", "more").stdout, /one more/);
    assert.match(ok(place, "doctor").stdout, /no findings/);
  });

  it("imports one agent's, or those of a time, and says which words it does not know", () => {
    const place = createHome();
    ok(place, "import", "--discover", "--host", "pi", "--yes");
    assert.deepEqual(sessionsOf(place), ["pi:0198a000-0000-7000-8000-000000000001"]);
    const none = ok(place, "import", "--discover", "--since", "2100-01-01");
    assert.match(none.stdout, /^no sessions of Claude Code, .* were found in\n {2}.*\/projects\n/);
    assert.match(none.stderr.replaceAll("\n", " "), /OpenClaw are not listed: its plugin imports each/);
    for (const wrong of [["--host", "codex"], ["--discover", "--host", "emacs"], ["--discover", "a.jsonl"], []])
      assert.equal(lcm(place, "import", ...wrong).status, 2, wrong.join(" "));
  });

  it("counts a session of Codex once that goes on in other files after a rewind", () => {
    const place = createHome();
    cpSync(join(fixtures, "codex"), join(place.state, ".codex", "sessions", "2026", "11", "18"), { recursive: true });
    const run = ok(place, "import", "--discover", "--host", "codex", "--yes").stdout;
    assert.match(run, /^Codex +2 /m);
    assert.match(run, /Codex: 2 sessions read, /);
    assert.match(ok(place, "import", "--discover", "--host", "codex", "--yes").stdout, /^Codex: 2 unchanged$/m);
    assert.equal(sessionsOf(place).length, 2);
  });

  it("leaves an answer of OpenCode's that is still being written for the next time", () => {
    const place = createHome();
    const whole = document("child");
    const messages = whole["messages"] as readonly {
      info: { time: { completed?: number } };
      parts: readonly object[];
    }[];
    const last = messages.at(-1) ?? assert.fail();
    const { completed: _, ...begun } = last.info.time;
    const writing = { ...last, info: { ...last.info, time: begun }, parts: last.parts.slice(0, 1) };
    fillOpenCode(place.openCode, { ...whole, messages: [...messages.slice(0, -1), writing] } as unknown as JsonObject);
    ok(place, "import", "--discover", "--host", "opencode", "--yes");
    fillOpenCode(place.openCode, whole);
    ok(place, "import", "--discover", "--host", "opencode", "--yes");
    const { id } = whole["info"] as { id: string };
    assert.deepEqual(ok(place, "export", `opencode:${id}`).json, whole);
  });

  it("looks where the agents' own variables point", () => {
    const place = createHome();
    const env = { CLAUDE_CONFIG_DIR: join(place.state, "none"), CODEX_HOME: join(place.state, "none") };
    const { agents } = ok({ ...place, env }, "import", "--discover", "--json").json;
    assert.deepEqual(
      agents.map(({ host }: { host: string }) => host),
      ["opencode", "pi"],
    );
  });
});

describe("lcm import of an agent's files", () => {
  it("finds sessions below a folder, whichever folder of the agent's it is", () => {
    const place = createHome();
    const folders = [".claude", ".codex/sessions", ".local/share", ".pi"].map((name) => join(place.state, name));
    const { json } = ok(place, "import", ...folders, "--json");
    assert.deepEqual(
      json.files.map(({ kind }: { kind: string }) => kind),
      Array(7).fill("imported"),
    );
    ok(place, "import", join(place.projects, "-home-user-x"));
    assert.equal(sessionsOf(place).length, 7);
  });

  it("reads one file, a pipe of it, a database, and what the host itself exports", () => {
    const place = createHome();
    const file = join(fixtures, "claude-code", `${session}.jsonl`);
    ok(place, "import", file);
    const piped = ok({ ...place, input: readFileSync(file, "utf8") }, "import", "-", "--json").json.files[0];
    assert.deepEqual([piped.messages, piped.conversation.id], [0, 1]);
    ok(place, "import", place.openCode);
    const child = join(place.state, "child.json");
    writeFileSync(child, JSON.stringify(document("child")));
    const [again] = ok(place, "import", child, "--json").json.files;
    assert.deepEqual([again.messages, again.entries, again.differing], [0, 0, []]);
    assert.equal(sessionsOf(place).length, 3);
    assert.equal(lcm(place, "import", place.openCode, "--session", "x").status, 2);
  });
});

describe("lcm export of an agent's session", () => {
  it("writes the agent's own file", () => {
    const place = createHome();
    ok(place, "import", "--discover", "--yes");
    const rows = (text: string): readonly unknown[] =>
      text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
    const claudeCode = ok(place, "export", `claude-code:${session}`).stdout;
    assert.deepEqual(rows(claudeCode), rows(readFileSync(join(fixtures, "claude-code", `${session}.jsonl`), "utf8")));
    const { id } = document("before")["info"] as { id: string };
    assert.deepEqual(ok(place, "export", `opencode:${id}`).json, document("before"));
    ok(place, "export", `opencode:${id}`, "-o", "out.json");
    assert.deepEqual(JSON.parse(readFileSync(join(place.state, "out.json"), "utf8")), document("before"));
  });
});
