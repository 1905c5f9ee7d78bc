import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { bare, bin, createFolder, lcm, linesOf, ok } from "./program.ts";
import type { Place, Run } from "./program.ts";
import { assertPrivate } from "../support/platform.ts";
import { devNull } from "node:os";
import { fixtures, session, messageCount, sessionText, writeSession } from "./session.ts";

const realSession = fileURLToPath(new URL("../../../shared/data/pi-session.jsonl", import.meta.url));

const entriesOf = (text: string): readonly unknown[] => linesOf(text).map((line): unknown => JSON.parse(line));

const storedMessages = (place: Place): readonly unknown[] =>
  ok(place, "messages", "1", "--from-start", "--limit", "100000", "--json").json.messages;

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
    assert.match(ok(place, "import", file).stdout, /deep\.jsonl: unchanged since the last import/);
    assert.match(ok(place, "import", file, "--again").stdout, /0 messages, 0 other entries, 5 already stored/);
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

  it("read only what a file has gained, and all of one that was rewritten in place or replaced", () => {
    const place = { state: createFolder() };
    const file = join(place.state, "chat.jsonl");
    const said = (id: string): string =>
      `${JSON.stringify({ id, role: "user", content: `I said ${id}. `.repeat(90) })}\n`;
    const report = (...options: readonly string[]): string =>
      ok(place, "import", file, ...options).stdout.replace(/^.*chat\.jsonl: (?:conversation \d+: )?|\n$/g, "");
    const keys = () => storedMessages(place).map((message) => (message as { readonly key: string }).key);
    const past = new Date(1_000_000);

    writeFileSync(file, said("m1") + said("m2") + said("m3"));
    assert.match(report(), /^3 messages/);
    assert.equal(report(), "unchanged since the last import");
    appendFileSync(file, said("m4") + said("m5").slice(0, 40));
    const torn = lcm(place, "import", file, "--json").json.files[0];
    assert.deepEqual([torn.messages, torn.duplicates, torn.torn], [1, 0, 5]);
    appendFileSync(file, said("m5").slice(40));
    assert.equal(report(), "1 message, 0 other entries, 0 already stored");

    // In place: as long as before, and with the same beginning and end.
    writeFileSync(file, said("m1") + said("m2") + said("x3") + said("m4") + said("m5"));
    utimesSync(file, past, past);
    assert.equal(report(), "1 message, 0 other entries, 4 already stored");
    assert.equal(report(), "unchanged since the last import");
    // Replaced by one that has grown, too.
    writeFileSync(`${file}.new`, said("m1") + said("m2") + said("y3") + said("m4") + said("m5") + said("m6"));
    renameSync(`${file}.new`, file);
    assert.equal(report(), "2 messages, 0 other entries, 4 already stored");
    // Shorter than before, with something new in it.
    writeFileSync(file, said("m1") + said("z2"));
    assert.equal(report(), "1 message, 0 other entries, 1 already stored");
    assert.deepEqual(keys(), ["m1", "m2", "m3", "m4", "m5", "x3", "y3", "m6", "z2"]);
    // Another session has read nothing of it yet.
    assert.match(report("--session", "other"), /^2 messages/);
    assert.equal(report("--session", "other"), "unchanged since the last import");
  });

  it("give the same rows whether a file comes at once, twice, or half before whole", () => {
    const [whole, grown] = [{ state: createFolder() }, { state: createFolder() }];
    ok(whole, "import", writeSession(whole.state));
    const lines = linesOf(sessionText);
    for (let upto = 2; upto < lines.length; upto += 5)
      ok(grown, "import", writeSession(grown.state, `${lines.slice(0, upto).join("\n")}\n`));
    const last = ok(grown, "import", writeSession(grown.state), "--json").json.files[0];
    assert.equal(last.messages + last.entries, 2);
    const file = join(grown.state, "session.jsonl");
    assert.equal(ok(grown, "import", file, "--json").json.files[0].kind, "unchanged");
    const again = ok(grown, "import", file, "--again", "--json").json.files[0];
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
    assert.match(run.stderr, /noise\.jsonl:5: .+\n.*noise\.jsonl: and 2,008 more; --again --json lists all\n$/);
    assert.equal(lcm(place, "import", path, "--again", "--json").json.files[0].malformed.length, 2_013);
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
    assert.match(both.stdout, /unchanged since the last import/);
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
      assert.equal(ok(grown, "import", path, "--session", "real", "--json").json.files[0].kind, "unchanged");
      assert.deepEqual(storedMessages(grown), storedMessages(whole));
      assert.equal(storedMessages(whole).length, 914);
      assert.deepEqual(entriesOf(ok(grown, "export", "real").stdout), entries);
      assert.equal(ok(grown, "doctor", "--json").json.sound, true);
    });
  } else {
    process.stdout.write(`skipped: the import of a real session, because ${realSession} is not there\n`);
  }
});
