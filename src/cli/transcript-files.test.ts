import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { LcmError } from "../core/base/errors.ts";
import type { SourceLine } from "../core/ingest/import-transcript.ts";
import { findTranscripts, openTranscript, sessionNameOf, type TranscriptFile } from "./transcript-files.ts";
import { withoutShell } from "../../test/support/platform.ts";

const scratch = mkdtempSync(join(tmpdir(), "lcm-files-"));
after(() => rmSync(scratch, { recursive: true }));

let files = 0;
function write(content: string | Buffer, name = `file-${++files}.jsonl`): string {
  const path = join(scratch, name);
  writeFileSync(path, content);
  return path;
}

const noInput = chunked(Buffer.alloc(0), 1);

async function* chunked(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const read = async (path: string) => await openAndRead({ path, bytes: statSync(path).size, isFound: false });

async function openAndRead(file: TranscriptFile) {
  const transcript = await openTranscript(file);
  const lines: SourceLine[] = [];
  for await (const line of transcript.lines) lines.push(line);
  return { lines, unreadable: transcript.unreadable, torn: transcript.tornAt(), bytes: transcript.bytesRead() };
}

const textsOf = (lines: readonly SourceLine[]): readonly string[] =>
  lines.map((line) => ("text" in line ? line.text : JSON.stringify(line.value)));
const isInvalid = (error: unknown): boolean => error instanceof LcmError && error.code === "invalid";

describe("a transcript of lines", () => {
  it("accepts any line ending, and drops the byte-order mark", async () => {
    const { lines } = await read(write('\ufeff{"a":1}\r\n\r\n{"b":"\ufeff"}\n'));
    assert.deepEqual(textsOf(lines), ['{"a":1}', "", '{"b":"\ufeff"}']);
    assert.deepEqual(
      lines.map(({ position }) => position),
      [1, 2, 3],
    );
  });

  it("reports an incomplete last line", async () => {
    const whole = await read(write('{"a":1}\n{"b":2}\n'));
    const torn = await read(write('{"a":1}\n{"b":'));
    assert.equal(whole.torn, null);
    assert.equal(torn.torn, 2);
    assert.deepEqual(textsOf(torn.lines), ['{"a":1}', '{"b":']);
  });

  it("keeps characters intact across two reads", async () => {
    const line = JSON.stringify({ text: "日本語👍".repeat(60_000) });
    const { lines, bytes } = await read(write(`${line}\n${line}\n`));
    assert.deepEqual(textsOf(lines), [line, line]);
    assert.equal(bytes, 2 * (Buffer.byteLength(line) + 1));
  });

  it("reports a line that is not UTF-8 instead of changing it, and continues", async () => {
    const { lines, unreadable } = await read(write(Buffer.from('{"a":1}\n{"b":"\xff"}\n{"c":3}\n', "latin1")));
    assert.deepEqual(textsOf(lines), ['{"a":1}', '{"c":3}']);
    assert.deepEqual(unreadable, [{ position: 2, reason: "the line is not valid UTF-8" }]);
  });

  it("may be empty", async () => {
    assert.deepEqual((await read(write(""))).lines, []);
  });
});

describe("a transcript that is one document", () => {
  const messages = [
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
  ];

  it("is a list of messages, or an object that contains one", async () => {
    for (const document of [messages, { messages }]) {
      for (const space of [0, 2]) {
        const { lines } = await read(write(JSON.stringify(document, null, space), `chat-${++files}.json`));
        assert.deepEqual(
          lines,
          messages.map((value, index) => ({ position: index + 1, value })),
        );
      }
    }
  });

  it("keeps the other fields of the document", async () => {
    const { lines } = await read(write(JSON.stringify({ id: "s1", title: "a chat", messages }), "about.json"));
    assert.deepEqual(lines[0], { position: 0, value: { type: "session", id: "s1", title: "a chat" } });
    assert.equal(lines.length, 3);
  });

  it("may have one value per line, whatever its name", async () => {
    const text = messages.map((message) => JSON.stringify(message)).join("\n");
    assert.deepEqual(textsOf((await read(write(text, "lines.json"))).lines), text.split("\n"));
    const one = JSON.stringify(messages[0]);
    assert.deepEqual(textsOf((await read(write(one, "one.json"))).lines), [one]);
  });

  it("is refused if it is something else", async () => {
    await assert.rejects(read(write('{"name":"a package"}', "package.json")), isInvalid);
    await assert.rejects(read(write('[{"role":"user"', "cut.json")), isInvalid);
    await assert.rejects(read(write(Buffer.from("\ufeff[]", "utf16le"), "utf16.json")), isInvalid);
  });
});

describe("paths on the command line", () => {
  it("may be folders, which include their transcripts", async () => {
    const folder = join(scratch, "sessions");
    mkdirSync(join(folder, "below"), { recursive: true });
    for (const name of ["b.jsonl", "a.json", "c.txt", "d.jsonl.lock", "below/e.jsonl"])
      writeFileSync(join(folder, name), "");
    const found = await findTranscripts([folder, join(folder, "c.txt")], noInput);
    assert.deepEqual(
      found.map(({ path, isFound }) => [path.slice(folder.length + 1), isFound]),
      [
        ["a.json", true],
        ["b.jsonl", true],
        ["c.txt", false],
      ],
    );
  });

  it("must exist, and a folder must contain transcripts", async () => {
    mkdirSync(join(scratch, "empty"));
    for (const path of ["nowhere.jsonl", "empty"]) {
      await assert.rejects(
        findTranscripts([join(scratch, path)], noInput),
        (error) => error instanceof LcmError && error.code === "not_found",
      );
    }
  });

  it("may be pipes if they are named, but not devices", { skip: withoutShell }, async () => {
    const folder = join(scratch, "pipes");
    mkdirSync(folder);
    writeFileSync(join(folder, "a.jsonl"), "");
    const pipe = join(folder, "b.jsonl");
    execFileSync("mkfifo", [pipe]);
    await assert.rejects(
      findTranscripts(["/dev/null"], noInput),
      (error) => isInvalid(error) && error instanceof LcmError && /save it first/.test(error.hint ?? ""),
    );
    const found = await findTranscripts([folder], noInput);
    assert.deepEqual(
      found.map(({ path }) => path),
      [join(folder, "a.jsonl")],
    );
    const [named] = await findTranscripts([pipe], noInput);
    assert.ok(named);
    const text = '{"role":"user","content":"through a pipe"}\n';
    const [{ lines }] = await Promise.all([openAndRead(named), writeFile(pipe, text)]);
    assert.deepEqual(textsOf(lines), [text.trim()]);
  });

  it("may be stdin, which is read like a file whatever its chunks", async () => {
    const message = { role: "user", content: "日本語👍".repeat(10) };
    const texts = [
      `${JSON.stringify(message)}\n`,
      `\ufeff${JSON.stringify(message)}\r\n`.repeat(3),
      `${JSON.stringify({ ...message, content: "日本語👍".repeat(60_000) })}\n`.repeat(3),
      JSON.stringify([message, message]),
      JSON.stringify({ id: "s1", messages: Array.from({ length: 20_000 }, () => message) }, null, 2),
      "",
    ];
    for (const text of texts) {
      const whole = await read(write(text, `as-file-${++files}.txt`));
      for (const size of [7, 65_536, 1_000_000]) {
        const bytes = Buffer.from(text).subarray(0, size === 7 ? 100_000 : undefined);
        const expected = size === 7 ? await read(write(bytes, `as-file-${++files}.txt`)).catch(String) : whole;
        const [file] = await findTranscripts(["-"], chunked(bytes, size));
        assert.ok(file);
        assert.deepEqual(await openAndRead(file).catch(String), expected);
      }
    }
  });

  it("are refused if they are databases, whatever their names", async () => {
    for (const name of ["some.db", "some.jsonl"]) {
      await assert.rejects(
        read(write("SQLite format 3\0 and pages of it\n", name)),
        (error) => isInvalid(error) && /is a database, not a transcript/.test(String(error)),
      );
    }
  });

  it("give a session its id if the file has none", () => {
    assert.equal(sessionNameOf({ path: "/a/b/2026-chat.jsonl" }), "2026-chat");
    assert.equal(sessionNameOf({ path: "notes" }), "notes");
    assert.equal(sessionNameOf({ path: "/dev/fd/63", pipe: noInput }), "stdin");
  });
});
