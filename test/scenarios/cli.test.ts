/**
 * Runs the real bin in separate processes and folders, as its users do. Output for people is checked where a promise
 * depends on it; everything else is read as JSON.
 */

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { bare, bin, createFolder, lcm, linesOf, ok } from "./program.ts";
import type { Place, Run } from "./program.ts";
import { readKeyFacts } from "../../src/cli/demo/five-weeks.ts";
import { assertPrivate } from "../support/platform.ts";
import { devNull } from "node:os";

const fixtures = fileURLToPath(new URL("../fixtures/", import.meta.url));
const realSession = fileURLToPath(new URL("../../../shared/data/pi-session.jsonl", import.meta.url));

const entriesOf = (text: string): readonly unknown[] => linesOf(text).map((line): unknown => JSON.parse(line));

/** One of everything seen in session files, and of what may come. */
function createSession(): readonly object[] {
  const at = (second: number): string => new Date(Date.UTC(2026, 1, 17, 7, 37, second)).toISOString();
  const message = (second: number, inner: object): object => ({
    type: "message",
    timestamp: at(second),
    message: inner,
  });
  return [
    { type: "session", id: "5e551011-aaaa-4bbb-8ccc-000000000001", timestamp: at(0), cwd: "/home/me", version: 3 },
    message(1, { role: "user", content: "Where does the harbour ferry leave?" }),
    { type: "model_change", timestamp: at(2), provider: "anthropic", modelId: "some-model" },
    message(3, {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "They mean the old harbour.", thinkingSignature: "c2lnbmF0dXJl" },
        { type: "text", text: "I will look it up." },
        {
          type: "toolCall",
          id: "call_1",
          name: "look_up",
          arguments: { query: "ferry", nested: { list: [1, null, "二"] } },
        },
      ],
      usage: { input: 10, output: 20, cost: { total: 0.0012 } },
      stopReason: "toolUse",
    }),
    message(4, {
      role: "toolResult",
      toolCallId: "call_1",
      toolName: "look_up",
      content: [{ type: "text", text: "Pier 7, every 20 minutes. ERR_NONE" }],
      details: { source: "timetable", rows: [{ pier: 7 }] },
      isError: false,
    }),
    {
      type: "message",
      id: "entry-5",
      parentId: null,
      timestamp: at(5),
      message: { role: "assistant", content: [], stopReason: "aborted" },
    },
    {
      type: "message",
      id: "entry-6",
      parentId: "entry-5",
      timestamp: at(6),
      message: { role: "user", content: [{ type: "text", text: "東京の港は？ 🚢" }] },
    },
    message(7, {
      role: "assistant",
      content: [
        { type: "text", text: "竹芝から出ます。" },
        { type: "hologram", depth: 3, frames: ["a", "b"] },
        { type: "image", data: "aGVsbG8=", mimeType: "image/png" },
      ],
    }),
    { type: "thinking_level_change", timestamp: at(8), thinkingLevel: "high" },
    message(9, { role: "bashExecution", command: "ls", output: "a.txt", exitCode: 0 }),
    message(10, { role: "user", content: "ping" }),
    message(11, { role: "user", content: "ping" }),
    message(12, { role: "user", content: "" }),
    { type: "custom_future_entry", timestamp: at(13), payload: { anything: true } },
  ];
}

const session = createSession();
const messageCount = session.filter((entry) => "message" in entry).length;
const sessionText = session.map((entry) => `${JSON.stringify(entry)}\n`).join("");

function writeSession(folder: string, text: string | Buffer = sessionText, name = "session.jsonl"): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const storedMessages = (place: Place): readonly unknown[] =>
  ok(place, "messages", "1", "--from-start", "--limit", "100000", "--json").json.messages;

describe("lcm", () => {
  const place = { state: createFolder() };

  it("lists its commands when called without arguments", () => {
    const { stdout } = ok(place);
    for (const name of [
      "status",
      "conversations",
      "messages",
      "grep",
      "context",
      "dag",
      "compact",
      "prompts",
      "demo",
      "import",
      "export",
      "adopt",
      "backup",
      "restore",
      "forget",
      "doctor",
    ])
      assert.match(stdout, new RegExp(`^ +${name}\\b`, "m"));
    assert.equal(ok(place, "--help").stdout, stdout);
  });

  it("prints its version", () => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
    assert.equal(ok(place, "--version").stdout, `${version}\n`);
  });

  it("has help with examples for each command", () => {
    for (const name of ["grep", "import", "forget", "context", "dag", "compact", "prompts", "demo"]) {
      const { stdout } = ok(place, name, "--help");
      assert.match(stdout, /^Examples:\n +\$ lcm/m);
      assert.equal(/--db <path>/.test(stdout), name !== "demo", `${name}: the demo makes its own database`);
    }
    assert.doesNotMatch(ok(place, "tui", "--help").stdout, /--json/);
    assert.match(ok(place, "--help").stdout.replaceAll("\n", " "), /7 corrupt, 130 interrupted by Ctrl-C\./);
  });

  it("has help that fits 80 columns", () => {
    const narrow = { ...place, env: { COLUMNS: "80" } };
    const names = [...ok(place).stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = ""]) => name);
    assert.ok(names.length > 15);
    for (const name of ["", ...names.filter((each) => each !== "help")])
      for (const line of linesOf(ok(narrow, ...(name === "" ? [] : [name]), "--help").stdout))
        assert.ok(line.length <= 80, `${name}: ${line}`);
  });

  it("has help that wraps in 50 columns, except for examples", () => {
    const narrow = { ...place, env: { COLUMNS: "50" } };
    for (const name of ["compact", "grep", "prune"])
      for (const line of linesOf(ok(narrow, name, "--help").stdout.split("\nExamples:")[0] ?? ""))
        assert.ok(line.length <= 50 || line.includes("LCM_"), `${name}: ${line}`);
  });

  it("suggests a command when help is requested for an unknown one", () => {
    for (const args of [
      ["statsu", "--help"],
      ["statsu", "-h"],
      ["help", "statsu"],
    ]) {
      const run = lcm(place, ...args);
      assert.deepEqual([run.status, run.stdout], [2, ""], args.join(" "));
      assert.match(run.stderr, /^error: unknown command 'statsu'\n\(Did you mean status\?\)/);
    }
    assert.equal(lcm(place, "nosuch", "--help", "--json").json.error.code, "invalid");
    assert.match(ok(place, "help", "status").stdout, /^Usage: lcm status/);
  });

  it("exits with 2 when it is used wrongly, and explains how to use it", () => {
    const wrong: readonly (readonly string[])[] = [
      ["frobnicate"],
      ["status", "--frobnicate"],
      ["describe"],
      ["messages", "1", "--limit", "many"],
      ["messages", "1", "--role", "robot"],
      ["grep", "x", "--limit", "201"],
      ["grep", "x", "-e", "--full-text"],
      ["ask", "x", "--no-model", "--model", "ollama/x"],
      ["ask", "x", "--model=ollama/x", "--no-model"],
      ["compact", "--no-model", "--model", "ollama/x"],
    ];
    for (const args of wrong) {
      const run = lcm(place, ...args);
      assert.equal(run.status, 2, args.join(" "));
      assert.match(run.stderr, /^error: .+\nhint: .+--help/s, args.join(" "));
    }
    const { json, stderr } = lcm(place, "--json", "status", "--frobnicate");
    assert.deepEqual(json, { error: { code: "invalid", message: "unknown option '--frobnicate'" } });
    assert.equal(stderr, "");
  });

  it("reports that there is no database, exits with 3, and creates none", () => {
    const reads: readonly (readonly string[])[] = [
      ["status"],
      ["conversations"],
      ["messages", "1"],
      ["grep", "x"],
      ["context", "1"],
      ["dag", "1"],
      ["compact", "1"],
      ["compact", "1", "--apply"],
      ["prompts", "--render", "1"],
      ["export", "1"],
      ["adopt"],
      ["backup"],
      ["forget", "--secret", "hunter2"],
      ["forget", "--secret", "hunter2", "--apply"],
      ["doctor"],
    ];
    for (const args of reads) {
      const run = lcm(place, ...args);
      assert.equal(run.status, 3, args.join(" "));
      assert.match(run.stderr, /^error: there is no database at .*lcm\.db\nhint: .*lcm import/);
    }
    assert.deepEqual(readdirSync(place.state), []);
    const { error } = lcm(place, "status", "--json").json;
    assert.equal(error.code, "not_found");
    assert.match(error.message, /there is no database/);
  });

  it("finds its database by --db, then LCM_DATABASE_PATH, then the state directory", () => {
    const paths = { flag: join(place.state, "flag.db"), env: join(place.state, "env.db") };
    const env = { LCM_DATABASE_PATH: paths.env };
    assert.match(lcm({ ...place, env }, "status", "--db", paths.flag).stderr, /flag\.db/);
    assert.match(lcm({ ...place, env }, "status").stderr, /env\.db/);
    assert.match(lcm(place, "status").stderr, new RegExp(RegExp.escape(join(place.state, "lcm.db"))));
    assert.match(
      lcm({ ...place, env: { OPENCLAW_STATE_DIR: "~/elsewhere" } }, "status").stderr,
      new RegExp(RegExp.escape(join(place.state, "elsewhere", "lcm.db"))),
    );
  });

  it("reports a --db that names no file, or an impossible one", () => {
    const nameless = lcm(place, "status", "--db", "");
    assert.equal(nameless.status, 2);
    assert.match(nameless.stderr, /^error: --db needs a file name\nhint: .+\n$/);
    const path = join(writeSession(place.state, '{"role":"user","content":"hi"}\n', "file"), "lcm.db");
    const impossible = lcm(place, "import", join(place.state, "file"), "--db", path);
    assert.equal(impossible.status, 5);
    assert.match(impossible.stderr, /^error: the folder for .*file\/lcm\.db cannot be created: .+\nhint: .+\n$/);
  });

  it("names a wrong setting, and exits with 2", () => {
    const run = lcm({ ...place, env: { LCM_FRESH_TAIL_COUNT: "lots" } }, "status");
    assert.equal(run.status, 2);
    assert.match(run.stderr, /LCM_FRESH_TAIL_COUNT is "lots"/);
  });
});

describe("lcm import and export", () => {
  it("take a session in and give it back, equal entry by entry", () => {
    const place = { state: createFolder() };
    const run = ok(place, "import", writeSession(place.state));
    assert.match(
      run.stdout,
      new RegExp(
        `session\\.jsonl: conversation 1: ${messageCount} messages, ${session.length - messageCount} other entries, 0 already stored\n`,
      ),
    );
    assert.deepEqual(entriesOf(ok(place, "export", "1").stdout), session);
    assertPrivate(join(place.state, "lcm.db"));
    assert.equal(
      ok(place, "conversations", "--json").json.conversations[0].sessionId,
      "5e551011-aaaa-4bbb-8ccc-000000000001",
    );
    assert.equal(ok(place, "doctor", "--json").json.sound, true);
  });

  it("guarantee 4: take and give back lines that are nested too deeply, and every command can live with them", () => {
    const place = { state: createFolder() };
    const deep = (levels: number): string => `${'{"0":'.repeat(levels)}"harpsichord"${"}".repeat(levels)}`;
    const file = join(place.state, "deep.jsonl");
    const lines = [
      '{"role":"user","content":"Where does the ferry leave?"}',
      `{"role":"user","content":[{"type":"tree","root":${deep(9_000)}}]}`,
      `{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"plant","arguments":{"tree":${deep(100_000)}}}]}`,
      `{"type":"custom","data":${deep(9_000)}}`,
      '{"role":"assistant","content":"At pier 7."}',
    ];
    writeFileSync(file, `${lines.join("\n")}\n`);
    assert.match(ok(place, "import", file).stdout, /conversation 1: 4 messages, 1 other entry, 0 already stored/);
    assert.match(ok(place, "import", file).stdout, /0 messages, 0 other entries, 5 already stored/);
    assert.deepEqual(linesOf(ok(place, "export", "1").stdout), lines);
    assert.match(ok(place, "messages", "1").stdout, /nested too deeply to be shown/);
    assert.equal(ok(place, "messages", "1", "--json").json.messages.length, 4);
    for (const command of [
      "context 1",
      "dag 1",
      "describe msg_1-2",
      "doctor",
      "status",
      "compact 1 --no-model --apply",
    ])
      ok(place, ...command.split(" "));
    ok(place, "forget", "--secret", "harpsichord", "--apply");
    assert.doesNotMatch(ok(place, "export", "1").stdout, /harpsichord/);
  });

  it("give the same rows whether a file comes at once, twice, or half before whole", () => {
    const [whole, grown] = [{ state: createFolder() }, { state: createFolder() }];
    ok(whole, "import", writeSession(whole.state));
    const lines = linesOf(sessionText);
    for (let upto = 2; upto < lines.length; upto += 5)
      ok(grown, "import", writeSession(grown.state, `${lines.slice(0, upto).join("\n")}\n`));
    const last = ok(grown, "import", writeSession(grown.state), "--json").json.files[0];
    assert.equal(last.messages + last.entries + last.duplicates, session.length);
    const again = ok(grown, "import", join(grown.state, "session.jsonl"), "--json").json.files[0];
    assert.deepEqual([again.messages, again.entries, again.duplicates], [0, 0, session.length]);
    assert.deepEqual(storedMessages(grown), storedMessages(whole));
    assert.deepEqual(entriesOf(ok(grown, "export", "1").stdout), session);
  });

  it("report a torn last line, and take it once it is complete", () => {
    const [whole, torn] = [{ state: createFolder() }, { state: createFolder() }];
    ok(whole, "import", writeSession(whole.state));
    const cutAt = sessionText.length - 140;
    const path = writeSession(torn.state, sessionText.slice(0, cutAt));
    const first = lcm(torn, "import", path);
    assert.equal(first.status, 1);
    const line = sessionText.slice(0, cutAt).split("\n").length;
    assert.match(
      first.stderr,
      new RegExp(`session\\.jsonl:${line}: the last line is incomplete; import the file again`),
    );
    appendFileSync(path, sessionText.slice(cutAt));
    ok(torn, "import", path);
    assert.deepEqual(storedMessages(torn), storedMessages(whole));
    assert.deepEqual(entriesOf(ok(torn, "export", "1").stdout), session);
  });

  it("report each malformed line by file and line, and store the rest", () => {
    const place = { state: createFolder() };
    const path = writeSession(
      place.state,
      '{"role":"user","content":"one"}\nnot json\n[1]\n\n{"role":"user","content":"five"}\n',
      "chat.jsonl",
    );
    const run = lcm(place, "import", path);
    assert.equal(run.status, 1);
    assert.match(run.stderr, /chat\.jsonl:2: .+\n.*chat\.jsonl:3: .+/);
    assert.match(run.stdout, /2 messages, .*2 lines unreadable/);
    assert.deepEqual(entriesOf(ok(place, "export", "1").stdout), [
      { role: "user", content: "one" },
      { role: "user", content: "five" },
    ]);
  });

  it("list a few malformed lines, and all of them as JSON", () => {
    const place = { state: createFolder() };
    const said = '{"role":"user","content":"hello"}\n';
    const path = writeSession(place.state, `${"not json\n".repeat(2_013)}${said}`, "noise.jsonl");
    const run = lcm(place, "import", path);
    assert.equal(run.status, 1);
    assert.equal(linesOf(run.stderr).length, 6);
    assert.match(run.stderr, /noise\.jsonl:5: .+\n.*noise\.jsonl: and 2,008 more; --json lists all\n$/);
    assert.equal(lcm(place, "import", path, "--json").json.files[0].malformed.length, 2_013);
  });

  it("refuse what is not a transcript, and suggest what to do instead", () => {
    const place = { state: createFolder() };
    const refusal = (run: Run): string => {
      assert.equal(run.status, 2, run.stderr);
      assert.match(run.stderr, /^error: .+\nhint: .+\n$/);
      return run.stderr;
    };
    const input = '{"role":"user","content":"hi"}\n';
    assert.match(refusal(lcm(place, "import", devNull)), /is not a file.*\nhint: save it first/);
    const database = join(fixtures, "lcm-0.1.0.db");
    assert.match(
      refusal(lcm(place, "import", database)),
      /was made by an older lossless-claw\nhint: convert it with `lcm adopt --db .*0\.db`, then import it/,
    );
    const readme = writeSession(place.state, "# Harbour\n\nRun it.\n\n{}\n", "README.md");
    const words = /^error: .*README\.md: not a transcript: none of its 3 lines is a message\nhint: a chat is /;
    assert.match(refusal(lcm(place, "import", readme)), words);
    const picture = join(place.state, "picture.png");
    writeFileSync(picture, Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0xff, 0x0a, 0xfe]));
    assert.match(refusal(lcm(place, "import", picture)), /not a transcript: none of its \d lines is a message/);
    const folder = createFolder();
    writeSession(folder, '{"user":1}\n{"user":2}\n', "metrics.jsonl");
    writeSession(folder, input, "chat.jsonl");
    assert.match(ok(place, "import", folder).stdout, /metrics\.jsonl: skipped, not a transcript: none of its 2 lines/);
    const both = lcm(place, "import", readme, join(folder, "chat.jsonl"));
    assert.equal(both.status, 1);
    assert.match(both.stderr, /README\.md: not a transcript/);
    assert.match(both.stdout, /1 already stored/);
  });

  it("create nothing, not even a folder, before there is something to store", () => {
    const place = { state: createFolder() };
    const write = (text: string | Buffer, name: string): string => writeSession(place.state, text, name);
    const folder = join(place.state, "folder");
    mkdirSync(folder);
    writeSession(folder, '{"user":1}\n', "metrics.jsonl");
    const header = readFileSync(join(fixtures, "lcm-schema-1.db")).subarray(0, 4_096);
    const database = join(place.state, "new", "deep", "lcm.db");
    const failing: readonly (readonly [status: number, input: string, ...paths: readonly string[]])[] = [
      [2, "", write("# Harbour\n", "README.md")],
      [2, "", write('{"name":"a package"}', "package.json")],
      [2, "", write(Buffer.from("\ufeff[]", "utf16le"), "utf16.json")],
      [7, "", write("SQLite format 3\0 and more", "short.db")],
      [7, "", write(Buffer.concat([header, Buffer.alloc(100, 7)]), "cut.db")],
      [2, "", join(fixtures, "lcm-0.15.3.db")],
      [3, "", join(place.state, "nowhere.jsonl")],
      [0, "", folder],
      [0, "", write("\n\n", "blank.jsonl")],
      [0, "", "-"],
      [2, "hello\n", "-"],
      [1, "", join(place.state, "README.md"), join(place.state, "blank.jsonl")],
    ];
    for (const [status, input, ...paths] of failing) {
      const run = lcm({ ...place, input }, "import", ...paths, "--db", database);
      assert.equal(run.status, status, `${paths.join(" ")}: ${run.stderr}`);
      const named = paths[0] === "-" ? "stdin" : basename(paths[0] ?? "");
      assert.ok((run.stderr + run.stdout).includes(named), `${run.stderr} names ${named}`);
      assert.ok(!existsSync(join(place.state, "new")), `${paths.join(" ")} creates nothing`);
    }
    ok(place, "import", writeSession(place.state), "--db", database);
    assert.ok(existsSync(database));
  });

  it("take a session from stdin, again and further, under a name of its own", () => {
    const place = { state: createFolder() };
    const chat = (...texts: readonly string[]): string =>
      texts.map((content) => `${JSON.stringify({ role: "user", content })}\n`).join("");
    const imported = (input: string, ...args: readonly string[]) =>
      ok({ ...place, input }, "import", "-", ...args, "--json").json.files[0];
    assert.equal(imported(chat("one", "two")).conversation.sessionId, "stdin");
    const again = imported(chat("one", "two", "three"));
    assert.deepEqual([again.conversation.id, again.messages, again.duplicates], [1, 1, 2]);
    assert.equal(imported(chat("other")).conversation.sessionId, "stdin-2");
    assert.equal(
      imported(JSON.stringify([{ role: "user", content: "x" }]), "--session", "s").conversation.sessionId,
      "s",
    );
    assert.equal(imported(sessionText).messages, messageCount);
    assert.match(lcm({ ...place, input: "hi\n" }, "import", "-").stderr, /^error: stdin: not a transcript/);
  });

  it("report an empty file", () => {
    const place = { state: createFolder() };
    const run = ok(place, "import", writeSession(place.state, "", "empty.jsonl"));
    assert.match(run.stderr, /^note: .*empty\.jsonl is empty\n$/);
  });

  it("keep what is stored where a line has different content, and explain how to store it separately", () => {
    const place = { state: createFolder() };
    const chat = (...texts: readonly string[]): readonly object[] =>
      texts.map((content) => ({ role: "user", content }));
    const textOf = (lines: readonly object[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    // Chats that differ near their beginning are two chats; one that differs later was edited.
    const opening = Array.from({ length: 20 }, (_, n) => `hello ${n}`);
    const path = writeSession(place.state, textOf(chat(...opening, "first")), "chat.jsonl");
    ok(place, "import", path);
    writeFileSync(path, textOf(chat(...opening, "another")));
    const run = lcm(place, "import", path);
    assert.equal(run.status, 1);
    assert.match(
      run.stderr,
      /chat\.jsonl:21: .*stored with different content; the stored one stays\nhint: .*`lcm import .*--session NAME`/,
    );
    ok(place, "import", path, "--session", "second", "--agent", "helper", "--session-key", "agent:helper:two");
    const { conversations } = ok(place, "conversations", "--json", "--agent", "helper").json;
    assert.deepEqual(
      conversations.map((each: { sessionId: string; sessionKey: string }) => [each.sessionId, each.sessionKey]),
      [["second", "agent:helper:two"]],
    );
    assert.deepEqual(entriesOf(ok(place, "export", "agent:helper:two").stdout), chat(...opening, "another"));
    assert.deepEqual(entriesOf(ok(place, "export", "chat").stdout), chat(...opening, "first"));
  });

  it("take folders, documents, CRLF and byte-order marks", () => {
    const place = { state: createFolder() };
    const folder = join(place.state, "in");
    mkdirSync(folder);
    const messages = [
      { role: "user", content: "a", name: "Ann" },
      { role: "assistant", content: "b" },
    ];
    writeSession(folder, JSON.stringify(messages, null, 2), "list.json");
    writeSession(folder, JSON.stringify({ messages }), "object.json");
    writeSession(folder, `\ufeff${messages.map((message) => JSON.stringify(message)).join("\r\n")}`, "windows.jsonl");
    writeSession(folder, '{"name":"not a chat"}', "package.json");
    const run = ok(place, "import", folder);
    assert.match(run.stdout, /package\.json: skipped/);
    for (const name of ["list", "object", "windows"])
      assert.deepEqual(entriesOf(ok(place, "export", name).stdout), messages);
    assert.equal(lcm(place, "import", join(folder, "package.json")).status, 2);
    assert.equal(lcm(place, "import", join(folder, "nowhere.jsonl")).status, 3);
    assert.equal(lcm(place, "import", folder, "--session", "one").status, 2);
  });

  it("write a file that is whole, private, and overwritten only on request", () => {
    const place = { state: createFolder() };
    ok(place, "import", writeSession(place.state));
    const output = join(place.state, "out.jsonl");
    assert.deepEqual(ok(place, "export", "1", "-o", output, "--json").json, {
      conversation: 1,
      path: output,
      lines: session.length,
      incomplete: [],
    });
    assert.deepEqual(entriesOf(readFileSync(output, "utf8")), session);
    assertPrivate(output);
    const refused = lcm(place, "export", "1", "-o", output);
    assert.equal(refused.status, 4);
    assert.match(refused.stderr, /--force/);
    ok(place, "export", "1", "-o", output, "--force");
    assert.deepEqual(
      readdirSync(place.state).filter((name) => name.includes("partial")),
      [],
    );
    assert.equal(lcm(place, "export", "no-such-session").status, 3);
    const nowhere = lcm(place, "export", "1", "-o", join(place.state, "none", "out.jsonl"));
    assert.equal(nowhere.status, 3);
    assert.match(nowhere.stderr, /^error: there is no folder .*none\nhint: .+\n$/);
  });

  it("end quietly when their reader closes the pipe", async () => {
    const place = { state: createFolder() };
    const long = Array.from({ length: 3_000 }, (_, index) =>
      JSON.stringify({ role: "user", content: `${index} ${"words ".repeat(60)}` }),
    );
    ok(place, "import", writeSession(place.state, `${long.join("\n")}\n`, "long.jsonl"));
    const child = spawn(process.execPath, [bin, "export", "1"], {
      env: { ...bare, OPENCLAW_STATE_DIR: place.state },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { promise, resolve } = Promise.withResolvers<number | null>();
    let complaints = "";
    child.stderr.on("data", (chunk: Buffer) => (complaints += chunk.toString()));
    child.stdout.once("data", () => child.stdout.destroy());
    child.on("close", resolve);
    assert.equal(await promise, 0);
    assert.equal(complaints, "");
  });

  if (existsSync(realSession)) {
    it("take a real session in halves, torn and whole, and give it back equal", () => {
      const [whole, grown] = [{ state: createFolder() }, { state: createFolder() }];
      const text = readFileSync(realSession, "utf8");
      const entries = entriesOf(text);
      ok(whole, "import", realSession, "--session", "real");
      const half = Math.floor(text.length / 2);
      const path = writeSession(grown.state, text.slice(0, half), "real.jsonl");
      assert.equal(lcm(grown, "import", path, "--session", "real").status, 1, "the half ends inside a line");
      appendFileSync(path, text.slice(half));
      ok(grown, "import", path, "--session", "real");
      assert.equal(ok(grown, "import", path, "--session", "real", "--json").json.files[0].duplicates, entries.length);
      assert.deepEqual(storedMessages(grown), storedMessages(whole));
      assert.equal(storedMessages(whole).length, 914);
      assert.deepEqual(entriesOf(ok(grown, "export", "real").stdout), entries);
      assert.equal(ok(grown, "doctor", "--json").json.sound, true);
    });
  } else {
    process.stdout.write(`skipped: the import of a real session, because ${realSession} is not there\n`);
  }
});

describe("lcm status, conversations and messages", () => {
  const place = { state: createFolder() };
  before(() => ok(place, "import", writeSession(place.state)));

  it("count what is stored", () => {
    const status = ok({ ...place, env: { LCM_FRESH_TAIL_COUNT: "64" } }, "status", "--json").json;
    assert.equal(status.path, join(place.state, "lcm.db"));
    assert.deepEqual(
      [status.schemaVersion, status.conversations, status.messages, status.summaries, status.files, status.unindexed],
      [5, 1, messageCount, 0, 0, 0],
    );
    assert.ok(status.bytes > 0 && status.tokens > 0);
    assert.equal(status.contextTokens, status.tokens);
    assert.deepEqual(status.newestActivity, { conversation: 1, at: "2026-02-17T07:37:12.000Z" });
    assert.deepEqual(status.usageLast24h, {
      calls: 0,
      inputTokens: 0,
      outputTokens: 0,
      failures: 0,
      open: 0,
    });
    assert.deepEqual([status.due.length, status.due[0].conversation, status.due[0].kind], [1, 1, "nothing"]);
    assert.deepEqual([status.lastCompaction, status.model, status.prompts.problems], [null, null, []]);
    assert.deepEqual(status.settings, [
      { key: "freshTailCount", env: "LCM_FRESH_TAIL_COUNT", value: 64, source: "environment" },
    ]);
    const words = ok(place, "status").stdout;
    for (const fact of [
      /^database +.*lcm\.db$/m,
      /^messages +10$/m,
      /^due +nothing: a prompt of about [\d,]+ tokens, within 96,000 \(75% of 128,000\)$/m,
      /^compaction +none yet$/m,
      /^model +none: summaries are extracted locally, without a model$/m,
      /^prompts +built-in$/m,
      /^model calls +0 of 120 in the last hour$/m,
      /^settings +all defaults$/m,
      /^search +up to date$/m,
    ])
      assert.match(words, fact);
  });

  it("report what is due in every active conversation", () => {
    const several = { state: createFolder() };
    for (const name of ["a", "b", "c"]) {
      const said = Array.from({ length: name === "c" ? 1 : 60 }, (_, n) => ({
        role: "user",
        content: `${name} ${n} ferry. `.repeat(40),
      }));
      writeFileSync(join(several.state, `${name}.json`), JSON.stringify(said));
      ok(several, "import", join(several.state, `${name}.json`), "--session", name);
    }
    assert.match(ok(several, "status").stdout, /^due +nothing$/m);
    const pressed = { ...several, env: { LCM_CONTEXT_THRESHOLD: "0.05" } };
    assert.match(
      ok(pressed, "status").stdout,
      /^due +2 conversations: \d \(sweep, [\d,]+ tokens\), \d \(sweep, [\d,]+\)$/m,
    );
    const { due } = ok(pressed, "status", "--json").json;
    assert.deepEqual(due.map(({ kind }: { kind: string }) => kind).toSorted(), ["nothing", "sweep", "sweep"]);
  });

  it("fit 80 columns on request, in a pipe too", () => {
    const narrow = {
      ...place,
      env: { COLUMNS: "80", LCM_SUMMARY_MODEL: "google/gemini-none", LCM_FRESH_TAIL_COUNT: "64" },
    };
    for (const args of [["conversations"], ["status"], ["doctor"], ["prompts"], ["compact", "1"]])
      for (const line of linesOf(ok(narrow, ...args).stdout))
        assert.ok(line.length <= 80 || line.includes(place.state), `${args.join(" ")}: ${line}`);
    assert.match(ok({ ...place, env: { COLUMNS: "60" } }, "conversations").stdout, /…/);
  });

  it("list conversations with their totals", () => {
    const { conversations, more } = ok(place, "conversations", "--json").json;
    assert.equal(more, false);
    assert.equal(conversations[0].totals.messages, messageCount);
    assert.match(
      ok(place, "conversations").stdout,
      /^id +conversation +messages +summaries +tokens +in context +last message\n +1 +Where does the harbour ferry leave\?/,
    );
    const none = ok(place, "conversations", "--session-key", "agent:nobody:main");
    assert.equal(none.stdout, "");
    assert.match(none.stderr, /no matching conversations/);
  });

  it("give the original messages as JSON, with their ids", () => {
    const { conversation, messages } = ok(place, "messages", "1", "--json", "--limit", "3", "--from-start").json;
    assert.equal(conversation, 1);
    assert.deepEqual(
      messages.map((message: { seq: number }) => message.seq),
      [1, 2, 3],
    );
    assert.deepEqual(
      messages.map((each: { message: unknown }) => each.message),
      session
        .filter((entry) => "message" in entry)
        .slice(0, 3)
        .map((entry) => entry.message),
    );
    assert.deepEqual(Object.keys(messages[0]), ["id", "seq", "key", "role", "at", "tokens", "aside", "message"]);
  });

  it("show a line for each message, calls and results compactly", () => {
    const { stdout } = ok(place, "messages", "1");
    const lines = linesOf(stdout);
    assert.equal(lines.length, messageCount + 2);
    assert.match(stdout, /^ {2}── model changed to .* ──$/m, "with a mark where the model changed");
    assert.match(stdout, /assistant {2}I will look it up\. {2}→ look_up \{"query":"ferry"/);
    assert.match(stdout, /tool +← look_up {2}Pier 7/);
    assert.match(stdout, /assistant {2}\(empty\)/);
    assert.match(stdout, /竹芝から出ます。 {2}\[hologram\] a b {2}\[image\]/);
    assert.match(
      ok(place, "messages", "1", "--full").stdout,
      /They mean the old harbour\.\n +I will look it up\.\n +→ look_up/,
    );
  });

  it("cut lines to the width of the terminal, counting wide characters twice", () => {
    const { stdout } = ok({ ...place, env: { COLUMNS: "60" } }, "messages", "1");
    const wide = (line: string): number =>
      Array.from(line).reduce(
        (sum, character) => sum + (/[\u3000-\u9fff\u{1f300}-\u{1faff}]/u.test(character) ? 2 : 1),
        0,
      );
    for (const line of linesOf(stdout)) assert.ok(wide(line) <= 60, line);
    assert.match(stdout, /…$/m);
  });

  it("select by role and time", () => {
    const seqs = (...args: readonly string[]): readonly number[] =>
      ok(place, "messages", "1", "--json", ...args).json.messages.map((message: { seq: number }) => message.seq);
    assert.deepEqual(seqs("--role", "tool"), [3]);
    assert.deepEqual(seqs("--since", "2026-02-17T07:37:11Z"), [9, 10]);
    assert.deepEqual(seqs("--before", "2026-02-17T07:37:03Z"), [1]);
    assert.deepEqual(seqs("--limit", "2"), [9, 10]);
    assert.equal(lcm(place, "messages", "1", "--since", "soon").status, 2);
    for (const args of [["messages", "1"], ["grep", "x"], ["recent"]]) {
      const swapped = lcm(place, ...args, "--since", "2h", "--before", "3h");
      assert.equal(swapped.status, 2, args.join(" "));
      assert.match(swapped.stderr, /^error: --since 2h is not earlier than --before 3h\nhint: swap them/);
    }
    assert.equal(lcm(place, "messages", "42").status, 3);
  });

  it("guarantee 29: times are shown and typed in the user's zone, and are UTC in JSON", () => {
    const inZone = (zone: string, ...args: readonly string[]): Run =>
      ok({ ...place, env: { TZ: zone } }, "messages", "1", "--limit", "1", ...args);
    assert.match(inZone("America/St_Johns").stdout, /2026-02-17 04:07/);
    assert.match(inZone("Asia/Tokyo").stdout, /2026-02-17 16:37/);
    assert.match(inZone("Asia/Tokyo").stderr, /times in Asia\/Tokyo/);
    assert.equal(inZone("Asia/Tokyo", "--json").json.messages[0].at, "2026-02-17T07:37:12.000Z");
    const since = (zone: string): number =>
      inZone(zone, "--json", "--limit", "100", "--since", "2026-02-17 16:37").json.messages.length;
    assert.equal(since("Asia/Tokyo"), messageCount);
    assert.equal(since("UTC"), 0);
  });

  it("use no colours unless a terminal or FORCE_COLOR requests them", () => {
    const isColoured = (env: Readonly<Record<string, string>>, ...args: readonly string[]): boolean =>
      ok({ ...place, env }, "conversations", ...args).stdout.includes("\u001b[");
    assert.equal(isColoured({}), false);
    assert.equal(isColoured({ FORCE_COLOR: "1" }), true);
    assert.equal(isColoured({ FORCE_COLOR: "1" }, "--no-color"), false);
    assert.equal(isColoured({ FORCE_COLOR: "1", NO_COLOR: "1" }), false);
  });
});

describe("guarantee 22: lcm grep reports everything it left out", () => {
  const place = { state: createFolder() };
  before(() => {
    ok(place, "import", writeSession(place.state));
    const runaway = `${JSON.stringify({ role: "user", content: `${"a".repeat(5_000)}!` })}\n`;
    ok(place, "import", writeSession(place.state, runaway, "runaway.jsonl"));
  });

  it("finds words, phrases, wide scripts, emoji and identifiers", () => {
    for (const [pattern, seq] of [
      ["ferries harbours", 1],
      ['"every 20 minutes"', 3],
      ["港", 5],
      ["🚢", 5],
      ["ERR_NONE", 3],
    ] as const) {
      const { hits } = ok(place, "grep", "--json", pattern).json;
      assert.ok(
        hits.some((hit: { seq: number }) => hit.seq === seq),
        pattern,
      );
      assert.deepEqual(Object.keys(hits[0]).toSorted(), [
        "at",
        "conversation",
        "focus",
        "id",
        "kind",
        "role",
        "score",
        "seq",
        "snippet",
      ]);
    }
  });

  it("shows where a hit is and its text", () => {
    const { stdout, stderr } = ok({ ...place, env: { FORCE_COLOR: "1" } }, "grep", "ferry", "--no-color");
    assert.match(
      stdout,
      /^msg_1-1 {2}user {2}conversation 1 {2}2026-02-17 04:07\n {2}Where does the harbour ferry leave\?/m,
    );
    assert.match(stderr, /match(es)? in 11 messages of 2 conversations/);
    assert.ok(ok({ ...place, env: { FORCE_COLOR: "1" } }, "grep", "ferry").stdout.includes("\u001b[31mferry"));
  });

  it("searches everything even if the whole index must be rebuilt, as after an upgrade", () => {
    const place = { state: createFolder() };
    const said = Array.from(
      { length: 9_000 },
      (_, n) => `${JSON.stringify({ role: "user", content: `heron h${n}x` })}\n`,
    );
    ok(place, "import", writeSession(place.state, said.join("")));
    const db = new DatabaseSync(join(place.state, "lcm.db"));
    db.exec("UPDATE search_progress SET version = 0");
    db.close();
    const { hits, caveats } = ok(place, "grep", "--json", "h6500x").json;
    assert.deepEqual([hits.length, hits[0]?.seq, caveats], [1, 6_501, []]);
  });

  it("takes a regular expression with -e, in one conversation or all", () => {
    assert.deepEqual(
      ok(place, "grep", "-e", "^pier \\d", "--json").json.hits.map((hit: { seq: number }) => hit.seq),
      [3],
    );
    assert.deepEqual(lcm(place, "grep", "-e", "^pier \\d", "--conversation", "2", "--json").json.hits, []);
    assert.equal(lcm(place, "grep", "x", "--conversation", "9").status, 3);
  });

  it("recognises a regular expression, and searches for its words if it matches nothing", () => {
    const { hits, mode } = ok(place, "grep", String.raw`^pier \d`, "--json").json;
    assert.deepEqual([hits.length, mode], [1, "regex"]);
    assert.match(ok(place, "grep", String.raw`^pier \d`).stderr, /^1 match of this regular expression in 11 messages/);
    assert.equal(ok(place, "grep", "--full-text", String.raw`^pier \d`, "--json").json.mode, "full_text");
    const { stdout, stderr } = ok(place, "grep", "ferry.*harbour");
    assert.match(stdout, /Where does the harbour ferry leave/);
    assert.match(
      stderr,
      /^note: nothing matches this as a regular expression; searched for the words "ferry harbour" /,
    );
  });

  it("explains an invalid pattern, and exits with 2", () => {
    const run = lcm(place, "grep", "-e", "(unclosed");
    assert.equal(run.status, 2);
    assert.match(
      run.stderr,
      /invalid regular expression "\(unclosed": Unterminated group\nhint: .*search for words instead/,
    );
    const told = lcm(place, "grep", "-e", "(unclosed", "--json");
    assert.deepEqual([told.status, told.json.error.code, told.stderr], [2, "invalid", ""]);
    assert.match(lcm(place, "grep", "$$$").stderr, /hint: .*to find punctuation, use a regular expression\n$/);
  });

  it("reports that a time limit was reached, which is not the same as no matches", () => {
    const run = lcm(place, "grep", "-e", "(a+)+$", "--timeout", "1");
    assert.equal(run.status, 6);
    assert.match(run.stderr, /stopped at the time limit of 1 s.*matches may be missing/);
    assert.doesNotMatch(run.stdout + run.stderr, /no matches/);
    assert.equal(lcm(place, "grep", "-e", "(a+)+$", "--timeout", "1", "--json").json.caveats[0].kind, "time");
  });

  it("reports that there are more matches than shown", () => {
    const run = ok(place, "grep", "-e", "ping", "--limit", "1");
    assert.match(run.stderr, /more than 1 match.*\n1 shown; searched 11 messages /);
  });

  it("narrows by role, message and order, and lists without a pattern", () => {
    const seqs = (...args: readonly string[]): readonly number[] =>
      ok(place, "grep", "--json", ...args).json.hits.map(({ seq }: { readonly seq: number }) => seq);
    assert.deepEqual(seqs("minutes", "--role", "tool"), [3]);
    assert.deepEqual(seqs("--role", "user", "--sort", "oldest", "--limit", "1", "--conversation", "1"), [1]);
    assert.deepEqual(seqs("--before", "msg_1-3", "--limit", "1"), [2]);
    const shown = ok(place, "grep", "every 20 minutes", "--role", "tool").stdout;
    assert.match(shown, /^msg_1-2 {2}assistant \(context\) {2}.*\n {2}….*look_up/m, "the call beside its result");
    assert.equal(lcm(place, "grep", "ferry", "--role", "nobody").status, 2);
    assert.equal(lcm(place, "grep").status, 2);
    assert.equal(lcm(place, "grep", "--since", "msg_9-1").status, 3);
  });

  it("describes a range, neighbours, and places in a text", () => {
    const ids = (stdout: string): readonly string[] => stdout.match(/^msg_1-\d+/gm) ?? [];
    assert.deepEqual(ids(ok(place, "describe", "msg_1-2..4").stdout), ["msg_1-2", "msg_1-3", "msg_1-4"]);
    assert.deepEqual(ids(ok(place, "describe", "msg_1-3", "--around", "1").stdout), ["msg_1-2", "msg_1-3", "msg_1-4"]);
    assert.deepEqual(ids(ok(place, "describe", "msg_1-1", "msg_1-5").stdout), ["msg_1-1", "msg_1-5"]);
    assert.equal(ok(place, "describe", "msg_1-3", "--find", "minutes", "--json").json.found, 1);
  });

  it("reports how much was searched when nothing matches, and exits with 1", () => {
    const run = lcm(place, "grep", "xylophone");
    assert.deepEqual([run.status, run.stdout], [1, ""]);
    assert.match(run.stderr, /^no matches in 11 messages of 2 conversations\n$/);
    assert.deepEqual(lcm(place, "grep", "xylophone", "--json").json, {
      hits: [],
      passages: [],
      caveats: [],
      mode: "full_text",
      searched: { conversations: 2, messages: 11, summaries: 0 },
    });
  });
});

describe("lcm adopt", () => {
  for (const [name, messages, summaries] of [
    ["lcm-0.1.0.db", 138, 16],
    ["lcm-0.15.3.db", 124, 14],
  ] as const) {
    it(`converts ${name} with everything in it, once`, () => {
      const place = { state: createFolder() };
      const path = join(place.state, "lcm.db");
      copyFileSync(join(fixtures, name), path);
      const refused = lcm(place, "status");
      assert.equal(refused.status, 4);
      assert.match(refused.stderr, /was made by an older lossless-claw\nhint: .*lcm adopt/);
      const named = lcm(place, "status", "--db", path, "--json").json.error.hint;
      assert.equal(named, `convert it with \`lcm adopt --db ${path}\`, which makes a backup first`);

      const adopted = ok(place, "adopt", "--json").json;
      assert.deepEqual([adopted.kind, adopted.messages, adopted.summaries], ["adopted", messages, summaries]);
      assert.equal(adopted.indexed, messages + summaries);
      assert.deepEqual(readFileSync(adopted.backup).subarray(0, 15).toString(), "SQLite format 3");
      assert.match(ok(place, "adopt").stdout, /^nothing to do/);

      const status = ok(place, "status", "--json").json;
      assert.deepEqual([status.messages, status.summaries, status.unindexed], [messages, summaries, 0]);
      assert.equal(ok(place, "doctor", "--json").json.sound, true);
      assert.equal(linesOf(ok(place, "export", "1").stdout).length, messages);
    });
  }
});

describe("lcm backup and restore", () => {
  const place = { state: createFolder() };
  const path = join(place.state, "lcm.db");
  before(() => ok(place, "import", writeSession(place.state)));
  const copies = (): readonly string[] => readdirSync(place.state).filter((name) => name.startsWith("lcm.db.backup-"));

  it("keep the newest three beside the database, and never remove one stored elsewhere", () => {
    const elsewhere = join(place.state, "mine.db");
    assert.equal(ok(place, "backup", elsewhere, "--json").json.path, elsewhere);
    assert.equal(lcm(place, "backup", elsewhere).status, 4);
    assert.match(lcm(place, "backup", place.state).stderr, /^error: .* is a folder\nhint: name a file in it\n$/);
    for (let count = 1; count <= 4; count++) ok(place, "backup");
    assert.equal(copies().length, 3);
    assertPrivate(elsewhere);
    assert.ok(ok(place, "status", "--json").json.backups.length === 3);
  });

  it("do not create the folder of a misspelt path", () => {
    const run = lcm(place, "backup", join(place.state, "none", "mine.db"));
    assert.equal(run.status, 3);
    assert.match(run.stderr, /^error: .*folder.*\nhint: .+\n$/);
    assert.equal(existsSync(join(place.state, "none")), false);
  });

  it("find a backup by its name alone, beside the database", () => {
    const name = copies()[0] ?? "";
    const { plan } = ok({ ...place, state: createFolder() }, "restore", name, "--db", path, "--json").json;
    assert.equal(plan.from.path, join(place.state, name));
    assert.equal(lcm(place, "restore", join("elsewhere", name)).status, 3);
  });

  it("report what an unreadable file is", () => {
    const state = createFolder();
    const other = join(state, "lcm.db");
    copyFileSync(path, other);
    const db = new DatabaseSync(other);
    db.exec("PRAGMA user_version = 999");
    db.close();
    const older = join(fixtures, "lcm-0.1.0.db");
    const { stdout } = ok({ state }, "restore", older);
    assert.match(stdout, /^restore .*lcm-0\.1\.0\.db \(.+, made by an older lossless-claw\)$/m);
    assert.match(stdout, /^replaces .*lcm\.db \(.+, made by a newer lossless-claw\)$/m);
    truncateSync(other, 30_000);
    writeFileSync(other, Buffer.alloc(8_192, 0x41), { flag: "r+", flush: true });
    writeFileSync(other, "SQLite format 3\0", { flag: "r+" });
    assert.match(ok({ state }, "restore", older).stdout, /^replaces .*lcm\.db \(.+, damaged\)$/m);
    assert.match(
      ok({ state }, "restore", older, "--apply").stderr,
      /made by an older lossless-claw; convert it with `lcm adopt`/,
    );
  });

  it("list what can be restored, whatever happened to the database, and restore it", () => {
    const home = { state: createFolder() };
    const file = join(home.state, "lcm.db");
    const none = ok(home, "restore", "--db", file).stdout;
    assert.equal(none, `no backups next to ${file}\n`, "there is nothing to back up either");
    copyFileSync(path, file);
    const yet = ok(home, "restore", "--db", file).stdout;
    assert.equal(yet, `no backups next to ${file}; make one with \`lcm --db ${file} backup\`\n`);
    const made = ok(home, "backup", "--json").json.path;
    assert.equal(lcm(home, "restore", "--apply").status, 2);

    // What `status` exits with for each damage.
    const damages: readonly (readonly [number, () => void])[] = [
      [3, () => rmSync(file)],
      [2, () => writeFileSync(file, Buffer.alloc(4_096, 0xa5), { flag: "r+" })],
      [7, () => writeFileSync(file, Buffer.alloc(4_096, 0xa5).fill("SQLite format 3\0", 0, 16), { flag: "r+" })],
    ];
    for (const [status, damage] of damages) {
      damage();
      const refused = lcm(home, "status");
      assert.equal(refused.status, status);
      assert.ok(
        refused.stderr.replaceAll("\n", " ").includes(`the newest backup is ${basename(made)}`),
        refused.stderr,
      );
      assert.match(refused.stderr, /^hint: list backups with `lcm restore`/m);
      const listed = ok(home, "restore");
      assert.match(listed.stdout, /^backup .*\.backup-\w+ \(.+, current format\)$/m);
      assert.match(listed.stderr, /`lcm restore lcm\.db\.backup-\w+` shows what it would replace/);
      ok(home, "restore", basename(made), "--apply");
    }
    const { database, backups } = ok(home, "restore", "--json").json;
    assert.equal(database, file);
    assert.deepEqual(
      backups.map((copy: { kind: string; format: string }) => [copy.kind, copy.format]),
      [
        ["set-aside", "damaged"],
        ["set-aside", "no_database"],
        ["backup", "current"],
      ],
    );
    assert.ok(ok(home, "status", "--json").json.messages > 0);
  });

  it("show what would be replaced, and replace it only with --apply, setting aside what was there", () => {
    ok(place, "import", writeSession(place.state, '{"role":"user","content":"later"}\n', "later.jsonl"));
    const backup = join(place.state, "mine.db");
    const plan = ok(place, "restore", backup, "--json").json;
    assert.deepEqual([plan.dryRun, plan.applied], [true, false]);
    assert.deepEqual(
      [plan.plan.from.contents.messages, plan.plan.replaces.contents.messages],
      [messageCount, messageCount + 1],
    );
    assert.equal(ok(place, "status", "--json").json.messages, messageCount + 1);
    assert.match(ok(place, "restore", backup).stderr, /nothing was changed; pass --apply/);
    assert.equal(lcm(place, "restore", backup, "--dry-run", "--apply").status, 2);

    const { applied, result } = ok(place, "restore", backup, "--apply", "--json").json;
    assert.equal(applied, true);
    assert.equal(ok(place, "status", "--json").json.messages, messageCount);
    assert.equal(ok(place, "status", "--json", "--db", result.replaced).json.messages, messageCount + 1);
    assert.equal(lcm(place, "restore", join(place.state, "none.db")).status, 3);
    assert.equal(lcm(place, "restore", path).status, 2);
  });
});

describe("lcm forget", () => {
  const place = { state: createFolder() };
  const secret = "hunter2-Zx9";
  before(() => {
    const lines = [
      { role: "user", content: `my password is ${secret}, keep it` },
      { role: "assistant", content: [{ type: "toolCall", id: "c1", name: "login", arguments: { password: secret } }] },
      { role: "user", content: "something else" },
    ];
    ok(
      place,
      "import",
      writeSession(place.state, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), "chat.jsonl"),
    );
    ok(place, "backup");
  });

  it("shows what contains a secret, without showing the secret, and changes nothing", () => {
    const words = ok(place, "forget", "--secret", secret);
    assert.match(words.stdout, /2 messages: msg_1-1, msg_1-2\n/);
    assert.match(words.stdout, /my password is \[forgotten\], keep it/);
    assert.match(
      words.stderr,
      /these backups may still contain it.*\n +.*lcm\.db\.backup-.*\nnothing was changed; pass --apply/,
    );
    const plan = ok(place, "forget", "--secret", secret, "--json").json;
    assert.deepEqual(
      [plan.dryRun, plan.applied, plan.plan.messages],
      [true, false, [1, 2].map((seq) => 2 ** 24 + seq)],
    );
    assert.ok(!`${words.stdout}${words.stderr}${JSON.stringify(plan)}`.includes(secret));
    assert.ok(ok(place, "export", "1").stdout.includes(secret));
  });

  it("removes it everywhere with --apply, and names the backups that may still contain it", () => {
    const run = ok({ ...place, input: `${secret}\n` }, "forget", "--secret-stdin", "--apply");
    assert.match(run.stderr, /these backups may still contain it.*\n +.*lcm\.db\.backup-/);
    assert.ok(!ok(place, "export", "1").stdout.includes(secret));
    assert.ok(!readFileSync(join(place.state, "lcm.db")).includes(secret), "not in the file either");
    assert.equal(readdirSync(place.state).filter((name) => name.includes(".backup-")).length, 1, "no new backup");
    assert.match(ok(place, "forget", "--secret", secret, "--apply").stdout, /not found anywhere/);
    assert.equal(ok(place, "doctor", "--json").json.sound, true);
  });

  it("removes one message, and keeps its position", () => {
    assert.match(
      ok(place, "forget", "--message", "msg_1-3").stdout,
      /forgetting msg_1-3 changes:\n +1 message: msg_1-3\n\n +msg_1-3 {2}something else/,
    );
    const { dryRun, applied, result } = ok(place, "forget", "1", "--message", "msg_1-3", "--apply", "--json").json;
    assert.deepEqual([dryRun, applied, result.kind], [false, true, "written"]);
    const { stdout } = ok(place, "messages", "1");
    assert.match(stdout, /\[forgotten\]/);
    assert.doesNotMatch(stdout, /something else/);
    const again = lcm(place, "import", join(place.state, "chat.jsonl"), "--json");
    assert.equal(again.json.files[0].messages, 0, "a replay does not bring it back");
  });

  it("reports that a message is forgotten already, and does nothing", () => {
    for (const args of [[], ["--apply"]]) {
      const run = ok(place, "forget", "--message", "msg_1-3", ...args);
      assert.deepEqual([run.stdout, run.stderr], ["msg_1-3 is already forgotten; nothing to do\n", ""]);
    }
    const { applied, plan } = ok(place, "forget", "--message", "msg_1-3", "--apply", "--json").json;
    assert.deepEqual([applied, plan.messages], [false, []]);
    const path = writeSession(place.state, '{"role":"user","content":"[forgotten]"}\n', "says.jsonl");
    ok(place, "import", path);
    const { id } = ok(place, "messages", "says", "--json").json.messages[0];
    assert.match(ok(place, "forget", "--message", String(id)).stdout, /^forgetting msg_\d+-\d+ changes/);
  });

  it("requires exactly one thing to forget", () => {
    assert.equal(lcm(place, "forget").status, 2);
    assert.equal(lcm(place, "forget", "--secret", "abc").status, 2);
    assert.equal(lcm(place, "forget", "--secret", "abcdef", "--message", "msg_1-1").status, 2);
    assert.equal(lcm(place, "forget", "--message", "msg_1-1", "--dry-run", "--apply").status, 2);
    const missing = lcm(place, "forget", "--message", "msg_1-999");
    assert.equal(missing.status, 3);
    assert.match(missing.stderr, /^error: there is no msg_1-999\nhint: list messages with `lcm messages /);
  });
});

describe("lcm doctor", () => {
  it("reports a healthy database, and how much it checked", () => {
    const place = { state: createFolder() };
    ok(place, "import", writeSession(place.state));
    assert.equal(ok(place, "doctor").stdout, `healthy: ${messageCount} messages, 0 summaries checked, no findings\n`);
    assert.deepEqual(ok(place, "doctor", "1", "--json").json, {
      sound: true,
      checked: { conversations: 1, messages: messageCount, summaries: 0 },
      findings: [],
    });
  });

  it("lists findings, exits with 1, and names the command that fixes them", () => {
    const place = { state: createFolder() };
    ok(place, "import", writeSession(place.state));
    const db = new DatabaseSync(join(place.state, "lcm.db"));
    db.exec("DELETE FROM context_items WHERE message_id = (1 << 24) + 3");
    db.close();
    const run = lcm(place, "doctor");
    assert.equal(run.status, 1);
    assert.match(
      run.stdout,
      /^\d+ errors\n {2}lost_message\n {4}conversation 1: the context does not reach msg_1-3\n {4}remedy: lcm doctor 1 --fix --apply\n/,
    );
    assert.match(run.stdout, /wrong_totals/);
    assert.match(run.stdout, /problems found: 10 messages, 0 summaries checked, \d+ errors\n$/);
    const { sound, findings } = lcm(place, "doctor", "--json").json;
    assert.equal(sound, false);
    assert.deepEqual(Object.keys(findings[0]).toSorted(), [
      "code",
      "conversation",
      "message",
      "remedy",
      "severity",
      "subject",
    ]);
  });

  /** Damage of every kind that --fix fixes, and one leaf that was linked to another's message. */
  const damage = (state: string): void => {
    const db = new DatabaseSync(join(state, "lcm.db"), { enableForeignKeyConstraints: false });
    db.exec(`UPDATE messages SET created_at = '2026-02-17 07:37:00' WHERE message_id = (1 << 24) + 2;
      UPDATE conversations SET context_tokens = 5;
      DELETE FROM context_items WHERE ordinal = (SELECT max(ordinal) FROM context_items);
      INSERT INTO context_items (conversation_id, ordinal, item_type, message_id) VALUES (1, 900, 'message', (1 << 24) + 3);
      INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id) VALUES (1, 901, 'summary', 'sum_0123456789abcdef');
      UPDATE summaries SET descendant_count = 9;
      INSERT INTO message_parts (conversation_id, message_id, ordinal, part_type) VALUES (1, 77777, 0, 'text');
      DELETE FROM messages_fts WHERE rowid = (1 << 24) + 1`);
    db.close();
  };

  it("--fix shows what it would fix, does it with --apply after a backup, and checks again", () => {
    const place = { state: createFolder(), env: { COLUMNS: "80", LCM_FRESH_TAIL_COUNT: "2" } };
    ok(place, "import", writeSession(place.state));
    ok(place, "compact", "1", "--apply", "--force");
    damage(place.state);
    const shown = lcm(place, "doctor", "--fix");
    assert.equal(shown.status, 1);
    for (const line of linesOf(shown.stdout)) assert.ok(line.length <= 80, line);
    assert.match(
      shown.stdout,
      /^to fix\n {2}conversation 1\n(?: {4}.*\n)+ {2}the database file\n {4}1 orphaned row deleted permanently\n$/m,
    );
    assert.match(shown.stderr, /nothing was changed; pass --apply to do it/);
    const planned = lcm(place, "doctor", "--fix", "--json").json;
    assert.deepEqual([planned.dryRun, planned.applied, planned.result], [true, false, undefined]);
    assert.deepEqual(planned.plan.conversations[0].context, { added: 1, dropped: 2, reordered: false });
    assert.deepEqual(planned.plan.orphans, { rows: 1, searchEntries: 0 });

    const done = ok(place, "doctor", "--fix", "--apply");
    assert.match(done.stdout, /^fixed and checked again\n(?:.*\n)*healthy: /m);
    assert.match(done.stderr, /^backup: .*lcm\.db\.backup-/m);
    assert.match(done.stderr, /undo it with `lcm undo \d+ --apply`/);
    assert.equal(ok(place, "doctor", "--json").json.sound, true);
    assert.match(ok(place, "doctor", "--fix", "--apply").stdout, /nothing for --fix to do\n$/);
    const change = /lcm undo (\d+)/.exec(done.stderr)?.[1] ?? "";
    ok(place, "undo", change, "--apply");
    const again = ok(place, "doctor", "1", "--fix", "--apply", "--no-backup", "--json").json;
    assert.deepEqual([again.dryRun, again.applied, again.backup, again.result.sound], [false, true, null, true]);
    assert.ok(again.result.change > Number(change));
  });

  it("--apply without --fix is an error, and so is --dry-run with --apply", () => {
    const place = { state: createFolder() };
    ok(place, "import", writeSession(place.state));
    for (const args of [["--apply"], ["--fix", "--apply", "--dry-run"]])
      assert.equal(lcm(place, "doctor", ...args).status, 2);
  });
});

describe("lcm doctor over summaries", () => {
  const place = {
    state: createFolder(),
    env: { LCM_FRESH_TAIL_COUNT: "2", LCM_LEAF_CHUNK_TOKENS: "1000", LCM_LEAF_TARGET_TOKENS: "200" },
  };
  const ids = (): readonly string[] =>
    ok(place, "dag", "1", "--json").json.nodes.flatMap((node: { id?: string }) => node.id ?? []);
  before(() => {
    const said = Array.from({ length: 40 }, (_, n) => ({
      role: "user",
      content: `Pier ${n} was given to ferry ${n * 7}. `.repeat(20),
    }));
    writeFileSync(join(place.state, "chat.json"), JSON.stringify(said));
    ok(place, "import", join(place.state, "chat.json"));
    ok(place, "compact", "1", "--apply", "--passes", "3");
  });

  it("summarises what needs no action in one line, and lists it only on request", () => {
    assert.equal(
      ok(place, "doctor").stdout,
      "information\n  3 summaries were extracted without a model\n    remedy: lcm repair 1\n\n" +
        "healthy: 40 messages, 3 summaries checked, nothing to fix\n",
    );
    const named = ok(place, "doctor", "-v").stdout;
    for (const id of ids()) assert.match(named, new RegExp(`^ {4}conversation 1, ${id}$`, "m"));
    assert.equal(ok(place, "doctor", "--json").json.findings.length, 3);
  });

  it("explains a truncated summary, exits with 1, and names the command that fixes it", () => {
    const [first = ""] = ids();
    const db = new DatabaseSync(join(place.state, "lcm.db"));
    db.prepare("UPDATE summaries SET level = 'truncated' WHERE summary_id = ?").run(first);
    db.close();
    const run = lcm({ ...place, env: { ...place.env, COLUMNS: "80" } }, "doctor");
    assert.equal(run.status, 1);
    for (const line of linesOf(run.stdout)) assert.ok(line.length <= 80, line);
    assert.match(
      run.stdout.replace(/\n {4}/g, " "),
      /1 summary was cut short, because the model gave no usable answer; the sources are intact/,
    );
    assert.match(run.stdout, new RegExp(`^ {4}conversation 1, ${first}$`, "m"));
    assert.match(run.stdout, /^nothing lost or broken, but 1 warning: 40 messages, 3 summaries checked$/m);
    assert.match(run.stdout, /^ {4}remedy: lcm repair 1$/m);
  });
});

describe("a file that is not ours to touch", () => {
  it("is recognised, with its own exit status, and stays unchanged", () => {
    const place = { state: createFolder() };
    ok(place, "import", writeSession(place.state));
    const damaged = join(place.state, "damaged.db");
    copyFileSync(join(place.state, "lcm.db"), damaged);
    const file = openSync(damaged, "r+");
    writeSync(file, Buffer.alloc(8_192, 0x41), 0, 8_192, 100);
    truncateSync(damaged, 30_000);
    const newer = join(place.state, "newer.db");
    copyFileSync(join(place.state, "lcm.db"), newer);
    const db = new DatabaseSync(newer);
    db.exec("PRAGMA user_version = 999");
    db.close();
    const foreign = join(place.state, "foreign.db");
    const other = new DatabaseSync(foreign);
    other.exec("CREATE TABLE birds (name TEXT)");
    other.close();
    const text = writeSession(place.state, "just text\n", "text.db");
    for (const [path, status] of [
      [damaged, 7],
      [newer, 4],
      [foreign, 2],
      [text, 2],
    ] as const) {
      const before = readFileSync(path);
      for (const args of [["status"], ["doctor"], ["import", join(place.state, "session.jsonl")]]) {
        const run = lcm(place, ...args, "--db", path);
        assert.equal(run.status, status, `${args[0]} ${path}\n${run.stdout}${run.stderr}`);
        assert.match(run.stderr, /^error: .+\nhint: .+\n$/);
      }
      assert.ok(before.equals(readFileSync(path)), path);
    }
  });
});

describe("the demo", () => {
  it("shows that every promise it mentions is kept, fits 80 columns, and leaves nothing behind", () => {
    const folder = createFolder();
    const demo = fileURLToPath(new URL("../../src/cli/demo/run.ts", import.meta.url));
    const run = spawnSync(process.execPath, [demo], {
      encoding: "utf8",
      env: { ...bare, TMPDIR: folder, COLUMNS: "80" },
    });
    assert.equal(run.status, 0, run.stdout + run.stderr);
    assert.equal(run.stderr, "");
    assert.equal(run.stdout.match(/✓/g)?.length, 3);
    assert.doesNotMatch(run.stdout, /✗|nothing found/);
    for (const line of linesOf(run.stdout)) assert.ok(Array.from(line).length <= 80, line);
    assert.match(run.stdout, /\n\nNext:\n {2}npx lcm demo --keep .*\n {2}npx lcm import /);
    assert.deepEqual(readdirSync(folder), []);
  });

  it("has at least 80% of its key facts in the prompt or one expand of 4,000 tokens away", () => {
    const { facts, tokensBefore, promptTokens } = ok({ state: createFolder() }, "demo", "--json").json;
    const { facts: all, inContext, byExpand, inMessages } = facts;
    process.stdout.write(`key facts: ${inContext} in the prompt, ${byExpand} one expand away, of ${all}\n`);
    assert.ok(all >= 40 && (inContext + byExpand) / all >= 0.8, JSON.stringify(facts));
    assert.ok(promptTokens < tokensBefore / 10);
    assert.equal(inContext + byExpand + inMessages.length, all, "it says where the others are");
  });

  it("names the messages with the other facts, and what to try next, each of which works", () => {
    const place = { state: createFolder() };
    const { stdout } = ok({ ...place, env: { TMPDIR: place.state } }, "demo", "--keep");
    const others = /the others by id, with lcm describe: (.*)/.exec(stdout)?.[1]?.split(", ") ?? [];
    assert.ok(others.length > 0, stdout);
    const env = { LCM_DATABASE_PATH: /LCM_DATABASE_PATH=(.*)/.exec(stdout)?.[1] ?? "" };
    const answers = readKeyFacts().map(({ answer }) => answer);
    for (const id of others) {
      const { text } = ok({ ...place, env }, "describe", id, "--json").json;
      assert.ok(
        answers.some((answer) => answer.every((words) => text.includes(words))),
        text,
      );
    }
    assert.match(stdout, /^ {2}npx lcm +# the terminal UI$/m);
    const steps = stdout.matchAll(/^ {2}npx lcm (\w[^#\n]*?) *(?:#.*)?$/gm).toArray();
    assert.deepEqual(
      steps.map(([, step = ""]) => step.split(" ")[0]),
      ["context", "dag", "describe", "expand", "grep", "ask"],
    );
    for (const [, step = ""] of steps) ok({ ...place, env }, ...step.split(" "));
  });

  it("is kept for browsing on request", () => {
    const place = { state: createFolder() };
    const { kept } = ok({ ...place, env: { TMPDIR: place.state } }, "demo", "--keep", "--json").json;
    assert.equal(ok(place, "doctor", "--json", "--db", join(kept, "lcm.db")).json.sound, true);
    assert.match(ok(place, "status", "--db", join(kept, "lcm.db")).stdout, /^search +up to date$/m);
  });
});
