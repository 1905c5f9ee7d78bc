/** Tests what commands do without being told: which conversation, which change; and that no command ignores --json. */

import assert from "node:assert/strict";
import { cpSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, describe, it } from "node:test";
import packageJson from "../../package.json" with { type: "json" };
import { makeDemoDatabase } from "../support/demo-database.ts";
import { homeAt, withoutPseudoTerminal } from "../support/platform.ts";
import { startTerminal } from "../support/terminal.ts";
import { bare, bin, createFolder, lcm, linesOf, ok } from "./program.ts";
import type { Place } from "./program.ts";

const original = join(createFolder(), "lcm.db");
before(async () => void (await makeDemoDatabase(original)));

/** A user with the demo's conversation only. */
function createPlace(): Place {
  const state = createFolder();
  cpSync(dirname(original), state, { recursive: true });
  return { state };
}

function addConversation(place: Place): void {
  const path = join(place.state, "second.jsonl");
  writeFileSync(path, '{"role":"user","content":"a second conversation"}\n');
  ok(place, "import", path);
}

const summariesOf = (place: Place): readonly string[] =>
  [...ok(place, "dag", "1", "--json").stdout.matchAll(/"id": "(sum_\w+)"/g)].map(([, id = ""]) => id);

describe("a command that needs a conversation", () => {
  let place: Place;
  let d1: string;
  before(() => {
    place = createPlace();
    [d1 = ""] = summariesOf(place);
  });

  const commands = (): readonly (readonly string[])[] => [
    ["context"],
    ["dag"],
    ["messages"],
    ["compact"],
    ["export"],
    ["rewrite", "--all", "--estimate"],
    ["dissolve", "--summary", d1],
  ];

  it("takes the only one", () => {
    for (const [name = "", ...options] of commands()) {
      const [without, named] = [lcm(place, name, ...options), lcm(place, name, "1", ...options)];
      assert.deepEqual([without.status, without.stdout], [0, named.stdout], `${name}: ${without.stderr}`);
    }
  });

  it("asks which one if there are several, unless a summary tells", () => {
    const several = createPlace();
    addConversation(several);
    for (const [name = "", ...options] of commands()) {
      const run = lcm(several, name, ...options);
      if (name === "dissolve") assert.equal(run.status, 0, run.stderr);
      else
        assert.match(
          run.stderr,
          /^error: missing: which of 2 conversations\nhint: name one; `lcm conversations` lists them\n$/,
          name,
        );
    }
    assert.equal(lcm(several, "dag", "--summary", d1).status, 0);
    assert.equal(lcm(several, "rewrite", "--summary", d1, "--estimate").status, 0);
    const elsewhere = lcm(several, "rewrite", "2", "--summary", d1, "--estimate");
    assert.match(elsewhere.stderr, /^error: sum_\w+ is not in conversation 2\nhint: it is in conversation 1\n$/);
  });
});

describe("lcm undo without a number", () => {
  /** Two changes: the summary of depth 1 is dissolved, then one of its leaves. */
  function createChanges(): Place {
    const place = createPlace();
    const [d1 = "", leaf = ""] = summariesOf(place);
    ok(place, "dissolve", "--summary", d1, "--apply", "--no-backup");
    ok(place, "dissolve", "--summary", leaf, "--apply", "--no-backup");
    return place;
  }

  it("shows the newest change, undoes it with --apply, and goes back one by one", () => {
    const place = createChanges();
    const shown = ok(place, "undo");
    assert.deepEqual([shown.stdout, shown.stderr], [ok(place, "undo", "2").stdout, ok(place, "undo", "2").stderr]);
    assert.match(shown.stderr, /^nothing was changed; pass --apply/);
    assert.equal(ok(place, "undo", "--json").json.plan.undoing.change, 2);
    assert.equal(ok(place, "undo", "--apply", "--no-backup", "--json").json.plan.undoing.change, 2);
    assert.equal(ok(place, "undo", "--apply", "--no-backup", "--json").json.plan.undoing.change, 1);
    const done = lcm(place, "undo");
    assert.equal(done.status, 3);
    assert.match(done.stderr, /^error: there is no change to undo\nhint: .*`lcm history`/);
  });

  it("takes the newest change to the summary that is named", () => {
    const place = createChanges();
    const [first] = ok(place, "history", "--change", "1", "--json").json.changes;
    const { subject } = first.steps[0];
    assert.equal(lcm(place, "undo", "--summary", subject, "--json").json.plan.undoing.change, 1);
  });

  it("asks on a terminal, and does nothing unless the answer is yes", { skip: withoutPseudoTerminal }, async () => {
    const place = createChanges();
    const env = { ...homeAt(place.state), OPENCLAW_STATE_DIR: place.state, TZ: bare.TZ };
    const states = (): readonly string[] =>
      ok(place, "history", "--json").json.changes.map(({ state }: { state: string }) => state);
    for (const [answer, expected] of [
      ["n", ["holds", "holds"]],
      ["y", ["holds", "undone", "holds"]],
    ] as const) {
      const terminal = startTerminal(`${process.execPath} ${bin} undo`, { env, cwd: place.state });
      await terminal.sees("Undo it, after a backup?");
      terminal.press(answer);
      assert.equal((await terminal.ended()).status, 0, terminal.screen());
      assert.deepEqual(states(), expected);
    }
    const dry = startTerminal(`${process.execPath} ${bin} undo --dry-run`, { env, cwd: place.state });
    assert.equal((await dry.ended()).status, 0);
    assert.doesNotMatch(dry.written(), /Undo it/);
  });
});

describe("--json", () => {
  it("gives an export as one object, with the lines that the export has without it", () => {
    const place = createPlace();
    const lines = linesOf(ok(place, "export").stdout);
    const { conversation, entries, lines: count, incomplete } = ok(place, "export", "--json").json;
    assert.deepEqual([conversation, count, incomplete], [1, lines.length, []]);
    assert.deepEqual(
      entries,
      lines.map((line): unknown => JSON.parse(line)),
    );
    const empty = { state: createFolder() };
    writeFileSync(join(empty.state, "s.jsonl"), '{"role":"user","content":"\\u202e one"}');
    ok(empty, "import", join(empty.state, "s.jsonl"));
    const one = ok(empty, "export", "--json");
    assert.deepEqual(one.json.entries, [{ role: "user", content: "\u202e one" }]);
    assert.doesNotMatch(one.stdout, /\u202e/);
  });

  it("gives the version as an object", () => {
    const place = { state: createFolder() };
    for (const args of [
      ["--version", "--json"],
      ["--json", "-V"],
    ])
      assert.deepEqual(ok(place, ...args).json, { version: packageJson.version });
    assert.equal(ok(place, "--version").stdout, `${packageJson.version}\n`);
  });
});

describe("lcm grep", () => {
  it("exits with 1 if nothing matches, like grep", () => {
    const place = createPlace();
    assert.equal(lcm(place, "grep", "zeppelin").status, 1);
    assert.deepEqual(lcm(place, "grep", "zeppelin", "--json").json.hits, []);
    assert.equal(lcm(place, "grep", "Kyoto").status, 0);
    assert.equal(lcm(place, "grep", "-e", "[").status, 2);
  });
});
