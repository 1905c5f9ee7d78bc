import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { describe, it } from "node:test";
import { errorCodes, LcmError } from "../core/base/errors.ts";
import { reportFailure } from "./failure.ts";

function createMemory() {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk.toString());
      done();
    },
  });
  return { stream, text: () => chunks.join("") };
}

function report(error: unknown, { json = false, debug = false, columns = 80 } = {}) {
  const [stdout, stderr] = [createMemory(), createMemory()];
  const status = reportFailure({ stdout, stderr: { ...stderr, colour: false, columns }, debug }, json, error);
  return { status, stdout: stdout.text(), stderr: stderr.text() };
}

describe("a failure", () => {
  it("has its own exit status for every code", () => {
    const statuses = errorCodes.map((code) => report(new LcmError(code, "it failed")).status);
    assert.deepEqual(statuses, [2, 3, 4, 5, 6, 7]);
  });

  it("reports what happened and what to do, only on stderr", () => {
    const { stdout, stderr } = report(new LcmError("not_found", "there is none", { hint: "make one" }));
    assert.equal(stderr, "error: there is none\nhint: make one\n");
    assert.equal(stdout, "");
  });

  it("is no wider than the terminal", () => {
    const { stderr } = report(new LcmError("invalid", "so it is", { hint: "name another" }), { columns: 14 });
    assert.equal(stderr, "error: so it\nis\nhint: name\nanother\n");
  });

  it("is only JSON for programs", () => {
    const { stdout, stderr } = report(new LcmError("denied", "no", { hint: "ask" }), { json: true });
    assert.deepEqual(JSON.parse(stdout), { error: { code: "denied", message: "no", hint: "ask" } });
    assert.equal(stderr, "");
  });

  it("of the operating system is classified by its code", () => {
    assert.equal(report(Object.assign(new Error("EACCES: no"), { code: "EACCES" })).status, 5);
    assert.equal(report(Object.assign(new Error("ENOSPC: full"), { code: "ENOSPC" })).status, 6);
  });

  it("that is unexpected is one line with status 70, with its stack only on request", () => {
    const bug = new TypeError("x is not a function");
    const { status, stderr } = report(bug);
    assert.equal(status, 70);
    assert.match(stderr, /^error: unexpected error: x is not a function\nhint: .*LCM_DEBUG=1.*\n$/);
    assert.match(report(bug, { debug: true }).stderr, /failure\.test\.ts:\d+/);
  });
});
