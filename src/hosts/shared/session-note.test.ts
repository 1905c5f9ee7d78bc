import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { makeScratch } from "../../../test/support/scratch.ts";
import { noteSession, readSessionNote } from "./session-note.ts";

const one = { sessionId: "one", folder: "/work/one" };
const two = { sessionId: "two", folder: "/work/two" };

describe("the note of a host's session", () => {
  it("is that of the reader's own host process, else the newest of its folder", () => {
    const folder = join(makeScratch("session-note"), "data");
    assert.equal(readSessionNote(folder, process.pid, "/work/two"), null);
    noteSession(folder, process.pid, one);
    noteSession(folder, null, two);
    assert.deepEqual(readSessionNote(folder, process.pid, "/work/two"), one);
    assert.deepEqual(readSessionNote(folder, 1, "/work/two"), two);
    assert.equal(readSessionNote(folder, 1, "/work/one"), null);
  });

  it("follows the process into another session", () => {
    const folder = makeScratch("session-note");
    noteSession(folder, process.pid, one);
    noteSession(folder, process.pid, two);
    assert.deepEqual(readSessionNote(folder, process.pid, "/work/two"), two);
  });

  it("goes when its process has ended, and is ignored when unreadable", () => {
    const folder = makeScratch("session-note");
    const ended = 2 ** 22 + 1; // Above the largest id that Linux gives.
    noteSession(folder, ended, one);
    noteSession(folder, process.pid, two);
    assert.equal(existsSync(join(folder, `session-${ended}.json`)), false);
    writeFileSync(join(folder, "session.json"), "{");
    assert.equal(readSessionNote(folder, ended, "/work/two"), null);
  });
});
