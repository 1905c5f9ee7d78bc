import assert from "node:assert/strict";
import { appendFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { makeScratch } from "../../../test/support/scratch.ts";
import { logProblem, problemLogOf, readProblems, type Problem } from "./problem-log.ts";

const problem = (message: string): Problem => ({
  at: "2026-11-18T11:00:00.000Z" as Problem["at"],
  host: "codex",
  doing: "storing",
  message,
});

describe("the log of problems", () => {
  it("is beside the database, and reads back", () => {
    const path = problemLogOf(join(makeScratch("problem-log"), "new", "lcm.db"));
    assert.deepEqual(readProblems(path), []);
    logProblem(path, problem("one"));
    logProblem(path, problem("two"));
    appendFileSync(path, '{"at":"torn');
    assert.deepEqual(readProblems(path), [problem("one"), problem("two")]);
  });

  it("keeps the newest within a limit", () => {
    const path = problemLogOf(join(makeScratch("problem-log"), "lcm.db"));
    for (let nth = 0; nth < 1_000; nth++) logProblem(path, problem(`${nth} ${"x".repeat(2_000)}`));
    assert.ok(statSync(path).size < 70_000);
    assert.match(readProblems(path).at(-1)?.message ?? "", /^999 /);
  });

  it("never throws", () => {
    const file = join(makeScratch("problem-log"), "a-file");
    writeFileSync(file, "");
    logProblem(join(file, "lcm-companion.log"), problem("one"));
    assert.deepEqual(readProblems(join(file, "lcm-companion.log")), []);
  });
});
