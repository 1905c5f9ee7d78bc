/** What a command starts and loads before it works: the causes of a slow start, not the time itself. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { makeDemoDatabase } from "../support/demo-database.ts";
import { createFolder, lcm, sourceBin } from "./program.ts";

/** Runs in every thread of the program, before its first module. */
const spy = `
  import { getCompileCacheDir, isBuiltin, registerHooks } from "node:module";
  import { writeSync } from "node:fs";
  import { isMainThread } from "node:worker_threads";
  const say = (kind, what) => writeSync(2, "\\n@" + kind + " " + what + "\\n");
  if (isMainThread) process.on("worker", () => say("thread", "started"));
  else say("cache", getCompileCacheDir() === undefined ? "missing" : "used");
  registerHooks({ resolve(name, context, next) {
    if (!isBuiltin(name) && !/^[./]|^file:|^data:/.test(name)) say("package", name);
    return next(name, context);
  } });`;

const state = createFolder();
const env = {
  NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(spy)}`,
  NODE_COMPILE_CACHE: "", // As a user starts it: the launcher chooses the folder.
};
let summary = "";

interface Start {
  readonly threads: number;
  readonly caches: readonly string[];
  readonly packages: readonly string[];
}

function start(...args: readonly string[]): Start {
  const run = lcm({ state, env, program: sourceBin }, ...args); // Imports are visible only before bundling.
  assert.equal(run.status, 0, `lcm ${args.join(" ")}: ${run.stderr}`);
  const said = (kind: string): readonly string[] =>
    [...run.stderr.matchAll(new RegExp(`^@${kind} (.+)$`, "gm"))].map(([, what = ""]) => what);
  return { threads: said("thread").length, caches: said("cache"), packages: [...new Set(said("package"))].toSorted() };
}

describe("the start of a command", () => {
  before(async () => {
    await makeDemoDatabase(join(state, "lcm.db"));
    const [, found = ""] = /(sum_[0-9a-f]{16})/.exec(lcm({ state }, "dag", "1", "--json").stdout) ?? [];
    summary = found;
  });

  const inOneThread = (): readonly (readonly string[])[] => [
    ["status"],
    ["conversations"],
    ["messages", "1"],
    ["context", "1"],
    ["dag", "1"],
    ["grep", "payment"],
    ["ask", "why were customers charged twice", "--no-model"],
    ["recent"],
    ["describe", summary],
    ["expand", summary],
    ["compact", "1", "--no-model"],
    ["prompts"],
    ["history"],
    ["export", "1"],
    ["restore"],
  ];

  it("needs no second thread and no package but commander and what prints", () => {
    for (const args of inOneThread()) {
      const { threads, packages } = start(...args);
      assert.equal(threads, 0, `lcm ${args.join(" ")} started ${threads} threads`);
      const allowed = ["commander", "diff", "fast-string-width", "fast-string-truncated-width", "picocolors"];
      assert.deepEqual(
        packages.filter((name) => !allowed.includes(name)),
        [],
        `lcm ${args.join(" ")}`,
      );
    }
  });

  it("takes one thread for a regular expression, which only the end of its thread can stop", () => {
    assert.equal(start("grep", "-e", "pay.*t").threads, 1);
  });

  it("lets threads use the compiled code that the launcher keeps", () => {
    assert.deepEqual(start("grep", "-e", "pay.*t").caches, ["used"]);
  });
});
